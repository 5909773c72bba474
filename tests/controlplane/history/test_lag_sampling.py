"""Once a minute a look at every group; one that stands still costs no row, and one that is not known has none."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core import kept
from controlplane.core.errors import ClusterUnavailable
from controlplane.groups import rounds
from controlplane.history.lag import sampling
from controlplane.history.lag.known import group_deleted
from controlplane.history.models import LagGroup, LagMinutes
from controlplane.instances.models import Instance
from controlplane.kafka.group_door import Span
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.groups.conftest import given, his  # noqa: F401  # a fixture

HOUR = 3600


@pytest.fixture
def hers(alice, instance, admin):
    return given(alice, instance, admin)


@pytest.fixture
def present(clock):
    """At the beginning of the next hour: the records' ages are of now."""
    now = int(time.time())
    move(clock, now - now % HOUR + HOUR)
    return clock


def move(clock, at):
    clock.advance(at - clock.time.timestamp())


def rows():
    """By group's name, in the order of time: (minutes since the hour of the first, until, records)."""
    names = dict(LagGroup.objects.values_list("pk", "name"))
    first = min(LagMinutes.objects.values_list("at", flat=True), default=0) // HOUR * HOUR
    return [
        (names[row.group], (row.at - first) // 60, (row.until - first) // 60, row.messages)
        for row in LagMinutes.objects.order_by("group", "at")
    ]


def test_a_minute_has_records_and_the_timestamp_of_the_oldest(hers, present):
    present.advance(7)
    assert sampling.sample(clock=present) == 1
    row = LagMinutes.objects.get()
    _, stamps = hers.groups.logs[f"{hers.key}.orders", 0]
    at = int(present.time.timestamp()) - 7
    assert (row.at, row.until, row.late_s, row.messages, row.oldest_ms) == (
        at, at, 7, 2, stamps[2],
    )  # fmt: skip
    assert LagGroup.objects.values("instance", "name").get() == {"instance": hers.instance_id, "name": "billing"}


def test_a_record_of_a_clock_that_is_ahead_is_as_old_as_now(hers, present):
    topic, now_ms = f"{hers.key}.orders", int(present.time.timestamp()) * 1000
    hers.groups.logs[topic, 0] = (102, [now_ms + 10**9])
    sampling.sample(clock=present)
    assert LagMinutes.objects.get().oldest_ms == now_ms


def test_a_minute_is_looked_at_once_however_often_it_is_asked_for(hers, present):
    assert [sampling.sample(clock=present) for _ in range(2)] == [1, 0]
    present.advance(59)
    assert sampling.sample(clock=present) == 0
    assert hers.groups.rounds["coordinated"] == 1
    present.advance(1)
    assert sampling.sample(clock=present) == 1


def test_a_group_that_stands_still_has_one_row_an_hour(hers, present):
    for _ in range(61):
        sampling.sample(clock=present)
        present.advance(60)
    # Of its first minute nobody knows yet that it read nothing.
    assert rows() == [("billing", 0, 0, 2), ("billing", 1, 59, 2), ("billing", 60, 60, 2)]


def test_what_has_changed_begins_a_row(hers, present):
    for offset in (102, 102, 102, 103, 104, 104, 104):
        hers.billing.offsets[f"{hers.key}.orders", 0] = offset
        sampling.sample(clock=present)
        present.advance(60)
    assert rows() == [
        ("billing", 0, 0, 2), ("billing", 1, 2, 2), ("billing", 3, 3, 1), ("billing", 4, 4, 0), ("billing", 5, 6, 0),
    ]  # fmt: skip
    assert moved() == [None, 0, 1, 1, 0]
    assert LagMinutes.objects.order_by("at").last().oldest_ms == rounds.NOTHING_LEFT


def moved():
    """Records that were consumed in a minute, by row."""
    return list(LagMinutes.objects.order_by("at").values_list("consumed", flat=True))


def test_records_that_a_group_read_and_that_came_are_told_as_of_a_whole_minute(hers, present):
    topic = f"{hers.key}.orders"
    sampling.sample(clock=present)
    present.advance(90)
    hers.billing.offsets[topic, 0] += 1
    first, stamps = hers.groups.logs[topic, 0]
    hers.groups.logs[topic, 0] = (first, [*stamps, *stamps[-1:] * 30])
    sampling.sample(clock=present)
    assert LagMinutes.objects.order_by("at").values_list("consumed", "produced").last() == (1, 20)


@pytest.mark.parametrize("what", ["an offset is set back", "a partition more", "the cache forgot", "it was long ago"])
def test_where_nobody_can_say_what_a_group_read_it_is_not_known_and_never_0(hers, present, what):
    sampling.sample(clock=present)
    present.advance(240 if what == "it was long ago" else 60)
    if what == "an offset is set back":
        hers.billing.offsets[f"{hers.key}.orders", 0] -= 1
    elif what == "a partition more":
        hers.billing.offsets[f"{hers.key}.orders", 1] = 0
    elif what == "the cache forgot":
        cache.clear()
    sampling.sample(clock=present)
    assert moved()[-1] is None


def test_a_minute_without_a_look_is_a_gap(hers, present, admin):
    sampling.sample(clock=present)
    present.advance(60)
    admin.away = True
    assert sampling.sample(clock=present) == 0
    present.advance(60)
    admin.away = False
    sampling.sample(clock=present)
    assert rows() == [("billing", 0, 0, 2), ("billing", 2, 2, 2)]


def test_a_group_that_is_gone_is_a_gap_and_the_same_name_goes_on_later(hers, present):
    kept = hers.billing
    sampling.sample(clock=present)
    present.advance(60)
    del hers.groups.found[f"{hers.key}.billing"]
    assert sampling.sample(clock=present) == 0
    present.advance(60)
    hers.groups.found[f"{hers.key}.billing"] = kept
    sampling.sample(clock=present)
    assert rows() == [("billing", 0, 0, 2), ("billing", 2, 2, 2)]
    assert LagGroup.objects.count() == 1


# --- groups that are gone -------------------------------------------------------------------------------------------------


def gone():
    return set(LagGroup.objects.exclude(deleted_at=None).values_list("name", flat=True))


def test_a_group_that_its_coordinator_does_not_know_any_more_is_gone_until_it_is_seen_again(hers, present):
    """Whoever deleted it: its tenant's own tools, or brokers when its offsets expired."""
    kept = hers.billing
    sampling.sample(clock=present)
    assert gone() == set()
    present.advance(60)
    del hers.groups.found[f"{hers.key}.billing"]
    sampling.sample(clock=present)
    assert gone() == {"billing"}
    asked = hers.groups.rounds["described"]
    present.advance(60)
    sampling.sample(clock=present)
    assert (gone(), hers.groups.rounds["described"]) == ({"billing"}, asked)  # nobody is asked again
    present.advance(60)
    hers.groups.found[f"{hers.key}.billing"] = kept
    sampling.sample(clock=present)
    assert gone() == set()


def test_while_all_groups_are_there_no_coordinator_is_asked_whether_they_are(hers, present):
    for _ in range(3):
        sampling.sample(clock=present)
        present.advance(60)
    assert hers.groups.rounds["described"] == 0


def test_a_group_that_nobody_lists_because_its_coordinator_is_away_is_not_gone(hers, present):
    sampling.sample(clock=present)
    present.advance(60)
    name = f"{hers.key}.billing"
    del hers.groups.found[name]
    hers.groups.hidden.add(name)
    sampling.sample(clock=present)
    assert (rows(), gone()) == ([("billing", 0, 0, 2)], set())


def test_a_group_that_cannot_be_read_is_not_gone(hers, present, monkeypatch):
    """No partition of its topic has a leader."""
    sampling.sample(clock=present)
    present.advance(60)
    monkeypatch.setattr(hers.groups, "spans", lambda _places: {})
    assert sampling.sample(clock=present) == 0
    assert (gone(), hers.groups.rounds["described"]) == (set(), 0)


def test_a_group_that_is_deleted_while_a_round_looks_stays_gone_though_the_round_has_seen_it(
    hers, present, monkeypatch
):
    sampling.sample(clock=present)
    present.advance(60)

    def deleted_meanwhile(*asked, **known):
        found = rounds.round_of(*asked, **known)
        present.advance(1)
        group_deleted(hers.instance_id, "billing", int(present.now().timestamp()))
        present.advance(1)
        return found

    monkeypatch.setattr(sampling, "round_of", deleted_meanwhile)
    sampling.sample(clock=present)
    assert gone() == {"billing"}


def test_that_coordinators_cannot_be_asked_costs_no_minute(hers, present, monkeypatch):
    sampling.sample(clock=present)
    present.advance(60)
    hers.groups.found[f"{hers.key}.second"] = FakeGroup(dict(hers.billing.offsets))
    del hers.groups.found[f"{hers.key}.billing"]

    def away(_names):
        raise ClusterUnavailable("no broker names the groups' coordinators")

    monkeypatch.setattr(hers.groups, "known", away)
    assert sampling.sample(clock=present) == 1
    assert gone() == set()


def test_of_a_mark_of_a_clock_that_was_ahead_a_group_that_is_seen_is_there(hers, present):
    sampling.sample(clock=present)
    group_deleted(hers.instance_id, "billing", int(present.now().timestamp()) + 9 * HOUR)
    present.advance(60)
    sampling.sample(clock=present)
    assert gone() == set()


def test_whoever_deletes_a_group_here_says_so_at_once(hers, present, alice):
    sampling.sample(clock=present)
    hers.billing.members.clear()
    answer = alice.api.delete(f"/api/v1/instances/{hers.instance_id}/groups/billing")
    assert answer.status_code == 204, answer.content
    assert gone() == {"billing"}


# --------------------------------------------------------------------------------------------------------------------------


def test_two_tenants_groups_of_one_name_are_two(hers, his, present):  # noqa: F811
    his.billing.offsets[f"{his.key}.orders", 0] = 100
    assert sampling.sample(clock=present) == 2
    found = {group.instance: LagMinutes.objects.get(group=group.pk).messages for group in LagGroup.objects.all()}
    assert found == {hers.instance_id: 2, his.instance_id: 4}


def test_an_offset_of_a_foreign_topic_is_nobodys(hers, his, present):  # noqa: F811
    hers.billing.offsets[f"{his.key}.orders", 0] = 0
    sampling.sample(clock=present)
    assert LagMinutes.objects.get(group=LagGroup.objects.get(instance=hers.instance_id).pk).messages == 2


def test_a_partition_without_a_leader_makes_the_group_unknown_and_no_other(hers, present, admin):
    admin.groups.found[f"{hers.key}.only one"] = FakeGroup({(f"{hers.key}.orders", 1): 1})
    layout = admin.topics[f"{hers.key}.orders"]
    leaderless = type(layout.partitions[0])(**{**vars_of(layout.partitions[0]), "leader": None})
    admin.topics[f"{hers.key}.orders"] = type(layout)(
        **{**vars_of(layout), "partitions": [leaderless, layout.partitions[1]]}
    )
    assert sampling.sample(clock=present) == 1
    assert LagGroup.objects.get().name == "only one"


def vars_of(value):
    return {name: getattr(value, name) for name in type(value).__dataclass_fields__}


def test_a_topic_that_is_gone_is_not_asked_about(hers, present):
    hers.billing.offsets[f"{hers.key}.gone", 0] = 7
    assert sampling.sample(clock=present) == 1
    assert LagMinutes.objects.get().messages == 2


def test_groups_of_an_instance_that_does_not_run_are_not_looked_at(hers, present):
    Instance.objects.unscoped("a test").update(state="deleting")
    assert sampling.sample(clock=present) == 0


def test_names_that_no_group_can_have_cost_the_others_nothing(hers, present):
    offsets = {(f"{hers.key}.orders", 0): 100}
    for name in (f"{hers.key}.", f"{hers.key}.a\0b", f"{hers.key}.{'x' * 992}", "not an instance's"):
        hers.groups.found[name] = FakeGroup(dict(offsets))
    hers.groups.found[f"{hers.key}.{'ö' * 991}"] = FakeGroup(dict(offsets))
    assert sampling.sample(clock=present) == 2
    assert set(LagGroup.objects.values_list("name", flat=True)) == {"billing", "ö" * 991}


def test_what_was_dated_before_is_not_looked_at_again(hers, present):
    sampling.sample(clock=present)
    present.advance(60)
    sampling.sample(clock=present)
    assert hers.groups.rounds["oldest"] == 1
    present.advance(60)
    hers.billing.offsets[f"{hers.key}.orders", 0] = 103
    sampling.sample(clock=present)
    assert hers.groups.rounds["oldest"] == 2


def test_a_minute_has_bytes_and_what_was_sized_before_is_not_asked_for_again(hers, present, admin):
    sampling.sample(clock=present)
    present.advance(60)
    sampling.sample(clock=present)
    assert list(LagMinutes.objects.values_list("size", flat=True)) == [200, 200]
    assert admin.backlogs.asked == 1
    present.advance(60)
    start, stamps = hers.groups.logs[f"{hers.key}.orders", 0]
    hers.groups.logs[f"{hers.key}.orders", 0] = (start, [*stamps, stamps[-1]])
    sampling.sample(clock=present)
    assert (LagMinutes.objects.order_by("at").last().size, admin.backlogs.asked) == (300, 2)


def test_who_has_read_everything_has_no_bytes_before_it_and_nobody_is_asked(hers, present, admin):
    hers.billing.offsets[f"{hers.key}.orders", 0] = 104
    sampling.sample(clock=present)
    assert (LagMinutes.objects.get().size, admin.backlogs.asked) == (0, 0)


def test_a_partition_whose_bytes_are_not_known_leaves_the_groups_unknown(hers, present, admin):
    hers.billing.offsets[f"{hers.key}.orders", 1] = 0
    admin.backlogs.unknown = {(f"{hers.key}.orders", 1)}
    sampling.sample(clock=present)
    assert LagMinutes.objects.values_list("messages", "size").get() == (4, None)


def test_brokers_that_say_nothing_of_bytes_cost_nothing_else(hers, present, admin, monkeypatch, caplog):
    def away(_stretches):
        raise ClusterUnavailable("no broker is running")

    monkeypatch.setattr(admin.backlogs, "backlogs", away)
    with caplog.at_level(logging.WARNING):
        assert sampling.sample(clock=present) == 1
    assert LagMinutes.objects.values_list("messages", "size").get() == (2, None)
    assert "no lag in bytes" in caplog.text


def test_bytes_of_a_leader_that_is_behind_for_a_moment_are_not_kept_while_a_group_stands_still(hers, present, admin):
    place = f"{hers.key}.orders", 0
    backlogs = admin.backlogs.backlogs

    def is_behind(stretches):
        logs, log = hers.groups.logs, hers.groups.logs[place]
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(logs, place, (log[0], log[1][:-1]))
            return backlogs(stretches)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(admin.backlogs, "backlogs", is_behind)
        sampling.sample(clock=present)
    present.advance(60)
    sampling.sample(clock=present)
    assert list(LagMinutes.objects.order_by("at").values_list("messages", "size")) == [(2, None), (2, 200)]


def test_of_too_many_places_some_groups_have_all_theirs_and_instances_take_turns(monkeypatch):
    asked = []
    door = SimpleNamespace(backlogs=lambda some: asked.extend(some) or dict.fromkeys(some, 5))
    monkeypatch.setattr(rounds, "MOST_SIZED", 3)
    monkeypatch.setattr(rounds.backlog_door, "door", lambda _cluster: door)
    behind = {f"aaaaaaaa.g{n}": [(9, ("aaaaaaaa.t", part, n)) for part in range(2)] for n in range(3)}
    behind["zzzzzzzz.g"] = [(1, ("zzzzzzzz.t", 0, 0))]
    spans = {place: Span(0, 10) for place in [("aaaaaaaa.t", 0), ("aaaaaaaa.t", 1), ("zzzzzzzz.t", 0)]}
    sized = rounds._sized(None, behind, spans, {})
    assert set(asked) == {("aaaaaaaa.t", 0, 0, 10), ("aaaaaaaa.t", 1, 0, 10), ("zzzzzzzz.t", 0, 0, 10)}
    assert set(sized) == set(asked)
    assert [rounds._size(spots, spans, sized) for spots in behind.values()] == [10, None, None, 5]
    rounds._sized(None, behind, spans, sized)
    assert len(asked) == len(set(asked)) == 6, "the next round comes to the others"


def test_without_a_cache_records_are_dated_again(hers, present, monkeypatch, caplog):
    def away(*_args, **_named):
        raise OSError("no cache")

    monkeypatch.setattr(kept, "cache", SimpleNamespace(get=away, set=away))
    with caplog.at_level(logging.WARNING):
        assert sampling.sample(clock=present) == 1
    assert "dated again" in caplog.text


def test_records_that_do_not_come_leave_the_age_unknown(hers, present):
    hers.groups.slow = True
    sampling.sample(clock=present)
    assert LagMinutes.objects.values_list("messages", "oldest_ms").get() == (2, None)


def test_a_round_whose_time_is_over_asks_for_nothing_more_and_has_gaps(hers, present, monkeypatch):
    """Rounds of more than a minute would go on beside one another, until operations and health had no worker."""
    with monkeypatch.context() as patched:
        patched.setattr(rounds, "WHOLE_S", 0.0)
        assert sampling.sample(clock=present) == 0
    assert "offsets" not in hers.groups.rounds
    assert rounds.WHOLE_S < 60
    present.advance(60)
    assert sampling.sample(clock=present) == 1


def test_a_broker_that_says_no_more_costs_its_own_groups_only(hers, present, caplog):
    hers.groups.found[f"{hers.key}.a"] = FakeGroup({(f"{hers.key}.orders", 0): 100})
    hers.groups.silent.add(("127.0.0.1", 1))  # which has the first
    with caplog.at_level(logging.WARNING):
        assert sampling.sample(clock=present) == 1
    assert LagGroup.objects.get().name == "billing"


def test_a_look_is_a_few_questions_whatever_the_number_of_groups(hers, present):
    def asked():
        before = dict(hers.groups.rounds)
        with CaptureQueriesContext(connection) as queries:
            sampling.sample(clock=present)
        present.advance(60)
        return {name: count - before.get(name, 0) for name, count in hers.groups.rounds.items()}, len(queries)

    few, _ = asked()
    for number in range(400):
        hers.groups.found[f"{hers.key}.g{number}"] = FakeGroup({(f"{hers.key}.orders", 0): 102})
    many, _ = asked()
    assert {name: many[name] for name in ("coordinated", "spans")} == {"coordinated": 1, "spans": 1}
    assert (many["offsets"], many["oldest"]) == (2, 0)  # all stand where billing does
    assert few["offsets"] == 1
    asked()  # of a group's second minute it is known that it read nothing
    _, statements = asked()
    assert statements <= 16
    assert LagMinutes.objects.filter(at=present.time.timestamp() - 60).count() == 0  # nobody has a new row


def test_whoever_has_few_groups_has_all_when_there_are_too_many(hers, his, present, monkeypatch):  # noqa: F811
    monkeypatch.setattr(rounds, "MOST_GROUPS", 4)
    for number in range(9):
        hers.groups.found[f"{hers.key}.g{number}"] = FakeGroup({(f"{hers.key}.orders", 0): 102})
    sampling.sample(clock=present)
    found = sorted(LagGroup.objects.values_list("instance", "name"))
    assert found == sorted(
        [(his.instance_id, "billing"), *((hers.instance_id, name) for name in ("billing", "g0", "g1"))]
    )


def test_of_too_many_records_the_ones_furthest_behind_are_dated(hers, present, monkeypatch):
    monkeypatch.setattr(rounds, "MOST_DATED", 1)
    hers.billing.offsets.update({(f"{hers.key}.orders", 0): 103, (f"{hers.key}.orders", 1): 0})
    sampling.sample(clock=present)
    _, stamps = hers.groups.logs[f"{hers.key}.orders", 1]
    row = LagMinutes.objects.get()
    assert (row.messages, row.oldest_ms) == (3, stamps[0])


def test_groups_at_different_places_of_one_partition_are_each_dated(hers, present):
    hers.groups.found[f"{hers.key}.other"] = FakeGroup({(f"{hers.key}.orders", 0): 103})
    sampling.sample(clock=present)
    _, stamps = hers.groups.logs[f"{hers.key}.orders", 0]
    assert sorted(LagMinutes.objects.values_list("oldest_ms", flat=True)) == [stamps[2], stamps[3]]
    assert hers.groups.rounds["oldest"] == 2


def test_a_cluster_that_is_away_does_not_end_the_task(hers, present, monkeypatch):
    def away(*_args, **_named):
        raise ClusterUnavailable("no broker is running")

    monkeypatch.setattr(sampling, "round_of", away)
    assert sampling.sample(clock=present) == 0


def test_a_worker_whose_clock_was_ahead_does_not_stop_the_others(hers, present):
    now = int(present.time.timestamp())
    move(present, now + 24 * HOUR)
    assert sampling.sample(clock=present) == 1
    move(present, now)
    assert [sampling.sample(clock=present) for _ in range(2)] == [1, 0]
    move(present, now + 60)
    assert sampling.sample(clock=present) == 1
    # What was read since a look at another time, nobody knows: that is no part of a run in which nothing was.
    assert rows() == [("billing", 0, 0, 2), ("billing", 1, 1, 2), ("billing", 24 * 60, 24 * 60, 2)]


def test_a_mark_that_is_a_little_ahead_has_the_minute(hers, present):
    now = int(present.time.timestamp())
    move(present, now + sampling.AHEAD_S)
    sampling.sample(clock=present)
    move(present, now)
    assert sampling.sample(clock=present) == 0


def test_a_minute_that_was_taken_twice_is_counted_once(hers, present):
    now = int(present.time.timestamp())
    for at in (now, now + 60, now + 24 * HOUR, now + 60):
        move(present, at)
        sampling.sample(clock=present)
    # What was read since a look at another time, nobody knows: that is no part of a run in which nothing was.
    assert rows() == [("billing", 0, 0, 2), ("billing", 1, 1, 2), ("billing", 24 * 60, 24 * 60, 2)]


def test_an_instance_of_many_groups_leaves_the_others_their_ages(monkeypatch):
    monkeypatch.setattr(rounds, "MOST_DATED", 2)
    door = SimpleNamespace(oldest=lambda positions: dict.fromkeys(positions, 5))
    behind = {f"aaaaaaaa.g{n}": [(9, (f"aaaaaaaa.t{n}", 0, 0))] for n in range(5)}
    behind["zzzzzzzz.g"] = [(1, ("zzzzzzzz.t", 0, 0))]
    assert set(rounds._dated(door, behind, {})) == {("aaaaaaaa.t0", 0, 0), ("zzzzzzzz.t", 0, 0)}


@pytest.mark.parametrize(
    ("stamps", "oldest", "is_whole"),
    [
        ({0: 500, 1: 400}, 400, True),
        ({0: 500, 1: rounds.NOTHING_LEFT}, 500, True),
        ({0: rounds.NOTHING_LEFT, 1: rounds.NOTHING_LEFT}, rounds.NOTHING_LEFT, True),
        ({0: 500}, 500, False),
        ({0: 500, 1: rounds.UNDATED}, 500, False),
        ({0: rounds.NOTHING_LEFT}, None, False),
        ({}, None, False),
    ],
)
def test_a_topic_is_whole_where_the_next_record_of_every_partition_is_dated(stamps, oldest, is_whole):
    spots = [(9, ("aaaaaaaa.t", 0, 3)), (2, ("aaaaaaaa.t", 1, 7))]
    dated = {spot: stamps[spot[1]] for _, spot in spots if spot[1] in stamps}
    assert rounds._by_topic(spots, dated) == {"aaaaaaaa.t": rounds.Lag(11, oldest, is_whole)}
