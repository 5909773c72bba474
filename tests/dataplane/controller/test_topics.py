"""Topics: created with leaders on every broker, deleted without a trace, whatever dies in between."""

from __future__ import annotations

import json

import pytest

from dataplane.cluster.paths import (
    config_json,
    delete_topic_path,
    parse_topic,
    partitions_path,
    state_path,
    topic_config_path,
    topic_path,
)
from dataplane.controller.controller import NewTopic
from dataplane.doors import Create
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import Task
from tests.dataplane.controller.cluster import ControlledCluster


def test_a_created_topic_has_leaders_that_every_broker_knows_when_the_answer_comes() -> None:
    cluster = ControlledCluster(3)
    outcome = cluster.create("k3v9x2qa.orders", partitions=6, factor=3, config={"retention.ms": "1000"})
    assert outcome.error is ErrorCode.NONE
    assert (outcome.partitions, outcome.replication_factor) == (6, 3)
    for index in range(6):
        state = cluster.state("k3v9x2qa.orders", index)
        replicas = parse_topic(cluster.data(topic_path("k3v9x2qa.orders"))).partitions[index]
        assert (state.leader, state.isr, state.leader_epoch) == (replicas[0], replicas, 0)
        for broker in cluster.brokers.values():
            assert broker.leaderships["k3v9x2qa.orders", index].leader == state.leader
            known = broker.metadata.partition("k3v9x2qa.orders", index)
            assert known is not None
            assert (known.leader, known.isr) == (state.leader, state.isr)
            assert broker.metadata.topic_id("k3v9x2qa.orders") == outcome.topic_id
    assert json.loads(cluster.data(topic_config_path("k3v9x2qa.orders")))["config"] == {"retention.ms": "1000"}


def test_nothing_is_read_to_create_a_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every call the thread of ZooKeeper's client takes the interpreter from the loop some times."""
    cluster = ControlledCluster(3)
    term = cluster.controller().controller._term
    assert term is not None
    paths: list[str] = []
    for name in ("get", "exists", "children"):
        asked = getattr(term._store.zookeeper, name)
        monkeypatch.setattr(
            term._store.zookeeper, name, lambda path, *more, asked=asked: paths.append(path) or asked(path, *more)
        )
    assert cluster.create("t", partitions=3).error is ErrorCode.NONE
    assert not [path for path in paths if "/t" in path.removeprefix("/brokers/topics")], paths
    assert cluster.create("t").error is ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_configuration_that_a_deletion_by_hand_has_left_is_overwritten() -> None:
    cluster = ControlledCluster(3)
    cluster.server.write([Create(topic_config_path("t"), config_json({"retention.ms": "1"}))])
    assert cluster.create("t", config={"retention.ms": "2"}).error is ErrorCode.NONE
    assert json.loads(cluster.data(topic_config_path("t")))["config"] == {"retention.ms": "2"}


