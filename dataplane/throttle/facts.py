"""What only the broker knows of an instance when a flow report is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quota.agent.agent import InstanceFacts
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from dataplane.cluster.metadata import Metadata
    from dataplane.replication.manager import Replicas
    from dataplane.tenancy.registry import Registry


class Facts:
    """Called once a report. The cluster's leaders are counted again only when metadata have changed."""

    def __init__(self, registry: Registry, replicas: Replicas, metadata: Metadata) -> None:
        self._registry, self._replicas, self._metadata = registry, replicas, metadata
        self._counted_version = -1
        self._all_leaders: dict[str, int] = {}

    def __call__(self) -> dict[str, InstanceFacts]:
        """By instance id."""
        leaders = self._replicas.leaders_by_instance()
        storage = self._replicas.storage_by_instance()
        everywhere = self._leaders_everywhere()
        facts = {}
        for instance in self._registry.all():
            key = instance.names.key
            facts[instance.spec.id] = InstanceFacts(
                leaders=leaders.get(key, 0),
                all_leaders=everywhere.get(key, 0),
                storage_bytes=storage.get(key, 0),
                connections=len(instance.connections),
            )
        return facts

    def _leaders_everywhere(self) -> dict[str, int]:
        if self._counted_version != self._metadata.version:
            self._counted_version = self._metadata.version
            counts: dict[str, int] = {}
            for topic in self._metadata.topics():
                parsed = split_physical(topic)
                if parsed is not None:
                    led = sum(partition.has_leader for partition in self._metadata.partitions(topic).values())
                    counts[parsed[0]] = counts.get(parsed[0], 0) + led
            self._all_leaders = counts
        return self._all_leaders
