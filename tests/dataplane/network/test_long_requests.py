"""A request of very many elements is decoded, handled and answered in slices, as if it were short for who sent it."""

import pytest

from dataplane.peers.outbound import Peer, PeerError
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.codec import MAX_ELEMENTS, SHORT_ELEMENTS
from dataplane.protocol.headers import decode_response, encode_request
from dataplane.protocol.messages.discovery import ApiVersionsRequest
from dataplane.protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from dataplane.protocol.messages.groups import DescribeGroupsRequest, SyncGroupRequest, SyncGroupRequestAssignment
from quota.contracts.identity import OPERATOR, Keys
from tests.dataplane.handlers.asking import Tenant, Wire
from tests.simulation.cluster import INTERNAL_PORT, SimulatedCluster


@pytest.fixture
def tenant():
    cluster = SimulatedCluster(seed=5)
    cluster.until(cluster.up)
    cluster.create_topic("orders", 1)
    return Tenant(cluster)


def offsets_of(count):
    wanted = tuple(ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(count))
    return ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name="orders", partitions=wanted),))


def broker_of(tenant):
    return tenant.cluster.brokers[tenant.partition().state.leader_id]


def test_it_is_answered_as_a_short_one(tenant):
    answer = tenant.ask(offsets_of(5_000), 5)
    rows = answer.topics[0].partitions
    assert [row.partition_index for row in rows] == list(range(5_000))
    assert [row.error_code for row in rows[:3]] == [0, 3, 3]


def test_it_takes_several_turns(tenant):
    loop = tenant.cluster.network.loop(f"10.0.0.{tenant.partition().state.leader_id}")
    before = loop.turns
    tenant.ask(offsets_of(10), 5)
    short = loop.turns - before
    tenant.ask(offsets_of(MAX_ELEMENTS - 1), 5)
    assert loop.turns - before - short > short + 10


def test_answers_keep_the_order_of_requests(tenant):
    wire = Wire(tenant)
    wire.send(ApiVersionsRequest(), 0, correlation_id=1)
    wire.send(offsets_of(2_000), 5, correlation_id=2)
    wire.send(ApiVersionsRequest(), 0, correlation_id=3)
    wire.send(offsets_of(SHORT_ELEMENTS + 1), 5, correlation_id=4)
    wire.send(offsets_of(1), 5, correlation_id=5)
    tenant.cluster.until(lambda: len(wire.answers) == 5)
    assert [int.from_bytes(answer[:4]) for answer in wire.answers] == [1, 2, 3, 4, 5]
    _, answer = decode_response(APIS[ApiKey.LIST_OFFSETS], 5, memoryview(wire.answers[3]))
    assert len(answer.topics[0].partitions) == SHORT_ELEMENTS + 1


def test_nothing_is_left_of_it_when_its_connection_is_gone(tenant):
    broker = broker_of(tenant)
    wires = [Wire(tenant) for _ in range(3)]
    for wire in wires:
        wire.send(offsets_of(MAX_ELEMENTS - 1), 5)
    tenant.cluster.until(lambda: broker.slices._under_way and broker.slices._waiting)
    for wire in wires:
        wire._connection.close()
    tenant.cluster.until(lambda: not broker.slices._under_way)
    assert not broker.slices._waiting
    assert all(not wire.answers for wire in wires)


@pytest.mark.parametrize("elements", [MAX_ELEMENTS, 100_000])
def test_a_stranger_who_sends_too_many_elements_is_cut_off(tenant, elements):
    wire = Wire(tenant)
    wire.send(DescribeGroupsRequest(groups=("g",) * (elements + 1)), 0)
    tenant.cluster.until(lambda: wire.is_closed)
    assert not wire.answers


def test_what_turns_out_to_be_nonsense_late_ends_the_connection(tenant):
    good = offsets_of(2_000)
    wire = Wire(tenant)

    frame = bytearray(encode_request(APIS[ApiKey.LIST_OFFSETS], 5, 1, "wire", good))[:-3]
    frame[:4] = (len(frame) - 4).to_bytes(4)
    wire._connection.send([bytes(frame)])
    tenant.cluster.until(lambda: wire.is_closed)
    assert not wire.answers


def test_members_of_groups_are_no_more_on_the_internal_listener(tenant):
    """What a group makes of them it makes in one turn: 150,000 assignments were one of 50 ms."""

    def sync(count):
        rows = tuple(SyncGroupRequestAssignment(f"m{n}", b"") for n in range(count))
        return operator.call(SyncGroupRequest("g", 1, "m", assignments=rows), 4)

    cluster = tenant.cluster
    address = (cluster.host(1), INTERNAL_PORT)
    operator = Peer(cluster.network.loop("10.0.1.7"), *address, OPERATOR.name, Keys("secret").own(OPERATOR))
    answered = sync(MAX_ELEMENTS - 1)
    tenant.cluster.until(lambda: answered.done)
    cut = sync(MAX_ELEMENTS + 1)
    tenant.cluster.until(lambda: cut.done)
    assert answered.error is None
    assert isinstance(cut.error, PeerError)
