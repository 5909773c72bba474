"""Notifications of changed configurations do not pile up: the controller keeps the newest."""

from __future__ import annotations

from dataplane.cluster.paths import CONFIG_CHANGE_PREFIX, CONFIG_CHANGES, config_change_json
from dataplane.doors import Create
from tests.dataplane.controller.cluster import ControlledCluster


def test_old_notifications_are_removed_while_a_controller_is_in_office() -> None:
    cluster = ControlledCluster(3)
    for _ in range(1_100):
        cluster.server.write([Create(CONFIG_CHANGE_PREFIX, config_change_json("t"), sequential=True)])
    written = cluster.server.tree.children(CONFIG_CHANGES)
    cluster.run(130)
    left = cluster.server.tree.children(CONFIG_CHANGES)
    assert len(left) == 1_000
    assert sorted(left) == sorted(written)[-1_000:]
