"""The door to the records of one partition: read backwards, a stretch at a time. The third module that imports confluent_kafka.

The control plane reads no tenant's data. It reads what brokers have written for the tenant to see: the audit of an instance
(`access.trail`), with the right to read that its role has on the internal listener. Names are physical.

A reader is one client for one question: all of its stretches together have ROUND_S.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, Self, cast

from confluent_kafka import Consumer, KafkaError, TopicPartition

from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import client

if TYPE_CHECKING:
    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.group_door import Place

ROUND_S = 3.0
AT_ONCE = 500
FETCH_BYTES = 2**20

Record = tuple[int, bytes]
"""An offset and a value."""


class Reader(Protocol):
    """Of one partition. To be used in a `with` statement."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_exc: object) -> None: ...

    def records(self, first: int, end: int) -> list[Record]:
        """What is there from `first` to before `end`, in order. Raises ClusterUnavailable, if not in time."""
        ...


class KafkaReader:
    """The real one."""

    def __init__(self, admin: client.KafkaAdmin, place: Place) -> None:
        self._place = place
        self._until = time.monotonic() + ROUND_S
        self._consumer = Consumer(admin.settings | _READING)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._consumer.close()

    def records(self, first: int, end: int) -> list[Record]:
        """See Reader."""
        self._consumer.assign([TopicPartition(*self._place, first)])
        found: list[Record] = []
        at = first
        while at < end:
            if time.monotonic() >= self._until:
                raise ClusterUnavailable("the broker did not send the records in time")
            for message in self._consumer.consume(AT_ONCE, 0.1):
                error, offset = message.error(), message.offset()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # librdkafka's own begin so
                    at = end
                elif error is None and offset is not None:
                    at = offset + 1
                    if first <= offset < end:
                        found.append((offset, client.bytes_of(message.value()) or b""))
        return found


_READING: dict[str, str | int | float | bool] = {
    **client.WITHOUT_GROUP,
    "group.id": "sluice-reader",
    "isolation.level": "read_uncommitted",
    "fetch.message.max.bytes": FETCH_BYTES,
    "queued.min.messages": AT_ONCE,
    "fetch.queue.backoff.ms": client.AGAIN_MS,
}


def reader(cluster: ClusterAddress, place: Place) -> Reader:
    """By the addresses and the credential of this process's client. Raises ClusterUnavailable where no broker is registered."""
    return KafkaReader(cast("client.KafkaAdmin", client.admin(cluster)), place)
