"""A group's offsets in a transaction, asked of whole brokers: when they are visible, and who is killed meanwhile."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import FindCoordinatorRequest
from dataplane.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from dataplane.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.dataplane.handlers.asking import Tenant
from tests.dataplane.handlers.test_transactions import NAME, Producer
from tests.simulation.cluster import SimulatedCluster

E = ErrorCode
AGAIN = (E.COORDINATOR_LOAD_IN_PROGRESS, E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)


class Reader:
    """One who reads, and commits what he has read with what he writes."""

    def __init__(self, cluster, group):
        self.cluster, self.group = cluster, group
        self.client = cluster.client
        self.producer = Producer(Tenant(cluster))

    def _call(self, broker, request, version):
        answer = self.client.call(broker, request, version)
        self.cluster.until(lambda: answer.done, 60)
        return None if answer.error is not None else answer.result()

    def coordinator(self):
        while True:
            for broker in self.cluster.brokers:
                found = self._call(broker, FindCoordinatorRequest(key=self.group, key_type=0), 2)
                if found is not None and not found.error_code and found.node_id in self.cluster.brokers:
                    return found.node_id
            self.cluster.network.run_for(0.5)

    def ask(self, request, version, code):
        """Of the group's coordinator, whoever it is by now."""
        while True:
            answer = self._call(self.coordinator(), request, version)
            if answer is not None and code(answer) not in AGAIN:
                return answer
            self.cluster.network.run_for(0.5)

    def add(self):
        request = AddOffsetsToTxnRequest(NAME, self.producer.id, self.producer.epoch, self.group)
        return self.producer.ask(request, 3).error_code

    def commit(self, offset, **more):
        rows = (TxnOffsetCommitRequestPartition(0, offset, committed_metadata=""),)
        topics = (TxnOffsetCommitRequestTopic("orders", rows),)
        request = TxnOffsetCommitRequest(NAME, self.group, self.producer.id, self.producer.epoch, topics=topics, **more)
        return error_of(self.ask(request, 3, error_of))

    def commit_outside(self, offset):
        rows = (OffsetCommitRequestPartition(0, offset, committed_metadata=""),)
        request = OffsetCommitRequest(self.group, topics=(OffsetCommitRequestTopic("orders", rows),))
        return error_of(self.ask(request, 7, error_of))

    def offset(self, *, stable=True):
        request = OffsetFetchRequest(self.group, (OffsetFetchRequestTopic("orders", (0,)),), require_stable=stable)
        [row] = self.ask(request, 7, lambda answer: answer.error_code).topics[0].partitions
        return row.committed_offset, row.error_code

    def end(self, *, committed):
        told = self.producer.end(committed=committed)
        self.cluster.network.run_for(1)
        return told


def error_of(answer):
    [[row]] = [topic.partitions for topic in answer.topics]
    return row.error_code


@pytest.fixture(scope="module")
def cluster():
    made = SimulatedCluster(seed=11)
    made.until(made.up)
    made.create_topic("orders", 1)
    return made


@pytest.mark.parametrize(("committed", "left"), [(True, 5), (False, -1)])
def test_they_are_visible_with_the_transaction_or_never(cluster, committed, left):
    reader = Reader(cluster, f"group-{committed}")
    assert reader.add() == E.NONE
    assert reader.commit(5) == E.NONE
    assert (reader.offset(), reader.offset(stable=False)) == ((-1, E.UNSTABLE_OFFSET_COMMIT), (-1, E.NONE))
    assert reader.end(committed=committed) == E.NONE
    assert reader.offset() == (left, E.NONE)


def test_a_group_that_was_not_added_to_the_transaction_takes_nothing(cluster):
    reader = Reader(cluster, "not-added")
    assert reader.commit(5) == E.INVALID_TXN_STATE
    assert reader.offset() == (-1, E.NONE)
    assert reader.add() == E.NONE
    assert reader.commit(5, generation_id=3, member_id="nobody") == E.UNKNOWN_MEMBER_ID
    assert reader.commit(6) == E.NONE
    assert reader.end(committed=True) == E.NONE
    assert reader.commit(7) == E.INVALID_TXN_STATE
    assert reader.offset() == (6, E.NONE)


def test_the_groups_coordinator_dies_between_the_commit_and_the_marker(cluster):
    reader = Reader(cluster, "fail-over")
    assert reader.commit_outside(1) == E.NONE
    assert reader.add() == E.NONE
    assert reader.commit(5) == E.NONE
    dead = reader.coordinator()
    cluster.kill(dead)
    cluster.until(lambda: reader.coordinator() != dead, 60)
    assert (reader.offset(), reader.offset(stable=False)) == ((-1, E.UNSTABLE_OFFSET_COMMIT), (1, E.NONE))
    reader.producer.coordinator = reader.producer._find()
    assert reader.end(committed=True) == E.NONE
    cluster.until(lambda: reader.offset() == (5, E.NONE), 60)
    cluster.start(dead)
