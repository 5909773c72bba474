"""New keys of TLS 1.3 (KeyUpdate): a peer may have them, and not so many that the loop does nothing else."""

import contextlib
import socket
import ssl
import struct

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from dataplane.network.tls import MOST_RECEIVED_BYTES, MOST_WITHOUT_BYTES, TlsSocket
from dataplane.network.tls_context import server_context
from tests.dataplane.network.tls_server import LEAF, ByHand, client_context

HANDSHAKE, DATA = 22, 23


class Records:
    """What a client says behind its handshake, made by hand of the secret that its context has written down."""

    def __init__(self, log):
        [secret] = [line.split()[2] for line in log.read_text().splitlines() if line[:23] == "CLIENT_TRAFFIC_SECRET_0"]
        self._use(bytes.fromhex(secret))

    def _use(self, secret):
        self.secret, self.number = secret, 0
        self.key, self.iv = AESGCM(self._expanded(b"key", 32)), int.from_bytes(self._expanded(b"iv", 12))

    def _expanded(self, label, size):
        full = b"tls13 " + label
        info = struct.pack(">HB", size, len(full)) + full + b"\0"
        return HKDFExpand(SHA384(), size, info).derive(self.secret)

    def record(self, kind, content):
        nonce = (self.iv ^ self.number).to_bytes(12)
        self.number += 1
        head = struct.pack(">BHH", 23, 0x0303, len(content) + 17)
        return head + self.key.encrypt(nonce, content + bytes([kind]), head)

    def new_key(self, *, asks=False):
        made = self.record(HANDSHAKE, bytes([24, 0, 0, 1, asks]))
        self._use(self._expanded(b"traffic upd", 48))
        return made


@pytest.fixture
def pair(tmp_path):
    """The server's half, and what its client may say."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**22)
    layer = TlsSocket(ours, server_context(LEAF.pem, LEAF.key_pem), memoryview(bytearray(MOST_RECEIVED_BYTES)))
    context = client_context()
    context.keylog_filename = str(tmp_path / "keys")
    client = ByHand(theirs, context)
    is_over = False
    while not is_over:
        with contextlib.suppress(ssl.SSLWantReadError):
            client.tls.do_handshake()
        client.push()
        layer.take_in()
        is_over = layer.step()
        layer.take_back(is_over=is_over)
        assert layer.answer()
        if not is_over:
            client.pull()
    assert client.tls.cipher()[0] == "TLS_AES_256_GCM_SHA384"
    yield layer, theirs, Records(tmp_path / "keys")
    client.sock.close()
    layer.close()


def received(layer):
    memory = memoryview(bytearray(MOST_RECEIVED_BYTES))
    try:
        return bytes(memory[: layer.recv_into(memory)])
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("asks", [False, True])
def test_one_that_never_ends_to_have_new_keys_is_ended_soon(pair, asks):
    layer, peer, records = pair
    peer.sendall(b"".join(records.new_key(asks=asks) for _ in range(5_000)))
    with pytest.raises(OSError, match="without a byte"):
        received(layer)
    assert layer.held_bytes > 130_000  # it had 135,000, which took 200 ms of one turn


def test_a_byte_between_them_does_not_help(pair):
    layer, peer, records = pair
    said = [records.new_key() + records.record(DATA, b"x") for _ in range(4 * MOST_WITHOUT_BYTES)]
    peer.sendall(b"".join(said))
    with pytest.raises(OSError, match="without a byte"):
        received(layer)


def test_now_and_then_is_nothing_to_complain_of(pair):
    layer, peer, records = pair
    got = b""
    for _ in range(3 * MOST_WITHOUT_BYTES):
        peer.sendall(records.new_key())
        peer.sendall(b"".join(records.record(DATA, b"x" * 10) for _ in range(1_000)))
        while len(got) < 10_000:
            got += received(layer)
        assert got == b"x" * 10_000
        got = b""


def test_records_cut_anywhere_are_counted_as_whole_ones(pair):
    layer, peer, records = pair
    stream = b"".join(records.record(DATA, bytes([place])) for place in range(200))
    got = b""
    for start in range(0, len(stream), 7):
        peer.sendall(stream[start : start + 7])
        got += received(layer)
    assert got == bytes(range(200))


def test_what_there_is_no_room_for_is_not_lost(pair):
    layer, peer, records = pair
    peer.sendall(b"".join(records.record(DATA, bytes([place]) * 3) for place in range(200)))
    got, memory = b"", memoryview(bytearray(50))
    while len(got) < 600:
        size = layer.recv_into(memory)
        got += memory[:size]
        assert layer.has_more or len(got) == 600
        assert layer.held_bytes > 0 or len(got) == 600
    assert got == b"".join(bytes([place]) * 3 for place in range(200))
    with pytest.raises(BlockingIOError):
        layer.recv_into(memory)
    assert layer.held_bytes == 0


def test_an_end_behind_the_first_of_two_buffers_is_told(pair):
    layer, peer, records = pair
    peer.sendall(records.record(DATA, b"whole") + records.record(21, b"\x01\0"))
    assert layer.recvmsg_into([memoryview(bytearray(5)), memoryview(bytearray(50))]) == (5,)
    assert layer.has_more
    assert layer.recv_into(memoryview(bytearray(50))) == 0
