"""A producer with a transactional id: batches to many partitions, all of them there or none (KIP-98, KIP-360).

    producer.initialise(take_over=True)        whoever was before is fenced, what it left open is aborted
    producer.enlist(places)                    partitions become part of the transaction, which begins with the first
    producer.append(place, messages)           as often as one likes
    producer.commit()

**Order and repetition.** Each partition has one batch under way at most, with a sequence. One whose answer was lost is sent
again, byte for byte: a broker that has it already says where it is.

**What breaks it.** A batch that may be there or not after all tries, an end whose outcome is not known, and whatever a broker
says that is about the transaction as a whole. Then `is_broken`, and nothing can be done but `initialise`, which ends the
transaction: as its coordinator had decided, or else by aborting it. What a broker refuses for good before anything was in
doubt (a message that is too large, a right that is missing) breaks nothing: the sequence was not used.

Used by one thread.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dataplane.clients.cluster import Cluster
from dataplane.clients.connection import Connection
from dataplane.clients.errors import BrokerError, ClientError, UnsupportedError, raise_for
from dataplane.clients.fetching import Place
from dataplane.clients.messages import Message
from dataplane.clients.moving import MovedRecord, build_moved
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest, FindCoordinatorResponse
from dataplane.protocol.messages.produce import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from dataplane.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from dataplane.records import compression
from dataplane.records.batch import Record, build_batch

TIMEOUT_MS = 60_000
"""After it a transaction that nobody ends is aborted by its coordinator; so long readers at read_committed wait for it."""
MOST_PARTITIONS = 1_000
"""Of one transaction. Each more has its coordinator write all of them again, and some allow no more than 2,000."""
_NEEDED = (ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN)
_OF_TRANSACTIONS = 1  # a kind of coordinator
_PRODUCE_TIMEOUT_MS = 15_000
_PAUSE_S, _SHORT_PAUSE_S = 0.2, 0.02
_NOBODY = -1
_ABOUT_ALL_OF_IT = frozenset(
    (
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    )
)
"""What is said for each partition of an AddPartitionsToTxn and is about none of them."""
_REFUSALS = frozenset(
    (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.INVALID_RECORD,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.POLICY_VIOLATION,
    )
)
"""By which a broker says that it has not appended a batch, and will not."""


def has_transactions(cluster: Cluster) -> bool:
    """Whether brokers have what this file needs: Apache Kafka since 2.5, and ours. Raises NoBrokerError."""

    def knows(connection: Connection) -> bool:
        try:
            for key in _NEEDED:
                connection.version(key)
        except UnsupportedError:
            return False
        return True

    found: bool = cluster.on_any(knows)
    return found


class TransactionalProducer:
    """See the file's text. `patience_s`: for how long what may pass is tried again."""

    is_exact = True

    def __init__(self, cluster: Cluster, transactional_id: str, *, patience_s: float = 20.0) -> None:
        self._cluster, self.transactional_id, self._patience_s = cluster, transactional_id, patience_s
        self._coordinator: int | None = None
        self._producer_id = self._epoch = _NOBODY
        self._sequences: dict[Place, int] = {}
        self._enlisted: set[Place] = set()
        self._began_at = 0.0
        self.is_broken = True

    @property
    def room(self) -> int:
        """How many partitions more the transaction takes, of those that are data."""
        return max(0, MOST_PARTITIONS - len(self._enlisted))

    @property
    def is_late(self) -> bool:
        """Whether the transaction has taken a quarter of its time: it is to be committed with what it has."""
        return bool(self._enlisted) and time.monotonic() >= self._began_at + TIMEOUT_MS / 4000

    def has(self, place: Place) -> bool:
        """Whether a partition is part of the transaction already."""
        return place in self._enlisted

    def initialise(self, *, take_over: bool) -> None:
        """A new epoch; what was open is ended. Without `take_over` only if nobody else has begun since: raises FencedError.

        It raises that as well where a transaction of ours was open: Apache Kafka aborts it with a higher epoch, and does not
        tell which.
        """
        self.is_broken = True
        known = (_NOBODY, _NOBODY) if take_over else (self._producer_id, self._epoch)
        request = InitProducerIdRequest(self.transactional_id, TIMEOUT_MS, *known)

        def ask() -> InitProducerIdResponse:
            answer: InitProducerIdResponse = self._ask(request)
            raise_for(answer.error_code, f"begin as {self.transactional_id}")
            return answer

        found: InitProducerIdResponse = self._persist(ask)
        self._producer_id, self._epoch = found.producer_id, found.producer_epoch
        self._sequences.clear()
        self._enlisted.clear()
        self.is_broken = False

    # --- a transaction ------------------------------------------------------------------------------------------------

    def enlist(self, places: Iterable[Place]) -> dict[Place, int]:
        """They are part of the transaction, but for those that cannot be: these with an error code each.

        Raises ClientError: broken.
        """
        self._check()
        wanted = [place for place in dict.fromkeys(places) if place not in self._enlisted]
        refused: dict[Place, int] = {}
        while wanted:
            try:
                codes: dict[Place, int] = self._persist(partial(self._added, tuple(wanted)))
            except ClientError:
                self.is_broken = True
                raise
            bad = {
                place: code
                for place, code in codes.items()
                if code not in (ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED)
            }
            if not bad:
                self._began_at = self._began_at if self._enlisted else time.monotonic()
                self._enlisted.update(wanted)
                break
            refused.update(bad)  # one that cannot be added keeps out the others: these again, alone
            wanted = [place for place in wanted if place not in bad]
        return refused

    def append(self, place: Place, messages: Sequence[Message], codec: int = compression.NONE) -> int:
        """The offset of the first. Raises ClientError; the transaction is as it was unless `is_broken`."""
        records = [Record(one.key, one.value, one.headers, one.timestamp) for one in messages]
        return self._put(place, len(records), partial(build_batch, records), codec)

    def move(self, place: Place, records: Sequence[MovedRecord], codec: int = compression.NONE) -> int:
        """As `append`."""
        return self._put(place, len(records), partial(build_moved, records), codec)

    def _put(self, place: Place, count: int, build: Callable[..., bytearray], codec: int) -> int:
        for code in self.enlist([place]).values():
            raise_for(code, f"add {place[0]}-{place[1]} to the transaction")
        batch = bytes(
            build(
                now_ms=time.time_ns() // 1_000_000,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                base_sequence=self._sequences.get(place, 0),
                transactional=True,
                codec=codec,
            )
        )
        in_doubt = False

        def attempt() -> int:
            nonlocal in_doubt
            leader = self._cluster.leader(*place)
            before, in_doubt = in_doubt, True
            try:
                return self._sent(leader, place, batch)
            except BrokerError as error:
                in_doubt = before or error.code not in _REFUSALS
                raise

        try:  # of the time that the transaction may take, half is for what is done after this
            base: int = self._persist(attempt, (place[0],), until=self._began_at + TIMEOUT_MS / 2000)
        except ClientError:
            self.is_broken = in_doubt
            raise
        self._sequences[place] = (self._sequences.get(place, 0) + count) & 0x7FFFFFFF
        return base

    def commit(self) -> None:
        """All that was appended since the last one is there for everybody, or for nobody: raises ClientError then, broken."""
        self._check()
        if not self._enlisted:
            return

        def end() -> None:
            answer = self._ask(self._end(committed=True))
            raise_for(answer.error_code, f"commit of {self.transactional_id}")

        try:
            self._persist(end)
        except ClientError:
            self.is_broken = True
            raise
        self._enlisted.clear()

    def give_up(self) -> None:
        """Nothing of the transaction is to be there. `initialise` aborts it, and keeps out what is still on its way."""
        self.is_broken = True

    def abort(self) -> None:
        """One try, at the end of a life: if it is in vain the coordinator does it when the time is over. Raises nothing."""
        self.is_broken = True
        if self._enlisted and self._producer_id != _NOBODY:
            with suppress(ClientError):
                self._ask(self._end(committed=False))
        self._enlisted.clear()

    # --- requests -----------------------------------------------------------------------------------------------------

    def _end(self, *, committed: bool) -> EndTxnRequest:
        return EndTxnRequest(self.transactional_id, self._producer_id, self._epoch, committed)

    def _added(self, places: Sequence[Place]) -> dict[Place, int]:
        by_topic: dict[str, list[int]] = defaultdict(list)
        for topic, partition in places:
            by_topic[topic].append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=tuple(AddPartitionsToTxnTopic(name, tuple(rows)) for name, rows in by_topic.items()),
        )
        answer: AddPartitionsToTxnResponse = self._ask(request)
        codes = {
            (topic.name, one.partition_index): one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }
        for code in codes.values():
            if code in _ABOUT_ALL_OF_IT:
                raise_for(code, f"add partitions to the transaction of {self.transactional_id}")
        return codes

    def _sent(self, leader: int, place: Place, batch: bytes) -> int:
        topic, partition = place
        data = (TopicProduceData(topic, (PartitionProduceData(partition, batch),)),)
        request = ProduceRequest(self.transactional_id, -1, _PRODUCE_TIMEOUT_MS, data)
        answer: ProduceResponse = self._cluster.call(leader, request, timeout_ms=_PRODUCE_TIMEOUT_MS)
        found = answer.responses[0].partition_responses[0]
        raise_for(found.error_code, f"append to {topic}-{partition}")
        if found.base_offset < 0:  # it is there from before, and nobody knows where
            raise BrokerError(ErrorCode.DUPLICATE_SEQUENCE_NUMBER, f"append to {topic}-{partition}")
        return found.base_offset

    def _ask(self, request: Any) -> Any:
        """The coordinator's answer."""
        if self._coordinator is None:
            self._coordinator = self._found()
        try:
            return self._cluster.call(self._coordinator, request)
        except ClientError:
            self._coordinator = None
            raise

    def _found(self) -> int:
        request = FindCoordinatorRequest(key=self.transactional_id, key_type=_OF_TRANSACTIONS)
        answer: FindCoordinatorResponse = self._cluster.on_any(lambda connection: connection.call(request))
        raise_for(answer.error_code, f"coordinator of {self.transactional_id}")
        if answer.node_id not in self._cluster.brokers():
            self._cluster.refresh(())
        return answer.node_id

    def _persist(self, attempt: Callable[[], Any], topics: Iterable[str] = (), *, until: float = math.inf) -> Any:
        """What it gives, once it raises nothing that may pass, within `patience_s`, and by the clock's `until`."""
        give_up_at = min(time.monotonic() + self._patience_s, until)
        while True:
            try:
                return attempt()
            except ClientError as error:
                if not error.retriable or time.monotonic() >= give_up_at:
                    raise
                is_ending = isinstance(error, BrokerError) and error.code == ErrorCode.CONCURRENT_TRANSACTIONS
            if is_ending:  # markers of the transaction before are on their way: milliseconds
                time.sleep(_SHORT_PAUSE_S)
                continue
            time.sleep(_PAUSE_S)
            self._coordinator = None
            with suppress(ClientError):
                self._cluster.refresh(topics)

    def _check(self) -> None:
        if self.is_broken:
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"{self.transactional_id} has to begin anew")
