"""AlterPartitionReassignments and ListPartitionReassignments as operators ask them, and AlterPartition as leaders do."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dataplane.cluster.paths import parse_topic, topic_path
from dataplane.handlers.table import HANDLERS
from dataplane.protocol.api import ApiKey
from dataplane.protocol.codec import decode, encode
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from dataplane.protocol.messages.reassignment import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from dataplane.tasks import Future
from tests.dataplane.controller.cluster import ControlledCluster
from tests.dataplane.handlers.doors import internal, reply, versions
from tests.support.answering import SlicesAtOnce

ORDERS = "aaaabbbb.orders"
OWNERS = {"aaaabbbb": SimpleNamespace(spec=SimpleNamespace(brokers=(1, 2, 3)))}
"""The instance has listeners on brokers 1, 2 and 3; the cluster has a fourth."""


@pytest.fixture
def cluster():
    made = ControlledCluster(4, rebalance_s=1000.0)
    made.create("t", assignment={0: (1, 2), 1: (1, 2)})
    made.create_on(ORDERS, 1, 2)
    return made


def ask(cluster, request, at=None, version=0):
    broker = at or cluster.controller()
    row = next(row for row in HANDLERS.values() if row.api.request is type(request))
    request = decode(type(request), version, encode(request, version))
    registry = SimpleNamespace(by_key=OWNERS.get)
    answer = reply(internal(), request, version, controller=broker.controller, registry=registry, slices=SlicesAtOnce())
    answer = cluster.wait(answer) if isinstance(answer, Future) else answer
    return decode(row.api.response, version, encode(answer, version))


def move(cluster, wanted, at=None):
    """(error of the whole, {(topic, partition): error})."""
    topics = tuple(
        ReassignableTopic(topic, (ReassignablePartition(index, replicas),))
        for (topic, index), replicas in wanted.items()
    )
    answer = ask(cluster, AlterPartitionReassignmentsRequest(topics=topics), at)
    rows = {(topic.name, row.partition_index): row.error_code for topic in answer.responses for row in topic.partitions}
    return answer.error_code, rows


def under_way(cluster, named=None, at=None):
    """(error of the whole, {(topic, partition): (replicas, adding, removing)})."""
    topics = None if named is None else tuple(ListPartitionReassignmentsTopics(*each) for each in named)
    answer = ask(cluster, ListPartitionReassignmentsRequest(topics=topics), at)
    rows = [(topic.name, row) for topic in answer.topics for row in topic.partitions]
    return answer.error_code, {
        (topic, row.partition_index): (row.replicas, row.adding_replicas, row.removing_replicas) for topic, row in rows
    }


def test_each_partition_by_itself_begins_or_is_refused(cluster):
    code, rows = move(cluster, {("t", 0): (3, 4), ("t", 1): (9,), ("ghost", 0): (1,)})
    assert code == ErrorCode.NONE
    assert rows == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ("ghost", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert list(under_way(cluster)[1]) == [("t", 0)]


def test_a_tenants_replica_stays_where_its_clients_can_reach_it(cluster):
    assert move(cluster, {(ORDERS, 0): (1, 4), ("t", 0): (1, 4)})[1] == {
        (ORDERS, 0): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ("t", 0): ErrorCode.NONE,
    }
    assert move(cluster, {(ORDERS, 0): (1, 3)})[1] == {(ORDERS, 0): ErrorCode.NONE}


def test_what_is_under_way_is_told_with_what_comes_and_what_goes_until_it_is_called_off(cluster):
    move(cluster, {("t", 0): (3, 4)})
    assert under_way(cluster) == (ErrorCode.NONE, {("t", 0): ((3, 4, 1, 2), (3, 4), (1, 2))})
    assert move(cluster, {("t", 0): None})[1] == {("t", 0): ErrorCode.NONE}
    assert under_way(cluster) == (ErrorCode.NONE, {})
    assert move(cluster, {("t", 0): None})[1] == {("t", 0): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}


def test_only_what_is_named_is_told_of(cluster):
    move(cluster, {("t", 0): (3, 4), (ORDERS, 0): (3,)})
    assert list(under_way(cluster, [("t", (0, 1)), ("ghost", (0,))])[1]) == [("t", 0)]
    assert under_way(cluster, [])[1] == {}


def test_another_broker_is_not_the_controller_and_changes_nothing(cluster):
    other = cluster.others(cluster.controller().id)[0]
    assert move(cluster, {("t", 0): (3, 4)}, at=other) == (ErrorCode.NOT_CONTROLLER, {})
    assert under_way(cluster, at=other) == (ErrorCode.NOT_CONTROLLER, {})
    assert under_way(cluster) == (ErrorCode.NONE, {})


# --- leaders ----------------------------------------------------------------------------------------------------------


def propose(cluster, in_sync, version, at=None, **changed):
    """A leader's proposal, in the words of each version: topics by name or id, replicas with or without their epochs."""
    state = cluster.state("t", 0)
    row = AlterPartitionRequestPartitionData(
        **{
            "partition_index": 0,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "new_isr": in_sync,
            "new_isr_with_epochs": tuple(BrokerState(each, cluster.epoch(each)) for each in in_sync),
            **changed,
        }
    )
    topic_id = parse_topic(cluster.data(topic_path("t"))).topic_id
    topic = AlterPartitionRequestTopicData("t", topic_id, (row,))
    answer = ask(cluster, AlterPartitionRequest(state.leader, cluster.epoch(state.leader), (topic,)), at, version)
    return answer.error_code, [row for topic in answer.topics for row in topic.partitions]


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_PARTITION))
def test_what_a_leader_proposes_the_controller_writes(cluster, version):
    leader = cluster.state("t", 0).leader
    code, (row,) = propose(cluster, (leader,), version)
    assert (code, row.error_code, row.isr) == (ErrorCode.NONE, ErrorCode.NONE, (leader,))
    assert cluster.state("t", 0).isr == (leader,)


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_PARTITION))
def test_a_proposal_of_a_term_that_is_over_is_fenced(cluster, version):
    before = cluster.state("t", 0)
    code, (row,) = propose(cluster, (before.leader,), version, leader_epoch=before.leader_epoch - 1)
    assert (code, row.error_code) == (ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH)
    assert cluster.state("t", 0).isr == before.isr


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_PARTITION))
def test_a_broker_that_is_not_the_controller_takes_no_proposal(cluster, version):
    before = cluster.state("t", 0)
    other = cluster.others(cluster.controller().id)[0]
    assert propose(cluster, (before.leader,), version, at=other) == (ErrorCode.NOT_CONTROLLER, [])
    assert cluster.state("t", 0).isr == before.isr


@pytest.mark.parametrize(
    "key", [ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.ALTER_PARTITION]
)
def test_tenants_are_offered_none_of_these(key):
    assert not HANDLERS[key].tenant
