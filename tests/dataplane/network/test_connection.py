"""The loop and its connections over real loopback sockets."""

import os
import select
import socket
import struct
import threading

import pytest

from dataplane.clock import SystemClock
from dataplane.network.accounts import INTERNAL_BYTES, OVERDRAWN_ALONE_S
from dataplane.network.connection import SocketConnection
from dataplane.network.loop import EpollLoop
from dataplane.network.sending import MOST_AT_ONCE_BYTES, Sender
from dataplane.storage.files import FileSlice, SystemFiles


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Recorder:
    """A protocol that remembers, and answers every frame with what `answer` makes of it."""

    def __init__(self, connection, answer=None):
        self.connection, self.answer = connection, answer
        self.frames, self.closed_for = [], []

    def frame(self, frame):
        self.frames.append(bytes(frame))
        if self.answer is not None:
            self.connection.send(self.answer(bytes(frame)))

    def closed(self, reason):
        self.closed_for.append(reason)


class Server:
    """A loop in a thread with one listener."""

    def __init__(self, answer=None, clock=None):
        self.loop = EpollLoop(clock or SystemClock())
        self.protocols = []
        self.answer = answer
        self.listener = self.loop.listen("127.0.0.1", 0, self.accept)
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def accept(self, connection):
        protocol = Recorder(connection, self.answer)
        self.protocols.append(protocol)
        return protocol

    def connect(self):
        return socket.create_connection(self.listener.address, timeout=10)

    def on_loop(self, call):
        done = threading.Event()
        result = []

        def run():
            result.append(call())
            done.set()

        self.loop.call_threadsafe(run)
        assert done.wait(10)
        return result[0]

    def stop(self):
        self.loop.call_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def server(request):
    made = []

    def make(answer=None, clock=None):
        made.append(Server(answer, clock))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "closed"
        data += piece
    return data


def echo(frame):
    return [framed(frame)]


def wait_until(condition, seconds=10):
    deadline = SystemClock.monotonic() + seconds
    while not condition():
        assert SystemClock.monotonic() < deadline, "never happened"
        threading.Event().wait(0.005)


@pytest.mark.parametrize("piece", [1, 3, 5, 1000, 10**6])
def test_frames_arrive_whole_however_the_bytes_are_cut(server, piece):
    sent = [b"", b"a", b"b" * 700, b"c" * 70_000, b"d"]
    stream = b"".join(map(framed, sent))
    if piece < 1000:
        stream, sent = b"".join(map(framed, sent[:3])), sent[:3]
    one = server(echo)
    with one.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(stream), piece):
            client.sendall(stream[start : start + piece])
        assert read_exactly(client, len(stream)) == stream
    assert one.protocols[0].frames == sent


def test_more_than_the_arena_in_one_go_comes_back_in_order(server):
    payloads = [bytes([i % 251]) * 100_000 for i in range(120)]
    one = server(echo)
    with one.connect() as client:
        reader = threading.Thread(target=lambda: client.sendall(b"".join(map(framed, payloads))))
        reader.start()
        for payload in payloads:
            assert read_exactly(client, len(payload) + 4) == framed(payload)
        reader.join(10)


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1])
def test_a_frame_with_a_lying_size_closes_the_connection_at_once(server, size):
    one = server(echo)
    with one.connect() as client:
        client.sendall(struct.pack(">i", size) + b"x")
        assert client.recv(1) == b""
    wait_until(lambda: one.protocols[0].closed_for)
    assert len(one.protocols[0].closed_for) == 1


def test_paused_frames_wait_and_come_in_order(server):
    one = server()
    with one.connect() as client:
        client.sendall(framed(b"first"))
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        connection = one.protocols[0].connection
        one.on_loop(connection.pause_reading)
        client.sendall(framed(b"second") + framed(b"third") + framed(b"fourth")[:5])
        threading.Event().wait(0.05)
        assert one.protocols[0].frames == [b"first"]
        one.on_loop(connection.resume_reading)
        client.sendall(framed(b"fourth")[5:])
        wait_until(lambda: len(one.protocols[0].frames) == 4)
    assert one.protocols[0].frames == [b"first", b"second", b"third", b"fourth"]


