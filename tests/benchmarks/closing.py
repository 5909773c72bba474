"""Closing months on generated usage: what `tests.benchmarks.pipeline` measures as `closing`, at each of its factors.

At 16x it is 500 instances, ten of each organisation, half of them under each plan, with usage in every hour of every month, as
the table of folded hours has it. `--months` months are closed one after the other by what beat calls (`invoices_close`), so the
first has no earlier invoice, and the last has one of each month before it, which is looked at for late usage: two hours of each
month are told after it was closed, and become adjustment lines of the next. From the 13th month on there are as many as there
will ever be.

In a process of its own with Django on a database of its own: `measured`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from tests.killed.pricing import SIZE
from tests.support.clocks import StandingClock
from tests.support.django_process import set_up

FIRST = (2025, 6)
AN_ORGANISATION = 10
"""Instances."""
PLANS = ("pro", "traffic")
LATE_HOURS = 2
ROWS_AT_ONCE = 5000
_HOUR = timedelta(hours=1)


def measured(directory: str, url: str, instances: int, months: int) -> dict[str, Any]:
    """Invoices of each month, and the seconds that they took; `cpu_s`: of this process, whatever else the machine does."""
    set_up(directory, url)
    from controlplane.billing.closing import invoices_close
    from controlplane.billing.models import Invoice
    from controlplane.billing.pricing.rating import Month
    from controlplane.metering.models import FoldedHour
    from tests.support.usage import usage_complete

    logging.getLogger("controlplane.billing.closing").setLevel(logging.WARNING)  # a line for each invoice
    invoices = Invoice.objects.unscoped("a benchmark")
    names = _instances_made(instances, datetime(*FIRST, 1, tzinfo=UTC))
    taken: list[float] = []
    cpu: list[float] = []
    month = Month(*FIRST)
    for number in range(months):
        usage = _hours(names, month.start, month.end)
        while portion := list(islice(usage, ROWS_AT_ONCE)):
            FoldedHour.objects.bulk_create(portion)
        usage_complete(month.end + 2 * _HOUR)
        clock = StandingClock(month.end + 8 * _HOUR)
        began, cpu_began = time.monotonic(), time.process_time()
        written = invoices_close(clock=clock)
        taken.append(time.monotonic() - began)
        cpu.append(time.process_time() - cpu_began)
        assert written == instances, (str(month), written)
        lines = invoices.filter(month=str(month)).values_list("lines", flat=True).iterator(100)
        adjusting = sum(any("adjusts" in line for line in each) for each in lines)
        assert adjusting == (instances if number else 0), (str(month), adjusting)
        FoldedHour.objects.bulk_create(
            _hours(names, month.end - LATE_HOURS * _HOUR, month.end, late=True), ROWS_AT_ONCE
        )
        month = month.before(-1)
    hours = FoldedHour.objects.count()
    began = time.monotonic()
    assert invoices_close(clock=clock) == 0
    idle_s = time.monotonic() - began
    return {
        "invoices": instances, "months": months, "hours": hours, "took_s": taken[-1], "months_s": taken, "cpu_s": cpu,
        "idle_s": idle_s,
        "invoices_per_s": instances / taken[-1], "first_invoices_per_s": instances / taken[0],
    }  # fmt: skip


def _instances_made(count: int, opened: datetime) -> list[str]:
    """Open since a moment; their ids."""
    from controlplane.accounts.services import user_ensure
    from controlplane.billing.models import PlanChoice
    from controlplane.clusters.services import cluster_ensure
    from controlplane.instances.history import spec_change_record
    from controlplane.instances.models import Instance, InstanceState, SpecChangeKind
    from controlplane.tenants.services import organisation_create

    cluster, names = cluster_ensure(), []
    for number in range(count):
        if number % AN_ORGANISATION == 0:
            owner, _ = user_ensure(email=f"owner-{number}@example.com", password=None)
            organisation = organisation_create(name=f"organisation {number}", owner=owner)
            plan = PLANS[number // AN_ORGANISATION % len(PLANS)]
            PlanChoice(organisation=organisation, plan=plan, at=opened).save(force_insert=True)
        instance = Instance(
            id=f"ins-{number:08}", organisation=organisation, cluster=cluster, name=f"instance {number}",
            state=InstanceState.RUNNING, created_at=opened, **SIZE,
        )  # fmt: skip
        instance.save(force_insert=True)
        spec_change_record(instance=instance, kind=SpecChangeKind.OPENED, at=opened)
        names.append(instance.pk)
    return names


def _hours(names: list[str], start: datetime, end: datetime, *, late: bool = False) -> Iterator[Any]:
    """Rows of each instance and hour; without the last of a month, which come `late`."""
    from controlplane.metering.models import FoldedHour

    count = (end - start) // _HOUR
    for number, name in enumerate(names):
        for hour in range(count if late else count - LATE_HOURS):
            use = (number * 7919 + (hour + 1) * 1_104_729_383) % 10**10
            yield FoldedHour(
                instance=name, hour=f"{start + hour * _HOUR:%Y-%m-%dT%H}:00:00Z", produced_bytes=use, consumed_bytes=3 * use,
                stored_byte_seconds_millions=use % 10**9, stored_byte_seconds_rest=use % 10**6,
            )  # fmt: skip
