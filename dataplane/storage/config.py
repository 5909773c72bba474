"""What can be set per topic about its logs, with Kafka's names and defaults.

Times in milliseconds, sizes in bytes; -1 as a retention means forever, `FOREVER` as a flush interval never.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.config import Settings

FOREVER = 2**63 - 1
LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True)
class LogConfig:
    """A field is the topic configuration of the same name, with dots."""

    segment_bytes: int = 2**30
    segment_ms: int = 168 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 2**20
    index_interval_bytes: int = 4096
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    file_delete_delay_ms: int = 60_000
    retention_ms: int = 168 * 3_600_000
    retention_bytes: int = -1
    cleanup_policy: str = "delete"
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    min_cleanable_dirty_ratio: float = 0.5
    compression_type: str = "producer"
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = FOREVER
    message_downconversion_enable: bool = True
    least_roll_ms: int = 0  # no setting: time ends no segment that has been written to for less (see `topic_policy`)

    @property
    def is_compacted(self) -> bool:
        """Of records with the same key only the last is kept."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Age and size delete segments."""
        return "delete" in self.cleanup_policy

    @property
    def rolls_after_ms(self) -> int:
        """The longest a segment is written to: compaction may have to begin before `segment.ms`."""
        asked = min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms
        return max(asked, self.least_roll_ms)

    @property
    def stamps_at_append(self) -> bool:
        """The leader's clock counts, not the producer's."""
        return self.message_timestamp_type == LOG_APPEND_TIME

    @classmethod
    def from_settings(cls, settings: Settings) -> LogConfig:
        """The broker's defaults: settings of these names, some with Kafka's `log_` before it."""
        found = {}
        for field in fields(cls):
            for name in (_BROKER_NAMES.get(field.name), f"log_{field.name}", field.name):
                if name is not None and hasattr(settings, name):
                    found[field.name] = getattr(settings, name)
                    break
        return cls(**found)

    def with_topic(self, topic_config: Mapping[str, str]) -> LogConfig:
        """As the topic's own configuration says (`segment.bytes` and so on); other keys are ignored."""
        changes = {
            field.name: _value(getattr(self, field.name), topic_config[name])
            for field in fields(self)
            if (name := field.name.replace("_", ".")) in topic_config
        }
        changed = replace(self, **changes)
        if changed.is_deleted:
            return changed
        return replace(changed, retention_ms=-1, retention_bytes=-1)  # compacted only: age and size delete nothing


_BROKER_NAMES = {
    "flush_messages": "log_flush_interval_messages",
    "flush_ms": "log_flush_interval_ms",
    "segment_ms": "log_roll_ms",
    "segment_jitter_ms": "log_roll_jitter_ms",
    "segment_index_bytes": "log_index_size_max_bytes",
    "delete_retention_ms": "log_cleaner_delete_retention_ms",
    "min_compaction_lag_ms": "log_cleaner_min_compaction_lag_ms",
    "max_compaction_lag_ms": "log_cleaner_max_compaction_lag_ms",
    "min_cleanable_dirty_ratio": "log_cleaner_min_cleanable_ratio",
}


def _value(default: Any, text: str) -> Any:
    if isinstance(default, bool):
        return text.lower() == "true"
    return type(default)(text)
