"""`SimpleConsumer`: the documents' low-level consumer. A connection to one broker, each call one request, no state.

    class SimpleConsumer {
      /* Send fetch request to a broker and get back a set of messages. */
      public ByteBufferMessageSet fetch(FetchRequest request);
      /* Send a list of fetch requests to a broker and get back a response set. */
      public MultiFetchResponse multifetch(List<FetchRequest> fetches);
      /* Get a list of valid offsets (up to maxSize) before the given time, in descending order. */
      public long[] getOffsetsBefore(String topic, int partition, long time, int maxNumOffsets);
    }

Who leads a partition, and where to go on after an error, is the caller's affair: `Cluster` answers the first, the offsets of
what was read the second. A lost connection is made anew by the next call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self, TypeVar

from dataplane.clients.connection import Connection, opened
from dataplane.clients.errors import ConnectionLostError
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME, Fetched, FetchRequest, fetch, offsets_before
from dataplane.clients.messages import MessageAndOffset
from dataplane.clients.settings import ConnectionSettings

__all__ = ["EARLIEST_TIME", "LATEST_TIME", "FetchRequest", "MessageSet", "SimpleConsumer"]
T = TypeVar("T")


class MessageSet:
    """The messages that came of one partition, in order: iterate over it. Raises BrokerError then, if there was an error.

    `next_offset` is where to go on; `valid_bytes` of the documents is meaningless since offsets count messages.
    """

    def __init__(self, fetched: Fetched) -> None:
        self._fetched = fetched

    @property
    def error_code(self) -> int:
        """Kafka's; 0 is none."""
        return self._fetched.error_code

    @property
    def high_watermark(self) -> int:
        """Up to which the partition can be read now; -1 with an error."""
        return self._fetched.high_watermark

    @property
    def next_offset(self) -> int:
        return self._fetched.entries.next_offset

    def __iter__(self) -> Iterator[MessageAndOffset]:
        self._fetched.raise_for_error()
        return iter(self._fetched.entries.messages)

    def __len__(self) -> int:
        return len(self._fetched.entries.messages)


class SimpleConsumer:
    """Threads may share one; they take turns. `max_wait_ms`: a fetch that finds nothing waits at the broker for so long."""

    def __init__(
        self,
        host: str,
        port: int,
        settings: ConnectionSettings | None = None,
        *,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
    ) -> None:
        self._address = (host, port)
        self._settings = ConnectionSettings() if settings is None else settings
        self._max_wait_ms, self._min_bytes = max_wait_ms, min_bytes
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def fetch(self, request: FetchRequest) -> MessageSet:
        """Raises BrokerError, of which OffsetOutOfRangeError is one, CorruptMessageError, ConnectionLostError."""
        (found,) = self.multifetch([request])
        iter(found)
        return found

    def multifetch(self, fetches: Sequence[FetchRequest]) -> list[MessageSet]:
        """One answer to each, in their order; an error is raised by whoever looks into the one that has it."""
        found = self._do(lambda it: fetch(it, fetches, max_wait_ms=self._max_wait_ms, min_bytes=self._min_bytes))
        return [MessageSet(one) for one in found]

    def get_offsets_before(self, topic: str, partition: int, time_ms: int, max_num_offsets: int) -> list[int]:
        """Newest first. `time_ms`: or LATEST_TIME, EARLIEST_TIME. Raises BrokerError, ConnectionLostError."""
        return self._do(lambda it: offsets_before(it, topic, partition, time_ms, max_num_offsets))

    def close(self) -> None:
        """The next call connects again."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _do(self, what: Callable[[Connection], T]) -> T:
        with self._lock:
            if self._connection is None:
                self._connection = opened(self._address, self._settings)
            connection = self._connection
        try:
            return what(connection)
        except ConnectionLostError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
