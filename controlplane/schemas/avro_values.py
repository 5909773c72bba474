"""Avro: content by a schema, as JSON. Pure.

The schema is read by the Apache library. Content is read here, and not by it: it computes for each list how small an item can
be, which a schema whose records hold each other twice makes take for ever.

Logical types become what people read: dates, times and timestamps in ISO 8601, decimals as text. One whose value is out
of range stays the number that it is. Bytes are in base64. A union is the value alone, without the name of its branch.
"""

from __future__ import annotations

import re
import struct
import warnings
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any

import avro.schema

from controlplane.schemas.framing import zigzag
from controlplane.schemas.values import DEEPEST, LONGEST_NAME, Allowance, SchemaError, UndecodableError, number, octets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from controlplane.schemas.values import Json

MOST_PLACES = 100
"""Of a decimal."""
MOST_FIXED_BYTES = 2**20
_LONGEST_SENTENCE = 300
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_WARNINGS = Lock()
"""Python keeps one list of filters for all threads."""
_FLOAT, _double = struct.Struct("<f"), struct.Struct("<d").unpack_from
_LARGEST_FLOAT = 3.4e38
_DIGITS = {1_000: "milliseconds", 1_000_000: "microseconds", 1_000_000_000: "microseconds"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1)
_EXACT = Context(prec=8 * MOST_PLACES)


class AvroDecoder:
    """Of one schema."""

    def __init__(self, definition: str) -> None:
        """Raises SchemaError."""
        try:
            with _WARNINGS, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of logical types that it does not know
                self._schema: Any = avro.schema.parse(definition.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}"))
            _check(self._schema, set(), 0)
        except SchemaError:
            raise
        except RecursionError as error:
            raise SchemaError("is nested too deeply") from error
        except Exception as error:  # the library raises what comes: AttributeError, OverflowError
            raise SchemaError(f"is no Avro schema: {_sentence(error)}") from error

    def decode(self, content: bytes, allowance: Allowance) -> Json:
        """All of the content. Raises UndecodableError."""
        reader = _Reader(content, allowance)
        value = reader.value(self._schema, 0)
        if reader.at != len(content):
            raise UndecodableError(f"it has {len(content) - reader.at} bytes behind its end")
        return value


def _sentence(error: Exception) -> str:
    """The first line of what the library says."""
    line = (str(error).splitlines() or [type(error).__name__])[0][:_LONGEST_SENTENCE]
    return line.encode(errors="backslashreplace").decode()


def _check(schema: Any, seen: set[str], depth: int) -> None:
    """Names are told again with every value, so they must not be long. Raises SchemaError."""
    if depth > 100:
        raise SchemaError("is nested too deeply")
    names: list[str] = []
    inner: list[Any] = []
    if hasattr(schema, "fullname"):
        if schema.fullname in seen:
            return
        seen.add(schema.fullname)
    if schema.type in ("record", "error"):
        names, inner = [field.name for field in schema.fields], [field.type for field in schema.fields]
    elif schema.type == "enum":
        names = list(schema.symbols)
    elif schema.type == "array":
        inner = [schema.items]
    elif schema.type == "map":
        inner = [schema.values]
    elif schema.type in ("union", "error_union"):
        inner = list(schema.schemas)
    elif schema.type == "fixed" and (isinstance(schema.size, bool) or not 0 <= schema.size <= MOST_FIXED_BYTES):
        raise SchemaError(f"has a fixed type whose size is not 0 to {MOST_FIXED_BYTES}")
    for name in names:
        if len(name) > LONGEST_NAME:
            raise SchemaError(f"has a name of more than {LONGEST_NAME} characters: {name[:40]}…")
        if not _NAME.fullmatch(name):
            raise SchemaError(f"has a name that is none in Avro: {name!r:.60}")
    for each in inner:
        _check(each, seen, depth + 1)


# --- values -----------------------------------------------------------------------------------------------------------


