"""`dataplane.peers.outbound` over the virtual network."""

from __future__ import annotations

from uuid import UUID

import pytest

from dataplane.peers.outbound import (
    Peer,
    PeerError,
    Peers,
)
from dataplane.protocol.api import ApiKey
from dataplane.protocol.messages.control import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from dataplane.tasks import Future
from tests.support.broker_server import BrokerServer
from tests.support.virtual_loop import VirtualNetwork

VERSION = 8


def _request(epoch: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=1, controller_epoch=epoch)


def _echo(request: UpdateMetadataRequest, version: int) -> UpdateMetadataResponse:
    assert version == VERSION
    return UpdateMetadataResponse(error_code=request.controller_epoch)


def _serve(network: VirtualNetwork, handler=_echo, secret: str = "s3cret") -> BrokerServer:
    return BrokerServer(network.loop("b"), "b", 9092, secret, {ApiKey.UPDATE_METADATA: handler})


def _peer(network: VirtualNetwork) -> Peer:
    return Peer(network.loop("a"), "b", 9092, "broker-1", "s3cret")


def test_calls_are_answered_in_order_over_one_authenticated_connection():
    network = VirtualNetwork()
    server = _serve(network)
    peer = _peer(network)
    answers = [peer.call(_request(epoch), VERSION) for epoch in range(20)]
    network.run_for(1)
    assert [answer.result().error_code for answer in answers] == list(range(20))
    assert server.logins == 1


def test_a_slow_answer_does_not_hold_back_the_sending_of_later_requests():
    network = VirtualNetwork()
    seen: list[int] = []
    slow: Future[UpdateMetadataResponse] = Future()

    def handler(request, version):
        seen.append(request.controller_epoch)
        return slow if request.controller_epoch == 1 else _echo(request, version)

    _serve(network, handler)
    peer = _peer(network)
    first, second = peer.call(_request(1), VERSION), peer.call(_request(2), VERSION)
    network.run_for(1)
    assert seen == [1, 2]
    assert not first.done
    assert not second.done
    slow.resolve(UpdateMetadataResponse(error_code=1))
    network.run_for(1)
    assert (first.result().error_code, second.result().error_code) == (1, 2)


def test_a_refused_connection_fails_the_call_and_the_next_call_waits_for_the_pause():
    network = VirtualNetwork()
    peer = _peer(network)
    refused = peer.call(_request(1), VERSION)
    network.run_for(0.01)
    assert isinstance(refused.error, PeerError)
    _serve(network)
    answer = peer.call(_request(2), VERSION)
    network.run_for(0.02)
    assert not answer.done
    network.run_for(0.1)
    assert answer.result().error_code == 2


def test_a_wrong_secret_fails_the_call():
    network = VirtualNetwork()
    _serve(network, secret="another")
    answer = _peer(network).call(_request(1), VERSION)
    network.run_for(1)
    assert "credential" in str(answer.error)


def test_a_call_without_an_answer_fails_at_its_timeout_and_with_it_all_others():
    network = VirtualNetwork()
    _serve(network, lambda *_: Future())
    peer = _peer(network)
    patient, hasty = peer.call(_request(1), VERSION, 10.0), peer.call(_request(2), VERSION, 1.0)
    network.run_for(0.99)
    assert not hasty.done
    network.run_for(0.02)
    assert isinstance(hasty.error, PeerError)
    assert isinstance(patient.error, PeerError)


def test_a_crash_of_the_other_broker_fails_calls_and_its_return_is_found():
    network = VirtualNetwork()
    _serve(network, lambda *_: Future())
    peer = _peer(network)
    lost = peer.call(_request(1), VERSION)
    network.run_for(0.5)
    network.crash("b")
    network.run_for(0.1)
    assert isinstance(lost.error, PeerError)
    _serve(network)
    answer = peer.call(_request(2), VERSION)
    network.run_for(2)
    assert answer.result().error_code == 2


def test_a_closed_peer_fails_what_is_under_way_and_what_comes_later():
    network = VirtualNetwork()
    _serve(network, lambda *_: Future())
    peer = _peer(network)
    under_way = peer.call(_request(1), VERSION)
    network.run_for(0.5)
    peer.close()
    assert isinstance(under_way.error, PeerError)
    assert isinstance(peer.call(_request(2), VERSION).error, PeerError)


