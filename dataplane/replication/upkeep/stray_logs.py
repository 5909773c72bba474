"""Logs that nobody wants any more: their topic was deleted, or they were moved away, while this broker did not hear of it.

A controller begins every channel to a broker with a LeaderAndIsr that is *full*: it names every partition that the broker
hosts. A log that was found at the start, that no controller has spoken of since, and that is not named there, or is named
with another topic id (the topic was deleted, and made again), is a stray.

To remove a log by mistake would be the worst that a broker can do. So it also has to be true that the metadata, which the
controller sends before its first LeaderAndIsr, do not have the partition under this topic id with a replica here. And of
a replica that is in use they must say where the partition is instead: it was reassigned, and the controller died before
it could tell us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Pace

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.protocol.messages.control import LeaderAndIsrRequest
    from dataplane.records.steps import Steps
    from dataplane.replication.manager import Replicas
    from dataplane.storage.log import Log

_NAMED_US, _LOOKED_AT_US = 1, 2
"""Of a partition, and of a log."""


def find(replicas: Replicas, request: LeaderAndIsrRequest) -> Steps[list[Log]]:
    """The logs that a full LeaderAndIsr leaves to be removed. No other word of a controller may come in between."""
    named: dict[tuple[str, int], UUID] = {}
    pace = Pace()
    for topic in request.topic_states:
        for state in topic.partition_states:
            named[topic.topic_name, state.partition_index] = topic.topic_id
            if pace.over(_NAMED_US):
                yield None
    strays = []
    for log in replicas.logs.logs():
        if named.get((log.topic, log.partition)) not in (log.topic_id, NO_UUID) and _is_stray(replicas, log):
            strays.append(log)
        if pace.over(_LOOKED_AT_US):
            yield None
    return strays


def _is_stray(replicas: Replicas, log: Log) -> bool:
    known = replicas.metadata.partition(log.topic, log.partition)
    is_the_same = replicas.metadata.topic_id(log.topic) in (log.topic_id, NO_UUID, None)
    if replicas.registry.get(log.topic, log.partition) is not None:
        return known is not None and is_the_same and replicas.broker_id not in known.replicas
    return known is None or not is_the_same or replicas.broker_id not in known.replicas
