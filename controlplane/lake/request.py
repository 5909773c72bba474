"""What was asked for on the command line. Pure."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from controlplane.lake.planning import Span, Spans

OFFSETS_A_COMMIT = 1_000_000
LONGEST_RUN_S = 6 * 3600.0
"""Of a service's load (`--tidy`): then it is stopped. What it has written and not committed must not be deleted before."""
KEPT_FOR_HOURS = 1 + round(LONGEST_RUN_S / 3600)
"""Such a load leaves files that are younger, whether the table needs them or not."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PART = re.compile(r"(\d+):(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Request:
    """One run."""

    brokers: str
    topic: str
    destination: str
    from_time_ms: int | None = None
    offsets: Spans = field(default_factory=dict)
    schema: str | None = None  # "raw", "inferred", a file; None: as the table has it, else raw
    properties: Path | None = None
    named: str = ""  # in the manifest; empty: as `topic`
    new_topic: bool = False
    skip_expired: bool = False
    offsets_a_commit: int = OFFSETS_A_COMMIT
    until: Path | None = None  # when this file is there, the load ends after the commit that it makes
    report: Path | None = None
    once: bool = False  # what the table has is not loaded again
    tidies: bool = False  # before a load that replaces rows, files that earlier ones have replaced are deleted

    @property
    def topic_named(self) -> str:
        """The topic as the table's readers know it."""
        return self.named or self.topic

    @classmethod
    def read(cls, words: Sequence[str]) -> Request:
        """Ends the program with status 2, and a sentence, where words make no sense."""
        read = _parser().parse_args(words)
        return cls(
            brokers=read.brokers, topic=read.topic, destination=read.to, from_time_ms=read.from_time,
            offsets=read.offsets or {}, schema=read.schema, properties=read.properties, named=read.named,
            new_topic=read.new_topic, skip_expired=read.skip_expired, offsets_a_commit=read.offsets_a_commit,
            until=read.until, report=read.report, once=read.once, tidies=read.tidy,
        )  # fmt: skip


def moment_ms(text: str) -> int:
    """ISO 8601; without a zone it is UTC."""
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def start_ms(text: str) -> int:
    """From where on records are wanted: to Kafka a negative time is the end of the topic, its beginning, and the like."""
    found = moment_ms(text)
    if found < 0:
        raise argparse.ArgumentTypeError(f"{text} is before 1970, from where on Kafka finds records by time")
    return found


def offsets(text: str) -> dict[int, Span]:
    """`0:100-200,3:0-50`: of partition 0 the offsets 100 to 199."""
    found: dict[int, Span] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(part)
        partition, first, end = map(int, match.groups())
        if first >= end or partition in found:
            raise ValueError(part)
        found[partition] = Span(first, end)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lake_load",
        description="Loads a topic into a Delta table: each record once, whatever is killed. Run again, it goes on where the"
        " table ends. With --from-time or --offsets it loads records again, in place of those that the table has.",
    )
    parser.add_argument(
        "--brokers", required=True, metavar="HOST:PORT", help="bootstrap addresses, with commas between them"
    )
    parser.add_argument("--topic", required=True)
    parser.add_argument("--to", required=True, metavar="URI", help="the table: file:, s3a:, hdfs:, or a path")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--from-time", type=start_ms, metavar="ISO", help="from the first record that is as new as this")
    again.add_argument(
        "--offsets", type=offsets, metavar="P:FIRST-END,…", help="0:100-200 are offsets 100 to 199 of partition 0"
    )
    parser.add_argument(
        "--schema",
        metavar="raw|inferred|FILE",
        help="of JSON values, for the column `data`: none; inferred from the first records; or a file with Spark's DDL or"
        " JSON. Fixed at the first load",
    )
    parser.add_argument(
        "--properties", type=Path, metavar="FILE", help="a Kafka client's own: security.protocol=…, sasl.…"
    )
    parser.add_argument(
        "--until", type=Path, metavar="FILE", help="end after a commit, once this file is there: the next load goes on"
    )
    parser.add_argument(
        "--named", default="", metavar="TOPIC", help="the topic's name in the manifest, if it is another"
    )
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="where to keep JSON with what is done, and in the end how it went"
    )
    parser.add_argument(
        "--new-topic", action="store_true", help="the topic was deleted and made again: load the new one"
    )
    parser.add_argument(
        "--skip-expired", action="store_true", help="go on behind records that expired, and note the gap"
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="leave out what the table has: of --offsets and --from-time only what lies behind it is loaded, and no row is"
        " replaced",
    )
    parser.add_argument(
        "--tidy",
        action="store_true",
        help=f"before rows are replaced: delete files that were replaced over {KEPT_FOR_HOURS} hours ago; the program ends"
        f" some {LONGEST_RUN_S / 3600:g} hours after its start then",
    )
    parser.add_argument(
        "--offsets-a-commit", type=_positive, default=OFFSETS_A_COMMIT, metavar="N",
        help="a load of more offsets makes several commits (default: %(default)s)",
    )  # fmt: skip
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
