"""What a topic stored over time is what its usage says, hour by hour; what is not counted yet is not known, and never 0."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.history.requests.topics import topic_moved_get
from controlplane.metering.models import FoldedTopicDay
from tests.support.usage import usage_complete, usage_raise, usage_row

from .conftest import NOON, move

pytestmark = pytest.mark.django_db
GIB = 2**30
BEGAN = datetime.fromtimestamp(NOON, UTC)
"""On the first of March 2025."""


@pytest.fixture
def metered(instance, at_noon):
    """At four o'clock, of an instance of eleven: 2 GiB from noon, 5 from one o'clock. The meter has come to half past three."""
    instance.created_at = BEGAN - timedelta(hours=1)
    instance.save()
    usage_raise(
        [
            usage_row(instance.id, "2025-03-01T12", 1, stored=3600 * GIB, broker=1, boot="a"),
            usage_row(instance.id, "2025-03-01T12", 1, stored=3600 * GIB, broker=2, boot="b"),
            usage_row(instance.id, "2025-03-01T13", 1, stored=(3600 + 5 * 3600) * GIB, broker=1, boot="a"),
            usage_row(instance.id, "2025-03-01T15", 1, stored=(9 * 3600 + 60) * GIB, broker=1, boot="a"),
        ]
    )
    usage_complete(BEGAN + timedelta(hours=3, minutes=30))
    move(at_noon, NOON + 4 * 3600)
    return instance


def stored(instance, clock, start=-2, end=4, step_s=3600, name="orders"):
    """From some hours after noon to others, in GiB."""
    found = topic_moved_get(
        instance=instance,
        name=name,
        start=BEGAN + timedelta(hours=start),
        end=BEGAN + timedelta(hours=end),
        step_s=step_s,
        clock=clock,
    )
    (series,) = [each for each in found.series if each.metric.name == "storage_used_bytes"]
    return [None if value is None else value / GIB for value in series.values]


def test_each_hour_has_the_average_of_all_replicas(metered, at_noon):
    assert stored(metered, at_noon) == [
        None,  # there was no instance
        0,  # nor any topic in it
        2,
        5,
        0,
        None,  # the meter has not come so far
    ]
    assert stored(metered, at_noon, name="another") == [None, 0, 0, 0, 0, None]


def test_a_longer_step_has_the_average_of_its_hours_and_a_shorter_one_that_of_its_hour(metered, at_noon):
    assert stored(metered, at_noon, 0, 4, 7200) == [3.5, 0]
    assert stored(metered, at_noon, 0, 2, 1800) == [2, 2, 5, 5]


def test_without_a_meter_nothing_is_known(instance, at_noon):
    move(at_noon, NOON + 4 * 3600)
    assert set(stored(instance, at_noon)) == {None}


def test_hours_of_a_day_that_is_folded_have_the_average_of_the_day(metered, at_noon):
    usage_complete(BEGAN + timedelta(days=9))
    move(at_noon, NOON + 9 * 86_400)
    FoldedTopicDay.objects.create(
        instance=metered.id, topic="orders", day="2025-03-03", produced_bytes=0, consumed_bytes=0,
        stored_byte_seconds_millions=86_400 * GIB // 10**6, stored_byte_seconds_rest=86_400 * GIB % 10**6,
    )  # fmt: skip
    assert stored(metered, at_noon, 34, 37) == [0, 0, 1]
    assert stored(metered, at_noon, 36, 61, 86_400)[-1] == 0
