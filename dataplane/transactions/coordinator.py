"""The transaction coordinator of a broker: requests about transactional ids become events of their state machines.

It serves the ids whose partition of ``__transaction_state`` the broker leads. Elections, loading, timers and the log are
the runtime's (`dataplane.coordination.runtime`).

How many ids an instance may have is judged here, by partition of the topic as for groups, over all brokers where its
specification says so (`limits`), and only of a new one. How many partitions its open transactions may have together is counted
here, over all partitions of the topic and with what is on its way to their logs; the state machine judges by it, after who
asks, and whether one more transaction may begin likewise. What is one too many is told POLICY_VIOLATION: clients raise it to
the program with the code's name, and do not ask again, as they would upon anything that passes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from dataplane.cluster.metadata import TRANSACTIONS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.coordination.runtime import Runtime
from dataplane.doors import ZooKeeperError
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future, Task, resolved
from dataplane.transactions.counts import Counts
from dataplane.transactions.ending import needs_producer_id_to_go_on
from dataplane.transactions.events import (
    AddPartitions,
    EndAndRaise,
    EndTransaction,
    Initialise,
    MarkersWritten,
    ProducerResult,
)
from dataplane.transactions.limits import Allow, Limits, unlimited
from dataplane.transactions.machine import TransactionMachine
from dataplane.transactions.markers import Call, Markers
from dataplane.transactions.model import Partition, Transaction, TransactionState
from dataplane.transactions.shard import Entry, Transactions
from dataplane.transactions.state import needs_producer_id, verified
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dataplane.cluster.metadata import Metadata
    from dataplane.coordination.log import StateLog
    from dataplane.doors import Background, Loop
    from dataplane.transactions.events import WriteMarkers
    from dataplane.transactions.settings import TransactionSettings
    from dataplane.transactions.shard import TransactionShard


class ProducerIds(Protocol):
    """`producer_ids.ProducerIds`."""

    async def next(self) -> int:
        """An id that was never given out. Raises ZooKeeperError."""
        ...


class TransactionCoordinator:
    """All transactional ids of this broker."""

    def __init__(
        self,
        loop: Loop,
        log: StateLog,
        settings: TransactionSettings,
        partition_count: Callable[[], int],
        background: Background,
        producer_ids: ProducerIds,
        metadata: Metadata,
        call: Call,
        allow: Allow = unlimited,
    ) -> None:
        self.settings = settings
        self._partition_count = partition_count
        self._producer_ids = producer_ids
        self.counts = Counts()
        self._limits = Limits(self.counts, allow, loop.clock)
        machine = TransactionMachine(settings, loop.clock.now_ms, self.counts, self._limits)
        self._runtime: Runtime[Transactions, Entry] = Runtime(loop, background, log, machine)
        self._markers = Markers(loop, self._runtime.slices, metadata, call)
        self._runtime.on_begin(self._write_markers)
        self._runtime.on_loaded(lambda _shard: self._limits.moved())
        self._runtime.on_resigned(lambda shard: shard.contents.leave())
        self._metadata, self._leaders = metadata, dict[int, int]()
        self._coming: dict[str, int] = {}  # partitions that are on their way to the log, by instance key
        self.refusals: Counter[str] = Counter()  # of ids and partitions that were too many, by instance key

    # --- life ---------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Give up every partition: who waits is told to look for another coordinator."""
        self._runtime.stop()

    def on_leadership(self, topic: str, index: int, leader_epoch: int | None) -> None:
        """This broker leads a partition in an epoch, or (None) does not lead it any more."""
        if topic != TRANSACTIONS_TOPIC:
            return
        if leader_epoch is not None and all(shard.index != index for shard in self._runtime.shards()):
            self._limits.moved()  # and once more when it is loaded, which may take long
        self._runtime.on_leadership(topic, index, leader_epoch)

    def on_metadata(self) -> None:
        """Where partitions of ids have moved between other brokers, they count with both until each has reported."""
        leaders = {index: each.leader for index, each in self._metadata.partitions(TRANSACTIONS_TOPIC).items()}
        if any(self._leaders.get(index, leader) != leader for index, leader in leaders.items()):
            self._limits.moved()
        self._leaders = leaders

    def has_failed(self, index: int) -> bool:
        """Whether this broker should serve the ids of a partition and cannot: then nobody need be sent here."""
        return self._runtime.has_failed(index)

    def _write_markers(self, shard: TransactionShard, entry: Entry, work: WriteMarkers) -> None:
        decided = work.transaction
        written = MarkersWritten(decided.producer_id, decided.producer_epoch)
        self._markers.write(shard, decided, lambda: self._runtime.dispatch(shard, entry, written))

    # --- finding ------------------------------------------------------------------------------------------------------

    def _shard_of(self, transactional_id: str) -> TransactionShard | ErrorCode:
        return self._runtime.shard(partition_of(transactional_id, self._partition_count()))

    def find(self, transactional_id: str) -> Transaction | ErrorCode:
        """A transactional id as it is now; TRANSACTIONAL_ID_NOT_FOUND, or why it cannot be served here."""
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        entry = shard.contents.entries.get(transactional_id)
        if entry is None or not _is_there(entry.transaction):
            return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        return entry.transaction

    def transactions(self, key: str | None = None) -> tuple[Iterator[Transaction], ErrorCode]:
        """Every transactional id here, or those of one instance, each as it is when it is asked for: there may be very many.

        None but COORDINATOR_LOAD_IN_PROGRESS where some are still missing.
        """
        if any(shard.loading for shard in self._runtime.shards()):
            return iter(()), ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        of_shards = (shard.contents for shard in self._runtime.serving())
        entries = list(
            chain.from_iterable(one.all_entries() if key is None else one.of_instance(key) for one in of_shards)
        )
        return (entry.transaction for entry in entries if _is_there(entry.transaction)), ErrorCode.NONE

    # --- requests -----------------------------------------------------------------------------------------------------

    def initialise(self, transactional_id: str, ask: Initialise, *, is_tenants: bool = True) -> Future[ProducerResult]:
        """InitProducerId. The service itself, which ends what a tenant wants ended, may ask for the time-out that an id has."""
        longest_ms = self.settings.max_timeout_ms
        if is_tenants:
            longest_ms = self._limits.longest_ms(transactional_id, longest_ms)
        if not 0 < ask.timeout_ms <= longest_ms:
            return resolved(ProducerResult(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return resolved(ProducerResult(shard))
        entry = shard.contents.entries.get(transactional_id)
        if self._is_one_too_many(shard, transactional_id):
            return resolved(ProducerResult(ErrorCode.POLICY_VIOLATION))
        if entry is None or needs_producer_id(entry.transaction):
            return Task(self._ask_with_id(transactional_id, ask, self._no_room), "initialise a producer")
        return self._ask(shard, transactional_id, ask, ProducerResult)

    async def _ask_with_id(
        self,
        transactional_id: str,
        ask: Initialise | EndAndRaise,
        problem: Callable[[TransactionShard, str], ErrorCode],
    ) -> ProducerResult:
        """Of the state machine, with a producer id to give. `problem`: what may have come in the way meanwhile."""
        try:
            producer_id = await self._producer_ids.next()
        except ZooKeeperError:
            return ProducerResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        shard = self._shard_of(transactional_id)  # which may have moved meanwhile
        error = shard if isinstance(shard, ErrorCode) else problem(shard, transactional_id)
        if isinstance(shard, ErrorCode) or error != ErrorCode.NONE:
            return ProducerResult(error)
        asked = replace(ask, new_producer_id=producer_id)
        return await self._ask(shard, transactional_id, asked, ProducerResult)  # type: ignore[no-any-return]

    def _no_room(self, shard: TransactionShard, transactional_id: str) -> ErrorCode:
        return ErrorCode.POLICY_VIOLATION if self._is_one_too_many(shard, transactional_id) else ErrorCode.NONE

    def _is_one_too_many(self, shard: TransactionShard, transactional_id: str) -> bool:
        """Whether it would be a new one, of an instance that has as many as it may."""
        contents = shard.contents
        if transactional_id in contents.entries:
            return False
        owner = split_physical(transactional_id)
        if owner is None:
            return False
        owned = contents.owned.get(owner[0])
        is_full = owned is not None and len(owned.entries) >= self.settings.ids_per_instance
        if not is_full and self._limits.may_add(owner[0]):
            return False
        self.refusals[owner[0]] += 1
        return True

    def add_partitions(self, transactional_id: str, ask: AddPartitions) -> Future[ErrorCode]:
        """AddPartitionsToTxn. Who would have too many partitions is told POLICY_VIOLATION, upon which clients abort."""
        owner = split_physical(transactional_id)
        if owner is None:
            return self._ask_of_known(transactional_id, ask)
        key, count = owner[0], len(ask.partitions)
        coming = self._coming.get(key, 0)
        room = self.settings.partitions_per_instance - coming - self.counts.of(key).partitions
        self._coming[key] = coming + count
        answer = self._ask_of_known(transactional_id, replace(ask, room=room))
        answer.then(partial(self._came, key, count))
        return answer

    def _came(self, key: str, count: int, answer: Future[ErrorCode]) -> None:
        """Partitions that were on their way are counted with their transaction from now on, or were refused."""
        left = self._coming.pop(key) - count
        if left:
            self._coming[key] = left
        if answer.result() == ErrorCode.POLICY_VIOLATION:
            self.refusals[key] += 1

    def end(self, transactional_id: str, ask: EndTransaction) -> Future[ErrorCode]:
        """EndTxn. Answered when the decision is stored; the markers follow."""
        return self._ask_of_known(transactional_id, ask)

    def end_and_raise(self, transactional_id: str, ask: EndAndRaise) -> Future[ProducerResult]:
        """EndTxn, likewise, of a producer that goes on with another epoch."""
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return resolved(ProducerResult(shard))
        entry = shard.contents.entries.get(transactional_id)
        if entry is None:
            return resolved(ProducerResult(ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        if needs_producer_id_to_go_on(entry.transaction):
            return Task(self._ask_with_id(transactional_id, ask, _is_missing), "end a transaction")
        return self._ask(shard, transactional_id, ask, ProducerResult)

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Sequence[Partition]
    ) -> dict[Partition, ErrorCode]:
        """Whether each partition is in the transaction that is open (KIP-890)."""
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return dict.fromkeys(partitions, shard)
        entry = shard.contents.entries.get(transactional_id)
        if entry is None:
            return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return verified(entry.transaction, producer_id, epoch, partitions)

    def _ask_of_known(self, transactional_id: str, ask: AddPartitions | EndTransaction) -> Future[ErrorCode]:
        shard = self._shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return resolved(shard)
        if transactional_id not in shard.contents.entries:
            return resolved(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return self._ask(shard, transactional_id, ask, lambda error: error)

    def _ask(self, shard: TransactionShard, name: str, ask: Any, refuse: Callable[[ErrorCode], Any]) -> Future[Any]:
        return self._runtime.ask(shard, name, lambda token: replace(ask, token=token), refuse)


def _is_there(transaction: Transaction) -> bool:
    """Whether it has been initialised, and is not about to be removed."""
    return transaction.producer_id >= 0 and transaction.pending is not TransactionState.DEAD


def _is_missing(shard: TransactionShard, transactional_id: str) -> ErrorCode:
    known = transactional_id in shard.contents.entries
    return ErrorCode.NONE if known else ErrorCode.INVALID_PRODUCER_ID_MAPPING
