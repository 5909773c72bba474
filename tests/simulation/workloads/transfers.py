"""Records are moved from one topic to another, each exactly once: by copiers that read, write and commit in one transaction.

Two of them have the same transactional id and take it from each other, as an application does of which an old process lives on;
the one has an epoch for each transaction and adds no partitions (KIP-890), the other is older.
Some transactions are aborted, some of these while their records are still on their way, and some are left open when their
copier has had enough. Whoever reads what is committed sees of
each partition the records of the other topic: in order, none twice, none of an aborted transaction; and in the end all.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from tests.simulation.invariants import MIN_INSYNC_REPLICAS, Invariants, ViolationError
from tests.simulation.transactional import CommittedReader, EndedError, TransactionalProducer
from tests.simulation.workloads.base import Shared, Workload

TRANSACTIONAL_ID, GROUP = "copier", "copiers"
TIMEOUT_MS = 4_000
AT_ONCE = 12
ABORTED, LEFT_OPEN, HASTY = 0.2, 0.1, 0.1
"""Of the transactions of a copier. Of a hasty one nobody knows whether its records come before it is aborted, or after."""
LATE_S = 0.03


class Transfers(Workload):
    """`acknowledged` and `invariants` are those of the topic that is read from."""

    TOPIC, COPY = "transfers", "transfers-copy"
    PARTITIONS = 2
    IS_PROMPT = False

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._aborted: set[bytes] = set()  # names of attempts: a record says of which it is
        self._attempts = 0
        self._seen: dict[int, list[bytes]] = {partition: [] for partition in range(self.PARTITIONS)}
        self._readers = [CommittedReader(self.cluster, self.COPY, partition) for partition in range(self.PARTITIONS)]
        self.committed = 0

    def prepare(self) -> None:
        super().prepare()
        self.cluster.create_topic(self.COPY, self.PARTITIONS, min_insync_replicas=str(MIN_INSYNC_REPLICAS))
        self.copies = Invariants(self.cluster, self.COPY, self.PARTITIONS)

    def clients(self) -> list[Coroutine[Any, Any, None]]:
        return [self.write("a", in_flight=1), self._copy(stays=True), self._copy(stays=False), self._look()]

    # --- copying ------------------------------------------------------------------------------------------------------

    async def _copy(self, *, stays: bool) -> None:
        """One of the two. Who stays goes on, when all is over, until everything is moved."""
        producer = TransactionalProducer(self.cluster, TRANSACTIONAL_ID, TIMEOUT_MS, raises=stays)
        sources = [CommittedReader(self.cluster, self.TOPIC, partition) for partition in range(self.PARTITIONS)]
        while stays or not self.shared.is_over:
            is_last = self.shared.is_over
            try:
                await producer.begin_anew()
                while await self._transaction(producer, sources) or not (is_last or self.shared.is_over):
                    await self.pace.rest(0.05, 0.5)
            except EndedError as error:
                self.cluster.note(f"copier ended: {error}")
                await self.cluster.client.sleep(self.shared.random.uniform(0.2, 1.5))
            else:
                if is_last:
                    return

    async def _transaction(self, producer: TransactionalProducer, sources: list[CommittedReader]) -> bool:
        """Whether there was anything to be moved. Raises EndedError."""
        random = self.shared.random
        position = await producer.position(GROUP, self.TOPIC, range(self.PARTITIONS))
        moved: dict[int, list[bytes]] = {}
        for partition, source in enumerate(sources):
            source.offset = position[partition]
            found = (await source.read())[:AT_ONCE]
            if found:
                moved[partition] = [value for _, value in found]
                position[partition] = found[-1][0] + 1
        if not moved:
            return False
        self._attempts += 1
        attempt = b"%d" % self._attempts
        is_hasty = random.random() < HASTY
        if is_hasty:
            self._aborted.add(attempt)
        for partition, values in moved.items():
            late_s = random.uniform(0, LATE_S) if is_hasty else None
            await producer.write(self.COPY, partition, [attempt + b":" + value for value in values], late_s=late_s)
        if is_hasty:
            await producer.end(committed=False)
            if not producer.raises:
                await producer.raise_epoch()
            return True
        await producer.send_offsets(GROUP, self.TOPIC, {partition: position[partition] for partition in moved})
        chance = random.random()
        if chance < LEFT_OPEN and not self.shared.is_over:
            raise EndedError("it goes without a word")
        if chance < LEFT_OPEN + ABORTED:
            self._aborted.add(attempt)
            await producer.end(committed=False)
        else:
            await producer.end(committed=True)
            self.committed += 1
        return True

    # --- reading ------------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        while not self.shared.is_over:
            for partition in range(self.PARTITIONS):
                await self._read(partition)
            await self.pace.rest(0.25, 1.0)

    async def _read(self, partition: int) -> None:
        seen = self._seen[partition]
        for offset, tagged in await self._readers[partition].read():
            attempt, _, value = tagged.partition(b":")
            place = f"{self.COPY}-{partition} offset {offset}"
            if attempt in self._aborted:
                raise ViolationError(f"{place}: {value!r} is of a transaction that was aborted")
            if value in seen:
                raise ViolationError(f"{place}: {value!r} is there twice")
            seen.append(value)

    def check(self) -> None:
        super().check()
        self.copies.compare_logs(all_of_them=True)
        for partition in range(self.PARTITIONS):
            self.cluster.run(self._read(partition))
            client = self.cluster.client
            wanted = [value for _, value in self.cluster.run(client.read_all(self.TOPIC, partition, self.cluster.ids))]
            if self._seen[partition] != wanted:
                missing = [value for value in wanted if value not in self._seen[partition]]
                raise ViolationError(
                    f"{self.COPY}-{partition}: {len(self._seen[partition])} of {len(wanted)} records are committed, "
                    f"{len(missing)} are missing, or their order is another"
                )
        self._check_stable()

    def _check_stable(self) -> None:
        """No transaction is open any more, as every replica knows."""
        for broker, running in self.cluster.brokers.items():
            for partition in range(self.PARTITIONS):
                found = running.replicas.registry.get(f"simulate.{self.COPY}", partition)
                if found is not None and found.state.is_leader:
                    stable, end = found.state.last_stable_offset, found.log.end_offset
                    if stable != end:
                        raise ViolationError(
                            f"{self.COPY}-{partition}: broker {broker} has {stable} as last stable offset of {end}"
                        )
