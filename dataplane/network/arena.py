"""The memory into which all connections of a loop receive."""

from __future__ import annotations

from dataplane.network.memory import kept

ARENA_BYTES = 4 * 2**20
RECEIVE_BYTES = 256 * 2**10
"""In one call: of a frame that goes on behind it, this much is also copied to memory that nobody has touched yet, 0.25 ms on a
virtual machine."""


class Arena:
    """The memory into which all connections receive; freed as a whole at the end of a turn."""

    __slots__ = ("_memory", "_used")

    def __init__(self) -> None:
        self._memory = memoryview(kept(ARENA_BYTES))  # all of it is read, checked and written in every turn
        self._used = 0

    def space(self) -> memoryview:
        """Where the next bytes may go; less than RECEIVE_BYTES only when the turn has to end."""
        return self._memory[self._used : self._used + RECEIVE_BYTES]

    def is_full(self) -> bool:
        """Whether the turn has to end before more is received."""
        return self._used + RECEIVE_BYTES > ARENA_BYTES

    def take(self, size: int) -> memoryview:
        """The `size` bytes that were just received."""
        start, self._used = self._used, self._used + size
        return self._memory[start : self._used]

    def reset(self) -> None:
        """Everything is free again."""
        self._used = 0
