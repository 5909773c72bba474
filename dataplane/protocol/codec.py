"""Straight-line codecs, generated once per (message, version) from its declaration.

`decoder(cls, version)` and `encoder(cls, version)` write the Python source of a function that does exactly what this
version of this message needs (runs of fixed-size fields become one `struct` call, strings are sliced in place), `exec`
it, and cache it. Interpreting the declaration at run time costs ten times as much; a class per version is a thousand
files.

    decode(buffer, position, names) -> (message, position after it)
    encode(message, out: bytearray, names, splices) -> None

`names` maps fields that are marked as an entity (`quota.contracts.namespace.Names`). `splices` collects record bytes
that are not in memory: the frame is sent as bytes, file range, bytes, … A decoder never allocates for more elements
than there are bytes left, and raises DecodeError for whatever does not follow the declaration. One element can cost a
hundred times the bytes that it has on the wire; `limited_decoder` is for requests of strangers and counts them.

An element takes a microsecond or a few, so reading or writing a message of very many takes long. From the
same text with pauses in its loops come `decoder_in_steps`, `limited_decoder_in_steps` and `encoder_in_steps`, which make
`records.steps` of the same results. Nobody knows beforehand how many elements a frame has: `short_decoder` is the
straight line up to SHORT_ELEMENTS, and says with ManyElementsError that the steps are needed.

What leaves decoding and encoding out (`templates`) must know where a field stands. `marking_decoder` and
`marking_encoder` are the same text again, and note the place of each field that they were asked for.
"""

from __future__ import annotations

import struct as _struct
from collections.abc import Callable, Generator
from functools import cache
from typing import Any, TypeVar

from dataplane.protocol.arrays import as_array
from dataplane.protocol.primitives import Buffer, DecodeError, Splice, Splices, size_of
from dataplane.protocol.schema import Wire, draft_of, message_info, wires
from dataplane.protocol.source import FORMATS, Field, Source
from quota.contracts.namespace import ClusterNames, Names

T = TypeVar("T")
Decoder = Callable[[Buffer, int, Names], tuple[Any, int]]
Encoder = Callable[[Any, bytearray, Names, Splices], None]
DecoderInSteps = Callable[[Buffer, int, Names], Generator[None, None, tuple[Any, int]]]
EncoderInSteps = Callable[[Any, bytearray, Names, Splices], Generator[None, None, None]]
MarkingDecoder = Callable[[Buffer, int, Names, list[int]], tuple[Any, int]]
MarkingEncoder = Callable[[Any, bytearray, Names, Splices, list[int]], None]

MAX_ELEMENTS = 20_000
"""Of all arrays of a stranger's request together: topics, partitions, names."""
SHORT_ELEMENTS = 256
"""So many are decoded in a straight line, within half a millisecond."""
ELEMENTS_PER_STEP = 32
NUMBERS_PER_STEP = 4_096
"""Of an array of nothing else: 100 us."""
LEAST_SPLICED_BYTES = 4 * 2**10
"""Copying less costs no more than one more buffer to send."""
_LONGEST_STRING = 2**15 - 1  # as in Kafka, also where the length is a varint

_PHYSICAL = ClusterNames()


class ManyElementsError(DecodeError):
    """There is nothing wrong with the message but its length."""


def decode(cls: type[T], version: int, buffer: Buffer, position: int = 0, names: Names = _PHYSICAL) -> T:
    """One message from a buffer. Bytes after it are ignored, as Kafka does. Raises DecodeError."""
    message: T = decoder(cls, version)(buffer, position, names)[0]
    return message


def encode(message: Any, version: int, names: Names = _PHYSICAL) -> bytes:
    """One message that holds all its bytes itself."""
    out = bytearray()
    splices: Splices = []
    encoder(type(message), version)(message, out, names, splices)
    if not splices:
        return bytes(out)
    parts = cut(out, splices)
    if not all(isinstance(part, bytes | bytearray | memoryview) for part in parts):
        raise ValueError("the message refers to bytes elsewhere")
    return b"".join(parts)  # type: ignore[arg-type]


