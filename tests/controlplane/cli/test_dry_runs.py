"""``--dry-run`` of commands that know nothing of it: what the call would do is printed, and nothing is done."""

from __future__ import annotations

import inspect
import re

import pytest
import typer

from controlplane.cli import operations as ops
from controlplane.cli.app import app
from controlplane.cli.options import Rehearsed
from controlplane.instances.models import Instance


def commands():
    """Every command, with the words that it is called by."""

    def below(group, words):
        for name, found in group.commands.items():
            if hasattr(found, "commands"):
                yield from below(found, (*words, name))
            else:
                yield (*words, name), found

    return dict(below(typer.main.get_command(app), ()))


def test_a_whitelist_stays_as_it_is(ok, instance):
    said = ok("instance", "whitelist", instance.name, "--cidr", "10.0.0.0/8", "--dry-run", "-o", "json").json
    assert said["changes"] == {"whitelist": [["127.0.0.0/8"], ["10.0.0.0/8"]]}
    assert Instance.objects.unscoped("a test").get().whitelist == ["127.0.0.0/8"]


def test_a_route_is_not_opened_and_nothing_is_waited_for(ok, instance, worker):
    said = ok("route", "create", instance.name, "--security", "ssl", "--dry-run", "-o", "json").json
    assert said["changes"]["r2.security"] == [None, "ssl"]
    assert worker.pauses == []
    assert [each["id"] for each in ok("route", "list", instance.name, "-o", "json").json["items"]] == ["default"]


def test_nobody_is_asked_for_the_name_of_what_is_not_deleted(ok, instance):
    ok("access", "user", "add", instance.name, "ann")
    said = ok("access", "user", "remove", instance.name, "ann", "--dry-run", "-o", "json").json
    assert said["changes"]["name"] == ["ann", None]
    assert ok("access", "user", "show", instance.name, "ann", "-o", "json").json["name"] == "ann"


def test_what_would_be_refused_is_refused(as_alice, instance):
    refused = as_alice("rule", "delete", instance.name, "rule-000000000000", "--dry-run")
    assert refused.status == 4


def test_a_password_is_not_told(ok, instance):
    said = ok("access", "user", "add", instance.name, "ann", "--dry-run", "-o", "json").json
    assert "password" not in said["changes"]


def test_a_password_stays_as_it_is_and_is_not_told(ok, instance):
    ok("access", "user", "add", instance.name, "ann")
    said = ok("access", "user", "password", instance.name, "ann", "--dry-run", "-o", "json")
    assert [step["name"] for step in said.json["plan"]] == ["carry_out"]
    assert "password" not in said.json["changes"]


def test_an_organisation_keeps_its_name(ok, alice):
    said = ok("organisation", "rename", "Acme", "--dry-run", "-o", "json").json
    assert said["changes"] == {"name": ["alice's", "Acme"]}
    alice.organisation.refresh_from_db()
    assert alice.organisation.name == "alice's"


def test_what_a_call_would_do_and_how_long_it_takes_is_printed(ok, instance):
    said = ok("instance", "resize", instance.name, "--storage", "20", "--dry-run").out
    assert "write specification" in said
    assert "seconds" in said


def test_a_key_is_not_made_and_its_text_is_not_shown(ok, alice):
    said = ok("key", "create", "ci", "--scope", "topics", "--dry-run", "-o", "json")
    assert said.json["changes"]["name"] == [None, "ci"]
    assert "slc_" not in said.out + said.err
    assert "shown this once" not in ok("key", "create", "ci", "--dry-run").err
    assert [each["name"] for each in ok("key", "list", "-o", "json").json["items"]] == ["test"]


def test_who_would_be_touched_is_said(ok, alice, bob):
    said = ok("member", "remove", "bob@example.com", "--dry-run")
    assert "revoked for good" in said.out
    assert "bob@example.com" in ok("member", "list").out


def test_a_message_is_not_written(ok, instance, admin):
    ok("topic", "create", instance.name, "orders", "--partitions", 1, "--replication-factor", 1)
    said = ok("message", "produce", instance.name, "orders", "--value", "hello", "--dry-run", "-o", "json").json
    assert (said["changes"]["offset"], said["changes"]["value_bytes"]) == ([None, 0], [None, 5])
    assert ok("message", "list", instance.name, "orders", "-o", "json").json["items"] == []


WITHOUT = {"access check", "bill verify"}
"""Their calls have none (tests/controlplane/test_rehearsals.py)."""


def test_every_command_that_changes_something_has_one():
    """By the calls that its function names."""
    without = set()
    for words, command in commands().items():
        source = inspect.getsource(inspect.unwrap(command.callback))
        calls = {getattr(ops, name) for name in re.findall(r"\bops\.([A-Z_]+)", source)}
        if any(call.is_change for call in calls) and not isinstance(command, Rehearsed):
            without.add(" ".join(words))
    assert without == WITHOUT


@pytest.mark.parametrize("words", [words for words, each in commands().items() if isinstance(each, Rehearsed)])
def test_it_stands_in_the_help_once(ok, words):
    assert ok(*words, "--help").out.count("--dry-run") == 1
