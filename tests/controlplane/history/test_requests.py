"""Windows of requests become rows of every length, each counted once, whoever asks how often and whatever is the matter."""

from __future__ import annotations

import logging

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.clusters import master
from controlplane.clusters.master import requests as requests_of_master
from controlplane.core.errors import MasterUnavailable
from controlplane.history import services
from controlplane.history.models import (
    RequestDay,
    RequestGap,
    RequestHour,
    RequestMark,
    RequestMinute,
    RequestSample,
    RequestTotal,
)
from controlplane.history.requests import sampling
from controlplane.history.requests.reading import totals_of
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES
from controlplane.instances.models import Instance
from quota.contracts.requests import RequestCounts

from .conftest import NOON, counts_of, move

LONGER = (RequestMinute, RequestHour, RequestDay)


@pytest.fixture
def told(instance, flow_master):
    """What the master says, by the beginning of a window."""
    flow_master.windows = {instance.id: {}}
    return flow_master.windows[instance.id]


def requests(model):
    """By the beginning of a row."""
    return {row.at - NOON: RequestCounts.from_text(row.counts).requests for row in model.objects.order_by("at")}


def sampled(clock, at):
    move(clock, at)
    return sampling.sample(clock=clock)


def test_a_window_is_taken_once_it_has_settled(told, at_noon):
    told[NOON] = counts_of(3).to_text()
    assert sampled(at_noon, NOON + 19) == 0
    assert sampled(at_noon, NOON + 20) == 1
    assert requests(RequestSample) == {0: 3}


def test_it_is_taken_once_and_nobody_is_asked_again(told, at_noon, flow_master):
    told[NOON] = counts_of(3).to_text()
    sampled(at_noon, NOON + 20)
    asked = flow_master.asked
    assert sampled(at_noon, NOON + 29) == 0
    assert flow_master.asked == asked
    sampled(at_noon, NOON + 80)
    assert requests(RequestMinute) == {0: 3}


def test_a_master_that_was_away_costs_nothing_if_its_brokers_tell_it_again(told, at_noon, flow_master, instance):
    told[NOON] = counts_of(1).to_text()
    sampled(at_noon, NOON + 20)
    flow_master.windows = None
    told |= {NOON + 10: counts_of(2).to_text(), NOON + 20: counts_of(4).to_text()}
    assert sampled(at_noon, NOON + 40) == 0
    flow_master.windows = {instance.id: told}
    assert sampled(at_noon, NOON + 45) == 2
    assert requests(RequestSample) == {0: 1, 10: 2, 20: 4}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.integers(0, 100), st.integers(1, 5), max_size=30), st.lists(st.integers(1, 25), min_size=5))
def test_rows_of_every_length_and_totals_are_the_sums_of_all_windows(told, at_noon, instance, windows, pauses):
    for model in (RequestSample, *LONGER, RequestTotal, RequestMark):
        model.objects.all().delete()
    told.clear()
    told |= {NOON + 10 * number: counts_of(count).to_text() for number, count in windows.items()}
    move(at_noon, NOON)
    for seconds in [*pauses, 1_200]:
        sampled(at_noon, int(at_noon.time.timestamp()) + seconds)
    for model, step_s in zip(LONGER, (60, 3600, 86_400), strict=True):
        wanted = {}
        for number, count in windows.items():
            at = (NOON + 10 * number) // step_s * step_s - NOON
            wanted[at] = wanted.get(at, 0) + count
        assert requests(model) == dict(sorted(wanted.items()))
    total = totals_of(instance.id)
    assert (0 if total is None else total.requests) == sum(windows.values())


def test_totals_have_what_is_not_in_a_minute_yet(told, at_noon, instance):
    assert totals_of(instance.id) is None
    told |= {NOON: counts_of(1).to_text(), NOON + 50: counts_of(2).to_text(), NOON + 60: counts_of(4).to_text()}
    seen = []
    for at in (20, 70, 80):
        sampled(at_noon, NOON + at)
        seen.append(totals_of(instance.id).requests)
    assert seen == [1, 3, 7]
    assert RequestTotal.objects.get().until == NOON + 60


def test_of_two_workers_one_counts(told, at_noon, monkeypatch, instance):
    told |= {NOON + 10 * number: counts_of(1).to_text() for number in range(6)}
    ask = master.requests

    def other_worker_is_quicker(*where):
        with monkeypatch.context() as patched:
            patched.setattr(master, "requests", ask)
            sampling.sample(clock=at_noon)
        return ask(*where)

    monkeypatch.setattr(master, "requests", other_worker_is_quicker)
    sampled(at_noon, NOON + 75)
    assert requests(RequestMinute) == {0: 6}
    assert totals_of(instance.id).requests == 6


