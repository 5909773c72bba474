"""What a power cut takes off the ends of logs that nobody has synced: done to the files of a broker that is dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.chaos.clients import PARTITIONS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.cluster import ChaosCluster


def tear_tails(cluster: ChaosCluster, broker: int, topic: str, most: int) -> int:
    """Up to `most` bytes, and not more than half, off the newest segment of every partition; how many it were."""
    torn = 0
    for partition in range(PARTITIONS):
        segment = newest_segment(cluster, broker, topic, partition)
        if segment is not None:
            size = segment.stat().st_size
            torn += tear(segment, min(most, size // 2))
    return torn


def newest_segment(cluster: ChaosCluster, broker: int, topic: str, partition: int) -> Path | None:
    """The file that was written to last."""
    segments = sorted((cluster.data(broker) / f"{topic}-{partition}").glob("[0-9]*.log"))
    return segments[-1] if segments else None


def tear(segment: Path, cut: int, *, zeros: bool = False) -> int:
    """That many bytes off the end; `zeros`: the block was given to the file, and never written."""
    size = segment.stat().st_size
    with segment.open("r+b") as opened:
        opened.truncate(size - cut)
        if zeros:
            opened.seek(size - cut)
            opened.write(b"\0" * cut)
    return cut
