"""The door to a topic's messages: read a stretch of each partition, produce, delete those before an offset.

What `record_door` is for what brokers have written; this is for what tenants have. Every client made here says ON_BEHALF as its
client id, so brokers charge what it reads and writes to the instance that owns the topic, as they charge the instance's
own clients (`quota.contracts.on_behalf`). Names are physical.

A reader is one client for one question. How much it may take, and how long, is its caller's: a `Room`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka import Message as KafkaMessage

from controlplane.core.errors import ClusterUnavailable, Conflict, Invalid, LimitReached, NotFound, SluiceError
from controlplane.kafka import client
from quota.contracts.on_behalf import CLIENT_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress

ASK_S = 3.0
"""What is asked once: the number of partitions, a deletion."""
PRODUCE_S = 5.0
AT_ONCE = 100
POLL_S = 0.1
FETCH_BYTES = (4 * 1024, 16 * 1024, 64 * 1024, 256 * 1024)
"""What a reader asks a broker for of one partition at a time. What comes beyond what is wanted has been charged, and is thrown
away; so a reader asks for little until it knows how large messages are, and then for about as much as it is told to read."""
FEW_PARTITIONS = 24
LARGER_AFTER_S = 0.5
"""A batch that is larger than a fetch comes for one partition of each answer alone. Of many partitions that is slow: what has not
come in this time is asked for in larger pieces."""
LARGEST_BYTES = 16 * 2**20
"""A client's own limit on a message, above any topic's: the broker is to decide."""
NOT_LEGIBLE = "(headers that are not UTF-8)"

Stretch = tuple[int, int]
"""The first offset, and the one before which it ends."""


@dataclass(frozen=True, slots=True)
class Message:
    """A record as its topic holds it."""

    partition: int
    offset: int
    timestamp_ms: int | None  # None: of a producer from before 0.10
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def headers_bytes(self) -> int:
        """Of names and values."""
        return sum(len(name.encode()) + len(value or b"") for name, value in self.headers)

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        return len(self.key or b"") + len(self.value or b"") + self.headers_bytes


@dataclass(slots=True)
class Room:
    """What a look may still take; one message may take more than is left. `until_s` is of the monotonic clock."""

    messages: int
    bytes: int
    until_s: float
    clock: Callable[[], float] = time.monotonic

    def take(self, message: Message) -> None:
        """It was read."""
        self.messages -= 1
        self.bytes -= message.size

    @property
    def is_late(self) -> bool:
        """Whether time is up."""
        return self.clock() >= self.until_s

    @property
    def is_used_up(self) -> bool:
        """Whether nothing more is to be read."""
        return self.messages <= 0 or self.bytes <= 0 or self.is_late


@dataclass(slots=True)
class Taken:
    """What was read of a stretch: messages in the order of their offsets, and every offset before `upto` was passed."""

    upto: int
    messages: list[Message] = field(default_factory=list)


class Reads(Protocol):
    """Somewhere messages of one topic can be read."""

    def read(self, wanted: Mapping[int, Stretch], room: Room) -> dict[int, Taken]:
        """Of each partition what there was room and time for, without messages of transactions that are open or aborted.

        Raises ClusterUnavailable.
        """
        ...


class Reader(Reads, Protocol):
    """Of one topic, in a `with` statement."""

    wait_s: float
    """What brokers have told it to wait before it reads more: the instance's bandwidth is used up for so long."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_exc: object) -> None: ...

    def partitions(self) -> int:
        """How many the topic has. Raises NotFound, ClusterUnavailable."""
        ...


