"""TLS over a socket, in user space: what a connection reads and sends is plain, what goes over the wire is not.

`TlsSocket` has those methods of a socket that `connection` and `sending` use, with the same meanings, so these know nothing of
TLS, and connections without it have the code and the cost that they had. What is different:

* **Bytes may be here although the socket is not readable:** OpenSSL has decrypted more than was asked for. `has_more` says so,
  and the connection has to come again without being reported by epoll.
* **What was encrypted cannot be taken back.** When the system takes only a part of it the rest is kept here, and the plain
  bytes that it stands for are not yet counted as sent; the caller offers them again, and they are skipped. So what a sender
  believes to be queued is queued, and a connection that closes after its last answer has sent all of it.
* **It costs.** One call decrypts `MOST_RECEIVED_BYTES` at most and encrypts `MOST_SENT_BYTES`; the rest is for the next turn.
* **Not every record has bytes.** New keys (KeyUpdate) come in 27 bytes and cost 50 us, and one read goes through all that are
  there: 256 KiB of them were 400 ms of a turn, of whoever has shaken hands. So OpenSSL is given `RECORDS_AT_ONCE`, and who sends
  many more than have brought bytes is ended.

What is kept in here (`held_bytes`) is one record and what the system did not take of one chunk.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Sequence
from typing import cast

from dataplane.doors import Buffer
from dataplane.network.tls_records import RecordEnds

RECORD_BYTES = 18 * 2**10
"""What one record takes on the wire, and a little more."""
MOST_RECEIVED_BYTES = 256 * 2**10
MOST_SENT_BYTES = 512 * 2**10
"""Plain bytes that one call encrypts: about half a millisecond's work."""
CHUNK_BYTES = 128 * 2**10
"""Plain bytes that are encrypted before the system is asked to take what became of them."""
MOST_UNASKED_BYTES = 64 * 2**10
"""What a peer may make us want to send by itself (key updates): more, and it does not read."""
RECORDS_AT_ONCE, MOST_WITHOUT_BYTES = 16, 32
"""Records that OpenSSL is given together; those that brought no bytes, beyond one for a thousand that did."""
_FORGIVEN = 1.001
HANDSHAKE_RECORD = 0x16

_NONE = memoryview(b"")


