"""One connection against the loop: memory that four bytes ask for, pipelines without end, pauses, timers."""

import resource
import socket
import struct
import threading
import time

import pytest

from dataplane.clock import SystemClock
from dataplane.network import sending
from dataplane.network.accounts import Account
from dataplane.network.loop import EpollLoop
from dataplane.network.refusals import Refusals
from tests.dataplane.network.test_connection import echo, framed, read_exactly, server, wait_until

__all__ = ["server"]


def resident_bytes():
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * resource.getpagesize()


def is_closed(sock):
    sock.settimeout(5)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def one(server):
    return server(echo)


def test_an_announced_size_takes_no_memory_before_its_bytes_come(server):
    target = one(server)
    before = resident_bytes()
    clients = [target.connect() for _ in range(20)]
    for client in clients:
        client.sendall(struct.pack(">i", 90 * 2**20) + b"x")
    with target.connect() as other:
        other.sendall(framed(b"hello"))
        assert read_exactly(other, 9) == framed(b"hello")
    assert resident_bytes() - before < 64 * 2**20
    for client in clients:
        client.close()


def test_a_large_frame_arrives_whole_in_pieces(server):
    target = one(server)
    payload = bytes(range(256)) * (3 * 4096)  # 3 MiB
    with target.connect() as client:
        client.sendall(struct.pack(">i", len(payload)) + payload[:10])
        wait_until(lambda: target.protocols)
        client.sendall(payload[10:] + framed(b"next"))
        assert read_exactly(client, len(payload) + 4) == framed(payload)
        assert read_exactly(client, 8) == framed(b"next")
    wait_until(lambda: target.loop.accounts.internal.held_bytes == 0)


def test_what_connections_hold_is_bounded_and_the_one_that_holds_most_goes(server):
    target = one(server)
    account = target.loop.accounts.internal
    account.budget_bytes = 2**20
    with target.connect() as first, target.connect() as second:
        first.sendall(struct.pack(">i", 900_000) + bytes(600_000))
        wait_until(lambda: account.held_bytes > 600_000)
        second.sendall(struct.pack(">i", 500_000) + bytes(300_000))
        assert is_closed(first)
        second.sendall(bytes(200_000))
        assert len(read_exactly(second, 500_004)) == 500_004
    wait_until(lambda: account.held_bytes == 0)
    assert account.cut_connections == 1


@pytest.mark.parametrize("singly", [False, True])
def test_a_request_that_is_too_large_is_said_and_counted_with_whose_it_was(server, singly):
    target, lines = server(), []
    target.loop.refusals._report = lines.append
    target.on_loop(lambda: None)
    account = target.loop.accounts.of("k3v9x2qa")
    for connections in (1, 2, 3):
        with target.connect() as client:
            wait_until(lambda count=connections: len(target.protocols) == count)
            connection = target.protocols[-1].connection
            connection.account, connection.max_frame_bytes = "k3v9x2qa", 1_000
            if singly:  # as while somebody of the account waits for a limit
                connection._begins = lambda _key, _size: True
                account.waiting = 1
            client.sendall(struct.pack(">i", (1_001, 2**31 - 1, -5)[connections - 1]) + bytes(8))
            assert is_closed(client)
            peer = f"{connection.peer[0]}:{connection.peer[1]}"
            if connections == 1:
                said = f"instance ins-k3v9x2qa: invalid receive (size = 1001 larger than 1000) from {peer}"
                assert lines == [f"{said}, closing connection"]
    assert len(lines) == 1, "one line in ten seconds"
    assert account.too_large == 3
    assert target.on_loop(target.loop.take_load).too_large == {"k3v9x2qa": 3}


def test_after_a_silence_a_line_says_how_many_there_were():
    now, lines = [0.0], []
    refusals, account = Refusals(lambda: now[0], lines.append), Account("")
    for _ in range(4):
        refusals.too_large(account, ("10.0.0.1", 5), -5, 100)
    now[0] = 10.0
    refusals.too_large(account, ("10.0.0.1", 5), 101, 100)
    line = "the cluster itself: invalid receive (size = {}) from 10.0.0.1:5, closing connection{}"
    assert lines == [line.format(-5, ""), line.format("101 larger than 100", "; 3 more since the last such line")]


def test_answers_to_a_pipeline_that_nobody_reads_are_bounded(server):
    target = server(lambda _: [framed(bytes(100_000))])
    with target.connect() as client:
        client.sendall(framed(b"q") * 20_000)  # asks for 2 GB
        wait_until(lambda: target.protocols and target.protocols[0].frames)
        with target.connect() as other:
            other.sendall(framed(b"hello"))
            read_exactly(other, 100_004)
        queued = target.on_loop(target.protocols[0].connection.queued_bytes)
        assert queued <= sending.STOP_READING_ABOVE_BYTES + 200_000
        for _ in range(2_000):  # and they all come, once they are read
            read_exactly(client, 100_004)


