"""Each page of a tenant says how the same is done by the command line, and the program understands what it says."""

from __future__ import annotations

import html
import re
import shlex
from datetime import UTC, datetime, timedelta

import pytest
from typer.main import get_command

import controlplane.urls  # noqa: F401  # it knows the converters that the console's routes use
from controlplane.billing.pricing.plans import NAMES
from controlplane.cli.app import app
from controlplane.cli.values import since
from controlplane.console import urls
from controlplane.console.commandline import CHANGING, COMMANDS, OF_A_MONTH, command_of
from controlplane.console.times import RANGES
from controlplane.env import ROOT
from controlplane.topics import services as topics

from .conftest import text_of
from .test_who_sees_what import OPERATORS, POSTS_ONLY, TENANTS

PARTS = {
    "instance_estimate", "instance_status", "instance_health", "instance_live", "instance_quota_now", "instance_ca",
    "operation_steps", "topic_messages_tail", "topic_messages_search", "fleet_brokers", "fleet_live", "fleet_rebalance_now",
    "fleet_credit_note_pdf",
}  # fmt: skip
"""Addresses that answer with a part of a page, or a file."""
TEMPLATES = ROOT / "controlplane/console/templates/console"
HERE_ONLY = {"palette", "fleet_search"}
"""Pages whose work REST has no call for."""
IDS = {
    "instance_id": "ins-abcdefgh",
    "topic": "orders",
    "part": "value",
    "group": "readers",
    "member": "reader-1",
    "transactional_id": "copier",
    "user": "ann",
    "route_id": "r2",
    "operation_id": "op-abcdefghij",
    "partition": 2,
    "offset": 1200,
    "rule_id": "rule-8zk2m4x0q1ab",
    "role_id": "rol-abcdefghijkl",
    "service_account_id": "svc-abcdefghijkl",
    "number": "inv-00000001",
    "note": "crn-00000001",
    "alarm_id": "alm-abcdefghij",
    "budget_id": "bud-abcdefghij",
    "receiver_id": "rcv-abcdefghij",
    "load_id": "load-abcdefghij",
    "cluster": "north",
    "broker": 3,
    "rebalance_id": "reb-abcdefghijkl",
    "owner_id": "org-abcdefghijkl",
}


def parsed(line):
    """The name of the command, and what it would be called with. Fails as the program would."""
    program, *words = shlex.split(line)
    assert program == "sluice"
    command = get_command(app)
    context = command.make_context(program, words)
    while hasattr(command, "commands"):
        name, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
        context = command.make_context(name, words, parent=context)
    return context.params


@pytest.mark.parametrize("page", sorted(COMMANDS))
def test_the_program_understands_it(page):
    line = command_of(page, IDS)
    typed = parsed(line)
    # Of an argument that may stand several times the program makes one value.
    said = [each for value in typed.values() for each in (value if isinstance(value, tuple) else (value,))]
    for place in COMMANDS[page][1:]:
        assert place.removeprefix("=") in said or IDS.get(place) in said


@pytest.mark.parametrize("page", sorted(OF_A_MONTH))
def test_a_page_of_an_earlier_month_says_so(page):
    assert parsed(command_of(page, IDS, {"month": "2026-10"}))["month"] == "2026-10"
    assert command_of(page, IDS, {"month": "'; ls"}) == command_of(page, IDS)


def test_what_if_asks_what_the_page_asked():
    asked = {
        "ask": "1",
        "month": "2026-10",
        "bandwidth_mib_per_s": "7.5",
        "storage_gib": "",
        "partitions": "30",
        "plan": "pro",
    }
    typed = parsed(command_of("instance_what_if", IDS, asked))
    assert [typed[name] for name in ("month", "bandwidth", "storage", "partitions", "plan")] == [
        "2026-10",
        7.5,
        None,
        30,
        "pro",
    ]
    for plan in NAMES:
        assert parsed(command_of("instance_what_if", IDS, {"ask": "1", "plan": plan}))["plan"] == plan
    for nothing in ({}, {"bandwidth_mib_per_s": "; ls", "plan": "$HOME"}, {"plan": "--help"}):
        assert parsed(command_of("instance_what_if", IDS, nothing))["bandwidth"] == 20


@pytest.mark.parametrize(
    ("page", "ids", "query", "start", "end"),
    [
        ("instance_usage", {}, {"day": "2026-11-30"}, "2026-11-30", "2026-12-01"),
        ("instance_usage", {}, {"month": "2026-10"}, "2026-10-01", "2026-11-01"),
        ("instance_usage", {}, {"month": "2026-13"}, None, None),
        ("usage_records", {"hour": "2026-11-21T23"}, {}, "2026-11-21T23:00:00Z", "2026-11-22T00:00:00Z"),
    ],
)
def test_usage_is_of_the_time_that_the_page_shows(page, ids, query, start, end):
    typed = parsed(command_of(page, {**IDS, **ids}, query))
    assert (typed["start"], typed["end"]) == (start, end)


