"""The lag of a group over time, by REST and on the command line."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.history.lag import sampling
from controlplane.history.lag.rows import digest_of
from controlplane.history.models import LagGroup
from tests.controlplane.groups.conftest import hers, his  # noqa: F401  # fixtures
from tests.controlplane.test_instances_api import URL, problem


@pytest.fixture
def last():
    """The beginning of this minute."""
    return int(SYSTEM_CLOCK.now().timestamp()) // 60 * 60


def lag_of(instance_id, name, at, messages, age_s, size=None, moved=()):
    group, _ = LagGroup.objects.get_or_create(instance=instance_id, digest=digest_of(name), defaults={"name": name})
    oldest = -1 if age_s == 0 else None if age_s is None else (at - age_s) * 1000
    sampling._written({group.pk: sampling.Minute(messages, oldest, size, *moved)}, at, 0)


@pytest.fixture
def asked(alice, hers):  # noqa: F811
    def asked(name="billing", **query):
        query = {key.rstrip("_"): value for key, value in query.items()}
        return alice.api.get(f"{URL}/{hers.instance_id}/groups/{name}/history", query)

    return asked


def text(at):
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"


def test_the_last_hour_comes_in_minutes_with_gaps_as_null(asked, hers, last):  # noqa: F811
    lag_of(hers.instance_id, "billing", last - 180, 5, 30, 900, (90, 6000))
    lag_of(hers.instance_id, "billing", last - 60, 0, 0)
    lag_of(hers.instance_id, "billing", last, 3, None)
    found = asked().json()
    assert (found["step_s"], found["resolution_s"], found["next"]) == (60, 60, None)
    assert found["metrics"] == [
        {"name": "lag_messages", "unit": "records", "maximum": "lag_messages_max"},
        {"name": "lag_bytes", "unit": "bytes", "maximum": "lag_bytes_max"},
        {"name": "lag_seconds", "unit": "s", "maximum": "lag_seconds_max"},
        {"name": "consume_records_per_s", "unit": "records/s", "maximum": None},
        {"name": "produce_records_per_s", "unit": "records/s", "maximum": None},
    ]
    by_time = {each["time"]: each for each in found["items"]}
    assert by_time[text(last - 180)] == {
        "time": text(last - 180), "lag_messages": 5, "lag_messages_max": 5, "lag_bytes": 900, "lag_bytes_max": 900,
        "lag_seconds": 30, "lag_seconds_max": 30, "consume_records_per_s": 1.5, "produce_records_per_s": 100,
    }  # fmt: skip
    assert by_time[text(last - 120)]["lag_messages"] is None
    assert (by_time[text(last - 60)]["lag_messages"], by_time[text(last - 60)]["lag_seconds"]) == (0, 0)
    assert by_time[text(last - 60)]["lag_bytes"] is None, "nobody said so"
    assert by_time[text(last - 60)]["consume_records_per_s"] is None, "nobody knows"
    if text(last) in by_time:
        assert (by_time[text(last)]["lag_messages"], by_time[text(last)]["lag_seconds"]) == (3, None)


def test_a_step_has_average_and_maximum(asked, hers, last):  # noqa: F811
    start = last // 3600 * 3600 - 3600
    for number, messages in enumerate((2, 4, 9)):
        size, moved = (100 * messages, (60 * messages, 0)) if number else (None, ())
        lag_of(hers.instance_id, "billing", start + 60 * number, messages, 10 * (number + 1), size, moved)
    (first, *_) = asked(from_=text(start), to=text(start + 3600), step=3600).json()["items"]
    assert (first["lag_bytes"], first["lag_bytes_max"]) == (650, 900), "of the minutes of which they are known"
    assert (first["consume_records_per_s"], first["produce_records_per_s"]) == (6.5, 0), "likewise"
    assert [first[name] for name in ("lag_messages", "lag_messages_max", "lag_seconds", "lag_seconds_max")] == [
        5,
        9,
        20,
        30,
    ]


def test_a_group_without_a_history_yet_is_asked_about(asked, hers):  # noqa: F811
    assert {each["lag_messages"] for each in asked().json()["items"]} == {None}
    problem(asked("nobody"), 404, "group_not_found")


def test_a_history_outlives_its_group_and_needs_no_broker(asked, hers, admin, last):  # noqa: F811
    lag_of(hers.instance_id, "billing", last - 60, 5, 30)
    hers.groups.found.clear()
    admin.away = True
    assert [each for each in asked().json()["items"] if each["lag_messages"]] != []


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ({"step": "15"}, "step", "multiple of 10"),
        ({"step": "10", "from_": "two hours ago"}, "step", "multiple of 60"),
        ({"step": "90", "from_": "two hours ago"}, "step", "multiple of 60"),
        ({"from_": "2000-01-01"}, "from", "more than 400 days ago"),
        ({"from_": "9999-01-01"}, "from", "not in the future"),
        ({"from_": "soon"}, "from", "must be a date"),
    ],
)
def test_a_range_that_cannot_be_answered_is_refused_with_the_reason(asked, hers, last, query, field, said):  # noqa: F811
    lag_of(hers.instance_id, "billing", last - 60, 5, 30)
    if query.get("from_") == "two hours ago":
        query = {**query, "from_": text(last - 7200)}
    (error,) = problem(asked(**query), 400, "invalid")["errors"]
    assert error["field"] == field
    assert said in error["detail"]


def test_another_tenants_group_of_the_name_is_not_in_it(asked, hers, his, charlie, last):  # noqa: F811
    lag_of(his.instance_id, "billing", last - 60, 77, 30)
    assert {each["lag_messages"] for each in asked().json()["items"]} == {None}
    foreign = charlie.api.get(f"{URL}/{hers.instance_id}/groups/billing/history")
    missing = charlie.api.get(f"{URL}/ins-nothing1/groups/billing/history")
    assert (foreign.status_code, missing.status_code) == (404, 404)
    assert foreign.content.replace(hers.instance_id.encode(), b"ID") == missing.content.replace(b"ins-nothing1", b"ID")


def test_a_viewer_reads_it(viewer, hers):  # noqa: F811
    assert viewer.api.get(f"{URL}/{hers.instance_id}/groups/billing/history").status_code == 200


def test_a_names_slashes_and_letters_are_its_own(asked, hers, last):  # noqa: F811
    lag_of(hers.instance_id, "a/history", last - 60, 5, 30)
    assert [each for each in asked("a%2Fhistory").json()["items"] if each["lag_messages"]] != []