def test_a_long_pipeline_does_not_hold_up_others(server):
    clock = SystemClock()
    handled, asked = [], threading.Event()

    def slow(frame):
        handled.append(frame)
        if frame == b"slow":
            asked.wait(10)  # before the second one is begun, the other has asked
            until = clock.monotonic() + 0.002
            while clock.monotonic() < until:
                pass
        return [framed(frame)]

    target = server(slow)
    with target.connect() as hog, target.connect() as other:
        hog.sendall(framed(b"slow") * 1_000)  # two seconds of work
        wait_until(lambda: handled)
        other.sendall(framed(b"hello"))
        asked.set()
        assert read_exactly(other, 9) == framed(b"hello")
        assert handled.index(b"hello") < 250
        assert read_exactly(hog, 8_000) == framed(b"slow") * 1_000


@pytest.mark.parametrize("answers", [0, 1])
def test_what_comes_right_after_a_pause_does_not_overtake_what_waited(server, answers):
    target = server()
    with target.connect() as client:
        client.sendall(framed(b"0"))
        wait_until(lambda: target.protocols and target.protocols[0].frames)
        protocol = target.protocols[0]

        def pause_at_first(frame):
            if frame == b"1":
                protocol.connection.pause_reading()
            return []

        protocol.answer = pause_at_first
        client.sendall(b"".join(framed(b"%d" % n) for n in range(1, 500)) + framed(b"tail")[:5])
        wait_until(lambda: b"1" in protocol.frames)
        client.sendall(framed(b"tail")[5:] + framed(b"end"))

        def resume_at_turn_end():
            def go():
                protocol.connection.resume_reading()
                for _ in range(answers):  # what is sent in the same turn looks at what to wait for
                    protocol.connection.send([framed(b"answer")])

            target.loop.at_turn_end(go)

        target.on_loop(resume_at_turn_end)
        wait_until(lambda: len(protocol.frames) >= 502 or protocol.closed_for)
        assert protocol.frames == [b"%d" % n for n in range(500)] + [b"tail", b"end"]


def test_an_exception_while_catching_up_ends_the_connection(server):
    target = server()
    with target.connect() as client:
        client.sendall(framed(b"0"))
        wait_until(lambda: target.protocols and target.protocols[0].frames)
        protocol = target.protocols[0]

        def answer(frame):
            if frame == b"1":
                protocol.connection.pause_reading()
            if frame == b"2":
                raise ValueError("a bug")
            return []

        protocol.answer = answer
        client.sendall(framed(b"1") + framed(b"2") + framed(b"3"))
        wait_until(lambda: b"1" in protocol.frames)
        target.on_loop(protocol.connection.resume_reading)
        assert is_closed(client)


def test_a_timer_set_in_the_past_again_and_again_does_not_hold_the_loop():
    loop = EpollLoop(SystemClock())
    calls = []

    def again():
        calls.append(None)
        assert len(calls) < 200_000, "the loop never turned"
        loop.call_later(-1000.0, again)

    loop.call_later(-1000.0, again)
    loop.call_later(0.05, loop.stop)
    loop.report = calls.append  # an assertion that fails is reported
    loop.run()
    loop.close()
    assert not [text for text in calls if text]


def test_cancelled_timers_do_not_pile_up():
    loop = EpollLoop(SystemClock())
    kept = [loop.call_later(3600, lambda: None) for _ in range(10)]
    for _ in range(20_000):
        loop.call_later(1800, lambda: None).cancel()
    assert len(loop._timers) < 5_000
    for timer in kept:
        timer.cancel()
    loop.close()


def test_without_descriptors_the_loop_rests_between_its_complaints(server, monkeypatch):
    target = one(server)
    said = []
    monkeypatch.setattr(target.loop, "report", said.append)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    clients = [socket.socket() for _ in range(5)]
    for client in clients:
        client.setblocking(False)
    began = time.monotonic()
    spare = socket.socket()
    lowest = spare.fileno()
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        for client in clients:
            client.connect_ex(target.listener.address)
        wait_until(lambda: said)
        time.sleep(0.5)
        assert len(said) <= 1 + (time.monotonic() - began)  # one a second
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    spare.close()
    for client in clients:
        client.setblocking(True)
        client.settimeout(5)
        client.sendall(framed(b"x"))
        assert read_exactly(client, 5) == framed(b"x")
        client.close()


def test_exceptions_that_a_peer_causes_at_will_do_not_fill_the_log(server):
    def answer(_):
        raise ValueError("a bug")

    target = server(answer)
    said = []
    target.loop.report = said.append
    began = time.monotonic()
    for _ in range(100):
        with target.connect() as client:
            client.sendall(framed(b"x"))
            assert is_closed(client)
    assert 1 <= len(said) <= 5 * (2 + time.monotonic() - began)  # five a second
