"""A cluster as a client sees it: its brokers, who leads which partition, and a connection to each broker that is needed.

It begins with some addresses (a static list, or what ZooKeeper says at that moment) and learns the others by Metadata. What
it knows grows old: whoever is told that a broker is not the leader any more, or is not answered, calls `refresh` and looks
again. Nothing is asked twice here; how often, and with which pause, is for the callers to say: `Backoff`.

Threads may share one. Requests to the same broker take turns; who fetches, and so waits at a broker, has a cluster of
its own.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from dataplane.clients.connection import Connection, opened
from dataplane.clients.errors import BrokerError, ClientError, ConnectionLostError, NoBrokerError
from dataplane.clients.settings import Address, ConnectionSettings
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as Metadata has it."""

    index: int
    leader: int  # NO_LEADER where there is none
    replicas: tuple[int, ...]

    @property
    def has_leader(self) -> bool:
        return self.leader >= 0


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as Metadata has it; `partitions` in the order of their indexes."""

    name: str
    partitions: tuple[Partition, ...]
    is_internal: bool = False
    id: UUID | None = None  # another one when it was made anew; brokers before Kafka 2.8 do not tell it

    def leader(self, partition: int) -> int:
        """NO_LEADER where there is none, or no such partition."""
        return next((one.leader for one in self.partitions if one.index == partition), NO_LEADER)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How often something is tried, and the pause before it is tried again."""

    retries: int
    pause_ms: int

    def run(self, attempt: Callable[[], Any], before_again: Callable[[], object] = lambda: None) -> Any:
        """What `attempt` gives, once it raises nothing retriable. `before_again`: what may help, as looking for the leader."""
        for left in range(self.retries, -1, -1):
            try:
                return attempt()
            except ClientError as error:
                if not (error.retriable and left):
                    raise
            time.sleep(self.pause_ms / 1000)
            try:
                before_again()
            except ClientError as error:
                if not error.retriable:
                    raise
        raise AssertionError("no attempt")


class Cluster:
    """See above. `bootstrap` says addresses to begin with, each time that none of the known ones answers."""

    def __init__(
        self,
        settings: ConnectionSettings,
        bootstrap: Callable[[], Sequence[Address]],
        *,
        may_create_topics: bool = False,
    ) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._may_create_topics = may_create_topics
        self._lock = threading.RLock()
        self._connections: dict[Address, Connection] = {}
        self._brokers: dict[int, Address] = {}
        self._topics: dict[str, Topic] = {}
        self._problems: dict[str, int] = {}  # the error code of a topic that there is no partition of
        self.controller_id = NO_LEADER

    # --- what is known ------------------------------------------------------------------------------------------------

    def topic(self, name: str) -> Topic:
        """Asked for, if it is not known. Raises BrokerError where there is none, NoBrokerError."""
        with self._lock:
            if name not in self._topics:
                self.refresh((name,))
            if name not in self._topics:
                raise BrokerError(self._problems.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), name)
            return self._topics[name]

    def leader(self, topic: str, partition: int) -> int:
        """The broker's id. Raises BrokerError where there is no leader, or no such partition, at the moment."""
        found = self.topic(topic)
        leader = found.leader(partition)
        if leader < 0:
            exists = any(one.index == partition for one in found.partitions)
            code = ErrorCode.LEADER_NOT_AVAILABLE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            raise BrokerError(code, f"{topic}-{partition}")
        return leader

    def brokers(self) -> Mapping[int, Address]:
        """By id, as of the last refresh."""
        with self._lock:
            return dict(self._brokers)

    def refresh(self, topics: Iterable[str] | None) -> Mapping[str, Topic]:
        """Ask for topics, None: for all. What is known of others stays. Raises NoBrokerError."""
        asked = None if topics is None else tuple(dict.fromkeys(topics))
        with self._lock:
            answer = self._metadata(asked)
            self._brokers = {one.node_id: (one.host, one.port) for one in answer.brokers}
            self.controller_id = answer.controller_id
            if asked is None:
                self._topics.clear()
            for one in answer.topics:
                self._learn(one)
            return dict(self._topics)

    def _learn(self, found: MetadataResponseTopic) -> None:
        name = found.name or ""
        if found.error_code != ErrorCode.NONE:
            self._topics.pop(name, None)
            self._problems[name] = found.error_code
            return
        partitions = sorted(
            (Partition(one.partition_index, one.leader_id, one.replica_nodes) for one in found.partitions),
            key=lambda one: one.index,
        )
        self._problems.pop(name, None)
        self._topics[name] = Topic(
            name, tuple(partitions), found.is_internal, found.topic_id if found.topic_id.int else None
        )

    def _metadata(self, topics: tuple[str, ...] | None) -> MetadataResponse:
        def ask(connection: Connection) -> MetadataResponse:
            asked = None if topics is None else tuple(MetadataRequestTopic(name=name) for name in topics)
            if asked is None and connection.version(ApiKey.METADATA) == 0:
                asked = ()  # how version 0 says "all"
            request = MetadataRequest(topics=asked, allow_auto_topic_creation=self._may_create_topics)
            answer: MetadataResponse = connection.call(request)
            return answer

        return self.on_any(ask)  # type: ignore[no-any-return]

    # --- asking -------------------------------------------------------------------------------------------------------

    def call(self, broker: int, request: Any, *, timeout_ms: int | None = None) -> Any:
        """A broker's answer. Raises ConnectionLostError, after which the next call connects anew."""
        return self.on(broker, lambda connection: connection.call(request, timeout_ms=timeout_ms))

    def on(self, broker: int, do: Callable[[Connection], Any]) -> Any:
        """What is done on a connection to a broker. Raises as `call`."""
        with self._lock:
            address = self._brokers.get(broker)
        if address is None:
            raise ConnectionLostError(f"broker {broker} has no address")
        return self._at(address, do)

    def on_any(self, do: Callable[[Connection], Any]) -> Any:
        """What is done on a connection to some broker. Raises NoBrokerError where none answers, what the last one said."""
        with self._lock:
            known = list(self._brokers.values())
            with_one = [address for address in known if address in self._connections]
        problem: ClientError | None = None
        for addresses in (with_one, random.sample(known, len(known)), None):
            for address in self._bootstrap() if addresses is None else addresses:
                try:
                    return self._at(address, do)
                except ConnectionLostError as error:
                    problem = error
        raise NoBrokerError(f"no broker answers: {problem or 'no address is known'}")

    def _at(self, address: Address, do: Callable[[Connection], Any]) -> Any:
        with self._lock:
            connection = self._connections.get(address)
            if connection is None:
                connection = self._connections[address] = opened(address, self._settings)
        try:
            return do(connection)
        except ConnectionLostError:
            with self._lock:
                if self._connections.get(address) is connection:
                    del self._connections[address]
            connection.close()
            raise

    def close(self) -> None:
        """Calls that are under way get ConnectionLostError."""
        with self._lock:
            connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
