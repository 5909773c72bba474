"""What only the broker knows of an instance, and of the throttle rules within it, when a flow report is due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dataplane.groups.shard import Entry
from quota.agent.agent import InstanceFacts
from quota.contracts.instance import InstanceSpec
from quota.contracts.report import LoopLoad
from quota.contracts.rows import Row, Unit

if TYPE_CHECKING:
    from dataplane.cluster.metadata import Metadata
    from dataplane.doors import Loop
    from dataplane.flow.loop_times import LoopTimes
    from dataplane.groups.coordinator import GroupCoordinator
    from dataplane.replication.manager import Replicas
    from dataplane.tenancy.registry import Registry
    from dataplane.throttle.rules import InstanceRules
    from dataplane.transactions.coordinator import TransactionCoordinator


Counts = Callable[[], dict[str, int]]
"""By instance key, since the beginning."""
MOST_MEMBERS = 1_000
"""Of one rule for groups, that a report names."""


class FlowFacts:
    """Called once a report."""

    def __init__(
        self,
        broker: int,
        registry: Registry,
        replicas: Replicas,
        metadata: Metadata,
        groups: GroupCoordinator,
        loop: Loop,
        transactions: TransactionCoordinator,
        *,
        forgotten_producers: Counts,
        refused_sessions: Counts,
        failed_logins: Counts,
        refused_in_transactions: Counts,
        times: LoopTimes | None = None,
    ) -> None:
        self._broker = broker
        self._registry, self._replicas, self._metadata, self._groups = registry, replicas, metadata, groups
        self._loop, self._transactions = loop, transactions
        self._forgotten_producers, self._refused_sessions = forgotten_producers, refused_sessions
        self._times = times
        self._failed_logins, self._refused_in_transactions = failed_logins, refused_in_transactions

    def __call__(self) -> Iterator[tuple[str, InstanceFacts]]:
        """By instance id, and for rules by the keys of their flows. Rows may be taken in several turns of the loop."""
        leaders = self._replicas.accounting.leaders_by_instance()
        storage = self._replicas.accounting.storage_by_instance()
        is_controller = self._metadata.controller_id == self._broker  # every broker knows it, and one tells
        for instance in self._registry.all():
            key = instance.names.key
            transactions = self._transactions.counts.of(key)
            leaderless, behind = self._metadata.trouble_of(key) if is_controller else (0, 0)
            whole = InstanceFacts(
                leaders=leaders.get(key, 0),
                all_leaders=self._metadata.leaders_of(key),
                storage_bytes=storage.get(key, 0),
                connections=len(instance.connections),
                leaderless=leaderless,
                behind=behind,
                transactions=(transactions.is_open, transactions.ids),
            )
            yield instance.spec.id, whole
            if instance.request_bucket is not None:
                yield Row(instance.spec.id, unit=Unit.REQUESTS).key, _of_all_brokers(instance.spec)
            if instance.loop_bucket is not None:
                yield Row(instance.spec.id, unit=Unit.LOOP_TIME).key, _of_all_brokers(instance.spec)
            if instance.rules is not None:
                yield from list(self._of_rules(instance.rules, whole))  # they may be others in the next turn

    def absent(self) -> dict[int, tuple[int, int, int]]:
        """What the cluster lacks of other brokers; the controller's broker tells."""
        return self._metadata.absent() if self._metadata.controller_id == self._broker else {}

    def take_load(self) -> LoopLoad:
        """What the loop did since the last report, by instances."""
        load = self._loop.take_load()
        return LoopLoad(
            round(load.longest_turn_s * 1e6),
            self._instance_of(load.longest_of),
            round(load.busy_s * 1000),
            self._by_instance(load.cut),
            self._by_instance(load.too_large),
            self._by_instance(self._forgotten_producers()),
            self._by_instance(self._refused_sessions()),
            self._by_instance(self._failed_logins()),
            self._by_instance(self._refused_in_transactions()),
            {} if self._times is None else self._times.take(),
        )

    def _by_instance(self, counts: dict[str, int]) -> dict[str, int]:
        return {self._instance_of(key): count for key, count in counts.items()}

    def _instance_of(self, account: str) -> str:
        """Its id; of one that is gone only the key is known."""
        instance = self._registry.by_key(account) if account else None
        return instance.spec.id if instance is not None else account

    def _of_rules(self, rules: InstanceRules, whole: InstanceFacts) -> Iterator[tuple[str, InstanceFacts]]:
        """A rule's limit is divided by who leads what it is about."""
        rules.leaders = (whole.leaders, whole.all_leaders)
        for row in rules.rows():
            here, everywhere = self._leaders_of(row.topics) if row.topics else rules.leaders
            members = self._members_of(row.groups)
            yield row.key, InstanceFacts(here, everywhere, storage_bytes=0, connections=0, members=members)

    def _members_of(self, groups: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Of those of the groups that this broker coordinates."""
        members: dict[tuple[str, str], None] = {}
        for group in groups:
            entry = self._groups.find(group)
            if isinstance(entry, Entry):
                for client_id, host in entry.clients():
                    members[client_id, host.removeprefix("/")] = None
        return tuple(members)[:MOST_MEMBERS]

    def _leaders_of(self, topics: tuple[str, ...]) -> tuple[int, int]:
        here = everywhere = 0
        for topic in topics:
            for index, partition in self._metadata.partitions(topic).items():
                replica = self._replicas.registry.get(topic, index)
                here += replica is not None and replica.state.is_leader
                everywhere += partition.has_leader
        return here, everywhere


def _of_all_brokers(spec: InstanceSpec) -> InstanceFacts:
    """Requests, and the time they take, come to leaders and to others: every broker with a listener of it counts alike."""
    return InstanceFacts(1, len(spec.hosts), storage_bytes=0, connections=0)
