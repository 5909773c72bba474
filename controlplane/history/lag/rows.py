"""What there is a history of of a group, and what a step of time has of it. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.history.metrics import Kind, Metric
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES

if TYPE_CHECKING:
    from collections.abc import Mapping

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("lag_messages", "records", Kind.MEASURED, "records that can still be read, of all partitions"),
        Metric("lag_bytes", "bytes", Kind.MEASURED, "bytes of these records as they are stored; about"),
        Metric(
            "lag_seconds",
            "s",
            Kind.MEASURED,
            "age of the oldest record that is still to be read, the largest of the partitions' that are known",
        ),
        Metric(
            "consume_records_per_s",
            "records/s",
            Kind.COUNTED,
            "records by which the group's offsets went on a second, of whole minutes; null: not known, as when one went back",
        ),
        Metric(
            "produce_records_per_s",
            "records/s",
            Kind.COUNTED,
            "records that came a second to the partitions in which it has offsets, likewise",
        ),
    )
}
RESOLUTIONS = (SAMPLES, MINUTES, HOURS)
RUN_S = {MINUTES: HOURS.step_s, HOURS: 86_400}
"""A row is of steps within one such time, so that who reads a range need not look further back."""
NOTHING_LEFT = -1
"""Instead of a timestamp, as `groups.rounds` has it: an age of 0."""
MS = 1000
GONE_AFTER_S = 3600
"""A group that no round has seen for so long counts as deleted. Before that it may only be unreadable, in an outage."""


def digest_of(name: str) -> str:
    """What stands for a group's name in an index."""
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]


def age_s(taken_s: int, oldest_ms: int | None) -> float | None:
    """Of the oldest record at that moment. None: it is not known."""
    if oldest_ms is None:
        return None
    return 0.0 if oldest_ms == NOTHING_LEFT else max(0.0, taken_s - oldest_ms / MS)


@dataclass(slots=True)
class Step:
    """Of the minutes in a step that are known, or samples: sums, and the largest of each. Of one they are the same.

    `moved` are the minutes of which records that were consumed and produced are known.
    """

    samples: int = 0
    messages: int = 0
    messages_most: int = 0
    dated: int = 0
    seconds: float = 0.0
    seconds_most: float = 0.0
    sized: int = 0
    size: int = 0
    size_most: int = 0
    moved: int = 0
    consumed: int = 0
    produced: int = 0

    @property
    def without_lag(self) -> Step:
        """What moved alone, which is known of whole minutes."""
        return Step(moved=self.moved, consumed=self.consumed, produced=self.produced)

    def add(self, other: Step) -> None:
        """An hour, or a minute."""
        self.samples += other.samples
        self.messages += other.messages
        self.messages_most = max(self.messages_most, other.messages_most)
        self.dated += other.dated
        self.seconds += other.seconds
        self.seconds_most = max(self.seconds_most, other.seconds_most)
        self.sized += other.sized
        self.size += other.size
        self.size_most = max(self.size_most, other.size_most)
        self.moved += other.moved
        self.consumed += other.consumed
        self.produced += other.produced


def minute(
    messages: int, age: float | None, size: int | None, consumed: int | None = None, produced: int | None = None
) -> Step:
    """One minute, or one sample. None: it is not known."""
    return Step(
        *(1, messages, messages),
        *(int(age is not None), age or 0.0, age or 0.0),
        *(int(size is not None), size or 0, size or 0),
        *(int(consumed is not None and produced is not None), consumed or 0, produced or 0),
    )
