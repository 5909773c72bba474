"""The order of `matching`, asked of the database. `%` and `_` of a text are letters like others: Django's lookups escape them."""

from __future__ import annotations

import re
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

from django.db.models import Case, Q, SmallIntegerField, Value, When

from controlplane.search.matching import EXACT, PREFIX, WITHIN, WORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.db.models import QuerySet

    from controlplane.search.matching import Wanted

BEHIND = "(^|[-._/@: ])"
"""What words of a name stand behind, as a regular expression of PostgreSQL and of Python."""
RANK = "search_rank"


def fitting(rows: QuerySet[Any], wanted: Wanted, *, names: Sequence[str], beside: Sequence[str] = ()) -> QuerySet[Any]:
    """Rows each word of the text is in, with `search_rank`, the best first; the caller adds a second order.

    `names`: fields by which they are ranked; `beside`: others in which a word may be as well.
    """
    for word in wanted.words:
        rows = rows.filter(_any((*names, *beside), "icontains", word))
    return ranked(rows, wanted, names=names)


def ranked(rows: QuerySet[Any], wanted: Wanted, *, names: Sequence[str]) -> QuerySet[Any]:
    """The same of rows that are known to fit."""
    if not wanted.words:
        unranked: QuerySet[Any] = rows.annotate(**{RANK: Value(WITHIN)})
        return unranked
    rank = Case(
        When(_any(names, "iexact", wanted.whole), then=Value(EXACT)),
        When(_any(names, "istartswith", wanted.whole), then=Value(PREFIX)),
        When(reduce(and_, (_begins(names, word) for word in wanted.words)), then=Value(WORD)),
        default=Value(WITHIN),
        output_field=SmallIntegerField(),
    )
    found: QuerySet[Any] = rows.annotate(**{RANK: rank})
    return found


def _begins(names: Sequence[str], word: str) -> Q:
    return _any(names, "iregex", BEHIND + re.escape(word))


def _any(names: Iterable[str], lookup: str, text: str) -> Q:
    return reduce(or_, (Q(**{f"{name}__{lookup}": text}) for name in names))