class KafkaReader:
    """The real one."""

    def __init__(self, admin: client.KafkaAdmin, topic: str) -> None:
        self._topic, self._settings = topic, admin.settings
        self.wait_s = 0.0
        self._consumers: dict[int, Consumer] = {}  # by FETCH_BYTES, which a client of librdkafka keeps
        self._messages = self._bytes = 0  # read so far

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        for consumer in self._consumers.values():
            consumer.close()

    def _consumer(self, fetch_bytes: int = FETCH_BYTES[0]) -> Consumer:
        if fetch_bytes not in self._consumers:
            settings = self._settings | _READING | fetching(fetch_bytes) | {"throttle_cb": self._throttled}
            self._consumers[fetch_bytes] = Consumer(settings)
        return self._consumers[fetch_bytes]

    def _throttled(self, event: Any) -> None:
        self.wait_s = max(self.wait_s, float(event.throttle_time))

    def _fetch_bytes(self, wanted: Mapping[int, Stretch], left: Mapping[int, int], room: Room) -> int:
        """Which of FETCH_BYTES is near what is asked for of a partition, if messages are as large as those before."""
        least = FETCH_BYTES[0 if len(left) <= 1 else 1 if len(left) <= FEW_PARTITIONS else 2]
        if not left or not self._messages:
            return least
        longest = min(room.messages, max(end - wanted[partition][0] for partition, end in left.items()))
        expected = min(longest * self._bytes // self._messages, room.bytes // len(left))
        return max([least, *(size for size in FETCH_BYTES if size <= expected)])

    def _begun(self, fetch_bytes: int, left: Mapping[int, int], found: Mapping[int, Taken]) -> Consumer:
        consumer = self._consumer(fetch_bytes)
        places = [TopicPartition(self._topic, partition, found[partition].upto) for partition in left]
        consumer.assign(places)
        consumer.resume(places)  # a partition that an earlier stretch has paused would stay so
        return consumer

    def partitions(self) -> int:
        """See Reader."""
        try:
            found = self._consumer().list_topics(self._topic, timeout=ASK_S).topics[self._topic]
        except KafkaException as error:
            raise problem_of(error.args[0]) from error
        if found.error is not None:
            raise problem_of(found.error)
        return len(found.partitions)

    def read(self, wanted: Mapping[int, Stretch], room: Room) -> dict[int, Taken]:
        """See Reader."""
        found = {partition: Taken(first) for partition, (first, _) in wanted.items()}
        left = {partition: end for partition, (first, end) in wanted.items() if first < end}
        fetch_bytes, larger_at = self._fetch_bytes(wanted, left, room), time.monotonic() + LARGER_AFTER_S
        consumer = self._begun(fetch_bytes, left, found)
        while left and not room.is_used_up:
            if time.monotonic() >= larger_at and fetch_bytes < FETCH_BYTES[-1]:
                consumer.unassign()
                fetch_bytes = FETCH_BYTES[FETCH_BYTES.index(fetch_bytes) + 1]
                consumer, larger_at = self._begun(fetch_bytes, left, found), time.monotonic() + LARGER_AFTER_S
            missing = sum(end - found[partition].upto for partition, end in left.items())
            for got in consumer.consume(max(1, min(AT_ONCE, missing, room.messages)), POLL_S):
                partition, error = got.partition(), got.error()
                is_end = error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001  # librdkafka's own begin so
                if error is not None and error.code() in _REFUSALS:
                    raise problem_of(error)
                if partition is None or partition not in left or (error is not None and not is_end):
                    continue  # a broker that goes is another's work to take over, for as long as there is time
                taken, end, offset = found[partition], left[partition], got.offset()
                if is_end or offset is None or offset >= end:
                    taken.upto = end
                elif offset >= taken.upto:
                    message = _message_of(got, partition, offset)
                    taken.messages.append(message)
                    taken.upto = offset + 1
                    room.take(message)
                if taken.upto >= end:
                    del left[partition]
                    consumer.pause([TopicPartition(self._topic, partition)])
                if room.messages <= 0 or room.bytes <= 0:
                    break
        consumer.unassign()  # or it would go on fetching, while another of another size reads
        self._messages += sum(len(taken.messages) for taken in found.values())
        self._bytes += sum(message.size for taken in found.values() for message in taken.messages)
        return found


def fetching(fetch_bytes: int) -> dict[str, Any]:
    """Settings of a consumer that fetches so much of a partition at once, and nothing further before that was taken.

    A first batch that is larger is sent whole all the same.
    """
    return {
        "fetch.message.max.bytes": fetch_bytes,
        "queued.max.messages.kbytes": max(1, fetch_bytes // 1024),
        "queued.min.messages": 1,
        "fetch.queue.backoff.ms": client.AGAIN_MS,
    }


_HEADERS = methodcaller("headers")
"""confluent_kafka leaves the exception for a name that is not UTF-8 behind, and answers all the same. Called so, Python looks
at once whether there is one (SystemError); else it comes up wherever the next call into C is."""


def _message_of(got: KafkaMessage, partition: int, offset: int) -> Message:
    kind, timestamp_ms = got.timestamp()
    dated = None if kind == TIMESTAMP_NOT_AVAILABLE or timestamp_ms < 0 else timestamp_ms
    try:
        headers = cast("Sequence[tuple[str, bytes | None]]", _HEADERS(got) or ())
    except (UnicodeDecodeError, SystemError):  # Kafka's protocol says that names are UTF-8; no broker looks
        headers = ((NOT_LEGIBLE, None),)
    return Message(partition, offset, dated, client.bytes_of(got.key()), client.bytes_of(got.value()), tuple(headers))


_READING: dict[str, str | int | float | bool] = {
    **client.WITHOUT_GROUP,
    "client.id": CLIENT_ID,
    "group.id": "sluice-messages",
    "isolation.level": "read_committed",
    "socket.timeout.ms": int(ASK_S * 1000),
}
_PRODUCING: dict[str, str | int | float | bool] = {
    "client.id": CLIENT_ID,
    "acks": "all",
    "partitioner": "murmur2_random",  # as clients in Java, Python and JavaScript do: one key, one partition, whoever writes it
    "linger.ms": 0,
    "batch.num.messages": 1,  # a topic's max.message.bytes is of a batch: messages together could be too large, and none alone
    "retries": 0,  # a message that may be there already is not sent again: whoever sent it is told
    "message.timeout.ms": int(PRODUCE_S * 1000),
    "message.max.bytes": LARGEST_BYTES,
    "socket.timeout.ms": int(PRODUCE_S * 1000),
}


class MessageDoor(Protocol):
    """What this service does with tenants' messages. Every call may raise ClusterUnavailable."""

    def reader(self, topic: str) -> Reader:
        """For one question."""
        ...

    def produce(self, topic: str, message: Message, partition: int | None) -> Message:
        """The message as it was written. Of `message` key, value, headers and, if it is not None, the timestamp are taken.

        `partition` None: by the key as Java's producers choose (murmur2), any if the key is null. Raises NotFound, Invalid,
        LimitReached.
        """
        ...

    def produce_several(self, topic: str, messages: Sequence[Message]) -> list[Message | SluiceError]:
        """Each as it was written, or what `produce` raises of it: one that is refused keeps no other back.

        Together they have the time of one. Partitions are chosen as `produce` does.
        """
        ...

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """By partition the first offset that is left. Raises NotFound, Invalid, Conflict (topic_compacted)."""
        ...


class KafkaMessages:
    """The real one."""

    def __init__(self, admin: client.KafkaAdmin) -> None:
        self._admin = admin

    def reader(self, topic: str) -> Reader:
        """See MessageDoor."""
        return KafkaReader(self._admin, topic)

    def produce(self, topic: str, message: Message, partition: int | None) -> Message:
        """See MessageDoor."""
        (outcome,) = self._produced(topic, [message], partition)
        if isinstance(outcome, SluiceError):
            raise outcome
        return outcome

    def produce_several(self, topic: str, messages: Sequence[Message]) -> list[Message | SluiceError]:
        """See MessageDoor."""
        return self._produced(topic, messages, None)

    def _produced(self, topic: str, messages: Sequence[Message], partition: int | None) -> list[Message | SluiceError]:
        outcomes: list[Message | SluiceError] = [ClusterUnavailable(_NOT_SAID) for _ in messages]
        producer = Producer(self._admin.settings | _PRODUCING)
        for place, message in enumerate(messages):
            optional: dict[str, Any] = {}
            if partition is not None:
                optional["partition"] = partition
            if message.timestamp_ms is not None:
                optional["timestamp"] = message.timestamp_ms
            try:
                producer.produce(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=list(message.headers),
                    on_delivery=_noted(outcomes, place, message),
                    **optional,
                )
            except KafkaException as error:
                outcomes[place] = problem_of(error.args[0])
        producer.flush(PRODUCE_S + 1)
        return outcomes

    def delete_before(self, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
        """See MessageDoor."""
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        futures = self._admin.kafka.delete_records(wanted, request_timeout=ASK_S, operation_timeout=ASK_S)
        left = {}
        for place, future in futures.items():
            try:
                left[place.partition] = int(future.result(timeout=ASK_S + 1).low_watermark)
            except TimeoutError as error:
                raise ClusterUnavailable("the cluster does not answer") from error
            except KafkaException as error:
                if error.args[0].code() == KafkaError.POLICY_VIOLATION:
                    raise compacted() from error
                raise problem_of(error.args[0]) from error
        return left


def _noted(
    outcomes: list[Message | SluiceError], place: int, message: Message
) -> Callable[[KafkaError | None, KafkaMessage], None]:
    """Hears what became of one message."""

    def note(refused: KafkaError | None, sent: KafkaMessage) -> None:
        outcomes[place] = problem_of(refused) if refused is not None else _written(message, sent)

    return note


def _written(message: Message, sent: KafkaMessage) -> Message:
    return replace(
        message, partition=sent.partition() or 0, offset=sent.offset() or 0, timestamp_ms=sent.timestamp()[1]
    )


def compacted() -> Conflict:
    """What is said where records are to be deleted of a topic that keeps the last one of each key."""
    return Conflict(
        "nothing is deleted from a compacted topic: write a message with the key and without a value instead",
        code="topic_compacted",
    )


def too_large() -> Invalid:
    """What is said of a message that is larger than its topic takes."""
    return Invalid("the message is larger than the topic's max.message.bytes", code="message_too_large")


def no_such_record() -> Invalid:
    """What is said of one without a key where there must be one."""
    return Invalid(
        "the topic does not take such a record: where it is compacted, a record needs a key", code="invalid_record"
    )


def out_of_time() -> Invalid:
    """What is said of one whose timestamp is further from now than its topic allows."""
    return Invalid("the topic does not take so old or so late a timestamp", code="invalid_timestamp")


def storage_full() -> LimitReached:
    """What is said where all of the storage that was bought is used."""
    return LimitReached("storage is full: delete topics or records, or enlarge the instance", code="storage_full")


def too_few_in_sync() -> ClusterUnavailable:
    """What is said where fewer replicas have everything than the topic asks for."""
    return ClusterUnavailable("too few replicas of the partition are in sync: try again in a few seconds")


_NOT_SAID = "the cluster has not said in time whether it took the message"
_REFUSALS: Mapping[int, Callable[[], SluiceError]] = {
    KafkaError.UNKNOWN_TOPIC_OR_PART: lambda: NotFound("no such topic or partition", code="topic_not_found"),
    KafkaError._UNKNOWN_TOPIC: lambda: NotFound("no such topic or partition", code="topic_not_found"),  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION: lambda: NotFound("no such topic or partition", code="topic_not_found"),  # noqa: SLF001
    KafkaError.MSG_SIZE_TOO_LARGE: too_large,
    KafkaError.INVALID_RECORD: no_such_record,
    KafkaError.INVALID_TIMESTAMP: out_of_time,
    KafkaError.POLICY_VIOLATION: storage_full,
    KafkaError._MSG_TIMED_OUT: lambda: ClusterUnavailable(_NOT_SAID),  # noqa: SLF001
    KafkaError.NOT_ENOUGH_REPLICAS: too_few_in_sync,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: too_few_in_sync,
    KafkaError.OFFSET_OUT_OF_RANGE: lambda: Invalid(
        "the offset is not one that the partition holds", code="offset_out_of_range"
    ),
}


def problem_of(error: KafkaError) -> SluiceError:
    """The answer for a Kafka error about messages; no text of a broker's is in it, which would name physical names."""
    if error.code() in _REFUSALS:
        return _REFUSALS[error.code()]()
    return client.not_now(error)


def door(cluster: ClusterAddress) -> MessageDoor:
    """By the addresses and the credential of this process's client. Raises ClusterUnavailable where no broker is registered."""
    return KafkaMessages(cast("client.KafkaAdmin", client.admin(cluster)))
