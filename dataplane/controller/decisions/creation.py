"""What may be created: a wanted topic, or more partitions of one, is checked and given its assignment.

Pure, but for the dice of the placement. With pauses (`records.steps`): a topic may have ten thousand partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from dataplane.cluster.paths import TopicAssignment, topic_id_text
from dataplane.controller.context import Holdings
from dataplane.controller.decisions.placement import Assignment, Continuation, Dice, place
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Pace, Steps

MAX_PARTITIONS_PER_TOPIC = 10_000
"""A topic's assignment is one node of at most a mebibyte."""
EVEN_SHARES_ON_A_BROKER = 2
"""So much of its limit, divided by its brokers, an instance may put on one of them by assignments of its own."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that somebody wants. -1 is the cluster's default."""

    name: str  # physical
    partitions: int = -1
    replication_factor: int = -1
    assignment: Mapping[int, tuple[int, ...]] | None = None  # instead of the two numbers
    config: Mapping[str, str] = field(default_factory=dict)
    brokers: tuple[int, ...] = ()  # where replicas may be placed; empty = anywhere
    replica_limit: int | None = None  # of the owner, all its topics together; None = unlimited
    topic_limit: int | None = None  # likewise
    is_tenants: bool = False  # a tenant asks: its assignments must be spread


@dataclass(frozen=True, slots=True)
class MorePartitions:
    """A topic that shall grow."""

    name: str  # physical
    count: int  # of all its partitions, afterwards
    assignment: tuple[tuple[int, ...], ...] | None = None  # of the new ones
    brokers: tuple[int, ...] = ()  # these as in `NewTopic`
    replica_limit: int | None = None
    is_tenants: bool = False


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """What became of one topic of a request."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: UUID = NO_UUID
    partitions: int = -1
    replication_factor: int = -1


_REPLICAS_US = 3
"""To look at those of one partition."""
Racks = Mapping[int, str | None]
"""The live brokers, and where each stands."""


def assign(
    topic: NewTopic, live: Racks, held: Holdings, defaults: tuple[int, int], random: Dice
) -> Steps[TopicAssignment]:
    """The topic's id and assignment. Raises ApiError with a sentence that may reach the tenant."""
    if topic.topic_limit is not None and held.topics >= topic.topic_limit:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"the instance may hold {topic.topic_limit} topics; it holds {held.topics}"
        )
    if topic.assignment:
        assignment = dict(topic.assignment)
        _check_numbers(assignment)
        _check_limit(topic, held.replicas, sum(map(len, assignment.values())))
        yield from _check_replicas(len(assignment[0]), assignment.values(), _allowed(topic, live))
        yield from _check_share(topic, assignment.values(), held, len(topic.brokers or live))
    else:
        assignment = yield from _placed(topic, live, held.replicas, defaults, random)
    return TopicAssignment(new_topic_id(random), assignment)


def grow(
    wanted: MorePartitions,
    present: Mapping[int, tuple[int, ...]],
    live: Racks,
    held: Holdings,
    random: Dice,
) -> Steps[Assignment]:
    """Where the new partitions of a topic go. Raises ApiError with a sentence that may reach the tenant."""
    before, factor = len(present), len(present[0])
    if wanted.count <= before:
        than = "as many already" if wanted.count == before else "more already, and partitions cannot be taken away"
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"the topic has {before} partitions: {than}")
    if wanted.count > MAX_PARTITIONS_PER_TOPIC:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"a topic has {MAX_PARTITIONS_PER_TOPIC} partitions at most")
    more = wanted.count - before
    allowed = _allowed(wanted, live)
    if wanted.assignment is not None:
        if len(wanted.assignment) != more:
            raise ApiError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"the topic grows by {more} partitions, and {len(wanted.assignment)} are assigned",
            )
        added = dict(enumerate(wanted.assignment, before))
        yield from _check_replicas(factor, wanted.assignment, allowed)
        _check_limit(wanted, held.replicas, more * factor)
        yield from _check_share(wanted, wanted.assignment, held, len(wanted.brokers or live))
        return added
    _check_factor(factor, allowed)
    _check_limit(wanted, held.replicas, more * factor)
    return (yield from place(allowed, more, factor, random, Continuation(present[0][0], before)))


