"""The command line: what there is to say, and which function does it.

python -m dataplane.clients.console --bootstrap-server HOST:PORT topics create orders --partitions 6
… topics list | describe [NAME…] | alter NAME … | delete NAME…
… produce orders --key-separator : < lines
… consume orders --from-beginning --max-messages 10
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import suppress

from dataplane.clients.console import consuming, producing, topics
from dataplane.clients.console.failures import INTERRUPTED, Failure

_STATUSES = "exit status: 0 done, 1 refused or incomplete, 2 wrong command line, 3 no answer from the cluster"


def main(words: Sequence[str]) -> int:
    """Do what the command line says; gives the exit status."""
    arguments = parser().parse_args(words)
    try:
        if arguments.command == "produce":
            producing.produce(arguments, sys.stdin.buffer, sys.stderr)
        elif arguments.command == "consume":
            consuming.consume(arguments, sys.stdout.buffer, sys.stderr)
        else:
            arguments.act(arguments, sys.stdout)
            sys.stdout.flush()
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # who read our output has seen enough
        with suppress(OSError):
            sys.stdout.close()
    return 0


def parser() -> argparse.ArgumentParser:
    """All of it, with its help."""
    root = argparse.ArgumentParser(
        prog="python -m dataplane.clients.console",
        description="Look after topics, and send and read messages by hand, on any Kafka cluster.",
        epilog=_STATUSES,
    )
    root.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT[,…]", help="one broker or several")
    root.add_argument("--command-config", metavar="FILE", help="a file of NAME=VALUE lines for the client (librdkafka)")
    root.add_argument(
        "--property", action="append", default=[], metavar="NAME=VALUE", help="one such line; can be repeated"
    )
    root.add_argument("--timeout", type=_seconds, default=15.0, metavar="S", help="for every answer (default: 15)")
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_topics(commands.add_parser("topics", help="create, list, describe, alter and delete topics"))
    _add_produce(commands.add_parser("produce", help="send a message of every line of the input", epilog=_STATUSES))
    _add_consume(commands.add_parser("consume", help="print messages, a line each", epilog=_STATUSES))
    return root


def _add_topics(group: argparse.ArgumentParser) -> None:
    actions = group.add_subparsers(dest="action", required=True, metavar="ACTION")

    create = actions.add_parser("create", help="create a topic")
    create.add_argument("topic", metavar="NAME")
    create.add_argument("--partitions", type=_count, default=-1, metavar="N", help="default: the cluster's")
    create.add_argument("--replication-factor", type=_count, default=-1, metavar="N", help="default: the cluster's")
    create.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help="can be repeated")
    create.add_argument("--if-not-exists", action="store_true", help="no error when it is there already")
    create.add_argument("--validate-only", action="store_true", help="only say whether it could be created")
    create.set_defaults(act=topics.create)

    listing = actions.add_parser("list", help="the names of all topics")
    describe = actions.add_parser("describe", help="partitions, replicas, and configurations that differ from defaults")
    describe.add_argument("topics", nargs="*", metavar="NAME", help="default: all")
    for command, act in ((listing, topics.list_topics), (describe, topics.describe)):
        command.add_argument("--internal", action="store_true", help="the cluster's own topics as well")
        command.set_defaults(act=act)

    alter = actions.add_parser("alter", help="add partitions, change configurations")
    alter.add_argument("topic", metavar="NAME")
    alter.add_argument("--partitions", type=_count, metavar="N", help="how many it shall have; never fewer than before")
    alter.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help="set; can be repeated")
    alter.add_argument("--delete-config", action="append", default=[], metavar="NAME", help="back to the default")
    alter.set_defaults(act=topics.alter)

    delete = actions.add_parser("delete", help="delete topics with all their messages")
    delete.add_argument("topics", nargs="+", metavar="NAME")
    delete.set_defaults(act=topics.delete)


def _add_produce(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic", metavar="TOPIC")
    command.add_argument("--key-separator", metavar="TEXT", help="a line is KEY TEXT VALUE (default: no keys)")
    command.add_argument("--null", metavar="TEXT", help="a value of exactly this is none: a deletion marker")
    command.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="for every message")
    command.add_argument("--partition", type=int, metavar="N", help="default: by the key")
    command.add_argument("--acks", choices=("0", "1", "all"), default="all", help="default: all")
    command.add_argument(
        "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), default="none", help="default: none"
    )


def _add_consume(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic", metavar="TOPIC")
    command.add_argument("--group", metavar="NAME", help="read as a member of a group, and commit what was printed")
    command.add_argument("--from-beginning", action="store_true", help="default: only what comes from now on")
    command.add_argument("--partition", type=int, metavar="N", help="only this one")
    command.add_argument("--offset", type=_offset, metavar="N", help="beginning, end, or a number (with --partition)")
    command.add_argument("--max-messages", type=_count, metavar="N", help="end after so many")
    command.add_argument("--idle", dest="idle_s", type=_seconds, metavar="S", help="end when nothing came for so long")
    for what in ("key", "partition", "offset", "timestamp", "headers"):
        command.add_argument(f"--print-{what}", action="store_true")
    command.add_argument("--separator", default="\t", metavar="TEXT", help="between what is printed (default: a tab)")


def _count(text: str) -> int:
    if not (text.isdecimal() and 0 < int(text) < 2**31):
        raise argparse.ArgumentTypeError(f"a number of at least 1, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < 86_400:
        raise argparse.ArgumentTypeError(f"seconds, not {text!r}")
    return seconds


def _offset(text: str) -> str:
    if text not in ("beginning", "end") and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"beginning, end or a number, not {text!r}")
    return text
