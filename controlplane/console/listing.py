"""Lists: a page of rows, the text they were searched with, and the column that they are sorted by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.paginator import Page, Paginator
from django.db.models import F

from controlplane.api.sorting import NAME, Order

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

ROWS = 25
LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class Listing:
    """What parts/pages.html and parts/search.html draw from."""

    page: Page[Any]
    search: str
    parameter: str = "page"  # of the address, that says which page it is

    @property
    def total(self) -> int:
        """Rows on all pages."""
        return self.page.paginator.count


def searched(request: HttpRequest) -> str:
    """The text in the search box."""
    return request.GET.get("q", "").strip().replace("\x00", "")[:LONGEST_SEARCH]


def chosen(request: HttpRequest, name: str, choices: Collection[str]) -> str:
    """The one of these words that a list is narrowed to; empty: none is, or what is no such word."""
    word = request.GET.get(name, "")
    return word if word in choices else ""


def order_asked(request: HttpRequest, fields: Collection[str]) -> Order | None:
    """By which column, in the words of REST; None: as the page has it by itself. What is no column of it is passed over."""
    word = request.GET.get(NAME, "")
    field = word.removeprefix("-")
    return Order(field, word.startswith("-")) if field in fields else None


def ordered(rows: QuerySet[Any], order: Order, columns: Mapping[str, str]) -> QuerySet[Any]:
    """Rows by one of the columns, those without a value last."""
    by = F(columns[order.field])
    return rows.order_by(by.desc(nulls_last=True) if order.is_descending else by.asc(nulls_last=True), "pk")


def kept(request: HttpRequest, *names: str) -> list[tuple[str, str]]:
    """What a search keeps of the address: parts/search.html sends it on."""
    return [(name, request.GET[name]) for name in names if request.GET.get(name)]


def listing(
    request: HttpRequest,
    rows: QuerySet[Any] | Sequence[Any],
    *,
    search: str = "",
    size: int = ROWS,
    parameter: str = "page",
) -> Listing:
    """The page that the address asks for; the nearest one if there is none of that number.

    `parameter`: by which it asks. A second list of one page has another than the first.
    """
    return Listing(Paginator(rows, size).get_page(request.GET.get(parameter)), search, parameter)
