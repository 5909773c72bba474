"""One partition of a consumer's fetch: who may read it here, up to where, and what is said instead.

In this order, as in Kafka: does the topic exist for this client, may its address read it, do both believe in the same
leader epoch, should it read from another replica (KIP-392), do its log and ours part (KIP-320), is its offset inside of
our log. From version 11 on a client may read from a follower; it gets what the follower knows to be committed, and an
offset between that and the follower's end is just empty: the follower is on its way there.

Who reads committed transactions only gets what lies below the last stable offset, and with it which transactions were
aborted that have records in it: to leave those out is the client's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from dataplane.doors import NotInMemoryError
from dataplane.handlers.records.conversion import fetch_refusal
from dataplane.handlers.records.leader_hints import NOBODY, current_leader
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from dataplane.replication.serving.cold_lookups import ColdLookups
from dataplane.replication.serving.fetch_sessions import (
    NO_LEADER,
    Reading,
    refused,
)
from dataplane.replication.serving.replica_selection import THE_LEADER, preferred_replica
from dataplane.replication.truncation import divergence
from dataplane.storage.errors import OffsetOutOfRangeError
from dataplane.storage.log import aborting, reading
from dataplane.tenancy.access import Operation
from dataplane.throttle.fetching import TopicBudget

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.replication.replica.partition import Partition

_FROM_FOLLOWERS_SINCE = 11
_LEADER_HINTS_SINCE = 16
_STORAGE_ERROR_SINCE = 6
_HINTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_READ_UNCOMMITTED = 0
MOST_ABORTED = 1_000
"""Transactions that end within the records of one partition's answer: to list them takes two milliseconds."""


