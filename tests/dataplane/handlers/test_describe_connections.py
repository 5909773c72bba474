"""DescribeConnections on a broker on virtual time: who is connected, who was refused and why, who moves how much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.handlers.internal import connections as handler
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.connections import DescribeConnectionsRequest, FlowOfTheRest
from dataplane.protocol.messages.discovery import ApiVersionsRequest, MetadataRequest
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from dataplane.records.batch import Record, build_batch
from quota.contracts.identity import CONTROL_PLANE
from tests.dataplane.requests.logins import Cluster
from tests.simulation.cluster import INSTANCE, INTERNAL_PORT, TENANT_PORT

ALICE, BOB = "10.0.1.9", "10.0.1.8"
BATCH = bytes(build_batch([Record(b"k", b"v" * 1_000, (), 1)], now_ms=1))


class World(Cluster):
    """With a control plane that has logged in to the internal listener."""

    def __init__(self, **limits):
        super().__init__(**limits)
        self.inside = self.connect(INTERNAL_PORT, "10.0.9.9")
        assert self.inside.plain(CONTROL_PLANE.name, self.broker.config.keys.own(CONTROL_PLANE)).error_code == 0

    def told(self, topic=None, connections=100, talkers=100, instance=INSTANCE):
        return self.inside.call(DescribeConnectionsRequest(instance, topic, connections, talkers), 0)

    def topic(self, name="orders"):
        self.simulated.until(lambda: self.broker.metadata.controller_id >= 0, 60)
        self.simulated.create_topic(name, 1, on=(1,))

    def wait(self, seconds):
        self.network.run_for(seconds)


@pytest.fixture
def world():
    return World()


def produced(end, topic="orders", times=1):
    data = TopicProduceData(topic, (PartitionProduceData(0, BATCH),))
    for _ in range(times):
        answer = end.call(ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(data,)), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def fetched(end, topic="orders", offset=0):
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
    request = FetchRequest(replica_id=-1, max_bytes=2**20, topics=(FetchTopic(topic=topic, partitions=(wanted,)),))
    return end.call(request, 11).responses[0].partitions[0]


def own(answer):
    """Rows of clients at the addresses of this test."""
    return [row for row in answer.connections if row.address in (ALICE, BOB)]


# --- who is connected -------------------------------------------------------------------------------------------------


def test_a_client_is_told_with_what_it_says_of_itself_and_who_it_is(world):
    alice = world.connect()
    assert alice.call(ApiVersionsRequest("apache-kafka-java", "3.9.1"), 3).error_code == 0
    assert alice.plain().error_code == 0
    assert alice.works()
    world.wait(10)
    (row,) = own(world.told())
    assert (row.client_id, row.software_name, row.software_version) == ("client", "apache-kafka-java", "3.9.1")
    assert (row.address, row.principal, row.route_id) == (ALICE, "User:alice", "sasl")
    assert 10_000 < world.network.clock.now_ms() - row.opened_ms < 20_000
    assert row.requests == 4
    assert 0 < row.received_bytes < 1_000
    assert 0 < row.sent_bytes < 2_000


def test_who_has_not_logged_in_is_nobody_yet(world):
    world.connect()
    (row,) = own(world.told())
    assert (row.principal, row.client_id, row.software_name) == ("", "", "")


def test_software_that_is_not_named_as_it_may_be_is_not_told(world):
    alice = world.connect(TENANT_PORT)
    assert alice.call(ApiVersionsRequest("<script>", "1"), 3).error_code == ErrorCode.INVALID_REQUEST
    (row,) = own(world.told())
    assert row.software_name == ""


def test_bytes_are_those_of_the_last_minute(world):
    world.topic()
    alice = world.connect(TENANT_PORT)
    produced(alice, times=20)
    world.wait(1)
    (row,) = own(world.told())
    assert 20 * len(BATCH) < row.received_bytes < 21 * len(BATCH) + 2_000
    for _ in range(5):
        world.wait(60)
        world.told()
    (row,) = own(world.told())
    assert (row.received_bytes, row.sent_bytes, row.requests) == (0, 0, 0)
    assert 30_000 <= row.window_ms <= 120_000


def test_who_looks_for_the_first_time_after_hours_is_told_of_the_last_minute_too(world):
    """Settings have connections looked at once a minute: nobody has asked before."""
    world.topic()
    alice = world.connect(TENANT_PORT)
    produced(alice, times=20)
    world.wait(300)
    assert fetched(alice, offset=20).error_code == 0
    (row,) = own(world.told(talkers=0))
    assert row.requests <= 1
    assert row.received_bytes < len(BATCH)
    assert row.window_ms <= 120_000


def test_the_busiest_come_first_and_the_others_are_told_together(world):
    world.topic()
    ends = [world.connect(TENANT_PORT, source) for source in (ALICE, BOB, ALICE)]
    for times, end in enumerate(ends, 1):
        produced(end, times=10 * times)
    world.wait(10)
    everything = world.told()
    assert [row.address for row in own(everything)][:2] == [ALICE, BOB]
    least = own(everything)[2]
    answer = world.told(connections=2)
    assert len(answer.connections) == 2
    assert answer.other_connections.count == len(everything.connections) - 2
    told = answer.other_connections.in_bytes_per_s
    assert told == pytest.approx(least.received_bytes * 1000 / least.window_ms, rel=0.2)


def test_of_very_many_no_more_are_told_than_a_broker_tells(world, monkeypatch):
    monkeypatch.setattr(handler, "MOST_ROWS", 5)
    ends = [world.connect(TENANT_PORT, f"10.0.2.{number}") for number in range(20)]
    answer = world.told(connections=10_000)
    assert len(answer.connections) == 5
    assert answer.other_connections.count >= len(ends) - 5


def test_a_connection_that_has_gone_is_told_no_more(world):
    end = world.connect(TENANT_PORT)
    assert own(world.told())
    end.connection.close()
    world.wait(1)
    assert own(world.told()) == []


def test_of_an_instance_that_is_not_here_there_is_nothing(world):
    answer = world.told(instance="ins-elsewher")
    assert (answer.error_code, answer.connections, answer.talkers) == (ErrorCode.RESOURCE_NOT_FOUND, (), ())


@pytest.mark.parametrize("port", [TENANT_PORT, 9200])
def test_no_tenant_may_ask(world, port):
    end = world.connect(port)
    if port != TENANT_PORT:
        assert end.plain().error_code == 0
    assert end.call(DescribeConnectionsRequest(INSTANCE, None, 10, 10), 0) is None
    assert end.ends()


# --- who was refused --------------------------------------------------------------------------------------------------


def refusals(world):
    return [(row.address, row.route_id, row.reason, row.count) for row in world.told().refused]


def test_who_is_on_no_whitelist_is_told_with_the_time(world):
    world.apply(replace(world.spec, generation=9, whitelist=("10.0.1.9/32",)))
    for _ in range(3):
        assert world.connect(TENANT_PORT, BOB).ends()
    assert refusals(world) == [(BOB, "default", "whitelist", 3)]
    (row,) = world.told().refused
    assert 0 <= world.network.clock.now_ms() - row.last_ms < 10_000


def test_a_wrong_password_is_told_once_for_each_attempt(world):
    end = world.connect()
    assert end.plain(password="wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refusals(world) == [(ALICE, "sasl", "sasl", 1)]


def test_a_refused_login_names_the_user_and_the_client_id(world):
    end = world.connect()
    end.plain(password="wrong")
    (row,) = world.told().refused
    assert (row.user, row.client_id) == ("alice", "client")


def test_who_sends_requests_where_one_has_to_log_in_is_told(world):
    end = world.connect()
    end.send(MetadataRequest(topics=()), 9)
    assert end.ends()
    assert refusals(world) == [(ALICE, "sasl", "no_login", 1)]


def test_who_speaks_tls_where_none_is_spoken_is_told(world):
    end = world.connect(TENANT_PORT)
    end.connection.send([bytes.fromhex("160301020001000000")])
    assert end.ends()
    assert refusals(world) == [(ALICE, "default", "tls_in_clear", 1)]


def test_a_request_that_is_too_large_is_no_connection_that_was_refused(world):
    end = world.connect(TENANT_PORT)
    end.connection.send([bytes.fromhex("7fffffff")])
    assert end.ends()
    assert refusals(world) == []


def test_one_too_many_is_told():
    world = World(connections=2)
    ends = [world.connect(TENANT_PORT) for _ in range(4)]
    assert [end.is_closed for end in ends].count(True) >= 2
    assert {row[2] for row in refusals(world)} == {"connections"}


# --- who moves how much -----------------------------------------------------------------------------------------------


def talks(answer):
    return [(row.client_id, row.address, row.topic, row.produced_bytes, row.consumed_bytes) for row in answer.talkers]


def test_producers_and_consumers_of_topics_are_told_by_the_first_request_and_by_all_that_follow(world):
    """The first of a kind goes the slow way, the others by the short cuts."""
    world.topic()
    world.topic("events")
    alice, bob = world.connect(TENANT_PORT), world.connect(TENANT_PORT, BOB)
    produced(alice, times=10)
    produced(alice, "events")
    for offset in range(10):
        assert fetched(bob, offset=offset).error_code == 0
    consumed = sum(range(1, 11)) * len(BATCH)
    assert talks(world.told()) == [
        ("client", BOB, "simulate.orders", 0, consumed),
        ("client", ALICE, "simulate.orders", 10 * len(BATCH), 0),
        ("client", ALICE, "simulate.events", len(BATCH), 0),
    ]


def test_one_topic_can_be_asked_for_alone(world):
    world.topic()
    world.topic("events")
    alice = world.connect(TENANT_PORT)
    produced(alice)
    produced(alice, "events")
    assert talks(world.told("simulate.events", connections=0)) == [("client", ALICE, "simulate.events", len(BATCH), 0)]
    assert talks(world.told("elsewher.events")) == []


def test_what_was_refused_or_not_found_is_not_counted(world):
    world.topic()
    alice = world.connect(TENANT_PORT)
    produced(alice)
    for data in (PartitionProduceData(0, b"x" * 100), PartitionProduceData(7, BATCH)):
        request = ProduceRequest(acks=1, timeout_ms=1_000, topic_data=(TopicProduceData("orders", (data,)),))
        assert alice.call(request, 9).responses[0].partition_responses[0].error_code
    assert talks(world.told()) == [("client", ALICE, "simulate.orders", len(BATCH), 0)]


def test_who_has_gone_is_told_for_a_minute(world):
    world.topic()
    alice = world.connect(TENANT_PORT)
    produced(alice, times=3)
    alice.connection.close()
    world.wait(20)
    assert talks(world.told()) == [("client", ALICE, "simulate.orders", 3 * len(BATCH), 0)]
    world.wait(200)
    assert talks(world.told()) == []


def test_the_smaller_ones_are_told_together(world):
    world.topic()
    for times, source in enumerate((ALICE, BOB, "10.0.1.7"), 1):
        produced(world.connect(TENANT_PORT, source), times=times)
    world.wait(10)
    answer = world.told(talkers=1)
    assert [row.address for row in answer.talkers] == ["10.0.1.7"]
    assert answer.other_talkers.count == 2
    assert 0 < answer.other_talkers.in_bytes_per_s <= 3 * len(BATCH)


def test_what_is_not_asked_for_is_not_told(world):
    world.topic()
    produced(world.connect(TENANT_PORT))
    answer = world.told(connections=0, talkers=0)
    assert (answer.connections, answer.talkers, answer.refused) == ((), (), ())
    assert answer.other_connections == answer.other_talkers == FlowOfTheRest()
