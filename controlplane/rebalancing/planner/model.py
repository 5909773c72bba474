"""A cluster as the planner sees it, what is wished of it, and what comes out. All of it is frozen.

The first replica of a partition is the one that is to lead (`preferred` in Kafka's words): the controller gives it the
lead whenever it can. So a plan says who shall lead by the order of replicas, and figures are of that order.

Rates are bytes a second, sizes bytes: whole numbers, so that sums are exact and the same in whatever order they are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Goal(StrEnum):
    """What brokers are to have alike, or no more of than they can carry."""

    LEADERS = "leaders"
    PRODUCE = "produce"  # flow that producers bring to the leaders of a broker
    CONSUME = "consume"
    REPLICAS = "replicas"
    DISK = "disk"
    BANDWIDTH = "bandwidth"  # what tenants have bought, as far as it falls on a broker: no more than it can carry


DEFAULT_GOALS = tuple(Goal)
"""In this order: none is served at the cost of one before it."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker. None is: not known, and then no bound."""

    id: int
    rack: str = ""
    disk_bytes: int | None = None  # what replicas may take
    other_bytes: int = 0  # of it in use by something else
    bandwidth_bytes_per_s: int | None = None  # what it can carry of one direction
    alive: bool = True


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition. `replicas` begin with the one that is to lead."""

    topic: str
    index: int
    replicas: tuple[int, ...]
    leader: int | None = None  # who leads now
    size_bytes: int = 0  # of one replica
    produce_bytes_per_s: int = 0
    consume_bytes_per_s: int = 0
    instance: str = ""  # empty: the cluster's own
    out_of_sync: tuple[int, ...] = ()  # replicas that cannot lead
    movable: bool = True  # False: not in the scope, on its way already, or without a leader to copy from

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.index


@dataclass(frozen=True, slots=True)
class Instance:
    """Of a tenant's instance: what was bought, and which brokers serve it (None: all)."""

    id: str
    limit_bytes_per_s: int | None = None
    brokers: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """All of it at one moment."""

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...]
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True, slots=True)
class Wishes:
    """What an operator wants.

    A *cordoned* broker gets nothing new. A *draining* one is to have nothing in the end, a *demoted* one nothing to lead.
    """

    goals: tuple[Goal, ...] = DEFAULT_GOALS
    cordoned: frozenset[int] = frozenset()
    draining: frozenset[int] = frozenset()
    demoted: frozenset[int] = frozenset()
    margin_percent: int = 10  # how far from the average is alike enough
    leaders_only: bool = False  # no byte is copied, except off draining brokers, out of shared racks and off full disks


@dataclass(frozen=True, slots=True)
class Move:
    """What becomes of one partition."""

    topic: str
    partition: int
    instance: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    leader: int | None  # now
    size_bytes: int
    returns_bytes_per_s: int = 0  # of what its tenant has bought and could not use

    @property
    def added(self) -> tuple[int, ...]:
        """Brokers that have to copy it."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def is_leader_only(self) -> bool:
        """Nothing is copied: another replica leads."""
        return not self.added

    @property
    def bytes_to_copy(self) -> int:
        return self.size_bytes * len(self.added)


@dataclass(frozen=True, slots=True)
class Stuck:
    """What was to be done and cannot be, in a sentence."""

    topic: str
    partition: int
    broker: int
    reason: str


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker has of each goal, before or after."""

    broker: int
    of: Mapping[Goal, int]


@dataclass(frozen=True, slots=True)
class TenantChange:
    """How much of its limit an instance can use, before and after."""

    instance: str
    limit_bytes_per_s: int
    usable_before: int
    usable_after: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Moves, and what they come to. `scores` are how far the goals are from being met; 0 is met."""

    moves: tuple[Move, ...]
    before: tuple[BrokerLoad, ...]
    after: tuple[BrokerLoad, ...]
    tenants: tuple[TenantChange, ...]
    scores_before: Mapping[Goal, int]
    scores_after: Mapping[Goal, int]
    stuck: tuple[Stuck, ...] = ()
    settled: bool = True  # False: there is more to do than was looked for
    bytes_in: Mapping[int, int] = field(default_factory=dict)  # by broker: what it has to copy
    bytes_out: Mapping[int, int] = field(default_factory=dict)  # and what is copied from it

    @property
    def bytes_to_copy(self) -> int:
        return sum(self.bytes_in.values())

    def seconds_at(self, throttle_bytes_per_s: int) -> int:
        """How long it takes at the least, where each broker takes in and gives out so much: the busiest one's time."""
        busiest = max([0, *self.bytes_in.values(), *self.bytes_out.values()])
        return -(-busiest // max(1, throttle_bytes_per_s))
