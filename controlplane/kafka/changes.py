"""What brokers say that clients have changed, from a cluster's own topic (`quota.contracts.audit`), portion by portion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.kafka import group_door, record_door
from controlplane.kafka.patience import patiently
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


def portion(cluster: ClusterAddress, offset: int, *, clock: Clock = SYSTEM_CLOCK) -> Portion:
    """What is there from this offset on, at most AT_ONCE. Where the topic does not have it (any more), from its beginning.

    No broker has written any yet: nothing, and the same offset. Raises ClusterUnavailable.
    """
    if patiently(cluster, lambda admin, _again: admin.layout(CHANGES_TOPIC), clock) is None:
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
