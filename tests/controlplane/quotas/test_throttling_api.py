""" "Why was I throttled?" and the guarantee, by REST."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controlplane.core.clock import SYSTEM_CLOCK

from .conftest import NINE, interval

DAY_MS = 24 * 3600 * 1000


def throttling(person, instance, query="?from=2025-11-21"):
    answer = person.api.get(f"/api/v1/instances/{instance.id}/throttling{query}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_an_interval_is_shown_with_its_reason_and_every_input(alice, instance, record):
    record(interval(instance.id))
    (found,) = throttling(alice, instance)["items"]
    assert (found["started_at"], found["ended_at"]) == ("2025-11-21T09:00:00.000Z", "2025-11-21T09:00:20.000Z")
    assert found["explanation"].startswith("Producing waited 12.0 s on broker 2 while the instance used only 60 %")
    assert found["over_admission_percent"] == {"window_1_s": 17.0, "window_10_s": 3.1, "window_60_s": 0.4}
    assert found["inputs"]["brokers"][1] == {
        "broker": 2,
        "leaders": 4,
        "initial_share": 2 * 2**20,
        "flow": 2 * 2**20,
        "allocation": 2 * 2**20,
        "granted": 3 * 2**20,
        "branch": "headroom",
        "throttled_ms": 900,
        "waiting_bytes": 4096,
    }


def test_pages_follow_each_other_in_time_and_leave_nothing_out(alice, instance, record):
    record(
        *(
            interval(instance.id, start=NINE + minute * 60_000, direction=direction)
            for minute in range(3)
            for direction in ("produce", "consume")
        )
    )
    found, query = [], "?from=2025-11-21&limit=1"
    while True:
        page = throttling(alice, instance, query)
        found += [(item["started_at"][14:16], item["direction"]) for item in page["items"]]
        if page["next"] is None:
            break
        query = f"?from=2025-11-21&limit=1&cursor={page['next']}"
    assert found == [(f"0{minute}", direction) for minute in range(3) for direction in ("consume", "produce")]


def test_the_newest_come_first_where_that_is_asked_for_and_pages_leave_nothing_out(alice, instance, record):
    record(
        *(
            interval(instance.id, start=NINE + minute * 60_000, direction=direction)
            for minute in range(3)
            for direction in ("produce", "consume")
        )
    )
    asked = "?from=2025-11-21&limit=1&order=newest"
    found, query = [], asked
    while True:
        page = throttling(alice, instance, query)
        found += [(item["started_at"][14:16], item["direction"]) for item in page["items"]]
        if page["next"] is None:
            break
        query = f"{asked}&cursor={page['next']}"
    assert found == [(f"0{minute}", direction) for minute in (2, 1, 0) for direction in ("produce", "consume")]


def test_without_a_range_it_is_the_last_day(alice, instance, record):
    now_ms = int(SYSTEM_CLOCK.now().timestamp() * 1000)
    record(interval(instance.id, start=now_ms - DAY_MS - 60_000), interval(instance.id, start=now_ms - DAY_MS + 60_000))
    assert len(throttling(alice, instance, "")["items"]) == 1


@pytest.mark.parametrize(
    "query", ["?from=yesterday", "?from=2026-01-02&to=2026-01-01", "?cursor=e30", "?limit=0", "?order=any"]
)
def test_what_cannot_be_asked_is_refused_by_its_field(alice, instance, query):
    assert alice.api.get(f"/api/v1/instances/{instance.id}/throttling{query}").status_code == 400


def test_another_instances_intervals_are_not_among_them(alice, instance, record):
    record(interval("ins-00000000"))
    assert throttling(alice, instance)["items"] == []


def test_the_guarantee_is_added_up_by_day_and_direction(alice, instance, record, monkeypatch):
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _: datetime(2025, 11, 23, 6, tzinfo=UTC))
    record(
        interval(instance.id, throttled_ms=12_000, under_limit_ms=8_640),
        interval(instance.id, start=NINE + 60_000, throttled_ms=1_000, over_percent=(5.0, 4.0, 2.0)),
        interval(instance.id, start=NINE + 2 * DAY_MS - 4 * 3600_000, throttled_ms=500, under_limit_ms=216),
        interval(instance.id, rule="rule-1", throttled_ms=60_000),
        interval(instance.id, start=NINE - 7 * DAY_MS),
    )
    found = alice.api.get(f"/api/v1/instances/{instance.id}/guarantee").json()["items"]
    assert found == [
        {
            "day": "2025-11-23",
            "direction": "produce",
            "throttled_ms": 500,
            "throttled_under_limit_ms": 216,
            "throttled_under_limit_percent": 0.001,  # of the six hours that have passed
            "over_admission_percent": {"window_1_s": 17.0, "window_10_s": 3.1, "window_60_s": 0.4},
        },
        {
            "day": "2025-11-21",
            "direction": "produce",
            "throttled_ms": 13_000,
            "throttled_under_limit_ms": 8_640,
            "throttled_under_limit_percent": 0.01,
            "over_admission_percent": {"window_1_s": 17.0, "window_10_s": 4.0, "window_60_s": 2.0},
        },
    ]