@pytest.mark.parametrize("text", ["{", '{"Produce": [1]}', '{"_carried": [5000, 0, 1]}', 7, None])
def test_what_nobody_understands_is_left_out_and_the_rest_is_kept(told, at_noon, text, caplog):
    told |= {NOON: counts_of(3).to_text(), NOON + 10: text}
    with caplog.at_level(logging.WARNING):
        assert sampled(at_noon, NOON + 30) == 2
    assert requests(RequestSample) == {0: 3, 10: 0}
    row = RequestSample.objects.get(at=NOON + 10)
    assert (row.topics, row.brokers) == (None, None), "something was asked, and what is not known"
    assert RequestCounts.from_text(row.counts).carried_windows == 0
    assert RequestGap.objects.count() == 0
    assert "no requests of" in caplog.text


def test_an_instance_that_has_stopped_meanwhile_has_its_last_minute(told, at_noon, instance):
    told[NOON] = counts_of(3).to_text()
    sampled(at_noon, NOON + 20)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(state="isolated")
    sampled(at_noon, NOON + 90)
    assert requests(RequestMinute) == {0: 3}


def test_clocks_that_were_ahead_have_nothing_counted_twice(told, at_noon, instance):
    told |= {NOON + 10 * number: counts_of(1).to_text() for number in range(20)}
    assert sampled(at_noon, NOON + 210) == 20
    assert sampled(at_noon, NOON + 50) == 0
    assert sampled(at_noon, NOON + 300) == 0, "of windows that were counted nothing is counted again"
    assert requests(RequestMinute) == {0: 6, 60: 6, 120: 6, 180: 2}
    assert totals_of(instance.id).requests == 20
    assert gaps() == [(40, 240)]


def test_a_worker_whose_clock_was_ahead_while_no_instance_ran_keeps_nobody_waiting(told, at_noon, instance):
    ours = Instance.objects.unscoped("a test").filter(pk=instance.pk)
    ours.update(state="isolated")
    sampled(at_noon, NOON + 86_400)
    ours.update(state="running")
    told |= {NOON + 10 * number: counts_of(1).to_text() for number in range(40)}
    sampled(at_noon, NOON + 10)
    sampled(at_noon, NOON + 400)
    assert (requests(RequestMinute), gaps()) == ({60 * number: 6 for number in range(1, 6)}, [(0, 60)])


@pytest.mark.parametrize("ahead_s", [15, 100, 86_400])
def test_a_worker_whose_clock_is_ahead_passes_over_nothing(told, at_noon, flow_master, ahead_s):
    told[NOON] = counts_of(1).to_text()
    flow_master.told = {1: NOON + 10, 2: NOON + 10}
    assert sampled(at_noon, NOON + 10 + ahead_s) == 1
    told[NOON + 10] = counts_of(2).to_text()
    flow_master.told = {1: NOON + 20, 2: NOON + 20}
    assert sampled(at_noon, NOON + 30) == 1
    assert (requests(RequestSample), gaps()) == ({0: 1, 10: 2}, [])


def gaps():
    return [(gap.at - NOON, gap.until - NOON) for gap in RequestGap.objects.order_by("at")]


def test_a_window_is_taken_when_every_broker_has_told_it(told, at_noon, flow_master):
    told[NOON] = counts_of(1).to_text()
    flow_master.told = {1: NOON + 10, 2: NOON + 10, 3: NOON + 10}
    sampled(at_noon, NOON + 20)
    told[NOON + 10] = counts_of(2).to_text()
    for at in range(30, 60, 10):
        flow_master.told = {1: NOON + at - 10, 2: NOON + at, 3: NOON + 10}
        assert sampled(at_noon, NOON + at) == 0
    told[NOON + 10] = counts_of(5).to_text()
    flow_master.told = dict.fromkeys((1, 2, 3), NOON + 60)
    sampled(at_noon, NOON + 60)
    assert (requests(RequestSample), gaps()) == ({0: 1, 10: 5}, [])