class _Reader:
    """Goes through content. All of it raises UndecodableError."""

    def __init__(self, data: bytes, allowance: Allowance) -> None:
        self._data, self._allowance = data, allowance
        self.at = 0

    def value(self, schema: Any, depth: int) -> Json:
        """The next, of this type."""
        self._allowance.take()
        if depth > DEEPEST:
            raise UndecodableError(f"it is nested in more than {DEEPEST} levels")
        kind = schema.type
        if kind in ("record", "error"):
            self._allowance.take(0, letters=sum(len(field.name) for field in schema.fields))
            return {field.name: self.value(field.type, depth + 1) for field in schema.fields}
        if kind in ("union", "error_union"):
            branch = self._number()
            if not 0 <= branch < len(schema.schemas):
                raise UndecodableError(f"it names branch {branch} of a union of {len(schema.schemas)}")
            return self.value(schema.schemas[branch], depth + 1)
        if kind == "array":
            return [self.value(schema.items, depth + 1) for _ in self._items()]
        if kind == "map":
            return {self._text(): self.value(schema.values, depth + 1) for _ in self._items()}
        return self._scalar(schema, kind)

    def _items(self) -> Iterator[None]:
        """Once for each item of an array or a map, before it is read."""
        while count := self._number():
            if count < 0:
                self._number()  # bytes of the block, for those who pass it over
                count = -count
            for _ in range(count):
                yield

    def _scalar(self, schema: Any, kind: str) -> Json:
        logical = getattr(schema, "logical_type", None) or schema.other_props.get("logicalType")
        if not isinstance(logical, str):
            logical = None
        if kind == "null":
            return None
        if kind == "boolean":
            octet = self._take(1)[0]
            if octet > 1:
                raise UndecodableError(f"it holds {octet} where a boolean stands")
            return bool(octet)
        if kind in ("int", "long"):
            found = self._number()
            return _MOMENTS.get((kind, logical), int)(found)
        if kind == "float":
            return number(_shortest(self._take(4)))
        if kind == "double":
            return number(_double(self._take(8))[0])
        if kind == "string":
            return self._text()
        if kind == "enum":
            place = self._number()
            if not 0 <= place < len(schema.symbols):
                raise UndecodableError(f"it names symbol {place} of {len(schema.symbols)}")
            symbol = str(schema.symbols[place])
            self._allowance.take(0, letters=len(symbol))
            return symbol
        content = self._take(schema.size if kind == "fixed" else self._number())
        if logical != "decimal":
            return octets(content)
        text = _decimal(content, schema)
        self._allowance.take(0, letters=len(text))
        return text

    def _text(self) -> str:
        content = self._take(self._number())
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise UndecodableError("it holds bytes where text stands") from error

    def _number(self) -> int:
        found, self.at = zigzag(self._data, self.at)
        return found

    def _take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self._data):
            raise UndecodableError(f"it ends within a value of {size} bytes")
        content, self.at = self._data[self.at : end], end
        return content


def _shortest(content: bytes) -> float:
    """A float of 32 bits in as few digits as tell it from others: 0.1 and not 0.10000000149."""
    found: float = _FLOAT.unpack(content)[0]
    for digits in range(6, 9):
        shorter = float(f"{found:.{digits}g}")
        if abs(shorter) < _LARGEST_FLOAT and _FLOAT.pack(shorter) == content:
            return shorter
    return found


def _date(days: int) -> Json:
    try:
        return (_EPOCH_DAY + timedelta(days=days)).isoformat()
    except OverflowError:
        return days


def _time_of(per_second: int) -> Callable[[int], Json]:
    def told(units: int) -> Json:
        if not 0 <= units < 86_400 * per_second:
            return units
        return (_EPOCH + timedelta(microseconds=units * 1_000_000 // per_second)).time().isoformat(_DIGITS[per_second])

    return told


def _moment_of(per_second: int, *, is_local: bool = False) -> Callable[[int], Json]:
    def told(units: int) -> Json:
        try:
            found = _EPOCH + timedelta(microseconds=units * 1_000_000 // per_second)
        except OverflowError:
            return units
        return found.replace(tzinfo=None).isoformat(timespec=_DIGITS[per_second]) + ("" if is_local else "Z")

    return told


_MOMENTS: dict[tuple[str, str | None], Callable[[int], Json]] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time_of(1_000),
    ("long", "time-micros"): _time_of(1_000_000),
    ("long", "timestamp-millis"): _moment_of(1_000),
    ("long", "timestamp-micros"): _moment_of(1_000_000),
    ("long", "timestamp-nanos"): _moment_of(1_000_000_000),
    ("long", "local-timestamp-millis"): _moment_of(1_000, is_local=True),
    ("long", "local-timestamp-micros"): _moment_of(1_000_000, is_local=True),
    ("long", "local-timestamp-nanos"): _moment_of(1_000_000_000, is_local=True),
}


def _decimal(content: bytes, schema: Any) -> str:
    scale = schema.other_props.get("scale", 0)
    if not isinstance(scale, int) or not 0 <= scale <= MOST_PLACES or len(content) > MOST_PLACES:
        return octets(content)
    return format(Decimal(int.from_bytes(content, signed=True)).scaleb(-scale, _EXACT), "f")
