"""Topic configurations reach every broker, also when it was away, and when it is asked before the notification."""

from __future__ import annotations

from random import Random

import pytest

from dataplane.cluster.paths import (
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    config_change_json,
    config_json,
    topic_config_path,
)
from dataplane.cluster.topic_configs import TopicConfigs
from dataplane.cluster.topic_settings import TOPIC_SETTINGS, checked_overrides
from dataplane.config import Settings
from dataplane.doors import Callback, Create, Delete, Doors, Operation, SetData, Stat
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.storage.config import LogConfig
from dataplane.tasks import Future, Task
from tests.simulation.virtual_time import VirtualTime
from tests.simulation.zookeeper import ZooKeeperServer


class World:
    def __init__(self) -> None:
        self.time = VirtualTime()
        self.server = ZooKeeperServer(self.time.call_later, lambda: 0.001)
        self.server.publish(self.server.tree.create_parents(f"{CONFIG_CHANGES}/x"))
        self.server.publish(self.server.tree.create_parents(f"{TOPIC_CONFIGS}/x"))
        self.zookeeper = self.server.connect(2.0)
        self.configs = TopicConfigs(Doors(self.time, None, self.zookeeper, None, Random(1)))  # type: ignore[arg-type]
        self.changed: list[str] = []
        self.configs.on_change(self.changed.append)

    def put(self, topic: str, *, tell: bool = True, **config: str) -> None:
        path, data = topic_config_path(topic), config_json({k.replace("_", "."): v for k, v in config.items()})
        known = self.server.tree.find(path) is not None
        operations: list[Operation] = [SetData(path, data) if known else Create(path, data)]
        if tell:
            operations.append(Create(CONFIG_CHANGE_PREFIX, config_change_json(topic), sequential=True))
        self.server.write(operations)


def test_what_stands_at_the_start_and_what_comes_later_is_known() -> None:
    world = World()
    world.put("a", retention_ms="1")
    world.time.wait(world.configs.start())
    assert world.configs.get("a") == {"retention.ms": "1"}
    world.put("a", retention_ms="2")
    world.put("b", min_insync_replicas="2")
    world.time.run(1)
    assert (world.configs.get("a"), world.configs.get("b")) == ({"retention.ms": "2"}, {"min.insync.replicas": "2"})
    assert world.configs.get("c") == {}
    assert world.changed == ["a", "a", "b"]


def test_many_changes_are_read_together() -> None:
    """All notifications are listed each time, and thousands of topics may be created at once."""
    world = World()
    readings: list[float] = []
    children = world.zookeeper.children

    def listed(path: str, watch: Callback | None = None) -> Future[list[str]]:
        if path == CONFIG_CHANGES:
            readings.append(world.time.monotonic())
        return children(path, watch)

    world.zookeeper.children = listed  # type: ignore[method-assign]
    world.time.wait(world.configs.start())
    world.time.run(1)
    began = world.time.monotonic()
    for number in range(200):
        world.put(f"t{number}", retention_ms="1")
        world.time.run(0.005 if number else 0.05)
        if not number:
            assert world.configs.get("t0") == {"retention.ms": "1"}, "the first is known at once"
    world.time.run(1)
    assert all(world.configs.get(f"t{number}") == {"retention.ms": "1"} for number in range(200))
    assert len([at for at in readings if at > began]) <= 12


def test_very_many_changes_are_read_some_at_a_time() -> None:
    world = World()
    world.time.wait(world.configs.start())
    world.time.run(1)
    under_way, most, read = 0, 0, world.zookeeper.get

    def get(path: str, watch: Callback | None = None) -> Future[tuple[bytes, Stat]]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        answer = read(path, watch)

        def over(_: Future[tuple[bytes, Stat]]) -> None:
            nonlocal under_way
            under_way -= 1

        answer.then(over)
        return answer

    world.zookeeper.get = get  # type: ignore[method-assign]
    for number in range(1_000):
        world.put(f"t{number}", retention_ms="1")
    world.time.run(0.5)
    assert all(world.configs.get(f"t{number}") == {"retention.ms": "1"} for number in range(1_000))
    assert most <= 128


def test_in_a_storm_of_changes_a_broker_keeps_up_and_does_not_read_everything_over_and_over() -> None:
    """The controller keeps the newest thousand notifications. Whoever is further behind has to read all there is."""
    world = World()
    world.time.wait(world.configs.start())
    world.time.run(1)
    readings, children = 0, world.zookeeper.children

    def listed(path: str, watch: Callback | None = None) -> Future[list[str]]:
        nonlocal readings
        readings += path == TOPIC_CONFIGS
        return children(path, watch)

    world.zookeeper.children = listed  # type: ignore[method-assign]
    for number in range(10_000):
        world.put(f"t{number % 20}", retention_ms=str(number))
        if not number % 200:
            for old in sorted(world.server.tree.children(CONFIG_CHANGES))[:-1_000]:
                world.server.write([Delete(f"{CONFIG_CHANGES}/{old}")])
            world.time.run(0.1)
    world.time.run(1)
    assert readings == 0
    assert world.configs.get("t19") == {"retention.ms": "9999"}


