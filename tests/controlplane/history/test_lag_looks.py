"""Each ten seconds a look at every group, kept for an hour in one row of an instance: of groups, topics, and the instance."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given as each_of
from hypothesis import strategies as st

from controlplane.clusters.services import cluster_list
from controlplane.core.errors import ClusterUnavailable
from controlplane.groups import rounds
from controlplane.history.lag import looks, rolling, samples, sampling, selectors
from controlplane.history.models import LagGroup, LagMinutes, LagSample
from controlplane.history.requests.topics import topic_moved_get
from controlplane.history.selectors import history_get
from controlplane.instances.models import Instance
from controlplane.kafka.group_door import Span
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.groups.conftest import given, his  # noqa: F401  # a fixture

HOUR = 3600
LAGS = ("group_lag_messages", "group_lag_bytes", "group_lag_seconds")


@pytest.fixture
def hers(alice, instance, admin):
    return given(alice, instance, admin)


@pytest.fixture
def present(clock):
    """At the beginning of the next hour: the records' ages are of now."""
    now = int(time.time())
    clock.advance(now - now % HOUR + HOUR - clock.time.timestamp())
    return clock


@pytest.fixture
def instance_of(hers):
    return Instance.objects.unscoped("a test").get(pk=hers.instance_id)


def beat(clock, times=1, until_s=10):
    """As the task does, so often."""
    for _ in range(times):
        sampling.sample(clock=clock)
        looks.look(clock=clock)
        clock.advance(until_s)


def begun_at(clock):
    return clock.time.replace(minute=0, second=0, microsecond=0)


def values(found, name):
    (series,) = [each for each in found.series if each.metric.name == name]
    return series.values


def billing(clock, instance, minutes=1, **asked):
    start = begun_at(clock)
    return selectors.lag_get(
        instance=instance, name="billing", start=start, end=start + timedelta(minutes=minutes), clock=clock, **asked
    )


def test_a_group_has_a_step_each_ten_seconds(hers, present, instance_of):
    for offset in (102, 102, 103, 101, 104, 102):
        hers.billing.offsets[f"{hers.key}.orders", 0] = offset
        beat(present)
    found = billing(present, instance_of)
    assert (found.step_s, found.resolution_s) == (10, 10)
    assert values(found, "lag_messages") == [2, 2, 1, 3, 0, 2]
    assert values(found, "lag_bytes") == [200, 200, 100, 300, 0, 200]
    _, stamps = hers.groups.logs[f"{hers.key}.orders", 0]
    at = begun_at(present).timestamp()
    assert values(found, "lag_seconds")[0] == round(max(0, at - stamps[2] / 1000), 1)
    assert values(found, "lag_seconds")[4] == 0


def test_a_minute_has_one_row_of_the_group_and_the_looks_none(hers, present):
    beat(present, times=12)
    assert LagMinutes.objects.count() == 2, "of the first minute it is not known what the group read"
    assert hers.groups.rounds["coordinated"] == 12


def test_an_instance_in_which_nothing_changes_has_a_row_in_ten_minutes(hers, his, present):  # noqa: F811
    beat(present, times=61)
    rows = LagSample.objects.filter(instance=hers.instance_id).order_by("at")
    first = int(begun_at(present).timestamp())
    assert [(row.at - first, row.until - first) for row in rows] == [(0, 590), (600, 600)]
    assert LagSample.objects.count() == 4, "and the other tenant's likewise"


def test_ten_seconds_are_looked_at_once_however_often_that_is_asked_for(hers, present):
    assert [looks.look(clock=present) for _ in range(2)] == [1, 0]
    present.advance(9)
    assert looks.look(clock=present) == 0
    present.advance(1)
    assert looks.look(clock=present) == 1


def test_who_has_the_minute_has_its_first_ten_seconds(hers, present):
    assert sampling.sample(clock=present) == 1
    assert looks.look(clock=present) == 0
    assert LagSample.objects.count() == 1


