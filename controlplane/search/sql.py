"""The order of `matching`, asked of the database. `%` and `_` of a text are letters like others: Django's lookups escape them."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Q, SmallIntegerField, Value, When

from controlplane.search.matching import EXACT, PREFIX, WITHIN, WORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

    from controlplane.search.matching import Wanted

BETWEEN = " .-_/@:"
"""What words of a name stand behind."""
RANK = "search_rank"


def fitting(rows: QuerySet[Any], wanted: Wanted, *, names: Sequence[str], beside: Sequence[str] = ()) -> QuerySet[Any]:
    """Rows each word of the text is in, with `search_rank`, the best first; the caller adds a second order.

    `names`: fields by which they are ranked; `beside`: others in which a word may be as well.
    """
    if not wanted.words:
        unranked: QuerySet[Any] = rows.annotate(**{RANK: Value(WITHIN)})
        return unranked
    for word in wanted.words:
        rows = rows.filter(_any((*names, *beside), "icontains", word))
    rank = Case(
        When(_any(names, "iexact", wanted.whole), then=Value(EXACT)),
        When(_any(names, "istartswith", wanted.whole), then=Value(PREFIX)),
        When(reduce(and_, (_begins(names, word) for word in wanted.words)), then=Value(WORD)),
        default=Value(WITHIN),
        output_field=SmallIntegerField(),
    )
    ranked: QuerySet[Any] = rows.annotate(**{RANK: rank})
    return ranked


def _begins(names: Sequence[str], word: str) -> Q:
    behind = [_any(names, "icontains", f"{each}{word}") for each in BETWEEN]
    return reduce(or_, [_any(names, "istartswith", word), *behind])


def _any(names: Iterable[str], lookup: str, text: str) -> Q:
    return reduce(or_, (Q(**{f"{name}__{lookup}": text}) for name in names))
