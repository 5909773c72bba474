"""Which programs make a stack, what each needs before it starts, and how each shows that it is ready.

    migrate ────────────┬─> worker, beat
    redis ──────────────┼─> web ──────────┐
    zookeeper ─┬────────┘                 ├─> demo ──> metering
               ├─> broker-1..3 ───────────┤
               └─> master-1..2 ───────────┘   and jobs

Of a second cluster there are zookeeper-2, broker-4..6, master-3..4 and metering-2; `register-second`, between migrate and web,
tells the database of it. Everything that can start at the same time does. Stopping goes by tier, highest first: control plane,
cluster, stores.
"""

import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from controlplane.stack import metering, redis, zookeeper
from controlplane.stack.config import Stores, internal_listeners
from controlplane.stack.layout import CLUSTERS, HOST, PROJECT, Layout
from controlplane.stack.supervisor import Program
from quota.contracts.identity import METERING

STORES, CLUSTER, CONTROL = 0, 1, 2  # tiers
PYTHON = sys.executable
MANAGE = (PYTHON, str(PROJECT / "manage.py"))
CELERY = (PYTHON, "-m", "celery", "--app", "controlplane.celery")


def programs(layout: Layout, stores: Stores) -> tuple[Program, ...]:
    """All programs of one stack; stores that the user brings are not among them."""
    return (*_stores(layout, stores), *_clusters(layout, stores), *_control(layout, stores))


def _stores(layout: Layout, stores: Stores) -> Iterator[Program]:
    for cluster in layout.numbers if "zookeeper" in stores.own else ():
        port = layout.zookeeper_port_of(cluster)
        yield Program(
            _zookeeper(cluster),
            tuple(zookeeper.prepare(layout.zookeeper_directory(cluster), port)),
            partial(zookeeper.answers, HOST, port),
            tier=STORES,
            label=f"on {HOST}:{port}",
        )
    if "redis" in stores.own:
        port = layout.redis_port
        yield Program(
            "redis",
            tuple(redis.prepare(layout.directory / "redis", port)),
            partial(redis.answers, HOST, port),
            tier=STORES,
            label=f"on {HOST}:{port}",
        )


def _zookeeper(cluster: int) -> str:
    return "zookeeper" if cluster == 1 else f"zookeeper-{cluster}"


def _clusters(layout: Layout, stores: Stores) -> Iterator[Program]:
    for cluster in layout.numbers:
        yield from _cluster(layout, stores, cluster)


def _cluster(layout: Layout, stores: Stores, cluster: int) -> Iterator[Program]:
    needs = (_zookeeper(cluster),) if "zookeeper" in stores.own else ()
    for broker in layout.brokers_of(cluster):
        port = layout.broker_port(broker)
        yield Program(
            f"broker-{broker}",
            (PYTHON, "-m", "dataplane", str(layout.config / f"broker-{broker}.toml")),
            partial(accepts, port),
            needs,
            CLUSTER,
            stop_patience_s=15.0,
            label=f"on {HOST}:{port}",
        )
    for master in layout.masters_of(cluster):
        port = layout.master_http_port(master)
        yield Program(
            f"master-{master}",
            (PYTHON, "-m", "quota", str(layout.config / f"master-{master}.toml")),
            partial(accepts, port),
            needs,
            CLUSTER,
            label=f"on {HOST}:{port}",
        )


