"""Very long arrays stay the lists that they were collected in, and are all the same otherwise."""

import tracemalloc

import pytest

from dataplane.protocol.arrays import LONG, as_array
from dataplane.protocol.codec import MAX_ELEMENTS, decoder, decoder_in_steps, encode
from dataplane.protocol.messages.control import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from dataplane.protocol.messages.produce import DescribeProducersRequest, DescribeProducersRequestTopicRequest
from dataplane.protocol.release import released
from dataplane.records.steps import run_through
from quota.contracts.namespace import ClusterNames

NAMES = ClusterNames()


def stops(many):
    states = tuple(StopReplicaPartitionState(partition_index=n, leader_epoch=7) for n in range(many))
    return StopReplicaRequest(topic_states=(StopReplicaTopicState(topic_name="orders", partition_states=states),))


def in_steps(message, version):
    data = encode(message, version, NAMES)
    return run_through(decoder_in_steps(type(message), version)(data, 0, NAMES))[0], data


def test_what_a_tenant_may_send_is_a_tuple():
    assert LONG > MAX_ELEMENTS
    assert type(as_array([1] * MAX_ELEMENTS)) is tuple


@pytest.mark.parametrize(("more", "kind"), [(0, tuple), (1, list)])
def test_a_long_array_of_structures_is_read_and_written_as_any_other(more, kind):
    message, data = in_steps(stops(LONG + more), 4)
    states = message.topic_states[0].partition_states
    assert type(states) is kind
    assert tuple(states) == decoder(StopReplicaRequest, 4)(data, 0, NAMES)[0].topic_states[0].partition_states
    assert encode(message, 4, NAMES) == data


@pytest.mark.parametrize(("more", "kind"), [(0, tuple), (1, list)])
def test_so_is_one_of_numbers(more, kind):
    asked = DescribeProducersRequestTopicRequest("orders", tuple(range(LONG + more)))
    message, data = in_steps(DescribeProducersRequest(topics=(asked,)), 0)
    assert type(message.topics[0].partition_indexes) is kind
    assert tuple(message.topics[0].partition_indexes) == asked.partition_indexes
    assert encode(message, 0, NAMES) == data


def test_it_is_taken_apart_where_it_is_when_nobody_else_has_it():
    held = [in_steps(stops(LONG + 1), 4)[0]]
    tracemalloc.start()
    try:
        run_through(released(held))
        assert tracemalloc.get_traced_memory()[1] < 8 * LONG  # bytes: a copy of the list takes that much
    finally:
        tracemalloc.stop()
    assert held == []


def test_and_copied_where_somebody_has_its_message():
    message = in_steps(stops(LONG + 1), 4)[0]
    run_through(released([message]))
    assert len(message.topic_states[0].partition_states) == LONG + 1
    topic = in_steps(stops(LONG + 1), 4)[0].topic_states[0]
    kept = topic.partition_states
    held = [topic]
    del topic
    run_through(released(held))
    assert len(kept) == LONG + 1
