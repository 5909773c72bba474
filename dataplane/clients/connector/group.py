"""A group's nodes in ZooKeeper, as Kafka 0.8 has them, seen by one of its members.

    /consumers/[group]/ids/[member]                  ephemeral: what it reads (`subscriptions`)
    /consumers/[group]/owners/[topic]/[partition]    ephemeral: the thread that reads it
    /consumers/[group]/offsets/[topic]/[partition]   the offset of the next message that is to be read

In Kafka 0.7, and in the documents, the last name is [broker]-[partition]. Since partitions move from broker to broker, and
offsets with them, it is the partition alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataplane.clients.connector.rebalance import Place
from dataplane.clients.connector.subscriptions import Subscription, parse_registration
from dataplane.clients.zookeeper import Watch, ZooKeeper

LOG = logging.getLogger(__name__)
_TOPICS = "/brokers/topics"
_BROKERS = "/brokers/ids"


@dataclass(frozen=True)
class Seen:
    """What the members of a group go by. `streams`: of each member, how many threads read which topic."""

    partitions: Mapping[str, Sequence[int]]
    streams: Mapping[str, Mapping[str, int]]


class Group:
    """All calls raise NoBrokerError where ZooKeeper does not answer."""

    def __init__(self, zookeeper: ZooKeeper, name: str, member: str) -> None:
        self._zookeeper = zookeeper
        self._at = f"/consumers/{name}"
        self.member = member

    # --- members ------------------------------------------------------------------------------------------------------

    def register(self, subscription: Subscription, now_ms: int) -> None:
        """For this session. A member of the same name, still there from a session before, goes first."""
        path = f"{self._at}/ids/{self.member}"
        for directory in ("ids", "owners", "offsets"):
            self._zookeeper.ensure(f"{self._at}/{directory}")
        self._zookeeper.remove(path)
        self._zookeeper.claim(path, subscription.to_json(now_ms))

    def unregister(self) -> None:
        self._zookeeper.release(f"{self._at}/ids/{self.member}")

    def observe(self, mine: Subscription, watch: Watch, *, internal: bool) -> Seen:
        """Members, and partitions of the topics that this one reads; `watch` is called when any of it changes."""
        zookeeper = self._zookeeper
        members = {}
        for member in zookeeper.children(f"{self._at}/ids", watch):
            data = zookeeper.read(f"{self._at}/ids/{member}")
            subscription = None if data is None else _parsed(member, data)
            if subscription is not None:
                members[member] = subscription
        zookeeper.children(_BROKERS, watch)
        topics = zookeeper.children(_TOPICS, watch) if _needs_topics(mine, members) else []
        partitions = {}
        for topic in mine.of(topics, internal=internal):
            data = zookeeper.read(f"{_TOPICS}/{topic}", watch)
            if data is not None:
                partitions[topic] = sorted(int(number) for number in json.loads(data)["partitions"])
        streams = {member: one.of(topics, internal=internal) for member, one in members.items()}
        return Seen(partitions, streams)

    # --- owners and offsets -------------------------------------------------------------------------------------------

    def claim(self, place: Place, thread: str) -> bool:
        """False: somebody else still has it."""
        return self._zookeeper.claim(self._owner(place), thread.encode())

    def release(self, place: Place) -> None:
        self._zookeeper.release(self._owner(place))

    def watch_owner(self, place: Place, watch: Watch) -> None:
        """`watch` is called when whoever has it lets go; at once, if he has by now."""
        if self._zookeeper.read(self._owner(place), watch) is None:
            watch(None)

    def committed(self, place: Place) -> int | None:
        """The next offset to read; None where the group has not read this partition yet."""
        data = self._zookeeper.read(self._offset(place))
        try:
            return None if data is None else int(data)
        except ValueError:
            LOG.warning("the offset of %s-%d is no number: %r", *place, data)
            return None

    def commit(self, place: Place, offset: int) -> None:
        self._zookeeper.write(self._offset(place), str(offset).encode())

    def _owner(self, place: Place) -> str:
        return f"{self._at}/owners/{place[0]}/{place[1]}"

    def _offset(self, place: Place) -> str:
        return f"{self._at}/offsets/{place[0]}/{place[1]}"


def _parsed(member: str, data: bytes) -> Subscription | None:
    try:
        return parse_registration(data)
    except ValueError as error:  # it cannot be counted, by anybody
        LOG.warning("the registration of %s is none: %s", member, error)
        return None


def _needs_topics(mine: Subscription, members: Mapping[str, Subscription]) -> bool:
    return any(one.topic_filter is not None for one in (mine, *members.values()))
