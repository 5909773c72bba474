"""An instance's topics by the tenant's own names, on the cluster that the instance is on.

The cluster is the truth: nothing about topics is kept here.

After a change, the caller's next read must show it, whichever broker answers it; so `create` and `delete` look until
they see what they did, for at most VISIBLE_WITHIN_S. A cluster that is changing its controller is waited for (patience.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from controlplane.clusters import zookeeper
from controlplane.clusters.topic_names import physical_names, physical_names_of
from controlplane.core import dry_runs
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, NotFound, Unavailable
from controlplane.core.portions import portions
from controlplane.kafka import client
from controlplane.kafka.many_names import ManyNames
from controlplane.kafka.patience import patiently
from quota.contracts.namespace import InstanceNames, instance_key, topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.core.errors import SluiceError
    from controlplane.kafka.client import Admin, Layout, Partition

Answer = TypeVar("Answer")

VISIBLE_WITHIN_S = 5.0
LOOK_EVERY_S = 0.1
DELETE_AT_ONCE = 50
CONFIGURE_AT_ONCE = 50
"""Topics in one request. Each is a write of its own to ZooKeeper: all of them together have CONTROLLER_TIMEOUT_S."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as its tenant knows it."""

    name: str
    layout: tuple[Partition, ...]
    id: str = ""  # see Layout

    @property
    def partitions(self) -> int:
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
        raise missing(name)
    return names_of(instance_id).topic_in(name)


def list_all(cluster: ClusterAddress, instance_id: str, *, clock: Clock = SYSTEM_CLOCK) -> list[Topic]:
    """Every topic of the instance, by name."""
    names = names_of(instance_id)
    owned = physical_names(zookeeper.tree(cluster), instance_id)
    found = patiently(cluster, lambda admin, _again: admin.layouts(owned), clock)
    return [Topic(names.topic_out(layout.name), layout.partitions, layout.id) for layout in found]


def names_listed(cluster: ClusterAddress, instance_ids: Iterable[str]) -> dict[str, list[str]]:
    """Of several instances of a cluster the names of their topics, in one look; nothing else is asked about them."""
    found = physical_names_of(zookeeper.tree(cluster), instance_ids)
    return {
        instance_id: sorted(names_of(instance_id).topic_out(name) for name in physical)
        for instance_id, physical in found.items()
    }


def many_names(cluster: ClusterAddress, instance_ids: Iterable[str]) -> ManyNames:
    """The same of very many instances, to look for words in: in the order of instances and of names."""
    return ManyNames(physical_names_of(zookeeper.tree(cluster), instance_ids))


def get(cluster: ClusterAddress, instance_id: str, name: str, *, clock: Clock = SYSTEM_CLOCK) -> Topic:
    """One topic. Raises NotFound."""
    physical = _physical(instance_id, name)
    layout = dry_runs.once(
        ("layout", cluster, physical),
        lambda: patiently(cluster, lambda admin, _again: admin.layout(physical), clock),
    )
    if layout is None:
        raise missing(name)
    return Topic(name, layout.partitions, layout.id)


