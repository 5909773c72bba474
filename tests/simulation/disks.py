"""How far the logs of a durable topic are on each broker's disk, by what the disk has and not by what the broker believes.

Nothing of a replica whose directory is not on disk yet: a power cut takes it whole, whatever is synced (`startup/founding`).

Of who is up: as it is now. Of who died: as it was then; and as its life before that left it, as long as the leader may go by
what that one had said (see `invariants`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.records.header import HEADER, BatchHeader
from dataplane.storage.segments.batch_file import LOG
from dataplane.storage.startup.founding import PARTITION_METADATA

if TYPE_CHECKING:
    from dataplane.storage.log import Log
    from tests.simulation.cluster import SimulatedCluster
    from tests.support.memory_files import MemoryFiles


class Disks:
    """Of the partitions in `places`: topic, partition."""

    def __init__(self, cluster: SimulatedCluster, places: list[tuple[str, int]]) -> None:
        self._cluster, self._places = cluster, places
        self._left: dict[tuple[int, int], int] = {}  # (broker, partition) -> end offset on disk when it died last
        cluster.deaths.append(self._dies)

    def has_or_had(self, broker: int, index: int, offset: int) -> bool:
        """Whether a record is there, or was when the broker died last."""
        return self._end(broker, index) > offset or self._left.get((broker, index), 0) > offset

    def _dies(self, broker: int) -> None:
        for _, index in self._places:
            self._left[broker, index] = self._end(broker, index)

    def _end(self, broker: int, index: int) -> int:
        running = self._cluster.brokers.get(broker)
        log = None if running is None else running.logs.get(*self._places[index])
        return 0 if log is None else end_on_disk(self._cluster.files[broker], log)


def end_on_disk(files: MemoryFiles, log: Log) -> int:
    """The end of the last batch of which all is on disk, and all before it."""
    end = log.start_offset
    if not files.exists(f"{log.directory}/{PARTITION_METADATA}"):
        return end
    for segment in log.segments:
        content = files.on_disk(segment.path + LOG)
        position = 0
        while position + HEADER.size <= len(content):
            header = BatchHeader(*HEADER.unpack_from(content, position))
            position += header.size
            if position > len(content):
                return end
            end = header.next_offset
        if position < segment.size:
            return end
    return end