class ConsumerReader:
    """Reads for one request. `hinted` collects the leaders that its answer names; `budget` is of topics with rules.

    When `cold` misses something, the answer is not to be given yet: it lacks a partition's records.
    """

    __slots__ = (
        "_ctx",
        "_leader_only",
        "_none_aborted",
        "_rack",
        "_registry",
        "_stable_only",
        "_version",
        "budget",
        "cold",
        "hinted",
    )

    def __init__(self, ctx: RequestContext, request: FetchRequest) -> None:
        self._ctx = ctx
        self._registry = ctx.broker.replicas.registry
        self._version = ctx.version
        self._leader_only = ctx.version < _FROM_FOLLOWERS_SINCE
        self._rack = request.rack_id if ctx.broker.config.settings.replica_selector_class else ""
        self._stable_only = request.isolation_level != _READ_UNCOMMITTED
        self._none_aborted: tuple[AbortedTransaction, ...] | None = () if self._stable_only else None
        self.hinted: dict[int, None] = {}
        self.budget: TopicBudget | None = None
        instance = ctx.session.instance
        self.cold = ColdLookups(ctx.broker.doors.files, "" if instance is None else instance.spec.id)

    def read(self, topic: str | UUID, wanted: FetchPartition, left: int, at_least_one: bool) -> Reading:
        """A `fetch_sessions.Read`."""
        name = self._name(topic) if isinstance(topic, UUID) else topic
        if name is None:
            return _refused(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
        refusal = self._ctx.topic_refusal(Operation.READ, name)
        if refusal:
            return _refused(wanted, refusal)
        partition = self._registry.readable(
            name, wanted.partition, wanted.current_leader_epoch, leader_only=self._leader_only
        )
        if isinstance(partition, ErrorCode):
            return self._failed(name, wanted, partition)
        if isinstance(topic, UUID) and topic != partition.topic_id:
            return self._failed(name, wanted, ErrorCode.INCONSISTENT_TOPIC_ID)
        if self._rack and partition.state.is_leader:
            replica = self._preferred(partition, wanted)
            if replica != THE_LEADER:
                return Reading(self._data(partition, wanted, preferred_read_replica=replica), 0, None)
        return self._records(name, partition, wanted, left, at_least_one=at_least_one)

    def is_refused(self, topic: str | UUID) -> bool:
        """Whether the session may not read a topic that it named so."""
        name = self._name(topic) if isinstance(topic, UUID) else topic
        return name is not None and bool(self._ctx.topic_refusal(Operation.READ, name))

    def _name(self, topic_id: UUID) -> str | None:
        """Of a topic that this client can see: the id of another's is as unknown as one that was never given."""
        name = self._registry.topic_of_id(topic_id) or self._ctx.broker.metadata.topic_of_id(topic_id)
        return name if name is not None and self._ctx.owns(name) else None

    def _preferred(self, partition: Partition, wanted: FetchPartition) -> int:
        brokers = self._ctx.broker.metadata.brokers

        def rack_of(broker_id: int) -> str | None:
            broker = brokers.get(broker_id)
            reachable = broker is not None and self._ctx.broker_address(broker_id) is not None
            return broker.rack if broker is not None and reachable else None

        own_rack = self._ctx.broker.config.rack
        return preferred_replica(partition.state, wanted.fetch_offset, self._rack, own_rack, rack_of)

    def _records(
        self, name: str, partition: Partition, wanted: FetchPartition, left: int, *, at_least_one: bool
    ) -> Reading:
        refusal = fetch_refusal(partition, self._version)
        if refusal:
            return self._failed(name, wanted, refusal)
        log = partition.log
        offset, last_epoch = wanted.fetch_offset, wanted.last_fetched_epoch
        try:
            if last_epoch >= 0 and offset >= log.start_offset:
                parted = divergence(log, last_epoch, offset)
                if parted is not None:
                    return self._parted(name, partition, wanted, *parted)
            stable = partition.stable_end()  # also where it is only told
            if self._ctx.reads_nothing:
                return Reading(self._data(partition, wanted), 0, None)
            max_bytes = min(wanted.partition_max_bytes, left)
            if self.budget is not None and (allowed := self.budget.left(name)) is not None:
                if not allowed:  # what arrives meanwhile is no reason to look again
                    return Reading(self._data(partition, wanted), 0, None)
                max_bytes = min(max_bytes, allowed)
            end = stable if self._stable_only else partition.state.high_watermark
            records = partition.read(offset, max_bytes, end, at_least_one=at_least_one, wait=self.cold.wait)
            aborted = self._none_aborted
            if self._stable_only and records is not None and offset <= log.last_aborted:
                behind = reading.end_of(log, offset, records, end, wait=self.cold.wait)
                found = aborting.aborted_between(log, offset, behind, MOST_ABORTED + 1)
                if len(found) > MOST_ABORTED:  # so many are not listed in one turn: fewer records, then
                    behind = min(behind, found[MOST_ABORTED].last_offset)
                    records = partition.read(offset, max_bytes, behind, at_least_one=at_least_one, wait=self.cold.wait)
                    found = aborting.aborted_between(log, offset, behind)
                aborted = tuple(AbortedTransaction(one.producer_id, one.first_offset) for one in found)
        except NotInMemoryError as missing:
            self.cold.missing = missing
            return Reading(self._data(partition, wanted), 0, None)
        except OffsetOutOfRangeError:
            return self._failed(name, wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        except OSError:
            return self._failed(name, wanted, ErrorCode.KAFKA_STORAGE_ERROR)
        place = partition.queues.readers(stable_only=self._stable_only)
        if records is None:
            at_end = offset >= end
            return Reading(self._data(partition, wanted), 0, place, at_end)
        if partition.usage is not None and (not self._ctx.session.is_internal or self._ctx.is_on_behalf):
            records.sent = partition.usage.consumed
        if self.budget is not None:
            self.budget.took(name, records.size)
        data = self._data(partition, wanted, records, aborted=aborted)
        return Reading(data, records.size, place)

    def _data(
        self,
        partition: Partition,
        wanted: FetchPartition,
        records: object = b"",
        *,
        preferred_read_replica: int = -1,
        aborted: tuple[AbortedTransaction, ...] | None = (),
    ) -> FetchResponsePartitionData:
        return FetchResponsePartitionData(
            partition_index=wanted.partition,
            high_watermark=partition.state.high_watermark,
            last_stable_offset=partition.state.last_stable_offset,
            log_start_offset=partition.log.start_offset,
            aborted_transactions=aborted or self._none_aborted,
            preferred_read_replica=preferred_read_replica,
            records=records,  # type: ignore[arg-type]
        )

    def _parted(self, name: str, partition: Partition, wanted: FetchPartition, epoch: int, end_offset: int) -> Reading:
        if epoch < 0:
            return self._failed(name, wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        data = FetchResponsePartitionData(
            partition_index=wanted.partition,
            high_watermark=partition.state.high_watermark,
            last_stable_offset=partition.state.last_stable_offset,
            log_start_offset=partition.log.start_offset,
            diverging_epoch=FetchResponseEpochEndOffset(epoch=epoch, end_offset=end_offset),
            aborted_transactions=self._none_aborted,
            records=b"",
        )
        return Reading(data, 0, None)

    def _failed(self, name: str, wanted: FetchPartition, code: ErrorCode) -> Reading:
        leader = NO_LEADER
        if self._version >= _LEADER_HINTS_SINCE and code in _HINTED:
            leader_id, epoch = current_leader(self._ctx.broker, name, wanted.partition)
            if (leader_id, epoch) != NOBODY:
                leader = FetchResponseLeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
                self.hinted[leader_id] = None
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self._version < _STORAGE_ERROR_SINCE:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # old clients do not know the other
        return _refused(wanted, code, leader)


_BEFORE_READING = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
"""Kafka answers them with no aborted transactions, and the others with null."""


def _refused(wanted: FetchPartition, code: ErrorCode, leader: FetchResponseLeaderIdAndEpoch = NO_LEADER) -> Reading:
    return refused(wanted, code, leader, aborted_transactions=() if code in _BEFORE_READING else None)
