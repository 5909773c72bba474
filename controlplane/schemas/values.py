"""What is made of content by a schema, and how much of it may be made. Pure."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass

from controlplane.core.errors import FieldProblem

MOST_VALUES = 200_000
"""On one page, or in one message: a schema of a few lines can say that a few bytes are a million values."""
DEEPEST = 40

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


class SchemaError(Exception):
    """A schema that cannot be used, with the reason in a sentence."""

    def problem(self, field: str) -> FieldProblem:
        """As a refusal of a request's member."""
        return FieldProblem(field, str(self))


class UndecodableError(Exception):
    """Content that does not fit its schema, with the reason in a sentence."""


class Allowance:
    """How many values may still be made."""

    __slots__ = ("left",)

    def __init__(self, left: int = MOST_VALUES) -> None:
        self.left = left

    def take(self, values: int = 1) -> None:
        """So many more. Raises UndecodableError."""
        self.left -= values
        if self.left < 0:
            raise UndecodableError("it holds more values than can be shown here")


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
