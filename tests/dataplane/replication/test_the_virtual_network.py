"""`tests.support.virtual_loop`: what every simulated test relies on."""

from __future__ import annotations

import struct

import pytest

from tests.support.virtual_loop import CONNECT_TIMEOUT_S, VirtualNetwork


class End:
    """Remembers what it gets; answers with what `reply` makes of it."""

    def __init__(self, connection, reply=None) -> None:
        self.connection, self.reply = connection, reply
        self.frames: list[bytes] = []
        self.views: list[memoryview] = []
        self.ends: list[str] = []

    def frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        self.views.append(frame)
        if self.reply is not None:
            self.connection.send([_framed(self.reply(bytes(frame)))])

    def closed(self, reason: str) -> None:
        self.ends.append(reason)


def _framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class Pair:
    """A connection from host a to host b."""

    def __init__(self, network: VirtualNetwork, reply=None) -> None:
        self.network, self.failures, self.ends = network, [], []
        network.loop("b").listen("b", 1, lambda connection: self._keep(End(connection, reply)))
        network.loop("a").connect("b", 1, lambda connection: self._keep(End(connection)), self.failures.append)
        network.run_for(0.1)
        self.server, self.client = self.ends

    def _keep(self, end: End) -> End:
        self.ends.append(end)
        return end

    def send(self, *frames: bytes) -> None:
        self.client.connection.send([_framed(frame) for frame in frames])


def test_frames_arrive_whole_in_order_and_their_memory_is_lent_for_a_turn():
    network = VirtualNetwork()
    pair = Pair(network, reply=bytes.upper)
    for number in range(50):
        pair.send(b"frame %d" % number)
        network.run_for(0.0002)
    network.run_for(1)
    assert pair.server.frames == [b"frame %d" % number for number in range(50)]
    assert pair.client.frames == [b"FRAME %d" % number for number in range(50)]
    assert bytes(pair.server.views[0]) == b"\xdd" * 7


def test_a_frame_in_pieces_is_put_together():
    network = VirtualNetwork()
    pair = Pair(network)
    whole = _framed(b"hello")
    for index in range(len(whole)):
        pair.client.connection.send([whole[index : index + 1]])
        network.run_for(0.01)
    assert pair.server.frames == [b"hello"]


def test_a_close_comes_after_what_was_sent_and_is_told_once_on_each_side():
    network = VirtualNetwork()
    pair = Pair(network)
    pair.send(b"last")
    pair.client.connection.close_after_send()
    network.run_for(1)
    pair.client.connection.close()
    pair.server.connection.close()
    network.run_for(1)
    assert pair.server.frames == [b"last"]
    assert len(pair.client.ends) == len(pair.server.ends) == 1


def test_what_is_sent_into_a_cut_arrives_when_it_is_healed():
    network = VirtualNetwork()
    pair = Pair(network, reply=bytes.upper)
    network.cut("a", "b", both_ways=False)
    pair.send(b"one")
    pair.send(b"two")
    network.run_for(10)
    assert pair.server.frames == []
    network.heal("a", "b")
    network.run_for(0.1)
    assert pair.client.frames == [b"ONE", b"TWO"]


def test_connecting_to_nobody_is_refused_and_through_a_cut_times_out():
    network = VirtualNetwork()
    failures: list[str] = []
    network.loop("a").connect("b", 1, pytest.fail, failures.append)
    network.run_for(0.1)
    assert failures == ["Connection refused"]
    network.loop("b").listen("b", 1, pytest.fail)
    network.cut("a", "b")
    network.loop("a").connect("b", 1, pytest.fail, failures.append)
    network.run_for(CONNECT_TIMEOUT_S - 0.1)
    assert len(failures) == 1
    network.run_for(0.2)
    assert failures[1] == "Connection timed out"


def test_a_crash_resets_connections_and_the_next_life_has_none_of_the_timers():
    network = VirtualNetwork()
    pair = Pair(network)
    rung: list[str] = []
    network.loop("b").call_later(1, lambda: rung.append("old life"))
    network.crash("b")
    network.loop("b").call_later(1, lambda: rung.append("new life"))
    network.run_for(2)
    assert pair.client.ends == ["reset by the peer"]
    assert pair.server.ends == []
    assert rung == ["new life"]


def test_a_paused_host_does_everything_later():
    network = VirtualNetwork()
    pair = Pair(network, reply=bytes.upper)
    network.pause("b")
    pair.send(b"x")
    network.run_for(5)
    assert pair.client.frames == []
    network.resume("b")
    network.run_for(0.1)
    assert pair.client.frames == [b"X"]


def test_a_connection_that_is_not_read_from_keeps_its_frames():
    network = VirtualNetwork()
    pair = Pair(network)
    pair.server.connection.pause_reading()
    pair.send(b"1", b"2")
    pair.client.connection.close_after_send()
    network.run_for(1)
    assert pair.server.frames == []
    pair.server.connection.resume_reading()
    network.run_for(1)
    assert pair.server.frames == [b"1", b"2"]
    assert len(pair.server.ends) == 1


def test_turn_end_callbacks_run_before_what_was_sent_leaves_and_after_all_frames_of_the_turn():
    network = VirtualNetwork(latency_s=(0.001, 0.001))
    order: list[str] = []

    def reply(frame: bytes) -> bytes:
        order.append(frame.decode())
        network.loop("b").at_turn_end(lambda: order.append("end"))
        return frame

    pair = Pair(network, reply)
    pair.send(b"1", b"2", b"3")
    network.run_for(1)
    assert order == ["1", "2", "3", "end", "end", "end"]


def test_a_bug_in_a_callback_ends_the_run():
    network = VirtualNetwork()
    network.loop("a").call_soon(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        network.run_for(1)
