"""Protobuf: content by a compiled schema, as JSON with the names of the schema. Pure.

64-bit numbers are text and bytes are in base64, as Protobuf's own JSON has them. Fields that the schema does not know are
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory

from controlplane.schemas.compiler import NAME
from controlplane.schemas.values import (
    DEEPEST,
    LONGEST_FULL_NAME,
    LONGEST_NAME,
    Allowance,
    SchemaError,
    UndecodableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controlplane.schemas.values import Json

MOST_COMPILED_BYTES = 2**20
_LONGEST_REASON = 200


class ProtobufDecoder:
    """Of one compiled file, and of one of its messages unless content says itself which it is."""

    def __init__(self, compiled: bytes, name: str = "") -> None:
        """`name`: the message's full name; none: the first of the file. Raises SchemaError."""
        if len(compiled) > MOST_COMPILED_BYTES:
            raise SchemaError("is too large")
        self._pool = descriptor_pool.DescriptorPool()
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(compiled).file
            own = next(file for file in files if file.name == NAME)
            _check_names(own, own.package)  # before the pool makes a full name of each
            for file in files:
                self._pool.Add(file)
            self._pool.FindFileByName(NAME)
        except (KeyError, TypeError, StopIteration, message.DecodeError) as error:
            raise SchemaError("cannot be used") from error
        self.messages = list(_names(own.message_type, own.package))
        if not self.messages:
            raise SchemaError("has no message")
        if name and name not in self.messages:
            raise SchemaError(f"has no message {name}: it has {', '.join(self.messages[:10])}")
        # Serializers do not agree on whether the entries of maps, which are messages of their own, count: Go's and Python's
        # count them, Java's do not. Nobody sends an entry, so where one way of counting leads to one it is the other.
        java = dict(_paths(own.message_type, own.package, (), with_entries=False))
        others = dict(_paths(own.message_type, own.package, (), with_entries=True))
        self._paths = java | others
        self._unclear = {path for path in java.keys() & others.keys() if java[path] != others[path]}
        self._name = name or self.messages[0]

    def decode(self, content: bytes, allowance: Allowance, path: Sequence[int] | None = None) -> Json:
        """All of the content. `path`: which message it says that it is. Raises UndecodableError."""
        if path is not None and tuple(path) in self._unclear:
            raise UndecodableError(
                "serializers do not agree on which message it says that it is: name it beside the schema"
            )
        name = self._name if path is None else self._paths.get(tuple(path))
        if name is None:
            told = ".".join(map(str, path or ()))
            raise UndecodableError(f"it says that it is message {told} of its file, which the schema does not have")
        found = message_factory.GetMessageClass(self._pool.FindMessageTypeByName(name))()
        try:
            found.ParseFromString(content)
            value = json_format.MessageToDict(found, preserving_proto_field_name=True, descriptor_pool=self._pool)
        except message.DecodeError as error:
            raise UndecodableError(f"it is no {name}") from error
        except Exception as error:  # names are the tenant's: some of them break the library
            reason = (str(error).splitlines() or [""])[0][:_LONGEST_REASON]
            raise UndecodableError(f"it is a {name} that cannot be shown as JSON: {reason}") from error
        _count(value, allowance)
        return value  # type: ignore[no-any-return]


def _names(types: Any, package: str) -> Iterator[str]:
    for each in types:
        name = f"{package}.{each.name}" if package else each.name
        if not each.options.map_entry:
            yield name
            yield from _names(each.nested_type, name)


def _paths(
    types: Any, package: str, above: tuple[int, ...], *, with_entries: bool
) -> Iterator[tuple[tuple[int, ...], str]]:
    counted = [each for each in types if with_entries or not each.options.map_entry]
    for place, each in enumerate(counted):
        name, path = f"{package}.{each.name}" if package else each.name, (*above, place)
        if not each.options.map_entry:
            yield path, name
            yield from _paths(each.nested_type, name, path, with_entries=with_entries)


def _check_names(holder: Any, scope: str) -> None:
    """Of a file or a message, and of all in it. Raises SchemaError."""
    types = holder.message_type if hasattr(holder, "message_type") else holder.nested_type
    fields = [each.name for each in (*getattr(holder, "field", ()), *holder.extension)]
    symbols = [value.name for each in holder.enum_type for value in each.value]
    for name in (*fields, *symbols, *(each.name for each in types), *(each.name for each in holder.enum_type)):
        if len(name) > LONGEST_NAME or len(scope) + 1 + len(name) > LONGEST_FULL_NAME:
            raise SchemaError(
                f"has a name of more than {LONGEST_NAME} characters, or with its package {LONGEST_FULL_NAME}"
            )
    for each in types:
        _check_names(each, f"{scope}.{each.name}")


def _count(value: object, allowance: Allowance) -> None:
    """What was made. Raises UndecodableError."""
    waiting = [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        if depth > DEEPEST:
            raise UndecodableError(f"it is nested in more than {DEEPEST} levels")
        if isinstance(each, dict):
            allowance.take(letters=sum(map(len, each)))
            waiting.extend((one, depth + 1) for one in each.values())
        elif isinstance(each, list):
            allowance.take()
            waiting.extend((one, depth + 1) for one in each)
        else:
            # A string may be a symbol's name, which does not stand in the content; no name is longer.
            allowance.take(letters=min(len(each), LONGEST_NAME) if isinstance(each, str) else 0)
