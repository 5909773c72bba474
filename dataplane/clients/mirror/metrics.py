"""Lag, rates and offsets: as text for Prometheus, on a port, and as a table for people."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

_NAMES = (
    ("lag_messages", "gauge", "offsets of the source that are not copied yet"),
    ("source_offset", "gauge", "next offset to copy"),
    ("target_offset", "gauge", "where it will be"),
    ("copied_messages_total", "counter", "copied in this run; those of aborted transactions are counted again"),
    ("copied_bytes_total", "counter", "of these, uncompressed"),
    ("source_end_offset", "gauge", "the end of the partition at the source, as last heard"),
    ("map_segments", "gauge", "pieces of the map of offsets, by which groups are translated"),
    (
        "map_slack_messages",
        "gauge",
        "how many messages a group that is far behind may read twice when it moves, at most",
    ),
    ("is_waiting", "gauge", "1: nothing of this partition is copied now, see the log"),
)


COPYING, RESTING, STUCK = "copying", "resting", "stuck"


class Row(NamedTuple):
    """Of one partition."""

    source: str
    topic: str
    partition: int
    lag: int
    next_source: int
    next_target: int
    copied: int
    copied_bytes: int
    end: int = -1  # of the source
    map_segments: int = 0
    map_slack: int = 0
    is_waiting: int = 0  # 1: it rests or stands still
    map_from: int = -1  # the first offset of the source that the map knows; -1: none
    state: str = COPYING


def metrics_text(rows: Sequence[Row]) -> str:
    """In Prometheus' format."""
    lines = []
    for at, (name, kind, help_text) in enumerate(_NAMES, start=3):
        lines += [f"# HELP sluice_mirror_{name} {help_text}", f"# TYPE sluice_mirror_{name} {kind}"]
        lines += [
            f'sluice_mirror_{name}{{source="{row.source}",topic="{row.topic}",partition="{row.partition}"}} {row[at]}'
            for row in sorted(rows)
        ]
    return "\n".join(lines) + "\n"


def table(rows: Sequence[Row]) -> str:
    """For people: a line for each partition."""
    lines = [f"{'SOURCE':12} {'TOPIC':30} {'PARTITION':>9} {'LAG':>10} {'AT SOURCE':>12} {'AT TARGET':>12}"]
    lines += [
        f"{row.source:12} {row.topic:30} {row.partition:>9} {row.lag:>10} {row.next_source:>12} {row.next_target:>12}"
        for row in sorted(rows)
    ]
    return "\n".join(lines)


class MetricsServer:
    """`GET /metrics`. Port 0 takes any that is free."""

    def __init__(self, port: int, rows: Callable[[], Sequence[Row]], host: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                """Any path."""
                body = metrics_text(rows()).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nobody wants to read of it."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="mirror-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
