"""An hour is final when every broker has told all that it counted under it, or an operator does not wait for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.accounts.models import User
from controlplane.clusters.models import Broker, PhysicalCluster
from controlplane.clusters.services import cluster_ensure
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.metering import finality
from controlplane.metering.models import Boot, Progress
from controlplane.metering.selectors import complete_to, completeness, why_incomplete
from tests.controlplane.fakes import ManualClock
from tests.support.usage import hours_told

pytestmark = pytest.mark.django_db
MONTH_END = datetime(2026, 6, 1, tzinfo=UTC)
READ_TO = MONTH_END + timedelta(hours=3)


@pytest.fixture(autouse=True)
def _all_is_read():
    """Up to three hours after the month's end."""
    Progress.objects.create(
        partition=0, topic_id="t", next_offset=10, end_offset=10, looked_at_ms=0,
        complete_to_ms=int(READ_TO.timestamp() * 1000),
    )  # fmt: skip


def registered(broker: int, *, away_since: datetime | None = None, cluster: str = "default") -> None:
    Broker.objects.create(
        cluster=cluster_ensure(name=cluster),
        broker_id=broker,
        host="10.0.0.1",
        port=9000 + broker,
        away_since=away_since,
    )


def waived(broker: int, at: datetime, reason: str = "its disk burned"):
    clock = ManualClock()
    clock.time = at
    return finality.broker_waive(
        broker=broker, reason=reason, actor="olga@example.com", read_to=complete_to(), clock=clock
    )


def counted(broker: int, boot: str, first_hour: str, *, last_hour: str | None = None, at: datetime) -> None:
    """A boot has told usage of these hours, "2026-05-31T10", for the first time at a moment."""
    Boot.objects.create(
        broker=broker, boot=boot, first_hour=f"{first_hour}:00:00Z", last_hour=f"{last_hour or first_hour}:00:00Z",
        first_at_ms=int(at.timestamp() * 1000),
    )  # fmt: skip


def read_to(moment: datetime) -> None:
    Progress.objects.update(complete_to_ms=int(moment.timestamp() * 1000))


def test_a_month_is_complete_when_every_broker_has_told_its_last_hour():
    for broker in (1, 2):
        registered(broker)
        hours_told(broker, "2026-05-31T23", MONTH_END + timedelta(minutes=1))
    assert why_incomplete(until=MONTH_END) == ""
    assert not completeness().has_waived(until=MONTH_END)


def test_one_that_died_in_the_last_hour_keeps_it_open_until_it_is_back_and_has_told_it():
    for broker in (1, 2):
        registered(broker, away_since=datetime(2026, 5, 31, 23, 20, tzinfo=UTC) if broker == 2 else None)
        hours_told(broker, "2026-05-31T23" if broker == 1 else "2026-05-31T22", MONTH_END - timedelta(minutes=50))
    assert why_incomplete(until=MONTH_END) == (
        "broker 2 has told all up to 2026-05-31 23:00 UTC, and has been away since 2026-05-31 23:20 UTC;"
        " it must come to 2026-06-01 00:00 UTC"
    )
    hours_told(2, "2026-06-01T01", MONTH_END + timedelta(hours=2))
    assert why_incomplete(until=MONTH_END) == ""


def test_what_it_says_counts_once_all_partitions_are_read_up_to_the_moment_at_which_it_said_so():
    registered(1)
    hours_told(1, "2026-05-31T20", MONTH_END - timedelta(hours=3))
    hours_told(1, "2026-06-01T02", READ_TO + timedelta(seconds=1))
    assert why_incomplete(until=MONTH_END) == (
        "broker 1 has told all up to 2026-05-31 21:00 UTC, and more that counts once metering has read what was written"
        " before it; it must come to 2026-06-01 00:00 UTC"
    )
    with pytest.raises(Conflict):
        waived(1, MONTH_END + timedelta(hours=3))
    assert why_incomplete(until=MONTH_END - timedelta(hours=3)) == "", "that was certain before"
    read_to(READ_TO + timedelta(seconds=1))
    assert why_incomplete(until=MONTH_END) == ""