def cut(out: bytearray, splices: Splices) -> list[Buffer | Splice]:
    """What has been encoded, with the splices in their places."""
    if not splices:
        return [bytes(out)]
    view = memoryview(out)
    parts: list[Buffer | Splice] = []
    done = 0
    for position, splice in splices:
        if position > done:
            parts.append(bytes(view[done:position]))
        if size_of(splice):
            parts.append(splice)
        done = position
    if done < len(out):
        parts.append(bytes(view[done:]))
    return parts


def _cached(make: Callable[[type, int], T]) -> Callable[[type, int], T]:
    """`functools.cache` with its arguments' types; mypy does not take every class for hashable."""
    return cache(make)


@_cached
def decoder(cls: type, version: int) -> Decoder:
    """The decoder of a message at a version. Raises ValueError for a version that the message does not have."""
    return _make_decoder(cls, version, Source())  # type: ignore[no-any-return]


@_cached
def limited_decoder(cls: type, version: int) -> Decoder:
    """The same for what a stranger sends: DecodeError for more than MAX_ELEMENTS in all arrays together."""
    return _make_decoder(cls, version, Source(MAX_ELEMENTS))  # type: ignore[no-any-return]


@cache
def short_decoder(cls: type, version: int, most: int = SHORT_ELEMENTS) -> Decoder:
    """The same for what is mostly short: ManyElementsError for more than `most` elements, soon."""
    made: Decoder = _make_decoder(cls, version, Source(most, ManyElementsError))
    return made


@_cached
def decoder_in_steps(cls: type, version: int) -> DecoderInSteps:
    """As `decoder`, with pauses."""
    return _make_decoder(cls, version, Source(pause_every=ELEMENTS_PER_STEP))  # type: ignore[no-any-return]


@_cached
def limited_decoder_in_steps(cls: type, version: int) -> DecoderInSteps:
    """As `limited_decoder`, with pauses."""
    return _make_decoder(cls, version, Source(MAX_ELEMENTS, pause_every=ELEMENTS_PER_STEP))  # type: ignore[no-any-return]


@cache
def marking_decoder(cls: type, version: int, fields: tuple[Field, ...]) -> MarkingDecoder:
    """As `decoder`, and appends to `marks` where each of these fields begins, whenever it meets one.

    A field in an array is met once for each element. Raises ValueError for fields that are not in the order of their
    bytes, that this version has not, or only within its tags.
    """
    source = Source(marked=fields)
    made: MarkingDecoder = _make_decoder(cls, version, source)
    source.check_marked(cls, version)
    return made


def _make_decoder(cls: type, version: int, source: Source) -> Any:
    source.emit(f"def decode(b, p, names{', marks' if source.marked else ''}):")
    source.emit(" end = len(b)")
    if source.max_elements is not None:
        source.emit(f" left = {source.max_elements}")
    source.emit(" try:")
    source.indent = "  "
    source.begin_steps()
    result = _decode_struct(source, cls, version, flexible=_flexible(cls, version))
    source.emit(f"return {result}, p")
    source.indent = ""
    source.emit(" except (struct_error, UnicodeDecodeError, IndexError) as error:")
    source.emit("  raise DecodeError(f'{type(error).__name__}: {error}') from None")
    return source.build("decode", f"{cls.__name__}.v{version}.decode")


@_cached
def encoder(cls: type, version: int) -> Encoder:
    """The encoder of a message at a version. Raises ValueError for a version that the message does not have."""
    return _make_encoder(cls, version, Source())  # type: ignore[no-any-return]


@_cached
def encoder_in_steps(cls: type, version: int) -> EncoderInSteps:
    """As `encoder`, with pauses."""
    return _make_encoder(cls, version, Source(pause_every=ELEMENTS_PER_STEP))  # type: ignore[no-any-return]


