"""An instance's topics by the tenant's own names. The cluster is the truth: nothing about them is kept here.

After a change, the caller's next read must show it, whichever broker answers it; so `create` and `delete` look until
they see what they did, for at most VISIBLE_WITHIN_S.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.clusters import zookeeper
from controlplane.clusters.topic_names import physical_names
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound
from controlplane.kafka import client
from quota.contracts.namespace import InstanceNames, instance_key, topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.kafka.client import Layout, Partition

VISIBLE_WITHIN_S = 5.0
LOOK_EVERY_S = 0.1
DELETE_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as its tenant knows it."""

    name: str
    layout: tuple[Partition, ...]

    @property
    def partitions(self) -> int:
        """How many."""
        return len(self.layout)

    @property
    def replication_factor(self) -> int:
        """Of partition 0, as Kafka's own tools show it."""
        return len(self.layout[0].replicas) if self.layout else 0

    @property
    def replicas(self) -> int:
        """What it counts against the instance's partitions."""
        return sum(len(partition.replicas) for partition in self.layout)


def names_of(instance_id: str) -> InstanceNames:
    """The mapping of an instance's names."""
    return InstanceNames(instance_key(instance_id))


def _physical(instance_id: str, name: str) -> str:
    """The cluster's name of a topic. A name that no topic can have is one that is not there."""
    if topic_name_problem(name) is not None:
        raise NotFound(f"no topic {name}", code="topic_not_found")
    return names_of(instance_id).topic_in(name)


def list_all(instance_id: str) -> list[Topic]:
    """Every topic of the instance, by name."""
    names = names_of(instance_id)
    owned = physical_names(zookeeper.tree(), instance_id)
    return [Topic(names.topic_out(layout.name), layout.partitions) for layout in client.admin().layouts(owned)]


def get(instance_id: str, name: str) -> Topic:
    """One topic. Raises NotFound."""
    layout = client.admin().layout(_physical(instance_id, name))
    if layout is None:
        raise NotFound(f"no topic {name}", code="topic_not_found")
    return Topic(name, layout.partitions)


def create(
    instance_id: str,
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str],
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Make a topic and wait until it can be seen with a leader for each partition."""
    physical = _physical(instance_id, name)
    admin = client.admin()
    admin.create(physical, partitions=partitions, replication_factor=replication_factor, config=config)

    def ready(layout: Layout | None) -> bool:
        return layout is not None and all(partition.leader is not None for partition in layout.partitions)

    _look_until(lambda: ready(admin.layout(physical)), clock)


def delete(instance_id: str, name: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Delete a topic and wait until it cannot be seen. Raises NotFound."""
    physical = _physical(instance_id, name)
    admin = client.admin()
    if admin.layout(physical) is None:
        raise NotFound(f"no topic {name}", code="topic_not_found")
    admin.delete([physical])
    _look_until(lambda: admin.layout(physical) is None, clock)


def delete_all(instance_id: str) -> int:
    """Ask for the deletion of the instance's topics, a batch at a time; says how many were still there before."""
    owned = physical_names(zookeeper.tree(), instance_id)
    client.admin().delete(owned[:DELETE_AT_ONCE])
    return len(owned)


def grow(instance_id: str, name: str, partitions: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Raise the number of partitions and wait until they can be seen."""
    physical = _physical(instance_id, name)
    admin = client.admin()
    admin.grow(physical, partitions)

    def grown() -> bool:
        layout = admin.layout(physical)
        return layout is not None and len(layout.partitions) >= partitions

    _look_until(grown, clock)


def config(instance_id: str, name: str) -> dict[str, str]:
    """What was set for a topic. Raises NotFound."""
    return client.admin().config(_physical(instance_id, name))


def config_set(instance_id: str, name: str, changes: Mapping[str, str | None]) -> None:
    """Set or (None) reset members. Raises NotFound, Invalid, Unsupported."""
    client.admin().config_set(_physical(instance_id, name), changes)


def _look_until(seen: Callable[[], bool], clock: Clock) -> None:
    """Look again and again. Not seeing it in time is no failure: the change itself was accepted."""
    looks = int(VISIBLE_WITHIN_S / LOOK_EVERY_S)
    for _ in range(looks):
        if seen():
            return
        clock.sleep(LOOK_EVERY_S)
