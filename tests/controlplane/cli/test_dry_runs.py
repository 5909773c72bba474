"""``--dry-run`` of commands that know nothing of it: what the call would do is printed, and nothing is done."""

from __future__ import annotations

import pytest
import typer

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


@pytest.mark.parametrize("words", [words for words, each in commands().items() if isinstance(each, Rehearsed)])
def test_it_stands_in_the_help_once(ok, words):
    assert ok(*words, "--help").out.count("--dry-run") == 1
