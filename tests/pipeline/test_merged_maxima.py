"""What runs have staged is merged once, and ends in the same tables in whatever order it comes; on both databases."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline import tables
from controlplane.metering.pipeline.maxima import INSTANCES, KINDS, MAXIMUM_TABLE, STAGED_TABLE, TOPICS, merging
from controlplane.metering.pipeline.tables import Database, StagingError, put_in_portions

pytestmark = pytest.mark.integration
HOURS = [f"2026-05-01T{hour:02}:00:00Z" for hour in range(24)]


@pytest.fixture
def environment(database_url):
    return Environment.read({"DATABASE_URL": database_url})


@pytest.fixture
def database(environment):
    made = Database(environment)
    yield made
    made.close()


def row(hour: int, produced: int, *, topic: str = "orders", offset: int = 0) -> tuple:
    return TOPICS.staged(("ins-k3v9x2qa", "b1", topic, HOURS[hour], 1, produced, 7, 0, 3, offset, 0))


def of_instance(hour: int, came: int) -> tuple:
    return INSTANCES.staged(("ins-k3v9x2qa", "b1", HOURS[hour], 1, came, 2, 3, 4, 5, 3, 0, 0))


def staged(database, run: str, *rows: tuple) -> None:
    with database.transaction() as cursor:
        database.maxima_stage(cursor, run, rows, 1)


def merged(database, run: str, count: int) -> None:
    with database.transaction() as cursor:
        database.maxima_merge(cursor, run, count)


def shown(database, columns: str = "topic, hour, produced_bytes, produced_bytes_before") -> list[tuple]:
    return list(database.read(f"SELECT {columns} FROM {MAXIMUM_TABLE} ORDER BY boot, topic, hour"))


def left(database) -> int:
    ((count,),) = database.read(f"SELECT COUNT(*) FROM {STAGED_TABLE}")
    return count


@pytest.mark.parametrize("seed", range(6))
def test_batches_of_many_hours_in_any_order_end_in_what_the_records_say(database, seed):
    """Counters of a boot grow with the hours; a record may come late, again, or before an older one of the same hour."""
    dice = random.Random(seed)
    told, count = [], defaultdict(int)
    for hour in range(8):
        for _ in range(dice.randint(1, 3)):
            for topic in ("orders", "clicks", "Ärger"):
                count[topic] += dice.choice((0, 1, 10))
                if dice.random() < 0.7:
                    told.append((topic, hour, count[topic]))
    told += dice.sample(told, len(told) // 3)
    dice.shuffle(told)
    while told:
        some = {(topic, hour): (topic, hour, produced) for topic, hour, produced in told[: dice.randint(1, 7)]}
        told = told[max(1, len(some)) :]
        batch = [row(hour, produced, topic=topic) for topic, hour, produced in some.values()]
        staged(database, "run", *batch)
        merged(database, "run", len(batch))
        for topic, hour, produced in some.values():
            count[topic, hour] = max(count[topic, hour], produced)
    known = {key: produced for key, produced in count.items() if isinstance(key, tuple)}
    wanted = [
        (topic, HOURS[hour], produced, max((known[t, h] for t, h in known if t == topic and h < hour), default=0))
        for (topic, hour), produced in known.items()
    ]
    assert sorted(shown(database)) == sorted(wanted)
    assert left(database) == 0


def test_what_comes_late_is_passed_on_to_all_hours_behind_it(database):
    for hour, produced in ((0, 5), (2, 9), (5, 9)):
        staged(database, "run", row(hour, produced))
        merged(database, "run", 1)
    staged(database, "run", row(1, 7), row(3, 12))
    merged(database, "run", 2)
    assert [counters for _, _, *counters in shown(database)] == [[5, 0], [7, 5], [9, 7], [12, 9], [9, 12]]


def test_kinds_are_told_apart_also_where_their_names_are_the_same(database):
    staged(database, "run", row(0, 5), of_instance(0, 50))
    merged(database, "run", 2)
    assert shown(database) == [("orders", HOURS[0], 5, 0)]
    columns = "wire_in_bytes, wire_out_bytes, requests, loop_us, throttled_ms"
    assert list(database.read(f"SELECT {columns} FROM {INSTANCES.table}")) == [(50, 2, 3, 4, 5)]


def test_a_task_that_is_run_again_stages_nothing_more(database):
    for _ in range(2):
        staged(database, "run", row(0, 5), row(1, 6))
    merged(database, "run", 2)
    assert [produced for _, _, produced, _ in shown(database)] == [5, 6]


def test_a_run_merges_what_it_has_staged_and_nothing_of_another(database):
    staged(database, "other", row(0, 500))
    staged(database, "run", row(0, 5))
    merged(database, "run", 1)
    assert [produced for _, _, produced, _ in shown(database)] == [5]
    assert left(database) == 1


def test_what_is_not_staged_any_more_is_not_taken_for_nothing(database):
    staged(database, "run", row(0, 5), row(1, 6))
    with database.transaction() as cursor:
        database.staged_remove(cursor)
    with pytest.raises(StagingError, match="0 of 2 rows are staged"):
        merged(database, "run", 2)
    assert shown(database) == []


def test_what_is_removed_while_it_is_merged_is_not_taken_for_nothing_either(database, environment, monkeypatch):
    """Another job of the cluster begins a batch: the positions would move behind records that nobody has merged."""
    if database.is_sqlite:
        pytest.skip("SQLite has one writer")

    def removed_first(run: str):
        other = Database(environment)
        with other.transaction() as cursor:
            other.staged_remove(cursor)
        other.close()
        yield from merging(run)

    staged(database, "run", row(0, 5), row(1, 6))
    monkeypatch.setattr(tables, "merging", removed_first)
    with pytest.raises(StagingError, match="0 of 2 rows are staged"):
        merged(database, "run", 2)
    assert shown(database) == []


def test_what_a_dead_run_has_staged_is_removed_and_that_of_another_cluster_stays(database, environment):
    second = Database(environment, cluster="second")
    staged(database, "dead", row(0, 5))
    staged(second, "alive", row(0, 6))
    with database.transaction() as cursor:
        database.staged_remove(cursor)
    assert left(database) == 1
    merged(second, "alive", 1)
    second.close()
    assert [produced for _, _, produced, _ in shown(database)] == [6]


@pytest.mark.parametrize("other_is", ["another job of the cluster", "reconcile"])
def test_who_merges_rows_of_the_same_topic_at_the_same_moment_waits_so_that_no_hour_counts_what_another_has_counted(
    database, environment, other_is
):
    """On PostgreSQL neither would see what the other has not committed, and both hours would count from 0."""
    stream = database if other_is != "reconcile" else Database(environment, cluster="second")
    staged(stream, "run", row(1, 5))
    staged(database, "other", row(2, 9))
    done = threading.Event()

    def merge() -> None:
        second = Database(environment)
        with second.transaction() as cursor:
            if other_is == "reconcile":
                second.maxima_raise(cursor, [("ins-k3v9x2qa", "b1", "orders", HOURS[2], 1, 9, 7, 0, 3, 0, 0)])
            else:
                second.maxima_merge(cursor, "other", 1)
        second.close()
        done.set()

    with stream.transaction() as cursor:
        stream.maxima_merge(cursor, "run", 1)
        merging_too = threading.Thread(target=merge)
        merging_too.start()
        assert not done.wait(0.5)
    merging_too.join(10)
    stream.close()
    assert [counters for _, _, *counters in shown(database)] == [[5, 0], [9, 5]]


def test_streams_of_two_clusters_merge_at_the_same_moment_where_the_database_can(database, environment):
    """An instance is on one cluster, so they share no rows."""
    if database.is_sqlite:
        pytest.skip("SQLite has one writer")
    second = Database(environment, cluster="second", patience_s=1)
    staged(database, "run", row(1, 5))
    staged(second, "other", row(1, 9, topic="clicks"))
    with database.transaction() as cursor:
        database.maxima_merge(cursor, "run", 1)
        merged(second, "other", 1)
    second.close()
    assert [produced for _, _, produced, _ in shown(database)] == [9, 5]


def test_two_attempts_at_one_task_stage_its_rows_at_the_same_moment_each_in_its_own_order(database, environment):
    """Spark promises no order: PostgreSQL gives one up of two that wait for each other."""
    rows = [row(number % 24, number, topic=f"t{number // 24}") for number in range(1000)]
    begin = threading.Barrier(2, timeout=30)

    def attempt(own_rows: list[tuple]) -> None:
        own = Database(environment)
        for turn in range(5):
            begin.wait()
            staged(own, f"run {turn}", *own_rows)
        own.close()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(attempt, some) for some in (rows, rows[::-1])]:
            done.result()
    assert left(database) == 5000


def test_rows_of_a_task_come_in_portions_of_a_transaction_each(environment, database):
    rows = [row(number % 24, number, topic=f"t{number // 24}") for number in range(2500)]
    portions = []

    def put(own, cursor, portion) -> None:
        portions.append(len(portion))
        own.maxima_stage(cursor, "run", portion, 1)

    assert list(put_in_portions(environment, iter(rows), put)) == [2500]
    assert portions == [1000, 1000, 500]
    merged(database, "run", 2500)
    assert len(shown(database)) == 2500


def test_a_merge_looks_up_what_was_staged_and_reads_no_table_of_maxima_through(database):
    """Whether the tables are large or small, and whatever statistics there are."""
    many = [row(number % 24, number, topic=f"t{number // 24}") for number in range(5000)]
    staged(database, "old", *many)
    merged(database, "old", len(many))
    staged(database, "run", *many[:3000])
    if not database.is_sqlite:
        with database.transaction() as cursor:
            database.run(cursor, "ANALYZE")
    with database.transaction() as cursor:
        database.rows_are_looked_up(cursor)
        plans = [
            (statement, plan)
            for statement, values in merging("run")
            for plan in explained(database, cursor, statement, values)
        ]
    # PostgreSQL reads the other two through: they are empty, which it sees from their size.
    through = ("SCAN t", *(f"SCAN {kind.table}" for kind in KINDS), f"Seq Scan on {MAXIMUM_TABLE}")
    found = [(statement, plan) for statement, plan in plans if plan.strip(" ->").startswith(through)]
    assert found == []
    assert any("USING INDEX" in plan or "Index" in plan for _, plan in plans)


def explained(database, cursor, statement: str, values: tuple) -> list[str]:
    database.run(cursor, ("EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN ") + statement, values)
    return [str(row[-1]) for row in cursor.fetchall()]
