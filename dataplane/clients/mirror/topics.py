"""Topics of the target made, grown and configured as they are at the source. What is deleted there stays here.

Configurations that were set for a topic itself are followed, but for those that are the target's own affair: replication and
its throttles. One that the target refuses is said in the log, once, and left out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from dataplane.clients.cluster import Cluster, Topic
from dataplane.clients.errors import BrokerError, UnsupportedError
from dataplane.clients.mirror import admin
from dataplane.clients.mirror.checkpoints import Followed, TopicIds
from dataplane.clients.mirror.config import Source, Target

LOG = logging.getLogger(__name__)
_OWN = frozenset(
    (
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "message.format.version",
    )
)


def config_changes(source: Mapping[str, str], target: Mapping[str, str]) -> dict[str, str | None]:
    """What makes the target's as the source's. Pure."""
    wanted = {name: value for name, value in source.items() if name not in _OWN}
    set_anew: dict[str, str | None] = {name: value for name, value in wanted.items() if target.get(name) != value}
    taken_back = dict.fromkeys(name for name in target if name not in wanted and name not in _OWN)
    return {**set_anew, **taken_back}


def make_own(
    cluster: Cluster, topic: str, replication_factor: int, needed: Mapping[str, str], wished: Mapping[str, str]
) -> None:
    """A topic of the mirror's own, of one partition. `wished`: settings it gets where it has none and the target takes them.

    Raises ClientError.
    """
    cluster.refresh((topic,))
    admin.create(cluster, topic, 1, replication_factor, needed)
    try:
        there = admin.configs_of(cluster, topic)
        for name, value in wished.items():
            if name not in there:
                admin.configure(cluster, topic, {name: value})
    except (BrokerError, UnsupportedError) as error:  # before Kafka 2.3 settings are not changed one by one
        LOG.info("%s stays as it is: %s", topic, error)


class Claims:
    """Which source a topic of the target comes from: one alone, or their messages would be mixed up. Threads may share it."""

    def __init__(self) -> None:
        self._sources: dict[str, str] = {}

    def takes(self, topic: str, source: str) -> bool:
        """Whether this source is the one; the first that asks is."""
        owner = self._sources.setdefault(topic, source)
        if owner != source:
            LOG.error(
                "%s of %s is not copied: the target's topic comes from %s. A prefix tells them apart",
                topic,
                source,
                owner,
            )
        return owner == source


class TopicSync:
    """Of one source. `run` raises ClientError."""

    def __init__(self, source: Source, target: Target, from_: Cluster, to: Cluster, claims: Claims) -> None:
        self._claims = claims
        self._source, self._target = source, target
        self._from, self._to = from_, to
        self._refused: set[tuple[str, str, str | None]] = set()

    def run(self) -> dict[str, Followed]:
        """Topics of the source that are copied; the target has all of them when this returns."""
        there = self._from.refresh(None)
        wanted = {
            name: topic
            for name, topic in there.items()
            if not topic.is_internal and self._source.copies(name, self._target)
        }
        prefix, source = self._source.prefix, self._source.name
        wanted = {name: topic for name, topic in wanted.items() if self._claims.takes(prefix + name, source)}
        here = self._to.refresh(None)
        followed: dict[str, Followed] = {}
        for name, topic in wanted.items():
            try:
                ours = self._follow(topic, here.get(self._source.prefix + name))
            except BrokerError as error:  # of this topic: it keeps no other from being copied
                if error.retriable:
                    raise
                LOG.warning("%s of %s is not copied: %s", name, self._source.name, error)
                continue
            followed[name] = Followed(len(topic.partitions), TopicIds(_text(topic), _text(ours)))
        return followed

    def _follow(self, theirs: Topic, ours: Topic | None) -> Topic | None:
        """The target's, as far as its brokers tell of it already."""
        name = self._source.prefix + theirs.name
        configs = admin.configs_of(self._from, theirs.name, "the source")
        if ours is None:
            LOG.info("%s is made with %d partitions", name, len(theirs.partitions))
            admin.create(self._to, name, len(theirs.partitions), self._target.replication_factor, {})
            ours = self._to.refresh((name,)).get(name)
        elif len(ours.partitions) < len(theirs.partitions):
            LOG.info("%s grows to %d partitions", name, len(theirs.partitions))
            admin.grow(self._to, name, len(theirs.partitions))
            self._to.refresh((name,))
        for key, value in config_changes(configs, admin.configs_of(self._to, name)).items():
            self._configure(name, key, value)
        return ours

    def _configure(self, name: str, key: str, value: str | None) -> None:
        if (name, key, value) in self._refused:
            return
        try:
            admin.configure(self._to, name, {key: value})
        except BrokerError as error:
            if error.retriable:
                raise
            self._refused.add((name, key, value))
            LOG.warning("%s does without %s=%s: %s", name, key, value, error)


def _text(topic: Topic | None) -> str:
    """The id, as checkpoints have it."""
    return str(topic.id) if topic is not None and topic.id is not None else ""
