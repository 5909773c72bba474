"""What a mirror says of itself: a record of the topic `mirror-status`, as `dataplane/clients/mirror/status.py` writes it. Pure.

Whoever may write to the topic can write anything there, so nothing is believed: a record that is not of this form is none,
names are no longer than names can be, numbers are numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

STATUS_TOPIC = "mirror-status"
VERSION = 1
COPYING, RESTING, STUCK = "copying", "resting", "stuck"
STATES = (COPYING, RESTING, STUCK)
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once", "at_least_once"
DELIVERIES = (EXACTLY_ONCE, AT_LEAST_ONCE)
MOST_ROWS = 200
LONGEST_NAME = 249
MOST = 2**63 - 1
LONGEST_PERIOD_S = 86_400.0


@dataclass(frozen=True, slots=True)
class MirroredPartition:
    """One partition, as the mirror knew it then."""

    topic: str  # of the target
    partition: int
    state: str
    lag: int  # messages
    source_end: int  # -1: not heard yet
    source_offset: int  # the next to be copied
    target_offset: int  # where it will be
    map_from: int | None  # the first offset of the source that can be translated; None: nothing was copied yet
    map_segments: int
    map_slack: int  # messages that a group far behind may read twice when it moves


@dataclass(frozen=True, slots=True)
class MirrorSaid:
    """One record."""

    source: str
    target: str
    delivery: str
    at_ms: int
    every_s: float  # it says so again after this time
    lag: int
    messages_per_s: float
    bytes_per_s: float
    partitions: int  # of which `rows` are those that are furthest behind
    rows: tuple[MirroredPartition, ...]


def said(value: bytes | None) -> MirrorSaid | None:
    """What a record says; None: it is no such record."""
    try:
        document = json.loads(value or b"")
        if not isinstance(document, dict) or document.get("version") != VERSION:
            return None
        rows = document["rows"]
        if not isinstance(rows, list) or len(rows) > MOST_ROWS:
            return None
        return MirrorSaid(
            source=_name(document["source"]),
            target=_name(document["target"]),
            delivery=_one_of(document["delivery"], DELIVERIES),
            at_ms=_whole(document["at_ms"]),
            every_s=min(_rate(document["every_s"]), LONGEST_PERIOD_S),
            lag=_whole(document["lag"]),
            messages_per_s=_rate(document["messages_per_s"]),
            bytes_per_s=_rate(document["bytes_per_s"]),
            partitions=_whole(document["partitions"]),
            rows=tuple(_row(row) for row in rows),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _row(row: Any) -> MirroredPartition:
    return MirroredPartition(
        topic=_name(row["topic"]),
        partition=_whole(row["partition"]),
        state=_one_of(row["state"], STATES),
        lag=_whole(row["lag"]),
        source_end=_whole(row["source_end"], -1),
        source_offset=_whole(row["source_offset"]),
        target_offset=_whole(row["target_offset"]),
        map_from=None if row["map_from"] is None else _whole(row["map_from"]),
        map_segments=_whole(row["map_segments"]),
        map_slack=_whole(row["map_slack"]),
    )


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise ValueError(value)
    return value


def _one_of(value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(value)
    return str(value)


def _whole(value: Any, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
        raise ValueError(value)
    return value


def _rate(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST:  # NaN is neither
        raise ValueError(value)
    return float(value)
