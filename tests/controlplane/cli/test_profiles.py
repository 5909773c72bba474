"""An API key is asked for, checked, kept where nobody else reads it, and never shown."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

import pytest
from typer.main import get_command

from controlplane.cli import profiles
from controlplane.cli.app import app
from controlplane.cli.profiles import Profile
from controlplane.env import ROOT


def test_login_keeps_the_key_for_its_owner_alone(site, alice, sluice, home):
    ran = sluice("login", "--url", f"{site}/api/v1/", stdin=f"{alice.key}\n")
    assert ran.status == 0, ran.err
    assert "alice@example.com" in ran.out
    assert alice.key not in ran.out + ran.err
    kept = home / "profiles.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert json.loads(kept.read_text())["profiles"] == {"default": {"url": site, "api_key": alice.key}}
    assert [each.name for each in home.iterdir()] == ["profiles.json"]
    assert sluice("whoami", "-o", "json").json["email"] == "alice@example.com"


def test_several_people_have_a_profile_each(site, alice, charlie, sluice):
    sluice("login", "--url", site, stdin=f"{alice.key}\n")
    sluice("login", "--url", site, "--profile", "charlie", stdin=f"{charlie.key}\n")
    assert sluice("--profile", "charlie", "whoami", "-o", "json").json["email"] == "charlie@example.com"
    assert sluice("whoami", "-o", "json").json["email"] == "alice@example.com"
    assert sluice("logout", "--profile", "charlie").status == 0
    assert sluice("whoami", "--profile", "charlie").status == 3
    assert sluice("whoami").status == 0


def test_a_key_that_is_not_valid_is_not_kept(site, sluice, home):
    ran = sluice("login", "--url", site, stdin="slc_nobodys\n")
    assert ran.status == 3
    assert "slc_nobodys" not in ran.out + ran.err
    assert not home.exists()


@pytest.mark.parametrize("typed", ["", "\n", "two words\n"])
def test_what_is_no_key_is_not_even_sent(site, sluice, typed):
    assert sluice("login", "--url", site, stdin=typed).status == 3


@pytest.mark.parametrize(
    "url", ["sluice.example.com", "ftp://x", "https://", "https://ann:secret@x", "https://x:y", "https://x/?a=b"]
)
def test_what_is_no_address(sluice, home, url):
    assert sluice("login", "--url", url, stdin="slc_x\n").status == 2


def test_a_key_is_not_sent_in_clear_to_another_machine(sluice, home):
    ran = sluice("login", "--url", "http://sluice.example.com", stdin="slc_x\n")
    assert ran.status == 2
    assert "--allow-http" in ran.err


def test_the_environment_wins(site, alice, charlie, sluice, monkeypatch):
    sluice("login", "--url", site, stdin=f"{alice.key}\n")
    monkeypatch.setenv("SLUICE_API_KEY", charlie.key)
    assert sluice("whoami", "-o", "json").json["email"] == "charlie@example.com"


def test_a_stored_key_goes_to_its_own_address_alone(home, monkeypatch):
    profiles.keep("default", Profile("https://one.example.com", "slc_one"))
    assert profiles.chosen(None, {"SLUICE_URL": "https://one.example.com/"}).api_key == "slc_one"
    with pytest.raises(profiles.NotSignedIn, match="SLUICE_URL"):
        profiles.chosen(None, {"SLUICE_URL": "https://two.example.com"})
    chosen = profiles.chosen(None, {"SLUICE_URL": "https://two.example.com", "SLUICE_API_KEY": "slc_two"})
    assert (chosen.url, chosen.api_key) == ("https://two.example.com", "slc_two")


def test_a_file_that_others_may_read_is_not_used(sluice, home):
    kept = profiles.keep("default", Profile("https://one.example.com", "slc_one"))
    kept.chmod(0o640)
    ran = sluice("whoami")
    assert ran.status == 3
    assert f"chmod 600 {kept}" in ran.err


@pytest.mark.parametrize("key", ["slc_two\nlines", "slc_größe", "slc two"])
def test_a_key_that_cannot_be_sent_is_not_repeated(sluice, monkeypatch, key):
    monkeypatch.setenv("SLUICE_URL", "https://one.example.com")
    monkeypatch.setenv("SLUICE_API_KEY", key)
    ran = sluice("whoami")
    assert ran.status == 3
    assert "slc" not in ran.err


def test_a_folder_that_cannot_be_written_is_said(site, alice, sluice, home):
    home.parent.mkdir()
    home.write_text("a file")
    ran = sluice("login", "--url", site, stdin=f"{alice.key}\n")
    assert ran.status == 1
    assert str(home) in ran.err
    assert alice.key not in ran.err


@pytest.mark.parametrize("text", ["", "{}", '{"profiles": []}', '{"profiles": {"default": {"url": 1}}}'])
def test_a_file_that_is_damaged_is_said(sluice, home, text):
    kept = profiles.keep("default", Profile("https://one.example.com", "slc_one"))
    kept.write_text(text)
    ran = sluice("whoami")
    assert (ran.status, "Traceback" in ran.err) == (3, False)


def test_a_key_does_not_show_in_what_python_prints_of_it():
    assert "slc_one" not in repr(Profile("https://one.example.com", "slc_one"))


def parameters(command):
    for inner in getattr(command, "commands", {}).values():
        yield from parameters(inner)
    yield from command.params


def test_no_option_takes_a_key_or_a_password():
    """What is an argument of a process, everybody on the machine can read."""
    named = {parameter.name: parameter for parameter in parameters(get_command(app))}
    suspicious = {name for name in named if any(word in name for word in ("password", "secret", "api_key", "token"))}
    assert {name for name in suspicious if not named[name].is_flag} == set()
    assert suspicious == {"ask_password", "ask_secret", "keep_secret"}


def test_the_program_by_itself(site, alice, home):
    """As a process: its arguments and what it says hold no key."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-m", "controlplane.cli", "login", "--url", site]
    ran = subprocess.run(
        arguments, input=f"{alice.key}\n", capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert alice.key not in ran.stdout + ran.stderr
    ran = subprocess.run(
        [*arguments[:3], "caps"], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "how_to_raise" in ran.stdout
    assert "\x1b" not in ran.stdout