def _control(layout: Layout, stores: Stores) -> Iterator[Program]:
    yield Program("migrate", (*MANAGE, "migrate_with_copy"), None, tier=CONTROL)
    registered = tuple(_registering(layout, stores))
    yield from registered
    needs = ("migrate", *(each.name for each in registered), *sorted(stores.own))
    yield Program(
        "web",
        (*(PYTHON, "-m", "granian", "--interface", "wsgi", "--host", HOST, "--port", str(layout.base)),
         *("--workers", "1", "--blocking-threads", "4", "--no-ws", "controlplane.wsgi:application")),
        partial(serves_http, layout.url),
        needs,
        CONTROL,
        label=f"on {layout.url}",
    )  # fmt: skip
    worker, beat = layout.log / "worker.log", layout.log / "beat.log"
    yield Program(
        "worker",
        (
            *CELERY,
            "worker",
            "--loglevel",
            "INFO",
            "--without-mingle",
            "--without-gossip",
            "--hostname",
            f"worker-{layout.base}@%h",
        ),
        log_says(worker, " ready."),
        needs,
        CONTROL,
        # Its warm shutdown sometimes hangs when a task arrives with the signal. Killing it loses nothing: messages are
        # only wake-ups, and operations go on where they were.
        stop_patience_s=4.0,
    )
    yield Program(
        "beat",
        # No pid file: one left behind by a kill would stop the next start.
        (*CELERY, "beat", "--loglevel", "INFO", "--pidfile="),
        log_says(beat, "beat: Starting..."),
        needs,
        CONTROL,
    )
    # It waits for what worker and beat have to do, and need not wait for them to begin.
    cluster = (*(f"broker-{n}" for n in layout.brokers), *(f"master-{n}" for n in layout.masters))
    command = (*MANAGE, "demo_tenants", "--port", str(layout.base))
    yield Program("demo", command, None, ("web", *cluster), CONTROL, patience_s=120.0)
    if not metering.absence():
        patience_s = metering.STOP_PATIENCE_S
        answers = metering.never_waited_for
        environment = (
            ("SLUICE_SECRETS_FILE", str(layout.secrets_of("metering"))),
            ("SLUICE_CLUSTER_TLS", str(layout.tls_of(METERING))),
        )
        for name, program in (("metering", metering.COMMAND), ("jobs", metering.RUNNER)):
            yield Program(
                name, program, answers, ("demo",), CONTROL, stop_patience_s=patience_s, environment=environment
            )
        yield Program("loads", (*MANAGE, "lake_runner"), answers, ("demo",), CONTROL, stop_patience_s=patience_s)
        for number in layout.numbers[1:]:
            yield Program(
                f"metering-{number}",
                metering.COMMAND,
                answers,
                ("demo",),
                CONTROL,
                stop_patience_s=patience_s,
                environment=(
                    *environment,
                    ("SLUICE_METERED_CLUSTER", CLUSTERS[number - 1]),
                    ("SLUICE_BROKERS", internal_listeners(layout, number)),
                ),
            )


def _registering(layout: Layout, stores: Stores) -> Iterator[Program]:
    """A step for each cluster but the first, which everybody knows: into the database, once. One after the other."""
    before = "migrate"
    for number in layout.numbers[1:]:
        name = CLUSTERS[number - 1]
        hosts = "".join(stores.zookeeper_of(layout, number))
        command = (*MANAGE, "cluster_register", name, hosts, "--if-absent", "--reason", "make up")
        needs = (before, _zookeeper(number)) if "zookeeper" in stores.own else (before,)
        before = f"register-{name}"
        yield Program(before, command, None, needs, CONTROL)


def accepts(port: int) -> bool:
    """Whether something listens on this port of HOST."""
    try:
        socket.create_connection((HOST, port), timeout=0.5).close()
    except OSError:
        return False
    return True


def serves_http(url: str) -> bool:
    """Whether the web server gives any answer at all: a 404 is one."""
    try:
        urllib.request.urlopen(url, timeout=2).close()  # noqa: S310 - our own http URL
    except urllib.error.HTTPError as answer:
        return answer.code < 500
    except OSError:
        return False
    return True


def log_says(log: Path, words: str) -> Callable[[], bool]:
    """Whether the log has said these words since now: what it says from earlier runs does not count.

    Celery's own question (`inspect ping`) starts an interpreter that costs as much as the worker.
    """
    before = log.stat().st_size if log.exists() else 0

    def said() -> bool:
        if not log.exists():
            return False
        with log.open("rb") as file:
            file.seek(before if log.stat().st_size >= before else 0)
            return words.encode() in file.read()

    return said
