"""Logs that nobody wants any more: their topic was deleted while this broker was down.

A controller begins every channel to a broker with a LeaderAndIsr that is *full*: it names every partition that the broker
hosts. A log that was found at the start, that no controller has spoken of since, and that is not named there, or is named
with another topic id (the topic was deleted, and made again), is a stray. It is removed.

To remove a log by mistake would be the worst that a broker can do. So it also has to be true that the metadata, which the
controller sends before its first LeaderAndIsr, do not have the partition under this topic id with a replica here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dataplane.protocol.schema import NO_UUID

if TYPE_CHECKING:
    from dataplane.protocol.messages.control import LeaderAndIsrRequest
    from dataplane.replication.manager import Replicas
    from dataplane.storage.log import Log

_log = logging.getLogger(__name__)


def remove(replicas: Replicas, request: LeaderAndIsrRequest) -> None:
    """Remove the logs that a full LeaderAndIsr does not name."""
    named = {
        (topic.topic_name, state.partition_index): topic.topic_id
        for topic in request.topic_states
        for state in topic.partition_states
    }
    for log in replicas.logs.logs():
        topic_id = named.get((log.topic, log.partition))
        if replicas.get(log.topic, log.partition) is None and topic_id not in (log.topic_id, NO_UUID):
            if _is_known(replicas, log):
                continue
            _log.warning("%s-%d of the topic id %s is a stray: removed", log.topic, log.partition, log.topic_id)
            try:
                replicas.logs.delete(log.topic, log.partition)
            except OSError as error:
                _log.warning("%s-%d cannot be removed: %s", log.topic, log.partition, error)


def _is_known(replicas: Replicas, log: Log) -> bool:
    """Whether the metadata have this very partition here."""
    known = replicas.metadata.partition(log.topic, log.partition)
    return (
        known is not None
        and replicas.config.id in known.replicas
        and replicas.metadata.topic_id(log.topic) in (log.topic_id, NO_UUID, None)
    )
