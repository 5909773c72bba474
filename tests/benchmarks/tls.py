"""``python -m tests.benchmarks.tls``: what TLS costs, beside the same without it, and beside Apache Kafka with both.

    python -m tests.benchmarks.tls [--rounds 5] [--megabytes 400] [--alone]

One broker each, its logs on tmpfs, certificates of ECDSA P-256. In every round each server in turn is produced to (librdkafka,
batches of 64 KiB) and read from (a client that fetches 4 MiB at a time), without and with TLS: MB/s, and the broker's CPU
seconds per GB. Then clients do nothing but shake hands, and are gone: how many a second, and the broker's milliseconds for each.
Sluice's limit of handshakes is off. Clients run on the same machine and encrypt as well, so MB/s is of both ends together;
CPU per GB is the broker's alone. Medians of the rounds and spread; var/reports/tls.json. `--alone`: without Apache Kafka.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from quota.contracts.certificates import CertificateSet, RouteCertificate
from quota.contracts.sealing import route_key_purpose, sealed
from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.consume import RawConsumer
from tests.benchmarks.librdkafka import BulkProducer
from tests.benchmarks.report import Figures, keep, progress, table
from tests.benchmarks.rig import Rig
from tests.benchmarks.server import Server
from tests.support.apache_kafka import HOST, ApacheKafka
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.processes import SECRET

REPORT = Path("var/reports/tls.json")
RECORD_BYTES, BATCH_BYTES, FETCH_BYTES = 1024, 64 * 2**10, 4 * 2**20
HANDSHAKES_S = 3.0
CLIENTS = 4
AUTHORITY = Authority()
LEAF = AUTHORITY.issue("broker", [HOST, "localhost"])


def certificates(instance: str) -> CertificateSet:
    """Of the one route."""
    key = LEAF.key_pem.encode()
    data = sealed(key, secret=SECRET, purpose=route_key_purpose(instance, "default"), nonce=os.urandom(12))
    return CertificateSet(1, (RouteCertificate("default", LEAF.pem, data),))


class Ours(Rig):
    """With a tenant in the clear and one with TLS."""

    def __init__(self) -> None:
        super().__init__({"tls_handshakes_per_s": 1_000_000})

    def start(self) -> None:
        super().start()
        self.secure_address = self.add_tenant(route={"security": "ssl"}, certificates=certificates).addresses[1]


class Theirs(ApacheRig):
    """With two listeners, of which the second has TLS."""

    def __init__(self) -> None:
        super().__init__()
        self.secure_address = (HOST, free_port())
        store = self.directory / "broker.pem"
        store.write_text(LEAF.key_pem + LEAF.pem)
        self._kafka = ApacheKafka(
            self.directory,
            first_id=1,
            settings={
                "log.segment.delete.delay.ms": 0,
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": store,
                "ssl.client.auth": "none",
            },
            more_listeners=f"SSL://{HOST}:{self.secure_address[1]}",
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.tls", description="What TLS costs.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=400, help="produced and consumed, each way, in a round")
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka")
    options = parser.parse_args(arguments)
    say, figures = progress(), Figures()
    for number in range(options.rounds):
        for make in (Ours,) if options.alone else (Ours, Theirs):
            with make() as server:
                for is_secure in (False, True):
                    _throughput(server, figures, is_secure=is_secure, total=options.megabytes * 10**6)
                _handshakes(server, figures)
            say(f"round {number + 1}: {server.name}")
    rows = figures.rows()
    print(table(rows))
    keep(REPORT, {"options": vars(options), "openssl": ssl.OPENSSL_VERSION, "figures": rows})
    return 0


def _throughput(server: Any, figures: Figures, *, is_secure: bool, total: int) -> None:
    how = "TLS" if is_secure else "plain"
    host, port = server.secure_address if is_secure else server.address()
    config = {"bootstrap.servers": f"{host}:{port}"}
    if is_secure:
        config |= {"security.protocol": "ssl", "ssl.ca.pem": AUTHORITY.pem}
    topic = f"of-{how}"
    admin = AdminClient(config)  # it ends when nobody has it
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = BulkProducer(
        config.pop("bootstrap.servers"),
        topic,
        {
            **config,
            "acks": "1",
            "linger.ms": "50",
            "batch.size": str(BATCH_BYTES),
            "queue.buffering.max.messages": "400000",
            "queue.buffering.max.kbytes": "600000",
        },
    )
    payload = os.urandom(RECORD_BYTES)
    producer.send(payload, 20_000, 1)  # connections, metadata, first pages
    before = server.cpu_s()
    seconds = producer.send(payload, total // RECORD_BYTES, 1)
    _note(server, figures, f"produce, {how}", total, seconds, server.cpu_s() - before)
    producer.close()
    consumer = RawConsumer((host, port), topic, 0, _context() if is_secure else None)
    before = server.cpu_s()
    seconds = consumer.drain(total * 9 // 10, FETCH_BYTES)
    _note(server, figures, f"consume, {how}", total * 9 // 10, seconds, server.cpu_s() - before)
    consumer.close()


def _note(server: Server, figures: Figures, what: str, size: int, seconds: float, cpu_s: float) -> None:
    figures.add(f"{what}, MB/s", server.name, size / 1e6 / seconds)
    figures.add(f"{what}, CPU-s/GB", server.name, cpu_s / (size / 1e9))


def _handshakes(server: Any, figures: Figures) -> None:
    until, before, began = time.monotonic() + HANDSHAKES_S, server.cpu_s(), time.monotonic()
    with ThreadPoolExecutor(CLIENTS) as pool:
        done = sum(pool.map(lambda _: _shake_hands(server.secure_address, until), range(CLIENTS)))
    seconds = time.monotonic() - began
    figures.add("handshakes/s", server.name, done / seconds)
    figures.add("handshake, broker's CPU-ms", server.name, (server.cpu_s() - before) / done * 1000)


def _shake_hands(address: tuple[str, int], until: float) -> int:
    context, done = _context(), 0
    while time.monotonic() < until:
        with socket.create_connection(address, 10) as sock, context.wrap_socket(sock, server_hostname=address[0]):
            done += 1
    return done


def _context() -> ssl.SSLContext:
    return ssl.create_default_context(cadata=AUTHORITY.pem)


if __name__ == "__main__":
    sys.exit(main())
