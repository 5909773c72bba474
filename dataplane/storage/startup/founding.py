"""A new replica's directory: in use at once, on disk some time after its first record, and until then known not to be.

To make a directory last takes three syncs and more, and a topic has many partitions: on the loop that is a second in which
nobody is served. So the loop only writes, and a job in the background makes it last. It begins when a checkpoint is about to
record offsets of the log (`CheckpointSchedule.note`): thousands of topics may be made at once, and what is empty loses nothing
with its directory.

    founding              written at once: the topic id, and which memory holds what is not on disk (`Files.memory`)
    partition.metadata    on disk only when all before is; from here on the replica is there

A start finds one of three. With `partition.metadata` it is a replica. With `founding` alone, and the memory still the
same, only the process was killed: nothing is lost, it is a replica, and the job is done again. Otherwise the power went
before the job was done, and the directory is what was left of a creation: nobody can have relied on it, since whoever says
that records of this log are on disk does the job first. (Rejected: `partition.metadata` at once and not synced. After a
power cut it may be empty or half there, and its loss must not be taken for a creation's.)
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from dataplane.storage.checkpoints import formats, truncation_marks
from dataplane.storage.moving import home_of
from dataplane.storage.presence import Presence

if TYPE_CHECKING:
    from dataplane.doors import Files

PARTITION_METADATA = "partition.metadata"
FOUNDING = "founding"
_BESIDE = ".new.tmp"
_LINES = 2


class Founding:
    """Of one directory, on its way to the disk."""

    __slots__ = ("_directory", "_files", "_is_placed", "_marks", "_presence", "_topic_id", "is_settled", "is_under_way")

    def __init__(self, files: Files, directory: str, topic_id: UUID, marks: tuple[str, ...] = ()) -> None:
        self._files, self._directory, self._topic_id, self._marks = files, directory, topic_id, marks
        self._presence = Presence()  # one at a time: whoever syncs the log, and the job
        self._is_placed = False  # partition.metadata is there, and on disk some time
        self.is_settled = False
        self.is_under_way = False  # its owner has seen to it

    @property
    def is_over(self) -> bool:
        """Nothing is left to be done."""
        return self.is_settled or self._presence.has_ended

    def begin(self) -> None:
        """Write what a start needs where only the process is killed. Raises OSError."""
        for mark in self._marks:
            self._files.put_file(f"{self._directory}/{mark}", truncation_marks.content(0))
        memory = self._files.memory()
        if not memory:  # then nobody can tell the one from the other later
            self.settle()
            return
        text = f"memory: {memory}\ntopic_id: {self._topic_id}\n"
        self._files.put_file(f"{self._directory}/{FOUNDING}", text.encode())

    def settle(self) -> None:
        """Have it on disk, if it is not; harmless when it is. Blocks. Raises OSError."""
        self._presence.run(self._settle)

    def _settle(self) -> None:
        if self.is_settled:
            return
        if not self._is_placed:
            for mark in self._marks:
                with suppress(FileNotFoundError):  # a checkpoint that knows of this log has removed it
                    self._files.open(f"{self._directory}/{mark}").sync()
            self._files.write_file(f"{self._directory}/{PARTITION_METADATA}", formats.topic_id_content(self._topic_id))
            self._files.sync_directory(home_of(self._directory))
        self.is_settled = True
        self._files.remove(f"{self._directory}/{FOUNDING}")

    def put_beside(self) -> bool:
        """The first of three steps of a caller that syncs thousands at once; False: nothing is to be done. Raises OSError.

        The next is `take_place`, when what this has put is on disk; the last is `settle`, when the new name is, too: then it
        syncs nothing any more.
        """
        return bool(self._presence.run(self._put_beside))

    def _put_beside(self) -> bool:
        if self.is_settled:
            return False
        path = f"{self._directory}/{PARTITION_METADATA}{_BESIDE}"
        self._files.put_file(path, formats.topic_id_content(self._topic_id))
        return True

    def take_place(self) -> bool:
        """What was put beside is on disk: let it be `partition.metadata`. False: there was nothing to do. Raises OSError."""
        return bool(self._presence.run(self._take_place))

    def _take_place(self) -> bool:
        if self.is_settled:
            return False
        path = f"{self._directory}/{PARTITION_METADATA}"
        self._files.rename(path + _BESIDE, path)
        self._is_placed = True
        return True

    def abandon(self, *, waits: bool = True) -> None:
        """The directory goes, and one of the same name may come (if not, nobody need wait): leave it alone."""
        self._presence.end(waits=waits)


def found(files: Files, directory: str) -> UUID | None:
    """The topic id of a directory that was not settled and is nevertheless whole. Raises OSError."""
    memory = files.memory()
    path = f"{directory}/{FOUNDING}"
    if not memory or not files.exists(path):
        return None
    lines = files.read_file(path).decode(errors="replace").splitlines()
    if len(lines) != _LINES or lines[0] != f"memory: {memory}":
        return None
    with suppress(ValueError):
        return UUID(lines[1].removeprefix("topic_id: "))
    return None
