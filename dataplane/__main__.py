"""``python -m dataplane broker.toml``: one broker, until SIGTERM or ctrl-C. Exit status 1 with a sentence where it cannot run."""

from __future__ import annotations

import logging
import os
import random
import resource
import signal
import sys
from dataclasses import replace

from dataplane.background import ThreadBackground
from dataplane.broker import Broker
from dataplane.clock import SystemClock
from dataplane.cluster.membership import BrokerIdTakenError
from dataplane.cluster.zookeeper import KazooZooKeeper
from dataplane.config import BrokerConfig, ConfigError, load
from dataplane.doors import Doors
from dataplane.garbage import Garbage
from dataplane.network.loop import EpollLoop
from dataplane.network.memory import keep_freed_memory
from dataplane.requests.codecs import make_beforehand
from dataplane.storage.checkpoints.formats import MetadataError
from dataplane.storage.cold import THREADS, ColdReads
from dataplane.storage.files import SystemFiles
from dataplane.storage.segments.descriptors import DESCRIPTORS_EACH
from dataplane.tasks import Future

_STOP_WITHIN_S = 15.0
_SWITCH_S = 0.000_2
"""So long a thread beside the loop keeps the interpreter when the loop wants it. By default that would be 5 ms, in each turn."""


def main(arguments: list[str]) -> int:
    """Run one broker until it is told to stop; gives the exit status."""
    if len(arguments) != 1:
        print("usage: python -m dataplane broker.toml", file=sys.stderr)
        return 2
    try:
        config = load(arguments[0])
    except ConfigError as error:
        print(f"broker: {error}", file=sys.stderr)
        return 1
    config = _within_descriptors(config)
    sys.setswitchinterval(_SWITCH_S)
    keep_freed_memory()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    loop = EpollLoop(SystemClock(), config.settings.tcp_congestion_control)
    zookeeper = KazooZooKeeper(
        loop, config.zookeeper, config.session_timeout_ms / 1000, config.chroot, config.zookeeper_access
    )
    background, cold = ThreadBackground(loop), ThreadBackground(loop, THREADS)
    cold_reads = loop.cold_reads = ColdReads(cold)
    doors = Doors(loop, SystemFiles(cold_reads), zookeeper, background, random.SystemRandom())
    broker = Broker(config, doors, loop.report)
    status = [0]

    def started(future: Future[None]) -> None:
        error = future.error
        if error is not None:
            loop.report(f"broker {config.id} cannot start: {_sentence(error)}")
            status[0] = 1
            loop.stop()
        else:
            make_beforehand(loop, broker.slices)
        Garbage(loop, loop.report).start()

    def stop() -> None:
        loop.call_later(_STOP_WITHIN_S, lambda: os._exit(1))
        broker.stop().then(lambda _: loop.stop())

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_threadsafe(stop))
    zookeeper.connect()
    broker.start().then(started)
    loop.run()
    background.close()
    cold.close()
    return status[0]


def _within_descriptors(config: BrokerConfig) -> BrokerConfig:
    """As many descriptors as the system allows; clients get at most three quarters of them, log files half of the rest."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = config.settings.max_connections if hard < 0 else min(config.settings.max_connections, hard * 3 // 4)
    files = config.settings.log_open_segments_max
    segments = files if hard < 0 else min(files, hard // 8 // DESCRIPTORS_EACH)
    return replace(config, settings=replace(config.settings, max_connections=most, log_open_segments_max=segments))


def _sentence(error: BaseException) -> str:
    if isinstance(error, (BrokerIdTakenError, MetadataError)):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.strerror or error}"
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
