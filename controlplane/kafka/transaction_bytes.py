"""What is asked about transactions, as bytes. Pure.

    ListTransactions v1, DescribeTransactions v0 (KIP-664), DescribeProducers v0      flexible (`flexible`)
    InitProducerId v1                                                                 the last version without tags that is needed

confluent_kafka has no call for any of them. What is read of answers is what is shown; an answer that ends early raises
struct.error, which `transaction_door` takes for a broker that does not answer. https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.kafka.flexible import NO_TAGS, Reader, array, by_topic, string

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controlplane.kafka.flexible import Place

INIT_PRODUCER_ID, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 22, 61, 65, 66


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
    answer = Reader(data, 4)
    found: dict[Place, Mapping[int, int]] = {}
    for _ in range(answer.count()):
        topic = answer.string()
        for _ in range(answer.count()):
            number, error = answer.int32(), answer.int16()
            answer.string()  # why
            starts = {}
            for _ in range(answer.count()):
                producer_id = answer.int64()
                answer.skip(4 + 4 + 8 + 4)  # epoch, sequence, timestamp, coordinator's epoch
                starts[producer_id] = answer.int64()
                answer.tags()
            answer.tags()
            if not error:
                found[topic, number] = {producer_id: at for producer_id, at in starts.items() if at >= 0}
        answer.tags()
    return found


def fence_request(transactional_id: str, timeout_ms: int) -> bytes:
    """InitProducerId v1: the next producer of this id, which no one will be."""
    name = transactional_id.encode()
    return struct.pack(">h", len(name)) + name + struct.pack(">i", timeout_ms)


def fenced(data: bytes) -> int:
    """The error code."""
    return int(struct.unpack_from(">h", data, 4)[0])