@pytest.mark.parametrize("silent", [NOON + 10, 0])
def test_what_a_broker_has_not_told_within_a_minute_is_a_gap(told, at_noon, flow_master, silent, caplog):
    flow_master.told = {1: NOON + 10, 2: NOON + 10}
    told |= {NOON + 10 * number: counts_of(1).to_text() for number in range(30)}
    sampled(at_noon, NOON + 20)
    for at in range(30, 130, 5):
        flow_master.told = {1: NOON + at // 10 * 10, 2: silent}
        sampled(at_noon, NOON + at)
    assert (requests(RequestSample), gaps()) == ({0: 1}, [(10, 70)])
    assert "requests of" in caplog.text
    flow_master.told = {1: NOON + 130, 2: NOON + 130}
    sampled(at_noon, NOON + 130)
    assert (requests(RequestSample), gaps()) == (dict.fromkeys((0, 80, 90, 100, 110), 1), [(10, 80)])
    assert requests(RequestMinute) == {0: 1, 60: 4}


def test_a_worker_that_was_away_for_long_leaves_a_gap_where_windows_are_not_all_kept(told, at_noon, flow_master):
    told |= {NOON + 10 * number: counts_of(1).to_text() for number in range(100)}
    for at in (20, 60, 600):
        flow_master.told = {1: NOON + at}
        sampled(at_noon, NOON + at)
    assert sorted(requests(RequestSample)) == [0, 10, 20, 30, 40, 550, 560, 570, 580]
    assert gaps() == [(50, 550)]


def test_before_the_first_window_nothing_is_missing(told, at_noon, flow_master):
    flow_master.told = {1: NOON}
    sampled(at_noon, NOON)
    assert (RequestMark.objects.get().taken, gaps()) == (NOON - 20, [])


def test_while_no_broker_says_what_it_has_told_nothing_is_given_up(told, at_noon, flow_master):
    told[NOON] = counts_of(1).to_text()
    flow_master.told = {1: NOON + 10}
    sampled(at_noon, NOON + 20)
    flow_master.told = {1: 0, 2: 0}
    sampled(at_noon, NOON + 3_600)
    assert (RequestMark.objects.get().taken, gaps()) == (NOON, [])


def test_a_broker_whose_clock_is_far_ahead_makes_gaps_and_moves_no_mark_beyond_the_present(told, at_noon, flow_master):
    told[NOON] = counts_of(1).to_text()
    flow_master.told = {1: NOON + 10, 2: NOON + 10}
    sampled(at_noon, NOON + 20)
    for at in range(30, 60, 10):
        flow_master.told = {1: NOON + at, 2: NOON + 3_600}
        sampled(at_noon, NOON + at)
    assert (requests(RequestSample), gaps()) == ({0: 1}, [(10, 40)])


def test_many_instances_are_asked_for_in_portions_and_no_more_of_them_than_is_of_use(
    told, at_noon, flow_master, monkeypatch, instance
):
    monkeypatch.setattr(sampling, "ASKED_AT_ONCE", 1)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).get()
    other = Instance.objects.unscoped("a test").get(pk=instance.pk)
    other.pk, other.name, other._state.adding = "ins-zzzzzzzz", "other", True
    other.save()
    flow_master.told = {1: NOON + 10}
    told[NOON] = counts_of(1).to_text()
    flow_master.windows["ins-zzzzzzzz"] = {NOON: counts_of(2).to_text()}
    sampled(at_noon, NOON + 20)
    assert {row.instance: row.at for row in RequestSample.objects.all()} == {instance.pk: NOON, "ins-zzzzzzzz": NOON}
    asked = flow_master.asked
    sampled(at_noon, NOON + 30)
    assert flow_master.asked == asked + 1, "the next window is not told yet"


@pytest.mark.parametrize(("count", "portions"), [(3, [20, 20, 5]), (8, [10, 10, 10, 10, 5]), (200, [1] * 45)])
def test_of_many_brokers_fewer_instances_are_asked_for_at_once(at_noon, monkeypatch, instance, count, portions):
    """There is a text of each, and an answer has an end."""
    asked = []

    def requests(_cluster, names, at):
        asked.append(len(names))
        return master.Window({1: at + 20}, {})

    monkeypatch.setattr(master, "requests", requests)
    monkeypatch.setattr(sampling, "broker_count", lambda _cluster: count)
    sampling._told(instance.cluster, [f"ins-{number}" for number in range(45)], NOON)
    assert asked == portions


def test_a_worker_of_the_release_before_writes_totals(instance):
    """During an upgrade both run: it says nothing of what it does not know."""
    table = RequestTotal._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (instance, until, counts) VALUES (%s, %s, %s)",
            [instance.id, NOON, counts_of(3).to_text()],
        )
    assert RequestTotal.objects.get().topics == "{}"


