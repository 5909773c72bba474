"""What is not in the page cache is read beside the loop: the connection waits for it, the loop and the others do not.

On a real disk (`posix_fadvise(DONTNEED)` makes a synced file cold); skipped where the temporary directory has none.
"""

import errno
import os
import socket
import threading

import pytest

from dataplane.background import ThreadBackground
from dataplane.clock import SystemClock
from dataplane.doors import NotInMemoryError
from dataplane.network.connection import SocketConnection
from dataplane.network.loop import EpollLoop
from dataplane.network.sending import MOST_AT_ONCE_BYTES
from dataplane.storage import cold as cold_module
from dataplane.storage.cold import (
    AT_ONCE_EACH,
    PIECE_BYTES,
    THREADS,
    ColdReads,
    Probe,
)
from dataplane.storage.files import FileSlice, SystemFiles
from dataplane.tasks import Future

MIB = 2**20


class HeldBackground:
    """Does the work when it is told to."""

    def __init__(self) -> None:
        self.held = []

    def run(self, work):
        future = Future()
        self.held.append((work, future))
        return future

    def release(self, count: int = 1) -> None:
        for work, future in self.held[:count]:
            try:
                future.resolve(work())
            except OSError as error:
                future.fail(error)
        del self.held[:count]


class SlowDisk(ColdReads):
    """Never has a small range before the read that refuses to wait gives up, as a quick disk has now and then."""

    def read_warm(self, part):
        return None


class Silent:
    def frame(self, frame) -> None:
        pass

    def closed(self, reason) -> None:
        pass


@pytest.fixture
def loop():
    found = EpollLoop(SystemClock())
    yield found
    found.close()


@pytest.fixture
def cold_reads(loop):
    """The loop's, by threads."""
    background = ThreadBackground(loop, THREADS)
    loop.cold_reads = ColdReads(background)
    yield loop.cold_reads
    background.close()


@pytest.fixture
def connect(loop):
    """Connections with their other ends, which are closed afterwards."""
    peers = []

    def new(account: str = "") -> Peer:
        peers.append(Peer(loop, account))
        return peers[-1]

    yield new
    for peer in peers:
        peer.connection.close()
        peer.socket.close()


