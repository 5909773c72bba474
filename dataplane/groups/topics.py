"""The cluster's topics as groups of the consumer protocol see them: ids, numbers of partitions, and what an instance has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.groups.consumer.model import Topic
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.cluster.metadata import Metadata


class Topics(Protocol):
    """What coordinators need to know."""

    @property
    def version(self) -> int:
        """Grows whenever anything may have changed."""
        ...

    def find(self, name: str) -> Topic | None:
        """By its physical name."""
        ...

    def beside(self, group_id: str) -> Sequence[str]:
        """The topics of the instance that a group belongs to, sorted. The same object as long as they are the same."""
        ...


class ClusterTopics:
    """What the controller has told this broker."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    @property
    def version(self) -> int:
        """See Topics."""
        return self._metadata.version

    def find(self, name: str) -> Topic | None:
        """See Topics."""
        topic_id, partitions = self._metadata.topic_id(name), self._metadata.partitions(name)
        return None if topic_id is None or not partitions else Topic(topic_id, len(partitions))

    def beside(self, group_id: str) -> Sequence[str]:
        """See Topics. A group without an owner is an operator's, and may subscribe to any topic."""
        owner = split_physical(group_id)
        return self._metadata.topics() if owner is None else self._metadata.topics_of(owner[0])
