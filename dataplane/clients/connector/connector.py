"""`ConsumerConnector`: what the documents show.

    ConsumerConnector connector = Consumer.create(consumerConfig);
    interface ConsumerConnector {
      public Map<String, List<KafkaStream>> createMessageStreams(Map<String, Int> topicCountMap);
      public List<KafkaStream> createMessageStreamsByFilter(TopicFilter topicFilter, int numStreams);
      public commitOffsets();
      public shutdown();
    }

A member registers itself, then works out who gets what, from what it sees in ZooKeeper, each time that any of it changes:
members, brokers, partitions, topics where it reads by a filter. All that is done by one thread of its own, which commits
by the clock as well; ZooKeeper's watches only wake it. What it holds already and keeps is read on without a pause. Before it
releases a partition it ends the holding and, with autocommit, commits how far it was read: whoever claims it then goes on
there, and nothing is read twice.

When the session in ZooKeeper ends, all that we held is somebody else's: holdings end without a commit, and with the next
session we register again.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from dataplane.clients.connector.config import ConsumerConfig
from dataplane.clients.connector.fetchers import Fetchers
from dataplane.clients.connector.group import Group
from dataplane.clients.connector.rebalance import STRATEGIES, Place, assigned, changes, thread_id
from dataplane.clients.connector.streams import Decoder, Holding, KafkaStream
from dataplane.clients.connector.subscriptions import Subscription, TopicFilter
from dataplane.clients.errors import ClientError, ClosedError, ConfigurationError, RebalanceError
from dataplane.clients.zookeeper import ZooKeeper, brokers_of

LOG = logging.getLogger(__name__)


def _as_it_is(data: bytes | None) -> Any:
    return data


class ConsumerConnector:
    """One member of a group. Streams are asked for once; each is read by one thread. Raises NoBrokerError without ZooKeeper."""

    def __init__(
        self, config: ConsumerConfig, *, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._config = config
        self._now_ms = now_ms
        self.member = config.consumer_id or f"{socket.gethostname()}:{uuid.uuid4()}"
        self._zookeeper = zookeeper = ZooKeeper(
            config.zk_connect,
            session_ms=config.zk_session_timeout_ms,
            connect_ms=config.zk_connection_timeout_ms,
            access=config.zk_access,
        )
        self._group = Group(zookeeper, config.group_id, self.member)
        self._fetchers = Fetchers(config, lambda: brokers_of(zookeeper, config))
        self._share = STRATEGIES[config.partition_assignment_strategy]
        self._subscription: Subscription | None = None
        self._streams: dict[str, KafkaStream] = {}  # by the topic and thread, or by the thread where there is a filter
        self._held: dict[Place, Holding] = {}
        self._turn = threading.RLock()  # who holds it may change what is held
        self._woken = threading.Condition()
        self._is_due = False  # something has changed: it is to be worked out anew
        self._is_expired = False
        self._is_shut = False
        self._thread = threading.Thread(target=self._run, name="sluice-rebalance", daemon=True)
        zookeeper.on_expiry(self._session_changed)

    # --- what the documents show --------------------------------------------------------------------------------------

    def create_message_streams(
        self, topic_count_map: Mapping[str, int], *, key_decoder: Decoder = _as_it_is, decoder: Decoder = _as_it_is
    ) -> dict[str, list[KafkaStream]]:
        """Of each topic so many streams. Raises RebalanceError, ClosedError, ConfigurationError."""
        if not topic_count_map or any(count < 1 for count in topic_count_map.values()):
            raise ConfigurationError("each topic has at least one stream")
        streams = {
            topic: [self._stream(key_decoder, decoder) for _ in range(count)]
            for topic, count in topic_count_map.items()
        }
        self._begin(
            Subscription(dict(topic_count_map)),
            {
                self._name(topic, thread_id(self.member, number)): stream
                for topic, some in streams.items()
                for number, stream in enumerate(some)
            },
        )
        return streams

    def create_message_streams_by_filter(
        self,
        topic_filter: TopicFilter,
        num_streams: int = 1,
        *,
        key_decoder: Decoder = _as_it_is,
        decoder: Decoder = _as_it_is,
    ) -> list[KafkaStream]:
        """So many streams, over all topics that the filter lets pass, those that come later as well. Raises as the other."""
        if num_streams < 1:
            raise ConfigurationError("there is at least one stream")
        streams = [self._stream(key_decoder, decoder) for _ in range(num_streams)]
        self._begin(
            Subscription({}, topic_filter, num_streams),
            {self._name(None, thread_id(self.member, number)): stream for number, stream in enumerate(streams)},
        )
        return streams

    def commit_offsets(self) -> None:
        """Of all messages that were handed out so far. Raises NoBrokerError."""
        with self._turn:
            self._commit(self._held.values(), handed_out=True)

    def shutdown(self) -> None:
        """Streams end, offsets are committed where that is set, partitions are given up. Can be called again."""
        with self._woken:
            self._is_shut = True
            self._woken.notify_all()
        if self._thread.is_alive():
            self._thread.join()
        self._fetchers.close()
        with self._turn:
            for stream in self._streams.values():
                stream.shut()
            try:
                self._release(list(self._held))
                if self._subscription is not None:
                    self._group.unregister()
            except ClientError as error:  # the session ends anyway
                LOG.warning("the group was left without a word: %s", error)
            self._held.clear()
        self._zookeeper.close()

    # --- the beginning ------------------------------------------------------------------------------------------------

    def _stream(self, key: Decoder, value: Decoder) -> KafkaStream:
        stream = KafkaStream(self._config.consumer_timeout_ms, self._config.queuedchunks_max, key, value)
        stream.on_room = self._fetchers.woken
        return stream

    def _begin(self, subscription: Subscription, streams: dict[str, KafkaStream]) -> None:
        with self._turn:
            if self._is_shut:
                raise ClosedError("the connector is shut down")
            if self._subscription is not None:
                raise ConfigurationError("a connector makes its streams once")
            self._subscription, self._streams = subscription, streams
            self._group.register(subscription, self._now_ms())
            for left in range(self._config.rebalance_max_retries, -1, -1):
                if self._rebalance():
                    break
                if not left:
                    self._release(list(self._held))
                    self._group.unregister()
                    raise RebalanceError(f"{self.member} could not claim its partitions in {self._config.group_id}")
                self._wait(self._config.rebalance_backoff_ms / 1000)
                if self._is_shut:
                    raise ClosedError("the connector was shut down meanwhile")
        self._thread.start()

    @staticmethod
    def _name(topic: str | None, thread: str) -> str:
        return thread if topic is None else f"{topic}/{thread}"

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        interval_s = self._config.autocommit_interval_ms / 1000
        commit_at = time.monotonic() + interval_s
        is_whole = True  # what we shall have, we have
        while True:
            pause_s = max(0.0, commit_at - time.monotonic())
            if not is_whole:
                pause_s = min(pause_s, self._config.rebalance_backoff_ms / 1000)
            is_due = self._wait(pause_s)
            if self._is_shut:
                return
            with self._turn:
                try:
                    if is_due or not is_whole:
                        is_whole = False
                        is_whole = self._again()
                    if self._config.autocommit_enable and time.monotonic() >= commit_at:
                        self._commit(self._held.values(), handed_out=False)
                except ClientError as error:
                    LOG.warning("%s in %s: %s", self.member, self._config.group_id, error)
            if time.monotonic() >= commit_at:
                commit_at = time.monotonic() + interval_s

    def _wait(self, at_most_s: float) -> bool:
        """Until something changes, shutdown included. Whether it did."""
        with self._woken:
            self._woken.wait_for(lambda: self._is_due or self._is_shut, at_most_s)
            is_due, self._is_due = self._is_due, False
            return is_due

    def _again(self) -> bool:
        assert self._subscription is not None
        with self._woken:
            is_expired, self._is_expired = self._is_expired, False
        if is_expired:
            for holding in self._held.values():
                holding.end()
            self._held.clear()
            try:
                self._group.register(self._subscription, self._now_ms())
            except ClientError:
                self._is_expired = True
                raise
        return self._rebalance()

    def _noticed(self, _: object) -> None:
        """A watch, on kazoo's thread."""
        with self._woken:
            self._is_due = True
            self._woken.notify_all()

    def _session_changed(self, is_new: bool) -> None:
        """On kazoo's thread."""
        with self._woken:
            self._is_expired = True
        if not is_new:
            for holding in tuple(self._held.values()):
                holding.end()  # somebody else may read it from now on
        self._noticed(None)

    # --- the algorithm ------------------------------------------------------------------------------------------------

    def _rebalance(self) -> bool:
        """One try; whether we have all that we shall have."""
        assert self._subscription is not None
        seen = self._group.observe(self._subscription, self._noticed, internal=not self._config.exclude_internal_topics)
        owners = assigned(seen.partitions, seen.streams, self._share)
        mine = {thread_id(self.member, number) for number in range(len(self._streams))}
        wanted = {place: thread for place, thread in owners.items() if thread in mine}
        held = {place: holding.thread for place, holding in self._held.items() if not holding.is_over}
        release, claim = changes(held, wanted)
        self._release(release)
        missing = [place for place, thread in claim if not self._claimed(place, thread)]
        for place in missing:
            self._group.watch_owner(place, self._noticed)
        if release or claim:
            LOG.info("%s has %d partitions and waits for %d", self.member, len(self._held), len(missing))
        return not missing

    def _claimed(self, place: Place, thread: str) -> bool:
        if not self._group.claim(place, thread):
            return False
        stream = self._streams.get(self._name(place[0], thread)) or self._streams[self._name(None, thread)]
        holding = self._held[place] = Holding(place, thread, stream, self._group.committed(place))
        self._fetchers.start(holding)
        return True

    def _release(self, places: Iterable[Place]) -> None:
        ended = [self._held[place] for place in places]
        for holding in ended:
            holding.end()
        if self._config.autocommit_enable:
            self._commit(ended, handed_out=True)
        for holding in ended:
            self._group.release(holding.place)
            del self._held[holding.place]

    def _commit(self, holdings: Iterable[Holding], *, handed_out: bool) -> None:
        for holding in holdings:
            if handed_out:
                holding.passed = holding.consumed  # the clock does not go back behind it
            offset = holding.passed
            if offset is not None and offset != holding.committed:
                self._group.commit(holding.place, offset)
                holding.committed = offset

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()


class Consumer:
    """As in the documents: ``Consumer.create(config)``."""

    @staticmethod
    def create(config: ConsumerConfig) -> ConsumerConnector:
        """Connected to ZooKeeper, and no member yet."""
        return ConsumerConnector(config)
