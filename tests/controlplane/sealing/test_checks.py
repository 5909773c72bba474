"""Without keys nothing starts, and the reason is one sentence; `check --deploy` is clean as services run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from controlplane.core import apps, checks
from controlplane.env import ROOT
from controlplane.sealing import installed
from controlplane.sealing.keyring import drawn


def told() -> list[str]:
    return [f"{each.id}: {each.msg}" for each in checks.keys_check(None, databases=["default"])]


def test_with_keys_there_is_nothing_to_say(keys):
    assert told() == []
    installed.demand()
    apps._worker_starts(sender="worker")


@pytest.mark.parametrize(
    ("text", "why"), [(None, "is not there"), ("", "it holds no key"), ("short\n", "line 1: a key is 43 characters")]
)
def test_without_keys_web_process_worker_and_migrations_do_not_start(keys, text, why):
    if text is None:
        keys.path.unlink()
    else:
        keys.path.write_text(text)
    (said,) = told()
    assert said.startswith("sluice.E001: ")
    assert why in said
    with pytest.raises(ImproperlyConfigured, match=why):
        installed.demand()
    with pytest.raises(SystemExit, match=why):
        apps._worker_starts(sender="worker")
    with pytest.raises(CommandError, match=why):
        call_command("migrate_with_copy")


def test_a_file_that_cannot_be_read_is_told(keys):
    keys.path.unlink()
    keys.path.mkdir()
    assert "cannot be read: IsADirectoryError" in told()[0]
    keys.path.rmdir()
    keys.path.write_bytes(b"\xff\xfe")
    assert "cannot be read: UnicodeDecodeError" in told()[0]


def test_keys_that_everybody_can_read_are_told_of(keys):
    for mode, is_told in ((0o600, False), (0o640, False), (0o644, True), (0o602, True)):
        keys.path.chmod(mode)
        assert [said.split(":")[0] for said in told()] == ["sluice.W001"] * is_told


def test_it_is_asked_where_secrets_are_written_and_not_where_a_schema_is(keys):
    keys.path.unlink()
    assert "sluice.E001" not in {each.id for each in run_checks()}
    assert "sluice.E001" in {each.id for each in run_checks(tags=["database"], databases=["default"])}
    assert "sluice.E001" in {each.id for each in run_checks(tags=["security"], include_deployment_checks=True)}


def test_a_secret_key_that_each_process_draws_for_itself_is_no_deployment(keys):
    (said,) = checks.secret_key_check(None)
    assert said.id == "sluice.E002"


def check(folder, *, drop: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """`check --deploy` with the settings of a service, in a process of its own: settings are read once."""
    (folder / "secrets.json").write_text(
        json.dumps({"django_secret_key": "k3y-" + "abcdefghijklmnopqrstuvwxyz0123456789" * 2})
    )
    (folder / "encryption.keys").write_text(drawn())
    (folder / "encryption.keys").chmod(0o600)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    environment |= {
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
        "SLUICE_STACK_DIR": str(folder),
        "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3",
        "SLUICE_TLS": "1",
        "SLUICE_ALLOWED_HOSTS": "kafka.example.com",
        **variables,
    }
    if drop:
        (folder / drop).unlink()
    command = [sys.executable, "manage.py", "check", "--deploy", "--database", "default", "--fail-level", "WARNING"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100, check=False)


def test_as_services_run_it_the_deployment_check_is_clean(tmp_path):
    done = check(tmp_path)
    assert (done.returncode, done.stdout) == (0, "System check identified no issues (2 silenced).\n"), done.stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"drop": "encryption.keys"}, "sluice.E001"),
        ({"drop": "secrets.json"}, "sluice.E002"),
        ({"SLUICE_DEBUG": "1"}, "security.W018"),
        ({"SLUICE_TLS": "0"}, "security.W012"),
    ],
)
def test_and_says_what_is_not_as_it_should_be(tmp_path, change, told):
    done = check(tmp_path, **change)
    assert done.returncode == 1
    assert told in done.stderr