class TlsSocket:
    """A connected, non-blocking socket and the TLS on it, at either end. `scratch` is memory for one call."""

    __slots__ = (
        "_came",
        "_cipher",
        "_encrypted",
        "_ends",
        "_fruitless",
        "_in",
        "_is_busy",
        "_is_open",
        "_out",
        "_peeked",
        "_scratch",
        "_socket",
        "_tls",
        "has_more",
    )

    def __init__(
        self, sock: socket.socket, context: ssl.SSLContext, scratch: memoryview, *, is_server: bool = True
    ) -> None:
        self._socket, self._scratch = sock, scratch
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=is_server)
        self._came = _NONE  # from the wire, and not given to OpenSSL
        self._ends = RecordEnds()
        self._fruitless = 0.0  # records that OpenSSL was given, less those that have brought bytes
        self._cipher = _NONE  # encrypted, and not taken by the system
        self._encrypted = 0  # plain bytes of it that were not yet reported as sent
        self._peeked = b""
        self._is_open = False  # the handshake is over
        self._is_busy = False  # a thread has it
        self.has_more = False  # something can be read although the socket need not be readable

    # --- handshake ----------------------------------------------------------------------------------------------------

    def looks_like_tls(self) -> bool:
        """Whether the first byte that has come is a handshake's. Raises BlockingIOError, OSError, EOFError."""
        first = self._socket.recv(1, socket.MSG_PEEK)
        if not first:
            raise EOFError
        return first[0] == HANDSHAKE_RECORD

    def begin(self) -> None:
        """At the client's end: have the first words ready, which `answer` sends. Raises ssl.SSLError."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()

    def take_in(self) -> None:
        """Receive what the peer has sent of the handshake. Raises BlockingIOError, OSError, EOFError."""
        received = self._socket.recv_into(self._scratch[:RECORD_BYTES])
        if not received:
            raise EOFError
        self._came = memoryview(bytes(self._came) + self._scratch[:received])

    def lend(self) -> None:
        """Until `step` has returned a thread has it: nothing of it is touched here."""
        self._is_busy = True

    def step(self) -> bool:
        """Go on with the handshake; whether it is over. Touches no socket. Raises ssl.SSLError: it has failed."""
        while self._give():
            with contextlib.suppress(ssl.SSLWantReadError):
                self._tls.do_handshake()
                return True
        return False

    def take_back(self, *, is_over: bool) -> None:
        """What `step` returned."""
        self._fruitless = 0.0
        self._is_busy, self._is_open, self.has_more = False, is_over, is_over

    def answer(self) -> bool:
        """Send what the handshake has to say; whether the system took all of it. Raises OSError."""
        self._cipher = memoryview(bytes(self._cipher) + self._out.read()) if self._out.pending else self._cipher
        try:
            self._drain()
        except BlockingIOError:
            return False
        return True

    def peer_certificate(self) -> bytes | None:
        """What the peer has shown and was verified, as DER; None: nothing."""
        return self._tls.getpeercert(binary_form=True)

    def version(self) -> str | None:
        """Of the protocol, "TLSv1.3"."""
        return self._tls.version()

    def given_up(self) -> socket.socket:
        """The socket itself, of which nothing was taken: there is to be no TLS on it."""
        return self._socket

    # --- receiving ----------------------------------------------------------------------------------------------------

    def recv_into(self, memory: memoryview) -> int:
        """Plain bytes; 0: the peer has ended it. Raises BlockingIOError, OSError (what came is not TLS, or not the peer's)."""
        try:
            return self._decrypt(memory)
        finally:
            if self._came:
                self._came = memoryview(bytes(self._came))  # it was in the scratch

    def _decrypt(self, memory: memoryview) -> int:
        most = min(len(memory), MOST_RECEIVED_BYTES)
        got = self._take_peeked(memory[:most])
        may_fetch = not got
        self.has_more = False
        while got < most:
            try:
                size = cast("int", self._tls.read(most - got, memory[got:most]))
            except ssl.SSLWantReadError:
                if self._fruitless > MOST_WITHOUT_BYTES:
                    raise OSError(0, "the peer sends records without a byte in them") from None
                if self._give():
                    continue
                if not may_fetch or not self._fetch(most - got, is_needed=not got):
                    break
                may_fetch = False
                continue
            except ssl.SSLEOFError:
                size = 0
            except ssl.SSLError:
                if not got:
                    raise
                self.has_more = True  # what came before is good; the error comes again
                return got
            if not size:
                self.has_more = bool(got)  # the end is told the next time
                return got
            got += size
            if not self._tls.pending():
                self._fruitless = max(0.0, self._fruitless - _FORGIVEN)
        else:
            self.has_more = True
        if self._out.pending:
            self._say_unasked()
        if not got:
            raise BlockingIOError
        return got

    def recvmsg_into(self, buffers: Sequence[memoryview]) -> tuple[int]:
        """The same into several."""
        total = 0
        for memory in buffers:
            try:
                got = self.recv_into(memory)
            except BlockingIOError:
                if not total:
                    raise
                break
            total += got
            if total and not got:
                self.has_more = True  # the end is told the next time: the socket need not say more
            if got < len(memory):
                break
        return (total,)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Up to `size` plain bytes; with MSG_PEEK they are there the next time as well."""
        memory = memoryview(bytearray(size))
        got = self.recv_into(memory)
        data = bytes(memory[:got])
        if flags & socket.MSG_PEEK:
            self._peeked = data + self._peeked
        return data

    def _take_peeked(self, memory: memoryview) -> int:
        size = min(len(self._peeked), len(memory))
        if size:
            memory[:size] = self._peeked[:size]
            self._peeked = self._peeked[size:]
        return size

    def _fetch(self, wanted: int, *, is_needed: bool) -> bool:
        """Bytes from the wire, no more than are wanted and a record; whether the peer can be asked for plain ones again."""
        most = max(RECORD_BYTES, min(wanted, len(self._scratch)))
        try:
            received = self._socket.recv_into(self._scratch[:most])
        except BlockingIOError:
            return False
        except OSError:
            if is_needed:
                raise
            return False
        if received:
            self._came = self._scratch[:received]
            self._give()
        else:
            self._in.write_eof()
        return True

    def _give(self) -> bool:
        """Some of what has come, to OpenSSL; whether there was any."""
        if not self._came:
            return False
        size, ended = self._ends.next(self._came, RECORDS_AT_ONCE)
        self._in.write(self._came[:size])
        self._came = self._came[size:] or _NONE
        self._fruitless += ended
        return True

    def _say_unasked(self) -> None:
        """Answers to the peer's TLS, not to its requests: they leave now or with the next answer."""
        self._cipher = memoryview(bytes(self._cipher) + self._out.read())
        with contextlib.suppress(BlockingIOError):
            self._drain()
        if len(self._cipher) > CHUNK_BYTES + CHUNK_BYTES // 8 + MOST_UNASKED_BYTES:
            raise OSError(0, "the peer asks for new keys and does not read")

    # --- sending ------------------------------------------------------------------------------------------------------

    def send(self, data: Buffer, _flags: int = 0) -> int:
        """How many of these plain bytes are in the hands of the system. Raises BlockingIOError, OSError."""
        return self.sendmsg((data,))

    def sendmsg(self, buffers: Sequence[Buffer], _ancillary: Sequence[object] = (), _flags: int = 0) -> int:
        """The same of several, in order. What was offered and not counted has to be offered again."""
        size = sum(map(len, buffers))
        done = self.settled(size)
        end = min(size, done + MOST_SENT_BYTES)
        while done < end:
            piece = _piece(buffers, done, min(CHUNK_BYTES, end - done))
            self._encrypt(piece)
            try:
                self._drain()
            except BlockingIOError:
                if not done:
                    raise
                break
            self._encrypted = 0
            done += len(piece)
        return done

    def settled(self, most: int) -> int:
        """So many of the next `most` plain bytes were encrypted before, and have left. Raises BlockingIOError, OSError."""
        self._drain()
        done = min(self._encrypted, most)
        self._encrypted -= done
        return done

    def _encrypt(self, piece: Buffer) -> None:
        view, at = memoryview(piece), 0
        while at < len(view):  # a record at a time
            at += self._tls.write(view[at:])
        self._encrypted = len(view)
        self._cipher = memoryview(self._out.read())

    def _drain(self) -> None:
        while self._cipher:
            self._cipher = self._cipher[self._socket.send(self._cipher) :] or _NONE

    # --- both ---------------------------------------------------------------------------------------------------------

    @property
    def held_bytes(self) -> int:
        """Of memory, besides what OpenSSL needs for any connection."""
        if self._is_busy:
            return 0
        return len(self._cipher) + len(self._came) + self._in.pending + len(self._peeked) + self._tls.pending()

    @property
    def waits_to_send(self) -> bool:
        """Whether the system has not taken all that was encrypted."""
        return bool(self._cipher)

    def getsockopt(self, level: int, name: int, size: int) -> bytes:
        return self._socket.getsockopt(level, name, size)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Say that it ends, if that can be said at once, and close the socket."""
        if not self._is_busy:
            with contextlib.suppress(OSError, ValueError):
                if self._is_open and not self._cipher:
                    with contextlib.suppress(ssl.SSLError):
                        self._tls.unwrap()
                if not self._cipher and self._out.pending:  # or an alert: why the handshake failed
                    self._socket.send(self._out.read())
        self._socket.close()


def _piece(buffers: Sequence[Buffer], start: int, most: int) -> Buffer:
    """Up to `most` bytes of what `buffers` hold from `start` on; of one that is large enough, a view."""
    parts: list[memoryview] = []
    room = most
    for buffer in buffers:
        if start >= len(buffer):
            start -= len(buffer)
            continue
        view = memoryview(buffer)[start : start + room]
        start = 0
        parts.append(view)
        room -= len(view)
        if not room:
            break
    return parts[0] if len(parts) == 1 else b"".join(parts)
