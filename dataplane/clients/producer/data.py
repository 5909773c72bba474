"""What is sent, and what can be plugged in: encoder, event handler, callback handler, as the documents name them.

(The partitioner is `dataplane.clients.partitioners`.) Any object with these methods will do. `CallbackHandler` has them
all, doing nothing, so that one's own needs only those that it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dataplane.clients.errors import ClientError
from dataplane.clients.messages import NO_TIMESTAMP, Headers


@dataclass(frozen=True, slots=True)
class ProducerData:
    """A message on its way to a topic. `key` chooses the partition, unless `partition` says it; without both they take turns.

    `data` and `key` are what the encoder takes. Data of None is a deletion marker.
    """

    topic: str
    data: Any
    key: Any = None
    partition: int | None = None
    headers: Headers = ()
    timestamp: int = NO_TIMESTAMP


@dataclass(frozen=True, slots=True)
class Sent:
    """Where a message is. `offset` is -1 where nobody was asked (`request.required.acks` 0)."""

    topic: str
    partition: int
    offset: int


class Encoder(Protocol):
    """``interface Encoder<T> { public Message toMessage(T data); }``; the bytes are what a message's payload is."""

    def to_message(self, data: Any) -> bytes | None:
        """None stays none."""
        ...


class DefaultEncoder:
    """Does nothing: what is sent is bytes, or text, which is bytes as UTF-8."""

    def to_message(self, data: Any) -> bytes | None:
        if isinstance(data, str):
            return data.encode()
        if data is not None and not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"{type(data).__name__} needs an encoder: serializer.class")
        return None if data is None else bytes(data)


class StringEncoder:
    """Text of whatever it is, as UTF-8."""

    def to_message(self, data: Any) -> bytes | None:
        return None if data is None else str(data).encode()


ENCODERS: Mapping[str, type] = {
    "default": DefaultEncoder,
    "string": StringEncoder,
    "kafka.serializer.DefaultEncoder": DefaultEncoder,
    "kafka.serializer.StringEncoder": StringEncoder,
}
"""By the names that settings have."""


class Sends(Protocol):
    """What the default event handler does, for handlers that come before it."""

    def send(self, events: Sequence[ProducerData]) -> tuple[Sent, ...]:
        """Encoded, partitioned, acknowledged. Raises FailedToSendError and what the encoder raises."""
        ...


class EventHandler(Protocol):
    """Gets what would be sent, and has it sent, or something else instead."""

    def handle(self, events: Sequence[ProducerData], sender: Sends) -> tuple[Sent, ...]:
        """Raises as `Sends.send`."""
        ...


class CallbackHandler:
    """Called at each station of the queue of an asynchronous producer; the producer's threads call it, one at a time each."""

    def before_enqueue(self, data: ProducerData) -> ProducerData:
        """By the caller of `send`: what is to be queued."""
        return data

    def after_enqueue(self, data: ProducerData, added: bool) -> None:
        """By the caller of `send`; `added` is false where the queue had no room."""

    def after_dequeuing_existing_data(self, data: ProducerData) -> Sequence[ProducerData]:
        """By the sending thread: what goes into the batch for it."""
        return (data,)

    def before_sending_data(self, events: Sequence[ProducerData]) -> Sequence[ProducerData]:
        """By the sending thread: the batch."""
        return events

    def after_sending_data(self, events: Sequence[ProducerData], error: ClientError | Exception | None) -> None:
        """By the sending thread: None, all is acknowledged. With an error the batch is given up: nobody else is told of it."""

    def last_batch_before_close(self) -> Sequence[ProducerData]:
        """By the sending thread, once: what is sent after all that was in the queue."""
        return ()

    def close(self) -> None:
        """Nothing is called after it."""
