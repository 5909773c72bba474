"""The victim sees what it is there to see: a stall, an error, a connection that was cut, and nothing where nothing is."""

import os
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_request, encode_frame, parse_request_header
from dataplane.protocol.messages.discovery import ApiVersionsResponse
from dataplane.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, FetchResponsePartitionData
from dataplane.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from tests.stalls.pauses import Pause, Pauses
from tests.stalls.victim import Victim, Wait, Window
from tests.support.waiting import wait_for


class Broker:
    """Threads that share one lock, which is its loop: whoever holds it holds up everybody."""

    def __init__(self):
        self.loop = threading.Lock()
        self.grown = threading.Condition()
        self.log = []
        self.error = 0
        self.refused = 0
        self.sockets = []

    def serve(self, sock):
        self.sockets.append(sock)
        with sock, suppress(ConnectionError, OSError):
            while len(head := sock.recv(4, socket.MSG_WAITALL)) == 4:
                frame = memoryview(bytearray(sock.recv(int.from_bytes(head), socket.MSG_WAITALL)))
                if len(frame) < int.from_bytes(head):  # its client was stopped in the midst of it
                    return
                header = parse_request_header(frame)
                request = decode_request(header, frame)
                if header.api_key == ApiKey.FETCH:
                    with self.grown:
                        self.grown.wait_for(lambda: len(self.log) * 5 > self.wanted(request), 0.5)  # noqa: B023
                with self.loop:
                    answer = self.answer(header, request)
                sock.sendall(b"".join(encode_frame(APIS[header.api_key], header.api_version, 1, answer)))

    @staticmethod
    def wanted(request):
        return request.topics[0].partitions[0].fetch_offset

    def answer(self, header, request):
        if header.api_key == ApiKey.API_VERSIONS:
            return ApiVersionsResponse()
        if header.api_key == ApiKey.FETCH:
            rest = self.log[self.wanted(request) // 5 :]
            data = FetchResponsePartitionData(0, 0, len(self.log) * 5, records=b"".join(rest))
            return FetchResponse(responses=(FetchableTopicResponse("victim", partitions=(data,)),))
        data = request.topic_data[0].partition_data[0]
        offset = len(self.log) * 5
        if data.index == 0 and not self.error:
            with self.grown:
                self.log.append(offset.to_bytes(8) + bytes(data.records)[8:])
                self.grown.notify_all()
        self.refused += bool(self.error)
        one = PartitionProduceResponse(data.index, self.error, offset)
        return ProduceResponse((TopicProduceResponse("victim", (one,)),))


@contextmanager
def serving(broker):
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=broker.serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def victim(broker):
    with serving(broker) as address, Victim(address, "victim", None) as victim:
        assert victim.quiet(60.0)
        yield victim


def watched(victim, seconds, meanwhile=lambda: None):
    return watched_for(victim, seconds, meanwhile)[0]


def watched_for(victim, seconds, meanwhile=lambda: None):
    """The window, and how long it was: longer than was asked for, where the machine stood still."""
    began = time.monotonic()
    meanwhile()
    left_s = began + seconds - time.monotonic()
    time.sleep(max(0.0, left_s))
    ended = time.monotonic()
    return victim.window(began, ended, ended), ended - began


def test_a_thousand_records_a_second_are_acknowledged_and_consumed(victim):
    window, seconds = watched_for(victim, 1.0)
    assert 180 * seconds <= len(window.acknowledged) <= 220 * seconds  # five records each
    assert 180 * seconds <= len(window.consumed) <= 220 * seconds
    assert window.errors == {}


def test_a_stall_is_seen_by_the_probe_and_by_all_that_was_due_in_it(broker, victim):
    def stall():
        with broker.loop:
            time.sleep(0.6)

    window = watched(victim, 1.0, stall)
    assert window.longest > 500
    assert max(window.acknowledged) > 500
    assert max(window.consumed) > 500
    # What was due meanwhile was late too, each by its own.
    assert sum(100 < took < 600 for took in window.acknowledged) > 50
    assert window.errors == {}


def test_it_is_quiet_again_after_a_stall_and_not_during_one(broker, victim):
    with broker.loop:
        assert not victim.quiet(0.3)
    assert victim.quiet(60.0)


def test_what_a_broker_refuses_is_an_error(broker, victim):
    def refuse():
        broker.error = 6
        wait_for(lambda: broker.refused > 12, 30, "some requests to be refused")
        broker.error = 0

    window = watched(victim, 0.6, refuse)
    assert window.errors["produce 6"] > 10


def test_a_connection_that_is_cut_is_an_error_and_made_again(broker, victim):
    def cut():
        for sock in list(broker.sockets):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    window = watched(victim, 1.5, cut)
    assert any("closed" in what for what in window.errors)
    assert len(window.acknowledged) > 100
    assert watched(victim, 0.5).errors == {}


def test_what_the_machine_took_from_a_turn_is_taken_off_all_that_waited_for_it():
    waits = [Wait(10.0, 25.0, 25.0), Wait(10.010, 15.0, 5.0), Wait(11.0, 3.0, 3.0)]
    window = Window(waits, waits[:1], waits[:2]).without(Pauses([Pause(10.0, 10.020, 12.0)]))
    assert window.acknowledged == pytest.approx([13.0, 5.0, 3.0])  # of the second the system itself had said more
    assert window.as_seen("acknowledged") == [25.0, 15.0, 3.0]
    assert window.consumed == pytest.approx([13.0])
    assert (window.longest, window.held) == pytest.approx((25.0, 13.0))


def test_a_victim_that_is_stopped_itself_knows_it(broker):
    """What was due meanwhile was late, and not by the broker."""
    with serving(broker) as address, Victim(address, "victim", None) as victim:
        assert victim.quiet(60.0)

        resumed_s = 0.0

        def stop():
            nonlocal resumed_s
            os.kill(victim.pid, signal.SIGSTOP)
            time.sleep(0.3)
            resumed_s = time.monotonic()
            os.kill(victim.pid, signal.SIGCONT)

        window = watched(victim, 1.0, stop)
        assert sum(took > 150 for took in window.as_seen("acknowledged")) > 20
        # What is left of a wait is what the broker took after the stop: on a busy machine that is some time, too.
        late = [wait for wait in window.without(Pauses()).acknowledgements if wait.over_s > resumed_s]
        assert not [wait for wait in late if wait.left_ms > (wait.over_s - resumed_s) * 1000 + 50]
