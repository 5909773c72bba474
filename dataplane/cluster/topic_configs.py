"""The overrides of topics, as this broker knows them: /config/topics/<t>, kept up to date by /config/changes.

Whoever writes a configuration adds a sequential node that names the topic; every broker follows that directory and
reads what is named. Old notifications are deleted; a broker that finds a gap in the numbers reads everything again, as
it does after a new session.

A new topic's leader must know `min.insync.replicas` before it takes the first record, which may be earlier than the
notification: `refresh` reads the topics that a LeaderAndIsr brings as new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from dataplane.cluster.paths import (
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    parse_config,
    parse_config_change,
    topic_config_path,
)
from dataplane.cluster.watching import RETRY_S, ChildrenWatch, sleep
from dataplane.doors import Doors, NoNodeError, ZooKeeperError
from dataplane.tasks import Future, Task, gather

_NOTHING: Mapping[str, str] = {}


class TopicConfigs:
    """Overrides by topic. `get` is a dictionary look-up."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self._configs: dict[str, Mapping[str, str]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._watch = ChildrenWatch(doors.loop, doors.zookeeper, CONFIG_CHANGES, self._changed)
        self._seen = -1  # number of the last notification that was read
        self._wanted: list[str] | None = None  # names of notifications, to be looked at
        self._task: Task[None] | None = None
        self._complete = False
        self._ready: Future[None] = Future()
        doors.zookeeper.on_session(self._on_session)

    def get(self, topic: str) -> Mapping[str, str]:
        """The overrides of a topic; empty where there are none. Not to be changed."""
        return self._configs.get(topic, _NOTHING)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Called with a topic whose overrides have changed."""
        self._listeners.append(callback)

    def start(self) -> Future[None]:
        """Read everything, then follow. Resolved when everything has been read once."""
        self._watch.start()
        return self._ready

    def stop(self) -> None:
        """Follow no more."""
        self._watch.stop()
        if self._task is not None:
            self._task.cancel()

    async def refresh(self, topics: Iterable[str]) -> None:
        """Read these topics now. Raises ZooKeeperError."""
        names = list(topics)
        for topic, config in zip(names, await gather([Task(self._read(name)) for name in names]), strict=True):
            self._put(topic, config)

    def _on_session(self, state: str) -> None:
        if state == "connected":
            self._complete = False  # the watch has fired as well, and brings us to read

    def _changed(self, names: list[str]) -> None:
        self._wanted = names
        if self._task is None or self._task.done:
            self._task = Task(self._catch_up(), "topic configurations")

    async def _catch_up(self) -> None:
        while self._wanted is not None:
            names, self._wanted = self._wanted, None
            numbers = {int(name.rpartition("_")[2]): name for name in names}
            fresh = sorted(number for number in numbers if number > self._seen)
            try:
                if not self._complete or (numbers and min(numbers) > self._seen + 1):
                    await self._read_all()
                else:
                    await self._read_named([numbers[number] for number in fresh])
            except ZooKeeperError:
                self._wanted = self._wanted or names
                await sleep(self._doors.loop, RETRY_S)
                continue
            self._seen = max([self._seen, *fresh])

    async def _read_all(self) -> None:
        self._complete = True
        try:
            topics = await self._doors.zookeeper.children(TOPIC_CONFIGS)
            for gone in sorted(self._configs.keys() - set(topics)):
                self._put(gone, None)
            await self.refresh(topics)
        except NoNodeError:
            pass
        except ZooKeeperError:
            self._complete = False
            raise
        self._ready.resolve(None)

    async def _read_named(self, names: list[str]) -> None:
        topics: dict[str, None] = {}
        for name in names:
            try:
                data, _ = await self._doors.zookeeper.get(f"{CONFIG_CHANGES}/{name}")
            except NoNodeError:  # deleted as old, and so read long ago or about to be found missing
                continue
            topic = parse_config_change(data)
            if topic is not None:
                topics[topic] = None
        await self.refresh(topics)

    async def _read(self, topic: str) -> Mapping[str, str] | None:
        try:
            data, _ = await self._doors.zookeeper.get(topic_config_path(topic))
        except NoNodeError:
            return None
        return parse_config(data)

    def _put(self, topic: str, config: Mapping[str, str] | None) -> None:
        before = self._configs.get(topic)
        if config is None:
            self._configs.pop(topic, None)
        else:
            self._configs[topic] = config
        if (before or _NOTHING) != (config or _NOTHING):
            for listener in self._listeners:
                listener(topic)
