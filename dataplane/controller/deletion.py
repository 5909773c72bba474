"""Deleting topics: tell everybody to forget them, have every replica removed, then delete the nodes.

/admin/delete_topics/<t> stands from the request to the end, so a controller that crashes in the middle leaves a note,
and the next one begins again (every step can be repeated). A replica whose broker is away is waited for: its log would
otherwise come back as a stranger.

Of very many partitions all of this takes many turns of the loop, within one event of the controller: the elections after a
broker's death wait behind it, as behind any other decision.
"""

from __future__ import annotations

from collections.abc import Iterable

from dataplane.controller.channel import Channels, Key
from dataplane.controller.context import Context, Partition, Topic
from dataplane.controller.state import DELETION, DeletionEvent, DoomedReplica
from dataplane.records.steps import Pace, Steps
from dataplane.tasks import Future

_NOTED_US, _TOLD_US = 1, 5
"""Of one replica."""


class Deletions:
    """Topics on their way out, and how far each replica is."""

    def __init__(self, context: Context, channels: Channels) -> None:
        self._context = context
        self._channels = channels
        self._replicas: dict[str, dict[tuple[int, int], DoomedReplica]] = {}  # topic -> (partition, broker) -> where
        self._topics: dict[str, Topic] = {}
        self._finished: dict[str, Future[None]] = {}

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def standing(self, partitions: Iterable[Partition]) -> list[Partition]:
        """Those that are not being deleted."""
        return [partition for partition in partitions if partition.topic not in self._topics]

    async def begin(self, topic: Topic) -> None:
        """Withdraw a topic and tell its brokers, of very many partitions over many turns.

        Harmless when it has begun. Where it raised before all was noted, it may be called again, and does what is left.
        """
        if topic.name in self._replicas:
            return
        self._topics[topic.name] = topic
        await self._channels.forget(topic.partitions.values())
        await self._channels.in_steps(self._doom(topic))  # only now: brokers hear of metadata first

    def _doom(self, topic: Topic) -> Steps[None]:
        pace = Pace()
        doomed: dict[tuple[int, int], DoomedReplica] = {}
        for partition in topic.partitions.values():
            for broker in partition.replicas:
                doomed[partition.index, broker] = DoomedReplica.DOOMED
            if pace.over(_NOTED_US * len(partition.replicas)):
                yield None
        if topic.name in self._replicas:  # somebody else began with it meanwhile
            return
        self._replicas[topic.name] = doomed
        yield from self._tell(topic.name, pace)

    def finished(self, topic: str) -> Future[None]:
        """Resolved when nothing is left of it."""
        return self._finished.setdefault(topic, Future())

    def blocked(self, topic: str) -> bool:
        """Whether it waits for a broker that is away."""
        return any(where is DoomedReplica.DOOMED for where in self._replicas.get(topic, {}).values())

    async def broker_lost(self, broker_id: int) -> None:
        """What it was told may not have happened. Of very much this is noted over many turns."""
        await self._channels.in_steps(self._lose(broker_id))

    def _lose(self, broker_id: int) -> Steps[None]:
        pace = Pace()
        for name, replicas in list(self._replicas.items()):
            for key in list(replicas):
                if key[1] == broker_id:
                    self._advance(name, [(key, DeletionEvent.BROKER_LOST)])
                if pace.over(_NOTED_US):
                    yield None

    async def broker_back(self) -> None:
        """Tell those that are registered and have something left to remove, of very much over many turns."""
        await self._channels.in_steps(self._tell_all())

    def _tell_all(self) -> Steps[None]:
        pace = Pace()
        for name in list(self._replicas):
            yield from self._tell(name, pace)

    def stopped(self, broker_id: int, removed: Iterable[Key], refused: Iterable[Key]) -> list[str]:
        """A broker's answer: the topics of which every replica is gone now."""
        touched: dict[str, None] = {}
        for event, keys in ((DeletionEvent.CONFIRMED, removed), (DeletionEvent.REFUSED, refused)):
            for topic, index in keys:
                if self._replicas.get(topic, {}).get((index, broker_id)) is DoomedReplica.STOPPING:
                    self._advance(topic, [((index, broker_id), event)])
                    touched[topic] = None
        return [topic for topic in touched if self.removed(topic)]

    def removed(self, topic: str) -> bool:
        """Whether every replica is gone, so that the nodes may go."""
        return all(where is DoomedReplica.REMOVED for where in self._replicas[topic].values())

    def end(self, topic: str) -> None:
        """The nodes are gone."""
        del self._topics[topic], self._replicas[topic]
        self._finished.pop(topic, Future()).resolve(None)

    def _tell(self, name: str, pace: Pace) -> Steps[None]:
        replicas, partitions = self._replicas[name], self._topics[name].partitions
        for index, broker in list(replicas):
            is_doomed = replicas[index, broker] is DoomedReplica.DOOMED
            if is_doomed and self._channels.delete(broker, partitions[index]):
                self._advance(name, [((index, broker), DeletionEvent.TOLD)])
            if pace.over(_TOLD_US if is_doomed else _NOTED_US):
                yield None

    def _advance(self, name: str, steps: Iterable[tuple[tuple[int, int], DeletionEvent]]) -> None:
        replicas = self._replicas[name]
        for key, event in steps:
            replicas[key] = DELETION[replicas[key], event]
