"""The producers' state of a log: read when somebody asks, kept over restarts by snapshots, cut with the log.

Of an idle log not even the snapshot is read. Snapshots are written when a segment ends and at an orderly stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.checkpoints import snapshots
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.log.state import LogState
from dataplane.storage.startup import recovery

if TYPE_CHECKING:
    from dataplane.tasks import Future


class Producing(LogState):
    """Knows who has written what."""

    __slots__ = ()

    @property
    def producers(self) -> Producers:
        """Read from the snapshot, and the headers behind it, when they are first asked for. Raises OSError.

        Rejected: `__getattr__`, which is asked only once, but makes every other attribute of a log slower: appending a
        batch took half as long again.
        """
        if self._producers is None:
            producers = Producers(self._newcomers)
            self._load_producers(producers, self._producers_to)
            self._producers = producers
        return self._producers

    @property
    def known_producers(self) -> Producers | None:
        """What is in memory of them."""
        return self._producers

    def _load_producers(self, producers: Producers, end: int) -> None:
        recovery.load_producers(producers, self._files, self.directory, self._snapshots, self._segments, end)

    def expire_producers(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those that have written nothing for so long; of an idle log nothing is known that could be."""
        if self._producers is not None:
            self._producers.expire(now_ms, expiration_ms)

    def _snapshot(self) -> tuple[str, bytes]:
        """Path and content of a snapshot of the producers' state. Nothing may be staged. Raises OSError."""
        content = snapshots.pack(self.producers.states(self._now_ms()))
        return f"{self.directory}/{snapshots.file_name(self.end_offset)}", content

    def _snapshot_in_background(self) -> None:
        """Whether it succeeds does not matter much: it is a short cut for the next start."""
        offset, truncations, files, presence = self.end_offset, self.truncations, self._files, self._presence
        path, content = self._snapshot()

        def written(future: Future[None]) -> None:
            if future.error is not None:
                return
            if truncations == self.truncations:
                self._snapshots.append(offset)
                try:
                    self._forget_snapshots(self._snapshots[: -snapshots.KEPT])
                except OSError as error:  # there is nobody to raise it to
                    self._fail(error)
            else:
                self._background.run(lambda: files.remove(path))

        def write() -> None:
            if truncations == self.truncations:  # else it is of another log, and would be believed by the next start
                files.write_file(path, content)

        self._background.run(lambda: presence.run(write)).then(written)

    def _forget_snapshots(self, offsets: list[int]) -> None:
        for offset in offsets:
            self._snapshots.remove(offset)
            self._files.remove(f"{self.directory}/{snapshots.file_name(offset)}")

    def _cut_producers(self, end: int) -> None:
        """The log ends here now. Raises OSError."""
        if self._producers is None:
            self._producers_to = min(self._producers_to, end)
        elif self._producers.holds_any_from(end):
            self._load_producers(self._producers, end)
        else:
            self._producers.cut(end)
