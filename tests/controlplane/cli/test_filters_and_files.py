"""Lists by state, name and prefix; the audit log as a file."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest

from controlplane.cli.client import Client
from controlplane.cli.commands import member, service_account
from controlplane.core import audit, audit_sealing
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from tests.controlplane.fakes import FakeGroup

from .test_invoice_files import Stream
from .test_whole_life import WANTED


@pytest.fixture
def events(ok, brokers):
    return ok("instance", "create", "events", *WANTED, "-o", "json").json["id"]


def listed(ok, *typed, field="id"):
    return [row[field] for row in ok(*typed, "-o", "json").json["items"]]


def test_instances_and_operations_by_state(ok, as_alice, events):
    other = ok("instance", "create", "orders", *WANTED, "--no-wait", "-o", "json").json
    assert listed(ok, "instance", "list", "--state", "running") == [events]
    assert listed(ok, "instance", "list", "--name", "orders") == [other["id"]]
    assert listed(ok, "operation", "list", "--state", "running") == [other["operation_id"]]
    assert listed(ok, "operation", "list", "--target", events, field="target") == [events]
    assert as_alice("instance", "list", "--state", "gone").status == 2


def test_topics_and_groups_by_prefix(ok, events, admin):
    for name in ("orders", "orders-late", "clicks"):
        ok("topic", "create", "events", name, "--partitions", 1)
        admin.groups.found[f"{events.removeprefix('ins-')}.{name}"] = FakeGroup()
    for kind in ("topic", "group"):
        assert listed(ok, kind, "list", "events", "--prefix", "orders", field="name") == ["orders", "orders-late"]


@pytest.mark.parametrize("name", ["event", "EVENTS", "a\nb", "\udce9", ""])
def test_what_is_no_instances_name_is_not_found(as_alice, events, name):
    ran = as_alice("topic", "list", name)
    assert (ran.status, ran.out) == (4, "")
    assert "there is no instance called" in ran.err


def test_the_audit_log_is_a_file(as_alice, alice, monkeypatch):
    for target in ("ins-a/orders", "ins-a/clicks"):
        audit.record(organisation=alice.organisation, actor="a", action="topic.create", target=target)
    stream = Stream(terminal=False)
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", stream)
        assert as_alice("audit", "--csv", "--action", "topic").status == 0
    rows = list(csv.DictReader(io.StringIO(stream.buffer.getvalue().decode(), newline="")))
    assert [row["target"] for row in rows] == ["ins-a/clicks", "ins-a/orders"]


def test_the_file_is_all_of_it_and_for_no_terminal(as_alice, monkeypatch):
    assert "--limit is of the list" in as_alice("audit", "--csv", "--limit", "3").err
    with monkeypatch.context() as here:
        here.setattr("sys.stdout", Stream(terminal=True))
        ran = as_alice("audit", "--csv")
    assert ran.status == 2
    assert "> FILE" in ran.err


def test_the_audit_log_is_verified(ok, as_alice, alice):
    for target in ("a", "b"):
        audit.record(organisation=alice.organisation, actor="a", action="topic.create", target=target)
    audit_sealing.extend(alice.organisation.pk)
    found = ok("audit-verify", "-o", "json").json
    assert found["broken"] is None
    assert found["checked"] == found["newest"] >= 2
    kept = ["--after", found["newest"], "--hash", found["last"]["hash"]]
    assert ok("audit-verify", *kept, "-o", "json").json["checked"] == 0
    rows = AuditEntry.objects.for_organisation(alice.organisation)
    rows.filter(number=2).update(actor="eve@example.com")
    ran = as_alice("audit-verify")
    assert ran.status == 1
    assert "the entry 2 is not as it was written" in ran.err
    assert as_alice("audit-verify", "--after", 1, "--hash", "0" * 64).status == 1
    assert as_alice("audit-verify", "--hash", "0" * 64).status == 1


def test_a_key_is_made_with_limits_and_rotated(ok, as_alice, alice, events):
    limits = ("--scope", "topics", "--scope", "read", "--instance", "events", "--cidr", "127.0.0.0/8")
    last = f"{SYSTEM_CLOCK.now() + timedelta(days=90):%Y-%m-%d}"
    made = ok("key", "create", "ci", *limits, "--expires", last, "-o", "json").json
    assert (made["scopes"], made["instances"], made["addresses"]) == (["read", "topics"], [events], ["127.0.0.0/8"])
    assert made["expires_at"] == f"{last}T00:00:00Z"
    other = ok("key", "rotate", made["id"], "--overlap", 60, "-o", "json").json
    assert (other["id"], other["prefix"]) == (made["id"], made["prefix"])
    assert other["key"] != made["key"]
    assert as_alice("key", "create", "ci", "--scope", "everything").status == 2


def test_what_made_somebody_wait_is_listed_from_the_newest_on(ok, events, monkeypatch):
    asked = []
    monkeypatch.setattr(
        Client, "pages", lambda _self, _call, _ids=None, **more: asked.append(more["query"]) or [{"items": []}]
    )
    ok("quota", "throttling", events)
    assert asked == [{"order": "newest"}]


def test_no_two_columns_of_members_have_one_name(ok):
    for command in ("member", "service-account"):
        module = {"member": member, "service-account": service_account}[command]
        titles = [title for title, _ in module.LISTED]
        assert len(set(titles)) == len(titles)
    assert "own_role" in ok("member", "list").out
