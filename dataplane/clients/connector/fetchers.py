"""Threads that fill streams: one for each broker that leads a partition of ours, and one that finds leaders.

A holding goes from the finder to the fetcher of its leader, and back when the fetcher is told that the leader is another
one, or loses its connection. A fetcher asks only for partitions whose stream has room, so that a stream that nobody reads
holds up no other. Holdings that are over are forgotten where they are met.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence

from dataplane.clients.cluster import Cluster
from dataplane.clients.connection import Connection, opened
from dataplane.clients.connector.config import LARGEST, ConsumerConfig
from dataplane.clients.connector.streams import Holding
from dataplane.clients.errors import BrokerError, ClientError
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME, Fetched, FetchRequest, fetch, offset_at
from dataplane.clients.settings import Address
from dataplane.protocol.errors import ErrorCode

LOG = logging.getLogger(__name__)


class Fetchers:
    """See above. `bootstrap`: where brokers are."""

    def __init__(self, config: ConsumerConfig, bootstrap: Callable[[], Sequence[Address]]) -> None:
        self.config = config
        self.changed = threading.Condition()
        self.is_closed = False
        self._cluster = Cluster(config, bootstrap)
        self._homeless: list[Holding] = []
        self._pauses = False
        self._fetchers: dict[int, _Fetcher] = {}
        self._finder = threading.Thread(target=self._find, name="sluice-leader-finder", daemon=True)
        self._finder.start()

    def start(self, holding: Holding) -> None:
        """Fill its stream from now on, until the holding is over."""
        with self.changed:
            self._homeless.append(holding)
            self.changed.notify_all()

    def give_back(self, holdings: Sequence[Holding]) -> None:
        """Their fetcher could not: after a pause, for whoever leads then."""
        with self.changed:
            self._homeless += holdings
            self._pauses = True
            self.changed.notify_all()

    def woken(self) -> None:
        """A stream has room again."""
        with self.changed:
            self.changed.notify_all()

    def close(self) -> None:
        """All threads have ended when this returns."""
        with self.changed:
            self.is_closed = True
            fetchers = list(self._fetchers.values())
            self.changed.notify_all()
        self._cluster.close()
        for fetcher in fetchers:
            fetcher.close()
        self._finder.join()
        self._cluster.close()

    def _find(self) -> None:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self._homeless or self.is_closed)
                if self._pauses:
                    self.changed.wait_for(lambda: self.is_closed, self.config.refresh_leader_backoff_ms / 1000)
                if self.is_closed:
                    return
                self._pauses = False
                waiting = [one for one in self._homeless if not one.is_over]
                self._homeless = []
            left = self._placed(waiting)
            if left:
                self.give_back(left)

    def _placed(self, waiting: list[Holding]) -> list[Holding]:
        """Those that still have no leader that we know."""
        by_leader: dict[int, list[Holding]] = defaultdict(list)
        try:
            topics = self._cluster.refresh({one.place[0] for one in waiting}) if waiting else {}
        except ClientError as error:
            LOG.info("leaders are not known: %s", error)
            return waiting
        for one in waiting:
            topic = topics.get(one.place[0])
            by_leader[-1 if topic is None else topic.leader(one.place[1])].append(one)
        left = by_leader.pop(-1, [])
        addresses = self._cluster.brokers()
        for leader, some in by_leader.items():
            if leader in addresses:
                self._hand_to(leader, addresses[leader], some)
            else:
                left += some
        return left

    def _hand_to(self, leader: int, address: Address, some: list[Holding]) -> None:
        with self.changed:
            if self.is_closed:
                return
            fetcher = self._fetchers.get(leader)
            if fetcher is None or fetcher.is_over:
                fetcher = self._fetchers[leader] = _Fetcher(self, leader, address)
            fetcher.holdings += some
            self.changed.notify_all()


class _Fetcher:
    """The thread for one broker. It ends with its connection: whoever needs the broker again gets another."""

    def __init__(self, owner: Fetchers, broker: int, address: Address) -> None:
        self._owner = owner
        self._config = owner.config
        self._address = address
        self._connection: Connection | None = None
        self.holdings: list[Holding] = []
        self.is_over = False
        self._thread = threading.Thread(target=self._run, name=f"sluice-fetcher-{broker}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """With `Fetchers.is_closed` set: it has ended when this returns."""
        connection = self._connection
        if connection is not None:
            connection.close()
        self._thread.join()

    def _run(self) -> None:
        owner = self._owner
        try:
            self._connection = opened(self._address, self._config)
            while (ready := self._ready()) is not None:
                self._fetch(self._connection, ready)
        except ClientError as error:
            if not owner.is_closed:
                LOG.info("fetching from %s:%d has ended: %s", *self._address, error)
        finally:
            with owner.changed:
                self.is_over = True
                left, self.holdings = self.holdings, []
            if self._connection is not None:
                self._connection.close()
            if left:
                owner.give_back(left)

    def _ready(self) -> list[Holding] | None:
        """Those to ask for now; waits until there are some. None: it is over."""
        owner = self._owner
        with owner.changed:
            while True:
                if owner.is_closed:
                    return None
                self.holdings = [one for one in self.holdings if not one.is_over]
                ready = [one for one in self.holdings if one.stream.has_room()]
                if ready:
                    return ready
                owner.changed.wait()

    def _fetch(self, connection: Connection, ready: list[Holding]) -> None:
        for one in ready:
            if one.fetch_offset is None:
                self._begin(connection, one)
        size = self._config.fetch_size
        begun = [(one, one.fetch_offset) for one in ready if one.fetch_offset is not None]
        requests = [FetchRequest(*one.place, offset, size) for one, offset in begun]
        if not requests:
            return
        answers = fetch(
            connection, requests, max_wait_ms=self._config.fetch_wait_max_ms, min_bytes=self._config.fetch_min_bytes
        )
        for (one, _), fetched in zip(begun, answers, strict=True):
            self._take(connection, one, fetched)

    def _take(self, connection: Connection, one: Holding, fetched: Fetched) -> None:
        if fetched.error_code == ErrorCode.NONE:
            one.put(fetched.entries.messages, fetched.entries.next_offset)
        elif fetched.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            LOG.warning("there is nothing at offset %s of %s-%d", one.fetch_offset, *one.place)
            self._begin(connection, one)
        else:
            self._give_back(one)

    def _begin(self, connection: Connection, one: Holding) -> None:
        time = LATEST_TIME if self._config.autooffset_reset == LARGEST else EARLIEST_TIME
        try:
            one.begin_at(offset_at(connection, *one.place, time))
        except BrokerError as error:
            LOG.info("where %s-%d begins is not known: %s", *one.place, error)
            self._give_back(one)

    def _give_back(self, one: Holding) -> None:
        with self._owner.changed:
            self.holdings = [other for other in self.holdings if other is not one]
        self._owner.give_back([one])