def test_pausing_in_the_middle_of_a_burst_keeps_the_rest(server):
    one = server()

    def pause_at_first(frame):
        if frame == b"0":
            one.protocols[0].connection.pause_reading()
        return []

    one.answer = pause_at_first
    with one.connect() as client:
        burst = [str(i).encode() for i in range(50)]
        client.sendall(b"".join(map(framed, burst)) + b"\0\0")
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        threading.Event().wait(0.05)
        assert one.protocols[0].frames == [b"0"]
        one.on_loop(one.protocols[0].connection.resume_reading)
        client.sendall(b"\0\x04last")
        wait_until(lambda: len(one.protocols[0].frames) == 51)
    assert one.protocols[0].frames == [*burst, b"last"]


@pytest.mark.parametrize("size", [1_000, 65_536, 3_000_000])
def test_buffers_and_file_ranges_leave_in_their_order(server, tmp_path, size):
    content = os.urandom(size + 100)
    path = tmp_path / "data"
    path.write_bytes(content)
    file = SystemFiles().open(str(path))
    parts = [b"head", FileSlice(file, 50, size), b"middle", FileSlice(file, 0, 10), b"tail"]
    one = server(lambda _: parts)
    with one.connect() as client:
        client.sendall(framed(b"go"))
        expected = b"head" + content[50 : 50 + size] + b"middle" + content[:10] + b"tail"
        assert read_exactly(client, len(expected)) == expected
    file.close()


def test_a_long_answer_leaves_in_parts_and_others_have_their_turns_between_them(server, monkeypatch):
    left = []
    record = SocketConnection._left

    def recorded(self, sent):
        left.append(sent)
        record(self, sent)

    monkeypatch.setattr(SocketConnection, "_left", recorded)
    parts = [b"head", os.urandom(3_000_000), memoryview(os.urandom(700_000)), b"tail"]
    one = server(lambda _: parts)
    with one.connect() as client:
        client.sendall(framed(b"go") * 2)
        expected = b"".join(parts)
        assert read_exactly(client, 2 * len(expected)) == 2 * expected
    assert sum(left) == 2 * len(expected)
    assert max(left) <= MOST_AT_ONCE_BYTES


def test_a_slow_reader_gets_everything_in_the_end(server):
    payload = os.urandom(300_000)
    one = server(lambda _: [payload])
    with one.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        client.sendall(framed(b"go") * 5)
        for _ in range(5):
            assert read_exactly(client, len(payload)) == payload


def test_a_reader_that_never_reads_stops_being_read_from(server):
    payload = bytes(4_000_000)
    one = server(lambda _: [payload])
    with one.connect() as client:
        client.settimeout(0.5)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        with pytest.raises(TimeoutError):  # before all of them were taken
            client.sendall(framed(b"x" * 100_000) * 2_000)
        assert one.on_loop(one.protocols[0].connection.queued_bytes) < 200_000_000


def test_close_after_send_sends_everything_first(server):
    one = server()

    def last_words(_frame):
        one.protocols[0].connection.send([b"x" * 1_000_000])
        one.protocols[0].connection.close_after_send()
        return []

    one.answer = last_words
    with one.connect() as client:
        client.sendall(framed(b"go"))
        assert read_exactly(client, 1_000_000) == b"x" * 1_000_000
        assert client.recv(1) == b""
    wait_until(lambda: one.protocols[0].closed_for)


def test_connecting_to_nobody_fails_with_a_reason(server):
    one = server()
    reasons = []
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        one.on_loop(lambda: one.loop.connect(*unused.getsockname(), lambda _: None, reasons.append))
        wait_until(lambda: reasons)
    assert reasons == ["Connection refused"]


def test_two_loops_talk(server):
    one, answers = server(echo), []

    class Asker:
        def __init__(self, connection):
            connection.send([framed(b"question")])

        def frame(self, frame):
            answers.append(bytes(frame))

        def closed(self, reason):
            pass

    one.on_loop(lambda: one.loop.connect(*one.listener.address, Asker, answers.append))
    wait_until(lambda: answers)
    assert answers == [b"question"]


