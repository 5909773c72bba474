"""What can be set per topic about its logs, with Kafka's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.config import Settings


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes in bytes, times in milliseconds; -1 as a retention means for ever."""

    segment_bytes: int = 2**30
    index_interval_bytes: int = 4096
    retention_ms: int = 168 * 3_600_000
    retention_bytes: int = -1

    @classmethod
    def from_settings(cls, settings: Settings) -> LogConfig:
        """The broker's defaults."""
        return cls(
            segment_bytes=settings.log_segment_bytes,
            index_interval_bytes=settings.log_index_interval_bytes,
            retention_ms=settings.log_retention_ms,
            retention_bytes=settings.log_retention_bytes,
        )

    def with_topic(self, topic_config: Mapping[str, str]) -> LogConfig:
        """As the topic's own configuration says (`segment.bytes` and so on); other keys are ignored."""
        known = {field.name.replace("_", "."): field.name for field in fields(self)}
        changes = {known[name]: int(value) for name, value in topic_config.items() if name in known}
        if "delete" not in topic_config.get("cleanup.policy", "delete"):
            changes |= {"retention_ms": -1, "retention_bytes": -1}  # compacted only: age and size delete nothing
        return replace(self, **changes)
