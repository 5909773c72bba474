"""Operations, invoices, credit notes, and months of usage."""

from __future__ import annotations

import re
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from controlplane.billing.chain import NOTE_PREFIX, PREFIX, number_text
from controlplane.billing.pricing.rating import Month
from controlplane.billing.selectors import credit_note_list, invoice_list
from controlplane.core.selectors import operation_list
from controlplane.search.hits import Hit, page, rest, together
from controlplane.search.sql import RANK, fitting

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from controlplane.search.asking import Asker

NEWEST = 2_000
"""Operations that are looked through; an older one is found by its whole id."""
NUMBER = re.compile(r"(?:inv-)?0*([1-9][0-9]{0,8})")
NOTE = re.compile(rf"(?:{NOTE_PREFIX})?0*([1-9][0-9]{{0,8}})")
MONTH = re.compile(r"[0-9]{4}(?:-[0-9]{0,2})?")


def operations(asker: Asker) -> list[Hit]:
    """The newest, by id, what they work on, and kind (`instance.resize`)."""
    org = asker.caller.organisation
    known = operation_list(organisation=org, only_on=asker.caller.limits.instances)
    newest = list(known.order_by("-created_at").values_list("pk", flat=True)[:NEWEST])  # within it all would be read
    rows = known.filter(pk__in=[*newest, asker.wanted.whole])
    found = fitting(rows, asker.wanted, names=["id", "target", "kind"]).order_by(RANK, "-created_at", "pk")
    return [
        Hit(
            "operation",
            pk,
            pk,
            together([kind, target, state]),
            "",
            rest("operations", pk),
            page("operation", org.id, pk),
        )
        for pk, kind, target, state in found.values_list("pk", "kind", "target", "state")[: asker.most + 1]
    ]


def invoices(asker: Asker) -> list[Hit]:
    """By number, month, and the instance that they are of."""
    of_instance = [Q(instance__name__icontains=word) | Q(instance__id__icontains=word) for word in asker.wanted.words]
    for each in of_instance[1:]:
        of_instance[0] &= each
    named = _named(asker.wanted.whole, NUMBER, "month")
    fits = of_instance[0] if named is None else named | of_instance[0]
    rows = invoice_list(organisation=asker.caller.organisation).filter(fits).order_by("-month", "-number")
    found = rows.values_list("number", "month", "instance", "instance__name", "total", "currency")
    return _hits(asker, "invoice", "invoices", PREFIX, found)


def credit_notes(asker: Asker) -> list[Hit]:
    """By number, and the month of the invoice of which they give something back."""
    fits = _named(asker.wanted.whole, NOTE, "invoice__month")
    if fits is None:
        return []
    rows = credit_note_list(organisation=asker.caller.organisation).filter(fits).order_by("-number")
    found = rows.values_list(
        "number", "invoice__month", "invoice__instance", "invoice__instance__name", "amount", "currency"
    )
    return _hits(asker, "credit_note", "credit-notes", NOTE_PREFIX, found)


def _named(whole: str, number: re.Pattern[str], month: str) -> Q | None:
    """By number, or by what the field `month` begins with; None: it is neither."""
    named = [Q(number=int(found[1])) for found in [number.fullmatch(whole)] if found]
    if MONTH.fullmatch(whole):
        named.append(Q(**{f"{month}__startswith": whole}))
    return reduce(or_, named) if named else None


def _hits(asker: Asker, kind: str, address: str, prefix: str, rows: QuerySet[Any, Any]) -> list[Hit]:
    """Of rows of a number, a month, an instance with its name, an amount and its currency; each leads to the month's bill."""
    hits = []
    for given, month, pk, name, amount, currency in rows[: asker.most + 1]:
        text = number_text(given, prefix)
        shown = page("instance_bill", asker.caller.organisation.id, pk, month=month)
        where = together([name, month, f"{currency} {amount}"])
        hits.append(Hit(kind, text, text, where, pk, rest(address, text), shown))
    return hits


def months(asker: Asker) -> list[Hit]:
    """Months with invoices, and the present one: what was used and what it cost, the newest first."""
    org, whole = asker.caller.organisation, asker.wanted.whole
    if MONTH.fullmatch(whole) is None:
        return []
    billed = (
        invoice_list(organisation=org)
        .filter(month__startswith=whole)
        .order_by("-month")
        .values_list("month", flat=True)
    )
    present = str(Month.of(asker.clock.now()))
    found = [*([present] if present.startswith(whole) else []), *billed.distinct()[: asker.most + 1]]
    return [
        Hit("month", month, month, "", "", f"{rest('statement')}?month={month}", page("statement", org.id, month=month))
        for month in list(dict.fromkeys(found))[: asker.most + 1]
    ]
