"""An instance lives its whole life by the command line, from its purchase to its end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.controlplane.fakes import FakeGroup

WANTED = ("--bandwidth", 5, "--storage", 10, "--partitions", 60, "--cidr", "127.0.0.0/8")


@pytest.fixture
def events(ok, brokers):
    """An instance that was bought by the command line; its id."""
    return ok("instance", "create", "events", *WANTED, "-o", "json").json["id"]


def test_it_is_bought_used_and_deleted(ok, as_alice, brokers, worker):
    bought = ok("instance", "create", "events", *WANTED)
    assert "open for use: succeeded" in bought.err
    name = next(line.split()[1] for line in bought.out.splitlines() if line.startswith("id "))
    assert worker.pauses, "it has waited"

    assert "running" in ok("instance", "list").out
    shown = ok("instance", "show", "events", "-o", "json").json
    assert (shown["id"], shown["state"], shown["whitelist"]) == (name, "running", ["127.0.0.0/8"])

    ok("instance", "resize", "events", "--bandwidth", 8, "--partitions", 90)
    ok("instance", "config", name, "--default-partitions", 4, "--no-auto-create-topics", "--super-user", "User:admin")
    ok("instance", "rename", name, "orders")
    shown = ok("instance", "show", "orders", "-o", "json").json
    assert (shown["bandwidth_mib_per_s"], shown["storage_gib"], shown["partitions"]) == (8, 10, 90)
    assert shown["config"]["default_partitions"] == 4
    assert shown["config"]["super_users"] == ["User:admin"]

    ok("instance", "whitelist", name, "--add-mine", "--remove", "127.0.0.0/8")
    assert ok("instance", "whitelist", name, "-o", "json").json == {"whitelist": ["127.0.0.1/32"]}
    assert "10.0.0.0/8" in ok("instance", "whitelist", name, "--add-mine", "--add", "10.0.0.0/8", "--dry-run").out
    assert as_alice("instance", "whitelist", name, "--add-mine", "--nobody").status == 2
    ok("instance", "whitelist", name, "--add", "10.0.0.0/8", "--remove", "127.0.0.1/32")
    assert ok("instance", "whitelist", name, "-o", "json").json == {"whitelist": ["10.0.0.0/8"]}

    gone = as_alice("instance", "delete", "orders", stdin="orders\n")
    assert gone.status == 0
    assert as_alice("topic", "list", name).status == 4
    kinds = [each["kind"] for each in ok("operation", "list", "-o", "json").json["items"]]
    assert kinds == ["instance.delete", *["instance.update"] * 3, "instance.create"], "the newest first"
    (newest,) = ok("operation", "list", "--limit", 1, "-o", "json").json["items"]
    assert newest["kind"] == "instance.delete"


def test_a_size_is_changed_later(ok, as_alice, events, brokers):
    at = f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}"
    assert ok("instance", "resize", events, "--bandwidth", 8, "--at", at, "--dry-run", "-o", "json").json["changes"]
    made = ok("instance", "resize", events, "--bandwidth", 8, "--at", at, "-o", "json").json
    assert (made["at"], made["bandwidth_mib_per_s"], made["state"]) == (at, 8, "waiting")
    assert made["id"] in ok("instance", "scheduled", events).out
    assert ok("instance", "scheduled", events, made["id"], "-o", "json").json == made
    assert ok("instance", "unschedule", events, made["id"]).err.endswith(f"{made['id']} is cancelled.\n")
    assert ok("instance", "scheduled", events, "-o", "json").json["items"][0]["state"] == "cancelled"
    refused = as_alice("instance", "resize", events, "--bandwidth", 8, "--at", "2020-01-01T00:00:00Z")
    assert refused.status == 1
    assert "within 30 days" in refused.err


def test_a_protected_one_is_not_deleted(ok, as_alice, brokers, worker):
    ok("instance", "create", "events", *WANTED, "--deletion-protection")
    assert ok("instance", "show", "events", "-o", "json").json["deletion_protection"] is True
    refused = as_alice("instance", "delete", "events", "--yes")
    assert refused.status == 1
    assert "switch its deletion protection off first" in refused.err
    ok("instance", "protect", "events", "--off")
    ok("instance", "protect", "events")
    assert as_alice("instance", "delete", "events", "--yes").status == 1
    ok("instance", "protect", "events", "--off")
    ok("instance", "delete", "events", "--yes")


def test_its_window_is_set_used_and_taken_away(ok, as_alice, events, brokers, worker):
    assert ok("instance", "window", "events", "-o", "json").json == {"maintenance_window": None}
    assert as_alice("instance", "resize", "events", "--bandwidth", "6", "--in-window").status == 1
    ok("instance", "window", "events", "--day", "sunday", "--hour", "3")
    window = {"day": "sunday", "hour_utc": 3, "length_hours": 2}
    assert ok("instance", "window", "events", "-o", "json").json == {"maintenance_window": window}
    ok("instance", "resize", "events", "--bandwidth", "6", "--in-window")
    (change,) = ok("instance", "scheduled", "events", "-o", "json").json["items"]
    assert (change["state"], change["at"][10:19]) == ("waiting", "T03:00:00")
    for wrong in (["--day", "sunday"], ["--hour", "3"], ["--none", "--hour", "3"]):
        assert as_alice("instance", "window", "events", *wrong).status == 2
    assert as_alice("instance", "resize", "events", "--bandwidth", "6", "--in-window", "--at", "x").status == 2
    ok("instance", "window", "events", "--none")
    assert ok("instance", "window", "events", "-o", "json").json == {"maintenance_window": None}


def test_a_deleted_one_is_restored_or_destroyed(grace, ok, as_alice, events, brokers, worker):
    gone = ok("instance", "delete", "events", stdin="events\n")
    assert f"sluice instance restore {events}" in gone.err
    assert ok("instance", "list", "--state", "isolated", "-o", "json").json["items"][0]["id"] == events
    refused = as_alice("topic", "create", events, "orders")
    assert refused.status == 1
    assert "restore it first" in refused.err
    ok("instance", "restore", "events")
    assert ok("instance", "show", "events", "-o", "json").json["state"] == "running"

    ok("instance", "delete", "events", "--yes")
    assert as_alice("instance", "delete", "events", "--at-once", stdin="orders\n").status == 2
    tried = ok("instance", "delete", "events", "--at-once", "--dry-run", "-o", "json").json
    assert [step["name"] for step in tried["plan"]][:2] == ["close listeners", "delete topics"]
    asked = ok("instance", "delete", "events", "--at-once", stdin="events\n")
    assert "at once, for good" in asked.err
    assert as_alice("instance", "show", events).status == 4


def test_dry_runs_say_what_would_be_and_do_nothing(ok, as_alice, brokers, worker, admin):
    tried = ok("instance", "create", "events", *WANTED, "--dry-run", "-o", "json").json
    assert tried["changes"]["name"] == [None, "events"]
    assert ok("instance", "list", "-o", "json").json["items"] == []

    ok("instance", "create", "events", *WANTED)
    ok("topic", "create", "events", "orders", "--partitions", 3)
    nodes, waited = dict(admin.topics), len(worker.pauses)
    resized = ok("instance", "resize", "events", "--bandwidth", 8, "--dry-run")
    assert "changes.bandwidth_mib_per_s" in resized.out
    assert "price.per_month_after" in resized.out
    for arguments, changed in (
        (("instance", "rename", "events", "other"), {"name": ["events", "other"]}),
        (("instance", "config", "events", "--default-partitions", 7), {"config.default_partitions": [3, 7]}),
        (("instance", "delete", "events"), {"state": ["running", "deleting"]}),
        (("topic", "alter", "events", "orders", "--partitions", 4), {"partitions": [3, 4]}),
    ):
        assert ok(*arguments, "--dry-run", "-o", "json").json["changes"] == changed
    ok("topic", "create", "events", "paid", "--dry-run")
    ok("topic", "delete", "events", "orders", "--dry-run")
    refused = as_alice("instance", "resize", "events", "--bandwidth", 401, "--dry-run")
    assert refused.status == as_alice("instance", "resize", "events", "--bandwidth", 401).status == 1
    assert (dict(admin.topics), len(worker.pauses)) == (nodes, waited)
    assert ok("instance", "show", "events", "-o", "json").json["name"] == "events"


def test_topics(ok, events):
    made = ok("topic", "create", events, "orders", "--partitions", 3, "-c", "retention.ms=60000", "-o", "json").json
    assert (made["partitions"], made["config"]) == (3, {"retention.ms": "60000"})
    changed = ok("topic", "alter", events, "orders", "--partitions", 6, "--reset", "retention.ms", "-o", "json").json
    assert (changed["partitions"], changed["config"]) == (6, {})
    assert ok("topic", "whitelist", events, "orders", "--cidr", "10.1.0.0/16", "-o", "json").json["whitelist"] == [
        "10.1.0.0/16"
    ]
    assert ok("topic", "whitelist", events, "orders", "--everyone", "-o", "json").json["whitelist"] is None
    assert "orders" in ok("topic", "list", events).out
    assert ok("topic", "delete", events, "orders", stdin="orders\n").err.endswith("orders is deleted.\n")
    assert ok("topic", "list", events, "-o", "json").json == {"items": [], "next": None}


def test_messages(ok, as_alice, events, admin):
    ok("topic", "create", events, "orders", "--partitions", 2, "--replication-factor", 1)
    physical = f"{events.removeprefix('ins-')}.orders"
    written = ok(
        "message", "produce", events, "orders", "--key", "k1", "--value", "paid: ärger", "--header", "trace=7",
        "--partition", 1, "-o", "json",
    ).json  # fmt: skip
    assert (written["partition"], written["offset"]) == (1, 0)
    admin.messages.write(physical, 0, b"\xff\x00")
    admin.messages.write(physical, 0, b"paid: nothing")

    table = ok("message", "list", events, "orders").out
    assert "paid: ärger" in table
    assert "0xff00" in table
    found = ok("message", "list", events, "orders", "--contains", "paid", "-o", "json").json["items"]
    assert [(each["partition"], each["offset"]) for each in found] == [(0, 1), (1, 0)]
    assert len(ok("message", "list", events, "orders", "--key", "k1", "-o", "json").json["items"]) == 1
    assert ok("message", "show", events, "orders", 1, 0, "--value").out == "paid: ärger"
    shown = ok("message", "show", events, "orders", 1, 0).out
    assert "trace" in shown
    assert as_alice("message", "show", events, "orders", 1, 5).status == 4

    delete = ("message", "delete", events, "orders", "--before", "0:1", "--before", "1:end")
    told = ok(*delete, "--dry-run", "-o", "json").json
    assert [told["changes"][f"partitions.{number}.records"] for number in (0, 1)] == [[2, 1], [1, 0]]
    assert told["problems"][0].startswith("2 records")
    assert len(ok("message", "list", events, "orders", "-o", "json").json["items"]) == 3
    asked = ok(*delete, stdin="orders\n")
    assert "2 records of orders would be deleted for good" in asked.err
    left = ok("message", "list", events, "orders", "-o", "json").json["items"]
    assert [(each["partition"], each["offset"]) for each in left] == [(0, 1)]
    assert as_alice("message", "delete", events, "orders", "--before", "first").status == 2


def test_groups(ok, as_alice, events, admin):
    ok("topic", "create", events, "orders", "--partitions", 1, "--replication-factor", 1)
    key = events.removeprefix("ins-")
    place = (f"{key}.orders", 0)
    admin.groups.logs[place] = (0, [1] * 10)
    admin.groups.found[f"{key}.a/b"] = FakeGroup({place: 8})

    assert ok("group", "show", events, "a/b", "-o", "json").json["lag_messages"] == 2
    reset = ("group", "reset-offsets", events, "a/b", "--to", "earliest", "--topic", "orders")
    told = ok(*reset, "--dry-run", "-o", "json").json
    assert (told["changes"]["lag_messages"], told["problems"]) == ([2, 10], ["8 records would be read again"])
    assert admin.groups.found[f"{key}.a/b"].offsets[place] == 8

    asked = ok(*reset, stdin="a/b\n")
    assert "8 records would be read again" in asked.err
    assert "without an offset" not in asked.err
    assert admin.groups.found[f"{key}.a/b"].offsets[place] == 0
    admin.groups.found[f"{key}.fresh"] = FakeGroup()
    asked = ok("group", "reset-offsets", events, "fresh", "--to", "latest", "--topic", "orders", stdin="fresh\n")
    assert "Partitions without an offset yet: 1; records before the new one will not be read." in asked.err
    ok("topic", "create", events, "clicks", "--partitions", 1, "--replication-factor", 1)
    made = ok("group", "create", events, "new", "--topic", "orders", "--topic", "clicks", "-o", "json").json
    assert [(row["topic"], row["offset"]) for row in made["partitions"]] == [("clicks", 0), ("orders", 10)]
    ok("group", "delete-offsets", events, "new", "orders", stdin="new\n")
    assert admin.groups.found[f"{key}.new"].offsets == {(f"{key}.clicks", 0): 0}
    ok("group", "delete", events, "a/b", "--yes")
    assert as_alice("group", "show", events, "a/b").status == 4


def test_users_acls_and_the_question(ok, as_alice, events, tmp_path):
    ok("topic", "create", events, "orders", "--partitions", 1)
    made = ok("access", "user", "add", events, "ann", "-o", "json").json
    assert made["password"]
    given = ok(
        "access", "user", "password", events, "ann", "--ask-password", "-o", "json", stdin="a long password\n"
    ).json
    assert given["password"] is None

    check = ("access", "check", events, "--source", "127.0.0.1", "--operation", "read", "--resource-type", "topic")
    check += ("--resource-name", "orders")
    ok("instance", "config", events, "--no-allow-everyone-if-no-acl-found")
    refused = as_alice(*check)
    assert (refused.status, refused.err) == (1, "sluice: he may not\n")
    acl = ("--operation", "read", "--resource-type", "topic", "--resource-name", "orders")
    ok("access", "acl", "add", events, "--principal", "User:*", *acl)
    assert "yes" in ok(*check).out
    ok("access", "acl", "remove", events, "--principal", "User:*", "--yes")

    preset = ("--principal", "User:ann", "--topic", "orders", "--group", "g")
    count = len(ok("access", "acl", "preset", events, "consumer", *preset, "-o", "json").json["items"])
    kept = tmp_path / "acls.json"
    kept.write_text(ok("access", "acl", "list", events, "-o", "json").out)
    asked = ok("access", "acl", "remove", events, "--principal", "User:ann", stdin=f"{count}\n")
    assert "orders" in asked.err
    assert ok("access", "acl", "list", events, "-o", "json").json["items"] == []
    ok("access", "acl", "import", events, kept)
    assert ok("access", "acl", "list", events, "-o", "json").json == json.loads(kept.read_text())

    left = ok("access", "user", "remove", events, "ann", "--yes")
    assert f"{count} ACLs still name it" in left.err


def test_routes_and_their_certificates(ok, events):
    made = ok("route", "create", events, "--security", "sasl_ssl", "--mechanism", "SCRAM-SHA-512", "-o", "json").json
    route = made["id"]
    assert ok("route", "show", events, route, "-o", "json").json["state"] == "running"
    ok("route", "alter", events, route, "--connections", 7, "--cidr", "10.0.0.0/8")
    ok("route", "alter", events, route, "--connections", "null", "--as-instance")
    shown = ok("route", "show", events, route, "-o", "json").json
    assert (shown["connections"], shown["whitelist"]) == (None, None)
    assert "BEGIN CERTIFICATE" in ok("route", "certificate", events, route).out
    assert ok("instance", "ca", events).out.startswith("-----BEGIN CERTIFICATE-----")
    ok("route", "delete", events, route, "--yes")
    assert [each["id"] for each in ok("route", "list", events, "-o", "json").json["items"]] == ["default"]


def test_throttle_rules(ok, events):
    made = ok("rule", "create", events, "client", "--user", "*", "--consume", 0.5, "-o", "json").json
    assert (made["users"], made["consume_mib_per_s"], made["produce_mib_per_s"]) == ([None], 0.5, None)
    changed = ok("rule", "alter", events, made["id"], "--produce", 2, "--consume", "null", "-o", "json").json
    assert (changed["produce_mib_per_s"], changed["consume_mib_per_s"]) == (2, None)
    ok("rule", "delete", events, made["id"], "--yes")
    assert ok("rule", "list", events).err == "Nothing.\n"


def test_a_change_of_access_is_tried_first(ok, as_alice, events):
    made = ok("access", "proposal", "make", events, "--cidr", "10.0.0.0/8", "-o", "json").json
    assert made["whitelist"] == ["10.0.0.0/8"]
    ok("access", "proposal", "apply", events, made["id"], "--yes")
    assert ok("instance", "whitelist", events, "-o", "json").json == {"whitelist": ["10.0.0.0/8"]}
    assert as_alice("access", "proposal", "show", events).status == 4


def test_keys(ok, as_alice):
    made = ok("key", "create", "laptop", "-o", "json").json
    assert made["key"].startswith("slc_")
    assert made["key"] not in ok("key", "list").out
    ok("key", "revoke", made["id"], stdin=f"{made['id']}\n")
    revoked = {each["id"]: each["revoked_at"] for each in ok("key", "list", "-o", "json").json["items"]}
    assert revoked[made["id"]]


def test_alarms(ok, as_alice, events):
    hook = "https://hooks.example.com/x"
    added = ok("alarm", "receiver", "add", events, "pager", "webhook", hook, "-o", "json")
    assert added.json["secret"].startswith("whsec_")
    receiver = added.json["id"]
    made = ok(
        "alarm", "create", events, "storage", "storage_used_percent", "--comparison", "at_least", "--threshold", 90,
        "--duration", 300, "--repeat", 3600, "--receiver", receiver, "-o", "json",
    ).json  # fmt: skip
    assert (made["threshold"], made["duration_s"], made["receivers"]) == (90, 300, [receiver])
    alarm = made["id"]
    assert "storage" in ok("alarm", "list", events).out
    assert ok("alarm", "show", events, alarm, "-o", "json").json == made
    changed = ok("alarm", "alter", events, alarm, "--repeat", "null", "--disabled", "--no-receivers", "-o", "json").json
    assert (changed["repeat_s"], changed["enabled"], changed["receivers"]) == (None, False, [])
    assert as_alice("alarm", "alter", events, alarm).status == 2
    assert as_alice("alarm", "create", events, "x", "storage_full", "--threshold", 1).status == 1

    until = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    assert ok("alarm", "silence", events, alarm, "--until", until, "-o", "json").json["silenced_until"] == until
    assert ok("alarm", "silence", events, alarm, "--end", "-o", "json").json["silenced_until"] is None
    assert as_alice("alarm", "silence", events, alarm).status == 2
    silenced = ok("alarm", "silence-all", events, "--until", until, "-o", "json").json["items"]
    assert [(each["id"], each["silenced_until"]) for each in silenced] == [(alarm, until)]
    assert ok("alarm", "silence-all", events, "--end", "-o", "json").json["items"][0]["silenced_until"] is None
    assert as_alice("alarm", "silence-all", events).status == 2
    assert ok("alarm", "history", events, alarm, "-o", "json").json["items"] == []

    altered = ok(
        "alarm", "receiver", "alter", events, receiver, "--name", "on call", "--address", f"{hook}y", "-o", "json"
    )
    assert altered.json["name"] == "on call"
    assert ok("alarm", "receiver", "show", events, receiver, "-o", "json").json["address"] == f"{hook}y"
    assert as_alice("alarm", "receiver", "alter", events, receiver).status == 2
    assert ok("alarm", "receiver", "test", events, receiver, "-o", "json").json["state"] == "waiting"
    assert "test" in ok("alarm", "receiver", "messages", events, receiver).out
    assert ok("alarm", "receiver", "rotate", events, receiver, "-o", "json").json["secret"] != added.json["secret"]
    assert ok("alarm", "receiver", "show", events, receiver, "-o", "json").json["confirmed"] is True
    ok("alarm", "receiver", "delete", events, receiver, stdin=f"{receiver}\n")
    assert ok("alarm", "receiver", "list", events, "-o", "json").json["items"] == []
    assert ok("alarm", "delete", events, alarm, "--yes").err.endswith("is deleted.\n")
    assert "operation.succeeded" in ok("instance", "events", events).out