@cache
def marking_encoder(cls: type, version: int, fields: tuple[Field, ...]) -> MarkingEncoder:
    """As `encoder`, and appends to `marks` where in `out` each of these fields begins: see `marking_decoder`."""
    source = Source(marked=fields)
    made: MarkingEncoder = _make_encoder(cls, version, source)
    source.check_marked(cls, version)
    return made


def _make_encoder(cls: type, version: int, source: Source) -> Any:
    source.emit(f"def encode(m, out, names, splices{', marks' if source.marked else ''}):")
    source.indent = " "
    source.emit("pass")
    source.begin_steps()
    _encode_struct(source, "m", cls, version, flexible=_flexible(cls, version))
    return source.build("encode", f"{cls.__name__}.v{version}.encode")


def _flexible(cls: type, version: int) -> bool:
    info = message_info(cls)
    if version not in info.versions:
        raise ValueError(f"{cls.__name__} has no version {version}")
    return version in info.flexible


# --- decoding ---------------------------------------------------------------------------------------------------------


def _decode_struct(source: Source, cls: type, version: int, *, flexible: bool) -> str:
    """Emit the decoding of all fields of `cls`; returns the variable that holds the structure."""
    values: dict[str, str] = {}
    tagged: list[tuple[str, Wire]] = []
    run: list[tuple[str, str]] = []  # (variable, format) of consecutive fixed-size fields
    for name, wire, default in wires(cls):
        if version in wire.tagged:
            values[name] = source.fresh()
            source.emit(f"{values[name]} = {source.constant(default)}")
            tagged.append((values[name], wire))
        elif version in wire.versions:
            values[name] = source.fresh()
            source.mark(cls, name, "p", run)
            if wire.kind in FORMATS:
                run.append((values[name], FORMATS[wire.kind]))
            else:
                _flush_decode(source, run)
                _decode_value(source, values[name], wire, version, flexible=flexible)
        else:
            values[name] = source.constant(default)
    _flush_decode(source, run)
    if flexible:
        _decode_tagged(source, tagged, version)
    return _construct(source, cls, values)


def _construct(source: Source, cls: type, values: dict[str, str]) -> str:
    """Emit what the constructor does (`schema._frozen`), without calling it."""
    made = source.fresh("m")
    source.emit(f"{made} = {source.bind(draft_of(cls), 'draft')}()")
    for name, value in values.items():
        source.emit(f"{made}.{name} = {value}")
    source.emit(f"{made}.__class__ = {source.bind(cls, 'cls')}")
    return made


def _flush_decode(source: Source, run: list[tuple[str, str]]) -> None:
    if run:
        formats = "".join(f for _, f in run)
        source.emit(f"{''.join(v + ', ' for v, _ in run)}= {source.packer(formats, 'unpack_from')}(b, p)")
        source.emit(f"p += {_struct.calcsize('>' + formats)}")
        run.clear()


def _decode_tagged(source: Source, tagged: list[tuple[str, Wire]], version: int) -> None:
    number, tag, size, after = (source.fresh() for _ in range(4))
    source.uvarint(number)
    source.emit(f"while {number}:")
    outer = source.indent
    source.indent += " "
    source.emit(f"{number} -= 1")
    source.uvarint(tag)
    source.uvarint(size)
    source.emit(f"{after} = p + {size}")
    source.emit(f"if {after} > end: raise DecodeError('a tagged field ends after the message')")
    source.in_tags += 1
    for variable, wire in tagged:
        source.emit(f"if {tag} == {wire.tag}:")
        source.indent += " "
        if wire.kind in FORMATS:
            _flush_decode(source, [(variable, FORMATS[wire.kind])])
        else:
            _decode_value(source, variable, wire, version, flexible=True)
        source.emit(f"if p != {after}: raise DecodeError('a tagged field has another size than it says')")
        source.indent = source.indent[:-1]
    source.in_tags -= 1
    source.emit(f"p = {after}")
    source.indent = outer


