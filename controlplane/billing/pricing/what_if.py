"""What a month would have cost at another size or under another plan. Pure.

Rule. The instance would have been there in the same hours, with the members of the size that are asked for throughout and the
others as they were; it would have used what it used, and what was paid in advance would have been paid for that size.
What was carried above the bought bandwidth stays as it was, too: of an hour it is known how much that was, and not how fast,
so what another bandwidth would have left of it cannot be told (`is_elastic_known`).
Days on which the guarantee was missed are as they were, at the price of the other size.
Adjustments of earlier months are left out of both sides: they are no matter of this month's size. Like a forecast it is an
inputs document, rated by the same `rate`; asked for what it was, it gives what it cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from controlplane.billing.pricing.documents import (
    besides_usage_in,
    hours_in,
    inputs_document,
    month_of,
    periods_in,
    rated,
    terms_in,
)
from controlplane.billing.pricing.elastic import elastic_in, elastic_of
from controlplane.billing.pricing.rating import ELASTIC, Period, Size, Term


@dataclass(frozen=True, slots=True)
class Wanted:
    """Members of another size; None: as it was."""

    bandwidth_mb_per_s: Decimal | None = None
    disk_gb: Decimal | None = None
    partitions: int | None = None

    def of(self, size: Size) -> Size:
        """A size with these members in place of its own."""
        return Size(
            size.bandwidth_mb_per_s if self.bandwidth_mb_per_s is None else self.bandwidth_mb_per_s,
            size.disk_gb if self.disk_gb is None else self.disk_gb,
            size.partitions if self.partitions is None else self.partitions,
        )


AS_IT_WAS = Wanted()


def what_if_document(
    inputs: Mapping[str, Any], wanted: Wanted = AS_IT_WAS, terms: Sequence[Term] | None = None
) -> dict[str, Any]:
    """The inputs of the month's own bill, otherwise. `terms`: other plans; None: as they were."""
    periods: tuple[Period, ...] = tuple(replace(period, size=wanted.of(period.size)) for period in periods_in(inputs))
    now = datetime.fromisoformat(inputs["now"])
    chosen, month = terms_in(inputs) if terms is None else terms, month_of(inputs["month"])
    return inputs_document(
        chosen,
        periods,
        month,
        now,
        hours_in(inputs),
        **besides_usage_in(inputs) | {"elastic": elastic_of(elastic_in(inputs.get("elastic")).hours, chosen, month)},
    )


def is_elastic_known(inputs: Mapping[str, Any], would: Mapping[str, Any]) -> bool:
    """Whether what `would` bills above the bandwidth is what it would have been: there is none, or the bandwidth is as it was.

    `would`: made of `inputs`, by `what_if_document`. Otherwise it is what was carried above the bandwidth of `inputs`.
    """
    before, after = (
        [period.size.bandwidth_mb_per_s for period in periods_in(document)] for document in (inputs, would)
    )
    return before == after or not any(line.item in ELASTIC for line in rated(would))
