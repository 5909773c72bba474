"""``python -m tests.stalls.floods``: what does a tenant feel while strangers knock at another tenant's secured ports?

    python -m tests.stalls.floods [--only password,TLS] [--rounds 5] [--seconds 4]

One broker with two tenants: a victim with a plain port (`victim`), and one whose routes want TLS or a login. In every round
each flood in turn, from sixteen threads and as many source addresses, does one thing over and over on connections of its own,
as fast as the broker lets it: see `FLOODS`. Before each the victim is alone for as long. Passwords, proofs and tokens are all
wrong; a flood that is let in fails the run.

    each s      attempts a second that came to their end, whether the broker answered or cut them off
    turn ms     the loop's longest turn, in processor time
    ratio       the victim's p99 over its p99 alone; the worse of acknowledged and consumed

A flood is judged by the medians of its rounds, like a row of `make stalls` (`judging`); var/reports/floods.json.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import multiprocessing
import os
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any, Self

from confluent_kafka.admin import AdminClient, NewTopic

from controlplane.instances.spec import Bought, limits_of
from dataplane.protocol.messages.security import SaslAuthenticateRequest, SaslHandshakeRequest
from quota.contracts.certificates import CertificateSet, RouteCertificate
from quota.contracts.instance import OAUTHBEARER, Endpoint, Route
from quota.contracts.sealing import route_key_purpose, sealed
from tests.benchmarks.report import keep, progress
from tests.benchmarks.rig import Rig
from tests.stalls import observed
from tests.stalls.judging import STREAMS, beside, median_row, noise_ms, percentile, verdict
from tests.stalls.machine import Busy, forget_peak, give_way, peak_mib
from tests.stalls.observed import pauses_of, turns_since
from tests.stalls.victim import TIMED_OUT_S, Victim, Window
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.processes import HOST, SECRET
from tests.support.tokens import Issuer, message
from tests.support.users import LOGS_IN, USERS
from tests.support.wire import Wire

REPORT = Path("var/reports/floods.json")
PROCESSES, THREADS = 2, 8
HELD = 60
"""Connections that each thread leaves half open: nearly a thousand in all."""
SETTLE_S = 1.0
WARM_UP_WINDOWS = 13
_TOPIC = "victim"
_WAIT_S = 5.0
_BOUGHT = Bought(20, 300, 1_000, (), {})
"""By the tenant whose ports are knocked at: its limits are those that any instance has."""
_ISSUER, _FOREIGN = Issuer(), Issuer(keys={"one": "RSA of somebody else"})

Address = tuple[str, int]
Attempt = Callable[[Address, str], None]
"""One attempt at an address, from a source. Raises AssertionError: it was let in."""


# --- floods -----------------------------------------------------------------------------------------------------------


def _shake_hands(address: Address, source: str) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a flood does not look
    with _connection(address, source) as sock, context.wrap_socket(sock):
        pass


def _hello() -> bytes:
    """The first that a TLS client says."""
    context = ssl.create_default_context()
    into = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), into, server_hostname="localhost").do_handshake()
    return into.read()


def _rubbish(address: Address, source: str) -> None:
    with _connection(address, source) as sock:
        sock.sendall(b"\x16\x03\x01\x3f\xff" + os.urandom(16_000))
        sock.recv(1)


def _connect(address: Address, source: str) -> None:
    _connection(address, source).close()


def _plain(user: str) -> Attempt:
    def attempt(address: Address, source: str) -> None:
        _answered(address, source, "PLAIN", lambda _: f"\0{user}\0not it".encode())

    return attempt


def _scram(user: str) -> Attempt:
    def attempt(address: Address, source: str) -> None:
        def says(challenge: bytes | None) -> bytes:
            if challenge is None:
                return f"n,,n={user},r=flood{os.urandom(6).hex()}".encode()
            nonce = challenge.split(b",")[0]
            return b"c=biws," + nonce + b",p=" + base64.b64encode(os.urandom(64))

        _answered(address, source, "SCRAM-SHA-512", says)

    return attempt


def _token(address: Address, source: str) -> None:
    """Well made and for this instance, signed by another key of the same name."""
    _answered(address, source, OAUTHBEARER, lambda _: message(_bad_token()))


_tokens = itertools.cycle([_FOREIGN.token("alice", time.time(), 3_600.0, jti=str(n)) for n in range(64)])


def _bad_token() -> str:
    return next(_tokens)


def _answered(address: Address, source: str, mechanism: str, says: Callable[[bytes | None], bytes]) -> None:
    """A login until it is refused."""
    with Wire(address, source=source, timeout_s=_WAIT_S) as wire:
        assert wire.call(SaslHandshakeRequest(mechanism), 1).error_code == 0
        challenge = None
        for _ in range(2):
            answer = wire.call(SaslAuthenticateRequest(says(challenge)), 2)
            if answer.error_code:
                return
            challenge = answer.auth_bytes
        raise AssertionError(f"let in by {mechanism}")


def _connection(address: Address, source: str) -> socket.socket:
    return socket.create_connection(address, _WAIT_S, source_address=(source, 0))


LOGIN, TLS = "login", "tls"
FLOODS: dict[str, tuple[str, Attempt]] = {
    "connections": (LOGIN, _connect),
    "TLS handshakes": (TLS, _shake_hands),
    "TLS handshakes begun and left": (TLS, _connect),  # `_flood` leaves them open
    "no TLS, 16 KB of rubbish": (TLS, _rubbish),
    "wrong passwords by PLAIN": (LOGIN, _plain("alice")),
    "unknown users by PLAIN": (LOGIN, _plain("nobody")),
    "wrong proofs by SCRAM-SHA-512": (LOGIN, _scram("alice")),
    "unknown users by SCRAM-SHA-512": (LOGIN, _scram("nobody")),
    "foreign tokens by OAUTHBEARER": (LOGIN, _token),
}
_LEFT_OPEN = "TLS handshakes begun and left"


def _flood(name: str, address: Address, number: int, pipe: Connection) -> None:
    """In a process of its own, until something comes by the pipe; then it says how many attempts there were, or what is wrong."""
    give_way()
    ends, done, wrong = [False], [0] * THREADS, list[str]()

    def works(thread: int) -> None:
        source = f"127.0.1.{1 + number * THREADS + thread}"
        attempt, held, hello = FLOODS[name][1], list[socket.socket](), _hello()
        with ExitStack() as closing:
            while not ends[0]:
                try:
                    if name == _LEFT_OPEN:
                        sock = closing.enter_context(_connection(address, source))
                        sock.sendall(hello)
                        held.append(sock)
                        if len(held) > HELD:
                            held.pop(0).close()
                    else:
                        attempt(address, source)
                except OSError:
                    time.sleep(0.001)  # cut off: the next one
                except AssertionError as problem:
                    wrong.append(str(problem))
                    return
                done[thread] += 1

    threads = [Thread(target=works, args=(thread,), daemon=True) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    pipe.send("begun")
    pipe.recv()
    ends[0] = True
    pipe.send((sum(done), wrong))


@contextmanager
def flood(name: str, address: Address) -> Iterator[Callable[[], tuple[int, list[str]]]]:
    """While it lasts; what is yielded ends it, and says how many attempts there were and what is wrong."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for number in range(PROCESSES):
        ours, theirs = context.Pipe()
        process = context.Process(target=_flood, args=(name, address, number, theirs), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()

    def end() -> tuple[int, list[str]]:
        for pipe in pipes:
            pipe.send("end")
        told = [pipe.recv() for pipe in pipes]
        return sum(attempts for attempts, _ in told), [each for _, wrong in told for each in wrong]

    try:
        yield end
    finally:
        for process in processes:
            process.kill()
            process.join()


# --- the broker -------------------------------------------------------------------------------------------------------


def _certificates(instance: str) -> CertificateSet:
    issued = Authority().issue("broker", [HOST, "localhost"])
    key = sealed(issued.key_pem.encode(), secret=SECRET, purpose=route_key_purpose(instance, TLS), nonce=os.urandom(12))
    return CertificateSet(1, (RouteCertificate(TLS, issued.pem, key),))


def _routes() -> tuple[Route, ...]:
    def place() -> dict[int, Endpoint]:
        address = HOST, free_port()
        return {1: Endpoint(address, address)}

    login = {**LOGS_IN, "mechanisms": (*LOGS_IN["mechanisms"], OAUTHBEARER)}  # type: ignore[misc]
    return Route(LOGIN, place(), **login), Route(TLS, place(), security="ssl")


class Floods:
    """A context manager: the broker, its victim, and the figures of the victim alone."""

    def __init__(self, seconds: float, say: Callable[[str], None]) -> None:
        self._seconds, self._say = seconds, say
        self.alone: dict[str, list[float]] = {what: [] for what in STREAMS}
        self.noise: dict[str, float] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._rig = stack.enter_context(Rig(module=observed.__name__))
            tenant = self._rig.add_tenant(
                limits=limits_of(_BOUGHT, operators={}, brokers=1),
                routes=_routes(),
                users=USERS,
                token_issuers=_ISSUER.trusted_set(),
                certificates=_certificates,
            )
            self._ports = {route.id: route.endpoints[1].advertised for route in tenant.spec.routes}
            host, port = self._rig.address()
            admin = AdminClient({"bootstrap.servers": f"{host}:{port}"})
            kept = {"retention.bytes": "1048576", "segment.bytes": "16777216"}
            admin.create_topics([NewTopic(_TOPIC, 2, 1, config=kept)])[_TOPIC].result(30)
            self._turns = (self._rig.directory / "broker-1").with_suffix(observed.SUFFIX)
            self._victim = stack.enter_context(Victim((host, port), _TOPIC, self._rig.pid()))
            self._busy = Busy()
            stack.callback(self._busy.close)
            for _ in range(WARM_UP_WINDOWS):
                self.measure_alone()
            for values in self.alone.values():
                del values[0]  # of connections and code that were new
            self.noise = {what: round(noise_ms(values), 2) for what, values in self.alone.items()}
            alone = {what: round(beside(values), 2) for what, values in self.alone.items()}
            self._say(f"alone: p99 {alone} ms, noise {self.noise} ms")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure_alone(self) -> None:
        began = time.monotonic()
        with self._busy:
            window = self._victim.window(began, began + self._seconds, began + self._seconds)
        window = window.without(pauses_of(turns_since(self._turns, began)))
        for what in STREAMS:
            self.alone[what].append(percentile(getattr(window, what), 0.99))

    def measured(self, name: str) -> dict[str, Any]:
        """The figures of one flood, once."""
        self.measure_alone()
        forget_peak(self._rig.pid())
        with flood(name, self._ports[FLOODS[name][0]]) as end:
            time.sleep(SETTLE_S)
            began = time.monotonic()
            time.sleep(self._seconds)
            ended = time.monotonic()
            attempts, let_in = end()
        window = self._victim.window(began, ended, ended)
        is_quiet = self._victim.quiet(30.0)
        turns = turns_since(self._turns, began)
        window = window.without(pauses_of(turns))
        row = {
            "name": name,
            "each_s": round(attempts / (self._seconds + SETTLE_S)),
            "turn_ms": max((turn.ran_ms for turn in turns if turn.ended_s < ended), default=0.0),
            "held_ms": round(window.held, 1),
            "probe_ms": round(window.longest, 1),
            **self._streams(window),
            "errors": {**window.errors, **({"let in": len(let_in)} if let_in else {})},
            "resident_mib": round(peak_mib(self._rig.pid()), 1),
            "quiet_after_s": 0.0 if is_quiet else None,
        }
        return {**row, "wrong": verdict(row, self.noise)}

    def _streams(self, window: Window) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for what in STREAMS:
            values, alone = getattr(window, what), beside(self.alone[what])
            p99 = percentile(values, 0.99) if values else TIMED_OUT_S * 1000
            found[what] = {"p99": round(p99, 2), "alone": round(alone, 2), "ratio": round(p99 / alone, 2)}
        return found


# --- the report -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.stalls.floods", description="Strangers at secured ports.")
    parser.add_argument("--only", default="", help="words of floods, with commas between them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="of a flood, and of the window before it")
    options = parser.parse_args(arguments)
    words = [word.strip() for word in options.only.split(",")]
    names = [name for name in FLOODS if any(word in name for word in words)]
    say, rounds = progress(), dict[str, list[dict[str, Any]]]()
    with Floods(options.seconds, say) as floods:
        for number in range(options.rounds):
            for name in names:
                row = floods.measured(name)
                rounds.setdefault(name, []).append(row)
                say(f"round {number + 1}: {line(row)}")
        noise = floods.noise
    rows = [judged(attempts, noise) for attempts in rounds.values()]
    print("\n".join([HEAD, *map(line, rows)]))
    keep(REPORT, {"options": vars(options), "noise_ms": noise, "rows": rows, "rounds": rounds})
    return int(any(row["wrong"] for row in rows))


def judged(attempts: Sequence[dict[str, Any]], noise: dict[str, float]) -> dict[str, Any]:
    """By the medians; errors count whenever there were some."""
    row = median_row(attempts)
    row["errors"] = {what: count for attempt in attempts for what, count in attempt["errors"].items()}
    return {**row, "wrong": verdict(row, noise)}


HEAD = f"{'flood':<34}{'each s':>8}{'turn ms':>9}{'held':>8}{'p99':>9}{'alone':>8}{'ratio':>7}{'errors':>8}{'MiB':>6}"


def line(row: dict[str, Any]) -> str:
    """Of the table."""
    worse = max((row[what] for what in STREAMS), key=lambda found: found["ratio"])
    return (
        f"{row['name']:<34}{row['each_s']:>8}{row['turn_ms']:>9.1f}{row['held_ms']:>8.1f}{worse['p99']:>9.2f}{worse['alone']:>8.2f}"
        f"{worse['ratio']:>7.2f}{sum(row['errors'].values()):>8}{row['resident_mib']:>6.0f}  {', '.join(row['wrong'])}"
    )


if __name__ == "__main__":
    sys.exit(main())
