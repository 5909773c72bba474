"""The rows of progress and losses, on SQLite and PostgreSQL: what a batch, a look and a new start make of them."""

from __future__ import annotations

import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline import progress_table
from controlplane.metering.pipeline.positions import Loss, Position, TopicState
from controlplane.metering.pipeline.tables import Database

pytestmark = pytest.mark.integration
TOPIC = TopicState("t1", first={0: 0, 1: 5}, end={0: 40, 1: 30})
AGAIN = TopicState("t2", first={0: 0}, end={0: 8})


class Rows:
    """The table through its functions, a transaction each."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def do(self, function, *values):
        with self.database.transaction() as cursor:
            return function(self.database, cursor, *values)

    def begin(self, topic, offsets=None, losses=()):
        self.do(progress_table.begin, topic, offsets, losses, 1000)

    def all(self, columns: str, table: str = "metering_progress") -> list[tuple]:
        with self.database.transaction() as cursor:
            cursor.execute(f"SELECT {columns} FROM {table} ORDER BY partition")
            return cursor.fetchall()


@pytest.fixture
def rows(database_url):
    database = Database(Environment.read({"DATABASE_URL": database_url}))
    yield Rows(database)
    database.close()


def test_a_first_start_makes_a_row_for_each_partition_at_its_first_record(rows):
    rows.begin(TOPIC)
    assert rows.do(progress_table.positions) == {0: Position("t1", 0, 40), 1: Position("t1", 5, 30)}


def test_a_batch_moves_its_partitions_forward_and_never_back(rows):
    rows.begin(TOPIC)
    rows.do(progress_table.advance, "t1", {0: 20, 1: 30})
    rows.do(progress_table.advance, "t1", {0: 15})
    rows.do(progress_table.advance, "t0", {0: 90})  # of a topic that is gone
    rows.begin(TOPIC)
    assert rows.all("partition, next_offset") == [(0, 20), (1, 30)]


def test_a_batch_may_bring_a_partition_that_was_added_since(rows):
    rows.begin(TOPIC)
    rows.do(progress_table.advance, "t1", {2: 7})
    assert rows.all("partition, next_offset") == [(0, 0), (1, 5), (2, 7)]


def test_a_start_at_given_offsets_goes_back_to_them(rows):
    rows.begin(TOPIC)
    rows.do(progress_table.advance, "t1", {0: 20, 1: 30})
    rows.begin(TOPIC, {0: 3, 1: 30})
    assert rows.all("partition, next_offset") == [(0, 3), (1, 30)]


def test_a_look_notes_ends_and_moves_completeness_forward_only(rows):
    rows.begin(TOPIC)
    rows.do(progress_table.note_look, TOPIC, 5000, {0: 5000})
    rows.do(progress_table.note_look, TopicState("t1", {}, {0: 44, 1: 31}), 6000, {0: 4000})
    rows.do(progress_table.note_look, TopicState("t0", {}, {0: 99}), 7000, {1: 7000})
    assert rows.all("partition, end_offset, looked_at_ms, complete_to_ms") == [(0, 44, 6000, 5000), (1, 31, 6000, None)]


def test_a_topic_that_was_made_again_has_rows_of_its_own_and_leaves_its_loss(rows):
    rows.begin(TOPIC)
    rows.do(progress_table.note_look, TOPIC, 5000, {0: 5000, 1: 5000})
    loss = Loss("made again", -1, 0, 65)
    rows.begin(AGAIN, {0: 0}, [loss])
    assert rows.all("partition, topic_id, next_offset, complete_to_ms") == [(0, "t2", 0, None)]
    assert rows.all("kind, start_offset, end_offset, topic_id, sentence, settled_at", "metering_loss") == [
        ("made again", 0, 65, "t2", loss.sentence, None)
    ]
