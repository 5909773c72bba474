"""Protobuf: content by a compiled schema, as JSON with the names of the schema. Pure.

64-bit numbers are text and bytes are in base64, as Protobuf's own JSON has them. Fields that the schema does not know are
left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message, message_factory

from controlplane.schemas.protoc import NAME
from controlplane.schemas.values import DEEPEST, Allowance, SchemaError, UndecodableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controlplane.schemas.values import Json

LONGEST_NAME = 200
MOST_COMPILED_BYTES = 2**20


class ProtobufDecoder:
    """Of one compiled file, and of one of its messages unless content says itself which it is."""

    def __init__(self, compiled: bytes, name: str = "") -> None:
        """`name`: the message's full name; none: the first of the file. Raises SchemaError."""
        if len(compiled) > MOST_COMPILED_BYTES:
            raise SchemaError("is too large")
        files = descriptor_pb2.FileDescriptorSet.FromString(compiled).file
        self._pool = descriptor_pool.DescriptorPool()
        try:
            for file in files:
                self._pool.Add(file)
            self._file = self._pool.FindFileByName(NAME)
        except (KeyError, TypeError) as error:
            raise SchemaError("cannot be used") from error
        own = next(file for file in files if file.name == NAME)
        self.messages = list(_names(own.message_type, own.package))
        if not self.messages:
            raise SchemaError("has no message")
        if any(len(each) > LONGEST_NAME for each in _all_names(own)):
            raise SchemaError(f"has a name of more than {LONGEST_NAME} characters")
        if name and name not in self.messages:
            raise SchemaError(f"has no message {name}: it has {', '.join(self.messages[:10])}")
        # Serializers do not agree on whether the entries of maps, which are messages of their own, count: Go's and Python's
        # count them, Java's do not. Nobody sends an entry, so where one would be meant it is counted as Java does.
        self._paths = dict(_paths(own.message_type, own.package, (), with_entries=False))
        self._paths |= dict(_paths(own.message_type, own.package, (), with_entries=True))
        self._name = name or self.messages[0]

    def decode(self, content: bytes, allowance: Allowance, path: Sequence[int] | None = None) -> Json:
        """All of the content. `path`: which message it says that it is. Raises UndecodableError."""
        allowance.take(max(1, len(content)))  # each value takes a byte at least
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
        except (json_format.Error, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise UndecodableError(f"it is a {name} that cannot be shown as JSON") from error
        if _depth(value) > DEEPEST:
            raise UndecodableError(f"it is nested in more than {DEEPEST} levels")
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


def _all_names(holder: Any) -> Iterator[str]:
    inner: Any = getattr(holder, "message_type", None) or getattr(holder, "nested_type", ())
    for each in inner:
        yield from (field.name for field in each.field)
        yield from _all_names(each)
    for each in holder.enum_type:
        yield from (value.name for value in each.value)


def _depth(value: object) -> int:
    deepest, waiting = 0, [(value, 1)]
    while waiting:
        each, depth = waiting.pop()
        deepest = max(deepest, depth)
        if isinstance(each, dict):
            waiting.extend((one, depth + 1) for one in each.values())
        elif isinstance(each, list):
            waiting.extend((one, depth + 1) for one in each)
    return deepest
