"""The crowd: it sends as much as it was told, counts answers however they are cut, and survives a server that is not."""

import select
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from tests.stalls.aggressor import Crowd
from tests.support.waiting import wait_for

FRAME = (8).to_bytes(4) + b"question"


@contextmanager
def server(serve):
    """A listener whose connections each get a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=until_it_ends, args=(sock,), daemon=True).start()

    def until_it_ends(sock):
        with suppress(ConnectionError):
            serve(sock)

    threading.Thread(target=accept, daemon=True).start()
    yield lambda: socket.create_connection(listener.getsockname())
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def answering(answer, pieces=1):
    """Answers each request of FRAME's size, in pieces."""

    def serve(sock):
        with sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            whole = len(answer).to_bytes(4) + answer
            step = -(-len(whole) // pieces)
            while sock.recv(len(FRAME), socket.MSG_WAITALL):
                for at in range(0, len(whole), step):
                    sock.sendall(whole[at : at + step])

    return serve


def silent(received):
    def serve(sock):
        with sock:
            while data := sock.recv(2**16):
                received.append(data)

    return serve


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_answers_are_counted_however_they_are_cut(pieces):
    with server(answering(b"0123456789", pieces)) as connect:
        crowd = Crowd(connect, connections=3, depth=2)
        done = crowd.run([FRAME], 10.0, lambda: crowd.done.answers > 50)
        crowd.close()
    assert done.answers > 50
    assert done.first == b"0123456789"
    assert 0 < done.first_ms < 10_000
    assert done.closed == 0


def test_no_more_requests_are_under_way_than_was_said():
    received = []
    with server(silent(received)) as connect:
        crowd = Crowd(connect, connections=1, depth=5)
        crowd.reads = False  # nothing will come
        done = crowd.run([FRAME], 0.3)
        crowd.close()
    assert done.sent_bytes == 5 * len(FRAME)
    assert done.answers == 0


def test_frames_come_in_turn():
    received = []
    frames = [(1).to_bytes(4) + letter for letter in (b"a", b"b", b"c")]
    with server(silent(received)) as connect:
        crowd = Crowd(connect, connections=1, depth=4)
        crowd.reads = False
        crowd.run(frames, 0.3)
        crowd.close()
    assert b"".join(received) == b"".join([*frames, frames[0]])


def test_a_client_that_is_refused_comes_back():
    with server(lambda sock: sock.close()) as connect:
        crowd = Crowd(connect, connections=1, depth=1)
        done = crowd.run([FRAME], 10.0, lambda: crowd.done.closed > 2)
        crowd.close()
    assert done.closed > 2


def test_an_answer_that_takes_longer_than_the_time_is_waited_for():
    def slowly(sock):
        with sock:
            sock.recv(len(FRAME), socket.MSG_WAITALL)
            time.sleep(0.5)
            sock.sendall((4).to_bytes(4) + b"late")
            sock.recv(1)

    with server(slowly) as connect:
        crowd = Crowd(connect, connections=1, depth=1)
        done = crowd.run([FRAME], 0.1)
        crowd.close()
    assert (done.answers, done.first) == (1, b"late")
    assert done.sent_bytes == len(FRAME)


def test_who_does_not_read_is_sent_no_faster():
    with server(answering(bytes(2**20))) as connect:
        crowd = Crowd(connect, connections=1, depth=100, reads=False)
        done = crowd.run([FRAME], 0.5)
        crowd.close()
    assert done.answers == 0
    assert done.sent_bytes == 100 * len(FRAME)


def test_a_connection_that_cannot_be_made_is_counted():
    def refused():
        raise ConnectionRefusedError

    crowd = Crowd(refused, connections=3, depth=1)
    assert crowd.done.refused == 3
    crowd.close()


@pytest.mark.parametrize("resets", [True, False])
def test_who_closes_at_once_is_known_to_be_gone_although_nobody_reads(resets):
    accepted, over = [], threading.Event()

    def serve(sock):
        with sock:
            accepted.append(sock.fileno())
            over.wait(60)

    with server(serve) as connect, select.epoll() as watch:
        crowd = Crowd(connect, connections=1, depth=1, resets=resets)
        wait_for(lambda: bool(accepted), 30, "a connection")
        watch.register(accepted[0], 0)
        crowd.close()
        is_known = bool(watch.poll(10.0 if resets else 1.0))
        over.set()
    assert is_known == resets


@pytest.mark.parametrize("connections", [1, 512])
def test_what_a_crowd_has_yet_to_send_does_not_fill_this_machines_kernel(connections):
    with server(silent([])) as connect:
        made = []

        def collected():
            made.append(connect())
            return made[-1]

        crowd = Crowd(collected, connections=connections, depth=1)
        buffers = [sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) for sock in made]
        by_itself = connect()
        default = by_itself.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        by_itself.close()
        crowd.close()
    assert sum(buffers) <= 2 * 256 * 2**20
    assert connections > 1 or buffers == [default], "of one the kernel decides"
    assert connections == 1 or set(buffers) == {2 * 256 * 2**20 // connections}
