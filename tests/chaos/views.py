"""What each broker tells clients of a topic's leaders and of the controller, against what ZooKeeper holds: at rest the same.

A word of a former controller that a broker takes over shows itself here, and nowhere else as long as nothing else changes:
leader epochs stand behind the controller's, and keep the broker from acting on it.
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
Leaders = dict[int, tuple[int, int, tuple[int, ...]]]
"""By partition: leader, leader epoch, ISR in order."""
View = tuple[int | None, Leaders]
"""The controller, and the leaders."""


def disagreements(cluster: ChaosCluster, topic: str) -> list[str]:
    """What brokers still say otherwise after a while. `topic`: its physical name."""
    found: list[str] = []

    def agree() -> bool:
        truth = _according_to_zookeeper(cluster, topic)
        found[:] = [
            difference
            for broker, server in cluster.brokers.items()
            for difference in differences(broker, _according_to(server.ports["internal"], topic), truth)
        ]
        return not found

    try:
        wait_for(agree, _AGREE_WITHIN_S, "brokers to agree with ZooKeeper")
    except AssertionError as error:
        return found or [str(error)]
    return []


def differences(broker: int, said: View, held: View) -> list[str]:
    """Between a broker's view and ZooKeeper's."""
    found = [f"broker {broker} says that {said[0]} is the controller, and ZooKeeper {held[0]}"] * (said[0] != held[0])
    return found + [
        f"broker {broker} says of partition {partition} {said[1].get(partition)}, and ZooKeeper {state}"
        for partition, state in held[1].items()
        if said[1].get(partition) != state
    ]


def _according_to_zookeeper(cluster: ChaosCluster, topic: str) -> View:
    partitions = sorted(int(index) for index in cluster.read(f"/brokers/topics/{topic}")["partitions"])
    states = {index: cluster.state(topic, index) for index in partitions}
    return cluster.controller(), {
        index: (state["leader"], state["leader_epoch"], tuple(sorted(state["isr"]))) for index, state in states.items()
    }


def _according_to(port: int, topic: str) -> View:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    with Wire((HOST, port)) as wire:
        assert wire.log_in(SECRET) == 0
        answer = wire.call(request, _METADATA_VERSION)
    (found,) = answer.topics
    return answer.controller_id, {
        row.partition_index: (row.leader_id, row.leader_epoch, tuple(sorted(row.isr_nodes))) for row in found.partitions
    }
