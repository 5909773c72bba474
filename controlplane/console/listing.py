"""Lists: a page of rows, and the text they were searched with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.paginator import Page, Paginator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest

ROWS = 25
LONGEST_SEARCH = 200


@dataclass(frozen=True, slots=True)
class Listing:
    """What parts/pages.html and parts/search.html draw from."""

    page: Page[Any]
    search: str

    @property
    def total(self) -> int:
        """Rows on all pages."""
        return self.page.paginator.count


def searched(request: HttpRequest) -> str:
    """The text in the search box."""
    return request.GET.get("q", "").strip().replace("\x00", "")[:LONGEST_SEARCH]


def listing(
    request: HttpRequest, rows: QuerySet[Any] | Sequence[Any], *, search: str = "", size: int = ROWS
) -> Listing:
    """The page that the address asks for; the nearest one if there is none of that number."""
    return Listing(Paginator(rows, size).get_page(request.GET.get("page")), search)