def test_leaders_of_a_topic_are_spread_evenly() -> None:
    cluster = ControlledCluster(3)
    cluster.create("t", partitions=6)
    leaders = [cluster.state("t", index).leader for index in range(6)]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("t", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", replication_factor=4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=3, brokers=(1, 2)), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", assignment={0: (1, 1)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment={0: (1, 9)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment={0: (1, 3)}, brokers=(1, 2)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment={1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment={0: (1, 2), 1: (1,)}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("k3v9x2qa.t", 2, 3, replica_limit=5), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_a_topic_that_cannot_be_is_refused_and_leaves_nothing(topic: NewTopic, error: ErrorCode) -> None:
    cluster = ControlledCluster(3)
    cluster.create("there")
    before = cluster.server.tree.dump().keys()
    (outcome,) = cluster.wait(Task(cluster.controller().controller.create_topics([topic])))
    assert outcome.error is error
    assert outcome.message
    assert cluster.server.tree.dump().keys() == before


def test_the_partition_limit_counts_all_topics_of_one_instance_also_within_one_request() -> None:
    cluster = ControlledCluster(3)
    wanted = [NewTopic(f"k3v9x2qa.t{i}", 1, 3, replica_limit=6) for i in range(3)]
    outcomes = cluster.wait(Task(cluster.controller().controller.create_topics(wanted)))
    assert [outcome.error for outcome in outcomes] == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert "6" in outcomes[2].message
    assert cluster.create("other123.t", 1, 3, replica_limit=6).error is ErrorCode.NONE
    cluster.delete("k3v9x2qa.t0")
    assert cluster.create("k3v9x2qa.t9", 1, 3, replica_limit=6).error is ErrorCode.NONE


def test_the_topic_limit_counts_the_topics_of_one_instance_and_names_limit_and_use() -> None:
    cluster = ControlledCluster(3)
    wanted = [NewTopic(f"k3v9x2qa.t{i}", 4, 3, topic_limit=2) for i in range(3)]
    outcomes = cluster.wait(Task(cluster.controller().controller.create_topics(wanted)))
    assert [outcome.error for outcome in outcomes] == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert outcomes[2].message == "the instance may hold 2 topics; it holds 2"
    assert cluster.create("other123.t", topic_limit=2).error is ErrorCode.NONE
    assert cluster.grow("k3v9x2qa.t0", 5).error is ErrorCode.NONE  # which is no topic more
    cluster.delete("k3v9x2qa.t0")
    assert cluster.create("k3v9x2qa.t9", topic_limit=2).error is ErrorCode.NONE


def test_a_new_controller_has_counted_what_the_one_before_it_made() -> None:
    cluster = ControlledCluster(4)
    first = cluster.controller().id
    assert cluster.create("k3v9x2qa.t0", topic_limit=1).error is ErrorCode.NONE
    cluster.kill(first)
    cluster.run(10)
    assert cluster.controller().id != first
    assert cluster.create("k3v9x2qa.t1", topic_limit=1).error is ErrorCode.POLICY_VIOLATION


def test_where_no_topic_is_allowed_none_is_made() -> None:
    assert ControlledCluster(3).create("k3v9x2qa.t", topic_limit=0).error is ErrorCode.POLICY_VIOLATION


def test_validation_only_answers_and_writes_nothing() -> None:
    cluster = ControlledCluster(3)
    before = cluster.server.tree.dump()
    topic = NewTopic("t", 2, 3)
    (outcome,) = cluster.wait(Task(cluster.controller().controller.create_topics([topic], validate_only=True)))
    assert (outcome.error, outcome.partitions) == (ErrorCode.NONE, 2)
    assert cluster.server.tree.dump() == before


def test_a_broker_that_does_not_answer_delays_the_answer_until_its_timeout() -> None:
    cluster = ControlledCluster(3)
    deaf = cluster.others(cluster.controller().id)[0]
    deaf.deaf = True
    controller = cluster.controller().controller
    asked = cluster.time.monotonic()
    (outcome,) = cluster.wait(Task(controller.create_topics([NewTopic("t", 1, 3)], 1.5)))
    assert outcome.error is ErrorCode.REQUEST_TIMED_OUT
    assert cluster.time.monotonic() - asked == pytest.approx(1.5, abs=0.01)
    deaf.deaf = False
    cluster.run(3)
    assert deaf.metadata.partition("t", 0) is not None


def test_a_broker_that_is_not_the_controller_says_so() -> None:
    cluster = ControlledCluster(3)
    other = cluster.others(cluster.controller().id)[0].controller
    with pytest.raises(ApiError) as creating:
        cluster.wait(Task(other.create_topics([NewTopic("t")])))
    with pytest.raises(ApiError) as deleting:
        cluster.wait(Task(other.delete_topics(["t"])))
    assert creating.value.code is deleting.value.code is ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02])
def test_a_topic_whose_controller_dies_in_the_middle_is_whole_or_was_never_there(after_s: float) -> None:
    cluster = ControlledCluster(4)
    first = cluster.controller()
    replicas = [broker.id for broker in cluster.others(first.id)]
    topic = NewTopic("t", assignment={0: tuple(replicas), 1: tuple(reversed(replicas))})
    Task(first.controller.create_topics([topic]))
    cluster.run(after_s)
    cluster.kill(first.id)
    cluster.run(10)
    if not cluster.exists(topic_path("t")):
        assert cluster.create("t").error is ErrorCode.NONE
        return
    for index in range(2):
        state = cluster.state("t", index)
        assert state.leader in replicas
        assert sorted(state.isr) == sorted(replicas)
        for broker in cluster.others(first.id):
            assert broker.leaderships["t", index].leader == state.leader


def test_a_topic_written_by_another_tool_is_taken_up() -> None:
    from dataplane.doors import Create

    cluster = ControlledCluster(3)
    cluster.create("model")
    data = cluster.data(topic_path("model")).replace(b'"topic_id":"', b'"topic_id":"AAAA')
    document = json.loads(data)
    document["topic_id"] = document["topic_id"][:22]
    cluster.server.write([Create(topic_path("byhand"), json.dumps(document).encode())])
    cluster.run(2)
    assert cluster.state("byhand", 0).leader in (1, 2, 3)
    assert all(broker.metadata.has_topic("byhand") for broker in cluster.brokers.values())


def test_a_deleted_topic_is_gone_everywhere_when_the_answer_comes() -> None:
    cluster = ControlledCluster(3)
    cluster.create("t", partitions=4)
    cluster.create("stays")
    assert cluster.delete("t").error is ErrorCode.NONE
    for path in (topic_path("t"), topic_config_path("t"), delete_topic_path("t")):
        assert not cluster.exists(path)
    for broker in cluster.brokers.values():
        assert sorted(broker.removed) == [("t", index) for index in range(4)]
        assert broker.metadata.topics() == ["stays"]
    again = cluster.create("t", partitions=1)
    assert again.error is ErrorCode.NONE
    assert cluster.delete("never").error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02])
