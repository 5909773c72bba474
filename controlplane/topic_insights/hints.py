"""What somebody might want to look at, of one topic. Pure.

A hint follows from what is known: where a broker, a coordinator or the meter did not answer, what would need it is left out, and
nothing is guessed. No hint is an alarm; each is a sentence for people and a code for programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.topic_insights.skew import is_hot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controlplane.kafka.client import Partition
    from controlplane.topic_insights.groups import Reader

HOT_TIMES = 3.0
"""One partition holds more than so many times what the others hold on average."""
LEAST_BYTES = 2**20
"""Below this, or below LEAST_RECORDS where bytes are not known, an uneven topic says nothing."""
LEAST_RECORDS = 1000
UNUSED_DAYS = 7
WARNING, NOTE = "warning", "note"
LEVELS = (WARNING, NOTE)
CODES = (
    "no_leader", "under_replicated", "one_replica", "no_spare_replica", "hot_partition", "no_group", "records_lost",
    "lag_near_retention", "unused",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hint:
    """One of CODES, how much it matters, and a sentence."""

    code: str
    level: str
    detail: str


@dataclass(frozen=True, slots=True)
class Known:
    """What hints are made of; None is what is not known."""

    layout: Sequence[Partition]
    config: Mapping[str, str | None] | None = None
    written: Sequence[int | None] | None = None  # bytes of the last hour, by place in `layout`
    sizes: Sequence[int | None] | None = None  # bytes at the leaders
    records: Sequence[int | None] | None = None
    readers: Sequence[Reader] | None = None  # groups that have an offset here, or a member that reads here
    more_groups: int = 0  # that nobody looked at, so that they may read here as well
    unused_days: int | None = None  # so many full days nobody produced or consumed; None: not known, or used


def hints_of(known: Known) -> list[Hint]:
    """Those that matter most first."""
    found = [*_of_replicas(known), *_of_filling(known), *_of_readers(known), *_of_use(known)]
    return sorted(found, key=lambda hint: LEVELS.index(hint.level))


def _of_replicas(known: Known) -> Iterator[Hint]:
    leaderless = sum(partition.leader is None for partition in known.layout)
    behind = sum(len(partition.isr) < len(partition.replicas) for partition in known.layout)
    if leaderless:
        detail = f"{leaderless} of its partitions cannot be written to or read from: they have no leader"
        yield Hint("no_leader", WARNING, detail)
    elif behind:
        yield Hint("under_replicated", WARNING, f"{behind} of its partitions have replicas that are not in sync")
    replicas = min((len(partition.replicas) for partition in known.layout), default=0)
    if replicas == 1:
        detail = "a partition with one replica cannot be used while its broker is away, and is lost with its disk"
        yield Hint("one_replica", WARNING, detail)
        return
    in_sync = (known.config or {}).get("min.insync.replicas")
    if in_sync is not None and in_sync.isdecimal() and int(in_sync) >= replicas > 1:
        detail = f"min.insync.replicas is {in_sync}, as many as there are replicas: one broker away stops acks=all"
        yield Hint("no_spare_replica", WARNING, detail)


def _of_filling(known: Known) -> Iterator[Hint]:
    """By what is written now, where that is known and worth a word; else by what lies there, in bytes or in records."""
    for held, least in (
        (known.written, LEAST_BYTES),
        (known.sizes, LEAST_BYTES),
        (known.records, LEAST_RECORDS),
    ):
        amounts = [amount for amount in held or () if amount is not None]
        if held is None or len(amounts) < len(held) or (held is known.written and sum(amounts) < least):
            continue
        if sum(amounts) >= least and is_hot(amounts, times=HOT_TIMES):
            place = max(range(len(amounts)), key=lambda each: amounts[each])
            share = 100 * amounts[place] // sum(amounts)  # what is not all of it is not called 100 %
            number = known.layout[place].partition
            yield Hint("hot_partition", NOTE, _hot(number, share, known, held))
        return


def _hot(number: int, share: int, known: Known, held: Sequence[int | None]) -> str:
    """It says by what it was judged."""
    if held is known.written:
        return (
            f"partition {number} took {share} % of the bytes of the last hour: keys may be few, "
            "or one of them very frequent"
        )
    if held is known.sizes:
        return f"partition {number} holds {share} % of the topic's bytes: keys may be few, or one of them very frequent"
    return f"partition {number} holds {share} % of the topic's records: keys may be few, or one of them very frequent"


def _of_readers(known: Known) -> Iterator[Hint]:
    if known.readers is None:
        return
    if not known.readers:
        if sum(amount or 0 for amount in known.records or ()) and not known.more_groups:
            yield Hint(
                "no_group",
                NOTE,
                "no consumer group has an offset in it: nobody reads it, or whoever does commits no offsets",
            )
        return
    for reader in known.readers:
        if reader.lost:
            detail = f"retention deleted {reader.lost} records before group {reader.group} had read them"
            yield Hint("records_lost", WARNING, detail)
        elif reader.is_near_retention:
            detail = f"group {reader.group} is so far behind that retention may delete what it has not read"
            yield Hint("lag_near_retention", WARNING, detail)


def _of_use(known: Known) -> Iterator[Hint]:
    if known.unused_days is not None and known.unused_days >= UNUSED_DAYS:
        yield Hint("unused", NOTE, f"nobody has produced to it or consumed from it for {known.unused_days} days")
