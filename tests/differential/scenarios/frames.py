"""Frames that are no requests: sizes that lie, keys and versions that are unknown, bodies that are cut or go on.

Run once, under the newest version of ApiVersions.
"""

from __future__ import annotations

import struct

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import encode_request
from dataplane.protocol.messages.groups import HeartbeatRequest
from tests.differential.asking import Asker
from tests.differential.scenarios import scenario


def _header(key: int, version: int, client: bytes = b"\0\1x") -> bytes:
    return struct.pack(">hhi", key, version, 7) + client


def _sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@scenario(ApiKey.API_VERSIONS)
def frames(asker: Asker) -> None:
    if asker.version != 3:
        return
    asker.raw("a size of -1", b"\xff\xff\xff\xff")
    asker.raw("a size of 0", b"\0\0\0\0")
    asker.raw("a size of 2 GiB", b"\x7f\xff\xff\xff" + bytes(100))
    asker.raw("a size above the limit", (101 * 2**20).to_bytes(4) + bytes(100))
    asker.raw("less than a header", _sized(b"\0\1"))
    asker.raw("an unknown key", _sized(_header(999, 0)))
    asker.raw("a negative key", _sized(_header(-1, 0)))
    for version in (5, 99, -1):
        asker.raw(f"ApiVersions {version}", _sized(_header(18, version) + b"\0"))
    for key in (0, 1, 3, 8, 11, 19):
        for version in (99, -1):
            asker.raw(f"version {version} of {ApiKey(key).name}", _sized(_header(key, version)))
    heartbeat = encode_request(APIS[ApiKey.HEARTBEAT], 3, 7, "x", HeartbeatRequest("g", 1, "m"))
    asker.raw("a body that is cut", _sized(bytes(heartbeat)[4:-3]))
    asker.raw("a body that goes on", _sized(bytes(heartbeat)[4:] + b"more"))
    flexible = encode_request(APIS[ApiKey.HEARTBEAT], 4, 7, "x", HeartbeatRequest("g", 1, "m"))
    asker.raw("tags that nobody knows", _sized(bytes(flexible)[4:-1] + b"\1\x63\2ab"))
    asker.raw("a tag twice", _sized(bytes(flexible)[4:-1] + b"\2\x63\1a\x63\1a"))
    asker.raw("a client id of -2", _sized(_header(18, 0, b"\xff\xfe")))
    asker.raw("a client id beyond the end", _sized(_header(18, 0, b"\0\x50x")))
    asker.raw("a null client id", _sized(_header(12, 3, b"\xff\xff") + bytes(heartbeat)[4 + 8 + 3 :]))
