"""A long list in parts, where a statement, or a question, should not have all of it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

T = TypeVar("T")


def portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in order, `size` at a time; the last may have fewer. Of none: nothing."""
    for first in range(0, len(items), size):
        yield items[first : first + size]