def test_timers_run_in_order_and_cancelled_ones_do_not(server):
    one, ran = server(), []

    def arm():
        one.loop.call_later(0.03, lambda: ran.append("late"))
        one.loop.call_later(0.01, lambda: ran.append("early"))
        one.loop.call_later(0.02, lambda: ran.append("never")).cancel()

    one.on_loop(arm)
    wait_until(lambda: len(ran) == 2)
    assert ran == ["early", "late"]


def test_turn_end_runs_after_the_frames_and_before_their_answers(server):
    one, order = server(), []

    def answer(frame):
        order.append("frame")
        one.loop.at_turn_end(lambda: (order.append("turn end"), one.protocols[0].connection.send([b"!"])))
        return []

    one.answer = answer
    with one.connect() as client:
        client.sendall(framed(b"1") + framed(b"2"))
        assert read_exactly(client, 2) == b"!!"
    assert order in (
        ["frame", "frame", "turn end", "turn end"],
        ["frame", "turn end"] * 2,
    )  # where a turn was over between


class StoppedClock(SystemClock):
    """Nothing takes any time: a busy machine puts no account into debt, to be served in a later turn."""

    def monotonic(self):
        return 0.0


def test_long_work_begins_when_the_answers_of_the_turn_have_left(server):
    one = server(echo, StoppedClock())
    seen = []
    with one.connect() as client:
        client.sendall(framed(b"hello"))
        assert read_exactly(client, 9) == framed(b"hello")  # the connection is there

        def ask():
            client.sendall(framed(b"hello"))
            select.select(
                [one.protocols[0].connection._socket], [], [], 10
            )  # a busy machine delivers it a little later
            one.loop.call_soon(lambda: one.loop.call_soon(look))  # due in the turn in which the request is served

        def look():
            seen.append(client.recv(100) if select.select([client], [], [], 1)[0] else b"")

        one.on_loop(ask)
        wait_until(lambda: seen)
    assert seen == [framed(b"hello")]


class SlowMachine(SystemClock):
    """Whatever is done between two looks at the clock takes a fifth of a millisecond more."""

    def __init__(self):
        self.looks = 0

    def monotonic(self):
        self.looks += 1
        return SystemClock.monotonic() + self.looks * 0.000_2


def test_many_that_go_at_once_while_nobody_reads_do_not_end_in_one_turn(server):
    one = server(lambda _: [], SlowMachine())
    clients = [one.connect() for _ in range(60)]
    for client in clients:
        client.sendall(framed(b"hello"))
    wait_until(lambda: sum(len(each.frames) for each in one.protocols) == 60)
    one.on_loop(lambda: [each.connection.pause_reading() for each in one.protocols])
    ended, turn = [], []
    for each in one.protocols:
        each.closed = lambda _reason: ended.append(len(turn))

    def count_turns():
        turn.append(None)
        if len(ended) < 60:
            one.loop.call_soon(count_turns)

    def all_go():
        for client in clients:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        count_turns()

    one.on_loop(all_go)
    wait_until(lambda: len(ended) == 60)
    assert max(ended.count(number) for number in set(ended)) <= 20


def test_what_is_called_soon_may_send(server):
    one = server(lambda _: [])
    with one.connect() as client:
        client.sendall(framed(b"hello"))
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        one.on_loop(lambda: one.loop.call_soon(lambda: one.protocols[0].connection.send([b"!"])))
        assert read_exactly(client, 1) == b"!"


def test_what_is_put_off_since_its_account_has_overdrawn_leaves_in_a_later_turn(server, monkeypatch):
    one, seen, real = server(echo), [], Sender.put_off
    monkeypatch.setattr(Sender, "put_off", lambda sender: (seen.append(one.loop.turn_number), real(sender)))
    with one.connect() as client:
        client.sendall(framed(b"hello"))
        assert read_exactly(client, 9) == framed(b"hello")  # the connection is there
        connection = one.protocols[0].connection

        def send():
            seen.clear()  # on a busy machine the turns before may have overdrawn, too
            one.loop.accounts.charge(connection.payer, 2 * OVERDRAWN_ALONE_S)
            connection.send([b"!"])

        one.on_loop(send)
        assert read_exactly(client, 1) == b"!"
        assert len(seen) == 1
        assert one.loop.turn_number > seen[0]