def _decode_value(source: Source, target: str, wire: Wire, version: int, *, flexible: bool) -> None:
    if wire.kind in FORMATS:  # an element of an array
        _flush_decode(source, [(target, FORMATS[wire.kind])])
    elif wire.kind == "uuid":
        source.emit("if p + 16 > end: raise DecodeError('a uuid ends after the message')")
        source.emit(f"{target} = uuid_of(bytes(b[p:p + 16])); p += 16")
    elif wire.kind == "struct":
        _decode_nested(source, target, wire, version, flexible=flexible)
    elif wire.kind == "array":
        _decode_array(source, target, wire, version, flexible=flexible)
    else:
        _decode_sized(source, target, wire, version, flexible=flexible)


def _decode_nested(source: Source, target: str, wire: Wire, version: int, *, flexible: bool) -> None:
    assert isinstance(wire.element, type)
    if version in wire.nullable:
        present = source.fresh()
        _flush_decode(source, [(present, "b")])
        source.emit(f"{target} = None")
        source.emit(f"if {present} >= 0:")
        source.indent += " "
        source.emit(f"{target} = {_decode_struct(source, wire.element, version, flexible=flexible)}")
        source.indent = source.indent[:-1]
    else:
        source.emit(f"{target} = {_decode_struct(source, wire.element, version, flexible=flexible)}")


def _decode_length(source: Source, length_format: str, *, flexible: bool) -> str:
    length = source.fresh("n")
    if flexible:
        source.uvarint(length)
        source.emit(f"{length} -= 1")
    else:
        _flush_decode(source, [(length, length_format)])
    return length


def _decode_null(source: Source, target: str, length: str, wire: Wire, version: int) -> None:
    """Emit what happens at a negative length, and `else:`; leaves the source indented inside it."""
    source.emit(f"if {length} < 0:")
    if version in wire.nullable:
        source.emit(f" if {length} != -1: raise DecodeError('a negative length')")
        source.emit(f" {target} = None")
    else:
        source.emit(" raise DecodeError('null where it is not allowed')")
    source.emit("else:")
    source.indent += " "


def _decode_sized(source: Source, target: str, wire: Wire, version: int, *, flexible: bool) -> None:
    length = _decode_length(source, "h" if wire.kind == "string" else "i", flexible=flexible and wire.flexible)
    _decode_null(source, target, length, wire, version)
    after = source.fresh("e")
    source.emit(f"{after} = p + {length}")
    source.emit(f"if {after} > end: raise DecodeError('a {wire.kind} ends after the message')")
    if wire.kind == "string":
        if flexible and wire.flexible:
            source.emit(f"if {length} > {_LONGEST_STRING}: raise DecodeError('a string is too long')")
        value = f"bytes(b[p:{after}]).decode()"  # faster than str() of a memoryview
        source.emit(f"{target} = {_map_name(value, wire, 'in')}")
    elif wire.kind == "bytes":
        source.emit(f"{target} = bytes(b[p:{after}])")
    else:
        source.emit(f"{target} = b[p:{after}]")
    source.emit(f"p = {after}")
    source.indent = source.indent[:-1]


def _map_name(value: str, wire: Wire, way: str) -> str:
    return f"names.{wire.entity}_{way}({value})" if wire.entity else value


