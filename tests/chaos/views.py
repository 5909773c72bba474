"""What each broker tells clients of a topic's leaders, against what ZooKeeper holds: at rest they must say the same.

A word of a former controller that a broker takes over shows itself here, and nowhere else as long as nothing else changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from tests.chaos.network import HOST
from tests.support.processes import SECRET
from tests.support.waiting import wait_for
from tests.support.wire import Wire

if TYPE_CHECKING:
    from tests.chaos.cluster import ChaosCluster

_AGREE_WITHIN_S = 10.0
_METADATA_VERSION = 9
View = dict[int, tuple[int, int, tuple[int, ...]]]
"""By partition: leader, leader epoch, ISR in order."""


def disagreements(cluster: ChaosCluster, topic: str) -> list[str]:
    """What brokers still say otherwise after a while. `topic`: its physical name."""
    found: list[str] = []

    def agree() -> bool:
        truth = _according_to_zookeeper(cluster, topic)
        found[:] = [
            f"broker {broker} says of partition {partition} {said.get(partition)}, and ZooKeeper {held}"
            for broker, server in cluster.brokers.items()
            for said in [_according_to(server.ports["internal"], topic)]
            for partition, held in truth.items()
            if said.get(partition) != held
        ]
        return not found

    try:
        wait_for(agree, _AGREE_WITHIN_S, "brokers to agree with ZooKeeper")
    except AssertionError as error:
        return found or [str(error)]
    return []


def _according_to_zookeeper(cluster: ChaosCluster, topic: str) -> View:
    partitions = sorted(int(index) for index in cluster.read(f"/brokers/topics/{topic}")["partitions"])
    states = {index: cluster.state(topic, index) for index in partitions}
    return {
        index: (state["leader"], state["leader_epoch"], tuple(sorted(state["isr"]))) for index, state in states.items()
    }


def _according_to(port: int, topic: str) -> View:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    with Wire((HOST, port)) as wire:
        assert wire.log_in(SECRET) == 0
        (answer,) = wire.call(request, _METADATA_VERSION).topics
    return {
        row.partition_index: (row.leader_id, row.leader_epoch, tuple(sorted(row.isr_nodes)))
        for row in answer.partitions
    }
