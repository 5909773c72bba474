"""Followers fetch in sessions: what happens on one partition costs nothing for those on which nothing happens."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from dataplane.replication.leadership import stop_replicas
from dataplane.replication.waiting import TICK_S
from tests.dataplane.replication.cluster import SETTINGS, TOPIC, TOPIC_ID, ReplicatedCluster

MANY = 200


class Wire:
    """Counts the partitions that requests and answers of followers name."""

    def __init__(self, cluster, leader=1):
        self.requests, self.asked, self.answered = 0, 0, 0
        fetches = cluster[leader].fetches
        serve = fetches.serve

        def count(request, done):
            self.requests += 1
            self.asked += sum(len(topic.partitions) for topic in request.topics)

            def answer(response):
                self.answered += sum(len(topic.partitions) for topic in response.responses)
                done(response)

            serve(request, answer)

        fetches.serve = count

    def reset(self):
        self.requests = self.asked = self.answered = 0


@pytest.fixture
def many():
    cluster = ReplicatedCluster(size=2)
    for index in range(MANY):
        cluster.create((1, 2), index=index)
    cluster.run(1)
    return cluster


def test_idle_partitions_are_named_by_nobody(many):
    wire = Wire(many)
    many.run(10)
    assert wire.requests >= 40  # it goes on asking: every 200 ms here
    assert (wire.asked, wire.answered) == (0, 0)


def test_a_busy_partition_is_named_alone(many):
    wire = Wire(many)
    for _ in range(20):
        many.produce(1, "x", index=17)
        many.run(0.1)
    assert many[2].partition(17).state.high_watermark >= 19
    assert wire.asked <= 45
    assert wire.answered <= 65


def test_the_leader_looks_at_idle_partitions_only_when_something_happens(many):
    session = many[1].fetches._sessions[2]
    assert (session.size, len(session.due)) == (MANY, 0)
    many.produce(1, "x", index=17)
    many.run(1)
    assert len(session.due) == 0


def test_an_idle_follower_is_in_sync_when_something_comes_at_last(many):
    many.run(30)  # far longer than replica.lag.time.max.ms
    many.network.cut("b1", "b2")
    many.produce(1, "x", acks=1, index=3)
    many.run(1)
    assert many[1].partition(3).state.isr == (1, 2)
    many.run(4)
    assert many[1].partition(3).state.isr == (1,)
    assert many[1].partition(4).state.isr == (1, 2)  # which has everything there is
    many.network.heal("b1", "b2")
    many.run(15)
    assert set(many[1].partition(3).state.isr) == {1, 2}


def test_a_follower_that_was_refused_for_a_while_joins_by_and_by_though_nothing_happens():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(1)
    cluster.network.cut("b1", "b2")
    cluster.produce(1, "x", acks=1)
    cluster.run(6)
    assert cluster[1].partition().state.isr == (1,)
    cluster.controller.refuse = ErrorCode.INELIGIBLE_REPLICA
    cluster.network.heal("b1", "b2")
    cluster.run(10)
    assert cluster[1].partition().state.isr == (1,)
    cluster.controller.refuse = None
    cluster.run(3)
    assert set(cluster[1].partition().state.isr) == {1, 2}


def test_a_leader_that_was_restarted_knows_no_session_and_gets_everything_again(many):
    many.kill(1)
    many.start(1)
    for index in range(MANY):
        many.tell(index, (1,))
    many.run(5)
    many.produce(1, "x", index=5)
    many.run(1)
    assert many[2].values(5) == [b"x"]
    wire = Wire(many)
    many.run(3)
    assert (wire.asked, wire.answered) == (0, 0)


def test_a_follower_hears_of_the_high_watermark_with_its_next_answer():
    cluster = ReplicatedCluster(size=3)
    cluster.create((1, 2, 3))
    cluster.run(1)
    cluster.produce(1, "x")
    cluster.run(0.2 + 0.1 + TICK_S)  # one long poll
    assert [cluster[n].partition().state.high_watermark for n in (1, 2, 3)] == [1, 1, 1]


def test_where_consumers_read_from_followers_those_hear_of_it_at_once():
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    cluster = ReplicatedCluster(size=3, settings=replace(SETTINGS, replica_selector_class=selector))
    cluster.create((1, 2, 3))
    cluster.run(1)
    for count in (1, 2, 3):
        cluster.produce(1, "x")
        cluster.run(0.02)
        assert [cluster[n].partition().state.high_watermark for n in (1, 2, 3)] == [count] * 3


def test_an_earlier_life_of_a_follower_counts_for_nothing():
    """KIP-903: what it had may be lost since."""
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(1)
    cluster.network.cut("b1", "b2")
    cluster.produce(1, "x", acks=1)
    cluster.run(0.1)
    answers = []

    def ask(life):
        row = FetchPartition(partition=0, fetch_offset=1, current_leader_epoch=0, partition_max_bytes=2**20)
        request = FetchRequest(
            replica_state=ReplicaState(2, life),
            session_epoch=-1,
            topics=(FetchTopic(topic_id=TOPIC_ID, partitions=(row,)),),
        )
        cluster[1].fetches.serve(request, answers.append)
        return answers[-1].responses[0].partitions[0].error_code

    newest = cluster[2].broker_epoch
    assert ask(newest - 1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster[1].partition().state.high_watermark == 0
    assert ask(newest) == 0
    assert cluster[1].partition().state.high_watermark == 1


def test_proposals_name_the_lives_that_were_seen_to_catch_up():
    cluster = ReplicatedCluster(size=2)
    cluster.create((1, 2))
    cluster.run(1)
    cluster.kill(2)
    cluster.produce(1, "x", acks=1)
    cluster.run(6)
    life = cluster.start(2).broker_epoch
    cluster.tell(told=(2,))
    cluster.run(3)
    rows = cluster.controller.requests[-1].topics[0].partitions[0].new_isr_with_epochs
    assert {member.broker_id: member.broker_epoch for member in rows} == {1: cluster[1].broker_epoch, 2: life}


def test_a_partition_that_is_deleted_is_forgotten_by_both(many):
    for broker in (1, 2):
        row = StopReplicaPartitionState(partition_index=9, leader_epoch=-2, delete_partition=True)
        stop = StopReplicaRequest(
            controller_id=100,
            controller_epoch=1,
            broker_epoch=many[broker].broker_epoch,
            topic_states=(StopReplicaTopicState(topic_name=TOPIC, partition_states=(row,)),),
        )
        many[broker].loop.post(lambda broker=broker, stop=stop: stop_replicas(many[broker].replicas, stop))
    many.run(2)
    assert many[1].fetches._sessions[2].size == MANY - 1
    wire = Wire(many)
    many.run(2)
    assert (wire.asked, wire.answered) == (0, 0)
