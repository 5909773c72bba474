"""What a topic's configuration, and the broker's `record_validation`, ask of records before they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from dataplane.records.preparation import NO_RULES, Rules

if TYPE_CHECKING:
    from dataplane.storage.config import LogConfig

CODECS = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
"""Values of `compression.type`. The other one, `producer`, leaves records as they came."""
FULL, HEADER = "full", "header"
"""Values of `record_validation`."""


def rules_of(config: LogConfig, record_validation: str) -> Rules | None:
    """None where batches are stored as they come, as they nearly always are."""
    rules = Rules(
        codec=CODECS.get(config.compression_type),
        stamps=config.stamps_at_append,
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
        needs_keys=config.is_compacted,
        full=record_validation == FULL,
    )
    return None if rules == NO_RULES else rules
