"""Requests by API with errors and latencies: by REST, in the history, and for a tenant's Prometheus."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from django.core.cache import cache

from controlplane.core import clock as clocks
from controlplane.history import api
from controlplane.history.exposition import TOLD_BOUNDS
from controlplane.history.models import RequestGap
from controlplane.history.now import exposition_get
from controlplane.history.requests import sampling
from tests.controlplane.test_instances_api import URL

from .conftest import NOON, counts_of, keep, keep_gaps, keep_requests, move, sample

FIRST = "ins-k3v9x2qa"


@pytest.fixture
def here(at_noon, monkeypatch):
    """The clock of REST, too, an hour after noon."""
    monkeypatch.setattr(api, "SYSTEM_CLOCK", at_noon)
    monkeypatch.setattr(clocks.SystemClock, "now", lambda _self: at_noon.now())
    move(at_noon, NOON + 3600)
    return at_noon


@pytest.fixture
def asked(alice, instance, here):
    def asked(path="requests", **query):
        return alice.api.get(f"{URL}/{instance.id}/{path}", {key.rstrip("_"): value for key, value in query.items()})

    return asked


def text(at):
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def both():
    """Three produces that waited for replicas, and a fetch with two errors."""
    made = counts_of(3, took_us=5_000, waited_us=4_000)
    made.add(counts_of(1, api="Fetch", errors={"NOT_LEADER_OR_FOLLOWER": 2}))
    return made


def test_apis_have_their_errors_and_latencies_by_phase(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    keep_requests(instance, {NOON + 100: both()}, known_to=NOON + 3600)
    found = asked().json()
    assert (found["step_s"], found["resolution_s"], found["next"]) == (10, 10, None)
    produce, fetch = found["items"]
    assert (produce["api"], produce["requests"], produce["errors"], produce["error_codes"]) == ("Produce", 3, 0, {})
    assert produce["requests_per_s"] == pytest.approx(3 / 3600, abs=0.001)
    latency = produce["latency_ms"]
    assert latency["total"]["p50"] == pytest.approx(5.0, rel=0.3)
    assert latency["local"]["p99"] == pytest.approx(1.0, rel=0.3)
    assert latency["remote"]["p999"] == pytest.approx(4.0, rel=0.3)
    assert latency["throttle"]["p999"] == 0
    assert (fetch["api"], fetch["errors"], fetch["error_codes"]) == ("Fetch", 2, {"NOT_LEADER_OR_FOLLOWER": 2})
    step = found["steps"][10]
    assert step == {
        "time": text(NOON + 100),
        "requests_per_s": {"Fetch": 0.1, "Produce": 0.3},
        "errors_per_s": {"NOT_LEADER_OR_FOLLOWER": 0.2},
    }
    assert found["steps"][11]["requests_per_s"] == {}


def test_what_is_not_known_is_null_and_what_was_not_asked_is_nothing(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(100)])
    keep_requests(instance, {NOON + 2_000: both()}, known_to=NOON + 3_000)
    steps = {step["time"]: step["requests_per_s"] for step in asked().json()["steps"]}
    assert steps[text(NOON + 990)] == {}
    assert steps[text(NOON + 1_000)] is None, "no master was asked"
    assert steps[text(NOON + 2_000)] == {"Fetch": 0.1, "Produce": 0.3}
    assert steps[text(NOON + 3_000)] is None, "it has not settled"


def test_what_a_broker_has_not_told_is_null_in_steps_of_every_length_and_no_quiet_time(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    keep_requests(instance, {NOON + 10: both(), NOON + 60: both()}, known_to=NOON + 3_600)
    keep_gaps(instance, (NOON + 20, NOON + 60), (NOON + 30, NOON + 50), (NOON + 120, NOON + 240))
    found = asked().json()
    steps = {step["time"]: step["requests_per_s"] for step in found["steps"]}
    assert [steps[text(NOON + at)] for at in range(0, 80, 10)] == [
        {}, {"Fetch": 0.1, "Produce": 0.3}, None, None, None, None, {"Fetch": 0.1, "Produce": 0.3}, {},
    ]  # fmt: skip
    assert found["items"][0]["requests_per_s"] == pytest.approx(6 / (3_600 - 160), abs=0.001)
    steps = asked(step=60).json()["steps"]
    assert steps[0]["requests_per_s"] == {"Fetch": round(1 / 20, 3), "Produce": round(3 / 20, 3)}
    assert [step["requests_per_s"] is None for step in steps[:6]] == [False, False, True, True, False, False]
    history = asked("history", step=60).json()["items"]
    assert [item["requests_per_s"] for item in history[:5]] == [0.2, 0.067, None, None, 0]


def test_a_gap_of_another_cluster_is_nobody_elses(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    keep_requests(instance, {}, known_to=NOON + 3_600)
    RequestGap.objects.create(name=sampling.mark_name(instance.cluster_id + 1), at=NOON, until=NOON + 3_600)
    assert {step["requests_per_s"] is None for step in asked().json()["steps"]} == {False}


def test_a_range_without_anything_is_an_empty_list(asked):
    found = asked(from_=text(NOON - 86_400)).json()
    assert found["items"] == []
    assert {step["requests_per_s"] is None for step in found["steps"]} == {True}


def test_metrics_of_the_history_are_made_of_the_same_counts(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    keep_requests(instance, {NOON + 100: both(), NOON + 110: both()}, known_to=NOON + 3600)
    (item,) = [each for each in asked("history", step=60).json()["items"] if each["time"] == text(NOON + 60)]
    assert item["requests_per_s"] == pytest.approx(8 / 60, abs=0.001)
    assert item["errors_per_s"] == pytest.approx(4 / 60, abs=0.001)
    assert item["produce_requests_per_s"] == pytest.approx(0.1)
    assert item["produce_p99_ms"] == pytest.approx(5.0, rel=0.3)
    assert item["fetch_p50_ms"] == pytest.approx(1.0, rel=0.3)
    quiet = asked("history", step=60).json()["items"][0]
    assert (quiet["requests_per_s"], quiet["produce_p99_ms"]) == (0, None)


def test_of_a_fetch_the_wait_for_records_is_no_latency(asked, instance):
    keep([sample(NOON, instance.id)])
    keep_requests(instance, {NOON: counts_of(5, api="Fetch", took_us=500_000, waited_us=499_000)}, known_to=NOON + 60)
    item = asked("history").json()["items"][0]
    assert item["fetch_p99_ms"] == pytest.approx(1.0, rel=0.3)


@pytest.mark.parametrize("step", [600, 3600, 86_400])
def test_longer_steps_come_from_longer_rows_and_are_the_same_sums(asked, instance, here, flow_master, step):
    flow_master.windows = {instance.id: {}}
    for number in range(0, 359, 7):
        flow_master.windows[instance.id][NOON + 10 * number] = counts_of(2).to_text()
    move(here, NOON + 3700)
    sampling.sample(clock=here)
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    found = asked(from_=text(NOON - 5 * 86_400), to=text(NOON + 3600), step=step).json()
    assert found["items"][0]["requests"] == 2 * len(range(0, 359, 7))


def test_another_organisations_requests_are_not_there(charlie, viewer, instance, here):
    foreign = charlie.api.get(f"{URL}/{instance.id}/requests")
    missing = charlie.api.get(f"{URL}/{FIRST}/requests")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content.replace(instance.id.encode(), b"ID") == missing.content.replace(FIRST.encode(), b"ID")
    assert viewer.api.get(f"{URL}/{instance.id}/requests").status_code == 200


def test_requests_of_others_are_not_in_it(asked, instance):
    keep([sample(NOON, instance.id)])
    keep_requests(instance, {NOON: both()}, known_to=NOON + 60)
    sampling.RequestSample.objects.create(instance="ins-another1", at=NOON, windows=1, counts=counts_of(99).to_text())
    assert sum(each["requests"] for each in asked().json()["items"]) == 4


# --- Prometheus -------------------------------------------------------------------------------------------------------


@pytest.fixture
def scraped(alice, instance, at_noon):
    """By name and labels, in the order of the text."""

    def scraped():
        cache.clear()
        said = exposition_get(organisation=alice.organisation, instance_id=instance.id, clock=at_noon)
        found = {}
        for line in said.splitlines():
            if not line.startswith("#"):
                name, labels, value = re.fullmatch(r"(\w+)\{(.*)\} (\S+)", line).groups()
                key = (name, tuple(re.findall(r'(\w+)="([^"]*)"', labels)))
                assert key not in found
                found[key] = float(value)
        return found, said

    return scraped


def of(found, name, **labels):
    return {
        dict(key[1]).get("le", ""): value
        for key, value in found.items()
        if key[0] == f"sluice_{name}" and labels.items() <= dict(key[1]).items()
    }


def test_requests_are_counters_and_histograms(scraped, instance):
    keep_requests(instance, {NOON: both()}, known_to=NOON + 10)
    found, said = scraped()
    assert of(found, "requests_total", api="Produce") == {"": 3}
    assert of(found, "request_errors_total", api="Fetch", error="NOT_LEADER_OR_FOLLOWER") == {"": 2}
    assert "# TYPE sluice_requests_total counter" in said
    assert "# TYPE sluice_request_duration_seconds histogram" in said
    buckets = of(found, "request_duration_seconds_bucket", api="Produce", phase="remote")
    assert list(buckets)[-1] == "+Inf"
    assert len(buckets) == len(TOLD_BOUNDS) + 1
    assert list(buckets.values()) == sorted(buckets.values())
    assert (buckets["0.0025"], buckets["0.005"], buckets["+Inf"]) == (0, 3, 3)
    assert of(found, "request_duration_seconds_count", api="Produce", phase="remote") == {"": 3}
    assert of(found, "request_duration_seconds_sum", api="Produce", phase="remote") == {"": 0.012}


def test_counters_only_grow_also_when_minutes_are_added_up(scraped, instance, flow_master, at_noon):
    flow_master.windows = {instance.id: {NOON + 10 * number: counts_of(1).to_text() for number in range(20)}}
    seen = []
    for at in range(20, 220, 10):
        move(at_noon, NOON + at)
        sampling.sample(clock=at_noon)
        seen.append(of(scraped()[0], "requests_total", api="Produce")[""])
    assert seen == list(range(1, 21))


def test_other_apis_have_their_whole_time_only(scraped, instance):
    keep_requests(instance, {NOON: counts_of(2, api="Metadata")}, known_to=NOON + 10)
    found, _ = scraped()
    assert {dict(labels)["phase"] for name, labels in found if name.endswith("_count")} == {"total"}


def test_where_none_is_known_nothing_is_told(scraped):
    assert scraped() == ({}, "")


def test_told_bounds_are_round():
    assert [bound for _, bound in TOLD_BOUNDS][:5] == [100, 250, 500, 1_000, 2_500]
    assert len(TOLD_BOUNDS) == 19
