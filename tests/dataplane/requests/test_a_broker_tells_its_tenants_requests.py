"""A whole broker on virtual time: what clients ask of an instance is told in windows, each request once, and of nobody else's."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from quota.contracts.requests import RequestCounts
from quota.contracts.topics_moved import TopicsMoved
from quota.steps import run_through
from tests.dataplane.handlers.test_describe_connections import BATCH, World, fetched, produced
from tests.simulation.cluster import INSTANCE, TENANT_PORT

RECORDS = 1
"""In `BATCH`."""


@pytest.fixture
def world():
    made = World()
    made.topic()
    told(made)
    return made


def told(world):
    """What the instance was asked since this was called last; a window more is over then."""
    world.wait(11)
    found, _ = run_through(world.broker.request_windows.report_steps(is_whole=True))
    world.broker.request_windows._kept.clear()
    assert set(found) <= {INSTANCE}
    return RequestCounts.joined(found.get(INSTANCE, {}).values())


def test_produces_and_fetches_are_counted_once_whichever_way_they_go(world):
    client = world.connect(TENANT_PORT)
    produced(client, times=20)
    for offset in range(7):
        assert fetched(client, offset=offset).error_code == ErrorCode.NONE
    counts = told(world)
    assert (counts.of("Produce").requests, counts.of("Fetch").requests) == (20, 7)
    assert counts.errors == {}
    assert counts.of("Produce").times("total").count == 20


def moved(world):
    """What each topic of the instance moved since this was called last."""
    world.wait(11)
    found, _ = run_through(world.broker.request_windows.report_steps(is_whole=True))
    world.broker.request_windows._kept.clear()
    total = TopicsMoved()
    for text in found.get(INSTANCE, {}).values():
        total.add(RequestCounts.from_text(text).topics)
    return total


def test_a_window_has_what_each_topic_moved(world):
    world.topic("events")
    moved(world)
    client = world.connect(TENANT_PORT)
    produced(client, times=20)
    assert fetched(client, offset=0).error_code == ErrorCode.NONE
    found = moved(world)
    assert found.of("orders").produced == 20 * len(BATCH)
    assert found.records_of("orders") == 20 * RECORDS
    assert found.of("orders").consumed % len(BATCH) == 0
    assert found.of("orders").consumed > 0
    assert found.of("events") == (0, 0)
    produced(client, times=1)
    assert moved(world).to_json() == {"orders": [len(BATCH), 0, 0, RECORDS]}
    assert told(world).requests == 0


def test_what_is_asked_later_was_not_here_before(world):
    client = world.connect(TENANT_PORT)
    for _ in range(2):
        produced(client, times=2)
        world.wait(3)
    times = told(world).of("Produce").times("total")
    assert times.count == 4
    assert times.sum_us < 1_000_000


def test_an_error_is_counted_by_its_code(world):
    client = world.connect(TENANT_PORT)
    data = TopicProduceData("orders", (PartitionProduceData(0, BATCH), PartitionProduceData(7, BATCH)))
    client.call(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(data,)), 9)
    counts = told(world)
    assert counts.of("Produce").requests == 1
    assert counts.errors == {"UNKNOWN_TOPIC_OR_PARTITION": 1}


@pytest.mark.parametrize("acks", [0, 1])
def test_a_produce_without_an_answer_is_a_request(world, acks):
    client = world.connect(TENANT_PORT)
    data = TopicProduceData("orders", (PartitionProduceData(0, BATCH),))
    for _ in range(3):
        client.send(ProduceRequest(acks=acks, timeout_ms=1_000, topic_data=(data,)), 9)
    counts = told(world)
    assert counts.of("Produce").requests == 3
    assert counts.of("Produce").unanswered == (0 if acks else 3)


def test_logins_are_requests_and_what_the_cluster_asks_itself_is_not(world):
    assert world.connect().plain().error_code == ErrorCode.NONE
    assert world.inside.call(MetadataRequest(topics=()), 9) is not None
    counts = told(world)
    assert set(counts.apis) == {"SaslHandshake", "SaslAuthenticate"}
    assert counts.requests == 2
