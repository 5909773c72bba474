"""Whatever a peer's bytes on the wire become: cut anywhere, changed, repeated, and taken from us a few at a time.

An input is a script. The peer is OpenSSL's other half; between the two lies a wire whose pieces the script cuts and may spoil.
`TlsSocket` is used as a connection uses it. Nothing but what its methods say may be raised; and on a wire that was not spoiled
both sides have read what the other has written, in order, to the last byte that came through.

    python tests/fuzz/fuzz_tls.py CORPUS… [libFuzzer's options]      run by tests.fuzz
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["dataplane"]):
    from dataplane.network.tls import MOST_RECEIVED_BYTES, TlsSocket
    from dataplane.network.tls_context import server_context

from tests.fuzz import planted
from tests.fuzz.bounded import bounded
from tests.support.certificates import Authority

AUTHORITY = Authority()
LEAF = AUTHORITY.issue("broker", ["localhost"])
SERVER = server_context(LEAF.pem, LEAF.key_pem)
CLIENTS = [ssl.create_default_context(cadata=AUTHORITY.pem) for _ in range(2)]
CLIENTS[0].maximum_version = ssl.TLSVersion.TLSv1_2
SCRATCH = memoryview(bytearray(MOST_RECEIVED_BYTES))
MESSAGE = bytes(range(256)) * 80


class Wire:
    """A socket of which a script decides how much can be read and written."""

    def __init__(self) -> None:
        self.incoming, self.outgoing = bytearray(), bytearray()
        self.readable = self.writable = 0
        self.ended = False

    def recv_into(self, memory: memoryview) -> int:
        size = min(len(memory), self.readable, len(self.incoming))
        if not size:
            if self.ended and not self.incoming:
                return 0
            raise BlockingIOError
        memory[:size] = self.incoming[:size]
        del self.incoming[:size]
        self.readable -= size
        return size

    def recv(self, size: int, flags: int) -> bytes:
        assert flags == socket.MSG_PEEK
        if not self.incoming and not self.ended:
            raise BlockingIOError
        return bytes(self.incoming[:size])

    def send(self, data: memoryview) -> int:
        size = min(len(data), self.writable)
        if not size:
            raise BlockingIOError
        self.outgoing += data[:size]
        self.writable -= size
        return size

    def close(self) -> None:
        self.incoming.clear()


class Both:
    """The two ends and what each has said and heard."""

    def __init__(self, version: int) -> None:
        self.wire = Wire()
        self.ours = TlsSocket(self.wire, SERVER, SCRATCH)  # type: ignore[arg-type]
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.peer = CLIENTS[version].wrap_bio(self.into, self.out, server_hostname="localhost")
        self.began = self.is_spoiled = self.is_secure = False
        self.said, self.heard = bytearray(), bytearray()  # by the peer; by us
        self.queued, self.taken, self.answered = (
            b"",
            0,
            bytearray(),
        )  # to be sent by us; of it counted; heard by the peer

    def peer_goes_on(self) -> None:
        self.into.write(bytes(self.wire.outgoing))
        self.wire.outgoing.clear()
        with contextlib.suppress(ssl.SSLError):
            self.peer.do_handshake()
            while True:
                self.answered += self.peer.read(65536)
                if not self.peer.pending():
                    break
        self.wire.incoming += self.out.read()

    def shake_hands(self) -> None:
        try:
            if not self.ours.waits_to_send:
                if not self.began:
                    assert self.ours.looks_like_tls() or self.is_spoiled
                    self.began = True
                self.ours.take_in()
                is_over = self.ours.step()
                self.ours.take_back(is_over=is_over)
                self.is_secure = is_over
            self.ours.answer()
        except BlockingIOError:
            pass

    def say(self, size: int) -> None:
        with contextlib.suppress(ssl.SSLError):
            self.said += MESSAGE[: self.peer.write(MESSAGE[:size])]
            self.wire.incoming += self.out.read()

    def hear(self, size: int, how: int) -> None:
        memory = memoryview(bytearray(size))
        with contextlib.suppress(BlockingIOError):
            if how == 0:
                self.heard += memory[: self.ours.recv_into(memory)]
            elif how == 1:
                half = size // 2 or 1
                (got,) = self.ours.recvmsg_into([memory[:half], memory[half:]][: 2 if size > half else 1])
                self.heard += memory[:got]
            else:
                seen = self.ours.recv(size, socket.MSG_PEEK)
                again = memoryview(bytearray(size))
                got = self.ours.recv_into(again)
                assert bytes(again[: len(seen)]) == seen
                self.heard += again[:got]

    def answer(self, size: int) -> None:
        self.queued += MESSAGE[:size]
        with contextlib.suppress(BlockingIOError):
            rest = memoryview(self.queued)[self.taken :]
            if rest:
                middle = len(rest) // 2
                self.taken += self.ours.sendmsg([part for part in (rest[:middle], rest[middle:]) if part])

    def spoil(self, at: int) -> None:
        if self.wire.incoming:
            self.wire.incoming[at % len(self.wire.incoming)] ^= 1 + at % 255
            self.is_spoiled = True

    def check(self) -> None:
        assert self.said.startswith(self.heard)
        assert self.queued.startswith(self.answered)
        assert self.taken <= len(self.queued)
        assert self.ours.held_bytes >= 0


def one_input(data: bytes) -> None:
    """One input of the fuzzer: two bytes are one step."""
    if not data:
        return
    both = Both(data[0] & 1)
    both.peer_goes_on()
    try:
        for what, much in zip(data[1::2], data[2::2], strict=False):
            step(both, what % 8, much * (1 + (what >> 3) ** 2))
            both.check()
    except (OSError, EOFError):
        assert both.is_spoiled or both.wire.ended, "a good peer was sent away"
    finally:
        both.ours.close()


def step(both: Both, what: int, much: int) -> None:
    """What the script says, a number and how much of it."""
    wire = both.wire
    if what == 0:
        wire.readable += much
    elif what == 1:
        wire.writable += much
    elif what == 2:
        both.peer_goes_on()
    elif what == 3 and both.is_secure:
        both.hear(1 + much, much % 3)
    elif what == 4 and both.is_secure:
        both.answer(much)
    elif what == 5:
        both.say(much)
    elif what == 6 and much:
        if much % 16 == 1:
            wire.ended = True
        elif much % 16 == 2:
            both.spoil(much)
    if not both.is_secure:
        both.shake_hands()


def write_seeds(folder: Path) -> None:
    """Handshakes in pieces of several sizes, with something said and answered behind."""
    for version in (0, 1):
        for piece in (5, 60, 255):
            greeting = bytes([0, piece, 1, piece, 2, 0]) * (1500 // piece + 8)
            talk = bytes([248, 255, 249, 255, 5, 200, 3, 100, 3, 100, 4, 250, 2, 0, 125, 200, 3, 255, 4, 255, 2, 0]) * 3
            for name, end in (("end", bytes([6, 1, 3, 9])), ("spoil", bytes([5, 90, 6, 18, 3, 99, 3, 99])), ("", b"")):
                (folder / f"{version}-{piece}-{name}").write_bytes(bytes([version]) + greeting + talk + end)


if __name__ == "__main__":
    planted.take(sys.argv)
    atheris.Setup(sys.argv, bounded(one_input))
    atheris.Fuzz()
