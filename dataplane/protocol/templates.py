"""Templates: messages of which few fields change are recognised and written without being decoded or encoded.

A *hole* is a field that changes from message to message, while all other bytes stay as they are: an offset, the records.
Where the holes of a message are, the codecs say that read or write the whole of it (`codec.marking_decoder`). So there is no
second description of the wire: a version that changes the layout changes it here as well.

    Requests        a frame -> what was learned of a frame with the same other bytes, correlation id, values of the holes
    RecordRequests  the same where the one hole holds records, of any size
    answer_template (correlation id, values of the holes) -> an answer, up to its records

Why equal bytes mean the same: a decoder reads from the front to the back. What it makes of a byte depends on those before
it, and a hole of a fixed size decides nothing; behind records of whatever size it goes on as it did. That holds for bytes
that the decoder passes over as well (tags that are not known, what follows the message): they are compared, too.

A frame is taken apart by one call of `struct`, and an answer is made by one: both come from one format, the constant
bytes as ``s`` among the holes. What differs only in number (holes, bytes of a varint) is unrolled in generated text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

from dataplane.protocol.api import Api
from dataplane.protocol.codec import marking_decoder, marking_encoder
from dataplane.protocol.headers import SIZE_BYTES, begin_answer, parse_request_header
from dataplane.protocol.primitives import INT32, Buffer, DecodeError, read_uvarint
from dataplane.protocol.schema import message_info, wires
from dataplane.protocol.source import FORMATS, Field, Source
from quota.contracts.namespace import Names

S = TypeVar("S")

_REQUEST_HEAD = struct.Struct(">4s4s")  # key and version, the correlation id: in every request there will be
_ANSWER_HEAD = struct.Struct(">i4s")  # size, the correlation id
_LENGTH = struct.Struct(">I")  # of records, or its varint with what follows
_LONGEST_UVARINT = 5


# --- requests ---------------------------------------------------------------------------------------------------------


class Requests(Generic[S]):
    """What is known of requests by all their bytes but the holes, each of a fixed size; in order of their bytes."""

    __slots__ = ("_api", "_formats", "_holes", "_layouts", "_shapes", "find")

    def __init__(self, api: Api, holes: tuple[Field, ...]) -> None:
        self._api, self._holes = api, holes
        self._shapes: dict[tuple[bytes, ...], S] = {}  # by the bytes that stay
        self._layouts: dict[int, tuple[Callable[[Buffer], tuple[Any, ...]], ...]] = {}  # by the size of the frame
        self._formats: set[str] = set()
        self.find: Callable[[Buffer], tuple[Any, ...] | None] = _finder(len(holes))(self._layouts, self._shapes)
        """``(what was learned, correlation id, value of each hole)``, or None for a frame that is not known."""

    def __len__(self) -> int:
        return len(self._shapes)

    def learn(self, frame: memoryview, names: Names, shape: S) -> bool:
        """Know frames that differ from this one, which can be decoded, in nothing but holes and correlation id.

        False where it is not of that kind: a hole is missing, or is there more than once.
        """
        header = parse_request_header(frame)
        marks: list[int] = []
        locate = marking_decoder(self._api.request, header.api_version, self._holes)
        locate(frame, header.position, names, marks)
        if len(marks) != len(self._holes):
            return False
        layout, done = _REQUEST_HEAD.format, _REQUEST_HEAD.size
        for place, hole in zip(marks, self._holes, strict=True):
            code = _format_of(hole)
            layout += f"{place - done}s{code}"
            done = place + struct.calcsize(">" + code)
        layout += f"{len(frame) - done}s"
        whole = struct.Struct(layout)
        self._shapes[whole.unpack(frame)[::2]] = shape
        if layout not in self._formats:
            self._formats.add(layout)
            self._layouts[whole.size] = (*self._layouts.get(whole.size, ()), whole.unpack)
        return True

    def forget(self) -> None:
        """Know nothing any more."""
        self._shapes.clear()
        self._layouts.clear()
        self._formats.clear()


@cache
def _finder(holes: int) -> Callable[..., Any]:
    """Makes `Requests.find`. Constant bytes and holes alternate, the correlation id being a hole of all requests."""
    source = Source()
    constants, values = [f"c{n}" for n in range(holes + 2)], ["correlation_id", *(f"v{n}" for n in range(holes))]
    pieces = [name for pair in zip(constants, values, strict=False) for name in pair] + constants[-1:]
    source.emit("def bind(layouts, shapes):")
    source.emit(" def find(frame):")
    source.emit("  for unpack in layouts.get(len(frame), ()):")
    source.emit(f"   {', '.join(pieces)} = unpack(frame)")
    source.emit(f"   shape = shapes.get(({', '.join(constants)}))")
    source.emit(f"   if shape is not None: return shape, {', '.join(values)}")
    source.emit("  return None")
    source.emit(" return find")
    return source.build("bind", f"find.{holes}")  # type: ignore[no-any-return]


_Read = Callable[[Buffer], tuple[bytes, bytes, bytes, int]]
_Layout = tuple[_Read, int, int, bool]
"""Reads what is before the length of records and a word from there on; its place, the least size, whether it is a varint."""
_Known = tuple[Any, tuple[bytes], int, Callable[[Buffer, int], tuple[Any, ...]]]
"""What was learned; what comes behind the records, its size, and what reads it. (Plain tuples: named ones unpack slower.)"""


class RecordRequests(Generic[S]):
    """What is known of requests by all their bytes but one field of records."""

    __slots__ = ("_api", "_hole", "_layouts", "_places", "_shapes", "find")

    def __init__(self, api: Api, hole: Field) -> None:
        self._api, self._hole = api, hole
        self._shapes: dict[tuple[bytes, bytes], _Known] = {}  # by what comes before the records
        self._layouts: list[_Layout] = []
        self._places: set[tuple[int, bool]] = set()
        self.find: Callable[[memoryview], tuple[S, bytes, memoryview] | None] = _record_finder(
            self._layouts, self._shapes
        )
        """``(what was learned, correlation id, records)``, or None for a frame that is not known."""

    def __len__(self) -> int:
        return len(self._shapes)

    def learn(self, frame: memoryview, names: Names, shape: S) -> bool:
        """Know frames that differ from this one, which can be decoded, in nothing but records and correlation id.

        False where it is not of that kind: without records, or with those of several partitions.
        """
        header = parse_request_header(frame)
        request, version = self._api.request, header.api_version
        marks: list[int] = []
        marking_decoder(request, version, (self._hole,))(frame, header.position, names, marks)
        if len(marks) != 1:
            return False
        is_compact = version in message_info(request).flexible
        length, begin = _length_at(frame, marks[0], is_compact=is_compact)
        if length <= 0:
            return False
        whole = struct.Struct(f"{_REQUEST_HEAD.format}{marks[0] - _REQUEST_HEAD.size}s{_LENGTH.format[1:]}")
        key, _, head, _ = whole.unpack_from(frame)
        tail = bytes(frame[begin + length :])
        self._shapes[key, head] = (shape, (tail,), len(tail), struct.Struct(f"{len(tail)}s").unpack_from)
        if (marks[0], is_compact) not in self._places:
            self._places.add((marks[0], is_compact))
            self._layouts.append((whole.unpack_from, marks[0], whole.size, is_compact))
        return True


def _record_finder(layouts: list[_Layout], shapes: dict[tuple[bytes, bytes], _Known]) -> Callable[..., Any]:
    """Makes `RecordRequests.find`: without `self`, a tenth less for each produce request."""

    def find(frame: memoryview) -> tuple[Any, bytes, memoryview] | None:
        size = len(frame)
        for read, place, least, is_compact in layouts:
            if size < least:
                continue
            key, correlation_id, head, word = read(frame)
            known = shapes.get((key, head))
            if known is not None:
                shape, tail, tail_bytes, read_tail = known
                if not is_compact:
                    length, begin = word, place + 4
                elif not word & 0x80000000:  # a varint of one byte
                    length, begin = (word >> 24) - 1, place + 1
                elif not word & 0x800000:  # of two
                    length, begin = (word >> 24 & 0x7F | word >> 9 & 0x3F80) - 1, place + 2
                elif not word & 0x8000:  # of three: 16 KiB to 2 MiB
                    length, begin = (word >> 24 & 0x7F | word >> 9 & 0x3F80 | word << 6 & 0x1FC000) - 1, place + 3
                else:
                    try:
                        length, begin = read_uvarint(frame, place)
                    except DecodeError:
                        return None
                    length -= 1
                end = begin + length
                if length < 0 or end + tail_bytes != size or (tail_bytes and read_tail(frame, end) != tail):
                    return None
                return shape, correlation_id, frame[begin:end]
        return None

    return find


def _length_at(frame: memoryview, place: int, *, is_compact: bool) -> tuple[int, int]:
    """``(size of the records, where they begin)``."""
    if not is_compact:
        return INT32.unpack_from(frame, place)[0], place + INT32.size
    length, begin = read_uvarint(frame, place)
    return length - 1, begin


# --- answers ----------------------------------------------------------------------------------------------------------


class AnswerTemplate(NamedTuple):
    """An answer but for its holes."""

    head: Callable[..., bytes]
    """Correlation id (four bytes) and a value for each hole -> the frame with its size; of records the number of bytes,
    and the frame ends where they begin."""
    tail: bytes
    """What follows the records."""


def answer_template(api: Api, version: int, message: Any, holes: tuple[Field, ...], names: Names) -> AnswerTemplate:
    """A template made of a message; what the holes hold in it does not matter, but records must be empty, not null.

    Holes are named in the order of their bytes, and each is there once; records come last. Raises ValueError.
    """
    out, marks = begin_answer(api, version), list[int]()
    marking_encoder(api.response, version, holes)(message, out, names, [], marks)
    if len(marks) != len(holes):
        raise ValueError(f"{api.response.__name__} {version}: a hole is missing, or is there more than once")
    is_compact = version in message_info(api.response).flexible
    layout, constants, done = _ANSWER_HEAD.format, [], _ANSWER_HEAD.size
    records = ""
    for place, hole in zip(marks, holes, strict=True):
        if records:
            raise ValueError("records are not the last hole")
        constants.append(bytes(out[done:place]))
        layout += f"{place - done}s"
        if _kind_of(hole) == "records":
            records = "compact" if is_compact else "plain"
            done = place + (1 if is_compact else INT32.size)
        else:
            layout += _format_of(hole)
            done = place + struct.calcsize(">" + _format_of(hole))
    tail = bytes(out[done:])
    if not records:
        constants.append(tail)
        layout, tail = layout + f"{len(tail)}s", b""
    lengths = {"": [""], "plain": ["i"], "compact": ["B" * size for size in range(1, _LONGEST_UVARINT + 1)]}[records]
    packs = [struct.Struct(layout + length).pack for length in lengths]
    size = struct.calcsize(layout) - SIZE_BYTES + len(tail)
    return AnswerTemplate(_writer(len(holes), records)(packs, size, constants), tail)


@cache
def _writer(holes: int, records: str) -> Callable[..., Callable[..., bytes]]:
    """Makes `AnswerTemplate.head`: one call that packs everything. `size` is that of the frame without records and length."""
    source = Source()
    values = [f"v{n}" for n in range(holes - bool(records))]
    constants = [f"c{n}" for n in range(len(values) + 1)]
    lengths = range(1, _LONGEST_UVARINT + 1) if records == "compact" else range(1, 2)
    source.emit("def bind(packs, size, constants):")
    source.emit(f" {', '.join(f'pack{n}' for n in lengths)}, = packs")
    source.emit(f" {', '.join(constants)}, = constants")
    source.emit(f" def head({', '.join(['correlation_id', *values, *(['records'] if records else [])])}):")
    source.indent = "  "
    pieces = ", ".join(
        ["correlation_id", *(name for pair in zip(constants, values, strict=False) for name in pair), constants[-1]]
    )
    if not records:
        source.emit(f"return pack1(size, {pieces})")
    elif records == "plain":
        source.emit(f"return pack1(size + {INT32.size} + records, {pieces}, records)")
    else:
        source.emit("n = records + 1")
        for count in lengths:
            groups = [f"n >> {7 * group} & 127 | 128" for group in range(count - 1)] + [f"n >> {7 * (count - 1)}"]
            if count < _LONGEST_UVARINT:
                source.emit(f"if n < {1 << 7 * count}:")
            source.emit(
                f"{' ' * (count < _LONGEST_UVARINT)}return pack{count}(size + {count} + records, {pieces}, {', '.join(groups)})"
            )
    source.indent = ""
    source.emit(" return head")
    return source.build("bind", f"head.{holes}.{records}")  # type: ignore[no-any-return]


def with_field(api: Api, version: int, head: Buffer, name: str, value: int) -> Buffer:
    """The beginning of an answer with another value of a field; a bytearray is changed in place.

    Raises ValueError for a field behind one whose size is not fixed.
    """
    place, number = _place_in_answer(api, version, name)
    if type(head) is bytearray:
        number.pack_into(head, place, value)
        return head
    return bytes(head[:place]) + number.pack(value) + bytes(head[place + number.size :])


@cache
def _place_in_answer(api: Api, version: int, name: str) -> tuple[int, struct.Struct]:
    place = len(begin_answer(api, version))
    for each, wire, _ in wires(api.response):
        if version in wire.versions and version not in wire.tagged:
            if wire.kind not in FORMATS:
                break
            number = struct.Struct(">" + FORMATS[wire.kind])
            if each == name:
                return place, number
            place += number.size
    raise ValueError(f"{api.response.__name__} {version}: {name} has no fixed place")


# --- fields -----------------------------------------------------------------------------------------------------------


def _kind_of(hole: Field) -> str:
    part, name = hole
    return next(wire.kind for each, wire, _ in wires(part) if each == name)


def _format_of(hole: Field) -> str:
    """Raises KeyError for a field that has no fixed size."""
    return FORMATS[_kind_of(hole)]
