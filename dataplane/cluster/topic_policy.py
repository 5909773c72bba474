"""What a tenant may set about a topic, of what a broker would take: floors and ceilings. Pure.

Brokers are shared. Each segment is three files, an entry of an index is memory, a walk between two entries holds up the
loop, and a round of compaction reads the whole log. So

    segment.ms, max.compaction.lag.ms   not below 10 minutes: a log rolls no more often than that, whatever its records say
    segment.bytes, segment.index.bytes  not below 1 MiB and what that takes of index
    index.interval.bytes                from 4 KiB, so that a full index does not pass under the floor of segment.bytes, to 64
    flush.ms                            not below a second: that is how often it is looked at
    min.cleanable.dirty.ratio           not below 0.1: compaction then reads ten bytes for one that is written, at most
    max.message.bytes                   not above `tenant.max.message.bytes` of the brokers
    *.replication.throttled.replicas    not at all: they slow down the brokers' own work, and are for those who run them

`flush.messages` has no floor by default: 1 is the durable profile, which tenants may have, and nothing costs more than
that. Retention has no bounds by default either: what is stored is limited as a whole. A policy may have them all the same;
it is a value, so that a plan can bring its own.

What the brokers have as their own default may be set by anybody: it is what everybody gets. A topic that was made before
there was a floor keeps its setting, and is treated as if it said the floor (`applied`). Its `segment.bytes` is not: that
floor is as old as the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from dataplane.cluster.topic_settings import LEAST_INDEX_BYTES, LEAST_SEGMENT_BYTES, TOPIC_SETTINGS
from dataplane.protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from dataplane.config import Settings
    from dataplane.storage.config import LogConfig

UNLIMITED = ("retention.ms", "retention.bytes")
"""-1 is more than any number here."""


@dataclass(frozen=True, slots=True)
class Range:
    """From `least` to `most`, both taken; None: as far as the broker takes it."""

    least: float | None = None
    most: float | None = None

    def problem(self, value: float) -> str | None:
        """To follow the setting's name in a sentence; None where it is fine."""
        if self.least is not None and value < self.least:
            return f"can be {_text(self.least)} at least, not {_text(value)}"
        if self.most is not None and value > self.most:
            return f"can be {_text(self.most)} at most, not {_text(value)}"
        return None

    def sentence(self) -> str:
        """A sentence for people who read about the setting."""
        parts = [f"{_text(self.least)} at least"] if self.least is not None else []
        parts += [f"{_text(self.most)} at most"] if self.most is not None else []
        return f"In this service {' and '.join(parts)}." if parts else ""

    def nearest(self, value: float) -> float:
        """The value, or the bound that it lies beyond."""
        if self.least is not None:
            value = max(value, self.least)
        return value if self.most is None else min(value, self.most)

    def reaching(self, value: float) -> Range:
        """The same with this value in it."""
        return Range(
            None if self.least is None else min(self.least, value), None if self.most is None else max(self.most, value)
        )


_DEFAULT: Mapping[str, Range] = {
    "flush.ms": Range(1_000),
    "index.interval.bytes": Range(4_096, 65_536),
    "max.compaction.lag.ms": Range(600_000),
    "min.cleanable.dirty.ratio": Range(0.1),
    "segment.bytes": Range(LEAST_SEGMENT_BYTES),
    "segment.index.bytes": Range(LEAST_INDEX_BYTES, 10 * 2**20),
    "segment.ms": Range(600_000),
}


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """By Kafka's names. The defaults are every plan's."""

    ranges: Mapping[str, Range] = field(default_factory=lambda: _DEFAULT)
    refused: tuple[str, ...] = ("follower.replication.throttled.replicas", "leader.replication.throttled.replicas")

    def check(self, overrides: Mapping[str, str]) -> None:
        """`overrides` are valid ones. Raises ApiError: INVALID_CONFIG beyond a bound, POLICY_VIOLATION what is refused."""
        for name, text in overrides.items():
            if name in self.refused and text:
                raise ApiError(ErrorCode.POLICY_VIOLATION, f"{name} is for those who run the brokers")
            if name in self.ranges:
                value = float("inf") if name in UNLIMITED and text == "-1" else float(text)
                problem = self.ranges[name].problem(value)
                if problem is not None:
                    raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} {problem}")

    def sentence(self, name: str) -> str:
        """What there is to say of a setting; nothing where it is free."""
        if name in self.refused:
            return "For those who run the brokers."
        return self.ranges[name].sentence() if name in self.ranges else ""

    def applied(self, config: LogConfig) -> LogConfig:
        """The same log configuration within the bounds, for topics that were made when there were none."""
        rolls = self.ranges.get("segment.ms", Range()).least or 0
        return replace(
            config,
            flush_ms=int(self._nearest("flush.ms", config.flush_ms)),
            index_interval_bytes=int(self._nearest("index.interval.bytes", config.index_interval_bytes)),
            min_cleanable_dirty_ratio=self._nearest("min.cleanable.dirty.ratio", config.min_cleanable_dirty_ratio),
            segment_index_bytes=int(self._nearest("segment.index.bytes", config.segment_index_bytes)),
            least_roll_ms=int(rolls),
        )

    def _nearest(self, name: str, value: float) -> float:
        return self.ranges[name].nearest(value) if name in self.ranges else value


@lru_cache(maxsize=8)
def policy_of(settings: Settings) -> TopicPolicy:
    """Of a broker with these settings, whose own defaults are within it."""
    default = TopicPolicy()
    ranges = {
        name: bounds.reaching(float(TOPIC_SETTINGS[name].default_of(settings)))
        for name, bounds in default.ranges.items()
    }
    return replace(default, ranges={**ranges, "max.message.bytes": Range(None, settings.tenant_max_message_bytes)})


def _text(value: float) -> str:
    if value == float("inf"):
        return "-1, which is unlimited"
    return str(int(value)) if value == int(value) else str(value)