def test_a_new_topic_can_be_read_before_its_notification() -> None:
    world = World()
    world.time.wait(world.configs.start())
    world.put("a", tell=False, min_insync_replicas="2")
    assert world.configs.get("a") == {}
    world.time.wait(Task(world.configs.refresh(["a", "missing"])))
    assert world.configs.get("a") == {"min.insync.replicas": "2"}


def test_what_was_changed_while_the_session_was_gone_is_read_afterwards() -> None:
    world = World()
    world.put("a", retention_ms="1")
    world.put("gone", retention_ms="1")
    world.time.wait(world.configs.start())
    world.zookeeper.cut()
    world.time.run(5)
    world.put("a", retention_ms="2", tell=False)
    world.server.write([Delete(topic_config_path("gone"))])
    world.zookeeper.resume()
    world.time.run(2)
    assert (world.configs.get("a"), world.configs.get("gone")) == ({"retention.ms": "2"}, {})


def test_a_gap_in_the_notifications_makes_it_read_everything() -> None:
    world = World()
    world.put("a", retention_ms="1")
    world.time.wait(world.configs.start())
    world.zookeeper.suspend()
    for number in range(3):
        world.put("a", retention_ms=str(10 + number))
        world.put("b", retention_ms=str(10 + number))
    for name in world.server.tree.children(CONFIG_CHANGES)[:-1]:
        world.server.write([Delete(f"{CONFIG_CHANGES}/{name}")])
    world.zookeeper.resume()
    world.time.run(2)
    assert (world.configs.get("a"), world.configs.get("b")) == ({"retention.ms": "12"}, {"retention.ms": "12"})


def test_a_topic_that_is_only_compacted_loses_nothing_by_age_or_size() -> None:
    defaults = LogConfig.from_settings(Settings())
    compacted = defaults.with_topic({"cleanup.policy": "compact", "retention.ms": "5"})
    both = defaults.with_topic({"cleanup.policy": "compact,delete", "retention.ms": "5"})
    assert (compacted.retention_ms, compacted.retention_bytes, both.retention_ms) == (-1, -1, 5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no.such.config", "1"),
        ("retention.ms", "soon"),
        ("retention.ms", "-2"),
        ("min.insync.replicas", "0"),
        ("segment.bytes", str(2**31)),
        ("cleanup.policy", "burn"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("message.downconversion.enable", "yes"),
        ("compression.type", "bzip2"),
        ("message.timestamp.type", "Never"),
        ("unclean.leader.election.enable", "perhaps"),
        ("leader.replication.throttled.replicas", "1,2"),
        ("follower.replication.throttled.replicas", "*,0:1"),
    ],
)
def test_a_value_that_would_not_be_honoured_is_refused_with_a_sentence(name: str, value: str) -> None:
    with pytest.raises(ApiError) as refused:
        checked_overrides({name: value}, Settings())
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert name in str(refused.value)


def test_every_default_is_a_value_that_is_taken() -> None:
    settings = Settings()
    defaults = {name: setting.default_of(settings) for name, setting in TOPIC_SETTINGS.items()}
    assert checked_overrides(dict(defaults), settings) == defaults


def test_null_is_not_a_value_of_a_new_topic() -> None:
    with pytest.raises(ApiError) as refused:
        checked_overrides({"retention.ms": None}, Settings())
    assert refused.value.code is ErrorCode.INVALID_CONFIG


def test_very_many_topics_are_read_some_at_a_time() -> None:
    world = World()
    world.time.wait(world.configs.start())
    world.put("t-999", tell=False, retention_ms="9")
    under_way = most = 0
    get = world.zookeeper.get

    def counted(path: str, watch: Callback | None = None) -> Future[tuple[bytes, Stat]]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        answer = get(path, watch)

        def over(_: object) -> None:
            nonlocal under_way
            under_way -= 1

        answer.then(over)
        return answer

    world.zookeeper.get = counted  # type: ignore[method-assign]
    world.time.wait(Task(world.configs.refresh(f"t-{number}" for number in range(1_000))))
    assert 1 < most <= 128
    assert world.configs.get("t-999") == {"retention.ms": "9"}
