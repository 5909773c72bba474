"""Why a connection ended, in words for the log, and as a reason for its tenant."""

from __future__ import annotations

import pytest

from dataplane.network.refusals import HANDSHAKE_FAILED, NOT_TLS, TOO_MANY_HANDSHAKES, ended_because, oversize
from quota.contracts.refused import Refused


@pytest.mark.parametrize("version", ["0301", "0303"])
@pytest.mark.parametrize("length", ["00", "01", "02"])
def test_a_handshake_where_none_is_spoken_is_known_by_its_first_bytes(version, length):
    reason = oversize(int("16" + version[:2] + version[2:] + length, 16), 2**24)
    assert reason.startswith("invalid receive (size = 36")
    assert ended_because(reason) is Refused.TLS_IN_CLEAR


@pytest.mark.parametrize("size", [-1, 2**24 + 1, 2**31 - 1, 0x15030100, 0x17030300])
def test_what_is_only_too_large_is_no_reason(size):
    assert oversize(size, 2**24).startswith(f"invalid receive (size = {size}")
    assert ended_because(oversize(size, 2**24)) is None


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (NOT_TLS, Refused.NOT_TLS),
        (f"{HANDSHAKE_FAILED} (no shared cipher)", Refused.HANDSHAKE),
        (TOO_MANY_HANDSHAKES, Refused.RATE),
        ("closed by the peer", None),
        ("the TLS handshake took longer than 10 s", None),
    ],
)
def test_reasons_of_tls(reason, told):
    assert ended_because(reason) is told
