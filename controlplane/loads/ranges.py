"""What one run is to load beyond what the topic has new: a range again, a time, a topic that was made again. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

MOST_PARTITIONS = 1000
LARGEST_OFFSET = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """Of one run. Without any of it: what is new."""

    from_time_ms: int | None = None
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)  # by partition: the first, and behind the last
    new_topic: bool = False
    skip_expired: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it stands in the row."""
        members: dict[str, Any] = {}
        if self.from_time_ms is not None:
            members["from_time_ms"] = self.from_time_ms
        if self.offsets:
            members["offsets"] = {str(partition): list(span) for partition, span in sorted(self.offsets.items())}
        return members | {name: True for name in ("new_topic", "skip_expired") if getattr(self, name)}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> Asked:
        """The reverse."""
        offsets = {int(partition): (first, end) for partition, (first, end) in members.get("offsets", {}).items()}
        return cls(
            members.get("from_time_ms"), offsets, members.get("new_topic", False), members.get("skip_expired", False)
        )

    def words(self) -> list[str]:
        """For the program."""
        words = []
        if self.from_time_ms is not None:
            words += ["--from-time", (_EPOCH + timedelta(milliseconds=self.from_time_ms)).isoformat()]
        if self.offsets:
            spans = (f"{partition}:{first}-{end}" for partition, (first, end) in sorted(self.offsets.items()))
            words += ["--offsets", ",".join(spans)]
        return [
            *words,
            *(["--new-topic"] if self.new_topic else []),
            *(["--skip-expired"] if self.skip_expired else []),
        ]


def problems(asked: Asked) -> dict[str, str]:
    """What is wrong, by member."""
    found: dict[str, str] = {}
    if asked.from_time_ms is not None and asked.offsets:
        found["offsets"] = "give a time or offsets, not both"
    if len(asked.offsets) > MOST_PARTITIONS:
        found["offsets"] = f"{MOST_PARTITIONS} partitions at most"
    for partition, (first, end) in asked.offsets.items():
        if not 0 <= first < end <= LARGEST_OFFSET:
            found["offsets"] = (
                f"of partition {partition}: the first offset, and a larger one before which the range ends"
            )
    return found
