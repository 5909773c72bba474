"""One topic's counters on this broker. The hot path: an addition and a word stored, once per commit or fetch answer.

The first change after a record was made of the counters tells the meter, which puts the topic on its list; topics that
nothing happens to cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.cluster.paths import topic_id_text
from dataplane.metering.counters import AS_OF, BYTE_SECONDS, BYTES, CONSUMED, MAX_WORD, NO_ID, NOWHERE, PRODUCED
from dataplane.metering.hours import hour_text
from dataplane.protocol.schema import NO_UUID
from quota.contracts.namespace import instance_id_of_key, split_physical
from quota.contracts.usage import UsageRecord

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.metering.counters import Counters

NEARLY_FULL = 2**62
"""Byte-seconds: 5 days of 10 TB. A topic is told often enough not to double them before its next record."""


def owner_of(physical: str) -> tuple[str, str]:
    """Instance id and tenant's name of a topic that belongs to an instance."""
    parsed = split_physical(physical)
    assert parsed is not None
    return instance_id_of_key(parsed[0]), parsed[1]


def boot_text(boot: str, generation: int) -> str:
    """The boot as records name it.

    Counters are cumulative for each (boot, instance, topic). Once a slot was given back nobody remembers how far its
    topic had counted, and a topic of the same name may come again: so topics that come later count under another boot. So
    does one whose byte-seconds would soon be more than 63 bits.
    """
    return f"{boot}.{generation}" if generation else boot


def id_text(topic_id: UUID) -> str:
    """As records write it."""
    return "" if topic_id == NO_UUID else topic_id_text(topic_id)


class Owner(Protocol):
    """The meter, as its topics see it."""

    hour: int
    cluster: str  # the name of the physical cluster

    def now_ms(self) -> int:
        """Monotonic."""
        ...

    def changed(self, usage: TopicUsage) -> None:
        """The first change of a byte counter since the last record."""
        ...

    def close_hours(self, usage: TopicUsage) -> None:
        """Make the records of hours that have ended."""
        ...


