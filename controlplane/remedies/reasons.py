"""Why an instance had to wait, who was behind it, and what would help at which price.

What brokers said is kept of moments (`witnesses`). Of a reason the one counts that was taken in its worst interval, or until
brokers had forgotten that (`LATE`); where none was, any of the reason's time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from controlplane.billing.selectors import estimate, plan_counted
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.instances.history import SIZES
from controlplane.instances.selectors import instance_get
from controlplane.quotas import history
from controlplane.quotas.moments import text_of
from controlplane.remedies.merging import Remedy, Why, whys
from controlplane.remedies.models import Witness
from controlplane.remedies.proposals import bandwidth_proposed, storage_proposed
from controlplane.remedies.who import Who, who_of
from controlplane.throttle_rules.selectors import throttle_rule_list

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal

    from controlplane.billing.pricing.plans import Plan
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation
    from quota.contracts.rules import ThrottleRule

LATE = timedelta(seconds=120)
"""Behind an interval's end: rates of brokers are means over the last half minute to two minutes."""
INTERVALS = 500
"""The latest that are read for one answer."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """Another size, and its price for a month of 730 hours beside that of the present one."""

    bandwidth_mib_per_s: float | None  # None: as it is
    storage_gib: float | None
    per_month_before: Decimal
    per_month_after: Decimal
    currency: str

    @property
    def sizes(self) -> dict[str, float]:
        """What is another."""
        named = {"bandwidth_mib_per_s": self.bandwidth_mib_per_s, "storage_gib": self.storage_gib}
        return {name: size for name, size in named.items() if size is not None}

    @property
    def costs_more(self) -> bool:
        """Not where a price is of a range of sizes."""
        return self.per_month_after != self.per_month_before

    @property
    def query(self) -> str:
        """By which the form of settings is filled in: sizes that are proposed are whole."""
        return urlencode({name: round(size) for name, size in self.sizes.items()})


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, with all that is known of it."""

    why: Why
    who: Who | None
    proposal: Proposal | None


@dataclass(frozen=True, slots=True)
class Reasons:
    """The newest first. `is_whole`: False: there are more intervals than are read for one answer, and these are the latest."""

    found: list[Reason]
    is_whole: bool


def reasons_get(
    *, organisation: Organisation, instance_id: str, start: datetime, end: datetime, clock: Clock = SYSTEM_CLOCK
) -> Reasons:
    """Of intervals that began in [start, end) and in which somebody waited. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    intervals = history.latest(instance=instance, start=start, end=end, limit=INTERVALS)
    found = whys(intervals)
    rules = _rules(instance) if any(why.rule_id for why in found) else None
    return Reasons(reasons_of(instance, found, rules, now=clock.now()), len(intervals) < INTERVALS)


def _rules(instance: Instance) -> Sequence[ThrottleRule] | None:
    try:
        return throttle_rule_list(organisation=instance.organisation, instance_id=instance.id)
    except Unavailable:
        return None


def reasons_of(
    instance: Instance, found: Sequence[Why], rules: Sequence[ThrottleRule] | None, *, now: datetime
) -> list[Reason]:
    """With who was behind each, and what it takes. `rules`: as they are now; None: they are not known."""
    kept = _witnesses(instance, found)
    plan = plan_counted(organisation=instance.organisation, at=now) if any(map(_is_sold, found)) else None
    reasons = []
    for why in found:
        witness = kept.get(id(why))
        who = None if witness is None else who_of(why, witness.document, rules)
        reasons.append(Reason(why, who, None if plan is None else _proposal(instance, why, plan)))
    return reasons


def _is_sold(why: Why) -> bool:
    return why.remedy in (Remedy.BANDWIDTH, Remedy.STORAGE)


def _proposal(instance: Instance, why: Why, plan: Plan) -> Proposal | None:
    bandwidth = storage = None
    if why.remedy is Remedy.BANDWIDTH and why.worst.limit:
        bandwidth = bandwidth_proposed(why, instance.bandwidth_mib_per_s)
    elif why.remedy is Remedy.STORAGE:
        storage = storage_proposed(instance.storage_gib)
    if bandwidth is None and storage is None:
        return None
    now = {name: getattr(instance, name) for name in SIZES}
    then = now | {
        name: size for name, size in (("bandwidth_mib_per_s", bandwidth), ("storage_gib", storage)) if size is not None
    }
    before, after = estimate(**now, plan=plan), estimate(**then, plan=plan)
    return Proposal(bandwidth, storage, before.per_month, after.per_month, plan.currency)


def _witnesses(instance: Instance, found: Sequence[Why]) -> Mapping[int, Witness]:
    """The one that counts of each reason, by its identity; reasons that nobody was asked about are not in it."""
    if not found:
        return {}
    first, last = min(why.started_at for why in found), max(why.ended_at for why in found) + LATE
    rows = Witness.objects.filter(instance=instance.id, at__gte=text_of(first), at__lte=text_of(last))
    moments = list(rows.order_by("at").values_list("pk", "at"))  # documents are read of those that count alone
    chosen = {id(why): pk for why in found if (pk := _nearest(why, moments)) is not None}
    documents = Witness.objects.in_bulk(set(chosen.values()))
    return {key: documents[pk] for key, pk in chosen.items() if pk in documents}


def _nearest(why: Why, moments: Sequence[tuple[int, str]]) -> int | None:
    worst = (_moment(why.worst.started_at_ms), _moment(why.worst.ended_at_ms))
    for start, end in (worst, (why.started_at, why.ended_at)):
        near = [(pk, at) for pk, at in moments if text_of(start) <= at <= text_of(end + LATE)]
        if near:
            return min(near, key=lambda each: abs(datetime.fromisoformat(each[1]) - worst[1]))[0]
    return None


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
