"""Pages: ``{"items": [...], "next": cursor|null}``, asked for with ``?limit=`` and ``?cursor=``.

A cursor is the sort key of the last item shown, so that a page stays right while rows come and go. To the caller it is
opaque: base64url of JSON.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from django.db.models import Model, Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rest_framework.request import Request

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")

DEFAULT_LIMIT = 50
MOST = 200

PARAMETERS = [
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MOST},
        description=f"items a page, 1 to {MOST}; default {DEFAULT_LIMIT}",
    ),
    OpenApiParameter("cursor", OpenApiTypes.STR, description="`next` of the page before"),
]


ORDERS = ("oldest", "newest")
ORDER = OpenApiParameter(
    "order",
    OpenApiTypes.STR,
    enum=list(ORDERS),
    description="which come first; a cursor goes on in its own order; default oldest",
)


def is_newest_first(request: Request) -> bool:
    """Of a list that can be had in either order. Raises Invalid."""
    word = request.query_params.get("order", ORDERS[0])
    if word not in ORDERS:
        raise Invalid.field("order", f"must be one of {', '.join(ORDERS)}")
    return word == "newest"


def rows_page(request: Request, rows: QuerySet[Row]) -> tuple[list[Row], str | None]:
    """One page of rows in the order of `created_at`, and the next cursor."""
    cursor = cursor_of(request)
    if cursor is not None:
        try:
            created_at, key = datetime.fromisoformat(cursor[0]).astimezone(UTC), str(cursor[1])
        except (TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
            raise bad_cursor() from error
        if not can_be_asked(key):
            raise bad_cursor()
        rows = rows.filter(Q(created_at__gt=created_at) | Q(created_at=created_at, pk__gt=key))
    limit = limit_of(request)
    found = list(rows.order_by("created_at", "pk")[: limit + 1])
    last = found[limit - 1] if len(found) > limit else None
    following = None if last is None else encoded([last.created_at.isoformat(), last.pk])  # type: ignore[attr-defined]
    return found[:limit], following


def newest_page(
    request: Request, rows: QuerySet[Row], *, moment: str, key: type[int | str]
) -> tuple[list[Row], str | None]:
    """One page of rows by the field `moment`, the newest first, and the next cursor; `key` is the type of their primary keys."""
    cursor = cursor_of(request)
    if cursor is not None:
        try:
            at, last_key = datetime.fromisoformat(cursor[0]).astimezone(UTC), cursor[1]
        except (TypeError, ValueError, IndexError, KeyError, OverflowError) as error:
            raise bad_cursor() from error
        if type(last_key) is not key:
            raise bad_cursor()
        if not (0 <= last_key < 2**63 if isinstance(last_key, int) else can_be_asked(last_key)):
            raise bad_cursor()
        rows = rows.filter(Q(**{f"{moment}__lt": at}) | Q(**{moment: at, "pk__lt": last_key}))
    limit = limit_of(request)
    found = list(rows.order_by(f"-{moment}", "-pk")[: limit + 1])
    last = found[limit - 1] if len(found) > limit else None
    return found[:limit], None if last is None else encoded([getattr(last, moment).isoformat(), last.pk])


def items_page(
    request: Request, items: Sequence[Item], key: Callable[[Item], str], *, limit: int = DEFAULT_LIMIT
) -> tuple[list[Item], str | None]:
    """One page of items that are already sorted by a text key, and the next cursor; `limit` where none is asked for."""
    cursor = cursor_of(request)
    if cursor is not None:
        if not isinstance(cursor, list) or len(cursor) != 1 or not isinstance(cursor[0], str):
            raise bad_cursor()
        items = [item for item in items if key(item) > cursor[0]]
    limit = limit_of(request, limit)
    page = list(items[:limit])
    return page, encoded([key(page[-1])]) if len(items) > limit else None


def cursor_after(key: str) -> str:
    """Of `items_page`, where a page has to end before its time: the cursor of what follows this key."""
    return encoded([key])


def fetched_page(
    request: Request,
    fetch: Callable[[Any | None, int], list[Item]],
    *,
    key: Callable[[Item], tuple[str | int, ...]],
    shape: tuple[type, ...],
) -> tuple[list[Item], str | None]:
    """One page of what `fetch(after, limit)` reads, sorted by `key`, whose members have the types of `shape`."""
    cursor = cursor_of(request)
    if cursor is not None:
        if not isinstance(cursor, list) or [type(member) for member in cursor] != list(shape):
            raise bad_cursor()
        if not all(can_be_asked(member) for member in cursor):
            raise bad_cursor()
    limit = limit_of(request)
    found = fetch(None if cursor is None else tuple(cursor), limit + 1)
    return found[:limit], encoded([*key(found[limit - 1])]) if len(found) > limit else None


def place_page(request: Request) -> tuple[int | None, int]:
    """For pages that end wherever a look did: the place that `place_cursor` wrote into the cursor (None: none), the limit."""
    cursor = cursor_of(request)
    if cursor is not None:
        if not isinstance(cursor, list) or len(cursor) != 1 or type(cursor[0]) is not int or not 0 <= cursor[0] < 2**63:
            raise bad_cursor()
        return cursor[0], limit_of(request)
    return None, limit_of(request)


def place_cursor(place: int | None) -> str | None:
    """The cursor of the page that goes on there; None: there is none."""
    return None if place is None else encoded([place])


def can_be_asked(member: str | int) -> bool:
    """Whether a database takes it: no half surrogate pairs, no NUL, no integer that is too wide."""
    if isinstance(member, int):
        return abs(member) < 2**31
    return "\x00" not in member and not any("\ud800" <= letter <= "\udfff" for letter in member)


def body(items: list[Any], following: str | None) -> dict[str, Any]:
    """What a list answers. `following` is the cursor of the next page, None on the last."""
    return {"items": items, "next": following}


def limit_of(request: Request, default: int = DEFAULT_LIMIT) -> int:
    """Items a page. Raises Invalid."""
    if "limit" not in request.query_params:
        return default
    text = request.query_params["limit"]
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST):
        raise Invalid.field("limit", f"must be a whole number from 1 to {MOST}")
    return int(text)


def cursor_of(request: Request) -> Any | None:
    """What the cursor of the address holds, whoever wrote it; None: there is none. Raises Invalid."""
    text = request.query_params.get("cursor")
    if text is None:
        return None
    try:
        return json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
    except (ValueError, RecursionError) as error:
        raise bad_cursor() from error


def encoded(key: list[Any]) -> str:
    """A cursor that holds this."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def bad_cursor() -> Invalid:
    """Of a cursor that nobody was given."""
    return Invalid.field("cursor", "is not one that this service gave out")
