"""Lists in another order, by ``?sort=name`` or, the largest first, ``?sort=-name``.

What has no value (a key that was never used, a lag that nobody knows) stands last in both directions. Among what is equal the
smaller key comes first, so that every item has one place, and a cursor is that place: the order, the value and the key of the
last item that was shown. Items that come, go or change between two pages move none of the others: nothing that stays is shown
twice or left out. A cursor of one order is refused in another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import models
from django.db.models import F, Model, Q, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from controlplane.api import pagination
from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rest_framework.request import Request

    Written = str | int | float | None
    Value = Written | datetime

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")

NAME = "sort"
MARK = "sort"
"""The first member of a cursor of these lists, which no other cursor has."""
LONGEST_NUMBER = 40
"""Letters of a decimal number in a cursor."""


@dataclass(frozen=True, slots=True)
class Order:
    """By which field, and in which direction."""

    field: str
    is_descending: bool

    @property
    def word(self) -> str:
        """As it is asked for."""
        return f"-{self.field}" if self.is_descending else self.field


def parameter(fields: Iterable[str], default: str, note: str = "") -> OpenApiParameter:
    """Of the published schema, for `order_of`. `default`: which come first where nothing is said."""
    names = list(fields)
    return OpenApiParameter(
        NAME,
        OpenApiTypes.STR,
        enum=[word for name in names for word in (name, f"-{name}")],
        description=f"by this field; with a `-` before it the largest first. What has no value comes last; a cursor goes on in "
        f"its own order; default: {default}{note and f'. {note}'}",
    )


def order_of(request: Request, fields: Iterable[str]) -> Order | None:
    """The order that is asked for; None: none is. Raises Invalid, which names the fields that there are."""
    if NAME not in request.query_params:
        return None
    if "order" in request.query_params:
        raise Invalid.field(NAME, "goes without `order`: say one of them")
    word: str = request.query_params[NAME]
    names, field = list(fields), word.removeprefix("-")
    if field not in names:
        raise Invalid.field(NAME, f"must be one of {', '.join(names)}, or one of them with a - before it")
    return Order(field, word.startswith("-"))


def rows_page(
    request: Request,
    rows: QuerySet[Row],
    columns: Mapping[str, str],
    *,
    key: type[str | int] = str,
    default: Callable[[Request, QuerySet[Row]], tuple[list[Row], str | None]] = pagination.rows_page,
) -> tuple[list[Row], str | None]:
    """One page of rows in the order that is asked for, and the next cursor; as `default` has it where none is.

    `columns`: where the database has each field, by its name in the address; `key`: the type of the rows' primary keys.
    Raises Invalid.
    """
    order = order_of(request, columns)
    if order is None:
        return default(request, rows)
    column, limit = columns[order.field], pagination.limit_of(request)
    place = _place(request, order)
    if place is not None:
        value, last = _value_in(_field(rows, column), place[0]), place[1]
        if type(last) is not key or not _is_key(last):
            raise pagination.bad_cursor()
        rows = rows.filter(_behind(order, column, value, last))
    by = F(column)
    first = by.desc(nulls_last=True) if order.is_descending else by.asc(nulls_last=True)
    found = list(rows.order_by(first, "pk")[: limit + 1])
    last_row = found[limit - 1] if len(found) > limit else None
    following = None if last_row is None else cursor(order, _written(_read(last_row, column)), last_row.pk)
    return found[:limit], following


def items_page(
    request: Request,
    items: Iterable[Item],
    order: Order,
    *,
    value: Callable[[Item], Value],
    key: Callable[[Item], str],
) -> tuple[list[Item], str | None]:
    """The same of items that are all known: `value` by which they are sorted, `key` by which two with the same one are.

    Moments are all in UTC.
    """

    def written(item: Item) -> Written:
        return _written(value(item))

    limit, place = pagination.limit_of(request), _place(request, order)
    found = in_order(items, order, value=written, key=key)
    if place is not None:
        if not isinstance(place[1], str):
            raise pagination.bad_cursor()
        try:
            found = [item for item in found if _is_behind(order, place, written(item), key(item))]
        except TypeError as error:  # a text and a number are not compared
            raise pagination.bad_cursor() from error
    page = found[:limit]
    return page, cursor(order, written(page[-1]), key(page[-1])) if len(found) > limit else None


def known_page(
    request: Request,
    items: Iterable[Item],
    fields: Mapping[str, Callable[[Item], Value]],
    key: Callable[[Item], str],
) -> tuple[list[Item], str | None]:
    """The same by one of `fields`, as `rows_page` has it: where no order is asked for, items are by `key`.

    Raises Invalid.
    """
    order = order_of(request, fields)
    if order is None:  # a cursor is compared as text is here, and a database may have other rules for letters and signs
        return pagination.items_page(request, sorted(items, key=key), key)
    return items_page(request, items, order, value=fields[order.field], key=key)


def in_order(
    items: Iterable[Item], order: Order, *, value: Callable[[Item], Value], key: Callable[[Item], str]
) -> list[Item]:
    """All of them, in this order."""
    by_key = sorted(items, key=key)
    known = [item for item in by_key if value(item) is not None]
    known.sort(key=value, reverse=order.is_descending)  # type: ignore[arg-type]  # stable, both ways
    return known + [item for item in by_key if value(item) is None]


def cursor(order: Order, value: Written, key: str | int) -> str:
    """Of the page that goes on behind the item with these two."""
    return pagination.encoded([MARK, order.word, value, key])


def _place(request: Request, order: Order) -> tuple[Any, Any] | None:
    """Value and key that the cursor of this order has; None: the list begins. Raises Invalid."""
    found = pagination.cursor_of(request)
    if found is None:
        return None
    try:
        mark, word, value, key = found
    except (TypeError, ValueError) as error:
        raise pagination.bad_cursor() from error
    if not isinstance(found, list) or mark != MARK:
        raise pagination.bad_cursor()
    if word != order.word:
        raise Invalid.field("cursor", f"is of another order than {order.word}: begin again without it")
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise pagination.bad_cursor()
    return value, key


def _is_behind(order: Order, place: tuple[Any, Any], value: Any, key: str) -> bool:
    last, last_key = place
    if value is None or last is None:
        return value is None and (last is not None or key > last_key)
    if value == last:
        return bool(key > last_key)
    return bool(value < last if order.is_descending else value > last)


def _behind(order: Order, column: str, value: Any, key: str | int) -> Q:
    """The same, for the database."""
    if value is None:
        return Q(**{f"{column}__isnull": True, "pk__gt": key})
    further = Q(**{f"{column}__{'lt' if order.is_descending else 'gt'}": value})
    return further | Q(**{column: value, "pk__gt": key}) | Q(**{f"{column}__isnull": True})


def _field(rows: QuerySet[Any], column: str) -> models.Field[Any, Any]:
    """Of the table, or of what the rows are annotated with."""
    annotated = rows.query.annotations.get(column)
    if annotated is not None:
        return annotated.output_field
    model: type[Model] = rows.model
    *ways, last = column.split("__")
    for way in ways:
        model = model._meta.get_field(way).related_model  # type: ignore[assignment]  # noqa: SLF001  # Django's name for it
    return model._meta.get_field(last)  # type: ignore[return-value]  # noqa: SLF001  # likewise


def _read(row: Any, column: str) -> Any:
    for way in column.split("__"):
        row = None if row is None else getattr(row, way)
    return row


def _written(value: Any) -> Written:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    found: Written = value
    return found


def _value_in(field: models.Field[Any, Any], said: Any) -> Any:
    """What a cursor says, as the database is asked for it. Raises Invalid for what no cursor of ours says."""
    if said is None:
        return None
    try:
        if isinstance(field, models.DateTimeField):
            return datetime.fromisoformat(said).astimezone(UTC)
        if isinstance(field, models.DecimalField):
            return _decimal_in(field, said)
        if isinstance(field, models.FloatField) and math.isfinite(said):
            return float(said)
        is_number = isinstance(field, models.IntegerField)
        if type(said) is (int if is_number else str) and pagination.can_be_asked(said):
            return said
    except (TypeError, ValueError, OverflowError, InvalidOperation) as error:
        raise pagination.bad_cursor() from error
    raise pagination.bad_cursor()


def _decimal_in(field: models.DecimalField[Any, Any], said: str) -> Decimal:
    """One that the column can hold. Raises ValueError, TypeError, InvalidOperation."""
    if len(said) > LONGEST_NUMBER:
        raise ValueError("too long")
    value = Decimal(said)
    exponent = value.as_tuple().exponent
    digits = field.max_digits - field.decimal_places
    if not isinstance(exponent, int) or -exponent > field.decimal_places or value.adjusted() >= digits:
        raise ValueError("no amount")
    return value


def _is_key(key: str | int) -> bool:
    return 0 <= key < 2**63 if isinstance(key, int) else pagination.can_be_asked(key)