def test_a_broken_protocol_loses_its_own_connection_only(server, capfd):
    def answer(frame):
        if frame == b"bad":
            raise RuntimeError("a bug")
        return [framed(frame)]

    one = server(answer)
    with one.connect() as bad, one.connect() as good:
        bad.sendall(framed(b"bad"))
        assert bad.recv(1) == b""
        good.sendall(framed(b"fine"))
        assert read_exactly(good, 8) == framed(b"fine")
    assert "a bug" in capfd.readouterr().err


def test_a_bug_of_who_is_told_what_has_left_loses_its_connection_only(server, tmp_path, capfd):
    """It is called while the loop sends, for all. One that ends has others to tell, and gives back what it holds."""
    (tmp_path / "log").write_bytes(b"x" * 100)
    file = SystemFiles().open(str(tmp_path / "log"))

    def fail(_size):
        raise RuntimeError("a bug")

    def answer(frame):
        return [FileSlice(file, 0, 100, fail), FileSlice(file, 0, 100, fail)] if frame == b"bad" else [framed(frame)]

    one = server(answer)
    with one.connect() as bad, one.connect() as good:
        bad.sendall(framed(b"bad"))
        assert read_exactly(bad, 200) == b"x" * 200
        assert bad.recv(1) == b""
        good.sendall(framed(b"fine"))
        assert read_exactly(good, 8) == framed(b"fine")
    assert "a bug" in capfd.readouterr().err
    assert one.on_loop(lambda: one.loop.accounts.internal.held_bytes) == 0


def test_one_that_is_cut_off_before_it_is_to_wait_does_not_wait_for_ever(server):
    """Or its account would be read frame by frame from then on."""
    one = server()

    def keep_too_much(_frame):
        connection = one.protocols[0].connection
        connection.hold(2 * INTERNAL_BYTES)
        connection.pause_for_limit()
        return []

    one.answer = keep_too_much
    with one.connect() as client:
        client.sendall(framed(b"go"))
        wait_until(lambda: one.protocols and one.protocols[0].closed_for)
    account = one.loop.accounts.internal
    assert (account.waiting, account.held_bytes, account.reads_frame_by_frame) == (0, 0, False)


def test_what_follows_the_frame_that_closes_its_connection_is_nobodys_bug(server, capfd):
    one = server()
    one.answer = lambda _: one.protocols[0].connection.close() or []
    frame = framed(b"x" * 100)
    with one.connect() as client:
        client.sendall(frame[:50])
        wait_until(lambda: one.protocols and one.protocols[0].connection._partial)
        client.sendall(frame[50:] + frame)
        wait_until(lambda: one.protocols[0].closed_for)
    assert "Error" not in capfd.readouterr().err


def test_nothing_is_kept_of_a_backlog_whose_last_frame_pauses_the_connection(server):
    one = server()

    def pause_at_ends(frame):
        if frame in (b"first", b"last"):
            one.protocols[0].connection.pause_reading()
        return []

    one.answer = pause_at_ends
    with one.connect() as client:
        client.sendall(framed(b"first") + framed(b"middle") * 100 + framed(b"last"))
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        one.on_loop(one.protocols[0].connection.resume_reading)
        wait_until(lambda: len(one.protocols[0].frames) == 102)
        assert one.on_loop(lambda: len(one.protocols[0].connection._backlog.obj)) == 0


def test_that_a_peer_has_gone_can_be_asked_while_nothing_is_read(server):
    one = server()
    with one.connect() as client:
        client.sendall(framed(b"first"))
        wait_until(lambda: one.protocols and one.protocols[0].frames)
        connection = one.protocols[0].connection
        one.on_loop(connection.pause_reading)
        client.sendall(framed(b"second"))
        assert not one.on_loop(connection.peer_has_finished)
    wait_until(lambda: one.on_loop(connection.peer_has_finished))
    one.on_loop(connection.resume_reading)
    wait_until(lambda: one.protocols[0].closed_for)
    assert one.protocols[0].frames == [b"first", b"second"]


