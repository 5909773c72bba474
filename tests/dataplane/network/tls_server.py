"""A loop in a thread with one listener of TLS, and clients that speak TLS with their own hands."""

import socket
import ssl
import struct
import threading

from dataplane.background import ThreadBackground
from dataplane.clock import SystemClock
from dataplane.doors import TlsServer
from dataplane.network.loop import EpollLoop
from dataplane.network.tls_context import server_context
from tests.support.certificates import Authority

AUTHORITY = Authority()
LEAF = AUTHORITY.issue("broker", ["localhost", "127.0.0.1"])


def framed(payload):
    return struct.pack(">i", len(payload)) + payload


class Recorder:
    """A protocol that remembers, and answers every frame with what `answer` makes of it."""

    def __init__(self, connection, answer=None):
        self.connection, self.answer = connection, answer
        self.frames, self.closed_for = [], []
        self.certificates = []

    def frame(self, frame):
        self.frames.append(bytes(frame))
        if self.answer is not None:
            self.connection.send(self.answer(bytes(frame)))

    def closed(self, reason):
        self.closed_for.append(reason)


class Server:
    """`secured` is asked about each client's certificate; `beside` has the handshakes taken in a thread."""

    def __init__(
        self,
        answer=None,
        *,
        context=None,
        per_s=1000,
        beside=False,
        secured=None,
        account="tenant01",
        protocol=Recorder,
        takes_plaintext=False,
        looks_at=None,
    ):
        self.loop = EpollLoop(SystemClock())
        self.said = []
        self.loop.refusals._report = self.said.append
        self.background = ThreadBackground(self.loop)
        self.answer, self.account, self.per_s, self.protocol = answer, account, per_s, protocol
        self.takes_plaintext, self.looks_at = takes_plaintext, looks_at
        self.beside, self.secured = self.background.run if beside else None, secured
        self.context = context or server_context(LEAF.pem, LEAF.key_pem)
        self.protocols = []
        self.listener = self.loop.listen("127.0.0.1", 0, self.accept, tls=True)
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def accept(self, connection):
        protocol = self.protocol(connection, self.answer)
        self.protocols.append(protocol)
        connection.account = self.account

        def secured(certificate):
            protocol.certificates.append(certificate)
            return self.secured(certificate) if self.secured else None

        server = TlsServer(
            self.context, self.per_s, self.beside, takes_plaintext=self.takes_plaintext, looks_at=self.looks_at
        )
        connection.secure(server, secured)
        return protocol

    def connect(self):
        return socket.create_connection(self.listener.address, timeout=10)

    def connect_securely(self, context=None):
        return (context or client_context()).wrap_socket(self.connect(), server_hostname="localhost")

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
        self.background.close()
        self.loop.close()


def client_context(*, version=None, certificate=None, tmp_path=None):
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    if certificate is not None:
        path = tmp_path / "client.pem"
        path.write_text(certificate.pem + certificate.key_pem)
        context.load_cert_chain(path)
    return context


class ByHand:
    """A client whose records are cut as it likes: plain bytes in, pieces of the wire out."""

    def __init__(self, sock, context=None):
        self.sock = sock
        self.into, self.out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (context or client_context()).wrap_bio(self.into, self.out, server_hostname="localhost")

    def shake_hands(self, piece=10**6):
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.push(piece)
                self.pull()
            else:
                self.push(piece)
                return self

    def push(self, piece=10**6):
        data = self.out.read()
        for start in range(0, len(data), piece):
            self.sock.sendall(data[start : start + piece])

    def pull(self, most=65536):
        if most > 1000:
            threading.Event().wait(0.000_1)  # slower than what comes
        data = self.sock.recv(most)
        if data:
            self.into.write(data)
        else:
            self.into.write_eof()

    def write(self, data):
        at = 0
        while at < len(data):
            at += self.tls.write(data[at:])

    def read(self, size, most=65536):
        got = b""
        while len(got) < size:
            try:
                piece = self.tls.read(size - len(got))
                assert piece, "closed"
                got += piece
            except ssl.SSLWantReadError:
                self.pull(most)
        return got


def read_exactly(sock, size):
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        assert piece, "closed"
        data += piece
    return data


def wait_until(condition, seconds=20):
    deadline = SystemClock.monotonic() + seconds
    while not condition():
        assert SystemClock.monotonic() < deadline, "never happened"
        threading.Event().wait(0.005)


def echo(frame):
    return [framed(frame)]


def is_ended(sock):
    """Whether the peer has closed: with what it has not read, the system says so by a reset."""
    try:
        while sock.recv(1000):
            pass
    except ConnectionResetError:
        pass
    return True