class TopicUsage:
    """Counters since `boot`. `boot` is the broker's, with a generation behind it once a slot was given back."""

    __slots__ = (
        "_byte_ms",
        "_bytes",
        "_counters",
        "_emitted_byte_seconds",
        "_owner",
        "as_of_ms",
        "at",
        "boot",
        "broker",
        "consumed_bytes",
        "emitted_consumed",
        "emitted_produced",
        "emitted_records",
        "generation",
        "has_left",
        "hour",
        "in_round",
        "instance",
        "is_among_moved",
        "is_dirty",
        "is_retired",
        "physical",
        "produced_bytes",
        "produced_records",
        "topic",
        "topic_id",
        "windows_consumed",
        "windows_produced",
        "windows_records",
    )

    def __init__(
        self,
        owner: Owner,
        counters: Counters,
        physical: str,
        *,
        broker: int,
        boot: str,
        generation: int,
        topic_id: UUID = NO_UUID,
    ) -> None:
        self._owner, self._counters = owner, counters
        self.physical = physical
        self.topic_id = topic_id
        self.instance, self.topic = owner_of(physical)
        self.broker = broker
        self.generation = generation
        self.boot = boot_text(boot, generation)
        self.produced_bytes = self.consumed_bytes = 0
        self.emitted_produced = self.emitted_consumed = self._emitted_byte_seconds = 0
        self.windows_produced = self.windows_consumed = 0  # up to which windows have them (`moved`)
        # Records are for windows alone: no bill has them, so they are in no slot, and go with the broker.
        self.produced_records = self.emitted_records = self.windows_records = 0
        self.is_among_moved = False
        self._bytes = self._byte_ms = 0
        self.as_of_ms = owner.now_ms()
        self.hour = owner.hour  # the hour that the next record belongs to
        self.is_dirty = False  # a byte counter has changed since the last record; it is on the meter's list
        self.is_retired = False  # no replica is here any more
        self.in_round = False  # on the meter's walk around all topics
        self.at = NOWHERE  # the first word of its slot
        self.settle_in()

    def settle_in(self) -> None:
        """Take a slot of the file."""
        self.has_left = False
        self.at = self._counters.claim(
            self.physical, self.generation, NO_ID if self.topic_id == NO_UUID else self.topic_id.bytes
        )
        self._write_bytes()
        self._write_storage()

    def begin_again(self, boot: str, generation: int, topic_id: UUID | None = None) -> int:
        """Count from zero under another boot's name, and perhaps for another topic of this name.

        Returns the slot that holds what was counted before.

        That slot is to be given back once the last record made of it is acknowledged. A kill in between loses a moment
        of storage.
        """
        left = self.at
        self._counters.words[left + BYTES] = 0  # from here on storage counts in the new slot
        self.generation, self.boot = generation, boot_text(boot, generation)
        self.topic_id = self.topic_id if topic_id is None else topic_id
        self.windows_produced -= self.produced_bytes  # so what no window has had yet comes with what follows
        self.windows_consumed -= self.consumed_bytes
        self.produced_bytes = self.consumed_bytes = 0
        self.emitted_produced = self.emitted_consumed = self._emitted_byte_seconds = 0
        self.emitted_records = self.produced_records
        self._byte_ms %= 1000  # less than a second has been told of none
        self.settle_in()
        return left

    def move_out(self) -> None:
        """Give it back: everything has been told. A late change brings the topic to life again."""
        self._counters.release(self.at)
        self.at = NOWHERE
        self.has_left = True

    # --- counting -----------------------------------------------------------------------------------------------------

    def produced(self, size: int, records: int = 0) -> None:
        """So many bytes of batches were committed, with so many records."""
        owner = self._owner
        if self.hour != owner.hour:
            owner.close_hours(self)  # with what was counted before
        value = self.produced_bytes = self.produced_bytes + size
        self._counters.words[self.at + PRODUCED] = value
        self.produced_records += records
        if not self.is_dirty:
            owner.changed(self)

    def consumed(self, size: int) -> None:
        """So many bytes of batches left for a tenant's client."""
        owner = self._owner
        if self.hour != owner.hour:
            owner.close_hours(self)  # with what was counted before
        value = self.consumed_bytes = self.consumed_bytes + size
        self._counters.words[self.at + CONSUMED] = value
        if not self.is_dirty:
            owner.changed(self)

    def stored(self, change: int) -> None:
        """The replicas here are so many bytes larger, or smaller."""
        owner = self._owner
        if self.hour != owner.hour:
            owner.close_hours(self)
        now_ms = owner.now_ms()  # and as in `_integrate` and `_write_storage`, without the calls
        self._byte_ms = byte_ms = self._byte_ms + self._bytes * (now_ms - self.as_of_ms)
        self.as_of_ms = now_ms
        self._bytes = size = self._bytes + change
        words, at = self._counters.words, self.at
        words[at + AS_OF] = now_ms
        words[at + BYTE_SECONDS] = min(byte_ms // 1000, MAX_WORD)
        words[at + BYTES] = size

    def _integrate(self, until_ms: int) -> None:
        passed = until_ms - self.as_of_ms
        if passed > 0:
            self._byte_ms += self._bytes * passed
            self.as_of_ms = until_ms

    def _write_bytes(self) -> None:
        words, at = self._counters.words, self.at
        words[at + PRODUCED], words[at + CONSUMED] = self.produced_bytes, self.consumed_bytes

    def _write_storage(self) -> None:
        # In this order a kill in between loses the storage since the last change, and never counts any twice.
        words, at = self._counters.words, self.at
        words[at + AS_OF] = self.as_of_ms
        words[at + BYTE_SECONDS] = min(self._byte_ms // 1000, MAX_WORD)
        words[at + BYTES] = self._bytes

    # --- telling ------------------------------------------------------------------------------------------------------

    def take_moved(self) -> tuple[int, int, int]:
        """Bytes produced and consumed since this was asked last, and records produced."""
        produced, consumed, records = self.produced_bytes, self.consumed_bytes, self.produced_records
        found = produced - self.windows_produced, consumed - self.windows_consumed, records - self.windows_records
        self.windows_produced, self.windows_consumed, self.windows_records = produced, consumed, records
        return found

    @property
    def has_moved(self) -> bool:
        """Whether there is anything that `take_moved` would return."""
        return (self.produced_bytes, self.consumed_bytes) != (self.windows_produced, self.windows_consumed)

    @property
    def is_nearly_full(self) -> bool:
        """The byte-seconds told last come near to what a word, a column of a database and Spark hold."""
        return self._emitted_byte_seconds >= NEARLY_FULL

    def has_stored(self, at_ms: int) -> bool:
        """Whether storage alone is worth a record as of this moment."""
        byte_ms = self._byte_ms + self._bytes * max(0, at_ms - self.as_of_ms)
        return byte_ms // 1000 != self._emitted_byte_seconds

    def take(self, at_ms: int) -> UsageRecord:
        """The record as of this moment (or the last change, if that is later), under the topic's present hour."""
        self._integrate(at_ms)
        self._write_storage()
        self.emitted_produced, self.emitted_consumed = self.produced_bytes, self.consumed_bytes
        self.emitted_records = self.produced_records
        self._emitted_byte_seconds = self._byte_ms // 1000
        return UsageRecord(
            broker=self.broker,
            boot=self.boot,
            hour=hour_text(self.hour),
            instance=self.instance,
            topic=self.topic,
            produced_bytes=self.emitted_produced,
            consumed_bytes=self.emitted_consumed,
            stored_byte_seconds=min(self._emitted_byte_seconds, MAX_WORD),
            topic_id=id_text(self.topic_id),
            cluster=self._owner.cluster,
        )