def test_while_one_worker_looks_no_other_does(hers, present, monkeypatch):
    others = []
    round_of = looks.round_of

    def slow(*args, **named):
        present.advance(25)
        others.append(looks.look(clock=present))
        return round_of(*args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(looks, "round_of", slow)
        assert looks.look(clock=present) == 1
    assert others == [0]
    assert looks.look(clock=present) == 1, "and afterwards the ten seconds of then"


def test_a_worker_that_was_killed_while_it_looked_keeps_nobody_from_it_for_long(hers, present):
    (cluster,) = cluster_list()
    assert looks.look_begin(cluster, looks.step_now(present))
    present.advance(50)
    assert looks.look(clock=present) == 0
    present.advance(10)
    assert looks.look(clock=present) == 1


def test_a_worker_whose_clock_was_ahead_does_not_stop_the_others(hers, present):
    present.advance(24 * HOUR)
    looks.look(clock=present)
    present.advance(-24 * HOUR)
    assert looks.look(clock=present) == 1


def test_a_look_that_fails_is_a_gap_and_no_zero(hers, present, instance_of, admin):
    beat(present)
    admin.away = True
    beat(present)
    admin.away = False
    beat(present)
    assert values(billing(present, instance_of), "lag_messages") == [2, None, 2]


def test_an_error_in_a_look_leaves_the_next_ten_seconds_free(hers, present, monkeypatch):
    def broken(*_args, **_named):
        raise RuntimeError("a mistake")

    with monkeypatch.context() as patched:
        patched.setattr(looks, "round_of", broken)
        assert looks.look(clock=present) == 0
    present.advance(10)
    assert looks.look(clock=present) == 1


def test_a_cluster_that_is_away_does_not_end_the_task(hers, present, monkeypatch):
    def away(*_args, **_named):
        raise ClusterUnavailable("no broker is running")

    monkeypatch.setattr(looks, "round_of", away)
    assert looks.look(clock=present) == 0


@pytest.mark.parametrize("is_of_before", [True, False])
def test_where_a_minute_has_no_look_what_its_round_found_stands_for_all_of_it(hers, present, instance_of, is_of_before):
    """As of the time before a control plane that looks each ten seconds, and of a group that only whole rounds come to."""
    sampling.sample(clock=present)
    if is_of_before:
        LagSample.objects.all().delete()
    present.advance(60)
    hers.billing.offsets[f"{hers.key}.orders", 0] = 103
    beat(present, times=6)
    found = billing(present, instance_of, minutes=2)
    assert (found.resolution_s, values(found, "lag_messages")) == (10, [2] * 6 + [1] * 6)
    assert values(billing(present, instance_of, minutes=2, step_s=60), "lag_messages") == [2, 1]


def test_a_group_that_no_look_came_to_is_shown_in_minutes(hers, present, instance_of):
    sampling.sample(clock=present)
    LagSample.objects.all().delete()
    present.advance(60)
    found = billing(present, instance_of)
    assert (found.step_s, found.resolution_s, values(found, "lag_messages")) == (60, 60, [2])


def test_longer_times_are_of_minutes(hers, present, instance_of):
    beat(present, times=6)
    start = begun_at(present) - timedelta(hours=2)
    found = selectors.lag_get(instance=instance_of, name="billing", start=start, end=present.time, clock=present)
    assert (found.resolution_s, values(found, "lag_messages")[-1]) == (60, 2)


def test_an_instance_has_the_largest_of_each_figure_and_so_has_a_topic(hers, present, instance_of):
    """One group has most records to read, another the oldest."""
    hers.groups.logs |= {(f"{hers.key}.orders", 1): (0, [1000])}
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 101}
    hers.groups.found[f"{hers.key}.late"] = FakeGroup({(f"{hers.key}.orders", 1): 0})
    hers.groups.found[f"{hers.key}.read"] = FakeGroup({(f"{hers.key}.orders", 1): 1})
    beat(present, until_s=20)
    start = begun_at(present)
    of = {"start": start, "end": start + timedelta(seconds=20), "clock": present, "instance": instance_of}
    for found in (history_get(**of), topic_moved_get(name="orders", **of)):
        assert values(found, "group_lag_messages") == [3, None]
        assert values(found, "group_lag_bytes") == [300, None]
        assert values(found, "group_lag_seconds") == [start.timestamp() - 1, None]
    nobodys = topic_moved_get(name="another", **of)
    assert {value for name in LAGS for value in values(nobodys, name)} == {None}, "nobody reads it"


