"""Noisy neighbours: minutes from the masters, what a tenant is told, and what operators are."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.accounts import services as accounts
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.remedies import neighbours
from controlplane.remedies.models import NeighbourMinute
from quota.contracts.loop_time import LoopUse, LoopWindow
from tests.controlplane.conftest import client_of
from tests.controlplane.fakes import ManualClock
from tests.controlplane.test_instances_api import problem

LOUD = "ins-l0udl0ud"


@pytest.fixture
def minutes(flow_master, instance):
    """The clock, at a quarter past the hour, and how to let an hour of quiet minutes and a loud one pass."""
    return Minutes(flow_master, instance)


class Minutes:
    def __init__(self, flow_master, instance):
        self.master, self.instance = flow_master, instance
        self.clock = ManualClock()
        start = SYSTEM_CLOCK.now().replace(second=0, microsecond=0) - timedelta(minutes=90)
        self.at = int(start.timestamp())

    def tell(self, *, broker=2, fetch_us=4_000, loud_us=300_000, windows=6, own_us=100_000):
        """One minute of a broker; the instance's requests are slow in its third ten seconds alone."""
        told = {}
        for number in range(windows):
            slow = fetch_us if number == 2 else 3_000
            rows = {
                self.instance.id: LoopUse(own_us, 0, slow),
                LOUD: LoopUse(loud_us if number == 2 else 50_000, 900, 0),
            }
            told[self.at + 10 * number] = LoopWindow(10_000_000, sum(use.own_us for use in rows.values()), rows)
        self.master.loops = {**(self.master.loops or {}), broker: told}

    def passes(self, **said):
        self.master.loops = {}
        self.tell(**said)
        self.clock.time = datetime.fromtimestamp(self.at + 60 + neighbours.SETTLED_S, UTC)
        taken = neighbours.minutes_take(clock=self.clock)
        self.at += 60
        return taken

    def hour_then_spike(self):
        for _ in range(30):
            self.passes()
        for _ in range(2):
            self.passes(fetch_us=38_000, loud_us=7_100_000)