def test_what_brokers_told_is_added_up(told, at_noon, monkeypatch, instance, caplog):
    texts = [counts_of(3, errors={"A": 1}).to_text(), "{", counts_of(4, errors={"A": 2}).to_text()]
    monkeypatch.setattr(master, "requests", lambda *_asked: master.Window({1: NOON + 10}, {instance.id: texts}))
    RequestMark.objects.create(name=sampling.mark_name(instance.cluster_id), taken=NOON - 10, rolled=NOON)
    assert sampled(at_noon, NOON + 20) == 1
    counts = RequestCounts.from_text(RequestSample.objects.get().counts)
    assert (counts.requests, counts.errors) == (7, {"A": 3})
    assert f"no requests of {instance.id}" in caplog.text


def test_of_a_cluster_that_was_away_for_long_the_last_minute_is_added_up_once(told, at_noon, instance):
    told[NOON] = counts_of(1).to_text()
    sampled(at_noon, NOON + 20)
    move(at_noon, NOON + 2_000)
    for _ in range(2):
        sampling.finish(clock=at_noon)
    assert requests(RequestMinute) == {0: 1}
    told |= {NOON + 10: counts_of(2).to_text(), NOON + 60: counts_of(4).to_text()}
    sampled(at_noon, NOON + 2_100)
    assert [requests(model) for model in (RequestSample, RequestMinute, RequestHour)] == [
        {0: 1, 60: 4},
        {0: 1, 60: 4},
        {0: 5},
    ], "what was told too late of the minute is in no row, rather than in some"
    assert totals_of(instance.id).requests == 5


@pytest.mark.parametrize(
    "document",
    [
        {"learning": True, "until": {"1": NOON}, "instances": []},
        {"until": {}, "instances": []},
        {"until": {"1": NOON}},
        {"until": [1], "instances": []},
        {"until": {"1": "noon"}, "instances": []},
        {"until": {"1": NOON}, "instances": [{}]},
        {"until": {"1": NOON}, "instances": [7]},
        {},
    ],
)
def test_a_master_that_has_not_heard_of_its_brokers_or_is_not_legible_is_none(monkeypatch, document):
    monkeypatch.setattr(master, "_ask", lambda _cluster, _path: document)
    with pytest.raises(MasterUnavailable):
        requests_of_master(None, ["ins-k3v9x2qa"], 0)


def test_the_master_is_asked_for_one_window(monkeypatch):
    asked = []

    def ask(_cluster, path):
        asked.append(path)
        until = {"1": NOON + 10, "2": None}
        return {"learning": False, "until": until, "instances": [{"instance": "a", "texts": ["{}"]}]}

    monkeypatch.setattr(master, "_ask", ask)
    assert requests_of_master(None, ["a", "b"], NOON) == master.Window({1: NOON + 10, 2: 0}, {"a": ["{}"]})
    assert asked == [f"/v1/instances/a,b/requests/{NOON}"]


def test_rows_go_when_nobody_may_ask_for_them_and_none_before_it_was_added_up(told, at_noon, instance):
    told[NOON] = counts_of(1).to_text()
    sampled(at_noon, NOON + 20)
    move(at_noon, NOON + 1_200)
    services.purge(clock=at_noon)
    assert (requests(RequestSample), requests(RequestMinute)) == ({0: 1}, {}), "more of its minute may be told"
    move(at_noon, NOON + SAMPLES.kept_s + SAMPLES.grace_s + 60)
    services.purge(clock=at_noon)
    assert totals_of(instance.id).requests == 1
    services.purge(clock=at_noon)
    assert (requests(RequestSample), requests(RequestMinute)) == ({}, {0: 1})
    move(at_noon, NOON + MINUTES.kept_s + MINUTES.grace_s + 120)
    services.purge(clock=at_noon)
    assert (requests(RequestMinute), len(requests(RequestHour))) == ({}, 1)
    move(at_noon, NOON + HOURS.kept_s + HOURS.grace_s + 2 * 86_400)
    services.purge(clock=at_noon)
    assert (requests(RequestHour), requests(RequestDay), RequestTotal.objects.count()) == ({}, {}, 0)


@pytest.mark.django_db
def test_gaps_go_with_the_longest_rows(at_noon):
    for at in (NOON, NOON + 86_400):
        RequestGap.objects.create(name="cluster 1", at=at, until=at + 10)
    move(at_noon, NOON + HOURS.kept_s + HOURS.grace_s + 60)
    services.purge(clock=at_noon)
    assert gaps() == [(86_400, 86_410)]
