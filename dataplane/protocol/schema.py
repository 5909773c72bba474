"""How a message is declared: a frozen dataclass whose fields carry their wire type and the versions they exist in.

    @message(api_key=8, versions="0-9", flexible="8+")
    class OffsetCommitRequest:
        group_id: str = string(entity="group")
        member_id: str = string("1+")
        topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)

Version ranges are Kafka's own notation: ``"3"``, ``"3-5"``, ``"3+"``. A field outside its versions keeps its default
when decoded and is not written. ``entity`` marks a field that holds a name which differs between a tenant and the
cluster ("topic", "group" or "transactional_id"): the codecs map it on the way in and on the way out
(`quota.contracts.namespace`), so that a handler cannot forget to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform
from uuid import UUID

T = TypeVar("T")
NO_UUID = UUID(int=0)
_FOREVER = 32767


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; low > high is the empty one."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Versions:
        """From Kafka's notation; None and "none" are the empty range."""
        if text is None or text == "none":
            return cls(1, 0)
        low, dash, high = text.partition("-")
        if dash:
            return cls(int(low), int(high))
        return cls(int(low[:-1]), _FOREVER) if low.endswith("+") else cls(int(low), int(low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high


@dataclass(frozen=True, slots=True)
class Wire:
    """The wire side of one field."""

    kind: str  # int8 … int64, uint16, float64, bool, string, bytes, records, uuid, array, struct
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    entity: str | None
    element: type | Wire | None  # of an array or struct
    flexible: bool = True  # False: never compact, even in a flexible version (client id of request headers)
    spliced: bool = False  # of long bytes no copy is made: they leave from where they are


@dataclass(frozen=True, slots=True)
class MessageInfo:
    """What a message's decorator was told: key, versions, from which on it is flexible."""

    api_key: int | None
    versions: Versions
    flexible: Versions


def _field(
    kind: str,
    versions: str,
    default: Any,
    *,
    nullable: str | None = None,
    tagged: str | None = None,
    tag: int | None = None,
    entity: str | None = None,
    element: type | Wire | None = None,
    flexible: bool = True,
    spliced: bool = False,
) -> Any:
    wire = Wire(
        kind,
        Versions.parse(versions),
        Versions.parse(nullable),
        Versions.parse(tagged),
        tag,
        entity,
        element,
        flexible,
        spliced,
    )
    return dataclasses.field(default=default, metadata={"wire": wire})


def _number(kind: str) -> Callable[..., Any]:
    def declare(versions: str = "0+", *, default: float = 0, tagged: str | None = None, tag: int | None = None) -> Any:
        return _field(kind, versions, default, tagged=tagged, tag=tag)

    return declare


int8 = _number("int8")
int16 = _number("int16")
uint16 = _number("uint16")
int32 = _number("int32")
int64 = _number("int64")
float64 = _number("float64")


def boolean(versions: str = "0+", *, default: bool = False, tagged: str | None = None, tag: int | None = None) -> Any:
    """One byte, 0 or 1."""
    return _field("bool", versions, default, tagged=tagged, tag=tag)


def string(
    versions: str = "0+",
    *,
    default: str | None = "",
    nullable: str | None = None,
    tagged: str | None = None,
    tag: int | None = None,
    entity: str | None = None,
    flexible: bool = True,
) -> Any:
    """UTF-8 text with its length in front."""
    return _field(
        "string",
        versions,
        default,
        nullable=nullable,
        tagged=tagged,
        tag=tag,
        entity=entity,
        flexible=flexible,
    )


def binary(
    versions: str = "0+",
    *,
    default: bytes | None = b"",
    nullable: str | None = None,
    tagged: str | None = None,
    tag: int | None = None,
    spliced: bool = False,
) -> Any:
    """Bytes with their length in front; decoded as `bytes`.

    `spliced` is for what is kept in memory anyhow and may be long in all (not in a tagged field): it is not copied.
    """
    return _field("bytes", versions, default, nullable=nullable, tagged=tagged, tag=tag, spliced=spliced)


def records(versions: str = "0+", *, nullable: str | None = None) -> Any:
    """Record batches: decoded as a `memoryview` into the frame, never copied; encoded from a buffer or a Splice."""
    return _field("records", versions, None, nullable=nullable)


def uuid(versions: str = "0+", *, tagged: str | None = None, tag: int | None = None) -> Any:
    """Sixteen bytes."""
    return _field("uuid", versions, NO_UUID, tagged=tagged, tag=tag)


def structure(
    element: type[T],
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: Any = dataclasses.MISSING,
    tagged: str | None = None,
    tag: int | None = None,
) -> Any:
    """Another structure in place."""
    value = element() if default is dataclasses.MISSING else default
    return _field("struct", versions, value, nullable=nullable, tagged=tagged, tag=tag, element=element)


def array(
    element: Any,
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: Any = (),
    tagged: str | None = None,
    tag: int | None = None,
    entity: str | None = None,
) -> Any:
    """A tuple of structures, or of the primitive that `element` (the name of a kind) says."""
    if isinstance(element, str):
        none = Versions.parse(None)
        element = Wire(element, Versions(0, _FOREVER), none, none, None, entity, None)
    return _field("array", versions, default, nullable=nullable, tagged=tagged, tag=tag, element=element)


def _frozen(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots that is made in half the time that `dataclass` takes.

    The constructor of a frozen dataclass goes through `object.__setattr__` for each field. Ours fills a *draft*, a
    class with the same slots that is not frozen, and then turns the draft into the real thing by setting its class,
    which Python allows for equal layouts. The decoders do the same in line.
    """
    built: Any = dataclass(frozen=True, slots=True, init=False)(cls)
    fields = dataclasses.fields(built)
    built.DRAFT = type(f"{cls.__name__}Draft", (), {"__slots__": tuple(f.name for f in fields)})
    parameters = "".join(f", {f.name}=defaults[{n}]" for n, f in enumerate(fields))
    lines = [f"def __new__(cls{parameters}):", " message = draft()"]
    lines += [f" message.{f.name} = {f.name}" for f in fields]
    lines += [" message.__class__ = cls", " return message"]
    scope: dict[str, Any] = {"draft": built.DRAFT, "defaults": [f.default for f in fields]}
    exec(compile("\n".join(lines), f"<{cls.__name__}.__new__>", "exec"), scope)  # noqa: S102 - our own text
    built.__new__ = scope["__new__"]
    return built  # type: ignore[no-any-return]


@dataclass_transform(frozen_default=True)
def struct(cls: type[T]) -> type[T]:
    """A structure that messages hold; it has no API key of its own."""
    return _frozen(cls)


@dataclass_transform(frozen_default=True)
def message(*, versions: str, flexible: str, api_key: int | None = None) -> Callable[[type[T]], type[T]]:
    """A whole message: a request, a response, a header, or a record of an internal topic (no api_key)."""
    info = MessageInfo(api_key, Versions.parse(versions), Versions.parse(flexible))

    def decorate(cls: type[T]) -> type[T]:
        built = _frozen(cls)
        built.INFO = info  # type: ignore[attr-defined]
        return built

    return decorate


def message_info(cls: type) -> MessageInfo:
    """What the `message` decorator was told of a class."""
    info: MessageInfo = cls.INFO  # type: ignore[attr-defined]
    return info


def draft_of(cls: type) -> type:
    """The class of messages whose fields are still being set: see `_frozen`."""
    draft: type = cls.DRAFT  # type: ignore[attr-defined]
    return draft


def wires(cls: type) -> list[tuple[str, Wire, Any]]:
    """(name, wire, default) of each field in order."""
    return [(f.name, f.metadata["wire"], f.default) for f in dataclasses.fields(cls)]