def cool(path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def cold_file(path, size: int):
    """A file and its content; nothing of it is in the page cache."""
    content = os.urandom(size)
    path.write_bytes(content)
    cool(path)
    file = SystemFiles().open(str(path))
    if Probe().is_warm(file.fileno(), 0, size):
        pytest.skip("no disk here whose files can be cold")
    return file, content


class Peer:
    """The other end of a connection, read by a thread."""

    def __init__(self, loop, account: str = "") -> None:
        ours, self.socket = socket.socketpair()
        ours.setblocking(False)
        self.connection = SocketConnection(loop, ours, ("peer", 0))
        self.connection.account = account
        self.connection.start(Silent())
        self.got = bytearray()

    def wait_for(self, loop, size: int, *, seconds: float = 10.0) -> bytes:
        """Turn the loop until so much is here."""
        self.socket.settimeout(seconds)
        reader = threading.Thread(target=self._read, args=(size, loop), daemon=True)
        reader.start()
        timer = loop.call_later(seconds, loop.stop)
        loop.call_soon(lambda: None)  # what was sent from outside of the loop waits for a turn
        loop.run()
        reader.join(seconds)
        timer.cancel()
        return bytes(self.got)

    def _read(self, size: int, loop) -> None:
        while len(self.got) < size:
            data = self.socket.recv(MIB)
            if not data:
                break
            self.got += data
        loop.call_threadsafe(loop.stop)


def warm(file, size: int) -> None:
    """Have it in the page cache. A system that is short of memory may take pages back at any moment: then once more."""
    for _ in range(20):
        file.read(0, size)
        if Probe().is_warm(file.fileno(), 0, size):
            return
    raise AssertionError("it was read, and is not there")


def turn(loop) -> None:
    loop.call_soon(lambda: loop.call_soon(loop.stop))
    loop.run()


def test_a_probe_tells_cold_from_warm(tmp_path):
    file, content = cold_file(tmp_path / "a", 3 * MIB)
    probe = Probe()
    assert not probe.is_warm(file.fileno(), 0, len(content))
    warm(file, len(content))
    for position, size in ((0, len(content)), (MIB, 1), (len(content) - 1, 1), (MIB - 1, MIB + 2)):
        assert probe.is_warm(file.fileno(), position, size)


@pytest.mark.parametrize("size", [100, 50_000, 70_000, 5 * MIB])
def test_cold_bytes_arrive_whole_and_in_order(loop, cold_reads, connect, tmp_path, size):
    file, content = cold_file(tmp_path / "a", size)
    peer = connect()
    told = []
    peer.connection.send([b"head", FileSlice(file, 0, size, told.append), b"tail"])
    assert peer.wait_for(loop, size + 8) == b"head" + content + b"tail"
    assert told == [size]


def test_the_others_are_served_meanwhile(loop, connect, tmp_path):
    file, content = cold_file(tmp_path / "a", 300_000)
    background = HeldBackground()
    loop.cold_reads = ColdReads(background)
    slow, quick = connect("a"), connect("b")
    slow.connection.send([b"head", FileSlice(file, 0, len(content))])
    quick.connection.send([b"answer"])
    assert quick.wait_for(loop, 6) == b"answer"
    assert slow.wait_for(loop, 4) == b"head", "what comes before leaves at once"
    assert slow.connection.queued_bytes() == len(content)
    assert len(background.held) == 1
    background.release()
    assert slow.wait_for(loop, 4 + len(content)) == b"head" + content
    assert background.held == []


def test_what_is_warm_goes_without_a_thread(loop, connect, tmp_path):
    file, content = cold_file(tmp_path / "a", 2 * MIB)
    background = HeldBackground()
    loop.cold_reads = ColdReads(background)
    peer = connect()
    warm(file, len(content))
    peer.connection.send([FileSlice(file, 0, len(content)), FileSlice(file, 5, 1000)])
    assert peer.wait_for(loop, len(content) + 1000) == content + content[5:1005]
    assert background.held == []


def test_an_account_has_few_reads_at_once_and_others_do_not_wait_for_it(loop, connect, tmp_path):
    background = HeldBackground()
    loop.cold_reads = ColdReads(background, threads=2)
    greedy = [connect("greedy") for _ in range(6)]
    modest = connect("modest")
    contents = {}
    for number, peer in enumerate([*greedy, modest]):
        file, contents[peer] = cold_file(tmp_path / str(number), 100_000)
        peer.connection.send([FileSlice(file, 0, 100_000)])
    turn(loop)
    assert len(background.held) == AT_ONCE_EACH + 1, "those of one account, and the other's"
    while background.held:
        assert len(background.held) <= 2
        background.release()
    for peer, content in contents.items():
        assert peer.wait_for(loop, 100_000) == content


def test_a_connection_that_ends_while_it_waits(loop, connect, tmp_path):
    file, content = cold_file(tmp_path / "a", 2 * PIECE_BYTES)
    background = HeldBackground()
    loop.cold_reads = ColdReads(background)
    peer = connect()
    peer.connection.send([FileSlice(file, 0, len(content))])
    turn(loop)
    peer.connection.close()
    background.release()
    turn(loop)
    assert background.held == []


def test_what_is_sent_from_the_disk_takes_nobody_elses_place_in_memory(loop, cold_reads, connect, tmp_path):
    file, content = cold_file(tmp_path / "a", 3 * MIB)
    peer = connect()
    peer.connection.send([FileSlice(file, 0, len(content) - MIB)])
    assert peer.wait_for(loop, len(content) - MIB) == content[:-MIB]
    assert not any(Probe().is_warm(file.fileno(), position, 4096) for position in range(0, len(content) - MIB, 4096))


def test_what_is_read_again_soon_is_in_memory_for_those_who_follow(loop, cold_reads, connect, tmp_path):
    file, content = cold_file(tmp_path / "a", 2 * MIB)

    def consume(piece: int) -> None:
        peer = connect()
        for position in range(0, len(content), piece):
            peer.connection.send([FileSlice(file, position, min(piece, len(content) - position))])
        assert peer.wait_for(loop, len(content)) == content

    consume(100_000)
    assert not Probe().is_warm(file.fileno(), MIB, 4096), "reading on is not reading again"
    for _ in range(20):  # a system that is short of memory may take it back at any moment
        consume(300_000)
        if Probe().is_warm(file.fileno(), 0, len(content)):
            break
    else:
        pytest.fail("it was read again and again, and is not there")


def test_a_file_system_that_cannot_read_past_its_cache_reads_into_it(loop, cold_reads, connect, tmp_path, monkeypatch):
    real = os.open

    def refusing(path, flags, *rest, **more):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(path, flags, *rest, **more)

    file, content = cold_file(tmp_path / "a", 300_000)
    monkeypatch.setattr(os, "open", refusing)
    peer = connect()
    peer.connection.send([FileSlice(file, 100, 200_000)])
    assert peer.wait_for(loop, 200_000) == content[100:200_100]


def test_a_file_whose_name_is_gone_is_read_all_the_same(loop, cold_reads, connect, tmp_path):
    file, content = cold_file(tmp_path / "a", 300_000)
    (tmp_path / "a").unlink()
    peer = connect()
    peer.connection.send([FileSlice(file, 0, len(content))])
    assert peer.wait_for(loop, len(content)) == content


def test_a_file_that_was_cut_ends_the_connection_and_no_other(loop, connect, tmp_path):
    file, _ = cold_file(tmp_path / "a", 300_000)
    background = HeldBackground()
    loop.cold_reads = ColdReads(background)
    peer, other = connect("a"), connect("b")
    peer.connection.send([b"head", FileSlice(file, 0, 300_000)])
    turn(loop)
    os.truncate(tmp_path / "a", 10_000)
    background.release()
    other.connection.send([b"answer"])
    assert other.wait_for(loop, 6) == b"answer"
    assert peer.connection.queued_bytes() == 0
    assert peer.socket.recv(100) == b"head"
    assert peer.socket.recv(100) == b""


def test_consumers_that_do_not_read_their_answers_cost_no_memory(loop, connect, tmp_path, monkeypatch):
    monkeypatch.setattr(cold_module, "CROWDED_BYTES", 2 * PIECE_BYTES)
    background = HeldBackground()
    cold = loop.cold_reads = ColdReads(background, threads=100)
    file, content = cold_file(tmp_path / "a", 2 * MIB)
    stuck = [connect(str(number)) for number in range(10)]
    for peer in stuck:
        peer.connection.send([FileSlice(file, 0, len(content))])
    turn(loop)
    while background.held:
        background.release()
        turn(loop)
    assert not cold.is_crowded, "what their sockets did not take was let go"
    background = loop.cold_reads._background = ThreadBackground(loop, THREADS)
    for peer in stuck:
        assert peer.wait_for(loop, len(content)) == content
    background.close()


def test_memory_is_used_again_also_that_of_connections_that_end(loop, connect, tmp_path):
    file, content = cold_file(tmp_path / "a", 4 * MIB)
    background = HeldBackground()
    cold = loop.cold_reads = ColdReads(background)
    peer = connect()
    peer.connection.send([FileSlice(file, 0, len(content))])
    turn(loop)
    background.release()  # more than a socket takes
    turn(loop)
    assert peer.connection.queued_bytes() > 0
    peer.connection.close()
    (first,) = cold._memory
    another = connect()
    another.connection.send([FileSlice(file, 0, 1000)])
    turn(loop)
    background.release()
    assert another.wait_for(loop, 1000) == content[:1000]
    assert cold._memory == [first]


def cold_files(path, background):
    """The files door, with a file of which nothing is in the page cache, and the reads that were asked for."""
    path.write_bytes(bytes(range(256)) * 4096)
    cool(path)
    files = SystemFiles(ColdReads(background))
    file = files.open(str(path))
    if Probe().is_warm(file.fileno(), 0, MIB):
        pytest.skip("no disk here whose files can be cold")
    return files, file


def found_at_once(files, background, look):
    """What a look finds, once it was brought: as in `warm`, it may be gone again."""
    for _ in range(20):
        try:
            with files.at_once():
                return look()
        except NotInMemoryError as missing:
            files.bring("someone", missing, lambda: None)
            background.release()
    raise AssertionError("it was brought, and is not there")


def test_a_look_up_that_would_wait_says_what_it_missed_and_finds_it_when_it_was_brought(tmp_path):
    background = HeldBackground()
    files, file = cold_files(tmp_path / "a", background)
    with pytest.raises(NotInMemoryError) as missing, files.at_once():
        file.read(300_000, 8)
    brought = []
    files.bring("someone", missing.value, lambda: brought.append(True))
    assert not brought
    background.release()
    assert brought
    found = found_at_once(files, background, lambda: file.read(300_000, 8))
    assert found == bytes(range(300_000 % 256, 300_000 % 256 + 8))


def test_a_mapped_file_is_brought_whole_before_it_is_looked_at(tmp_path):
    background = HeldBackground()
    files, _ = cold_files(tmp_path / "a", background)
    with pytest.raises(NotInMemoryError) as missing, files.at_once():
        files.view(str(tmp_path / "a"))
    assert (missing.value.position, missing.value.size) == (0, MIB)
    files.bring("someone", missing.value, lambda: None)
    background.release()
    assert found_at_once(files, background, lambda: files.view(str(tmp_path / "a")))[MIB - 1] == 255


def test_who_looks_at_once_does_not_make_another_thread_impatient(tmp_path):
    files, file = cold_files(tmp_path / "a", HeldBackground())
    got = []
    with files.at_once():
        other = threading.Thread(target=lambda: got.append(file.read(500_000, 1)))
        other.start()
        other.join(10)
    assert got == [bytes([500_000 % 256])]


def test_outside_of_it_a_read_waits(tmp_path):
    files, file = cold_files(tmp_path / "a", HeldBackground())
    with pytest.raises(NotInMemoryError), files.at_once():
        file.read(700_000, 1)
    assert file.read(700_000, 1) == bytes([700_000 % 256])


@pytest.mark.parametrize("ends", [False, True])
def test_what_the_socket_did_not_take_before_a_cold_range_leaves_before_it(loop, connect, tmp_path, ends):
    """The peer reads slowly: of the buffers in front of the range that the disk is asked for, some are still here."""
    background = HeldBackground()
    file, content = cold_file(tmp_path / "a", 50_000)
    cold = loop.cold_reads = SlowDisk(background)
    peer = connect()
    peer.connection._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**16)
    head = os.urandom(MOST_AT_ONCE_BYTES - 60_000)  # more than the socket takes; what follows is gathered with it
    peer.connection.send([head, FileSlice(file, 0, len(content)), b"tail"])
    turn(loop)
    assert len(background.held) == 1
    assert peer.connection.queued_bytes() > len(content) + 4, "the socket is full"
    background.release()
    if ends:
        peer.connection.close()
    else:
        assert peer.wait_for(loop, len(head) + len(content) + 4) == head + content + b"tail"
    assert cold._used == 0
