"""Overrides are altered by what a request says, written so that no other's change is lost, and known to all at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random

import pytest

from dataplane.cluster.alterations import Change, Operation, altered, check_form
from dataplane.cluster.broker_settings import BROKER_SETTINGS, Layers, check_broker_overrides
from dataplane.cluster.config_writer import write_config
from dataplane.cluster.paths import (
    BROKER_CONFIGS,
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES,
    TOPIC_CONFIGS,
    broker_entity,
    entity_change_json,
    entity_config_path,
    topic_config_path,
    topic_entity,
    topic_path,
)
from dataplane.cluster.topic_configs import TopicConfigs
from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigSource, check_overrides
from dataplane.config import Settings
from dataplane.doors import Create, Delete, Doors, NoNodeError, SetData
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import Task, gather
from tests.simulation.virtual_time import VirtualTime
from tests.simulation.zookeeper import ZooKeeperServer
from tests.support.deciding import at_once

LISTS = {"cleanup.policy": "delete"}


def alter(before: Mapping[str, str], *changes: Change, replace: bool = False) -> dict[str, str]:
    return altered(before, changes, list_default=LISTS.get, replace=replace)


def test_set_delete_append_and_subtract_change_what_they_name_and_nothing_else() -> None:
    before = {"retention.ms": "5", "segment.ms": "7"}
    assert alter(before, Change("retention.ms", "6")) == {"retention.ms": "6", "segment.ms": "7"}
    assert alter(before, Change("retention.ms", None, Operation.DELETE)) == {"segment.ms": "7"}
    assert alter(before, Change("other", None, Operation.DELETE)) == before
    added = alter(before, Change("cleanup.policy", "compact", Operation.APPEND))
    assert added == {**before, "cleanup.policy": "delete,compact"}
    assert alter(added, Change("cleanup.policy", "compact", Operation.APPEND)) == added
    taken = alter(added, Change("cleanup.policy", " delete ", Operation.SUBTRACT))
    assert taken == {**before, "cleanup.policy": "compact"}
    assert before == {"retention.ms": "5", "segment.ms": "7"}


def test_the_old_request_replaces_everything() -> None:
    assert alter({"retention.ms": "5", "segment.ms": "7"}, Change("segment.ms", "8"), replace=True) == {
        "segment.ms": "8"
    }


@pytest.mark.parametrize("operation", [Operation.APPEND, Operation.SUBTRACT])
def test_what_is_no_list_is_not_treated_as_one(operation: Operation) -> None:
    with pytest.raises(ApiError) as refused:
        alter({}, Change("retention.ms", "5", operation))
    assert refused.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    "changes",
    [
        [Change("retention.ms", "1"), Change("retention.ms", None, Operation.DELETE)],
        [Change("retention.ms", None)],
        [Change("cleanup.policy", None, Operation.APPEND)],
        [Change("retention.ms", "1", 4)],
        [Change("retention.ms", "1" * 10_000)],
    ],
)
def test_a_request_that_contradicts_itself_is_invalid(changes: list[Change]) -> None:
    with pytest.raises(ApiError) as refused:
        check_form(changes)
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_lags_that_contradict_each_other_are_refused() -> None:
    overrides = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"}
    with pytest.raises(ApiError):
        check_overrides(overrides, overrides, Settings())
    check_overrides(overrides, {**overrides, "max.compaction.lag.ms": "10"}, Settings())


# --- writing ----------------------------------------------------------------------------------------------------------


class World:
    """Two brokers that follow the configurations, and a ZooKeeper with one topic."""

    def __init__(self) -> None:
        self.time = VirtualTime()
        latency = Random(7)
        self.server = ZooKeeperServer(self.time.call_later, lambda: latency.uniform(0.0005, 0.003))
        for path in (CONFIG_CHANGES, TOPIC_CONFIGS, BROKER_CONFIGS, topic_path("t")):
            self.server.publish(self.server.tree.create_parents(f"{path}/x"))
        self.sessions = [self.server.connect(2.0) for _ in range(2)]
        self.configs = [
            TopicConfigs(Doors(self.time, None, session, None, Random(1)))  # type: ignore[arg-type]
            for session in self.sessions
        ]
        for configs in self.configs:
            self.time.wait(configs.start())

    def add(self, at: int, name: str, value: str, topic: str = "t", *, validate_only: bool = False) -> Task:
        write = write_config(
            self.sessions[at],
            topic_entity(topic),
            at_once(lambda before: {**before, name: value}),
            beside=topic_path(topic),
            validate_only=validate_only,
        )
        return Task(write)


def test_changes_made_at_the_same_time_by_different_brokers_all_take_effect() -> None:
    world = World()
    world.time.wait(Task(gather([world.add(n % 2, f"name.{n}", str(n)) for n in range(20)])))
    expected = {f"name.{n}": str(n) for n in range(20)}
    stored, _ = world.time.wait(world.sessions[0].get(topic_config_path("t")))
    assert json.loads(stored)["config"] == expected
    world.time.run(0.5)
    assert [configs.get("t") for configs in world.configs] == [expected, expected]


def test_a_change_that_changes_nothing_is_not_announced() -> None:
    world = World()
    world.time.wait(world.add(0, "a", "1"))
    announced = world.server.tree.children(CONFIG_CHANGES)
    world.time.wait(world.add(0, "a", "1"))
    world.time.wait(world.add(0, "b", "1", validate_only=True))
    assert world.server.tree.children(CONFIG_CHANGES) == announced


def test_no_configuration_outlives_its_topic() -> None:
    world = World()
    with pytest.raises(NoNodeError):
        world.time.wait(world.add(0, "a", "1", topic="missing"))
    assert world.server.tree.find(topic_config_path("missing")) is None
    change = world.add(0, "a", "1")
    world.server.write([Delete(topic_path("t"))])
    with pytest.raises(NoNodeError):
        world.time.wait(change)
    assert world.server.tree.find(topic_config_path("t")) is None


@pytest.mark.parametrize("name", ["a", "zzz", "config_change_x"])
def test_a_node_by_hand_among_the_notifications_keeps_nobody_from_hearing_of_others(name: str) -> None:
    world = World()
    world.time.wait(world.add(0, "a", "1"))
    world.time.run(0.5)
    world.server.write([Create(f"{CONFIG_CHANGES}/{name}")])
    world.time.run(0.5)
    for value in ("2", "3"):
        world.time.wait(world.add(0, "a", value))
        world.time.run(0.5)
        assert world.configs[1].get("t") == {"a": value}


def test_brokers_hear_what_was_set_for_one_of_them_and_for_all() -> None:
    world = World()
    told: list[int] = []
    world.configs[1].on_broker_change(lambda: told.append(1))
    for broker in (None, 2):
        write = write_config(world.sessions[0], broker_entity(broker), at_once(lambda _: {"log.retention.ms": "5"}))
        world.time.wait(Task(write))
        world.time.run(0.5)
    assert world.configs[1].of_broker(None) == world.configs[1].of_broker(2) == {"log.retention.ms": "5"}
    assert world.configs[1].of_broker(3) == {}
    assert len(told) == 2


def test_a_configuration_that_is_no_json_is_left_aside_and_the_next_one_is_heard() -> None:
    world = World()
    world.time.wait(world.add(0, "a", "1"))
    world.time.run(0.5)
    entity = topic_entity("t")
    for data in (b"", b"[]", b"{}", b'{"config": [1]}'):
        change = Create(CONFIG_CHANGE_PREFIX, entity_change_json(entity), sequential=True)
        world.server.write([SetData(entity_config_path(entity), data), change])
        world.time.run(0.1)
    assert world.configs[1].get("t") == {"a": "1"}
    world.time.wait(Task(write_config(world.sessions[0], broker_entity(2), at_once(lambda _: {"b": "2"}))))
    world.time.run(0.5)
    assert world.configs[1].of_broker(2) == {"b": "2"}


# --- brokers ----------------------------------------------------------------------------------------------------------


def test_a_brokers_setting_comes_from_the_nearest_source_that_has_it() -> None:
    retention = BROKER_SETTINGS["log.retention.ms"]
    layers = Layers(Settings(log_retention_ms=10), {"log.retention.ms": "20"}, {"log.retention.ms": "30"})
    assert [(shown.value, shown.source) for shown in layers.of(retention)] == [
        ("30", ConfigSource.DYNAMIC_BROKER),
        ("20", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("10", ConfigSource.STATIC_BROKER),
        (str(168 * 3_600_000), ConfigSource.DEFAULT),
    ]
    assert layers.effective.log_retention_ms == 30
    assert Layers(Settings(log_retention_ms=10), {"log.retention.ms": "20"}).effective.log_retention_ms == 20
    assert Layers(Settings()).effective == Settings()


def test_a_broker_takes_over_nothing_that_it_cannot_honour_whoever_wrote_it() -> None:
    strange = {"log.retention.ms": "soon", "num.partitions": "7", "no.such": "1"}
    assert Layers(Settings(), strange).effective == Settings()


@pytest.mark.parametrize("name", ["num.partitions", "no.such", "broker.id"])
def test_what_is_read_at_the_start_cannot_be_set_while_a_broker_runs(name: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_broker_overrides([name], {name: "1"})
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_every_default_of_a_topic_that_is_honoured_can_be_set_for_brokers_and_the_rates_of_replicas_that_move() -> None:
    fields = {s.setting for s in TOPIC_SETTINGS.values() if s.setting is not None and not s.is_fixed}
    rates = {
        "leader_replication_throttled_rate",
        "follower_replication_throttled_rate",
        "replica_alter_log_dirs_io_max_bytes_per_second",
    }
    assert {s.field for s in BROKER_SETTINGS.values() if s.problem is not None} == fields | rates
    assert "log_retention_ms" in fields


def test_tenants_are_shown_settings_that_kafka_has_and_none_of_ours() -> None:
    shown = {setting.field for setting in BROKER_SETTINGS.values() if setting.for_tenants}
    assert {"num_partitions", "log_retention_ms", "group_max_size", "max_connections"} <= shown
    ours = (
        "usage",
        "quota",
        "tenant",
        "fetch_session",
        "group_bytes",
        "group_max_groups",
        "tcp",
        "controller",
        "log_open",
    )
    assert not [field for field in shown if field.startswith(ours)]
