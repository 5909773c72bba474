"""Frames over TLS, as over any connection: however records are cut, however slowly they are taken, up to the end."""

import contextlib
import os
import select
import socket
import ssl
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.network import tls
from dataplane.storage.files import FileSlice, SystemFiles
from tests.dataplane.network.tls_server import (
    ByHand,
    Recorder,
    Server,
    client_context,
    echo,
    framed,
    read_exactly,
    wait_until,
)

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture
def server():
    made = []

    def make(*args, **kwargs):
        made.append(Server(*args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("beside", [False, True])
def test_frames_arrive_and_are_answered(server, version, beside):
    one = server(echo, beside=beside)
    sent = [b"", b"a", b"b" * 700, b"c" * 70_000, b"d" * 1_000_000, b"e"]
    with one.connect_securely(client_context(version=version)) as client:
        stream = b"".join(map(framed, sent))
        client.sendall(stream)
        assert read_exactly(client, len(stream)) == stream
    assert one.protocols[0].frames == sent
    assert one.protocols[0].certificates == [None]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("beside", [False, True])
def test_every_byte_of_handshake_and_records_may_come_alone(server, version, beside):
    one = server(echo, beside=beside)
    with one.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = ByHand(sock, client_context(version=version)).shake_hands(piece=1)
        client.write(framed(b"hello") + framed(b"you") + framed(b""))
        client.push(piece=1)
        answer = framed(b"hello") + framed(b"you") + framed(b"")
        assert client.read(len(answer), most=1) == answer


def test_a_record_cut_at_each_byte_is_one_frame(server):
    one = server(echo)
    with one.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = ByHand(sock).shake_hands()
        cut, size = 1, 2
        while cut < size:
            client.write(framed(b"abc"))
            data = client.out.read()
            size = len(data)
            sock.sendall(data[:cut])
            wait_until(lambda: not unread(one))
            sock.sendall(data[cut:])
            assert client.read(7) == framed(b"abc")
            cut += 1
    assert one.protocols[0].frames == [b"abc"] * (size - 1)


def unread(server):
    """Whether bytes have come that the loop has not looked at."""
    return bool(server.on_loop(lambda: select.select([server.protocols[0].connection._fd], [], [], 0)[0]))


def test_one_record_with_many_frames_is_read_to_its_end(server):
    """The socket is not readable any more when the second of them is due."""
    one = server(echo)
    frames = [os.urandom(100) for _ in range(150)]
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(b"".join(map(framed, frames)))  # fits into one record
        client.push()
        answer = b"".join(map(framed, frames))
        assert client.read(len(answer)) == answer


class OneAtATime(Recorder):
    """Pauses at each frame and goes on a little later, as one that waits for a limit does."""

    def begins(self, _key, _size, _behind=0):
        if self.may:
            self.may = False
            return True
        self.connection.pause_for_limit()
        self.connection._loop.call_later(0.0, self.go_on)
        return False

    def go_on(self):
        self.may = True
        self.connection.resume_now()

    may = False


@pytest.mark.parametrize("size", [1, 7, 300, 20_000])
def test_frames_behind_a_limit_wait_in_openssl_and_are_not_forgotten(server, size):
    one = server(echo, protocol=OneAtATime)
    frames = [bytes([index]) * size for index in range(40)]
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(b"".join(map(framed, frames)))
        client.push()
        answer = b"".join(map(framed, frames))
        assert client.read(len(answer)) == answer


def test_while_frames_wait_little_is_held(server):
    one = server(protocol=type("Stopped", (Recorder,), {"begins": lambda self, *_: self.connection.pause_for_limit()}))
    with one.connect() as first, one.connect() as second:
        clients = [ByHand(sock).shake_hands() for sock in (first, second)]
        clients[0].write(framed(b"x" * 100))
        clients[0].push()
        wait_until(lambda: one.protocols[0].connection.payer.waiting)
        clients[1].write(framed(b"x" * 60_000) * 100)
        second.settimeout(0.5)
        with pytest.raises(TimeoutError):
            clients[1].push()
        connection = one.protocols[1].connection
        assert 0 < one.on_loop(lambda: connection.payer.held_by(connection)) <= 3 * tls.RECORD_BYTES


def test_a_large_answer_goes_to_a_slow_reader_whole(server):
    answer = os.urandom(1_000_000) * 12  # more than the system keeps
    one = server(lambda _frame: [framed(answer)])
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"ask"))
        client.push()
        assert client.read(4 + len(answer), most=30_000) == framed(answer)
    wait_until(lambda: one.protocols[0].closed_for)


def test_file_ranges_are_read_encrypted_and_counted(server, tmp_path):
    content = os.urandom(1_000_000) * 5
    (tmp_path / "log").write_bytes(content)
    file = SystemFiles().open(str(tmp_path / "log"))
    left = []

    def answer(_frame):
        small, large = FileSlice(file, 10, 500), FileSlice(file, 1000, 4_900_000)
        for part in (small, large):
            part.sent = left.append
        return [struct.pack(">i", 4_900_500), small, large]

    one = server(answer)
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"ask") * 3)
        client.push()
        for _ in range(3):
            assert client.read(4 + 4_900_500)[4:] == content[10:510] + content[1000:4_901_000]
    assert left == [500, 4_900_000] * 3
    file.close()