def test_a_topic_that_all_have_read_has_no_lag(hers, present, instance_of):
    hers.billing.offsets = {(f"{hers.key}.orders", 0): 104}
    beat(present)
    start = begun_at(present)
    found = topic_moved_get(
        instance=instance_of, name="orders", start=start, end=start + timedelta(seconds=10), clock=present
    )
    assert [values(found, name) for name in LAGS] == [[0], [0], [0]]


def test_lag_of_another_tenants_topics_and_groups_of_the_name_is_nobody_elses(hers, his, present, instance_of):  # noqa: F811
    his.billing.offsets[f"{his.key}.orders", 0] = 100
    beat(present)
    theirs = Instance.objects.unscoped("a test").get(pk=his.instance_id)
    start = begun_at(present)
    of = {"start": start, "end": start + timedelta(seconds=10), "clock": present}
    for instance, messages in ((instance_of, 2), (theirs, 4)):
        assert values(billing(present, instance), "lag_messages")[0] == messages
        assert values(history_get(instance=instance, **of), "group_lag_messages") == [messages]
        assert values(topic_moved_get(instance=instance, name="orders", **of), "group_lag_messages") == [messages]


def test_a_short_round_dates_little_and_what_it_has_dated_is_known_to_the_next(hers, present):
    assert rounds.SHORT.dated < rounds.MOST_DATED
    assert rounds.SHORT.sized < rounds.MOST_SIZED
    beat(present, times=6)
    assert hers.groups.rounds["oldest"] == 1


def test_a_short_round_leaves_out_whole_groups_where_there_are_too_many_partitions():
    offsets = {
        "aaaaaaaa.many": {("aaaaaaaa.t", number): 0 for number in range(5)},
        "aaaaaaaa.zoo": {("aaaaaaaa.t", 9): 0},
        "zzzzzzzz.few": {("zzzzzzzz.t", 0): 0, ("zzzzzzzz.t", 1): 0},
    }
    assert set(rounds._quickly_told(offsets, 5)) == {"zzzzzzzz.few", "aaaaaaaa.zoo"}, "each has its half"
    assert set(rounds._quickly_told(offsets, 4)) == {"zzzzzzzz.few", "aaaaaaaa.zoo"}
    assert set(rounds._quickly_told({"aaaaaaaa.many": offsets["aaaaaaaa.many"]}, 5)) == {"aaaaaaaa.many"}
    assert rounds._quickly_told(offsets, 8) == offsets


def test_where_a_group_was_left_out_nobody_says_which_lag_is_the_largest(hers, present, instance_of, monkeypatch):
    """A chart that fell whenever the worst of all was not told would be worse than a gap."""
    hers.groups.found[f"{hers.key}.late"] = FakeGroup({(f"{hers.key}.orders", 0): 100})
    beat(present)
    quickly_told = rounds._quickly_told
    with monkeypatch.context() as patched:
        patched.setattr(
            rounds,
            "_quickly_told",
            lambda offsets, most: {
                name: found for name, found in quickly_told(offsets, most).items() if not name.endswith(".late")
            },
        )
        beat(present)
    beat(present)
    start = begun_at(present)
    of = {"start": start, "end": start + timedelta(seconds=30), "clock": present, "instance": instance_of}
    assert values(history_get(**of), "group_lag_messages") == [4, None, 4]
    assert values(topic_moved_get(name="orders", **of), "group_lag_messages") == [4, None, 4]
    assert values(billing(present, instance_of), "lag_messages")[:3] == [2, 2, 2], "that one is told"


def test_a_short_round_asks_for_nothing_more_when_its_time_is_over(hers, present, monkeypatch):
    monkeypatch.setattr(rounds, "SHORT", replace(rounds.SHORT, within_s=0.0))
    monkeypatch.setattr(looks, "SHORT", rounds.SHORT)
    assert looks.look(clock=present) == 0
    assert "offsets" not in hers.groups.rounds
    assert not LagSample.objects.exists()


