"""The command line.

python -m dataplane.clients.mirror mirror.toml             until SIGTERM or Ctrl-C; a line of lag now and then
python -m dataplane.clients.mirror mirror.toml status      how far each partition is, by the checkpoints
python -m dataplane.clients.mirror mirror.toml compare     reads both sides, and says of each partition how many
                                                            messages, a digest, and the first difference; exit status 1 then,
                                                            5 where something, or everything, could not be compared
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.errors import ClientError, ConfigurationError
from dataplane.clients.mirror.checkpoints import Checkpoint, CheckpointLog, Key
from dataplane.clients.mirror.comparing import Sides, compare
from dataplane.clients.mirror.config import MirrorConfig, Source, Target, read_config
from dataplane.clients.mirror.delivery import SupersededError
from dataplane.clients.mirror.metrics import Row, table
from dataplane.clients.mirror.runner import Mirror

DIFFERENT, USAGE, UNREACHABLE, SUPERSEDED, NOT_COMPARED = 1, 2, 3, 4, 5
_SAY_S = 10.0
_BACKOFF = Backoff(10, 500)


def main(words: Sequence[str]) -> int:
    """Do what the command line says; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m dataplane.clients.mirror",
        description="Copy topics of any number of Kafka clusters into one.",
        epilog="exit status: 0 done, 1 the target is not equal, 2 wrong command line or file, 3 no answer from a cluster, "
        "4 another mirror of the same names has begun, 5 not all was compared, or nothing",
    )
    parser.add_argument("config", type=Path, metavar="mirror.toml")
    parser.add_argument("command", nargs="?", default="run", choices=("run", "status", "compare"))
    arguments = parser.parse_args(words)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        config = read_config(arguments.config)
        return {"run": _run, "status": _status, "compare": _compare}[arguments.command](config)
    except ConfigurationError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    except ClientError as error:
        print(f"error: {error}", file=sys.stderr)
        return UNREACHABLE


def _run(config: MirrorConfig) -> int:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    mirror = Mirror(config, stopping.set)
    before = 0
    while not stopping.wait(_SAY_S):
        rows = mirror.rows()
        copied = sum(row.copied for row in rows)
        rate = (copied - before) / _SAY_S
        print(f"{len(rows)} partitions, lag {sum(row.lag for row in rows)}, {rate:.0f} messages/s", flush=True)
        before = copied
    mirror.stop()
    if mirror.problem is None:
        return 0
    print(f"error: {mirror.problem}", file=sys.stderr)
    return SUPERSEDED if isinstance(mirror.problem, SupersededError) else USAGE


def _status(config: MirrorConfig) -> int:
    with Cluster(config.target.settings, lambda: config.target.bootstrap) as target:
        found = _checkpoints(config, target)
    print(table([Row(*key, 0, one.source_offset, one.target_offset, 0, 0) for key, one in found.items()]))
    return 0


def _checkpoints(config: MirrorConfig, target: Cluster) -> Mapping[Key, Checkpoint]:
    """None where no mirror has run yet."""
    log = CheckpointLog(target, config.target.checkpoint_topic, _BACKOFF)
    return log.read(is_whole=False).checkpoints if log.is_there() else {}


def _compare(config: MirrorConfig) -> int:
    found: set[int] = set()
    with Cluster(config.target.settings, lambda: config.target.bootstrap) as target:
        checkpoints = _checkpoints(config, target)
        for source in config.sources:
            found.add(_compare_source(source, config.target, target, checkpoints))
    return next((status for status in (DIFFERENT, NOT_COMPARED) if status in found), 0)


def _compare_source(source: Source, target: Target, to: Cluster, checkpoints: Mapping[Key, Checkpoint]) -> int:
    """An exit status. That nothing differs is not enough for 0: something has to have been compared."""
    messages, is_equal, is_whole = 0, True, True
    with Cluster(source.settings, lambda: source.bootstrap) as cluster:
        there = cluster.refresh(None)
        topics = {name: len(topic.partitions) for name, topic in there.items() if source.copies(name, target)}
        for found in compare(Sides(source, target, cluster, to), topics, checkpoints):
            print(found, flush=True)
            messages += found.messages
            is_equal = is_equal and found.difference is None
            is_whole = is_whole and found.left_out is None
    if not topics:
        print(f"{source.name}: NOTHING COMPARED: the source has no topic that is copied", flush=True)
    elif is_equal and not messages:
        print(f"{source.name}: NOTHING COMPARED: there is no message to compare in {len(topics)} topics", flush=True)
    if not is_equal:
        return DIFFERENT
    return 0 if messages and is_whole else NOT_COMPARED
