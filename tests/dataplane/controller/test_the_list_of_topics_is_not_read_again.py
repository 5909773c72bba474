"""A controller that makes and deletes topics knows which there are: it reads the list when somebody else has changed it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dataplane.cluster.paths import DELETE_TOPICS, TOPICS, delete_topic_path, topic_path
from dataplane.doors import Create, Delete
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import sleep
from tests.dataplane.controller.cluster import ControlledCluster


def _readings(cluster: ControlledCluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths whose children the controller reads from now on."""
    zookeeper = cluster.controller().zookeeper
    read: list[str] = []
    real = zookeeper.children

    def children(path: str, *watch: Any) -> Any:
        read.append(path)
        return real(path, *watch)

    monkeypatch.setattr(zookeeper, "children", children)
    return read


def test_its_own_topics_are_no_reason_to_read_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ControlledCluster(3)
    cluster.run(2)
    read = _readings(cluster, monkeypatch)
    for n in range(20):
        assert cluster.create(f"t{n}").error is ErrorCode.NONE
    assert cluster.grow("t0", 5).error is ErrorCode.NONE
    cluster.run(3)
    assert TOPICS not in read
    for n in range(20):
        assert cluster.delete(f"t{n}").error is ErrorCode.NONE
    cluster.run(3)
    assert TOPICS not in read
    assert read.count(DELETE_TOPICS) <= 20  # once before each note


def test_what_others_do_among_its_own_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ControlledCluster(3)
    cluster.create("model")
    cluster.run(2)
    read = _readings(cluster, monkeypatch)
    document = json.loads(cluster.data(topic_path("model")))
    document["topic_id"] = "A" * 22
    cluster.server.write([Create(topic_path("byhand"), json.dumps(document).encode())])
    for n in range(5):
        cluster.create(f"t{n}")
    cluster.run(2)
    assert read.count(TOPICS) <= 3
    assert all(broker.metadata.has_topic("byhand") for broker in cluster.brokers.values())
    cluster.server.write([Create(delete_topic_path("byhand"))])
    cluster.delete("t0")
    cluster.run(3)
    assert not cluster.exists(topic_path("byhand"))
    assert not any(broker.metadata.has_topic("byhand") for broker in cluster.brokers.values())


def test_one_that_came_and_one_that_went_are_two_changes() -> None:
    cluster = ControlledCluster(3)
    cluster.create("model")
    cluster.run(2)
    document = json.loads(cluster.data(topic_path("model")))
    document["topic_id"] = "A" * 22
    cluster.server.write([Create(topic_path("byhand"), json.dumps(document).encode())])
    cluster.run(2)
    for path in [path for path in reversed(cluster.server.tree.dump()) if path.startswith(topic_path("byhand"))]:
        cluster.server.write([Delete(path)])
    cluster.server.write([Create(topic_path("again"), json.dumps(document).encode())])
    cluster.run(2)
    for broker in cluster.brokers.values():
        assert broker.metadata.topics() == ["again", "model"]


def test_one_that_went_by_hand_and_comes_again_while_brokers_are_told_of_it_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of very many partitions they are told over many turns of the loop, and the list is read again meanwhile."""
    cluster = ControlledCluster(3)
    cluster.create("model")
    cluster.run(2)
    document = json.loads(cluster.data(topic_path("model")))

    def make(topic_id: str) -> None:
        text = json.dumps({**document, "topic_id": topic_id})
        cluster.server.write([Create(topic_path("byhand"), text.encode())])

    make("A" * 22)
    cluster.run(2)
    channels = cluster.controller().controller._term._channels  # type: ignore[union-attr]
    real, told = channels.forget, []

    async def forget(partitions: Any) -> None:
        told.append("begins")
        await sleep(cluster.time, 5.0)
        await real(partitions)
        told.append("ends")

    monkeypatch.setattr(channels, "forget", forget)
    for path in [path for path in reversed(cluster.server.tree.dump()) if path.startswith(topic_path("byhand"))]:
        cluster.server.write([Delete(path)])
    cluster.run(2)
    assert told == ["begins"]
    make("AAAAAAAAAAAAAAAAAAAAAQ")
    cluster.run(2)
    assert told == ["begins"]
    cluster.run(5)
    assert told == ["begins", "ends"]
    for broker in cluster.brokers.values():
        assert broker.metadata.topics() == ["byhand", "model"]
    assert cluster.state("byhand", 0).leader in cluster.brokers
