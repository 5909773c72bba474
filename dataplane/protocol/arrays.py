"""Arrays of messages: tuples, but for very long ones.

To make a tuple of 200,000 elements takes 2 milliseconds and to let go of the list another, and nothing else runs meanwhile. So
what is longer than anything that a tenant may send stays the list that it was collected in. Nobody changes it but
`release.released`, which takes it apart when nobody else has it any more.
"""

from __future__ import annotations

from typing import TypeVar, cast

T = TypeVar("T")

LONG = 32_768
"""Elements."""


def as_array(items: list[T]) -> tuple[T, ...]:
    """What a message holds of these; whoever calls must not use the list again."""
    return tuple(items) if len(items) <= LONG else cast("tuple[T, ...]", items)
