"""What brokers say that clients have changed, from a cluster's own topic (`quota.contracts.audit`), portion by portion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.kafka import client, group_door, record_door
from quota.contracts.audit import CHANGES_TOPIC

if TYPE_CHECKING:
    from controlplane.clusters.address import ClusterAddress

PLACE = CHANGES_TOPIC, 0
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Portion:
    """Values in their order, and where the next one begins."""

    values: list[bytes]
    next: int


def portion(cluster: ClusterAddress, offset: int) -> Portion:
    """What is there from this offset on, at most AT_ONCE. Where the topic does not have it (any more), from its beginning.

    No broker has written any yet: nothing, and the same offset. Asked once and without patience: whoever asks will do so again.
    Raises ClusterUnavailable.
    """
    if client.admin(cluster).layout(CHANGES_TOPIC) is None:
        return Portion([], offset)
    span = group_door.door(cluster).spans([PLACE]).get(PLACE)
    if span is None:  # it has no leader now
        return Portion([], offset)
    first = offset if span.start <= offset <= span.end else span.start
    end = min(span.end, first + AT_ONCE)
    if first == end:
        return Portion([], first)
    with record_door.reader(cluster, PLACE) as reader:
        return Portion([value for _, value in reader.records(first, end)], end)
