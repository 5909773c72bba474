"""The newest of the history of one instance, as a tenant's Prometheus reads it. The answer is kept for CACHED_S."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.kept import keep, kept
from controlplane.history.exposition import GroupLag, exposition
from controlplane.history.lag.rows import age_s
from controlplane.history.metrics import Kind
from controlplane.history.models import LagGroup, LagMinutes
from controlplane.history.resolutions import MINUTES, SAMPLES, floor
from controlplane.history.selectors import history_get
from controlplane.instances.selectors import instance_any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controlplane.history.selectors import Number, Series
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
CACHED_S = 5
FRESH = timedelta(seconds=60)
"""What is older is not of now: then there is no sample of it. Throttled time is known half a minute late (`waiting`)."""
LAG_FRESH_S = 3 * MINUTES.step_s
MOST_GROUPS = 1_000
"""In one answer, those furthest behind."""


def exposition_get(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> str:
    """See `exposition`. Raises NotFound."""
    instance = instance_any(organisation=organisation, instance_id=instance_id)
    key = f"exposition:{instance.pk}"
    before = kept(key, LOG, "figures of now are put together again")
    if before is not None:
        return str(before)
    text = _text(instance, clock.now(), clock)
    keep(key, text, CACHED_S, LOG, "figures of now are not kept")
    return text


def _text(instance: Instance, now: datetime, clock: Clock) -> str:
    found = history_get(instance=instance, start=now - FRESH, end=now, step_s=SAMPLES.step_s, clock=clock)
    by_name = {series.metric.name: series for series in found.series}
    known = [step for step, value in enumerate(by_name["connections"].values) if value is not None]
    values = {name: _newest(series, known) for name, series in by_name.items()}
    return exposition(instance.pk, values, _lags(instance, int(now.timestamp())), is_known=bool(known))


def _newest(series: Series, known: Sequence[int]) -> Number:
    """Of the newest step with a sample; throttled time is known later, so of the newest of which that is known."""
    if series.metric.kind is Kind.WAITED:
        return next((value for value in reversed(series.values) if value is not None), None)
    return series.values[known[-1]] if known else None


def _lags(instance: Instance, now_s: int) -> list[GroupLag]:
    """The last minute of each group; of a clock that was ahead there may be rows of later."""
    ours = LagGroup.objects.filter(instance=instance.pk)
    since = floor(now_s, MINUTES.step_s) - LAG_FRESH_S
    rows = LagMinutes.objects.filter(group__in=ours.values("pk"), until__gte=since, at__lte=now_s).order_by(
        "group", "until"
    )
    last = {row.group: row for row in rows}
    worst = sorted(last.values(), key=lambda row: (-row.messages, row.group))[:MOST_GROUPS]
    names = dict(ours.filter(pk__in=[row.group for row in worst]).values_list("pk", "name"))
    found = [
        GroupLag(names[row.group], row.messages, _rounded(age_s(row.until + row.late_s, row.oldest_ms)))
        for row in worst
        if row.group in names  # it may have been purged since
    ]
    return sorted(found, key=lambda each: each.name)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
