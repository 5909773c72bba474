"""What is made of content by a schema, and how much of it may be made. Pure."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass

from controlplane.core.errors import FieldProblem

MOST_VALUES, MOST_OF_ONE = 200_000, 50_000
"""On one page, and in one key or value: a schema of a few lines can say that a few bytes are a million values."""
MOST_BYTES = 2 * 2**20
"""Of content that is read by schemas for one page."""
DEEPEST = 40
LONGEST_NAME, LONGEST_FULL_NAME = 200, 500
"""Of a schema: names are told again with each value."""
_LETTERS_OF_A_VALUE = 16

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class SchemaError(Exception):
    """A schema that cannot be used, with the reason in a sentence."""

    def problem(self, field: str) -> FieldProblem:
        """As a refusal of a request's member."""
        return FieldProblem(field, str(self))


class UndecodableError(Exception):
    """Content that does not fit its schema, with the reason in a sentence."""


class Allowance:
    """How many values may still be made, and how many bytes of content read for them."""

    __slots__ = ("bytes_left", "left")

    def __init__(self, left: int = MOST_VALUES, bytes_left: int = MOST_BYTES) -> None:
        self.left, self.bytes_left = left, bytes_left

    def take(self, values: int = 1, letters: int = 0) -> None:
        """So many more, with text that does not stand in the content. Raises UndecodableError."""
        values += letters // _LETTERS_OF_A_VALUE
        if values > self.left:
            raise UndecodableError("it holds more values than can be shown here")
        self.left -= values

    def read(self, size: int) -> None:
        """Content of this size. Raises UndecodableError."""
        if size > self.bytes_left:
            raise UndecodableError("it comes behind as much as can be read for one page")
        self.bytes_left -= size

    def of_one(self) -> Allowance:
        """Of one key or value: none uses up what all others have."""
        return Allowance(min(self.left, MOST_OF_ONE), self.bytes_left)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Content by its schema, or why it could not be read by it."""

    value: Json = None
    problem: str | None = None


def number(value: float) -> Json:
    """JSON has no word for those that are no number."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def octets(content: bytes) -> str:
    """Bytes in JSON, in base64 as the JSON form of Protobuf has them."""
    return base64.b64encode(content).decode()
