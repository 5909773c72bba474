"""The text of a generated function, and the objects that it refers to. What is written is up to `codec` and `templates`."""

from __future__ import annotations

import struct as _struct
from functools import lru_cache
from itertools import count
from typing import Any
from uuid import UUID

from dataplane.protocol import primitives
from dataplane.protocol.primitives import DecodeError

Field = tuple[type, str]
"""A structure and the name of a field of it."""

FORMATS = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d", "bool": "?"}
"""The kinds of fields that have a fixed size, as `struct` calls them. (A uuid is no number: it is cut out.)"""


@lru_cache(maxsize=4096)
def uuid_of(raw: bytes) -> UUID:
    """The same ids come again and again, and UUID's constructor costs more than the rest of a partition."""
    return UUID(bytes=raw)


class Source:
    """The text of one function and the objects it refers to."""

    def __init__(
        self,
        max_elements: int | None = None,
        too_many: type[DecodeError] = DecodeError,
        *,
        pause_every: int | None = None,
        marked: tuple[Field, ...] = (),
    ) -> None:
        self.marked = marked
        self._met: list[Field] = []
        self.in_tags = 0
        self.max_elements = max_elements
        self.pause_every = pause_every
        self.lines: list[str] = []
        self.indent = ""
        self.names: dict[str, Any] = {
            "struct_error": _struct.error,
            "DecodeError": DecodeError,
            "TooMany": too_many,
            "read_uvarint": primitives.read_uvarint,
            "write_uvarint": primitives.write_uvarint,
            "uuid_of": uuid_of,
        }
        self._serial = count()

    def emit(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def begin_steps(self) -> None:
        """What makes a generator of the function, also where it has no loop."""
        if self.pause_every is not None:
            self.emit(f"pause_in = {self.pause_every}")
            self.emit("if 0: yield")

    def pause(self) -> None:
        """At each element of an array: perhaps a pause."""
        if self.pause_every is not None:
            self.emit("pause_in -= 1")
            self.emit(f"if not pause_in: pause_in = {self.pause_every}; yield")

    def mark(self, cls: type, name: str, place: str, run: list[tuple[str, str]]) -> None:
        """Where a field begins: behind `run`, which has not been read or written yet. What may be missing is not marked."""
        if (cls, name) in self.marked and not self.in_tags:
            self._met.append((cls, name))
            self.emit(f"marks.append({place} + {_struct.calcsize('>' + ''.join(f for _, f in run))})")

    def check_marked(self, cls: type, version: int) -> None:
        """Each field that was to be marked has one place in the text, in the order that was said. Raises ValueError."""
        if tuple(self._met) != self.marked:
            wanted, met = (
                ", ".join(f"{part.__name__}.{name}" for part, name in each) for each in (self.marked, self._met)
            )
            raise ValueError(f"{cls.__name__} {version}: instead of {wanted} there is {met or 'nothing'}")

    def fresh(self, stem: str = "v") -> str:
        return f"{stem}{next(self._serial)}"

    def bind(self, value: Any, stem: str) -> str:
        """A global name of the function for an object."""
        for name, bound in self.names.items():
            if bound is value:
                return name
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def constant(self, value: Any) -> str:
        """An expression for a default."""
        return (
            repr(value) if value is None or value == () or type(value) in (bool, int) else self.bind(value, "default")
        )

    def uvarint(self, target: str) -> None:
        """Read an unsigned varint; in line where it is one byte, as nearly all are."""
        self.emit(f"{target} = b[p]; p += 1")
        self.emit(f"if {target} > 127: {target}, p = read_uvarint(b, p - 1)")

    def packer(self, formats: str, verb: str) -> str:
        name = f"{verb}_{formats.replace('?', 'B')}"
        self.names[name] = getattr(_struct.Struct(">" + formats), verb)
        return name

    def build(self, name: str, label: str) -> Any:
        exec(compile("\n".join(self.lines), f"<{label}>", "exec"), self.names)  # noqa: S102 - our own text
        return self.names[name]
