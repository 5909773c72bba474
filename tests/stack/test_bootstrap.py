"""When `make` installs, and when it has nothing to do."""

import subprocess
import sys

import pytest

from controlplane.stack import bootstrap


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
