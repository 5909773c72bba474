"""The rows that say how far the stream of a cluster has come, and what it can never read (models `Progress` and `Loss`).

A batch notes its offsets in the transaction of its data (`advance`). All else is the running thread's: it makes the rows when
a query begins (`begin`), and every few seconds writes what Kafka said and what follows from it (`note_look`). Rows of another
topic id are another topic's: nothing that is written for one changes those of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from controlplane.metering.pipeline.positions import Loss, Position, TopicState

if TYPE_CHECKING:
    from controlplane.metering.pipeline.tables import Database

PROGRESS_TABLE = "metering_progress"
LOSS_TABLE = "metering_loss"
COLUMNS = "cluster, partition, topic_id, next_offset, end_offset, looked_at_ms"


def positions(database: Database, cursor: Any) -> dict[int, Position]:
    """How far each partition has been read."""
    statement = f"SELECT partition, topic_id, next_offset, end_offset FROM {PROGRESS_TABLE} WHERE cluster = ?"  # noqa: S608
    database.run(cursor, statement, (database.cluster,))
    return {partition: Position(*rest) for partition, *rest in cursor.fetchall()}


def begin(
    database: Database,
    cursor: Any,
    topic: TopicState,
    offsets: Mapping[int, int] | None,
    losses: Iterable[Loss],
    now_ms: int,
) -> None:
    """A query begins: at the given offsets, or (None) where the rows say; partitions without a row at their first record."""
    gone = f"DELETE FROM {PROGRESS_TABLE} WHERE cluster = ? AND topic_id <> ?"  # noqa: S608
    database.run(cursor, gone, (database.cluster, topic.id))
    for partition, first in topic.first.items():
        at = first if offsets is None else offsets[partition]
        database.run(
            cursor,
            f"INSERT INTO {PROGRESS_TABLE} ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (cluster, partition) DO "  # noqa: S608
            + ("NOTHING" if offsets is None else "UPDATE SET next_offset = excluded.next_offset"),
            (database.cluster, partition, topic.id, at, topic.end[partition], now_ms),
        )
    for loss in losses:
        database.run(
            cursor,
            f"INSERT INTO {LOSS_TABLE} (cluster, kind, partition, start_offset, end_offset, topic_id, sentence, found_at_ms)"  # noqa: S608
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (database.cluster, loss.kind, loss.partition, loss.start, loss.end, topic.id, loss.sentence, now_ms),
        )


def advance(database: Database, cursor: Any, topic_id: str, next_offsets: Mapping[int, int]) -> None:
    """Everything before these offsets is in the database."""
    for partition, offset in sorted(next_offsets.items()):
        database.run(
            cursor,
            f"INSERT INTO {PROGRESS_TABLE} ({COLUMNS}) VALUES (?, ?, ?, ?, ?, 0) ON CONFLICT (cluster, partition) DO UPDATE"  # noqa: S608
            f" SET next_offset = excluded.next_offset WHERE {PROGRESS_TABLE}.topic_id = excluded.topic_id"
            f" AND {PROGRESS_TABLE}.next_offset < excluded.next_offset",
            (database.cluster, partition, topic_id, offset, offset),
        )


def note_look(
    database: Database, cursor: Any, topic: TopicState, at_ms: int, complete: Mapping[int, int]
) -> int | None:
    """Where partitions ended at a moment; and up to when, in ms, those are complete of which that is known anew.

    Returns up to when all are; None: not known of all.
    """
    for partition, end in sorted(topic.end.items()):
        database.run(
            cursor,
            f"UPDATE {PROGRESS_TABLE} SET end_offset = ?, looked_at_ms = ? WHERE cluster = ? AND partition = ? AND topic_id = ?",  # noqa: S608
            (end, at_ms, database.cluster, partition, topic.id),
        )
    for partition, complete_to_ms in sorted(complete.items()):
        database.run(
            cursor,
            f"UPDATE {PROGRESS_TABLE} SET complete_to_ms = ? WHERE cluster = ? AND partition = ? AND topic_id = ?"  # noqa: S608
            " AND (complete_to_ms IS NULL OR complete_to_ms < ?)",
            (complete_to_ms, database.cluster, partition, topic.id, complete_to_ms),
        )
    counted = f"SELECT COUNT(*), COUNT(complete_to_ms), MIN(complete_to_ms) FROM {PROGRESS_TABLE} WHERE cluster = ?"  # noqa: S608
    database.run(cursor, counted, (database.cluster,))
    rows, known, least = cursor.fetchone()
    return int(least) if rows and rows == known else None
