"""The door to a topic's configurations, with where each comes from: a question to one broker, on a connection of its own.

Any broker knows the answer. One that is away is passed over, and the next is asked; each has BROKER_S.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.identification import to_brokers
from controlplane.clusters.topic_names import physical_names
from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import config_bytes as wire
from controlplane.kafka import leaving
from controlplane.kafka.topics import missing, names_of
from quota.contracts.namespace import topic_name_problem

if TYPE_CHECKING:
    from controlplane.clusters.address import ClusterAddress
    from controlplane.clusters.identification import Identification
    from controlplane.kafka.config_bytes import ConfigRow

BROKER_S = 3.0
UNKNOWN_TOPIC = 3


class ConfigDoor(Protocol):
    """What this service asks about configurations. The call may raise ClusterUnavailable."""

    def rows(self, physical: str) -> list[ConfigRow] | None:
        """Of one topic, by name; None: there is none."""
        ...


class KafkaConfigs:
    """The real one."""

    def __init__(self, cluster: ClusterAddress, who: Identification) -> None:
        self._cluster, self._who = cluster, who

    def rows(self, physical: str) -> list[ConfigRow] | None:
        """See ConfigDoor."""
        for broker in coordination.live_brokers(zookeeper.tree(self._cluster)):
            try:
                with leaving.signed_in((broker.host, broker.port), self._who, timeout_s=BROKER_S) as connection:
                    code, rows = wire.answer(
                        leaving.ask(connection, wire.DESCRIBE_CONFIGS, wire.VERSION, wire.request(physical))
                    )
            except ClusterUnavailable:
                continue
            if code == UNKNOWN_TOPIC:
                return None
            if not code:
                return rows
        raise ClusterUnavailable("no broker says how the topic is configured")


def door(cluster: ClusterAddress) -> ConfigDoor:
    """With the proof that this process has now."""
    return KafkaConfigs(cluster, to_brokers())


def read(cluster: ClusterAddress, instance_id: str, name: str) -> list[ConfigRow]:
    """Of a topic by its tenant's name. Raises NotFound, ClusterUnavailable."""
    physical = names_of(instance_id).topic_in(name) if topic_name_problem(name) is None else ""
    if physical not in physical_names(zookeeper.tree(cluster), instance_id):
        raise missing(name)
    rows = door(cluster).rows(physical)
    if rows is None:
        raise missing(name)
    return rows
