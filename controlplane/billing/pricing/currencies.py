"""One currency a bill: which ones the lines of a bill are in. Pure.

A plan and a price list have a currency each, a line has that of the one that it names, and amounts of two currencies are never
added up. A change of currency counts from a month's first hour, and nothing that was paid in advance reaches beyond it
(billing/services.py, admission/prepaid.py), so a bill has one. This is looked at where a bill is summed all the same, and a
bill that has two is refused: as a what-if, where what was paid in advance has no amount in the other plan's currency.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from controlplane.billing.pricing.documents import late_in, prepaid_in, terms_in
from controlplane.billing.pricing.elastic import elastic_in
from controlplane.billing.pricing.rating import Line


class MixedCurrenciesError(ValueError):
    """Lines of a bill that cannot be added up."""


def check_sole_currency(inputs: Mapping[str, Any], lines: Iterable[Line]) -> None:
    """Whether lines, which an inputs document gives, are in one currency: that of its last plan. Raises MixedCurrenciesError."""
    by_name, own = _currencies(inputs), terms_in(inputs)[-1].plan.currency
    # What names no price list (a credit) is priced by the plans of the month.
    others = sorted({by_name.get(line.plan, own) for line in lines} - {own})
    if others:
        raise MixedCurrenciesError(f"the month is billed in {own}, and has amounts in {', '.join(others)}")


def _currencies(inputs: Mapping[str, Any]) -> dict[str, str]:
    """By the names that lines have for plans and price lists."""
    terms = (*terms_in(inputs), *(term for late in late_in(inputs) for term in late.terms))
    in_advance = (event.prices for event in prepaid_in(inputs).events if event.prices is not None)
    elastic = elastic_in(inputs.get("elastic")).prices.values()
    return {
        **{term.plan.name: term.plan.currency for term in terms},
        **{prices.name: prices.currency for prices in in_advance},
        **{prices.name: prices.currency for prices in elastic},
    }