def create(
    cluster: ClusterAddress,
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

    def make(admin: Admin, again: bool) -> None:
        try:
            admin.create(physical, partitions=partitions, replication_factor=replication_factor, config=config)
        except AlreadyExists:
            if not again or not _is_ours(admin.layout(physical), partitions, replication_factor):
                raise

    patiently(cluster, make, clock)

    def ready(layout: Layout | None) -> bool:
        return layout is not None and all(partition.leader is not None for partition in layout.partitions)

    _look_until(cluster, lambda admin: ready(admin.layout(physical)), clock)


def create_check(
    cluster: ClusterAddress,
    instance_id: str,
    name: str,
    *,
    partitions: int,
    replication_factor: int,
    config: Mapping[str, str],
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Raises what `create` would raise; nothing is made."""
    physical = _physical(instance_id, name)

    def check(admin: Admin, _again: bool) -> None:
        admin.create(
            physical, partitions=partitions, replication_factor=replication_factor, config=config, validate_only=True
        )

    patiently(cluster, check, clock)


def _is_ours(layout: Layout | None, partitions: int, replication_factor: int) -> bool:
    """Whether a topic that is there after an attempt without an answer is what that attempt was to make."""
    if layout is None:
        raise client.ClusterChanging("the cluster is about to show a topic that exists")
    return len(layout.partitions) == partitions and layout.replicas == partitions * replication_factor


def delete(cluster: ClusterAddress, instance_id: str, name: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Delete a topic and wait until it cannot be seen. Raises NotFound."""
    physical = _physical(instance_id, name)

    def remove(admin: Admin, again: bool) -> None:
        if not again and admin.layout(physical) is None:
            raise missing(name)
        admin.delete([physical])

    patiently(cluster, remove, clock)
    _look_until(cluster, lambda admin: admin.layout(physical) is None, clock)


def delete_all(cluster: ClusterAddress, instance_id: str) -> int:
    """Ask for the deletion of the instance's topics, a batch at a time; says how many were still there before."""
    owned = physical_names(zookeeper.tree(cluster), instance_id)
    client.admin(cluster).delete(owned[:DELETE_AT_ONCE])
    return len(owned)


def grow(cluster: ClusterAddress, instance_id: str, name: str, partitions: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Raise the number of partitions and wait until they can be seen."""
    physical = _physical(instance_id, name)

    def grown(admin: Admin) -> bool:
        layout = admin.layout(physical)
        return layout is not None and len(layout.partitions) >= partitions

    def add(admin: Admin, again: bool) -> None:
        if not again or not grown(admin):
            admin.grow(physical, partitions)

    patiently(cluster, add, clock)
    _look_until(cluster, grown, clock)


def grow_check(
    cluster: ClusterAddress, instance_id: str, name: str, partitions: int, *, clock: Clock = SYSTEM_CLOCK
) -> None:
    """Raises what `grow` would raise; nothing is changed."""
    physical = _physical(instance_id, name)
    patiently(cluster, lambda admin, _again: admin.grow(physical, partitions, validate_only=True), clock)


def config(cluster: ClusterAddress, instance_id: str, name: str, *, clock: Clock = SYSTEM_CLOCK) -> dict[str, str]:
    """What was set for a topic. Raises NotFound."""
    physical = _physical(instance_id, name)
    return dry_runs.once(
        ("config", cluster, physical),
        lambda: patiently(cluster, lambda admin, _again: admin.config(physical), clock),
    )


def settings_in_force(
    cluster: ClusterAddress, instance_id: str, name: str, *, clock: Clock = SYSTEM_CLOCK
) -> Mapping[str, str]:
    """What holds for a topic, defaults as well. Raises NotFound."""
    physical = _physical(instance_id, name)
    found = patiently(cluster, lambda admin, _again: admin.settings_in_force([physical]), clock)
    if physical not in found:
        raise missing(name)
    return {member: setting.value for member, setting in found[physical].items()}


def settings_all(
    cluster: ClusterAddress, instance_id: str, *, clock: Clock = SYSTEM_CLOCK
) -> dict[str, dict[str, client.Setting]]:
    """What is in force for every topic of the instance, defaults as well, by name."""
    names = names_of(instance_id)
    owned = physical_names(zookeeper.tree(cluster), instance_id)
    found = patiently(cluster, lambda admin, _again: admin.settings_in_force(owned), clock)
    return {names.topic_out(name): settings for name, settings in found.items()}


def config_set(
    cluster: ClusterAddress,
    instance_id: str,
    name: str,
    changes: Mapping[str, str | None],
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Set or (None) reset members. Raises NotFound, Invalid, Unsupported."""
    physical = _physical(instance_id, name)
    patiently(cluster, lambda admin, _again: admin.config_set(physical, changes), clock)


def config_check(
    cluster: ClusterAddress,
    instance_id: str,
    name: str,
    changes: Mapping[str, str | None],
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Raises what `config_set` would raise; nothing is changed."""
    physical = _physical(instance_id, name)
    patiently(cluster, lambda admin, _again: admin.config_set(physical, changes, validate_only=True), clock)


def ids(
    cluster: ClusterAddress, instance_id: str, wanted: Sequence[str], *, clock: Clock = SYSTEM_CLOCK
) -> dict[str, str]:
    """The ids of these topics, without those that are not there."""
    names = names_of(instance_id)
    physical = [names.topic_in(name) for name in wanted if topic_name_problem(name) is None]
    found = patiently(cluster, lambda admin, _again: admin.layouts(physical), clock)
    return {names.topic_out(layout.name): layout.id for layout in found}


def configs(
    cluster: ClusterAddress, instance_id: str, wanted: Sequence[str]
) -> dict[str, dict[str, str] | SluiceError]:
    """What was set for each of these topics, or why it cannot be said; in the order of `wanted`. Raises ClusterUnavailable."""
    return _of_each(cluster, instance_id, wanted, lambda admin, physical: admin.config_of_each(physical))


def configs_set(
    cluster: ClusterAddress,
    instance_id: str,
    wanted: Sequence[str],
    changes: Mapping[str, str | None],
    *,
    validate_only: bool = False,
) -> dict[str, SluiceError | None]:
    """Set (None: reset) the same members of each topic: by topic None where it is done, or why it was not.

    One attempt: a cluster that is changing its controller is an answer here, and what it was asked for may be done all the same.
    Where it does not answer for one portion, the portions behind it are not asked for. Raises ClusterUnavailable.
    """
    return _of_each(
        cluster,
        instance_id,
        wanted,
        lambda admin, physical: admin.config_set_each(physical, changes, validate_only=validate_only),
    )


def _of_each(
    cluster: ClusterAddress,
    instance_id: str,
    wanted: Sequence[str],
    ask: Callable[[Admin, Sequence[str]], Mapping[str, Answer | SluiceError]],
) -> dict[str, Answer | SluiceError]:
    """A portion of topics at a time. A name that no topic can have is one that is not there."""
    names = names_of(instance_id)
    found: dict[str, Answer | SluiceError] = {}
    asked = [name for name in wanted if topic_name_problem(name) is None]
    away: SluiceError | None = None
    for portion in portions(asked, CONFIGURE_AT_ONCE):
        if away is not None:
            found |= dict.fromkeys(portion, away)
            continue
        admin = client.admin(cluster)
        answers = ask(admin, [names.topic_in(name) for name in portion])
        found |= {name: answers[names.topic_in(name)] for name in portion}
        away = next((each for each in answers.values() if isinstance(each, Unavailable)), None)
        if away is not None:
            client.forget(cluster, admin)
    return {name: found.get(name, missing(name)) for name in wanted}


def missing(name: str) -> NotFound:
    """What is said of a topic that is not there."""
    return NotFound(f"no topic {name}", code="topic_not_found")


def _look_until(cluster: ClusterAddress, seen: Callable[[Admin], bool], clock: Clock) -> None:
    """Look again and again. Not seeing it in time is no failure: the change itself was accepted."""
    began = clock.now()
    while (clock.now() - began).total_seconds() < VISIBLE_WITHIN_S:
        admin = client.admin(cluster)
        try:
            if seen(admin):
                return
        except client.ClusterChanging:
            client.forget(cluster, admin)
        clock.sleep(LOOK_EVERY_S)
