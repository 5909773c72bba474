"""What is asked about transactions, as bytes. Pure.

    ListTransactions v1, DescribeTransactions v0 (KIP-664),
    DescribeProducers v0, WriteTxnMarkers v1                     flexible (`flexible`)
    InitProducerId v1                                            the last version without tags that is needed

confluent_kafka has no call for any of them. What is read of answers is what is shown; an answer that ends early raises
struct.error, which `transaction_door` takes for a broker that does not answer. https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from controlplane.kafka.flexible import NO_TAGS, Reader, array, by_topic, string

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.kafka.flexible import Place

INIT_PRODUCER_ID, WRITE_TXN_MARKERS, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 22, 27, 61, 65, 66


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id as its coordinator knows it, in Kafka's words. `started_ms` is negative where nothing has begun."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int
    partitions: tuple[Place, ...]


class OpenProducer(NamedTuple):
    """Whose transaction is open in a partition, as its leader's log has it. `written_ms`: when it last wrote there."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int  # of the last marker; -1: there was none
    written_ms: int
    first_offset: int


def list_request(states: Sequence[str], open_for_ms: int | None) -> bytes:
    """ListTransactions v1: of these states, or all; begun longer ago than that, if it is said."""
    producers = array(())
    return (
        array(map(string, states)) + producers + struct.pack(">q", -1 if open_for_ms is None else open_for_ms) + NO_TAGS
    )


def listed(data: bytes) -> tuple[int, dict[str, str]]:
    """The error code, and the state by transactional id."""
    answer = Reader(data, 4)  # after the throttle time
    error = answer.int16()
    for _ in range(answer.count()):  # filters that the broker does not know
        answer.string()
    found = {}
    for _ in range(answer.count()):
        transactional_id = answer.string()
        answer.int64()
        found[transactional_id] = answer.string()
        answer.tags()
    return error, found


def describe_request(transactional_ids: Sequence[str]) -> bytes:
    """DescribeTransactions v0."""
    return array(map(string, transactional_ids)) + NO_TAGS


def described(data: bytes) -> dict[str, tuple[int, Transaction]]:
    """By transactional id: the error code, and what there is if that is 0."""
    answer = Reader(data, 4)
    found = {}
    for _ in range(answer.count()):
        error, transactional_id, state = answer.int16(), answer.string(), answer.string()
        timeout_ms, started_ms = answer.int32(), answer.int64()
        producer_id, epoch = answer.int64(), answer.int16()
        places = []
        for _ in range(answer.count()):
            topic = answer.string()
            places += [(topic, answer.int32()) for _ in range(answer.count())]
            answer.tags()
        answer.tags()
        what = Transaction(transactional_id, state, producer_id, epoch, timeout_ms, started_ms, tuple(sorted(places)))
        found[transactional_id] = error, what
    return found


def producers_request(places: Iterable[Place]) -> bytes:
    """DescribeProducers v0."""
    rows = (
        string(topic) + array(struct.pack(">i", number) for number in numbers) + NO_TAGS
        for topic, numbers in by_topic(places).items()
    )
    return array(rows) + NO_TAGS


def open_producers(data: bytes) -> dict[Place, Mapping[int, int]]:
    """By partition, without those that have an error: where the open transaction of each producer id begins."""
    return {place: {each.producer_id: each.first_offset for each in rows} for place, rows in producers(data).items()}


def producers(data: bytes) -> dict[Place, tuple[OpenProducer, ...]]:
    """By partition, without those that have an error: who has a transaction open there."""
    answer = Reader(data, 4)
    found: dict[Place, tuple[OpenProducer, ...]] = {}
    for _ in range(answer.count()):
        topic = answer.string()
        for _ in range(answer.count()):
            number, error = answer.int32(), answer.int16()
            answer.string()  # why
            rows = []
            for _ in range(answer.count()):
                producer_id, epoch = answer.int64(), answer.int32()
                answer.skip(4)  # the sequence
                written_ms, coordinator_epoch = answer.int64(), answer.int32()
                rows.append(OpenProducer(producer_id, epoch, coordinator_epoch, written_ms, answer.int64()))
                answer.tags()
            answer.tags()
            if not error:
                found[topic, number] = tuple(row for row in rows if row.first_offset >= 0)
        answer.tags()
    return found


def fence_request(transactional_id: str, timeout_ms: int) -> bytes:
    """InitProducerId v1: the next producer of this id, which no one will be."""
    name = transactional_id.encode()
    return struct.pack(">h", len(name)) + name + struct.pack(">i", timeout_ms)


def fenced(data: bytes) -> int:
    """The error code."""
    return int(struct.unpack_from(">h", data, 4)[0])


def abort_request(place: Place, producer: OpenProducer) -> bytes:
    """WriteTxnMarkers v1: what this producer has open in this partition is aborted."""
    topic, number = place
    partitions = string(topic) + array([struct.pack(">i", number)]) + NO_TAGS
    marker = struct.pack(">qh?", producer.producer_id, producer.producer_epoch, False) + array([partitions])
    marker += struct.pack(">i", max(producer.coordinator_epoch, 0)) + NO_TAGS
    return array([marker]) + NO_TAGS


def aborted(data: bytes) -> int:
    """The error code of the one partition."""
    answer = Reader(data)
    for _ in range(answer.count()):
        answer.int64()
        for _ in range(answer.count()):
            answer.string()
            for _ in range(answer.count()):
                answer.int32()
                return answer.int16()
    raise struct.error("the answer names no partition")