def test_one_that_never_said_anything_is_waited_for():
    for broker in (1, 2, 3):
        registered(broker)
    sentence = why_incomplete(until=MONTH_END + timedelta(minutes=1))
    assert (
        sentence
        == "broker 1 has not said yet which hours it has told; it must come to 2026-06-01 01:00 UTC, and 2 more"
    )


def test_where_no_broker_is_known_nothing_is_final():
    assert why_incomplete(until=MONTH_END) == "no broker has registered yet"


def test_one_that_spoke_is_waited_for_although_the_database_does_not_know_it():
    registered(1)
    hours_told(1, "2026-06-01T01", MONTH_END + timedelta(hours=2))
    hours_told(4, "2026-05-20T10", datetime(2026, 5, 20, 11, tzinfo=UTC))
    assert why_incomplete(until=MONTH_END).startswith("broker 4 has told all up to 2026-05-20 11:00 UTC;")


def test_brokers_of_a_cluster_that_is_not_metered_are_not():
    registered(1)
    hours_told(1, "2026-06-01T01", MONTH_END + timedelta(hours=2))
    registered(7, cluster=PhysicalCluster.objects.create(name="elsewhere", zookeeper_hosts="z:2181"))
    assert why_incomplete(until=MONTH_END) == ""


class TestWaivers:
    def test_one_that_came_back_and_left_again_is_waited_for_anew(self):
        registered(1, away_since=datetime(2026, 5, 20, 11, tzinfo=UTC))
        hours_told(1, "2026-05-20T09", datetime(2026, 5, 20, 10, 1, tzinfo=UTC))
        waived(1, datetime(2026, 5, 21, 8, tzinfo=UTC))
        assert why_incomplete(until=MONTH_END) == ""
        hours_told(1, "2026-05-30T20", datetime(2026, 5, 30, 21, 1, tzinfo=UTC))
        Broker.objects.update(away_since=datetime(2026, 5, 30, 21, 40, tzinfo=UTC))
        assert why_incomplete(until=MONTH_END).startswith("broker 1 has told all up to 2026-05-30 21:00 UTC")
        [broker] = finality.broker_hours(READ_TO)
        assert not broker.is_let_go
        assert finality.final_to([broker], read_to=READ_TO) == datetime(2026, 5, 30, 21, tzinfo=UTC)
        waived(1, MONTH_END + timedelta(hours=1))
        assert why_incomplete(until=MONTH_END) == ""
        assert completeness().has_waived(until=MONTH_END)
        assert len(completeness().waivers_applied(until=MONTH_END)) == 1

    def test_one_that_will_not_come_back_is_waived_as_long_as_it_is_away(self):
        registered(1, away_since=datetime(2026, 5, 20, 11, tzinfo=UTC))
        hours_told(1, "2026-05-20T10", datetime(2026, 5, 20, 11, tzinfo=UTC))
        waiver = waived(1, MONTH_END + timedelta(hours=2))
        assert (waiver.hour, waiver.by, waiver.reason) == (
            "2026-06-01T01:00:00Z",
            "olga@example.com",
            "its disk burned",
        )
        assert waiver.waited_for.startswith("broker 1 has told all up to 2026-05-20 11:00 UTC")
        assert why_incomplete(until=MONTH_END) == ""
        assert completeness().has_waived(until=MONTH_END), "the invoice says so"
        read_to(datetime(2026, 8, 1, tzinfo=UTC))
        assert why_incomplete(until=datetime(2026, 7, 1, tzinfo=UTC)) == ""
        Broker.objects.update(away_since=None)
        assert why_incomplete(until=MONTH_END) == "", "the hours that had passed stay waived"
        assert "broker 1 has told all up to 2026-05-20 11:00" in why_incomplete(until=datetime(2026, 7, 1, tzinfo=UTC))

    def test_one_that_is_there_and_says_nothing_is_waived_for_the_hours_that_have_passed_only(self):
        registered(1)
        waived(1, MONTH_END + timedelta(hours=2))
        assert why_incomplete(until=MONTH_END) == ""
        read_to(datetime(2026, 8, 1, tzinfo=UTC))
        assert why_incomplete(until=datetime(2026, 7, 1, tzinfo=UTC))

    def test_only_whom_usage_waits_for_and_with_a_reason(self):
        registered(1)
        hours_told(1, "2026-06-01T01", MONTH_END + timedelta(hours=2))
        with pytest.raises(Conflict, match="usage does not wait for broker 1"):
            waived(1, MONTH_END + timedelta(hours=2, minutes=30))
        with pytest.raises(Invalid):
            waived(1, MONTH_END + timedelta(days=2), reason="  ")
        with pytest.raises(NotFound):
            waived(2, MONTH_END + timedelta(days=2))


