"""The overrides of topics and brokers, as this broker knows them: /config/<kind>/<name>, kept by /config/changes.

Whoever writes a configuration adds a sequential node that names what it was of; every broker follows that directory and
reads what is named. Old notifications are deleted; a broker that finds a gap in the numbers reads everything again, as
it does after a new session.

A new topic's leader must know `min.insync.replicas` before it takes the first record, which may be earlier than the
notification: `refresh` reads the topics that a LeaderAndIsr brings as new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice

from dataplane.cluster.paths import (
    BROKER_CONFIGS,
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    broker_entity,
    entity_config_path,
    parse_config,
    parse_config_change,
    topic_entity,
)
from dataplane.cluster.watching import RETRY_S, ChildrenWatch
from dataplane.doors import Doors, NoNodeError, ZooKeeperError
from dataplane.tasks import Future, Task, gather, sleep

_NOTHING: Mapping[str, str] = {}
_TOPIC = topic_entity("")
_READ_AT_ONCE = 128
"""Entities: about a millisecond of the loop."""
_REST_S = 0.1
"""Between two readings of all notifications, of which each new topic makes one."""


class TopicConfigs:
    """Overrides by entity (`topics/<t>`, `brokers/<id>`). `get` is a dictionary look-up."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._configs: dict[str, Mapping[str, str]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._broker_listeners: list[Callable[[], None]] = []
        self._counters: list[Callable[[int], None]] = []
        self._watch = ChildrenWatch(doors.loop, doors.zookeeper, CONFIG_CHANGES, self._changed, _REST_S)
        self._seen = ""  # the last notification that was read; all names are as long, and end with a number
        self._wanted: list[str] | None = None  # names of notifications, to be looked at
        self._task: Task[None] | None = None
        self._complete = False
        self._ready: Future[None] = Future()
        doors.zookeeper.on_session(self._on_session)

    def get(self, topic: str) -> Mapping[str, str]:
        """The overrides of a topic; empty where there are none. Not to be changed."""
        return self._configs.get(_TOPIC + topic, _NOTHING)

    def of_broker(self, broker: int | None) -> Mapping[str, str]:
        """What was set for one broker while it ran; None: for all brokers. Not to be changed."""
        return self._configs.get(broker_entity(broker), _NOTHING)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Called with a topic whose overrides have changed."""
        self._listeners.append(callback)

    def on_broker_change(self, callback: Callable[[], None]) -> None:
        """Called when the overrides of a broker, or of all, have changed."""
        self._broker_listeners.append(callback)

    def on_notifications(self, callback: Callable[[int], None]) -> None:
        """Called, after some have come or gone, with how many there are: all names are read each time."""
        self._counters.append(callback)

    def start(self) -> Future[None]:
        """Read everything, then follow. Resolved when everything has been read once."""
        self._watch.start()
        return self._ready

    def stop(self) -> None:
        self._watch.stop()
        if self._task is not None:
            self._task.cancel()

    async def refresh(self, topics: Iterable[str]) -> None:
        """Read these topics now. Raises ZooKeeperError."""
        await self.refresh_entities(_TOPIC + topic for topic in topics)

    async def refresh_entities(self, entities: Iterable[str]) -> None:
        """Read these now, some at a time: 20,000 questions at once were a turn of 80 ms. Raises ZooKeeperError."""
        left = iter(entities)
        while some := list(islice(left, _READ_AT_ONCE)):
            await gather([Task(self._read(entity)) for entity in some])

    def _on_session(self, state: str) -> None:
        if state == "connected":
            self._complete = False  # the watch has fired as well, and brings us to read

    def _changed(self, names: list[str]) -> None:
        self._wanted = names
        for tell in self._counters:
            tell(len(names))
        if self._task is None or self._task.done:
            self._task = Task(self._catch_up(), "topic configurations")

    async def _catch_up(self) -> None:
        while self._wanted is not None:
            names, self._wanted = self._wanted, None
            # Of thousands that are still there few are: their names are compared, not their numbers.
            fresh = sorted(name for name in names if name > self._seen and _number(name) is not None)
            try:
                if not self._complete or (names and self._may_have_missed(min(names))):
                    await self._read_all()
                else:
                    await self._read_named(fresh)
            except ZooKeeperError:
                self._wanted = self._wanted or names
                await sleep(self._doors.loop, RETRY_S)
                continue
            self._seen = max([self._seen, *fresh])

    def _may_have_missed(self, oldest: str) -> bool:
        """Whether some that followed the last that was read have gone, where this is the oldest that is there."""
        number, last = _number(oldest), _number(self._seen)
        return number is None or number > (-1 if last is None else last) + 1

    async def _read_all(self) -> None:
        self._complete = True
        try:
            entities = [_TOPIC + topic for topic in await self._children(TOPIC_CONFIGS)]
            entities += [f"brokers/{name}" for name in await self._children(BROKER_CONFIGS)]
            for gone in sorted(self._configs.keys() - set(entities)):
                self._put(gone, None)
            await self.refresh_entities(entities)
        except ZooKeeperError:
            self._complete = False
            raise
        self._ready.resolve(None)

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._doors.zookeeper.children(path)
        except NoNodeError:
            return []

    async def _read_named(self, names: list[str]) -> None:
        """Some at a time: one after the other, a broker would fall behind a storm of them, and read everything each time."""
        entities: dict[str, None] = {}
        for first in range(0, len(names), _READ_AT_ONCE):
            some = names[first : first + _READ_AT_ONCE]
            try:
                read = await gather([self._doors.zookeeper.get(f"{CONFIG_CHANGES}/{name}") for name in some])
            except NoNodeError:  # deleted as old before it was read, and others with it
                await self._read_all()
                return
            for data, _ in read:
                entity = parse_config_change(data)
                if entity is not None:
                    entities[entity] = None
        await self.refresh_entities(entities)

    async def _read(self, entity: str) -> None:
        """Kept at once: answers come in the order of the questions, so what is kept last was read last."""
        try:
            data, _ = await self._doors.zookeeper.get(entity_config_path(entity))
        except NoNodeError:
            self._put(entity, None)
        else:
            with suppress(ValueError):  # somebody's hand: what was known stays
                self._put(entity, parse_config(data))

    def _put(self, entity: str, config: Mapping[str, str] | None) -> None:
        before = self._configs.get(entity)
        if config is None:
            self._configs.pop(entity, None)
        else:
            self._configs[entity] = config
        if (before or _NOTHING) == (config or _NOTHING):
            return
        if entity.startswith(_TOPIC):
            for listener in self._listeners:
                listener(entity.removeprefix(_TOPIC))
        else:
            for tell in self._broker_listeners:
                tell()


def _number(notification: str) -> int | None:
    """Which one it was; None: it is somebody's by hand."""
    number = notification.rpartition("_")[2]
    return int(number) if number.isdecimal() else None
