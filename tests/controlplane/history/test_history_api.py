"""The figures of an instance over time, by REST."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from controlplane.core import clock as clocks
from controlplane.history import api, selectors, services
from controlplane.history.metrics import COUNTED, METRICS, OF_GROUPS
from controlplane.history.models import Hour, Minute
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES, RangeError, plan_of
from tests.controlplane.test_instances_api import URL, problem

from .conftest import MIB, NOON, counts_of, keep, keep_requests, keep_waits, move, rows_of, sample

DAY = 86_400
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
    def asked(path="history", **query):
        return alice.api.get(
            f"{URL}/{instance.id}/{path}?{urlencode({key.rstrip('_'): value for key, value in query.items()})}"
        )

    return asked


def text(at):
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def test_the_last_hour_comes_in_steps_of_ten_seconds_with_gaps_as_null(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360) if number != 3])
    found = asked().json()
    assert {name: found[name] for name in ("start", "end", "step_s", "resolution_s", "next")} == {
        "start": text(NOON), "end": text(NOON + 3600), "step_s": 10, "resolution_s": 10, "next": None,
    }  # fmt: skip
    assert len(found["items"]) == 360
    assert [each["time"] for each in found["items"][:2]] == [text(NOON), text(NOON + 10)]
    assert {name for name, value in found["items"][3].items() if value is not None} == {"time"}
    assert found["items"][4] == {
        "time": text(NOON + 40),
        "produce_bytes_per_s": MIB, "produce_bytes_per_s_max": MIB,
        "produce_limit_bytes_per_s": 5 * MIB, "produce_allocated_bytes_per_s": 4 * MIB,
        "produce_throttled_ms_per_s": 0, "produce_throttled_ms_per_s_max": 0,
        "consume_bytes_per_s": 2 * MIB, "consume_bytes_per_s_max": 2 * MIB,
        "consume_limit_bytes_per_s": 5 * MIB, "consume_allocated_bytes_per_s": 5 * MIB,
        "consume_throttled_ms_per_s": 0, "consume_throttled_ms_per_s_max": 0,
        "storage_used_bytes": 10**9, "storage_used_bytes_max": 10**9, "storage_limit_bytes": 10**10,
        "connections": 7, "connections_max": 7,
        **dict.fromkeys(COUNTED), **dict.fromkeys(OF_GROUPS),
    }  # fmt: skip


def test_metrics_say_their_units_and_only_those_asked_for_come(asked, instance):
    keep([sample(NOON, instance.id)])
    found = asked(metrics="connections, storage_limit_bytes").json()
    assert found["metrics"] == [
        {"name": "connections", "unit": "connections", "maximum": "connections_max"},
        {"name": "storage_limit_bytes", "unit": "bytes", "maximum": None},
    ]
    assert found["items"][0] == {
        "time": text(NOON), "connections": 7, "connections_max": 7, "storage_limit_bytes": 10**10,
    }  # fmt: skip


def test_a_step_has_average_maximum_and_the_last_limit(asked, instance):
    keep(
        sample(
            NOON + 10 * number, instance.id, produce_bytes_per_s=number, produce_limit_bytes_per_s=number, connections=2
        )
        for number in range(6)
    )
    (first, *_) = asked(step=60).json()["items"]
    assert [first[f"produce_{name}"] for name in ("bytes_per_s", "bytes_per_s_max", "limit_bytes_per_s")] == [2, 5, 5]
    assert first["connections"] == 2


def test_throttled_time_of_samples_comes_from_intervals_and_is_not_known_at_once(asked, instance):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    keep_waits([(instance.id, "produce", 1000 * (NOON + 1005), 1000 * (NOON + 1025), 10_000)])
    rates = [each["produce_throttled_ms_per_s"] for each in asked().json()["items"]]
    assert rates[99:104] == [0, 250, 500, 250, 0]
    assert rates[-4:] == [0, None, None, None]


def test_throttled_time_is_known_of_steps_without_a_sample_too(asked, instance):
    keep([sample(NOON, instance.id)])
    keep_waits([(instance.id, "produce", 1000 * (NOON + 25), 1000 * (NOON + 35), 6_000)])
    items = asked().json()["items"]
    assert [each["produce_throttled_ms_per_s"] for each in items[:5]] == [0, None, 300, 300, None]
    assert {name for name, value in items[2].items() if value is not None} == {
        "time", "produce_throttled_ms_per_s", "produce_throttled_ms_per_s_max",
    }  # fmt: skip
    longer = [each["produce_throttled_ms_per_s"] for each in asked(step=20).json()["items"]]
    assert longer[:3] == [0, 300, None]


def test_throttled_time_of_minutes_is_a_share_of_the_minutes_that_are_known(asked, instance, here):
    keep([sample(NOON, instance.id), sample(NOON + 120, instance.id)])
    keep_waits([(instance.id, "consume", 1000 * NOON, 1000 * (NOON + 60), 30_000)])
    services.roll_up(clock=here)
    (first, *_) = asked(from_=text(NOON - 3600), step=3600).json()["items"][1:]
    assert (first["consume_throttled_ms_per_s"], first["consume_throttled_ms_per_s_max"]) == (250, 500)


def test_older_than_an_hour_comes_from_minutes_and_older_than_15_days_from_hours(asked, instance, here):
    keep([sample(NOON + 60 * number, instance.id, produce_bytes_per_s=number) for number in range(60)])
    services.roll_up(clock=here)
    found = asked(from_=text(NOON - 2 * 3600)).json()
    assert (found["resolution_s"], found["step_s"], found["items"][-1]["produce_bytes_per_s"]) == (60, 60, 59)
    found = asked(from_=text(NOON - 20 * DAY)).json()
    assert (found["resolution_s"], found["step_s"]) == (3600, 3600)
    assert (found["items"][-1]["produce_bytes_per_s"], found["items"][-1]["produce_bytes_per_s_max"]) == (30, 59)


@pytest.mark.parametrize(
    ("seconds", "step", "resolution"),
    [
        (600, 10, SAMPLES), (3600, 10, SAMPLES), (3601 + 120, 60, MINUTES), (6 * 3600, 60, MINUTES), (DAY, 120, MINUTES),
        (7 * DAY, 900, MINUTES), (15 * DAY, 1800, MINUTES), (16 * DAY, 3600, HOURS), (400 * DAY, 43_200, HOURS),
    ],
)  # fmt: skip
def test_the_resolution_that_fits_is_chosen(seconds, step, resolution):
    plan = plan_of(NOON - seconds, NOON, None, NOON)
    assert (plan.step_s, plan.resolution) == (step, resolution)
    assert len(plan.moments) <= 1000
    assert plan.start <= NOON - seconds < plan.start + step
    assert plan.end - step < NOON <= plan.end


@pytest.mark.parametrize("seconds", range(10, 400 * DAY, 977_771))
def test_every_range_has_a_plan_of_at_most_a_thousand_points(seconds):
    plan = plan_of(NOON - seconds, NOON, None, NOON)
    assert len(plan.moments) <= 1000
    assert plan.step_s % plan.resolution.step_s == 0


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"from_": text(NOON + 10), "to": text(NOON)}, "from", "earlier than to"),
        ({"from_": text(NOON), "to": text(NOON)}, "from", "earlier than to"),
        ({"from_": text(NOON + 2 * 3600)}, "from", "not in the future"),
        ({"from_": text(NOON - 500 * DAY)}, "from", "more than 400 days ago"),
        ({"from_": "0001-01-01"}, "from", "more than 400 days ago"),
        ({"to": "0001-01-01"}, "from", "more than 400 days ago"),
        ({"from_": "yesterday"}, "from", "must be a date"),
        ({"step": "0"}, "step", "multiple of 10"),
        ({"step": "15"}, "step", "multiple of 10"),
        ({"step": "-10"}, "step", "number of seconds"),
        ({"step": "1e3"}, "step", "number of seconds"),
        ({"step": "34560010"}, "step", "at most 34560000 seconds"),
        ({"from_": text(NOON - DAY), "step": "10"}, "step", "multiple of 60 seconds"),
        ({"from_": text(NOON - 30 * DAY), "step": "60"}, "step", "are kept for 15 days"),
        ({"from_": text(NOON - DAY), "step": "60"}, "step", "1000 are the most"),
        ({"metrics": "connections,lag"}, "metrics", "there is no metric 'lag'"),
    ],
)
def test_a_range_that_cannot_be_answered_is_refused_with_the_reason(asked, query, field, said):
    answer = problem(asked(**query), 400, "invalid")
    (error,) = answer["errors"]
    assert error["field"] == field
    assert said in error["detail"]


def test_a_limit_that_is_null_is_unlimited_where_something_was_sampled_and_not_known_in_a_gap(asked, instance):
    """Requests go on while no master answers: then the flow is a number, and the limits are not known."""
    keep(
        sample(NOON + 10 * number, instance.id, produce_limit_bytes_per_s=None, produce_allocated_bytes_per_s=None)
        for number in range(360)
        if number not in (3, 4, 9)
    )
    counts = counts_of(3)
    counts.carried_windows, counts.produced_bytes = 1, 10 * MIB
    keep_requests(instance, {NOON + 30: counts}, known_to=NOON + 3600)
    found = asked().json()
    assert found["gaps"] == [
        {"start": text(NOON + 30), "end": text(NOON + 50)},
        {"start": text(NOON + 90), "end": text(NOON + 100)},
    ]
    unlimited, unknown = found["items"][2], found["items"][3]
    assert unlimited["produce_limit_bytes_per_s"] is unknown["produce_limit_bytes_per_s"] is None
    assert unknown["requests_per_s"] is not None, "it is no gap of requests"
    one = asked("metrics", name="produce_limit_bytes_per_s").json()
    assert one["gaps"] == found["gaps"]


def test_a_whole_time_without_samples_is_one_gap(asked):
    found = asked().json()
    assert found["gaps"] == [{"start": found["start"], "end": found["end"]}]


def test_of_longer_steps_one_sample_is_enough(asked, instance):
    keep([sample(NOON, instance.id)])
    assert asked(step=60).json()["gaps"] == [{"start": text(NOON + 60), "end": text(NOON + 3600)}]


def test_the_future_is_cut_off(asked, instance):
    assert asked(from_=text(NOON + 3000), to="9999-12-31").json()["end"] == text(NOON + 3600)


def test_another_organisations_instance_is_not_there(alice, charlie, instance, here):
    keep([sample(NOON, instance.id)])
    for path in ("history", "metrics?name=connections"):
        foreign = charlie.api.get(f"{URL}/{instance.id}/{path}")
        missing = charlie.api.get(f"{URL}/{FIRST}/{path}")
        assert (foreign.status_code, missing.status_code) == (404, 404)
        assert foreign.content.replace(instance.id.encode(), b"ID") == missing.content.replace(FIRST.encode(), b"ID")


def test_a_viewer_reads_it(viewer, instance, here):
    assert viewer.api.get(f"{URL}/{instance.id}/history").status_code == 200


def test_rows_of_others_are_not_in_it(asked, instance):
    keep([sample(NOON, "ins-another1", connections=99), sample(NOON + 10, instance.id)])
    items = asked(metrics="connections").json()["items"]
    assert [each["connections"] for each in items[:2]] == [None, 7]


@pytest.mark.parametrize("name", METRICS)
def test_one_metric_by_itself(asked, instance, name):
    keep([sample(NOON + 10, instance.id)])
    both = counts_of(3)
    both.add(counts_of(2, api="Fetch", errors={"NOT_LEADER_OR_FOLLOWER": 1}))
    keep_requests(instance, {NOON + 10: both}, known_to=NOON + 60)
    found = asked("metrics", name=name, step_s=60).json()
    assert (found["name"], found["unit"]) == (name, METRICS[name].unit)
    whole = asked(metrics=name, step=60).json()["items"]
    assert found["items"] == [{"time": each["time"], "value": each[name]} for each in whole]
    assert found["items"][0]["value"] is not None


@pytest.mark.parametrize("query", [{"name": ""}, {"name": "connections,storage_used_bytes"}, {"name": "lag"}])
def test_one_metric_has_to_be_named(asked, query):
    assert problem(asked("metrics", **query), 400, "invalid")["errors"][0]["field"] == "name"


def test_a_year_of_hours_is_three_questions(alice, instance, here, django_assert_max_num_queries):
    keep([sample(NOON + 10 * number, instance.id) for number in range(360)])
    services.roll_up(clock=here)
    row = Hour.objects.values().get()
    Hour.objects.bulk_create(Hour(**row | {"at": NOON - 3600 * number}) for number in range(1, 9600))
    start = here.now() - timedelta(days=399)
    with django_assert_max_num_queries(3):
        found = selectors.history_get(instance=instance, start=start, end=here.now(), clock=here)
    assert (found.step_s, found.resolution_s) == (43_200, 3600)
    assert found.series[0].values.count(None) <= 1
    assert len(rows_of(Minute)) == 60


def test_a_plan_of_nothing_is_refused():
    with pytest.raises(RangeError, match="earlier"):
        plan_of(NOON, NOON, None, NOON)
