"""What a mirror says of itself to whoever looks at the target: now and then a record in a topic of its own there.

    key    old                         the source's name
    value  {"version":1,"at_ms":1700000000000,"every_s":10.0,"source":"old","target":"new","delivery":"exactly_once",
            "lag":7,"messages_per_s":120.5,"bytes_per_s":98304.0,"partitions":64,
            "rows":[{"topic":"orders","partition":0,"state":"copying","lag":7,"source_end":1207,"source_offset":1200,
                     "target_offset":1150,"map_from":20,"map_segments":64,"map_slack":3}]}

`rows` are the partitions that are furthest behind, `MOST_ROWS` at most; `partitions` is how many there are. `map_from` is
the first offset of the source that the map of offsets knows, null where nothing was copied yet. Bytes are those of messages,
uncompressed. Who wants all of it reads the metrics. `controlplane/mirrors/records.py` reads this.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dataplane.clients.messages import Message
from dataplane.clients.mirror.metrics import Row

VERSION = 1
MOST_ROWS = 200


@dataclass
class Rates:
    """Of totals that grow, between one look and the next."""

    at_s: float
    messages: int = 0
    size: int = 0

    def since(self, rows: Sequence[Row], now_s: float) -> tuple[float, float]:
        """Messages and bytes a second since the last call."""
        seconds = max(now_s - self.at_s, 0.001)
        messages, size = sum(row.copied for row in rows), sum(row.copied_bytes for row in rows)
        # a partition that is given up takes its totals along
        found = max(0, messages - self.messages) / seconds, max(0, size - self.size) / seconds
        self.at_s, self.messages, self.size = now_s, messages, size
        return found


def status_message(
    rows: Sequence[Row],
    rates: tuple[float, float],
    *,
    source: str,
    target: str,
    delivery: str,
    at_ms: int,
    every_s: float,
) -> Message:
    """As it stands in the topic."""
    furthest = sorted(rows, key=lambda row: (-row.lag, row.topic, row.partition))[:MOST_ROWS]
    value = {
        "version": VERSION,
        "at_ms": at_ms,
        "every_s": every_s,
        "source": source,
        "target": target,
        "delivery": delivery,
        "lag": sum(row.lag for row in rows),
        "messages_per_s": round(rates[0], 1),
        "bytes_per_s": round(rates[1], 1),
        "partitions": len(rows),
        "rows": [_row(row) for row in furthest],
    }
    return Message(json.dumps(value, separators=(",", ":")).encode(), source.encode(), timestamp=at_ms)


def _row(row: Row) -> dict[str, Any]:
    return {
        "topic": row.topic,
        "partition": row.partition,
        "state": row.state,
        "lag": row.lag,
        "source_end": row.end,
        "source_offset": row.next_source,
        "target_offset": row.next_target,
        "map_from": None if row.map_from < 0 else row.map_from,
        "map_segments": row.map_segments,
        "map_slack": row.map_slack,
    }
