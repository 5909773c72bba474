"""The door to consumer groups: what `client` is for topics. The second module that imports confluent_kafka.

Names are physical, but for the topics of members' assignments: those are the bytes that a client wrote, with the names that
it knows. `door(cluster)` asks by this process's client of that cluster. Each call is one round: what it asks of several
groups, or of several brokers, is asked at once and has ROUND_S together. A failure is one of core.errors; the door does not
try again (`groups` asks once more, by a client that has not known the broker that is gone).
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from controlplane.clusters import coordination, zookeeper
from controlplane.core.errors import ClusterUnavailable, Conflict, NotFound, SluiceError, Unsupported
from controlplane.kafka import (
    at_once,
    bare_groups,
    classic_members,
    client,
    committed,
    forgetting,
    group_marks,
    leaving,
    running,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.bare_groups import BareGroup
    from controlplane.kafka.group_marks import GroupMark

LOG = logging.getLogger(__name__)
ROUND_S = 3.0
LIST_S = 2.0
"""In which a broker has to name its groups."""
OLDEST_S = 2.0
FIRST_BYTES = 16 * 1024
"""What is fetched of a partition to see one record. A larger batch is asked for again by librdkafka, with room for it."""

Address = tuple[str, int]
"""Host and port of a broker."""
Place = tuple[str, int]
"""A topic and a partition's number."""

NOTHING_LEFT = -1
"""Instead of a timestamp: between the offset and the end there are no records, only marks of transactions."""
UNDATED = -2
"""Instead of a timestamp: the record has none (of a producer from before 0.10)."""

STATES: Mapping[ConsumerGroupState, str] = {
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
}
"""Kafka's own words."""
OF_CONSUMER_PROTOCOL = {"Assigning": "PreparingRebalance", "Reconciling": "CompletingRebalance"}
"""Words for a group of the consumer protocol (KIP-848) that comes to rest, in those of the classic one."""
UNKNOWN = "Unknown"
ILLEGIBLE = (
    KafkaError._INVALID_ARG,  # noqa: SLF001  # the group is not of consumers
    KafkaError._DESTROY,  # noqa: SLF001  # an assignment ends in its middle
    KafkaError._BAD_MSG,  # noqa: SLF001
    KafkaError._UNDERFLOW,  # noqa: SLF001
)
"""What librdkafka says of a group whose members have assignments that it cannot read."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a list."""

    name: str
    state: str
    coordinator: Address | None = field(default=None, compare=False)  # who has named it


class Listing(NamedTuple):
    """Groups, and the ids of brokers that are registered and have not named all of theirs."""

    groups: list[ListedGroup]
    missing: tuple[int, ...] = ()


