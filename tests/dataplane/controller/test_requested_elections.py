"""Elections on request, and topics that take any leader rather than none."""

from __future__ import annotations

import json

from dataplane.cluster.paths import PREFERRED_ELECTION, config_json, topic_config_path
from dataplane.controller.controller import Rules
from dataplane.controller.operators.requested_elections import ElectionType
from dataplane.doors import Create, SetData
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Task
from tests.dataplane.controller.cluster import ControlledCluster

PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


def elect(
    cluster: ControlledCluster, keys: list[tuple[str, int]] | None, kind: ElectionType
) -> dict[tuple[str, int], int]:
    outcomes = cluster.wait(Task(cluster.controller().controller.elect(keys, kind, 5.0)))
    return {key: 0 if refusal is None else refusal.code for key, refusal in outcomes.items()}


def four() -> tuple[ControlledCluster, list[int]]:
    """A cluster that does not rebalance by itself, and three brokers of it that are not the controller."""
    cluster = ControlledCluster(4, rebalance_s=1000.0)
    return cluster, [broker.id for broker in cluster.others(cluster.controller().id)]


def lead_by_another(cluster: ControlledCluster, name: str, first: int, second: int) -> None:
    """The preferred replica is in sync and does not lead."""
    cluster.create_on(name, first, second)
    cluster.kill(first)
    cluster.run(3)
    cluster.start(first)
    cluster.run(3)
    cluster.propose(second, name, [second, first])


def lose_all(cluster: ControlledCluster, name: str, in_sync: int, other: int) -> None:
    """The only replica in sync dies; the other one lives."""
    cluster.create_on(name, in_sync, other)
    cluster.propose(in_sync, name, [in_sync])
    cluster.kill(in_sync)
    cluster.run(3)
    assert cluster.state(name, 0).leader == -1


def test_the_preferred_replica_leads_when_somebody_asks_for_it() -> None:
    cluster, (a, b, _) = four()
    lead_by_another(cluster, "t", a, b)
    assert cluster.state("t", 0).leader == b
    assert elect(cluster, [("t", 0)], PREFERRED) == {("t", 0): 0}
    assert cluster.state("t", 0).leader == a
    for broker in cluster.brokers.values():
        assert broker.metadata.partition("t", 0).leader == a  # type: ignore[union-attr]


def test_where_it_leads_already_no_election_is_needed() -> None:
    cluster, (a, b, _) = four()
    cluster.create_on("t", a, b)
    assert elect(cluster, [("t", 0)], PREFERRED) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}
    assert elect(cluster, [("t", 0)], UNCLEAN) == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}
    assert cluster.state("t", 0).leader_epoch == 0