@pytest.mark.parametrize("page", ["instance_history", "instance_broker"])
@pytest.mark.parametrize("each", RANGES)
def test_a_history_is_of_the_range_that_the_page_shows(each, page):
    typed = parsed(command_of(page, IDS, {"range": each.name}))
    assert (typed["start"], typed["end"]) == (f"-{each.name}", None)
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert datetime.fromisoformat(since(typed["start"], now)) == now - timedelta(seconds=each.length_s)


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ({}, f"-{RANGES[0].name}", None),
        ({"range": "'; ls"}, f"-{RANGES[0].name}", None),
        ({"since": "2026-11-30T14:00", "until": "2026-11-30T15:00"}, "2026-11-30T14:00:00Z", "2026-11-30T15:00:00Z"),
        ({"since": "2026-11-30T14:00+02:00", "until": ""}, "2026-11-30T12:00:00Z", None),
        ({"range": "7d", "since": "$HOME", "until": "-1h"}, "-7d", None),
        ({"since": "0001-01-01T00:00+14:00"}, f"-{RANGES[0].name}", None),
    ],
)
def test_a_history_between_two_moments_says_both(query, start, end):
    typed = parsed(command_of("instance_history", IDS, query))
    assert (typed["start"], typed["end"]) == (start, end)


def test_an_audit_log_is_filtered_as_the_page_is():
    query = {"actor": "ann@example.com", "action": "topic", "since": "2026-11-30T14:00", "until": "$HOME"}
    typed = parsed(command_of("organisation_audit", {}, query))
    assert [typed[name] for name in ("actor", "action", "start", "end")] == [
        "ann@example.com", "topic", "2026-11-30T14:00:00Z", None,
    ]  # fmt: skip
    assert command_of("organisation_audit", {}, {"actor": "`id`", "action": "; ls"}) == "sluice audit"


def test_every_page_of_a_tenant_and_of_operators_has_one():
    assert {*TENANTS, *OPERATORS} - POSTS_ONLY - PARTS - HERE_ONLY == set(COMMANDS)
    assert set(COMMANDS) <= {route.name for route in urls.urlpatterns}


@pytest.mark.parametrize("name", ["two words", "it's", "$HOME", "a/b", "-x", "--yes", "`id`"])
def test_names_are_quoted_for_a_shell(name):
    typed = parsed(command_of("group", {**IDS, "group": name}))
    assert typed["group"] == name


def test_what_cannot_be_typed_has_none():
    assert command_of("group", {**IDS, "group": "two\nlines"}) is None


def test_pages_show_it_with_their_own_ids(at_alice, instance, alice):
    topics.topic_create(organisation=alice.organisation, actor="a", instance_id=instance.id, name="orders")
    for path, line in (
        (f"instances/{instance.id}/topics", f"sluice topic list {instance.id}"),
        (f"instances/{instance.id}/topics/orders", f"sluice topic show {instance.id} orders"),
        ("keys", "sluice key list"),
    ):
        page = at_alice.get(path)
        assert f"The same by CLI: {line} Copy" in text_of(page)
        assert html.unescape(re.search(r'<code id="by-cli"[^>]*>(.*?)</code>', page.content.decode())[1]) == line


def test_it_stands_before_everything_else_that_a_page_says(at_alice, instance):
    for path in (f"instances/{instance.id}/quota", f"instances/{instance.id}/topics", "keys", "members", "audit"):
        page = at_alice.get(path).content.decode().partition("<h1")[2]
        first = min(page.find(each) for each in ("<section", "<form", "<table", "<h2") if each in page)
        assert 0 < page.find('class="by-cli"') < first, path


WITHOUT_ONE = {"api_docs", "door", "error", "landing", "proof"}
"""Their frames are of nobody's pages, or nothing does the same by the command line."""
IN_PLACE = re.compile(r'(</header>|parts/instance_head.html" %\})\n\{% include "console/parts/by_cli.html" %\}')


def test_every_template_has_its_place_behind_the_head():
    frames = [path for path in TEMPLATES.glob("*.html") if 'extends "console/base.html"' in path.read_text()]
    found = {path.stem for path in frames if len(IN_PLACE.findall(path.read_text())) == 1}
    assert {path.stem for path in frames} - found == WITHOUT_ONE


def test_operators_pages_show_it_to_operators_alone(at_alice, at_staff, instance):
    assert f"The same by CLI: sluice fleet instance {instance.id} Copy" in text_of(
        at_staff.get(f"/fleet/instances/{instance.id}")
    )
    assert "The same by CLI: sluice cluster show default Copy" in text_of(at_staff.get("/fleet/clusters/default"))
    assert "by CLI" not in text_of(at_alice.client.get("/fleet"))


def test_who_may_only_look_is_shown_no_command_that_changes(at_alice, at_viewer, instance):
    for path, is_changing in (("settings", True), ("config", True), ("topics", False)):
        at = f"instances/{instance.id}/{path}"
        assert "The same by CLI" in text_of(at_alice.get(at))
        assert ("The same by CLI" in text_of(at_viewer.get(at))) != is_changing, path


def test_commands_that_change_are_known_by_their_verb():
    verbs = (
        "create delete resize config password add preset note configure alter produce set reset-offsets remove-member end spread "
        "end-hanging delete-offsets"
    )
    found = {
        page
        for page, (words, *_) in COMMANDS.items()
        if {word for word in words.split()[:3] if not word.startswith("-")} & set(verbs.split())
    }
    assert found == CHANGING


def test_pages_without_a_command_say_nothing(at_alice, at_staff):
    assert "by CLI" not in text_of(at_alice.client.get("/account"))
    assert "by CLI" not in text_of(at_staff.get("/account"))
    assert "by CLI" not in text_of(at_alice.get("instances/ins-abcdefgh"))
