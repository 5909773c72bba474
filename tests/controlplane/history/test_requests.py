"""Windows of requests become rows of every length, each counted once, whoever asks how often and whatever is the matter."""

from __future__ import annotations

import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.clusters import master
from controlplane.clusters.master import requests as requests_of_master
from controlplane.core.errors import MasterUnavailable
from controlplane.history import services
from controlplane.history.models import (
    RequestDay,
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
@given(st.dictionaries(st.integers(0, 300), st.integers(1, 5), max_size=30), st.lists(st.integers(1, 25), min_size=5))
def test_rows_of_every_length_and_totals_are_the_sums_of_all_windows(told, at_noon, instance, windows, pauses):
    for model in (RequestSample, *LONGER, RequestTotal, RequestMark):
        model.objects.all().delete()
    told.clear()
    told |= {NOON + 10 * number: counts_of(count).to_text() for number, count in windows.items()}
    move(at_noon, NOON)
    for seconds in [*pauses, 4_000]:
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


@pytest.mark.parametrize("text", ["{", '{"Produce": [1]}', 7, None])
def test_what_nobody_understands_is_left_out_and_the_rest_is_kept(told, at_noon, text, caplog):
    told |= {NOON: counts_of(3).to_text(), NOON + 10: text}
    with caplog.at_level(logging.WARNING):
        assert sampled(at_noon, NOON + 30) == 1
    assert requests(RequestSample) == {0: 3}
    assert "no requests of" in caplog.text


def test_an_instance_that_has_stopped_meanwhile_has_its_last_minute(told, at_noon, instance):
    told[NOON] = counts_of(3).to_text()
    sampled(at_noon, NOON + 20)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(state="isolated")
    sampled(at_noon, NOON + 90)
    assert requests(RequestMinute) == {0: 3}


def test_a_clock_that_was_ahead_has_nothing_counted_twice(told, at_noon, instance):
    told |= {NOON + 10 * number: counts_of(1).to_text() for number in range(4)}
    assert sampled(at_noon, NOON + 86_400) == 4
    assert sampled(at_noon, NOON + 50) == 0
    told |= {NOON + 10 * number: counts_of(1).to_text() for number in range(4, 18)}
    assert sampled(at_noon, NOON + 200) == 12
    assert requests(RequestMinute) == {0: 4, 60: 6, 120: 6}
    assert requests(RequestHour) == {0: 16}
    assert totals_of(instance.id).requests == 16


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


def test_nothing_is_taken_of_windows_that_do_not_begin_where_windows_begin(told, at_noon):
    told[NOON + 3] = counts_of(3).to_text()
    assert sampled(at_noon, NOON + 60) == 0


@pytest.mark.parametrize("document", [{"learning": True, "brokers": [1], "instances": []}, {"brokers": []}, {}])
def test_a_master_that_has_not_heard_of_its_brokers_is_none(monkeypatch, document):
    monkeypatch.setattr(master, "_ask", lambda _cluster, _path: document)
    with pytest.raises(MasterUnavailable):
        requests_of_master(None, ["ins-k3v9x2qa"], 0)


def test_the_master_is_asked_for_what_is_later(monkeypatch):
    asked = []

    def ask(_cluster, path):
        asked.append(path)
        return {"learning": False, "brokers": [1], "instances": [{"instance": "a", "windows": []}]}

    monkeypatch.setattr(master, "_ask", ask)
    assert requests_of_master(None, ["a", "b"], NOON) == [{"instance": "a", "windows": []}]
    assert asked == [f"/v1/instances/a,b/requests/{NOON}"]
    assert requests_of_master(None, [], NOON) == []


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
