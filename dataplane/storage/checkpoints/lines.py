"""The lines of one checkpoint file, in blocks: a change costs its block, and not the file.

To join the lines of 20,000 logs takes milliseconds, in which nobody would be served. Blocks are joined one by one (`stale`,
`join`), before the file is written; what has changed meanwhile is joined then. Blocks that have lost lines are not filled up
one by one: when there are far more of them than their lines need, all are made anew.
"""

from __future__ import annotations

from itertools import islice

from dataplane.storage.checkpoints.formats import VERSION

Key = tuple[str, int]
LINES_IN_A_BLOCK = 512
"""About 25 microseconds."""
SPARE_BLOCKS = 8
"""So many blocks more than twice what lines need are no reason to make them anew: of 20,000 lines that takes milliseconds."""


class Lines:
    """Offset by topic and partition."""

    def __init__(self) -> None:
        self._offsets: dict[Key, int] = {}
        self._block_of: dict[Key, int] = {}
        self._blocks: dict[int, dict[Key, bytes]] = {}
        self._joined: dict[int, bytes] = {}  # blocks as they are
        self._made = 0  # lines, also those that are gone: new ones fill the last block

    def set(self, key: Key, offset: int | None) -> bool:
        """The line of a log, None: it has none. Whether that was different before."""
        if self._offsets.get(key) == offset:
            return False
        if offset is None:
            self._remove(key)
        else:
            self._put(key, offset)
        return True

    def _put(self, key: Key, offset: int) -> None:
        number = self._block_of.get(key)
        if number is None:
            number = self._block_of[key] = self._made // LINES_IN_A_BLOCK
            self._made += 1
        self._offsets[key] = offset
        self._blocks.setdefault(number, {})[key] = f"{key[0]} {key[1]} {offset}\n".encode()
        self._joined.pop(number, None)

    def _remove(self, key: Key) -> None:
        del self._offsets[key]
        number = self._block_of.pop(key)
        block = self._blocks[number]
        del block[key]
        self._joined.pop(number, None)
        if not block:
            del self._blocks[number]

    def stale(self) -> list[int]:
        """Blocks that have changed since they were joined."""
        return [number for number in self._blocks if number not in self._joined]

    def join(self, number: int) -> None:
        """Make one of them ready, if it is there still."""
        block = self._blocks.get(number)
        if block is not None:
            self._joined[number] = b"".join(block.values())

    def pieces(self) -> list[bytes]:
        """The file, to be put together: its head and its blocks, of which those are joined now that were not."""
        for number in self.stale():
            self.join(number)
        head = f"{VERSION}\n{len(self._offsets)}\n".encode()
        pieces = [head, *(self._joined[number] for number in self._blocks)]
        if len(self._blocks) > 2 * len(self._offsets) / LINES_IN_A_BLOCK + SPARE_BLOCKS:
            self._number_anew()
        return pieces

    def _number_anew(self) -> None:
        """Full blocks in place of those that have lost most of their lines, which stay in their order."""
        lines = (line for block in self._blocks.values() for line in block.items())
        blocks = iter(lambda: dict(islice(lines, LINES_IN_A_BLOCK)), {})
        self._blocks = dict(enumerate(blocks))
        self._block_of = {key: number for number, block in self._blocks.items() for key in block}
        self._joined.clear()
        self._made = len(self._offsets)
