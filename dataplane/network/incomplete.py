"""A frame of which only the beginning has come. It owns memory: the arena is another's in the next turn.

A small one gets all of its memory at once; a large one as its bytes arrive, for what four bytes announce nobody has paid
yet. What large ones hold together is bounded, over all peers that connected to us. A peer that we have chosen is another
broker: what it announces comes, so its frames get their memory at once, large or small, and nothing of them is copied twice.
"""

from __future__ import annotations

WHOLE_BELOW_BYTES = 128 * 2**10
"""An incomplete frame of at most this size gets all its memory at once."""
LARGE_FRAMES_BYTES = 256 * 2**20
"""What incomplete frames above that may hold together."""


class TooManyLargeFramesError(Exception):
    """There is no memory left for this one."""


class FramesBudget:
    """Of one loop: what its large frames hold."""

    __slots__ = ("held_bytes",)

    def __init__(self) -> None:
        self.held_bytes = 0

    def take(self, more: int) -> None:
        """Raises TooManyLargeFramesError."""
        if self.held_bytes + more > LARGE_FRAMES_BYTES:
            raise TooManyLargeFramesError
        self.held_bytes += more


class IncompleteFrame:
    """`memory` is filled up to `filled`; it has room for the whole frame, or for the next part of a large one."""

    __slots__ = ("_budget", "_taken", "filled", "memory", "size")

    def __init__(self, size: int, data: memoryview, budget: FramesBudget | None) -> None:
        """A frame of `size` bytes that begins with `data`. Without a budget we have chosen the peer."""
        self.size = size
        self.filled = len(data)
        self._budget, self._taken = budget, 0
        room = size if budget is None else min(size, max(WHOLE_BELOW_BYTES, 4 * len(data)))
        self.memory = self._with_room(room, data)

    def grow(self) -> None:
        """The memory is full and the frame is larger."""
        self.memory = self._with_room(min(self.size, 4 * len(self.memory)), self.memory)

    def _with_room(self, room: int, data: memoryview) -> memoryview:
        if room > WHOLE_BELOW_BYTES and self._budget is not None:
            self._budget.take(room - self._taken)
            self._taken = room
        memory = memoryview(bytearray(room))
        memory[: len(data)] = data
        return memory

    def free(self) -> None:
        """It is whole, or will never be."""
        if self._budget is not None and self._taken:
            self._budget.held_bytes -= self._taken
            self._taken = 0