class TestGaps:
    @pytest.fixture(autouse=True)
    def _another_machine(self):
        """Boot b2 does not know what b1 counted."""
        registered(1)
        hours_told(1, "2026-05-20T10", datetime(2026, 5, 20, 11, tzinfo=UTC), boot="b1")
        for hour in (23, 22):
            said_at = MONTH_END + timedelta(hours=1 - (23 - hour))
            hours_told(1, f"2026-05-31T{hour}", said_at, boot="b2")

    def test_what_is_said_behind_a_gap_does_not_count(self):
        assert why_incomplete(until=MONTH_END) == (
            "broker 1 has told all up to 2026-05-20 11:00 UTC, and since 2026-06-01 01:00 UTC it does not see what it had"
            " counted before (boot b1): is a disk missing?; it must come to 2026-06-01 00:00 UTC"
        )

    def test_it_does_once_a_boot_has_told_what_both_counted(self):
        hours_told(1, "2026-06-01T00", MONTH_END + timedelta(hours=2), boot="b3", after="b1,b2")
        assert why_incomplete(until=MONTH_END) == ""
        assert not completeness().has_waived(until=MONTH_END)

    def test_it_does_once_an_operator_has_judged_it_and_so_does_what_comes_later(self):
        waiver = waived(1, MONTH_END + timedelta(hours=2))
        assert waiver.boot == "b2"
        assert why_incomplete(until=MONTH_END) == ""
        read_to(datetime(2026, 8, 1, tzinfo=UTC))
        hours_told(1, "2026-07-01T00", datetime(2026, 7, 1, 1, tzinfo=UTC), boot="b2")
        assert why_incomplete(until=datetime(2026, 7, 1, tzinfo=UTC)) == ""


class TestBootsThatNeverSpoke:
    """Boot b2 told usage of 31 May, died, and is named by nobody that came after it."""

    @pytest.fixture(autouse=True)
    def _a_boot_that_died(self):
        registered(1)
        hours_told(1, "2026-05-31T09", datetime(2026, 5, 31, 10, tzinfo=UTC), boot="b1")
        counted(1, "b2", "2026-05-31T10", at=datetime(2026, 5, 31, 10, 20, tzinfo=UTC))

    def test_the_hours_that_it_lived_in_are_not_final_whatever_the_next_one_says(self):
        hours_told(1, "2026-05-31T23", MONTH_END, boot="b3", after="b1")
        assert why_incomplete(until=MONTH_END) == (
            "broker 1 has told all up to 2026-05-31 10:00 UTC, and since 2026-06-01 00:00 UTC it does not see what it had"
            " counted before (boot b2): is a disk missing?; it must come to 2026-06-01 00:00 UTC"
        )
        assert why_incomplete(until=datetime(2026, 5, 31, 10, tzinfo=UTC)) == "", "before it nothing can be missing"

    def test_they_are_once_a_boot_has_told_what_it_counted(self):
        hours_told(1, "2026-05-31T23", MONTH_END, boot="b3", after="b1,b2")
        assert why_incomplete(until=MONTH_END) == ""

    def test_they_are_once_an_operator_does_not_wait_for_it(self):
        hours_told(1, "2026-05-31T23", MONTH_END, boot="b3", after="b1")
        assert waived(1, MONTH_END + timedelta(hours=2)).boot == "b3"
        assert why_incomplete(until=MONTH_END) == ""
        assert completeness().has_waived(until=MONTH_END + timedelta(hours=1))
        hours_told(1, "2026-06-01T01", MONTH_END + timedelta(hours=2), boot="b3", after="b1")
        assert why_incomplete(until=MONTH_END + timedelta(hours=1)) == "", "what has been judged is so for later hours"

    def test_one_that_is_accounted_for_by_statements_that_were_dropped_is_no_matter(self):
        Boot.objects.update(is_told=True)
        hours_told(1, "2026-05-31T23", MONTH_END, boot="b3", after="b1")
        assert why_incomplete(until=MONTH_END) == ""

    def test_what_is_waited_for_is_named_with_its_hours_and_boots(self):
        counted(1, "b3", "2026-05-31T11", at=datetime(2026, 5, 31, 11, 20, tzinfo=UTC))
        (waiting,) = completeness().waiting_for(until=MONTH_END)
        assert (waiting.broker, waiting.start, waiting.end, waiting.hours) == (
            1, datetime(2026, 5, 31, 10, tzinfo=UTC), MONTH_END, 14,
        )  # fmt: skip
        assert waiting.boots == ("b1", "b2", "b3"), "the one that spoke last, and those that have told usage since"
        hours_told(1, "2026-05-31T23", MONTH_END, boot="b3", after="b1")
        (waiting,) = completeness().waiting_for(until=MONTH_END)
        assert waiting.boots == ("b2",), "it is known which is missing"
        assert completeness().waiting_for(until=datetime(2026, 5, 31, 10, tzinfo=UTC)) == []

    def test_a_broker_of_which_only_its_boots_are_known_is_waited_for(self):
        counted(7, "z1", "2026-05-31T10", at=datetime(2026, 5, 31, 10, 20, tzinfo=UTC))
        waiting = completeness().waiting_for(until=MONTH_END)[-1]
        assert (waiting.broker, waiting.start, waiting.hours, waiting.boots) == (7, None, None, ("z1",))


