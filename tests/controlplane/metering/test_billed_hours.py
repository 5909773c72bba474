"""What invoices have billed of an hour: the month's own, and every adjustment since; read from rows as closing writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from controlplane.billing import closing
from controlplane.billing.models import Invoice
from controlplane.instances.models import Instance, SpecChange
from controlplane.metering.pipeline.billed import billed_hours
from controlplane.metering.selectors import usage_hours
from tests.controlplane.fakes import ManualClock
from tests.controlplane.metering.conftest import raised, row
from tests.support.usage import usage_complete


def inputs(used, *late, version=2):
    return {"version": version, "used": used, "late": list(late)}


def late(month, *changed, by_hour=True):
    return {"month": month, "changed": [list(each) for each in changed], "by_hour": by_hour}


MAY, JUNE = "2026-05", "2026-06"
ELEVEN, NOON = "2026-05-31T11:00:00Z", "2026-05-31T12:00:00Z"


def test_what_later_invoices_have_adjusted_is_billed_as_well():
    rows = [
        (JUNE, inputs([], late(MAY, (NOON, -3, 0, 5), (ELEVEN, 4, 4, 4)))),
        (MAY, inputs([[NOON, 10, 20, 30]])),
        ("2026-07", json.dumps(inputs([], late(MAY, (NOON, 1, 0, 0))))),
    ]
    assert billed_hours(rows) == {MAY: {NOON: (8, 20, 35), ELEVEN: (4, 4, 4)}, JUNE: {}, "2026-07": {}}


def test_invoices_that_knew_their_months_sum_only_are_left_out():
    first = {"version": 1, "used": {"produced_bytes": 5, "consumed_bytes": 0, "stored_byte_seconds": 0}}
    assert billed_hours([(MAY, first), (JUNE, inputs([], late(MAY, (NOON, 1, 0, 0), by_hour=False)))]) == {JUNE: {}}


@pytest.mark.django_db
def test_invoices_as_they_are_written_have_billed_all_hours_once_what_was_late_is_adjusted(instance):
    Instance.objects.unscoped("a test").update(created_at=datetime(2026, 5, 1, tzinfo=UTC))
    SpecChange.objects.unscoped("a test").update(at=datetime(2026, 5, 1, tzinfo=UTC))

    def close(month):
        clock = ManualClock()
        clock.time = datetime(2026, month, 2, tzinfo=UTC)
        usage_complete(clock.time)
        closing.invoices_close(clock=clock)

    def billed():
        rows = Invoice.objects.unscoped("a test").filter(instance=instance).values_list("month", "inputs")
        return {hour: used for hour, used in billed_hours(rows).get(MAY, {}).items() if any(used)}

    def used():
        hours = usage_hours(
            instance=instance, start=datetime(2026, 5, 1, tzinfo=UTC), end=datetime(2026, 6, 1, tzinfo=UTC)
        )
        return {each.hour: (each.produced_bytes, each.consumed_bytes, each.stored_byte_seconds) for each in hours}

    raised(
        [row(instance.id, "2026-05-02T10", 10**9, consumed=7, stored=99), row(instance.id, "2026-05-31T12", 3 * 10**9)]
    )
    close(6)
    assert billed() == used()
    raised([row(instance.id, "2026-05-02T11", 2 * 10**9), row(instance.id, "2026-05-31T23", 4 * 10**9, boot="b2")])
    assert billed() != used(), "it came late"
    close(7)
    assert billed() == used()
