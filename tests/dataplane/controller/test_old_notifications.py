"""Notifications of changed configurations do not pile up: the controller keeps the newest."""

from __future__ import annotations

from random import Random

from dataplane.cluster.paths import CONFIG_CHANGE_PREFIX, CONFIG_CHANGES, config_change_json
from dataplane.cluster.topic_configs import TopicConfigs
from dataplane.controller.decisions.creation import NewTopic
from dataplane.doors import Create, Doors
from dataplane.tasks import Task
from tests.dataplane.controller.cluster import ControlledCluster


def test_they_do_not_pile_up_while_thousands_of_topics_are_created() -> None:
    """All names are read whenever some have come."""
    cluster = ControlledCluster(1)
    topics = [NewTopic(f"t{number}", 1, 1) for number in range(1_600)]
    created = Task(cluster.controller().controller.create_topics(topics, timeout_s=600))
    most = 0
    while not created.done:
        cluster.run(0.1)
        most = max(most, len(cluster.server.tree.children(CONFIG_CHANGES)))
    assert not [outcome for outcome in created.result() if outcome.error]
    assert 1_000 < most < 1_300


def test_they_do_not_pile_up_in_a_storm_of_changes() -> None:
    """Of changes that others make the controller learns from what it reads as a broker: one a minute would be too late."""
    cluster = ControlledCluster(1)
    cluster.run(5)
    broker = cluster.controller()
    doors = Doors(cluster.time, None, broker.zookeeper, None, Random(1))  # type: ignore[arg-type]
    configs = TopicConfigs(doors)
    configs.on_notifications(broker.controller.notifications_seen)
    configs.start()
    most = 0
    for _ in range(100):
        for _ in range(30):
            cluster.server.write([Create(CONFIG_CHANGE_PREFIX, config_change_json("t"), sequential=True)])
        cluster.run(0.1)
        most = max(most, len(cluster.server.tree.children(CONFIG_CHANGES)))
    assert 1_000 < most < 1_500
    configs.stop()


def test_old_notifications_are_removed_while_a_controller_is_in_office() -> None:
    cluster = ControlledCluster(3)
    for _ in range(1_100):
        cluster.server.write([Create(CONFIG_CHANGE_PREFIX, config_change_json("t"), sequential=True)])
    written = cluster.server.tree.children(CONFIG_CHANGES)
    cluster.run(130)
    left = cluster.server.tree.children(CONFIG_CHANGES)
    assert len(left) == 1_000
    assert sorted(left) == sorted(written)[-1_000:]
