"""Tables for people, the API's own JSON for programs: on a terminal, in a pipe, on a narrow screen."""

from __future__ import annotations

import io
import json

import pytest
from typer.main import get_command

from controlplane.cli import output
from controlplane.cli.app import app
from controlplane.cli.tables import columns
from controlplane.core.models import Operation
from tests.controlplane.alarms.rows import alarm_row
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.rows import access_key_row


@pytest.fixture
def topics(ok, instance):
    for number in range(5):
        ok("topic", "create", instance.id, f"topic-{number}", "--partitions", 1)
    return instance.id


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("instance list", "instances"),
        ("instance show {}", "instances/{}"),
        ("topic list {}", "instances/{}/topics"),
        ("topic show {} topic-1", "instances/{}/topics/topic-1"),
        ("group list {}", "instances/{}/groups"),
        ("route list {}", "instances/{}/routes"),
        ("rule list {}", "instances/{}/throttle-rules"),
        ("access user list {}", "instances/{}/users"),
        ("access acl list {}", "instances/{}/acls"),
        ("quota guarantee {}", "instances/{}/guarantee"),
        ("bill show {} --month 2025-03", "instances/{}/bill?month=2025-03"),
        ("bill invoices", "invoices"),
        ("operation list", "operations"),
        ("usage metering", "metering"),
        ("key list", "api-keys"),
        ("access-key list", "access-keys"),
        ("caps", "caps"),
        ("whoami", "me"),
    ],
)
def test_json_is_what_rest_answers(ok, alice, topics, typed, path):
    said = ok(*typed.format(topics).split(), "--output", "json")
    answered = alice.api.get(f"/api/v1/{path.format(topics)}").json()
    assert without_moments(said.json) == without_moments(answered)
    assert said.err == ""


def without_moments(found):
    """What a second look has another value for: when a key was used last, since when something is the matter."""
    if isinstance(found, dict):
        return {name: without_moments(value) for name, value in found.items() if name not in ("last_used_at", "since")}
    return [without_moments(each) for each in found] if isinstance(found, list) else found


def test_the_format_may_be_said_before_the_command(ok):
    assert ok("--output", "json", "whoami").json == ok("whoami", "--output", "json").json


def test_pages_are_followed(ok, alice, topics, monkeypatch):
    asked = []
    real = output.Output.pages

    def pages(self, found, *rest):
        found = list(found)
        asked.append(len(found))
        real(self, found, *rest)

    monkeypatch.setattr(output.Output, "pages", pages)
    monkeypatch.setattr("controlplane.api.pagination.DEFAULT_LIMIT", 2)
    everything = ok("topic", "list", topics, "-o", "json").json
    assert ([each["name"] for each in everything["items"]], everything["next"]) == (
        [f"topic-{n}" for n in range(5)],
        None,
    )

    some = ok("topic", "list", topics, "--limit", 3, "-o", "json").json
    assert some == alice.api.get(f"/api/v1/instances/{topics}/topics?limit=3").json()


