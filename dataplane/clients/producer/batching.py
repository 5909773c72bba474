"""`producer.type=async`: a queue in memory, and a thread that takes batches out of it.

A batch leaves when it has `batch.size` messages, or `queue.time` after its first one came. When the queue has
`queue.size` messages, `send` waits up to `queue.enqueue.timeout.ms` for room (-1: as long as it takes; 0: not at all) and
then raises QueueFullError. A batch that fails after all tries is given up: the log and the callback handler
are told, and nobody else, as in the documents: who must know sends synchronously.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from dataplane.clients.errors import ClosedError, QueueFullError
from dataplane.clients.producer.config import ProducerConfig
from dataplane.clients.producer.data import CallbackHandler, ProducerData

LOG = logging.getLogger(__name__)


class Batching:
    """Threads may share it. `handle` is called by one thread of its own."""

    def __init__(
        self, config: ProducerConfig, handle: Callable[[Sequence[ProducerData]], object], callback: CallbackHandler
    ) -> None:
        self._config = config
        self._handle = handle
        self._callback = callback
        self._queue: deque[ProducerData] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="sluice-producer", daemon=True)
        self._thread.start()

    def put(self, events: Sequence[ProducerData]) -> None:
        """Raises QueueFullError: the one that found no room and those after it are not taken. Raises ClosedError."""
        for given in events:
            data = self._callback.before_enqueue(given)
            added = self._added(data)
            self._callback.after_enqueue(data, added)
            if not added:
                raise QueueFullError(f"the queue is full: {self._config.queue_size} messages wait to be sent")

    def _added(self, data: ProducerData) -> bool:
        wait_ms = self._config.queue_enqueue_timeout_ms
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._queue) < self._config.queue_size or self._closing,
                None if wait_ms < 0 else wait_ms / 1000,
            )
            if self._closing:
                raise ClosedError("the producer is closed")
            if len(self._queue) >= self._config.queue_size:
                return False
            self._queue.append(data)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """All that is in the queue is sent, or given up, before this returns."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        batch: list[ProducerData] = []
        due = time.monotonic() + self._config.queue_time / 1000
        while True:
            data, is_over = self._next(due)
            if data is not None:
                if not batch:
                    due = time.monotonic() + self._config.queue_time / 1000
                batch += self._callback.after_dequeuing_existing_data(data)
            if len(batch) >= self._config.batch_size or time.monotonic() >= due or is_over:
                self._send(batch)
                batch = []
                due = time.monotonic() + self._config.queue_time / 1000
            if is_over:
                break
        self._send(self._callback.last_batch_before_close())
        self._callback.close()

    def _next(self, due: float) -> tuple[ProducerData | None, bool]:
        """A message, None where none came until then; and whether there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing, max(0.0, due - time.monotonic()))
            if not self._queue:
                return None, self._closing
            data = self._queue.popleft()
            self._changed.notify_all()
            return data, False

    def _send(self, events: Sequence[ProducerData]) -> None:
        if not events:
            return
        error: Exception | None = None
        try:
            self._handle(self._callback.before_sending_data(events))
        except Exception as problem:  # of an encoder too: the thread goes on with the next batch
            LOG.exception("%d messages are given up", len(events))
            error = problem
        self._callback.after_sending_data(events, error)
