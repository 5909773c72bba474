"""What there is a history of of a group, and what a step of time has of it. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.history.metrics import Kind, Metric
from controlplane.history.resolutions import HOURS, MINUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("lag_messages", "records", Kind.MEASURED, "records that can still be read, of all partitions"),
        Metric(
            "lag_seconds",
            "s",
            Kind.MEASURED,
            "age of the oldest record that is still to be read, the largest of the partitions' that are known",
        ),
    )
}
RESOLUTIONS = (MINUTES, HOURS)
RUN_S = {MINUTES: HOURS.step_s, HOURS: 86_400}
"""A row is of steps within one such time, so that who reads a range need not look further back."""
NOTHING_LEFT = -1
"""Instead of a timestamp, as `groups.rounds` has it: an age of 0."""
MS = 1000


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
    """Of the minutes in a step that are known."""

    samples: int = 0
    dated: int = 0
    messages: int = 0
    messages_most: int = 0
    seconds: float = 0.0
    seconds_most: float = 0.0

    def add_minute(self, messages: int, age: float | None) -> None:
        """One minute."""
        self.add(1, messages, messages, int(age is not None), age or 0.0, age or 0.0)

    def add(self, samples: int, messages: int, most: int, dated: int, seconds: float, seconds_most: float) -> None:
        """An hour, or a minute: sums, and the largest of each."""
        self.samples += samples
        self.messages += messages
        self.messages_most = max(self.messages_most, most)
        self.dated += dated
        self.seconds += seconds
        self.seconds_most = max(self.seconds_most, seconds_most)