def test_a_preferred_replica_that_is_not_in_sync_does_not_lead() -> None:
    cluster, (a, b, _) = four()
    cluster.create_on("t", a, b)
    cluster.kill(a)
    cluster.run(3)
    assert elect(cluster, [("t", 0)], PREFERRED) == {("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    cluster.start(a)
    cluster.run(3)
    assert elect(cluster, [("t", 0)], PREFERRED) == {("t", 0): ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
    assert cluster.state("t", 0).leader == b


def test_of_all_partitions_only_those_are_told_of_that_needed_it() -> None:
    cluster, (a, b, c) = four()
    lead_by_another(cluster, "t", a, b)
    cluster.create_on("u", b, c)
    assert elect(cluster, None, PREFERRED) == {("t", 0): 0}
    assert elect(cluster, None, PREFERRED) == {}


def test_what_does_not_exist_and_what_is_being_deleted_is_told_apart() -> None:
    cluster, (a, b, _) = four()
    cluster.create_on("t", a, b)
    cluster.kill(b)
    cluster.run(3)
    Task(cluster.controller().controller.delete_topics(["t"], 0.1))
    cluster.run(1)
    assert elect(cluster, [("t", 0), ("no", 0)], PREFERRED) == {
        ("t", 0): ErrorCode.INVALID_TOPIC_EXCEPTION,
        ("no", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_an_unclean_election_takes_who_is_alive_and_nobody_where_nobody_is() -> None:
    cluster, (a, b, c) = four()
    lose_all(cluster, "t", a, b)
    cluster.create_on("dead", c)
    cluster.kill(c)
    cluster.run(3)
    assert elect(cluster, [("t", 0), ("dead", 0)], UNCLEAN) == {
        ("t", 0): 0,
        ("dead", 0): ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    }
    assert (cluster.state("t", 0).leader, cluster.state("t", 0).isr) == (b, (b,))


def test_an_unclean_election_takes_no_replica_that_has_just_been_added_while_an_old_one_lives() -> None:
    cluster, (a, b, c) = four()
    cluster.create_on("t", a, b)
    cluster.wait(Task(cluster.controller().controller.reassign({("t", 0): (c, b)})))
    cluster.propose(a, "t", [a])
    cluster.kill(a)
    cluster.run(3)
    assert elect(cluster, [("t", 0)], UNCLEAN) == {("t", 0): 0}
    assert cluster.state("t", 0).leader == b


def test_who_is_not_the_controller_says_so() -> None:
    cluster, _ = four()
    other = cluster.others(cluster.controller().id)[0].controller
    assert cluster.wait(Task(other.elect(None, PREFERRED, 1.0))) is None
    assert cluster.wait(Task(other.reassign({}))) is None
    assert cluster.wait(Task(other.reassigned())) is None


def test_the_node_of_operators_asks_for_preferred_leaders_and_goes() -> None:
    cluster, (a, b, _) = four()
    lead_by_another(cluster, "t", a, b)
    asked = {"version": 1, "partitions": [{"topic": "t", "partition": 0}, {"topic": "gone", "partition": 1}]}
    cluster.server.write([Create(PREFERRED_ELECTION, json.dumps(asked).encode())])
    cluster.run(1)
    assert cluster.state("t", 0).leader == a
    assert not cluster.exists(PREFERRED_ELECTION)
    cluster.server.write([Create(PREFERRED_ELECTION, b"[]")])
    cluster.run(1)
    assert not cluster.exists(PREFERRED_ELECTION)


def test_a_topic_that_allows_it_is_led_by_whoever_is_alive() -> None:
    cluster, (a, b, _) = four()
    cluster.create("t", assignment={0: (a, b)}, config={"unclean.leader.election.enable": "true"})
    cluster.propose(a, "t", [a])
    cluster.kill(a)
    cluster.run(3)
    assert (cluster.state("t", 0).leader, cluster.state("t", 0).isr) == (b, (b,))


def test_to_allow_it_elects_at_once_and_only_for_this_topic() -> None:
    cluster, (a, b, _) = four()
    lose_all(cluster, "t", a, b)
    cluster.start(a)
    cluster.run(3)
    lose_all(cluster, "u", a, b)
    allowed = config_json({"unclean.leader.election.enable": "true"})
    cluster.server.write([SetData(topic_config_path("t"), allowed)])
    for name in ("t", "u"):
        cluster.controller().controller.topic_config_changed(name)
    cluster.run(1)
    assert cluster.state("t", 0).leader == b
    assert cluster.state("u", 0).leader == -1


def test_the_brokers_default_counts_where_a_topic_does_not_say() -> None:
    cluster, (a, b, _) = four()
    lose_all(cluster, "t", a, b)
    cluster.start(a)
    cluster.run(3)
    cluster.create("never", assignment={0: (a, b)}, config={"unclean.leader.election.enable": "false"})
    cluster.propose(a, "never", [a])
    cluster.propose(a, "t", [a])
    cluster.kill(a)
    cluster.run(3)
    cluster.controller().controller.take_rules(Rules(unclean_election=True))
    cluster.run(1)
    assert cluster.state("t", 0).leader == b
    assert cluster.state("never", 0).leader == -1
