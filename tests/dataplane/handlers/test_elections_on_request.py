"""ElectLeaders as operators ask it: of the controller, for each partition by itself."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.controller.operators.requested_elections import ElectionType
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.reassignment import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from dataplane.tasks import Future
from tests.dataplane.controller.cluster import ControlledCluster
from tests.dataplane.handlers.doors import internal, reply, versions
from tests.support.answering import SlicesAtOnce

ALL = versions(ApiKey.ELECT_LEADERS)
PREFERRED, UNCLEAN = ElectionType.PREFERRED, ElectionType.UNCLEAN


@pytest.fixture
def cluster():
    """Two brokers beside the controller hold ``t``; its preferred replica is in sync and does not lead."""
    made = ControlledCluster(4, rebalance_s=1000.0)
    first, second, _ = (broker.id for broker in made.others(made.controller().id))
    made.create("t", assignment={0: (first, second), 1: (second, first)})
    made.kill(first)
    made.run(3)
    made.start(first)
    made.run(3)
    made.propose(second, "t", [second, first])
    return made


def elect(cluster, partitions, kind=PREFERRED, version=2, at=None):
    """(error of the whole, {(topic, partition): error}, the answer as this version tells it)."""
    broker = at or cluster.controller()
    request = ElectLeadersRequest(kind, partitions, 5_000)
    request = decode(ElectLeadersRequest, version, encode(request, version))
    answer = reply(
        internal(),
        request,
        version,
        controller=broker.controller,
        metadata=broker.metadata,
        slices=SlicesAtOnce(),
        doors=SimpleNamespace(clock=cluster.time.clock),
    )
    answer = cluster.wait(answer) if isinstance(answer, Future) else answer
    answer = decode(ElectLeadersResponse, version, encode(answer, version))
    rows = [(topic.topic, row) for topic in answer.replica_election_results for row in topic.partition_result]
    return answer.error_code, {(topic, row.partition_id): row.error_code for topic, row in rows}, answer


@pytest.mark.parametrize("version", ALL)
def test_the_preferred_replica_leads_afterwards(cluster, version):
    preferred = cluster.brokers[cluster.state("t", 1).leader].metadata.partition("t", 0).replicas[0]
    assert cluster.state("t", 0).leader != preferred
    code, rows, _ = elect(cluster, (TopicPartitions("t", (0,)),), version=version)
    assert (code, rows) == (ErrorCode.NONE, {("t", 0): ErrorCode.NONE})
    assert cluster.state("t", 0).leader == preferred


def test_each_partition_has_its_own_outcome_and_a_topic_is_told_of_once(cluster):
    code, rows, answer = elect(cluster, (TopicPartitions("t", (0, 1, 7)), TopicPartitions("ghost", (0,))))
    assert code == ErrorCode.NONE
    assert rows == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("ghost", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert [topic.topic for topic in answer.replica_election_results] == ["t", "ghost"]


def test_of_all_partitions_those_that_needed_none_are_not_told_of(cluster):
    assert elect(cluster, None)[:2] == (ErrorCode.NONE, {("t", 0): ErrorCode.NONE})
    assert elect(cluster, None)[:2] == (ErrorCode.NONE, {})


@pytest.mark.parametrize("version", [1, 2])
def test_a_kind_that_there_is_not_is_refused_and_nothing_is_elected(cluster, version):
    leader = cluster.state("t", 0).leader
    assert elect(cluster, None, kind=2, version=version)[:2] == (ErrorCode.INVALID_REQUEST, {})
    assert cluster.state("t", 0).leader == leader


def test_version_0_knows_preferred_elections_only(cluster):
    """It has no field for the kind: a partition that is led would need no unclean one."""
    assert elect(cluster, (TopicPartitions("t", (0,)),), kind=UNCLEAN, version=0)[1] == {("t", 0): ErrorCode.NONE}


def test_an_unclean_election_is_not_needed_where_somebody_leads(cluster):
    named = (TopicPartitions("t", (0,)),)
    assert elect(cluster, named, kind=UNCLEAN)[1] == {("t", 0): ErrorCode.ELECTION_NOT_NEEDED}


@pytest.mark.parametrize("named", [None, (TopicPartitions("t", (0, 1)),)], ids=["all", "named"])
@pytest.mark.parametrize("version", ALL)
def test_another_broker_says_of_every_partition_that_it_is_not_the_controller(cluster, named, version):
    other = cluster.others(cluster.controller().id)[0]
    leader = cluster.state("t", 0).leader
    rows = elect(cluster, named, version=version, at=other)[1]
    assert rows == {("t", 0): ErrorCode.NOT_CONTROLLER, ("t", 1): ErrorCode.NOT_CONTROLLER}
    assert cluster.state("t", 0).leader == leader


def test_tenants_do_not_elect():
    assert not HANDLERS[ApiKey.ELECT_LEADERS].tenant


def test_the_controller_is_asked_about_some_of_very_many_at_a_time(cluster, monkeypatch):
    controller, asked = cluster.controller().controller, []
    elect_some = controller.elect
    monkeypatch.setattr(controller, "elect", lambda keys, *more: asked.append(len(keys)) or elect_some(keys, *more))
    _, rows, answer = elect(cluster, (TopicPartitions("ghost", tuple(range(1_200))), TopicPartitions("t", (0,))))
    assert asked == [500, 500, 201]
    assert len(rows) == 1_201
    assert rows["t", 0] == ErrorCode.NONE
    assert [len(topic.partition_result) for topic in answer.replica_election_results] == [1_200, 1]
