"""The audit of an instance by REST: switched on and off, and read backwards in pages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controlplane.access import trail
from controlplane.core.models import AuditEntry
from quota.contracts.audit import AuditKind, AuditRecord
from quota.contracts.namespace import AUDIT_TOPIC
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_instances_api import URL, problem

NOON_MS = int(datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp() * 1000)
MINUTE_MS = 60_000


@pytest.fixture
def url(instance):
    return f"{URL}/{instance.id}/audit"


class Topic:
    """The `__sluice_audit` of an instance."""

    def __init__(self, admin, instance):
        self.groups = admin.groups
        self.place = f"{instance.id.removeprefix('ins-')}.{AUDIT_TOPIC}", 0
        admin.create(self.place[0], partitions=1, replication_factor=3, config={})
        self.number = 0

    def write(self, kind=AuditKind.CONNECTION, outcome="accepted", count=1, after_ms=1_000, **members):
        """Records a minute apart; the broker writes each a second after it happened."""
        for _ in range(count):
            at_ms = NOON_MS + MINUTE_MS * self.number
            record = AuditRecord(at_ms, 1, kind, outcome, f"10.0.0.{self.number % 250}", "default", **members)
            self.groups.write(self.place, at_ms + after_ms, record.value())
            self.number += 1


@pytest.fixture
def topic(admin, instance):
    return Topic(admin, instance)


def at(minute):
    return datetime.fromtimestamp((NOON_MS + MINUTE_MS * minute) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def minutes(body):
    """When its items happened, in minutes after noon."""
    return [
        round((datetime.fromisoformat(each["time"]).timestamp() * 1000 - NOON_MS) / MINUTE_MS) for each in body["items"]
    ]


def test_it_is_off_until_somebody_switches_it_on_and_brokers_are_told(alice, instance, url, tree):
    body = alice.api.get(url).json()
    assert body == {"items": [], "next": None, "enabled": False, "looked_at": 0, "not_legible": 0}
    answer = alice.api.patch(f"{URL}/{instance.id}", {"config": {"audit": True}})
    assert answer.status_code == 202
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    assert tree.spec(instance.id).audit
    assert alice.api.get(f"{URL}/{instance.id}").json()["config"]["audit"] is True
    assert alice.api.get(url).json() == body | {"enabled": True}
    entry = AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.update").latest("at")
    assert (entry.actor, entry.detail) == ("alice@example.com", {"config": {"audit": {"from": False, "to": True}}})
    run_to_the_end(alice.api.patch(f"{URL}/{instance.id}", {"config": {"audit": False}}).json()["operation_id"])
    assert not tree.spec(instance.id).audit


def test_a_viewer_reads_and_does_not_switch_and_a_stranger_finds_nothing(viewer, charlie, instance, url, topic, tree):
    topic.write()
    assert len(viewer.api.get(url).json()["items"]) == 1
    problem(viewer.api.patch(f"{URL}/{instance.id}", {"config": {"audit": True}}), 403, "forbidden")
    problem(charlie.api.get(url), 404, "not_found")
    assert not tree.spec(instance.id).audit


def test_a_record_is_shown_with_all_that_was_written(alice, url, topic):
    topic.write(
        AuditKind.DENIAL,
        "TOPIC_AUTHORIZATION_FAILED",
        principal="User:bob",
        client_id="billing",
        api="PRODUCE",
        operation="WRITE",
        resource="TOPIC:orders",
        reason="no ACL permits it",
    )
    assert alice.api.get(url).json()["items"] == [
        {
            "time": "2026-11-22T12:00:00Z",
            "broker": 1,
            "kind": "denial",
            "outcome": "TOPIC_AUTHORIZATION_FAILED",
            "source": "10.0.0.0",
            "route": "default",
            "principal": "User:bob",
            "client_id": "billing",
            "api": "PRODUCE",
            "operation": "WRITE",
            "resource": "TOPIC:orders",
            "reason": "no ACL permits it",
            "mechanism": None,
            "count": 1,
            "left_out": 0,
        }
    ]


def test_a_login_says_by_which_mechanism(alice, url, topic):
    topic.write(AuditKind.AUTHENTICATION, "failure", mechanism="OAUTHBEARER", reason="the token: it has ended")
    [login] = alice.api.get(url).json()["items"]
    assert (login["mechanism"], login["reason"]) == ("OAUTHBEARER", "the token: it has ended")


def test_pages_are_the_newest_first_and_stay_right_while_more_is_written(alice, url, topic):
    topic.write(count=7)
    first = alice.api.get(url, {"limit": 3}).json()
    assert minutes(first) == [6, 5, 4]
    assert first["looked_at"] == 3  # without a filter no more is read than is shown
    topic.write(count=2)
    second = alice.api.get(url, {"limit": 3, "cursor": first["next"]}).json()
    assert minutes(second) == [3, 2, 1]
    last = alice.api.get(url, {"limit": 3, "cursor": second["next"]}).json()
    assert (minutes(last), last["next"]) == ([0], None)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"kind": "denial"}, [2, 1]),
        ({"kind": "denial", "outcome": "GROUP_AUTHORIZATION_FAILED"}, [2]),
        ({"principal": "User:bob"}, [3, 1]),
        ({"principal": "bob"}, [3, 1]),
        ({"outcome": "success"}, [3]),
        ({"from": at(2)}, [3, 2]),
        ({"to": at(2)}, [1, 0]),
        ({"from": at(1), "to": at(3), "kind": "denial", "principal": "User:bob"}, [1]),
        ({"from": at(90)}, []),
        ({"to": "2026-01-01"}, []),
        ({"principal": "User:nobody"}, []),
    ],
)
def test_filters_have_to_fit_together(alice, url, topic, asked, found):
    topic.write()
    topic.write(AuditKind.DENIAL, "TOPIC_AUTHORIZATION_FAILED", principal="User:bob")
    topic.write(AuditKind.DENIAL, "GROUP_AUTHORIZATION_FAILED", principal="User:ann")
    topic.write(AuditKind.AUTHENTICATION, "success", principal="User:bob")
    body = alice.api.get(url, asked).json()
    assert minutes(body) == found
    assert body["next"] is None


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"kind": "nothing"}, "kind"),
        ({"from": "yesterday"}, "from"),
        ({"to": "0001-01-01T00:00:00+14:00"}, "to"),
        ({"from": at(2), "to": at(1)}, "from"),
        ({"cursor": "x"}, "cursor"),
        ({"cursor": "Wy0xXQ"}, "cursor"),
        ({"limit": "0"}, "limit"),
        ({"who": "bob"}, "who"),
    ],
)
def test_what_cannot_be_asked_is_named(alice, url, topic, asked, field):
    topic.write()
    assert [each["field"] for each in problem(alice.api.get(url, asked), 400, "invalid")["errors"]] == [field]


def test_a_filter_that_fits_hardly_any_reads_a_bounded_number_and_says_where_to_go_on(alice, url, topic, monkeypatch):
    monkeypatch.setattr(trail, "MOST_LOOKED_AT", 20)
    monkeypatch.setattr(trail, "STRETCH", 8)
    topic.write(AuditKind.DENIAL, "TOPIC_AUTHORIZATION_FAILED")
    topic.write(count=49)
    asked = {"kind": "denial"}
    looks = []
    while True:
        body = alice.api.get(url, asked).json()
        looks.append((body["looked_at"], minutes(body)))
        if body["next"] is None:
            break
        asked["cursor"] = body["next"]
    assert looks == [(20, []), (20, []), (10, [0])]


def test_records_that_have_expired_are_not_waited_for(alice, url, topic):
    topic.write(count=9)
    first = alice.api.get(url, {"limit": 2}).json()
    start, timestamps = topic.groups.logs[topic.place]
    topic.groups.logs[topic.place] = (start + 8, timestamps[8:])  # retention
    topic.groups.values[topic.place] = topic.groups.values[topic.place][8:]
    body = alice.api.get(url, {"limit": 2, "cursor": first["next"]}).json()
    assert (body["items"], body["next"]) == ([], None)


def test_a_record_of_a_newer_release_is_counted_and_hides_no_other(alice, url, topic):
    topic.write()
    topic.groups.write(topic.place, NOON_MS, b'{"version": 2}')
    topic.write()
    body = alice.api.get(url).json()
    assert (minutes(body), body["not_legible"], body["looked_at"]) == ([1, 0], 1, 3)


def test_what_was_written_stays_readable_when_it_is_off(alice, url, topic):
    topic.write()
    body = alice.api.get(url).json()
    assert (body["enabled"], len(body["items"])) == (False, 1)


def test_while_the_topic_cannot_be_read_the_answer_says_so(alice, url, topic, admin):
    topic.write()
    admin.groups.stretches = 0
    problem(alice.api.get(url), 503, "cluster_unavailable")


def test_what_was_read_in_time_is_a_page_and_the_rest_is_behind_it(alice, url, topic, admin, monkeypatch):
    monkeypatch.setattr(trail, "STRETCH", 4)
    topic.write(AuditKind.DENIAL, "TOPIC_AUTHORIZATION_FAILED", count=10)
    admin.groups.stretches = 1
    body = alice.api.get(url, {"kind": "denial"}).json()
    assert minutes(body) == [9, 8, 7, 6]
    admin.groups.stretches = None
    rest = alice.api.get(url, {"kind": "denial", "cursor": body["next"]}).json()
    assert (minutes(rest), rest["next"]) == ([5, 4, 3, 2, 1, 0], None)


def test_a_page_is_few_questions_whatever_it_shows(alice, url, topic, admin):
    topic.write(count=300)
    admin.groups.rounds.clear()
    alice.api.get(url, {"limit": 200})
    assert admin.groups.rounds == {"spans": 1, "records": 1}
