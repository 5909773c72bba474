"""What is asked about transactions, as bytes. Pure.

    ListTransactions v1, DescribeTransactions v0 (KIP-664), DescribeProducers v0      flexible: compact lengths and tags (KIP-482)
    InitProducerId v1                                                                 the last version without tags that is needed

confluent_kafka has no call for any of them. What is read of answers is what is shown; an answer that ends early raises
struct.error or IndexError, which `transaction_door` takes for a broker that does not answer. https://kafka.apache.org/protocol
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

INIT_PRODUCER_ID, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 22, 61, 65, 66
NO_TAGS = b"\0"

Place = tuple[str, int]
"""A topic and a partition's number."""


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


class Answer:
    """The bytes of a flexible answer, read from the front."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self._at = at

    def number(self, kind: str) -> int:
        """Of `struct`'s kind: h, i or q."""
        (found,) = struct.unpack_from(f">{kind}", self._data, self._at)
        self._at += struct.calcsize(f">{kind}")
        return int(found)

    def length(self) -> int:
        """Of a compact array; 0 for null too."""
        return max(self._varint() - 1, 0)

    def text(self) -> str:
        """A compact string; empty for null too."""
        size = self.length()
        if self._at + size > len(self._data):
            raise struct.error("a text goes beyond the end of the answer")
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def tags(self) -> None:
        """Passed over: none that is known says what is shown."""
        for _ in range(self._varint()):
            self._varint()
            self._at += self._varint()

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7


def list_request(states: Sequence[str], open_for_ms: int | None) -> bytes:
    """ListTransactions v1: of these states, or all; begun longer ago than that, if it is said."""
    producers = _array(())
    return (
        _array(map(_text, states)) + producers + struct.pack(">q", -1 if open_for_ms is None else open_for_ms) + NO_TAGS
    )


def listed(data: bytes) -> tuple[int, dict[str, str]]:
    """The error code, and the state by transactional id."""
    answer = Answer(data, 4)  # after the throttle time
    error = answer.number("h")
    for _ in range(answer.length()):  # filters that the broker does not know
        answer.text()
    found = {}
    for _ in range(answer.length()):
        transactional_id = answer.text()
        answer.number("q")
        found[transactional_id] = answer.text()
        answer.tags()
    return error, found


def describe_request(transactional_ids: Sequence[str]) -> bytes:
    """DescribeTransactions v0."""
    return _array(map(_text, transactional_ids)) + NO_TAGS


def described(data: bytes) -> dict[str, tuple[int, Transaction]]:
    """By transactional id: the error code, and what there is if that is 0."""
    answer = Answer(data, 4)
    found = {}
    for _ in range(answer.length()):
        error, transactional_id, state = answer.number("h"), answer.text(), answer.text()
        timeout_ms, started_ms = answer.number("i"), answer.number("q")
        producer_id, epoch = answer.number("q"), answer.number("h")
        places = []
        for _ in range(answer.length()):
            topic = answer.text()
            places += [(topic, answer.number("i")) for _ in range(answer.length())]
            answer.tags()
        answer.tags()
        what = Transaction(transactional_id, state, producer_id, epoch, timeout_ms, started_ms, tuple(sorted(places)))
        found[transactional_id] = error, what
    return found


def producers_request(places: Iterable[Place]) -> bytes:
    """DescribeProducers v0."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in places:
        by_topic.setdefault(topic, []).append(number)
    rows = (
        _text(topic) + _array(struct.pack(">i", number) for number in numbers) + NO_TAGS
        for topic, numbers in by_topic.items()
    )
    return _array(rows) + NO_TAGS


def open_producers(data: bytes) -> dict[Place, Mapping[int, int]]:
    """By partition, without those that have an error: where the open transaction of each producer id begins."""
    answer = Answer(data, 4)
    found: dict[Place, Mapping[int, int]] = {}
    for _ in range(answer.length()):
        topic = answer.text()
        for _ in range(answer.length()):
            number, error = answer.number("i"), answer.number("h")
            answer.text()  # why
            starts = {}
            for _ in range(answer.length()):
                producer_id = answer.number("q")
                for kind in "iiqi":  # epoch, sequence, timestamp, coordinator's epoch
                    answer.number(kind)
                starts[producer_id] = answer.number("q")
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


def _varint(value: int) -> bytes:
    data = b""
    while value >= 0x80:
        data += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return data + bytes((value,))


def _text(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data) + 1) + data


def _array(rows: Iterable[bytes]) -> bytes:
    found = list(rows)
    return _varint(len(found) + 1) + b"".join(found)