def test_a_timer_that_is_further_off_than_epoll_can_wait_is_no_trouble():
    """24.8 days and more: `connections.max.reauth.ms` may say so."""
    loop = EpollLoop(SystemClock())
    timer = loop.call_later(2**32, lambda: None)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    turned = threading.Event()
    loop.call_threadsafe(turned.set)
    assert turned.wait(10)
    timer.cancel()
    loop.call_threadsafe(loop.stop)
    thread.join(10)
    assert not thread.is_alive()
    loop.close()


def test_a_frame_that_is_to_last_is_copied_only_out_of_memory_that_others_write_to(server):
    lasting = []

    def keep(frame):
        return [framed(b"")]

    one = server(keep)

    class Keeping(Recorder):
        def frame(self, frame):
            kept = self.connection.lasting(frame)
            lasting.append((kept, kept is frame))
            super().frame(frame)

    one.accept = None
    one.listener._accept = lambda connection: Keeping(connection, keep)
    small, large = b"s" * 1_000, b"l" * 3_000_000
    with one.connect() as client:
        for payload in (small, large, small.upper()):
            client.sendall(framed(payload))
            assert read_exactly(client, 4) == framed(b"")
    assert [bytes(kept) for kept, _ in lasting] == [small, large, small.upper()]
    assert [is_where_it_was for _, is_where_it_was in lasting] == [False, True, False]


def test_a_protocol_is_told_when_all_that_was_here_is_handed_out_a_large_frame_too(server):
    seen = []
    one = server()

    class Settling(Recorder):
        def frame(self, frame):
            seen.append(bytes(frame[:1]))
            self.connection.send([framed(b"")])

        def settle(self):
            seen.append(b"settled")

    one.listener._accept = Settling
    with one.connect() as client:
        for payload in (b"s" * 1_000, b"l" * 3_000_000, b"t" * 1_000):
            client.sendall(framed(payload))
            assert read_exactly(client, 4) == framed(b"")
    one.on_loop(lambda: None)
    frames = [each for each in seen if each != b"settled"]
    assert frames == [b"s", b"l", b"t"]
    assert all(seen[seen.index(each) + 1] == b"settled" for each in frames)


@pytest.mark.parametrize("follows", [b"", b"next"])
@pytest.mark.parametrize("kib", [60, 1024, 3072])
def test_a_frame_counts_in_the_turn_in_which_it_is_whole(server, kib, follows):
    """What is written at a turn's end is charged by what came in it: nothing of a frame is before it has come."""
    one = server()
    brought, accounts = [], one.loop.accounts
    count = accounts.brought
    accounts.brought = lambda account, size: (brought.append(size), count(account, size))
    frame = bytes(kib * 1024)
    one.answer = lambda frame: one.loop.at_turn_end(lambda: None) or [b"!"]
    with one.connect() as client:
        client.sendall(framed(frame)[:50_000])
        wait_until(lambda: one.protocols and one.protocols[0].connection.received_bytes == 50_000)
        client.sendall(framed(frame)[50_000:-9])
        wait_until(lambda: one.protocols[0].connection.received_bytes == len(frame) + 4 - 9)
        assert brought == []
        client.sendall(frame[-9:] + (framed(follows) if follows else b""))
        assert read_exactly(client, 1 + bool(follows)) in (b"!", b"!!")
    assert sum(brought) == len(frame) + (len(framed(follows)) if follows else 0)


def test_what_waited_in_the_backlog_counts_in_the_turn_in_which_it_is_handed_out(server):
    one = server()
    brought, accounts = [], one.loop.accounts
    count = accounts.brought
    accounts.brought = lambda account, size: (brought.append(size), count(account, size))

    class Pausing(Recorder):
        def frame(self, frame):
            super().frame(frame)
            self.connection.pause_reading()

    one.listener._accept = lambda connection: one.protocols.append(Pausing(connection)) or one.protocols[-1]
    with one.connect() as client:
        client.sendall(framed(b"a" * 10) + framed(b"b" * 20))
        wait_until(lambda: one.protocols and one.protocols[0].connection.received_bytes == 38)
        assert one.on_loop(lambda: list(brought)) == [14]
        one.on_loop(one.protocols[0].connection.resume_reading)
        wait_until(lambda: len(one.protocols[0].frames) == 2)
        assert one.on_loop(lambda: list(brought)) == [14, 24]
