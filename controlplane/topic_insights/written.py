"""How many bytes were written to each partition of a topic in the last hour.

Nobody counts flow by partition. But a leader says which record is the first of that hour (ListOffsets, by its timestamp), and
how many bytes lie from there to the end: two rounds of questions, whatever the number of partitions. So it is the records' own
time, the producers' clock unless brokers stamp them; and what has expired within the hour, or was compacted, is not in it. A
record that is dated ahead is in every last hour, with all that was written behind it: of its partition nothing is known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.kafka import backlog_door, groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.group_door import Place, Span

HOUR_S = 3_600
MS = 1_000
AHEAD_S = 60
"""So far may a producer's clock be ahead."""
MOST_PARTITIONS = 1_000
"""Of a topic with more it is not known: each is 60 us of a broker at most, which nobody pays for."""


def written_of(
    cluster: ClusterAddress,
    instance_id: str,
    spans: Mapping[Place, Span],
    newest: Mapping[Place, int | None],
    now_ms: int,
) -> dict[Place, int] | None:
    """Bytes by partition; absent: not known. None: there are too many. Raises ClusterUnavailable.

    `newest`: the largest timestamp of the records of each partition, in ms, as far as it is known.
    """
    if len(spans) > MOST_PARTITIONS:
        return None
    latest = now_ms + AHEAD_S * MS
    asked = [place for place in spans if (newest.get(place) or 0) <= latest]
    first = groups.offsets_at(cluster, instance_id, asked, now_ms - HOUR_S * MS)
    stretches = {
        place: (*place, max(offset, spans[place].start), spans[place].end)
        for place, offset in first.items()
        if offset is not None and place in spans and max(offset, spans[place].start) < spans[place].end
    }
    sizes = backlog_door.read(cluster, instance_id, stretches.values())
    found = {place: 0 for place in first if place not in stretches}
    return found | {place: sizes[stretch] for place, stretch in stretches.items() if stretch in sizes}
