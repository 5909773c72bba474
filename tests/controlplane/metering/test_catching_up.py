"""Whether usage is complete up to a moment: what billing asks before it closes a month."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings

from controlplane.core.errors import NotFound
from controlplane.metering import services
from controlplane.metering.models import Loss, Progress
from controlplane.metering.selectors import TOLD_WITHIN, complete_to, why_incomplete
from tests.support.usage import hours_told

pytestmark = pytest.mark.django_db
MONTH_END = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _all_is_told(db):
    """By the one broker there is."""
    hours_told(1, "2026-12-31T23", MONTH_END)


def partition(number: int, complete: datetime | None) -> None:
    Progress.objects.create(
        partition=number, topic_id="t", next_offset=10, end_offset=10, looked_at_ms=0,
        complete_to_ms=None if complete is None else int(complete.timestamp() * 1000),
    )  # fmt: skip


def test_a_meter_that_has_never_said_anything_has_not_caught_up():
    assert why_incomplete(until=MONTH_END) == "the meter has not said yet how far it has come"
    assert complete_to() is None


def test_it_has_caught_up_when_every_partition_is_complete_to_the_moment_and_what_brokers_take_to_tell_it():
    partition(0, MONTH_END + TOLD_WITHIN)
    partition(1, MONTH_END + timedelta(hours=1))
    assert why_incomplete(until=MONTH_END) == ""
    assert complete_to() == MONTH_END + TOLD_WITHIN


def test_the_slowest_partition_decides():
    partition(0, MONTH_END + timedelta(hours=1))
    partition(1, MONTH_END + timedelta(minutes=2))
    sentence = "metering has come to 2026-06-01 00:02 UTC; it must come to 2026-06-01 00:10"
    assert why_incomplete(until=MONTH_END) == sentence


def test_a_partition_of_which_nothing_is_known_holds_it_up():
    partition(0, MONTH_END + timedelta(hours=1))
    partition(1, None)
    assert complete_to() is None
    assert why_incomplete(until=MONTH_END)


def loss() -> Loss:
    return Loss.objects.create(
        kind="expired", partition=3, start_offset=5, end_offset=9, topic_id="t", sentence="records 5 to 8 expired",
        found_at_ms=0,
    )  # fmt: skip


def test_records_that_were_never_read_hold_it_up_until_an_operator_has_judged_them():
    partition(0, MONTH_END + timedelta(hours=1))
    lost = loss()
    assert why_incomplete(until=MONTH_END) == "records 5 to 8 expired; an operator has to judge it"
    services.loss_settle(loss_id=lost.pk, actor="olga@example.com")
    services.loss_settle(loss_id=lost.pk, actor="otto@example.com")
    assert why_incomplete(until=MONTH_END) == ""
    lost.refresh_from_db()
    assert (lost.settled_by, lost.settled_at is None) == ("olga@example.com", False)
    with pytest.raises(NotFound):
        services.loss_settle(loss_id=lost.pk + 1, actor="olga@example.com")


def test_without_metering_the_reason_is_the_sentence_of_make_up(monkeypatch):
    partition(0, MONTH_END + timedelta(hours=1))
    absent = dataclasses.replace(settings.ENVIRONMENT, metering_absent="metering needs Java")
    monkeypatch.setattr(settings, "ENVIRONMENT", absent)
    assert why_incomplete(until=MONTH_END) == "metering needs Java"