def test_a_deletion_whose_controller_dies_is_finished_by_the_next_one(after_s: float) -> None:
    cluster = ControlledCluster(4)
    first = cluster.controller()
    replicas = tuple(broker.id for broker in cluster.others(first.id))
    cluster.create("t", assignment={0: replicas, 1: replicas})
    Task(first.controller.delete_topics(["t"]))
    cluster.run(after_s)
    cluster.kill(first.id)
    noted = cluster.exists(delete_topic_path("t")) or not cluster.exists(topic_path("t"))
    cluster.run(10)
    assert cluster.exists(topic_path("t")) != noted
    assert cluster.exists(partitions_path("t")) != noted
    assert not cluster.exists(delete_topic_path("t"))
    for broker in cluster.others(first.id):
        assert broker.metadata.has_topic("t") != noted
        assert (("t", 0) in broker.removed) == noted


def test_a_deletion_waits_for_a_replica_that_is_away() -> None:
    cluster = ControlledCluster(3, rebalance_s=1000)
    cluster.create("t")
    away = cluster.others(cluster.controller().id)[0].id
    cluster.kill(away)
    cluster.run(3)
    assert cluster.delete("t").error is ErrorCode.NONE  # nobody sees it any more
    assert all(not broker.metadata.has_topic("t") for broker in cluster.others(away))
    assert cluster.exists(topic_path("t"))
    assert cluster.create("t").error is ErrorCode.TOPIC_ALREADY_EXISTS
    returned = cluster.start(away)
    cluster.run(5)
    assert ("t", 0) in returned.removed
    assert not cluster.exists(topic_path("t"))
    assert not cluster.exists(state_path("t", 0))
    assert cluster.create("t").error is ErrorCode.NONE


@pytest.mark.parametrize("seed", range(8))
def test_notes_of_deletions_that_follow_each_other_closely_end_no_term(seed: int) -> None:
    cluster = ControlledCluster(3, seed)
    names = [f"t{number}" for number in range(6)]
    for name in names:
        cluster.create(name)
    epoch = cluster.data("/controller_epoch")
    cluster.run(0.5)  # others' notes are looked for once a second: not just before the end of what follows
    for name in names:
        cluster.brokers[1].zookeeper.create(delete_topic_path(name))
        cluster.run(cluster.random.uniform(0, 0.008))
    cluster.run(1)
    assert not [name for name in names if cluster.exists(topic_path(name)) or cluster.exists(delete_topic_path(name))]
    assert cluster.data("/controller_epoch") == epoch


@pytest.mark.parametrize("seed", range(8))
def test_a_topic_created_again_survives_the_note_of_its_predecessors_deletion(seed: int) -> None:
    """A list of notes is old by the time it is acted on; its topic may have gone, and another have come."""
    cluster = ControlledCluster(3, seed)
    cluster.create("t")
    cluster.create("u")
    controller = cluster.controller().controller
    Task(controller.delete_topics(["t"]))
    cluster.run(cluster.random.uniform(0.004, 0.012))
    cluster.brokers[1].zookeeper.create(delete_topic_path("u"))
    created = None
    for _ in range(200):
        (created,) = cluster.wait(Task(controller.create_topics([NewTopic("t")])))
        if created.error is ErrorCode.NONE:
            break
    assert created is not None
    assert created.error is ErrorCode.NONE
    cluster.run(1)
    assert cluster.exists(topic_path("t"))
    assert not cluster.exists(topic_path("u"))
