"""Usage that became known after its month was invoiced, as lines of a later invoice. Pure.

Vocabulary. What an invoice and the adjustments since have *billed* is the usage that they were computed from. Usage is
*late* where today's hours say something else: more (a record came late) or less (a late record took from an hour what
belongs to the one before it).

Strategy. An adjustment is the difference of two ratings of the invoiced month, both under the plans that it was invoiced
with: one of what was billed before, one of what is billed after. Quantities and amounts of differences add up without a
rest, so that for every line

    invoiced + all its adjustments = the line, rated from all that was used

to the cent, however often and in whatever order usage came. Reserved items depend on no usage and have no adjustments.

An adjustment line names the invoice and the line that it adjusts, and covers the hours from the first that changed to
the last. An invoice of the first kind (documents.py) knew only the sum of its month: its adjustments cover the month.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from controlplane.billing.pricing.money import difference_of
from controlplane.billing.pricing.rating import (
    HOUR,
    USED,
    Adjusts,
    Hours,
    Line,
    Month,
    Span,
    Term,
    Used,
    spans_of,
    traffic,
)

Place = tuple[str, datetime]
"""Where a line of use stands on an invoice: its item, and the beginning of the span that its plan priced."""


@dataclass(frozen=True, slots=True)
class Late:
    """What is to be billed on top of an invoice."""

    invoice: str  # its number
    month: Month
    terms: tuple[Term, ...]  # it was rated with
    lines: Mapping[Place, int]  # the numbers of its lines of use
    billed: Hours  # before: by the beginning of each span
    changed: Hours  # by the hour; members may be negative
    by_hour: bool = True  # False: the hours of `changed` are not known, and stand for the month


def adjustments(late: Late) -> tuple[Line, ...]:
    """The lines that bill it, none of which has a quantity of 0."""
    return tuple(line for _, _, line in compared(late))


def compared(late: Late) -> Iterator[tuple[Line | None, Line | None, Line]]:
    """Each adjustment with the two lines that it is the difference of: what was billed so far, and what should be."""
    spans = spans_of(late.terms, late.month)
    before = _placed(spans, late.month, late.billed)
    after = _placed(spans, late.month, together(late.billed, late.changed))
    for span in spans:
        for item in USED:
            place = (item, span.start)
            old, new = before.get(place), after.get(place)
            line = _difference(old, new)
            if line is not None and line.quantity:
                start, end = _hours_of(late, span, item)
                adjusts = Adjusts(late.invoice, str(late.month), late.lines.get(place))
                yield old, new, replace(line, start=start, end=end, adjusts=adjusts)


def late_of(known: Hours, today: Hours) -> dict[datetime, Used]:
    """By how much each hour has changed; hours that have not are left out."""
    hours = sorted({*known, *today})
    changes = {hour: today.get(hour, Used()) - known.get(hour, Used()) for hour in hours}
    return {hour: change for hour, change in changes.items() if change != Used()}


def together(*parts: Hours) -> dict[datetime, Used]:
    """Hour by hour, the sum."""
    found: dict[datetime, Used] = {}
    for part in parts:
        for hour, used in part.items():
            found[hour] = found.get(hour, Used()) + used
    return found


def by_span(terms: Sequence[Term], month: Month, hours: Hours) -> dict[datetime, Used]:
    """The sums of each span, under the hour that it begins with."""
    return {
        span.start: sum((used for hour, used in hours.items() if span.start <= hour < span.end), Used())
        for span in spans_of(terms, month)
    }


def _placed(spans: Sequence[Span], month: Month, hours: Hours) -> dict[Place, Line]:
    return {(line.item, line.start): line for line in traffic(spans, month.end, hours)}


def _difference(old: Line | None, new: Line | None) -> Line | None:
    if new is None:
        return (
            None if old is None else replace(old, quantity=old.quantity.copy_negate(), amount=old.amount.copy_negate())
        )
    if old is None:
        return new
    return replace(
        new, quantity=difference_of(new.quantity, old.quantity), amount=difference_of(new.amount, old.amount)
    )


def _hours_of(late: Late, span: Span, item: str) -> tuple[datetime, datetime]:
    if not late.by_hour:
        return span.start, span.end
    hours = [hour for hour, used in late.changed.items() if span.start <= hour < span.end and used.of(item)]
    return min(hours), max(hours) + HOUR