def test_a_look_that_took_long_leaves_the_worker_as_much_time_for_other_things(hers, present, monkeypatch):
    def stopwatch():
        return present.time.timestamp()

    monkeypatch.setattr(looks, "time", SimpleNamespace(monotonic=stopwatch))
    round_of = looks.round_of

    def slow(*args, **named):
        present.advance(15)
        return round_of(*args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(looks, "round_of", slow)
        assert looks.look(clock=present) == 1
    assert looks.look(clock=present) == 0, "the next step, which nobody has"
    present.advance(10)
    assert looks.look(clock=present) == 0
    present.advance(5)
    assert looks.look(clock=present) == 1, "as long afterwards as it has taken"


def test_an_unknown_age_is_not_hidden_by_those_that_have_read_everything():
    one = samples.Figures(3, None, None)
    assert samples.largest([one, samples.NOTHING]) == samples.Figures(3, None, 0)
    assert samples.largest([samples.NOTHING, samples.NOTHING]) == samples.NOTHING == samples.largest([])


@each_of(st.dictionaries(st.text(max_size=20), st.integers(0, 2**62), max_size=40), st.integers(1, 8))
def test_every_item_is_in_one_row_in_which_a_reader_looks_for_it(messages, in_a_row):
    items = {samples.INSTANCE: samples.NOTHING} | {
        samples.group_key(name): samples.Figures(number, number, None) for name, number in messages.items()
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(samples, "ITEMS_IN_A_ROW", in_a_row)
        texts = list(samples._texts("ins-k3v9x2qa", items))
    found = [(key, text.part) for text in texts for key in samples.orjson.loads(text.figures)]
    assert sorted(key for key, _ in found) == sorted(items)
    assert all(part in samples._rows(key) for key, part in found)
    assert max(part for _, part in found) < 2 * samples.MOST_ROWS


def test_a_thousand_groups_are_some_statements_and_one_is_read_from_a_few_rows(hers, present, instance_of):
    for number in range(1000):
        hers.groups.found[f"{hers.key}.g{number}"] = FakeGroup({(f"{hers.key}.orders", 0): 100 + number % 5})
    looks.look(clock=present)
    present.advance(10)
    for group in hers.groups.found.values():
        group.offsets = {(f"{hers.key}.orders", 0): 101}
    with CaptureQueriesContext(connection) as queries:
        assert looks.look(clock=present) == 1001
    assert len(queries) <= 8
    present.advance(10)
    rows = LagSample.objects.order_by("-at")
    assert 8 <= rows.filter(at=rows[0].at).count() <= 16
    assert max(len(row.figures) for row in rows) < 10_000
    start = begun_at(present)
    found = selectors.lag_get(
        instance=instance_of, name="g7", start=start, end=start + timedelta(seconds=20), clock=present
    )
    assert values(found, "lag_messages") == [2, 3]


def test_samples_go_after_an_hour_and_minutes_stay(hers, present):
    beat(present, times=6)
    present.advance(HOUR)
    rolling.purge(clock=present)
    assert LagSample.objects.exists(), "its run may be asked for"
    present.advance(samples.RUN_S + 180)
    rolling.purge(clock=present)
    assert (LagSample.objects.count(), LagMinutes.objects.count(), LagGroup.objects.count()) == (0, 1, 1)


def test_a_partition_without_a_leader_makes_a_group_unknown_in_that_step(hers, present, instance_of, monkeypatch):
    beat(present)
    with monkeypatch.context() as patched:
        patched.setattr(rounds, "_spans", lambda _door, _places, _until: {("another", 0): Span(0, 1)})
        beat(present)
    beat(present)
    assert values(billing(present, instance_of), "lag_messages")[:3] == [2, None, 2]


def test_by_rest_an_instance_a_topic_and_a_group_have_it(hers, alice):
    looks.look()
    base = f"/api/v1/instances/{hers.instance_id}"
    start = f"{datetime.now(UTC) - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"
    for address, name, more in (
        ("history", "group_lag_messages", {"metrics": ",".join(LAGS)}),
        ("metrics", "value", {"name": "group_lag_messages"}),
        ("topics/orders/history", "group_lag_messages", {}),
        ("groups/billing/history", "lag_messages", {}),
    ):
        found = alice.api.get(f"{base}/{address}", {"from": start, **more}).json()
        assert [each[name] for each in found["items"] if each[name] is not None] == [2], address