def _long_request(topics: int) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(partition_index=0, leader=1, replicas=(1, 2, 3))
    return LeaderAndIsrRequest(
        controller_id=1,
        topic_states=tuple(LeaderAndIsrTopicState(f"t{n}", UUID(int=n + 1), (state,)) for n in range(topics)),
    )


def _long_answer(request: LeaderAndIsrRequest, version: int) -> LeaderAndIsrResponse:
    assert version == 7
    error = LeaderAndIsrPartitionError(partition_index=0, error_code=0)
    return LeaderAndIsrResponse(
        topics=tuple(LeaderAndIsrTopicError(topic.topic_id, (error,)) for topic in request.topic_states)
    )


def _serve_long(network: VirtualNetwork, handler=_long_answer) -> BrokerServer:
    handlers = {ApiKey.LEADER_AND_ISR: handler, ApiKey.UPDATE_METADATA: _echo}
    return BrokerServer(network.loop("b"), "b", 9092, "s3cret", handlers)


def test_a_long_call_is_written_and_read_in_steps_while_others_are_made():
    network = VirtualNetwork()
    _serve_long(network)
    peer = _peer(network)
    peer.call(_request(0), VERSION)
    network.run_for(1)
    request = _long_request(2_000)
    long, short = peer.call_in_steps(request, 7), peer.call(_request(5), VERSION)
    network.run_for(0.002)  # while it is still being written
    assert (short.done, long.done) == (True, False)
    network.run_for(1)
    assert long.result() == _long_answer(request, 7)


def test_a_long_call_waits_for_the_connection_like_any_other():
    network = VirtualNetwork()
    _serve_long(network)
    request = _long_request(500)
    answer = _peer(network).call_in_steps(request, 7)
    network.run_for(1)
    assert answer.result() == _long_answer(request, 7)


def test_a_long_call_fails_where_the_peer_is_closed_while_it_is_written_or_away():
    network = VirtualNetwork()
    _serve_long(network, lambda *_: Future())
    for after_s in (0.0, 0.5):
        peer = _peer(network)
        answer = peer.call_in_steps(_long_request(2_000), 7)
        network.run_for(after_s)
        peer.close()
        network.run_for(0.5)
        assert isinstance(answer.error, PeerError)


def test_a_long_answer_that_cannot_be_read_ends_the_connection():
    network = VirtualNetwork()
    _serve_long(network, lambda *_: b"\x00\xff")
    peer = _peer(network)
    under_way = peer.call_in_steps(_long_request(100), 7)
    network.run_for(1)
    assert isinstance(under_way.error, PeerError)
    assert peer._connection is None


def test_a_broker_is_called_where_it_is_now():
    network = VirtualNetwork()
    addresses = {2: ("b", 9092)}
    peers = Peers(network.loop("a"), "broker-1", "s3cret", addresses.get)
    _serve(network)
    first = peers.call(2, _request(1), VERSION)
    network.run_for(1)
    addresses[2] = ("c", 9093)
    moved = BrokerServer(network.loop("c"), "c", 9093, "s3cret", {ApiKey.UPDATE_METADATA: _echo})
    second = peers.call(2, _request(2), VERSION)
    network.run_for(1)
    assert (first.result().error_code, second.result().error_code) == (1, 2)
    assert moved.logins == 1


def test_a_broker_without_an_address_cannot_be_called():
    network = VirtualNetwork()
    peers = Peers(network.loop("a"), "broker-1", "s3cret", lambda _: None)
    with pytest.raises(PeerError):
        peers.call(9, _request(1), VERSION).result()


def test_a_late_answer_after_a_cut_reaches_nobody():
    network = VirtualNetwork()
    _serve(network)
    peer = _peer(network)
    warm = peer.call(_request(0), VERSION)
    network.run_for(1)
    assert warm.done
    network.cut("b", "a", both_ways=False)
    late = peer.call(_request(1), VERSION, 0.5)
    network.run_for(1)
    assert isinstance(late.error, PeerError)
    network.heal("a", "b")
    again = peer.call(_request(2), VERSION)
    network.run_for(3)
    assert again.result().error_code == 2
