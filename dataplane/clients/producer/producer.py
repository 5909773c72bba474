"""`Producer`: what the documents show, for both ways of sending.

class Producer {
  /* Sends the data, partitioned by key to the topic using either the synchronous or the asynchronous producer */
  public void send(kafka.javaapi.producer.ProducerData producerData);
  public void send(java.util.List<kafka.javaapi.producer.ProducerData> producerData);
  public void close();
}
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import ClosedError
from dataplane.clients.producer.batching import Batching
from dataplane.clients.producer.config import ProducerConfig
from dataplane.clients.producer.data import CallbackHandler, EventHandler, ProducerData, Sends, Sent
from dataplane.clients.producer.sending import Sender
from dataplane.clients.settings import addresses, named
from dataplane.clients.zookeeper import ZooKeeper, brokers_of


class _Passes:
    """The event handler where none is set."""

    def handle(self, events: Sequence[ProducerData], sender: Sends) -> tuple[Sent, ...]:
        return sender.send(events)


class Producer:
    """Threads may share one. Raises NoBrokerError where neither ZooKeeper nor a broker answers."""

    def __init__(
        self, config: ProducerConfig, *, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._zookeeper = ZooKeeper(config.zk_connect, access=config.zk_access) if config.zk_connect else None
        static = addresses(config.broker_list) if config.broker_list else []
        zookeeper = self._zookeeper
        self._cluster = Cluster(
            config,
            (lambda: static) if zookeeper is None else (lambda: brokers_of(zookeeper, config)),
            may_create_topics=True,
        )
        self._sender = Sender(config, self._cluster, now_ms)
        self._handler: EventHandler = named("event.handler", config.event_handler or _Passes, {})
        callback: CallbackHandler = named("callback.handler", config.callback_handler or CallbackHandler, {})
        self._turn = threading.Lock()
        self._closed = False
        self._batching = Batching(config, self._handle, callback) if config.is_async else None

    def send(self, data: ProducerData | Sequence[ProducerData]) -> tuple[Sent, ...]:
        """Sync: where the messages are; raises FailedToSendError. Async: nothing; raises QueueFullError. Raises ClosedError."""
        events = (data,) if isinstance(data, ProducerData) else tuple(data)
        if self._closed:
            raise ClosedError("the producer is closed")
        if self._batching is not None:
            self._batching.put(events)
            return ()
        return self._handle(events)

    def close(self) -> None:
        """What is in the queue is sent first. Can be called again."""
        self._closed = True
        if self._batching is not None:
            self._batching.close()
        with self._turn:
            self._cluster.close()
        if self._zookeeper is not None:
            self._zookeeper.close()

    def _handle(self, events: Sequence[ProducerData]) -> tuple[Sent, ...]:
        with self._turn:
            return self._handler.handle(events, self._sender)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
