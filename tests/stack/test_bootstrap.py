"""When `make` installs, and when it has nothing to do."""

import socket
import subprocess
import sys

import pytest

from controlplane.stack import bootstrap
from tests.support.ports import free_block


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with pins, and a log of what would have been run instead of running it."""
    requirements = tmp_path / "requirements"
    requirements.mkdir()
    for name in ("redis.txt", "product.txt", "develop.txt"):
        (requirements / name).write_text(f"{name}==1")
    monkeypatch.setattr(bootstrap, "PROJECT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(bootstrap, "brings_redis", lambda: False)
    return tmp_path


@pytest.fixture
def runs(project, monkeypatch):
    commands: list[list[str]] = []

    def run(command, *, check, **_):
        commands.append([str(word) for word in command])
        if "venv" in commands[-1]:
            (project / ".venv" / "bin").mkdir(parents=True)
            (project / ".venv" / "bin" / "python").touch()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(bootstrap.subprocess, "run", run)
    monkeypatch.setenv("SLUICE_NO_UV", "1")
    return commands


def installs(runs: list[list[str]]) -> list[str]:
    return [command[-1].rpartition("/")[2] for command in runs if "install" in command]


def test_the_first_run_makes_the_environment_and_installs_with_hashes(runs):
    assert bootstrap.main("product") == 0
    assert installs(runs) == ["product.txt"]
    assert all("--require-hashes" in command for command in runs if "install" in command)


def test_a_second_run_with_the_same_pins_does_nothing(runs):
    bootstrap.main("product")
    runs.clear()
    assert bootstrap.main("product") == 0
    assert runs == []


def test_changed_pins_are_installed(runs, project):
    bootstrap.main("product")
    (project / "requirements" / "product.txt").write_text("product.txt==2")
    runs.clear()
    bootstrap.main("product")
    assert installs(runs) == ["product.txt"]


def test_what_development_needs_holds_what_the_product_needs(runs):
    bootstrap.main("develop")
    runs.clear()
    bootstrap.main("product")
    assert runs == []


def test_the_product_does_not_hold_what_development_needs(runs):
    bootstrap.main("product")
    assert not bootstrap.is_installed("develop")


def test_a_failed_installation_is_one_sentence_and_is_tried_again(runs, monkeypatch, capsys):
    def fail(pins, *options):
        raise subprocess.CalledProcessError(1, ["pip", "install"])

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "install", fail)
        assert bootstrap.main("product") == 1
    assert "sluice: `pip install ...` failed" in capsys.readouterr().out
    assert bootstrap.main("product") == 0
    assert installs(runs) == ["product.txt"]


def test_a_python_that_is_too_old_or_too_new_is_one_sentence(monkeypatch, capsys, runs):
    monkeypatch.setattr(bootstrap, "NEWEST", (3, 10))
    assert bootstrap.main("product") == 1
    out = capsys.readouterr().out
    assert out.startswith("sluice: Sluice needs Python 3.11 to 3.13, and ")
    assert sys.executable in out
    assert runs == []


def test_the_command_line_is_a_program_that_runs_from_any_folder(tmp_path):
    """Of this project: `make` has written it, with the environment that these tests run in."""
    bootstrap.write_program()
    program = bootstrap.VENV / "bin" / "sluice"
    found = subprocess.run([program, "--help"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "Usage: sluice" in found.stdout


def test_the_program_is_written_again_where_the_project_was_moved(runs, project):
    bootstrap.main("product")
    program = project / ".venv" / "bin" / "sluice"
    program.write_text("of another folder")
    bootstrap.main("product")
    assert str(project) in program.read_text()
    assert program.stat().st_mode & 0o111


class TestAStackThatIsToBeStarted:
    """`bootstrap.py product PORT CLUSTERS`: what would keep it from starting is said before anything is installed."""

    def test_nothing_is_installed_where_a_port_of_it_is_taken(self, runs, capsys):
        base = free_block(100)
        with socket.socket() as other:
            other.bind(("127.0.0.1", base + 2))
            other.listen()
            assert bootstrap.main("product", str(base), "1") == 1
        assert f"port {base + 2}, which Redis needs, is taken by another program" in capsys.readouterr().out
        assert runs == []

    def test_a_port_of_what_the_user_brings_is_not_asked_for(self, runs, monkeypatch):
        monkeypatch.setenv("REDIS_URL", "redis://elsewhere:6379/0")
        base = free_block(100)
        with socket.socket() as other:
            other.bind(("127.0.0.1", base + 2))
            other.listen()
            assert bootstrap.main("product", str(base), "1") == 0

    @pytest.mark.parametrize(("port", "clusters"), [("abc", "1"), ("-1", "1"), ("99999", "1"), ("24000", "9")])
    def test_what_is_no_stack_is_one_sentence(self, runs, capsys, port, clusters):
        assert bootstrap.main("product", port, clusters) == 1
        assert capsys.readouterr().out.startswith("sluice: ")
        assert runs == []

    def test_a_bare_python_can_ask(self):
        """Before the installation there are no packages, and `-I` leaves the project's folder out."""
        program = f"import runpy; print(runpy.run_path({bootstrap.__file__!r})['port_problem']('abc', '1'))"
        found = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
        assert found.stdout.startswith("PORT and CLUSTERS must be whole numbers")
        program = program.replace("abc", str(free_block(100)))
        found = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
        assert found.stdout == "None\n"