def told(person, instance, query=""):
    answer = person.api.get(f"/api/v1/instances/{instance.id}/neighbours{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]


def test_a_spike_while_others_had_the_broker_is_told_with_its_score_and_names_nobody(alice, instance, minutes):
    minutes.hour_then_spike()
    (found,) = told(alice, instance)
    start = datetime.fromtimestamp(minutes.at - 120, UTC)
    assert found["score"] == 64
    assert (found["broker"], found["requests"], found["p99_ms"], found["usual_ms"]) == (2, "fetch", 38.0, 4.0)
    assert (found["others_percent"], found["own_percent"]) == (71, 1)
    assert found["explanation"] == (
        f"On broker 2 between {start:%H:%M} and {start + timedelta(minutes=2):%H:%M} UTC fetches took 38 ms instead of 4 ms; "
        "71 % of the broker's time went to other instances."
    )
    assert LOUD not in json.dumps(found)
    assert "neighbours" not in found


def test_a_quiet_day_has_none(alice, instance, minutes):
    for _ in range(20):
        minutes.passes()
    minutes.passes(fetch_us=38_000, loud_us=100_000)  # slow, and nobody else was there
    assert told(alice, instance) == []


def test_operators_see_who_the_neighbours_were(alice, instance, minutes):
    minutes.hour_then_spike()
    problem(alice.api.get("/api/v1/neighbours"), 403, "forbidden")
    alice.user.is_staff = True
    alice.user.save()
    (found,) = alice.api.get("/api/v1/neighbours").json()["items"]
    assert (found["instance"], found["score"]) == (instance.id, 64)
    assert found["neighbours"] == [{"instance": LOUD, "percent": 12}]  # 7.35 of 60 s


def test_another_organisations_instance_is_not_found(charlie, instance, minutes):
    minutes.hour_then_spike()
    theirs = charlie.api.get(f"/api/v1/instances/{instance.id}/neighbours")
    nothing = charlie.api.get("/api/v1/instances/ins-00000000/neighbours")
    assert theirs.status_code == nothing.status_code == 404
    assert theirs.content.replace(instance.id.encode(), b"ins-00000000") == nothing.content


def test_a_minute_is_kept_once_and_one_that_was_missed_is_asked_for_again(instance, minutes):
    assert minutes.passes() == 2
    minutes.at -= 60
    assert minutes.passes() == 0
    missed = minutes.at
    minutes.tell()
    first = dict(minutes.master.loops)
    minutes.at += 60
    minutes.tell(broker=2)
    minutes.master.loops[2] = {**first[2], **minutes.master.loops[2]}
    minutes.clock.time = datetime.fromtimestamp(minutes.at + 60 + neighbours.SETTLED_S, UTC)
    assert neighbours.minutes_take(clock=minutes.clock) == 4
    assert NeighbourMinute.objects.filter(at=missed).count() == 2


def test_of_a_minute_the_slowest_ten_seconds_count_with_the_time_of_just_these(instance, minutes):
    minutes.passes(fetch_us=38_000, loud_us=7_100_000)
    row = NeighbourMinute.objects.get(instance=instance.id)
    assert (row.fetch_p99_us, row.own_us, row.others_us, row.elapsed_us) == (38_000, 100_000, 7_100_000, 10_000_000)
    assert row.minute_us == 600_000
    assert row.score == 0, "what is usual is not known yet"


def test_each_kind_of_requests_has_its_own_slowest_ten_seconds(instance, minutes):
    for _ in range(30):
        minutes.passes()
    windows = {}
    for number in range(6):
        mine = LoopUse(100_000, 9_000 if number == 1 else 500, 12_000 if number == 4 else 3_000)
        loud = {1: 2_000_000, 4: 8_000_000}.get(number, 0)
        windows[minutes.at + 10 * number] = LoopWindow(10_000_000, 100_000 + loud, {instance.id: mine})
    minutes.master.loops = {2: windows}
    minutes.clock.time = datetime.fromtimestamp(minutes.at + 60 + neighbours.SETTLED_S, UTC)
    neighbours.minutes_take(clock=minutes.clock)
    row = NeighbourMinute.objects.get(instance=instance.id, at=minutes.at)
    assert (row.produce_p99_us, row.fetch_p99_us) == (9_000, 12_000)
    assert (row.kind, row.others_us, row.score) == ("fetch", 8_000_000, round(80 * (1 - 4 / 12)))


def test_minutes_with_a_score_are_not_what_is_usual(instance, minutes):
    for _ in range(15):
        minutes.passes()
    for _ in range(25):
        minutes.passes(fetch_us=38_000, loud_us=7_100_000)
    last = NeighbourMinute.objects.filter(instance=instance.id).order_by("-at")[0]
    assert (last.score, last.usual_us) == (64, 4_000), "more than half of the hour was slow"


def test_a_minute_is_kept_when_all_of_it_is_told_or_half_a_minute_later(instance, minutes):
    assert minutes.passes(windows=3) == 0
    assert not NeighbourMinute.objects.exists()
    minutes.clock.time += timedelta(seconds=30)
    assert neighbours.minutes_take(clock=minutes.clock) == 2
    assert NeighbourMinute.objects.get(instance=instance.id).minute_us == 600_000, (
        "of three windows, for a whole minute"
    )


def test_a_broker_that_tells_late_is_kept_beside_one_that_was_in_time(instance, minutes):
    assert minutes.passes() == 2
    minutes.at -= 60
    minutes.tell(broker=3)
    minutes.clock.time += timedelta(seconds=30)
    assert neighbours.minutes_take(clock=minutes.clock) == 2
    assert set(NeighbourMinute.objects.values_list("broker", flat=True)) == {2, 3}


def test_where_no_master_answers_nothing_is_kept_and_nothing_fails(instance, minutes):
    minutes.master.loops = None
    assert neighbours.minutes_take() == 0
    assert not NeighbourMinute.objects.exists()


def test_an_instance_at_rest_leaves_no_rows(instance, minutes):
    minutes.master.loops = {2: {minutes.at: LoopWindow(10_000_000, 500, {instance.id: LoopUse(500, 0, 0)})}}
    minutes.clock.time = datetime.fromtimestamp(minutes.at + 60 + neighbours.SETTLED_S, UTC)
    assert neighbours.minutes_take(clock=minutes.clock) == 0


def test_minutes_are_forgotten_after_a_day(instance, minutes):
    minutes.passes()
    now = SYSTEM_CLOCK.now()
    old, young = int((now - timedelta(hours=25)).timestamp()), int((now - timedelta(hours=23)).timestamp())
    kept, gone = NeighbourMinute.objects.order_by("instance")
    NeighbourMinute.objects.filter(pk=kept.pk).update(at=young)
    NeighbourMinute.objects.filter(pk=gone.pk).update(at=old)
    neighbours.minutes_purge()
    assert [row.pk for row in NeighbourMinute.objects.all()] == [kept.pk]


def test_a_limited_key_of_an_operator_does_not_see_everybody(alice, instance):
    alice.user.is_staff = True
    alice.user.save()
    _, text = accounts.api_key_create(
        organisation=alice.organisation, user=alice.user, name="limited", scopes=["instances", "read"]
    )
    problem(client_of(text).get("/api/v1/neighbours"), 403, "whole_key_needed")
