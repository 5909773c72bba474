"""LeaveGroup for somebody else: a request that confluent_kafka has no call for, written here byte by byte.

    SaslHandshake v1, SaslAuthenticate v0 (PLAIN), LeaveGroup v3, to the group's coordinator, on a connection of their own.

Over TLS the certificate says who asks, and the first two are left out.

The versions are the last without tagged fields. https://kafka.apache.org/protocol#The_Messages_LeaveGroup; KIP-345 has members
be removed by their ids.
"""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING

from controlplane.core.errors import ClusterUnavailable
from quota.contracts.identity import CONTROL_PLANE

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    from controlplane.clusters.identification import Identification

CLIENT_ID = "sluice-controlplane"
USER = CONTROL_PLANE.name
SASL_HANDSHAKE, SASL_AUTHENTICATE, LEAVE_GROUP = 17, 36, 13
AT_ONCE = 2**18
MOST_BYTES = 2**26
"""All offsets of a group of 100,000 partitions are some MiB; what claims to be more than this is not from a broker."""


class TooLong(ClusterUnavailable):
    """An answer of more than MOST_BYTES: who asks for less may have one, on another connection."""


def leave(address: tuple[str, int], who: Identification, group: str, member_id: str, *, timeout_s: float) -> int:
    """Take a member out of a group; Kafka's error code, 0 where it is out. Raises ClusterUnavailable."""
    with signed_in(address, who, timeout_s=timeout_s) as connection:
        members = struct.pack(">i", 1) + text_of(member_id) + struct.pack(">h", -1)
        return left(ask(connection, LEAVE_GROUP, 3, text_of(group) + members))


@contextmanager
def signed_in(address: tuple[str, int], who: Identification, *, timeout_s: float) -> Iterator[socket.socket]:
    """A connection to a coordinator that knows who asks. Raises ClusterUnavailable, also for what is asked in it."""
    try:
        with who.connected(address, timeout_s=timeout_s) as connection:
            if who.material is None:
                _log_in(connection, who.credential)
            yield connection
    except (OSError, struct.error) as error:
        raise ClusterUnavailable("the group's coordinator does not answer") from error


def _log_in(connection: socket.socket, credential: str) -> None:
    handshake = ask(connection, SASL_HANDSHAKE, 1, text_of("PLAIN"))
    proof = b"\0" + USER.encode() + b"\0" + credential.encode()
    login = ask(connection, SASL_AUTHENTICATE, 0, struct.pack(">i", len(proof)) + proof)
    if _int16(handshake, 0) or _int16(login, 0):
        raise ClusterUnavailable("the group's coordinator does not let this service in")


def left(answer: bytes) -> int:
    """The error of a LeaveGroup v3 answer: the group's, or else its one member's. Raises struct.error."""
    of_group, members = struct.unpack_from(">hi", answer, 4)  # after the throttle time
    if of_group or not members:
        return int(of_group)
    at = 10
    for _ in range(2):  # the member's id, and its instance's
        length = max(_int16(answer, at), 0)
        at += 2 + length
    return _int16(answer, at)


def ask(
    connection: socket.socket,
    key: int,
    version: int,
    body: bytes,
    client_id: str = CLIENT_ID,
    *,
    flexible: bool = False,
) -> bytes:
    """The answer's body. In a flexible version (KIP-482) both headers end with tags, of which we send and expect none."""
    request = struct.pack(">hhi", key, version, 1) + text_of(client_id) + b"\0" * flexible + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    (size,) = struct.unpack(">i", _exactly(connection, 4))
    if size > MOST_BYTES:
        raise TooLong("an answer of the group's coordinator is too long")
    if size < 4:  # not even a correlation id
        raise ClusterUnavailable("the group's coordinator does not speak Kafka")
    return _exactly(connection, size)[4 + flexible :]  # after the correlation id: one request is on its way at a time


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts, left = [], size
    while left:
        found = connection.recv(min(left, AT_ONCE))
        if not found:
            raise ConnectionResetError("closed by the broker")
        parts.append(found)
        left -= len(found)
    return b"".join(parts)


def text_of(text: str) -> bytes:
    """As the protocol writes it."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _int16(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">h", data, at)[0])
