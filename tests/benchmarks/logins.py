"""``python -m tests.benchmarks.logins``: connections a second that log in, beside Apache Kafka.

    python -m tests.benchmarks.logins [--rounds 5] [--seconds 3] [--alone]

One broker each. Four clients connect, log in, ask for ApiVersions, and go, as fast as they can: without a login, by PLAIN, by
SCRAM-SHA-512 (4,096 iterations). Clients derive a password's key once, as one does that keeps it, and run on the same machine,
so connections a second are of both ends together; CPU milliseconds for each are the broker's. Sluice's limits of connections
are far away. Medians of the rounds and spread; var/reports/logins.json. `--alone`: without Apache Kafka.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import os
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from dataplane.protocol.messages.discovery import ApiVersionsRequest
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.report import Figures, keep, progress, table
from tests.benchmarks.rig import Rig
from tests.support.apache_kafka import HOST, ApacheKafka
from tests.support.ports import free_port
from tests.support.users import LOGS_IN, USERS
from tests.support.wire import Wire

REPORT = Path("var/reports/logins.json")
CLIENTS, _WARM_UP_S = 4, 3.0
USER, PASSWORD, ITERATIONS = "alice", "pencil", 4_096
PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-512"
HOW = ("", PLAIN, SCRAM)
_LISTENER = "listener.name.sasl_plaintext"
_MODULE = "org.apache.kafka.common.security"


class Ours(Rig):
    """With a tenant whose clients log in, beside the plain one."""

    def start(self) -> None:
        super().start()
        self.secured_address = self.add_tenant(route=LOGS_IN, users=USERS).addresses[1]


class Theirs(ApacheRig):
    """With a second listener, at which clients log in."""

    def __init__(self) -> None:
        super().__init__()
        self.secured_address = (HOST, free_port())
        plain = f'{_MODULE}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
        self._kafka = ApacheKafka(
            self.directory,
            first_id=1,
            settings={
                "log.segment.delete.delay.ms": 0,
                "sasl.enabled.mechanisms": f"{PLAIN},{SCRAM}",
                f"{_LISTENER}.plain.sasl.jaas.config": plain,
                f"{_LISTENER}.scram-sha-512.sasl.jaas.config": f"{_MODULE}.scram.ScramLoginModule required;",
            },
            more_listeners=f"SASL_PLAINTEXT://{HOST}:{self.secured_address[1]}",
        )

    def start(self) -> None:
        super().start()
        host, port = self.address()
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        made = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin = AdminClient({"bootstrap.servers": f"{host}:{port}"})  # it ends when nobody has it
        admin.alter_user_scram_credentials([made])[USER].result(30)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.logins", description="What a login costs.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each way to log in, in a round")
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    options = parser.parse_args(arguments)
    say, figures = progress(), Figures()
    for number in range(options.rounds):
        for make in (Ours,) if options.alone else (Ours, Theirs):
            with make() as server:
                for how in HOW:
                    _measure(server, how, _WARM_UP_S)  # connections and code that are new
                    done, seconds, cpu_s = _measure(server, how, options.seconds)
                    what = f"connections, {how or 'no login'}"
                    figures.add(f"{what}, /s", server.name, done / seconds)
                    figures.add(f"{what}, broker's CPU-ms", server.name, cpu_s / done * 1000)
            say(f"round {number + 1}: {server.name}")
    rows = figures.rows()
    print(table(rows))
    keep(REPORT, {"options": vars(options), "figures": rows})
    return 0


def _measure(server: Any, how: str, seconds: float) -> tuple[int, float, float]:
    """How many, in how many seconds, and the broker's CPU seconds."""
    address = server.secured_address if how else server.address()
    before, began = server.cpu_s(), time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        done = sum(pool.map(lambda _: _connect(address, how, began + seconds), range(CLIENTS)))
    return done, time.monotonic() - began, server.cpu_s() - before


def _connect(address: tuple[str, int], how: str, until: float) -> int:
    done = 0
    while time.monotonic() < until:
        with Wire(address) as wire:
            if how:
                assert wire.call(SaslHandshakeRequest(how), 1).error_code == 0
                _log_in(wire, how)
            assert wire.call(ApiVersionsRequest(), 0).error_code == 0
            done += 1
    return done


def _log_in(wire: Wire, how: str) -> None:
    says = _scram() if how == SCRAM else _plain()
    message = next(says)
    while message:
        answer = wire.call(SaslAuthenticateRequest(message), 2)
        assert answer.error_code == 0, answer.error_message
        message = _sent(says, answer.auth_bytes)


def _sent(says: Generator[bytes, bytes, None], answer: bytes) -> bytes:
    try:
        return says.send(answer)
    except StopIteration:
        return b""


def _plain() -> Generator[bytes, bytes, None]:
    yield f"\0{USER}\0{PASSWORD}".encode()


def _scram() -> Generator[bytes, bytes, None]:
    """RFC 5802, the client's side; whoever runs it sends it what the server answers."""
    bare = f"n={USER},r={os.urandom(12).hex()}"
    challenge = yield f"n,,{bare}".encode()
    said = dict(part.split("=", 1) for part in challenge.decode().split(","))
    salted = _salted(said["s"], int(said["i"]))
    key = hmac.digest(salted, b"Client Key", "sha512")
    last = f"c=biws,r={said['r']}"
    signature = hmac.digest(hashlib.sha512(key).digest(), f"{bare},{challenge.decode()},{last}".encode(), "sha512")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    yield f"{last},p={base64.b64encode(proof).decode()}".encode()


@cache
def _salted(salt: str, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), base64.b64decode(salt), iterations)


if __name__ == "__main__":
    sys.exit(main())
