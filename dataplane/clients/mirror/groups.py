"""Committed offsets of groups, translated to the target, so that its members go on there where they were.

A group is moved forward only: an offset that the target has and that is larger stays, for the group may have begun there. One
that has members in the target is left alone: the target itself refuses the commit. Called when nothing is uncommitted that
was copied. Raises ClientError.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import BrokerError, raise_for
from dataplane.clients.fetching import Place
from dataplane.clients.mirror.copying import Copier
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest, FindCoordinatorResponse
from dataplane.protocol.messages.groups import ListGroupsRequest, ListGroupsResponse
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

LOG = logging.getLogger(__name__)
_HAS_MEMBERS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS)


def translate_groups(copier: Copier) -> int:
    """All groups that the source says to translate; how many partitions were moved forward.

    One whose offsets may not be read or committed is said, and keeps no other back.
    """
    if copier.source.groups is None:
        return 0
    moved = 0
    for group in filter(copier.source.translates, _groups(copier.from_)):
        try:
            moved += _translate(copier, group)
        except BrokerError as error:
            LOG.warning("%s: the group %s is not translated now: %s", copier.source.name, group, error)
    return moved


def _groups(cluster: Cluster) -> list[str]:
    found: set[str] = set()
    for broker in sorted(cluster.brokers()):
        answer: ListGroupsResponse = cluster.call(broker, ListGroupsRequest())
        found.update(one.group_id for one in answer.groups)
    return sorted(found)


def _translate(copier: Copier, group: str) -> int:
    theirs = committed(copier.from_, group)
    wanted: dict[Place, int] = {}
    for (topic, partition), offset in theirs.items():
        progress = copier.progress.get((topic, partition))
        if progress is not None:
            place = progress.offsets.translated(offset)
            wanted[copier.source.prefix + topic, partition] = progress.next_target if place is None else place
    ours = committed(copier.to, group) if wanted else {}
    ahead = {place: offset for place, offset in wanted.items() if offset > ours.get(place, -1)}
    if not ahead:
        return 0
    try:
        _commit(copier.to, group, ahead)
    except BrokerError as error:
        if error.code not in _HAS_MEMBERS:
            raise
        LOG.info("%s has members in the target, and keeps its offsets", group)
        return 0
    return len(ahead)


def committed(cluster: Cluster, group: str) -> dict[Place, int]:
    """What a group has committed."""
    answer: OffsetFetchResponse = cluster.call(_coordinator(cluster, group), OffsetFetchRequest(group, None))
    raise_for(answer.error_code, f"offsets of {group}")
    return {
        (topic.name, one.partition_index): one.committed_offset
        for topic in answer.topics
        for one in topic.partitions
        if one.committed_offset >= 0 and one.error_code == ErrorCode.NONE
    }


def _coordinator(cluster: Cluster, group: str) -> int:
    answer: FindCoordinatorResponse = cluster.on_any(
        lambda connection: connection.call(FindCoordinatorRequest(key=group))
    )
    raise_for(answer.error_code, f"coordinator of {group}")
    return answer.node_id


def _commit(cluster: Cluster, group: str, offsets: Mapping[Place, int]) -> None:
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), offset in sorted(offsets.items()):
        by_topic[topic].append(
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
        )
    request = OffsetCommitRequest(
        group_id=group,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(rows)) for name, rows in by_topic.items()),
    )
    answer: OffsetCommitResponse = cluster.call(_coordinator(cluster, group), request)
    for answered in answer.topics:
        for one in answered.partitions:
            raise_for(one.error_code, f"commit of {group}")
