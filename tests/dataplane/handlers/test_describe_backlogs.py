"""DescribeBacklogs on a broker on virtual time: bytes of whole batches from an offset on, of what it leads."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.backlogs import BacklogPartition, BacklogTopic, DescribeBacklogsRequest
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from quota.contracts.namespace import instance_key
from tests.dataplane.handlers.test_describe_connections import BATCH, World, produced
from tests.simulation.cluster import INSTANCE, TENANT_PORT

TOPIC = f"{instance_key(INSTANCE)}.orders"


@pytest.fixture
def world():
    made = World()
    made.topic()
    produced(made.connect(TENANT_PORT), times=5)
    made.wait(0.1)
    return made


def told(world, *offsets, topic=TOPIC, partition=0):
    asked = DescribeBacklogsRequest((BacklogTopic(topic, (BacklogPartition(partition, offsets),)),))
    (answer,) = world.inside.call(asked, 0).topics
    assert answer.topic == topic
    (row,) = answer.partitions
    assert row.high_watermark == (-1 if row.error_code else replica(world).state.high_watermark)
    return row.error_code, row.sizes


def replica(world):
    return world.broker.replicas.registry.leader(TOPIC, 0)


def test_from_each_offset_on_there_are_the_bytes_of_its_batches(world):
    size = len(BATCH)
    assert told(world, 0, 1, 4, 5) == (ErrorCode.NONE, (5 * size, 4 * size, size, 0))


@pytest.mark.parametrize(("offset", "batches"), [(-1, 5), (6, 0), (2**62, 0)])
def test_an_offset_before_the_log_is_its_beginning_and_one_behind_it_its_end(world, offset, batches):
    assert told(world, offset) == (ErrorCode.NONE, (batches * len(BATCH),))


def test_an_offset_within_a_batch_counts_all_of_it(world):
    three = bytes(build_batch([Record(b"k", b"v", (), 1)] * 3, now_ms=1))
    data = TopicProduceData("orders", (PartitionProduceData(0, three),))
    world.connect(TENANT_PORT).call(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(data,)), 9)
    world.wait(0.1)
    assert told(world, 5, 6, 7, 8) == (ErrorCode.NONE, (len(three),) * 3 + (0,))


@pytest.mark.parametrize("what", [{"topic": f"{TOPIC}-not"}, {"partition": 9}])
def test_of_a_partition_that_is_not_led_here_the_error_is_told(world, what):
    error, sizes = told(world, 0, **what)
    assert (error != ErrorCode.NONE, sizes) == (True, ())


def test_what_is_behind_the_high_watermark_is_not_counted_and_that_is_seen_by_it(world):
    replica(world).state.high_watermark = 3
    assert told(world, 1, 4) == (ErrorCode.NONE, (2 * len(BATCH), 0))


def test_a_tenant_is_not_answered(world):
    asked = DescribeBacklogsRequest((BacklogTopic("orders", (BacklogPartition(0, (0,)),)),))
    assert world.connect(TENANT_PORT).call(asked, 0) is None