class Known(NamedTuple):
    """Groups of which all is known: members, and offsets. Others did not answer."""

    described: dict[str, DescribedGroup]
    committed: dict[str, dict[Place, int]]


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer of a group. `partitions` are of the topics that it names: a tenant's names."""

    id: str
    client_id: str
    host: str
    partitions: tuple[Place, ...]
    group_instance_id: str | None = None  # of a static member (KIP-345), as its consumer is configured


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group as its coordinator knows it. One that does not exist is Dead."""

    name: str
    state: str
    protocol: str
    members: tuple[Member, ...]
    coordinator: tuple[str, int] | None = None
    is_of_consumers: bool = False  # of the consumer protocol (KIP-848)
    is_offsets_alone: bool = False  # nobody was ever a member: it ends with its last offset


@dataclass(frozen=True, slots=True)
class Span:
    """What a partition holds: records from `start` to before `end`."""

    start: int
    end: int


class GroupDoor(Protocol):
    """What this service asks about groups. Every call may raise ClusterUnavailable."""

    def listed(self, owned: Callable[[str], bool]) -> Listing:
        """The groups of the cluster whose names are `owned`: there may be a hundred thousand others."""
        ...

    def described(self, names: Sequence[str]) -> dict[str, DescribedGroup]:
        """By name, those that do not exist included."""
        ...

    def committed(self, names: Sequence[str]) -> dict[str, dict[Place, int]]:
        """By name: the next offset that the group will read."""
        ...

    def read(self, names: Sequence[str]) -> tuple[dict[str, DescribedGroup], dict[str, dict[Place, int]]]:
        """`described` and `committed`. Raises ClusterUnavailable where one of them is not known."""
        ...

    def known(self, names: Sequence[str]) -> Known:
        """The same of those that answer: one whose coordinator is away hides no other."""
        ...

    def coordinated(self) -> dict[Address, dict[str, str]]:
        """All groups of the cluster, by the broker that coordinates them, with their states as brokers call them.

        What a broker coordinates that is away is not there.
        """
        ...

    def marks(self, address: Address, names: Sequence[str], *, within_s: float) -> dict[str, GroupMark]:
        """What each of many is like that a broker coordinates; absent: no answer in time, or it is no coordinator of it."""
        ...

    def offsets(self, address: Address, names: Sequence[str], *, within_s: float) -> dict[str, Mapping[Place, int]]:
        """`committed` of many that a broker coordinates; absent: no answer in time, or it coordinates the group no longer."""
        ...

    def spans(self, places: Iterable[Place]) -> dict[Place, Span]:
        """Without partitions that have no leader now."""
        ...

    def offsets_at(self, places: Iterable[Place], timestamp_ms: int) -> dict[Place, int | None]:
        """The first record of that time or later; None: there is none."""
        ...

    def offsets_at_each(self, times: Mapping[Place, int]) -> dict[Place, int | None]:
        """The same with a time of each partition's own, in ms, in one round."""
        ...

    def newest(self, places: Iterable[Place]) -> dict[Place, int | None]:
        """The largest timestamp of the records, in ms; None: there is no record, or it has none. Without leader: absent."""
        ...

    def oldest(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """The timestamp, in ms, of the first record from each offset on; NOTHING_LEFT; UNDATED; absent: no answer in time."""
        ...

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        """Set offsets of a group without members. Raises Conflict."""
        ...

    def delete(self, name: str) -> None:
        """A group and its offsets. Raises NotFound, Conflict."""
        ...

    def remove(self, name: str, member_id: str) -> None:
        """Take a member out. Raises NotFound, also of one of the consumer protocol."""
        ...

    def classic_members(self, name: str) -> frozenset[str]:
        """Of a group of the consumer protocol: the ids of members that still speak the classic one. Raises NotFound."""
        ...

    def forget(self, name: str, places: Sequence[Place]) -> None:
        """Delete offsets of a group without members; with its last one the group ends. Raises NotFound, Conflict."""
        ...


class KafkaGroups:
    """The real one."""

    def __init__(self, cluster: ClusterAddress, admin: client.KafkaAdmin) -> None:
        self._cluster = cluster
        self._admin = admin
        self._client = admin.kafka

    def listed(self, owned: Callable[[str], bool]) -> Listing:
        """See GroupDoor."""
        brokers = {(broker.host, broker.port): broker.id for broker in running.brokers(self._cluster)}
        answers = at_once.each(lambda address: committed.listed(address, self._admin.who, timeout_s=LIST_S), brokers)
        found, missing = [], []
        for address, answer in answers.items():
            error, states = (-1, {}) if isinstance(answer, ClusterUnavailable) else answer
            if error:  # it does not answer, or has not loaded all of its groups yet
                missing.append(brokers[address])
            found += [ListedGroup(name, _state(state), address) for name, state in states.items() if owned(name)]
        if len(missing) == len(brokers):
            raise ClusterUnavailable("no broker names its groups")
        if missing:  # who asks on begins with a client that has never had such a broker: an old one may go on asking it
            client.forget(self._cluster, self._admin)
        return Listing(found, tuple(sorted(missing)))

    def described(self, names: Sequence[str]) -> dict[str, DescribedGroup]:
        """See GroupDoor."""
        found = {}
        for name, outcome in self._outcomes(names).items():
            if isinstance(outcome, SluiceError):
                raise outcome
            found[name] = outcome
        return found

    def _outcomes(self, names: Sequence[str]) -> dict[str, DescribedGroup | SluiceError]:
        """By name the group, or why it is not known. One whose assignments cannot be read is described without them."""
        until_s = time.monotonic() + ROUND_S
        found, illegible = self._described(names)
        # A topic's name that is not UTF-8 takes the answers away that were asked for together with it.
        spoilt = [name for name in names if name not in found and name not in illegible]
        while len(names) > 1 and spoilt and time.monotonic() < until_s:
            alone, _ = self._described([spoilt.pop()])
            found |= alone
        unread = [name for name in names if name not in found]
        return found | self._bare(unread) if unread else found

    def _described(self, names: Sequence[str]) -> tuple[dict[str, DescribedGroup | SluiceError], set[str]]:
        """Without those whose answer came to nothing; and the names of which librdkafka says that it cannot read them."""
        found: dict[str, DescribedGroup | SluiceError] = {}
        illegible = set()
        until_s = time.monotonic() + ROUND_S + 1
        for name, future in self._describe(names).items():
            try:
                answer = future.result(timeout=max(0.0, until_s - time.monotonic()))
                found[name] = _described(name, answer)  # texts are decoded when they are asked for
            except (UnicodeDecodeError, SystemError):  # the second is what is left of the first in C
                continue
            except FutureTimeoutError:
                found[name] = self._silent()
            except KafkaException as error:
                if error.args[0].code() in ILLEGIBLE:
                    illegible.add(name)
                else:
                    found[name] = self._problem(error)
        return found, illegible

    def _bare(self, names: Sequence[str]) -> dict[str, DescribedGroup | SluiceError]:
        """Without assignments. A coordinator that does not answer costs its own groups and no others."""
        found: dict[str, DescribedGroup | SluiceError] = {}
        by_address: dict[Address, list[str]] = {}
        try:
            coordinators = self._coordinators(names)
        except ClusterUnavailable as error:
            return dict.fromkeys(names, error)
        for name, (code, address) in coordinators.items():
            if code:
                found[name] = self._problem(KafkaError(code))
            else:
                by_address.setdefault(address, []).append(name)
        answers = at_once.each(
            lambda address: bare_groups.fetch(address, self._admin.who, by_address[address], timeout_s=ROUND_S),
            sorted(by_address),
        )
        for address, answer in answers.items():
            if isinstance(answer, ClusterUnavailable):
                found |= dict.fromkeys(by_address[address], answer)
                continue
            for name, (code, group) in answer.items():
                found[name] = self._problem(KafkaError(code)) if code else _described_barely(name, group, address)
        return found

    def _coordinators(self, names: Sequence[str]) -> dict[str, tuple[int, Address]]:
        """Of the first broker that answers. Raises ClusterUnavailable."""
        for broker in coordination.live_brokers(zookeeper.tree(self._cluster)):
            try:
                return bare_groups.coordinators((broker.host, broker.port), self._admin.who, names, timeout_s=ROUND_S)
            except ClusterUnavailable as error:
                LOG.warning("broker %d does not name coordinators: %s", broker.id, error)
        raise ClusterUnavailable("no broker names the groups' coordinators")

    def committed(self, names: Sequence[str]) -> dict[str, dict[Place, int]]:
        """See GroupDoor."""
        return self._committed(self.described(names))

    def read(self, names: Sequence[str]) -> tuple[dict[str, DescribedGroup], dict[str, dict[Place, int]]]:
        """See GroupDoor."""
        described = self.described(names)
        return described, self._committed(described)

    def known(self, names: Sequence[str]) -> Known:
        """See GroupDoor."""
        described = {}
        for name, outcome in self._outcomes(names).items():
            if isinstance(outcome, DescribedGroup):
                described[name] = outcome
            elif not isinstance(outcome, ClusterUnavailable):
                raise outcome
        by_coordinator: dict[Address, list[str]] = {}
        for name, group in described.items():
            if group.coordinator is not None:
                by_coordinator.setdefault(group.coordinator, []).append(name)
        answers = at_once.each(
            lambda address: committed.fetch(address, self._admin.who, by_coordinator[address], timeout_s=ROUND_S),
            sorted(by_coordinator),
        )
        offsets: dict[str, dict[Place, int]] = {}
        for answer in answers.values():
            if isinstance(answer, ClusterUnavailable):
                client.forget(self._cluster, self._admin)  # it has named a coordinator that has gone
                continue
            offsets |= {name: dict(found) for name, (code, found) in answer.items() if not code}
        return Known({name: group for name, group in described.items() if name in offsets}, offsets)

    def _describe(self, names: Sequence[str]) -> dict[str, Future[Any]]:
        return self._client.describe_consumer_groups(list(names), request_timeout=ROUND_S) if names else {}

    def _committed(self, described: Mapping[str, DescribedGroup]) -> dict[str, dict[Place, int]]:
        """Each coordinator is asked once, for all of its groups."""
        found: dict[str, dict[Place, int]] = {}
        coordinators = {group.coordinator for group in described.values() if group.coordinator is not None}
        if any(group.coordinator is None for group in described.values()):
            client.forget(self._cluster, self._admin)
            raise ClusterUnavailable("a group has no coordinator now")
        for address in sorted(coordinators):
            names = [name for name, group in described.items() if group.coordinator == address]
            try:
                answers = committed.fetch(address, self._admin.who, names, timeout_s=ROUND_S)
            except ClusterUnavailable:
                client.forget(self._cluster, self._admin)  # it has named a coordinator that has gone
                raise
            for name, (code, offsets) in answers.items():
                if code:
                    raise self._problem(KafkaError(code))
                found[name] = dict(offsets)
        return found

    def marks(self, address: Address, names: Sequence[str], *, within_s: float) -> dict[str, GroupMark]:
        """See GroupDoor."""
        return group_marks.fetch_within(address, self._admin.who, names, timeout_s=ROUND_S, within_s=within_s)

    def coordinated(self) -> dict[Address, dict[str, str]]:
        """See GroupDoor."""
        brokers = coordination.live_brokers(zookeeper.tree(self._cluster))
        found: dict[Address, dict[str, str]] = {}
        for broker in brokers:
            address = (broker.host, broker.port)
            try:
                # An error says that some are not loaded yet: the others are there.
                _, found[address] = committed.listed(address, self._admin.who, timeout_s=ROUND_S)
            except ClusterUnavailable as error:
                LOG.warning("broker %d does not name its groups: %s", broker.id, error)
        if not found:
            raise ClusterUnavailable("no broker names its groups")
        return found

    def offsets(self, address: Address, names: Sequence[str], *, within_s: float) -> dict[str, Mapping[Place, int]]:
        """See GroupDoor."""
        return committed.fetch_within(address, self._admin.who, names, timeout_s=ROUND_S, within_s=within_s)

    def spans(self, places: Iterable[Place]) -> dict[Place, Span]:
        """See GroupDoor."""
        places = list(places)
        first = self._list_offsets(places, OffsetSpec.earliest())
        last = self._list_offsets(places, OffsetSpec.latest())
        starts, ends = self._offsets(first), self._offsets(last)
        return {place: Span(starts[place], ends[place]) for place in places if place in starts and place in ends}

    def offsets_at(self, places: Iterable[Place], timestamp_ms: int) -> dict[Place, int | None]:
        """See GroupDoor."""
        return self.offsets_at_each(dict.fromkeys(places, timestamp_ms))

    def offsets_at_each(self, times: Mapping[Place, int]) -> dict[Place, int | None]:
        """See GroupDoor."""
        asked = {place: OffsetSpec.for_timestamp(timestamp_ms) for place, timestamp_ms in times.items()}
        found = self._offsets(self._list_offsets_of(asked))
        return {place: offset if offset >= 0 else None for place, offset in found.items()}

    def newest(self, places: Iterable[Place]) -> dict[Place, int | None]:
        """See GroupDoor."""
        answers = self._answers(self._list_offsets(places, OffsetSpec.max_timestamp()))
        return {
            place: int(answer.timestamp) if answer.offset >= 0 and answer.timestamp >= 0 else None
            for place, answer in answers.items()
        }

    def _list_offsets(self, places: Iterable[Place], spec: OffsetSpec) -> dict[TopicPartition, Future[Any]]:
        return self._list_offsets_of(dict.fromkeys(places, spec))

    def _list_offsets_of(self, specs: Mapping[Place, OffsetSpec]) -> dict[TopicPartition, Future[Any]]:
        asked = {TopicPartition(*place): spec for place, spec in specs.items()}
        return self._client.list_offsets(asked, request_timeout=ROUND_S) if asked else {}

    def _offsets(self, futures: Mapping[TopicPartition, Future[Any]]) -> dict[Place, int]:
        return {place: int(answer.offset) for place, answer in self._answers(futures).items()}

    def _answers(self, futures: Mapping[TopicPartition, Future[Any]]) -> dict[Place, Any]:
        found = {}
        for partition, future in futures.items():
            try:
                found[partition.topic, partition.partition] = self._result(future)
            except (ClusterUnavailable, NotFound):  # one partition without a leader hides no other
                continue
        if len(found) < len(
            futures
        ):  # of a leader that has gone, this client may go on saying so when there is another
            client.forget(self._cluster, self._admin)
        if futures and not found:
            raise ClusterUnavailable("the leaders of the partitions do not answer")
        return found

    def oldest(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """See GroupDoor."""
        if not positions:
            return {}
        consumer = Consumer(self._admin.settings | _ONE_RECORD)
        try:
            consumer.assign([TopicPartition(*place, offset) for place, offset in positions.items()])
            return _first_of_each(consumer, len(positions))
        finally:
            consumer.close()

    def commit(self, name: str, offsets: Mapping[Place, int]) -> None:
        """See GroupDoor."""
        wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        asked = [ConsumerGroupTopicPartitions(name, wanted)]
        done = self._result(self._client.alter_consumer_group_offsets(asked, request_timeout=ROUND_S)[name])
        for partition in done.topic_partitions:
            if partition.error is not None:
                raise self._problem(partition.error)

    def delete(self, name: str) -> None:
        """See GroupDoor."""
        self._result(self._client.delete_consumer_groups([name], request_timeout=ROUND_S)[name])

    def remove(self, name: str, member_id: str) -> None:
        """See GroupDoor."""
        coordinator = self.described([name])[name].coordinator
        if coordinator is None:
            raise ClusterUnavailable("the group has no coordinator now")
        code = leaving.leave(coordinator, self._admin.who, name, member_id, timeout_s=ROUND_S)
        if code == KafkaError.UNKNOWN_MEMBER_ID:
            raise NotFound("the member has left the group", code="member_not_found")
        if code:
            raise self._problem(KafkaError(code))

    def classic_members(self, name: str) -> frozenset[str]:
        """See GroupDoor."""
        coordinator = self.described([name])[name].coordinator
        if coordinator is None:
            raise ClusterUnavailable("the group has no coordinator now")
        code, found = classic_members.fetch(coordinator, self._admin.who, name, timeout_s=ROUND_S)
        if code:
            raise self._problem(KafkaError(code))
        return found

    def forget(self, name: str, places: Sequence[Place]) -> None:
        """See GroupDoor."""
        coordinator = self.described([name])[name].coordinator
        if coordinator is None:
            raise ClusterUnavailable("the group has no coordinator now")
        of_group, found = forgetting.forget(coordinator, self._admin.who, name, places, timeout_s=ROUND_S)
        for code in (of_group, *found.values()):
            if code:
                raise self._problem(KafkaError(code))

    def _result(self, future: Future[Any]) -> Any:
        try:
            return future.result(timeout=ROUND_S + 1)
        except FutureTimeoutError as error:
            raise self._silent() from error
        except KafkaException as error:
            raise self._problem(error.args[0]) from error

    def _silent(self) -> ClusterUnavailable:
        client.forget(self._cluster, self._admin)
        return ClusterUnavailable(client.NO_ANSWER)

    def _problem(self, error: KafkaError | KafkaException) -> SluiceError:
        found = problem_of(error.args[0] if isinstance(error, KafkaException) else error)
        if isinstance(found, ClusterUnavailable):
            client.forget(self._cluster, self._admin)  # it may cling to a broker that is dead
        return found


_ONE_RECORD: dict[str, str | int | float | bool] = {
    **client.WITHOUT_GROUP,
    "group.id": "sluice-lag",
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "fetch.message.max.bytes": FIRST_BYTES,
    "queued.min.messages": 1,
}


def _first_of_each(consumer: Consumer, wanted: int) -> dict[Place, int]:
    found: dict[Place, int] = {}
    until = time.monotonic() + OLDEST_S
    while len(found) < wanted and time.monotonic() < until:
        for message in consumer.consume(wanted - len(found), 0.1):
            place = (message.topic(), message.partition())
            if place in found:
                continue
            error = message.error()
            if error is None:
                kind, timestamp_ms = message.timestamp()
                found[place] = UNDATED if kind == TIMESTAMP_NOT_AVAILABLE or timestamp_ms < 0 else timestamp_ms
                consumer.pause([TopicPartition(*place)])
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's local codes begin so
                found[place] = NOTHING_LEFT
    return found


def _described(name: str, found: Any) -> DescribedGroup:
    members = tuple(
        Member(
            member.member_id,
            member.client_id,
            member.host.removeprefix("/"),
            tuple(sorted({(at.topic, at.partition) for at in member.assignment.topic_partitions if at.partition >= 0})),
            member.group_instance_id or None,
        )
        for member in found.members
    )
    at = found.coordinator
    return DescribedGroup(
        name,
        STATES.get(found.state, UNKNOWN),
        found.partition_assignor or "",
        tuple(sorted(members, key=lambda member: (member.client_id, member.id))),
        (at.host, at.port) if at is not None else None,
        is_of_consumers=found.type is ConsumerGroupType.CONSUMER,
        is_offsets_alone=found.is_simple_consumer_group,
    )


def _state(word: str) -> str:
    known = OF_CONSUMER_PROTOCOL.get(word, word)
    return known if known in STATES.values() else UNKNOWN


def _described_barely(name: str, found: BareGroup, address: Address) -> DescribedGroup:
    members = [Member(each.id, each.client_id, each.host.removeprefix("/"), ()) for each in found.members]
    return DescribedGroup(
        name,
        _state(found.state),
        found.protocol,
        tuple(sorted(members, key=lambda member: (member.client_id, member.id))),
        address,
        is_offsets_alone=not found.kind,
    )


_HAS_MEMBERS = "the group has members: stop its consumers first"
_REFUSALS: Mapping[int, Callable[[], SluiceError]] = {
    KafkaError.NON_EMPTY_GROUP: lambda: Conflict(_HAS_MEMBERS, code="group_not_empty"),
    # Offsets are committed here as by nobody's member, which a coordinator refuses while there are any.
    KafkaError.UNKNOWN_MEMBER_ID: lambda: Conflict(_HAS_MEMBERS, code="group_not_empty"),
    KafkaError.REBALANCE_IN_PROGRESS: lambda: Conflict(_HAS_MEMBERS, code="group_not_empty"),
    KafkaError.GROUP_SUBSCRIBED_TO_TOPIC: lambda: Conflict(_HAS_MEMBERS, code="group_not_empty"),
    KafkaError.GROUP_ID_NOT_FOUND: lambda: NotFound("no such group", code="group_not_found"),
    KafkaError.UNKNOWN_TOPIC_OR_PART: lambda: NotFound("no such topic or partition", code="topic_not_found"),
    KafkaError.UNSUPPORTED_VERSION: lambda: Unsupported("this cluster's release does not support it"),
}
PASSING = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


def problem_of(error: KafkaError) -> SluiceError:
    """The answer for a Kafka error about a group; no text of a broker's is in it, which would name physical names."""
    if error.code() in _REFUSALS:
        return _REFUSALS[error.code()]()
    return client.not_now(error, (*PASSING, *client.PASSING))


def door(cluster: ClusterAddress) -> GroupDoor:
    """By this process's client of a cluster. Raises ClusterUnavailable where no broker is registered."""
    return KafkaGroups(cluster, cast("client.KafkaAdmin", client.admin(cluster)))
