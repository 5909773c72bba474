"""Streams, which a program reads from, and holdings: a partition that is ours, with how far it was read.

A stream is read by one thread. Fetchers put *chunks* into it, each the messages of one fetch of one partition; it holds as many
as `queuedchunks.max` ready. When a partition is taken from us its holding *ends*: from then on none of its messages leaves
the stream, so what was handed out up to then is all, and can be committed.

What counts as read: a message that was handed out (`consumed`), for `commit_offsets` and when a partition is given up. For
commits by the clock only those count after which the program has come back for the next one (`passed`): it may be in
the midst of the last one, and killed there.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from dataplane.clients.connector.rebalance import Place
from dataplane.clients.errors import ConsumerTimeoutError
from dataplane.clients.messages import Headers, MessageAndOffset

Decoder = Callable[[bytes | None], Any]


@dataclass(frozen=True, slots=True)
class MessageAndMetadata:
    """A message of a stream. `message` and `key` are what the decoders made of them; bytes, where there are none."""

    topic: str
    partition: int
    offset: int
    message: Any
    key: Any
    headers: Headers
    timestamp: int


class Holding:
    """One partition, from when it was claimed until it is given up. `fetch_offset` None: where `autooffset.reset` says."""

    def __init__(self, place: Place, thread: str, stream: KafkaStream, offset: int | None) -> None:
        self.place = place
        self.thread = thread
        self.stream = stream
        self.fetch_offset = offset  # the fetcher's
        self.committed = offset
        self.consumed = offset
        self.passed = offset
        self.is_over = False

    def begin_at(self, offset: int) -> None:
        """Where the group had no offset, or one that is not there any more."""
        with self.stream.changed:
            self.fetch_offset = self.consumed = self.passed = offset

    def put(self, messages: tuple[MessageAndOffset, ...], next_offset: int) -> None:
        """Of one fetch."""
        self.fetch_offset = next_offset
        if messages:
            self.stream.put(self, deque(messages))

    def end(self) -> None:
        """No message of it leaves the stream any more."""
        with self.stream.changed:
            self.is_over = True


class KafkaStream:
    """An iterator over messages. Raises ConsumerTimeoutError, after which it can be asked again; ends at shutdown."""

    def __init__(self, timeout_ms: int, most_chunks: int, key: Decoder, value: Decoder) -> None:
        self._timeout_s = None if timeout_ms < 0 else timeout_ms / 1000
        self._most_chunks = most_chunks
        self._key, self._value = key, value
        self._chunks: deque[tuple[Holding, deque[MessageAndOffset]]] = deque()
        self._last: tuple[Holding, int] | None = None  # what was handed out, and the offset after it
        self._is_shut = False
        self.changed = threading.Condition()
        self.on_room: Callable[[], object] = lambda: None

    def __iter__(self) -> Iterator[MessageAndMetadata]:
        return self

    def __next__(self) -> MessageAndMetadata:
        deadline = None if self._timeout_s is None else time.monotonic() + self._timeout_s
        with self.changed:
            self._pass()
            while (found := self._taken()) is None:
                if self._is_shut:
                    raise StopIteration
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise ConsumerTimeoutError(f"no message came within {self._timeout_s} s")
                self.changed.wait(left)
        holding, one = found
        message = one.message
        return MessageAndMetadata(
            *holding.place,
            one.offset,
            self._value(message.value),
            self._key(message.key),
            message.headers,
            message.timestamp,
        )

    def _pass(self) -> None:
        if self._last is not None:
            holding, offset = self._last
            holding.passed = offset
            self._last = None

    def _taken(self) -> tuple[Holding, MessageAndOffset] | None:
        while self._chunks and not self._is_shut:
            holding, messages = self._chunks[0]
            if messages and not holding.is_over:
                one = messages.popleft()
                holding.consumed = one.next_offset
                self._last = holding, one.next_offset
                return holding, one
            self._chunks.popleft()
            self.on_room()
        return None

    # --- the connector's side -----------------------------------------------------------------------------------------

    def has_room(self) -> bool:
        return len(self._chunks) < self._most_chunks

    def put(self, holding: Holding, messages: deque[MessageAndOffset]) -> None:
        with self.changed:
            if not holding.is_over:
                self._chunks.append((holding, messages))
                self.changed.notify_all()

    def shut(self) -> None:
        """It ends, also for who waits."""
        with self.changed:
            self._is_shut = True
            self.changed.notify_all()