def test_what_was_queued_leaves_before_the_end_and_the_end_is_said(server):
    answer = os.urandom(1_000_000) * 12

    def then_close(connection):
        connection.send([framed(answer)])
        connection.close_after_send()

    one = server(protocol=type("Last", (Recorder,), {"frame": lambda self, _: then_close(self.connection)}))
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"ask"))
        client.push()
        assert client.read(4 + len(answer), most=20_000) == framed(answer)
        while True:  # close_notify: not merely an end that somebody on the way could have made
            try:
                assert client.tls.read(1) == b""
            except ssl.SSLWantReadError:
                client.pull()
            else:
                break


def test_a_client_that_says_goodbye_is_gone(server):
    one = server(echo)
    client = one.connect_securely()
    client.sendall(framed(b"x"))
    assert read_exactly(client, 5) == framed(b"x")
    client.unwrap()
    wait_until(lambda: one.protocols[0].closed_for == ["closed by the peer"])
    client.close()


def test_what_came_before_the_goodbye_is_read(server):
    one = server()
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"last"))
        with pytest.raises(ssl.SSLWantReadError):
            client.tls.unwrap()
        client.push()
        wait_until(lambda: one.protocols[0].closed_for == ["closed by the peer"])
        assert one.protocols[0].frames == [b"last"]


def test_a_half_closed_peer_gets_its_answer_as_over_a_plain_socket(server):
    one = server()
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"last"))
        client.push()
        wait_until(lambda: one.protocols[0].frames)
        connection = one.protocols[0].connection
        one.on_loop(connection.pause_reading)
        sock.shutdown(socket.SHUT_WR)
        wait_until(lambda: one.on_loop(connection.peer_has_finished))
        one.on_loop(lambda: connection.send([framed(b"answer")]))
        assert client.read(10) == framed(b"answer")


def test_the_end_in_the_middle_of_a_record_is_the_end(server):
    one = server()
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"x" * 1000))
        sock.sendall(client.out.read()[:500])
    wait_until(lambda: one.protocols[0].closed_for)
    assert one.protocols[0].frames == []


def test_bytes_that_were_changed_on_the_way_end_the_connection(server):
    one = server(echo)
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"good"))
        client.push()
        assert client.read(8) == framed(b"good")
        client.write(framed(b"bad"))
        data = bytearray(client.out.read())
        data[-1] ^= 1
        sock.sendall(data)
        with pytest.raises((ssl.SSLError, AssertionError)):
            client.read(1)
    wait_until(lambda: one.protocols[0].closed_for)
    assert one.protocols[0].frames == [b"good"]


def test_a_frame_that_is_too_large_is_refused_as_in_the_clear(server):
    one = server()
    with one.connect_securely() as client:
        client.sendall(struct.pack(">i", 2**30) + b"xxxxxxxx")
        assert client.recv(1) == b""
    assert "size = 1073741824" in one.said[0]


def test_what_a_peer_does_not_take_is_held_once_and_a_little(server):
    answer = os.urandom(1_000_000) * 50
    one = server(lambda _frame: [framed(answer)])
    with one.connect() as sock:
        client = ByHand(sock).shake_hands()
        client.write(framed(b"ask"))
        client.push()
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        connection = one.protocols[0].connection
        wait_until(lambda: one.on_loop(lambda: connection._waits_to_send and not connection._in_queue))
        held, queued = one.on_loop(lambda: (connection.payer.held_by(connection), connection.queued_bytes()))
        assert queued <= held <= queued + 2 * tls.CHUNK_BYTES


def test_old_versions_and_weak_ciphers_are_refused(server):
    one = server()
    context = client_context()
    context.set_ciphers("AES256-SHA256:AES128-SHA:@SECLEVEL=0")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        one.connect_securely(context)
    old = client_context()
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        one.connect_securely(old)
    wait_until(lambda: all(protocol.closed_for for protocol in one.protocols))
    assert one.protocols[0].connection.payer.insecure == 2


def test_what_encryption_costs_is_the_accounts(server):
    answer = os.urandom(4_000_000)
    one = server(lambda _frame: [framed(answer)])
    with one.connect_securely() as client:
        client.sendall(framed(b"ask"))
        read_exactly(client, 4 + len(answer))
    wait_until(lambda: one.loop.accounts.of("tenant01").spent_s > 0)
    assert one.loop.accounts.of("").spent_s < one.loop.accounts.of("tenant01").spent_s


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.integers(0, 40_000), min_size=1, max_size=5)),
        st.tuples(st.just("push"), st.integers(1, 20_000)),
        st.tuples(st.just("read"), st.integers(1, 30_000)),
    ),
    max_size=25,
)


@settings(deadline=None, max_examples=25)
@given(steps=STEPS, version=st.sampled_from(VERSIONS))
def test_whatever_is_written_and_however_it_is_read_comes_back(steps, version):
    """Against OpenSSL's other half: what is echoed is what was sent, in order and to the last byte."""
    one = Server(echo)
    try:
        with one.connect() as sock:
            client = ByHand(sock, client_context(version=version)).shake_hands()
            sent = got = b""
            waiting = b""
            for step, how in steps:
                if step == "write":
                    stream = b"".join(framed(os.urandom(1) * size) for size in how)
                    client.write(stream)
                    sent += stream
                    waiting += client.out.read()
                elif step == "push":
                    sock.sendall(waiting[:how])
                    waiting = waiting[how:]
                elif step == "read" and select.select([sock], [], [], 0)[0]:
                    client.pull(how)
                    with contextlib.suppress(ssl.SSLWantReadError):
                        got += client.tls.read(how)
            sock.sendall(waiting)
            assert got + client.read(len(sent) - len(got)) == sent
            assert not one.protocols[0].closed_for
    finally:
        one.stop()
