"""A frame of which only the beginning has come. It owns memory: the arena is another's in the next turn.

A small one gets all of its memory at once; a large one as its bytes arrive, for what four bytes announce nobody has paid
yet. What they hold is told to the account of their connection, which has a budget (`accounts`). A peer that we have chosen
is another broker: what it announces comes, so its frames get their memory at once, large or small.

Large memory is mapped, and grows where it is: nothing is copied, and the system gives a page when the first of its bytes
arrives, so that no turn waits for all of them (100 MiB at once took 65 to 90 ms on a virtual machine).
"""

from __future__ import annotations

from collections.abc import Callable

from dataplane.network.memory import LargeMemory, Mapped

WHOLE_BELOW_BYTES = 128 * 2**10
"""An incomplete frame of at most this size gets all its memory at once."""
MAPPED_FROM_BYTES = 256 * 2**10
"""Smaller memory comes from the heap, which has it from the frames before, but clears all of it at once."""
AT_ONCE_BYTES = 128 * 2**10
"""Of a large frame no more is received in one call: it is memory that nobody has touched yet, 2.5 us a page on a virtual machine
(1.5 ms for what a MiB brings with it, as often as somebody's frame grows)."""

Hold = Callable[[int], None]
"""Told how many bytes more are held, or fewer."""


class IncompleteFrame:
    """`memory` is filled up to `filled`; it has room for the whole frame, or for the next part of a large one."""

    __slots__ = ("_large", "filled", "memory", "size")

    def __init__(self, size: int, data: memoryview, hold: Hold, large: LargeMemory, *, is_chosen: bool = False) -> None:
        """A frame of `size` bytes that begins with `data`; `is_chosen`: of a peer that we have chosen."""
        self.size = size
        self._large = large
        self.filled = len(data)
        self.memory = memoryview(b"")
        self._make_room(size if is_chosen else min(size, max(WHOLE_BELOW_BYTES, 4 * len(data))), data, hold)

    def free_space(self) -> memoryview:
        """Where the next bytes go. Let go of it before the frame grows."""
        return self.memory[self.filled : self.filled + AT_ONCE_BYTES]

    @property
    def missing(self) -> int:
        """Bytes."""
        return self.size - self.filled

    @property
    def is_in_reach(self) -> bool:
        """Whether there is free space for all that is missing."""
        return len(self.memory) == self.size and self.missing <= AT_ONCE_BYTES

    def received(self, count: int, hold: Hold) -> bool:
        """So many bytes were put into the free space; whether the frame is whole. If not, there is space again."""
        self.filled += count
        if self.filled == self.size:
            return True
        if self.filled == len(self.memory):
            self._make_room(min(self.size, 4 * len(self.memory)), self.memory, hold)
        return False

    def _make_room(self, room: int, data: memoryview, hold: Hold) -> None:
        hold(room - len(self.memory))
        before = self.memory.obj
        if isinstance(before, Mapped):
            self.memory.release()
            before.resize(room)
            self.memory = memoryview(before)
            return
        memory = memoryview(self._large.mapped(room) if room >= MAPPED_FROM_BYTES else bytearray(room))
        memory[: len(data)] = data
        self.memory = memory

    def free(self, hold: Hold) -> None:
        """It is whole."""
        hold(-len(self.memory))