def _decode_array(source: Source, target: str, wire: Wire, version: int, *, flexible: bool) -> None:
    length = _decode_length(source, "i", flexible=flexible)
    _decode_null(source, target, length, wire, version)
    source.emit(f"if {length} > end - p: raise DecodeError(f'{{{length}}} elements in {{end - p}} bytes')")
    if source.max_elements is not None:
        source.emit(f"left -= {length}")
        source.emit("if left < 0: raise TooMany('too many elements')")
    items = source.fresh("items")
    if isinstance(wire.element, Wire) and wire.element.kind in FORMATS:
        code = FORMATS[wire.element.kind]
        size = _struct.calcsize(">" + code)
        struct_name = source.bind(_struct.unpack_from, "unpack_from")
        if source.pause_every is not None:
            source.emit(f"{items} = []")
            source.emit(f"while {length} > {NUMBERS_PER_STEP}:")
            source.emit(f" {items} += {struct_name}('>{NUMBERS_PER_STEP}{code}', b, p)")
            source.emit(f" p += {NUMBERS_PER_STEP * size}; {length} -= {NUMBERS_PER_STEP}; yield")
        source.emit(f"{target} = {struct_name}(f'>{{{length}}}{code}', b, p); p += {length} * {size}")
        if source.pause_every is not None:
            source.emit(f"if {items}: {items} += {target}; {target} = {source.bind(as_array, 'array')}({items})")
    else:
        source.emit(f"{items} = []")
        source.emit(f"for _ in range({length}):")
        source.indent += " "
        source.pause()
        if isinstance(wire.element, Wire):
            item = source.fresh()
            _decode_value(source, item, wire.element, version, flexible=flexible)
        else:
            assert wire.element is not None
            item = _decode_struct(source, wire.element, version, flexible=flexible)
        source.emit(f"{items}.append({item})")
        source.indent = source.indent[:-1]
        made = "tuple" if source.pause_every is None else source.bind(as_array, "array")
        source.emit(f"{target} = {made}({items})")
    source.indent = source.indent[:-1]


# --- encoding ---------------------------------------------------------------------------------------------------------


def _encode_struct(source: Source, value: str, cls: type, version: int, *, flexible: bool) -> None:
    run: list[tuple[str, str]] = []
    tagged: list[tuple[str, Wire, Any]] = []
    for name, wire, default in wires(cls):
        expression = f"{value}.{name}"
        if version in wire.tagged:
            tagged.append((expression, wire, default))
        elif version in wire.versions:
            source.mark(cls, name, "len(out)", run)
            if wire.kind in FORMATS:
                run.append((expression, FORMATS[wire.kind]))
            else:
                _flush_encode(source, run)
                _encode_value(source, expression, wire, version, flexible=flexible)
    _flush_encode(source, run)
    if flexible:
        _encode_tagged(source, tagged, version)


def _flush_encode(source: Source, run: list[tuple[str, str]]) -> None:
    if run:
        formats = "".join(f for _, f in run)
        source.emit(f"out += {source.packer(formats, 'pack')}({', '.join(e for e, _ in run)})")
        run.clear()


def _encode_tagged(source: Source, tagged: list[tuple[str, Wire, Any]], version: int) -> None:
    if not tagged:
        source.emit("out.append(0)")
        return
    tagged = sorted(tagged, key=lambda item: item[1].tag or 0)
    given = [_is_given(source, expression, default) for expression, _, default in tagged]
    source.emit(f"if {' or '.join(given)}:")
    source.indent += " "
    number, whole = source.fresh(), source.fresh("whole")
    source.emit(f"{number} = 0; {whole} = out; out = bytearray()")
    source.in_tags += 1
    for (expression, wire, _), condition in zip(tagged, given, strict=True):
        part = source.fresh("part")
        source.emit(f"if {condition}:")
        source.indent += " "
        source.emit(f"{number} += 1; {part} = out; out = bytearray()")
        if wire.kind in FORMATS:
            _flush_encode(source, [(expression, FORMATS[wire.kind])])
        else:
            _encode_value(source, expression, wire, version, flexible=True)
        source.emit(f"write_uvarint({part}, {wire.tag}); write_uvarint({part}, len(out)); {part} += out; out = {part}")
        source.indent = source.indent[:-1]
    source.in_tags -= 1
    source.emit(f"write_uvarint({whole}, {number}); {whole} += out; out = {whole}")
    source.indent = source.indent[:-1]
    source.emit("else: out.append(0)")


def _is_given(source: Source, expression: str, default: Any) -> str:
    """A condition: a tagged field is written where it is not the default. Identity first, structures are slow."""
    constant = source.constant(default)
    if constant == repr(default):  # a literal
        return f"{expression} {'is not' if default is None else '!='} {constant}"
    return f"({expression} is not {constant} and {expression} != {constant})"