def test_a_pipe_has_one_line_a_row_and_no_colours(ok, topics, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = ok("topic", "list", topics).out.splitlines()
    assert len(lines) == 6
    assert lines[0].split() == ["name", "partitions", "replication_factor", "whitelist", "tags", "note"]
    assert all("\x1b" not in line and line == line.rstrip() for line in lines)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard output is a terminal of so many columns; what is drawn on it."""

    def of(width):
        screen = Terminal()
        monkeypatch.setattr("sys.stdout", screen)
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("LINES", "24")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        return screen

    return of


ROWS = [
    {"name": "a-rather-long-name-of-a-topic", "partitions": 12, "state": "running"},
    {"name": "b", "partitions": 3, "state": "failed"},
]
WANTED = columns("name", "partitions", "state")


def test_a_terminal_has_colours(terminal):
    screen = terminal(100)
    output.Output().pages([{"items": ROWS, "next": None}], WANTED)
    assert "\x1b[32mrunning" in screen.getvalue()
    assert "\x1b[31mfailed" in screen.getvalue()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("NO_COLOR", ""), ("TERM", "dumb")])
def test_unless_its_owner_wants_none(terminal, monkeypatch, name, value):
    screen = terminal(100)
    monkeypatch.setenv(name, value)
    output.Output().pages([{"items": ROWS, "next": None}], WANTED)
    assert "\x1b" not in screen.getvalue()
    assert "running" in screen.getvalue()


def test_a_narrow_terminal_has_a_block_for_each_row(terminal):
    screen = terminal(30)
    output.Output().pages([{"items": ROWS, "next": None}], WANTED)
    drawn = screen.getvalue()
    assert "a-rather-long-name-of-a-topic" in drawn
    assert drawn.count("partitions") == 2


def test_names_are_no_markup_and_steer_no_terminal(terminal):
    screen = terminal(100)
    output.Output().pages([{"items": [{"name": "[red]\x1b[2J\n"}], "next": None}], columns("name"))
    assert "[red]\\x1b[2J\\n" in screen.getvalue()


def commands_of(command, path=()):
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands_of(inner, (*path, name))
    if path:
        yield path, command


@pytest.mark.parametrize(
    ("path", "command"),
    list(commands_of(get_command(app))),
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_every_command_has_a_help(sluice, path, command):
    ran = sluice(*path, "--help")
    assert ran.status == 0
    assert command.help


@pytest.fixture
def offered(ok, monkeypatch):
    """What bash offers for the last of these words."""

    def complete(*words):
        monkeypatch.setenv("_SLUICE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("sluice", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        found = ok().out.split()
        monkeypatch.delenv("_SLUICE_COMPLETE")
        return found

    return complete


def test_completion_offers_what_an_instance_has(ok, offered, instance, admin):
    pk = instance.id
    admin.groups.found[f"{pk.removeprefix('ins-')}.readers"] = FakeGroup()
    ok("access", "user", "add", pk, "ann")
    rule = json.loads(ok("rule", "create", pk, "topic", "--topic", "orders", "--produce", 1, "-o", "json").out)["id"]
    alarm = alarm_row(instance, name="full soon").pk
    assert offered("group", "show", pk, "rea") == ["readers"]
    assert offered("access", "user", "password", pk, "a") == ["ann"]
    assert offered("route", "show", pk, "") == ["default"]
    assert offered("rule", "show", pk, "rule-") == [rule]
    assert offered("alarm", "show", pk, "alm-") == [alarm]
    assert offered("group", "show", pk, "writ") == offered("rule", "show", pk, "alm-") == []


def test_completion_offers_keys_and_operations(ok, offered, alice, instance):
    key = json.loads(ok("key", "create", "nightly", "-o", "json").out)["id"]
    access_key = access_key_row(alice.organisation, alice.user).pk
    operation = Operation.objects.for_organisation(alice.organisation).latest("created_at").pk
    assert key in offered("key", "revoke", "key-")
    assert offered("access-key", "revoke", "key-") == [access_key]
    assert operation in offered("operation", "show", "op-")


def test_completion_offers_instances_and_topics(offered, topics, monkeypatch):
    assert offered("topic", "show", "ins-") == [topics]
    assert offered("topic", "show", topics, "topic-") == [f"topic-{number}" for number in range(5)]
    monkeypatch.setenv("SLUICE_API_KEY", "slc_nobodys")
    assert offered("topic", "show", "ins-") == []


@pytest.mark.parametrize("is_terminal", [True, False])
def test_names_in_a_text_steer_no_terminal(monkeypatch, is_terminal):
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: is_terminal)
    monkeypatch.setattr(output.sys, "stdout", written)
    output.Output().text('lag{group="\x1b]0;mine\x07"} 1\nlag 2\n')
    assert ("\x1b" in written.getvalue()) is not is_terminal
    assert written.getvalue().splitlines()[-1] == "lag 2"
