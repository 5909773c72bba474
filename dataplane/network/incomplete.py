"""A frame of which only the beginning has come. It owns memory: the arena is another's in the next turn.

A small one gets all of its memory at once; a large one as its bytes arrive, for what four bytes announce nobody has paid
yet. What they hold is told to the account of their connection, which has a budget (`accounts`). A peer that we have chosen
is another broker: what it announces comes, so its frames get their memory at once, large or small, and nothing of them is
copied twice.
"""

from __future__ import annotations

from collections.abc import Callable

WHOLE_BELOW_BYTES = 128 * 2**10
"""An incomplete frame of at most this size gets all its memory at once."""

Hold = Callable[[int], None]
"""Told how many bytes more are held, or fewer."""


class IncompleteFrame:
    """`memory` is filled up to `filled`; it has room for the whole frame, or for the next part of a large one."""

    __slots__ = ("filled", "memory", "size")

    def __init__(self, size: int, data: memoryview, hold: Hold, *, is_chosen: bool = False) -> None:
        """A frame of `size` bytes that begins with `data`; `is_chosen`: of a peer that we have chosen."""
        self.size = size
        self.filled = len(data)
        self.memory = memoryview(b"")
        self._make_room(size if is_chosen else min(size, max(WHOLE_BELOW_BYTES, 4 * len(data))), data, hold)

    def grow(self, hold: Hold) -> None:
        """The memory is full and the frame is larger."""
        self._make_room(min(self.size, 4 * len(self.memory)), self.memory, hold)

    def _make_room(self, room: int, data: memoryview, hold: Hold) -> None:
        hold(room - len(self.memory))
        memory = memoryview(bytearray(room))
        memory[: len(data)] = data
        self.memory = memory

    def free(self, hold: Hold) -> None:
        """It is whole."""
        hold(-len(self.memory))
