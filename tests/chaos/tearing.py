"""What a power cut takes off the ends of logs that nobody has synced: done to the files of a broker that is dead.

A broker tells a power cut from SIGKILL by the boot of the kernel, which is the same here. So what it has noted of that is
taken away, too: else it would vouch for logs that we have torn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.storage.startup.unclean_loss import FILE_NAME as WHOLE_SINCE
from tests.chaos.clients import PARTITIONS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.cluster import ChaosCluster


def tear_tails(cluster: ChaosCluster, broker: int, topic: str, most: int) -> int:
    """Up to `most` bytes, and not more than half, off the newest segment of every partition; how many it were."""
    vouch_for_nothing(cluster, broker)
    torn = 0
    for partition in range(PARTITIONS):
        segment = newest_segment(cluster, broker, topic, partition)
        if segment is not None:
            size = segment.stat().st_size
            torn += tear(segment, min(most, size // 2))
    return torn


def vouch_for_nothing(cluster: ChaosCluster, broker: int) -> None:
    """At its next start the broker does not know since when its logs are whole."""
    (cluster.data(broker) / WHOLE_SINCE).unlink(missing_ok=True)


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