def _allowed(topic: NewTopic | MorePartitions, live: Racks) -> dict[int, str | None]:
    """Where its replicas may be: also where the request says itself where it wants them."""
    return {broker: rack for broker, rack in live.items() if not topic.brokers or broker in topic.brokers}


def _check_limit(topic: NewTopic | MorePartitions, used_replicas: int, needed: int) -> None:
    if topic.replica_limit is not None and used_replicas + needed > topic.replica_limit:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"the instance may hold {topic.replica_limit} partitions, replicas included; it holds {used_replicas} and "
            f"this topic needs {needed}{' more' if isinstance(topic, MorePartitions) else ''}",
        )


def _check_share(
    topic: NewTopic | MorePartitions, added: Iterable[tuple[int, ...]], held: Holdings, brokers: int
) -> Steps[None]:
    """Who chooses brokers himself must not heap on one of them what was sold as spread over all."""
    if topic.replica_limit is None or not topic.is_tenants:
        return
    share = EVEN_SHARES_ON_A_BROKER * -(-topic.replica_limit // brokers)
    pace = Pace()
    counts: Counter[int] = Counter()
    for replicas in added:
        if pace.over(_REPLICAS_US):
            yield None
        counts.update(replicas)
    for broker_id, more in sorted(counts.items()):
        after = held.on_brokers.get(broker_id, 0) + more
        if after > share:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"an assignment may bring the instance's replicas on one broker to {share}, twice an even share of its "
                f"limit; broker {broker_id} would hold {after}",
            )


def _check_factor(factor: int, brokers: Collection[int]) -> None:
    if not 0 < factor <= len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {factor} is not possible: {len(brokers)} brokers are available",
        )


def new_topic_id(random: Dice) -> UUID:
    """A random id. As Kafka, none whose text begins with a dash: command lines would take it for an option."""
    while True:
        topic_id = UUID(int=random.getrandbits(128), version=4)
        if not topic_id_text(topic_id).startswith("-"):
            return topic_id


def _placed(
    topic: NewTopic, live: Racks, used_replicas: int, defaults: tuple[int, int], random: Dice
) -> Steps[Assignment]:
    partitions = topic.partitions if topic.partitions != -1 else defaults[0]
    factor = topic.replication_factor if topic.replication_factor != -1 else defaults[1]
    if not 0 < partitions <= MAX_PARTITIONS_PER_TOPIC:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"the number of partitions must be from 1 to {MAX_PARTITIONS_PER_TOPIC}"
        )
    brokers = _allowed(topic, live)
    _check_factor(factor, brokers)
    _check_limit(topic, used_replicas, partitions * factor)  # first: to place what is refused costs the most
    return (yield from place(brokers, partitions, factor, random))


def _check_numbers(assignment: Assignment) -> None:
    if len(assignment) > MAX_PARTITIONS_PER_TOPIC:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"a topic has {MAX_PARTITIONS_PER_TOPIC} partitions at most")
    if any(number not in assignment for number in range(len(assignment))):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 without a gap")


def _check_replicas(factor: int, new: Iterable[tuple[int, ...]], allowed: Collection[int]) -> Steps[None]:
    """Whether each has `factor` replicas, on brokers that it may be on. Raises ApiError."""
    if factor > len(allowed):  # of millions nobody asks which one it is
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"a partition is assigned to {factor} brokers, and {len(allowed)} are available",
        )
    pace = Pace()
    for replicas in new:
        if pace.over(_REPLICAS_US):
            yield None
        if len(replicas) != factor or not factor:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "every partition needs the same number of replicas")
        if any(broker not in allowed for broker in replicas):
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a replica is assigned to a broker that is not there")
        if len(set(replicas)) != len(replicas):
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition names a broker twice")
