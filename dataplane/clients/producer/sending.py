"""The default event handler: messages encoded, each with its partition, and sent to the leaders until they are acknowledged.

One Produce request a leader, with a batch for each partition of at most `max.message.size` bytes; what is more follows in
further requests. What fails in a way that may pass is tried again, `message.send.max.retries` times, after a pause and
a look at who leads now. Where an answer was lost the messages may be there already, and are then there twice.

**Order.** Within a partition messages are sent in the order in which they were given: after a failure nothing overtakes. A
message without a key takes the next partition that has a leader, at each try anew.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dataplane.clients.cluster import Cluster
from dataplane.clients.connection import Connection
from dataplane.clients.errors import BrokerError, ClientError, ConnectionLostError, FailedToSendError
from dataplane.clients.messages import Message, portions, write_entries
from dataplane.clients.partitioners import PARTITIONERS, Partitioner, RoundRobin
from dataplane.clients.producer.config import ProducerConfig
from dataplane.clients.producer.data import ENCODERS, Encoder, ProducerData, Sent
from dataplane.clients.settings import named
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

Place = tuple[str, int]
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class _Event:
    number: int  # among those that were given
    data: ProducerData
    message: Message


@dataclass
class _Outcome:
    """What became of each event so far."""

    sent: dict[int, Sent]
    failed: dict[int, ClientError]

    def fail(self, events: Sequence[_Event], error: ClientError) -> None:
        self.failed.update((event.number, error) for event in events)


class Sender:
    """Sends on the caller's thread. One at a time."""

    def __init__(self, config: ProducerConfig, cluster: Cluster, now_ms: Callable[[], int]) -> None:
        self._config = config
        self._cluster = cluster
        self._now_ms = now_ms
        self._encoder: Encoder = named("serializer.class", config.serializer_class, ENCODERS)
        self._key_encoder: Encoder = (
            self._encoder
            if config.key_serializer_class is None
            else named("key.serializer.class", config.key_serializer_class, ENCODERS)
        )
        self._partitioner: Partitioner = named("partitioner.class", config.partitioner_class, PARTITIONERS)
        self._turns = RoundRobin()
        self._refresh_at_ms = now_ms() + config.topic_metadata_refresh_interval_ms
        self._topics: set[str] = set()

    def send(self, events: Sequence[ProducerData]) -> tuple[Sent, ...]:
        """Where each of them is. Raises FailedToSendError, naming those that are not acknowledged; the others are."""
        waiting = [self._encoded(number, data) for number, data in enumerate(events)]
        outcome = _Outcome({}, {})
        self._look_now_and_then(waiting)
        for left in range(self._config.message_send_max_retries, -1, -1):
            outcome.failed = {n: error for n, error in outcome.failed.items() if not error.retriable}
            self._try(waiting, outcome)
            waiting = [one for one in waiting if one.number in outcome.failed and outcome.failed[one.number].retriable]
            if not waiting or not left:
                break
            time.sleep(self._config.retry_backoff_ms / 1000)
            self._look(waiting)
        if outcome.failed:
            raise FailedToSendError([(events[number], error) for number, error in sorted(outcome.failed.items())])
        return tuple(outcome.sent[number] for number in range(len(events)))

    def _encoded(self, number: int, data: ProducerData) -> _Event:
        key = self._key_encoder.to_message(data.key)
        return _Event(number, data, Message(self._encoder.to_message(data.data), key, data.headers, data.timestamp))

    def _look_now_and_then(self, events: Sequence[_Event]) -> None:
        """New partitions are found although nothing fails."""
        self._topics.update(event.data.topic for event in events)
        now = self._now_ms()
        if now >= self._refresh_at_ms >= 0:
            self._refresh_at_ms = now + self._config.topic_metadata_refresh_interval_ms
            self._look(events)

    def _look(self, events: Sequence[_Event]) -> None:
        try:
            self._cluster.refresh(dict.fromkeys(event.data.topic for event in events))
        except ClientError as error:
            if not error.retriable:
                raise

    # --- one try ------------------------------------------------------------------------------------------------------

    def _try(self, events: Sequence[_Event], outcome: _Outcome) -> None:
        by_place: dict[Place, list[_Event]] = defaultdict(list)
        by_leader: dict[int, list[Place]] = defaultdict(list)
        problems: dict[
            str, ClientError
        ] = {}  # of topics: one that appears in the midst of this would turn the order round
        for event in events:
            topic = event.data.topic
            try:
                if topic in problems:
                    raise problems[topic]
                by_place[self._place(event)].append(event)
            except ClientError as error:
                problems[topic] = error
                outcome.fail([event], error)
        for place, placed in by_place.items():
            try:
                by_leader[self._cluster.leader(*place)].append(place)
            except ClientError as error:
                outcome.fail(placed, error)
        for leader, places in by_leader.items():
            self._send_to(leader, {place: by_place[place] for place in places}, outcome)

    def _place(self, event: _Event) -> Place:
        data = event.data
        topic = self._cluster.topic(data.topic)
        if data.partition is not None:
            return data.topic, data.partition
        if data.key is not None:
            return data.topic, self._partitioner.partition(data.key, len(topic.partitions))
        led = [one.index for one in topic.partitions if one.has_leader]
        if not led:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, data.topic)
        return data.topic, self._turns.next(data.topic, led)

    def _send_to(self, leader: int, events: dict[Place, list[_Event]], outcome: _Outcome) -> None:
        left = {place: _Portions(some, self._config.max_message_size) for place, some in events.items()}
        while left:
            try:
                answers = self._cluster.on(leader, lambda connection: self._produce(connection, left))
            except ClientError as error:  # of the connection: what is under way may be there
                for portion in left.values():
                    outcome.fail(portion.all(), error)
                return
            for place in list(left):
                if self._judge(place, left[place], answers.get(place), outcome):
                    del left[place]

    def _produce(self, connection: Connection, left: dict[Place, _Portions]) -> dict[Place, PartitionProduceResponse]:
        config = self._config
        version = connection.version(ApiKey.PRODUCE)
        data: dict[str, list[PartitionProduceData]] = defaultdict(list)
        for (topic, partition), portion in left.items():
            messages = [event.message for event in portion.first]
            entries = write_entries(messages, version, config.codec(topic), self._now_ms())
            data[topic].append(PartitionProduceData(index=partition, records=entries))
        request = ProduceRequest(
            acks=config.request_required_acks,
            timeout_ms=config.request_timeout_ms,
            topic_data=tuple(TopicProduceData(name=name, partition_data=tuple(rows)) for name, rows in data.items()),
        )
        if config.request_required_acks == 0:
            connection.tell(request, version=version)
            return {place: PartitionProduceResponse(index=place[1], base_offset=-1) for place in left}
        answer: ProduceResponse = connection.call(request, version=version, timeout_ms=config.request_timeout_ms)
        return {(topic.name, one.index): one for topic in answer.responses for one in topic.partition_responses}

    def _judge(
        self, place: Place, portion: _Portions, answer: PartitionProduceResponse | None, outcome: _Outcome
    ) -> bool:
        """Whether there is nothing left to be sent for this partition in this try."""
        if answer is None:
            outcome.fail(portion.all(), ConnectionLostError(f"an answer without {place[0]}-{place[1]}"))
            return True
        if answer.error_code == ErrorCode.NONE:
            for at, event in enumerate(portion.first):
                offset = answer.base_offset + at if answer.base_offset >= 0 else -1
                outcome.sent[event.number] = Sent(*place, offset)
            return portion.is_last()
        if answer.error_code in _TOO_LARGE and portion.split():
            return False
        error = BrokerError(answer.error_code, f"{place[0]}-{place[1]}")
        if answer.error_code in _TOO_LARGE:  # this message alone; those after it are not concerned
            outcome.fail(portion.first, error)
            return portion.is_last()
        outcome.fail(portion.all(), error)
        return True


class _Portions:
    """What is to be sent to one partition, a batch at a time."""

    def __init__(self, events: Sequence[_Event], limit: int) -> None:
        at = 0
        self._waiting: deque[Sequence[_Event]] = deque()
        for messages in portions([event.message for event in events], limit):
            self._waiting.append(events[at : at + len(messages)])
            at += len(messages)

    @property
    def first(self) -> Sequence[_Event]:
        """The batch that is next."""
        return self._waiting[0]

    def all(self) -> list[_Event]:
        """Of this batch and those after it."""
        return [event for some in self._waiting for event in some]

    def is_last(self) -> bool:
        """The batch is done with; whether it was the last one."""
        self._waiting.popleft()
        return not self._waiting

    def split(self) -> bool:
        """Two batches of the first one, which was too large. False: it is a single message."""
        whole = self._waiting[0]
        if len(whole) == 1:
            return False
        self._waiting.popleft()
        half = len(whole) // 2
        self._waiting.extendleft((whole[half:], whole[:half]))
        return True
