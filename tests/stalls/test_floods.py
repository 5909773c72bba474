"""Floods are judged by the medians of their rounds, and each is what its name says."""

from __future__ import annotations

import ssl
from contextlib import suppress
from typing import Any

import pytest

from tests.stalls.floods import FLOODS, LOGIN, TLS, _hello, judged, line
from tests.stalls.judging import verdict

NOISE = {"acknowledged": 0.0, "consumed": 0.0}


def row(p99: float, **members: Any) -> dict[str, Any]:
    felt = {"p99": p99, "alone": 2.0, "ratio": p99 / 2.0}
    found: dict[str, Any] = {"name": "connections", "each_s": 100, "turn_ms": 1.0, "held_ms": 2.0, "probe_ms": 2.0}
    found |= {"acknowledged": felt, "consumed": felt, "errors": {}, "resident_mib": 64.0, "quiet_after_s": 0.0}
    found |= members
    return {**found, "wrong": verdict(found, NOISE)}


def test_the_median_of_the_rounds_is_judged():
    assert judged([row(2.1), row(9.0), row(2.2)], NOISE)["wrong"] == []
    assert judged([row(2.1), row(9.0), row(3.2)], NOISE)["wrong"] == ["p99"]


def test_who_was_let_in_once_fails_it_in_whichever_round():
    found = judged([row(2.1), row(2.1, errors={"let in": 1}), row(2.1)], NOISE)
    assert found["wrong"] == ["errors"]
    assert "errors" in line(found)


@pytest.mark.parametrize("name", FLOODS)
def test_each_flood_knocks_at_the_port_that_it_is_about(name):
    port, _ = FLOODS[name]
    assert port == (TLS if "TLS" in name else LOGIN)


def test_the_hello_is_one_that_a_server_goes_on_with():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    came, said = ssl.MemoryBIO(), ssl.MemoryBIO()
    came.write(_hello())
    server = context.wrap_bio(came, said, server_side=True)
    with suppress(ssl.SSLError):
        server.do_handshake()  # without a certificate it gets no further than an alert
    assert said.pending or not came.pending