def test_the_status_says_up_to_when_hours_are_final():
    for broker, hour in ((1, "2026-06-01T02"), (2, "2026-06-01T00")):
        registered(broker)
        hours_told(broker, hour, MONTH_END + timedelta(hours=2, minutes=59))
    brokers = finality.broker_hours(READ_TO)
    assert finality.final_to(brokers, read_to=READ_TO) == MONTH_END + timedelta(hours=1)
    assert finality.final_to(brokers[:1], read_to=READ_TO) == READ_TO
    assert finality.final_to(finality.broker_hours(MONTH_END), read_to=MONTH_END) is None, "it has not been read up to"
    assert finality.final_to(brokers, read_to=None) is None
    assert finality.final_to([], read_to=READ_TO) is None


@pytest.fixture
def as_operator(charlie):
    """Of an operator of the service, who is in another organisation."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    return charlie.api


class TestByRest:
    def test_operators_see_what_brokers_have_told_and_waive_one(self, alice, as_operator):
        registered(1, away_since=datetime(2026, 5, 20, 10, 30, tzinfo=UTC))
        hours_told(1, "2026-05-20T09", datetime(2026, 5, 20, 10, tzinfo=UTC))
        (row,) = as_operator.get("/api/v1/metering/brokers").json()["items"]
        assert row == {
            "cluster": "default", "broker": 1,
            "told_to": "2026-05-20T10:00:00Z", "said_at": "2026-05-20T10:00:00Z", "gap_at": None,
            "boots": ["b1"], "away_since": "2026-05-20T10:30:00Z", "waived": None,
        }  # fmt: skip
        answer = as_operator.post("/api/v1/metering/brokers/1/waiver", {"reason": "scrapped"})
        assert (answer.status_code, answer.json()["reason"]) == (201, "scrapped")
        assert as_operator.get("/api/v1/metering/brokers").json()["items"][0]["waived"]["reason"] == "scrapped"
        assert as_operator.post("/api/v1/metering/brokers/1/waiver", {"reason": "x"}).status_code == 409
        assert as_operator.post("/api/v1/metering/brokers/9/waiver", {"reason": "x"}).status_code == 404
        assert as_operator.post("/api/v1/metering/brokers/1/waiver", {}).status_code == 400

    def test_a_tenant_does_neither(self, alice):
        registered(1)
        assert alice.api.get("/api/v1/metering/brokers").status_code == 403
        assert alice.api.post("/api/v1/metering/brokers/1/waiver", {"reason": "x"}).status_code == 403