def _encode_value(source: Source, expression: str, wire: Wire, version: int, *, flexible: bool) -> None:
    if wire.kind in FORMATS:
        _flush_encode(source, [(expression, FORMATS[wire.kind])])
    elif wire.kind == "uuid":
        source.emit(f"out += {expression}.bytes")
    elif wire.kind == "struct":
        _encode_nested(source, expression, wire, version, flexible=flexible)
    elif wire.kind == "array":
        _encode_array(source, expression, wire, version, flexible=flexible)
    else:
        _encode_sized(source, expression, wire, version, flexible=flexible and wire.flexible)


def _encode_nested(source: Source, expression: str, wire: Wire, version: int, *, flexible: bool) -> None:
    assert isinstance(wire.element, type)
    local = source.fresh()
    source.emit(f"{local} = {expression}")
    if version in wire.nullable:
        source.emit(f"if {local} is None: out.append(255)")
        source.emit("else:")
        source.indent += " "
        source.emit("out.append(1)")
        _encode_struct(source, local, wire.element, version, flexible=flexible)
        source.indent = source.indent[:-1]
    else:
        _encode_struct(source, local, wire.element, version, flexible=flexible)


def _encode_length(source: Source, length: str, length_format: str, *, flexible: bool) -> None:
    if flexible:
        source.emit(f"if {length} < 127: out.append({length} + 1)")
        source.emit(f"else: write_uvarint(out, {length} + 1)")
    else:
        source.emit(f"out += {source.packer(length_format, 'pack')}({length})")


def _encode_null(source: Source, local: str, wire: Wire, version: int, null: str) -> bool:
    """Emit the null case; returns whether the source is now indented inside its `else:`."""
    if version not in wire.nullable:
        return False
    source.emit(f"if {local} is None: out += {null}")
    source.emit("else:")
    source.indent += " "
    return True


def _encode_sized(source: Source, expression: str, wire: Wire, version: int, *, flexible: bool) -> None:
    local = source.fresh()
    short = wire.kind == "string"
    source.emit(f"{local} = {expression}")
    null = "b'\\0'" if flexible else ("b'\\xff\\xff'" if short else "b'\\xff\\xff\\xff\\xff'")
    indented = _encode_null(source, local, wire, version, null)
    if short:
        source.emit(f"{local} = {_map_name(local, wire, 'out')}.encode()")
    length = source.fresh("n")
    spliced = source.fresh("size")
    if wire.kind == "records":
        source.emit(f"{spliced} = getattr({local}, 'size', None)")
        source.emit(f"{length} = len({local}) if {spliced} is None else {spliced}")
    else:
        source.emit(f"{length} = len({local})")
    _encode_length(source, length, "h" if short else "i", flexible=flexible)
    if wire.spliced:
        assert not source.in_tags
        source.emit(f"if {length} < {LEAST_SPLICED_BYTES}: out += {local}")
        source.emit(f"else: splices.append((len(out), {local}))")
    elif wire.kind == "records":
        source.emit(f"if {spliced} is None: out += {local}")
        source.emit(f"else: splices.append((len(out), {local}))")
    else:
        source.emit(f"out += {local}")
    if indented:
        source.indent = source.indent[:-1]


def _encode_array(source: Source, expression: str, wire: Wire, version: int, *, flexible: bool) -> None:
    local, length, item = source.fresh(), source.fresh("n"), source.fresh("item")
    source.emit(f"{local} = {expression}")
    null = "b'\\0'" if flexible else "b'\\xff\\xff\\xff\\xff'"
    indented = _encode_null(source, local, wire, version, null)
    source.emit(f"{length} = len({local})")
    _encode_length(source, length, "i", flexible=flexible)
    source.emit(f"for {item} in {local}:")
    source.indent += " "
    source.emit("pass")
    source.pause()
    if isinstance(wire.element, Wire):
        _encode_value(source, item, wire.element, version, flexible=flexible)
    else:
        assert wire.element is not None
        _encode_struct(source, item, wire.element, version, flexible=flexible)
    source.indent = source.indent[:-1]
    if indented:
        source.indent = source.indent[:-1]
