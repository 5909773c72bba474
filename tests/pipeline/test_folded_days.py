"""Days are folded and their key rows deleted, on SQLite and PostgreSQL: every answer is what it would be without."""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.env import Environment
from controlplane.metering import selectors
from controlplane.metering.pipeline import folded, maxima, raw_table, recompute, reconcile_tables
from controlplane.metering.pipeline.folded import (
    FOLDED,
    INSTANCE_HOURS,
    NOBODY,
    SOURCES,
    TOPIC_DAYS,
    TOPIC_HOURS,
    USER_DAYS,
    Gone,
)
from controlplane.metering.pipeline.tables import Database
from quota.contracts.usage import COUNTERS, INSTANCE_COUNTERS
from tests.pipeline.conftest import tables_make, wrapper_of
from tests.support.usage import batches

pytestmark = [pytest.mark.integration, pytest.mark.django_db]
INSTANCES = ("ins-aaaaaaaa", "ins-bbbbbbbb")
TOPICS = ("orders", "clicks", "views")
FIRST, DAYS = datetime(2026, 5, 1, tzinfo=UTC), 4
END = FIRST + timedelta(days=DAYS)
SHARED = ("by topic", "by user")
"""Of days that are cut: shares, not what was counted."""
MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def hour(number: int) -> str:
    return f"{FIRST + timedelta(hours=number):%Y-%m-%dT%H}:00:00Z"


def midnight(day: int) -> str:
    return hour(24 * day)


class Usage:
    """A database that folds, or its twin that does not; with a table of raw records that both are compared with."""

    def __init__(self, url: str) -> None:
        self.database = Database(Environment.read({"DATABASE_URL": url}))
        self.environment = Environment.read({"DATABASE_URL": url})
        self.connection = wrapper_of(url)
        self.raw: list[tuple] = []
        folded.begin(self.database)

    def clear(self) -> None:
        self.raw.clear()
        with self.database.transaction() as cursor:
            tables = (*(each.table for each in FOLDED), *(each.table for each in SOURCES), folded.FOLD_TABLE)
            for table in (*tables, "metering_statement"):
                self.database.run(cursor, f"DELETE FROM {table}")
        folded.begin(self.database)

    def close(self) -> None:
        self.database.close()
        self.connection.close()

    def take(self, rows: list[tuple], *, with_users: bool = True) -> None:
        """One batch of the stream; users have the names of topics, and counted what these did."""
        self.raw += rows
        with self.database.transaction() as cursor:
            of_topics = [row for row in rows if row[2] is not None]
            of_instances = [(*row[:2], *row[3:8], 0, 0, *row[8:]) for row in rows if row[2] is None]
            told = [(maxima.TOPICS, of_topics), (maxima.INSTANCES, of_instances)]
            told += [(maxima.USERS, of_topics)] if with_users else []
            for kind, some in told:
                for batch in batches(kind, some):
                    self.database.maxima_raise(cursor, batch, kind)

    @property
    def folded_to(self) -> str:
        with self.database.transaction() as cursor:
            return folded.horizon(self.database, cursor).folded_to

    def fold(self, until: str) -> bool:
        return folded.fold(self.database, since=self.folded_to, until=until)

    def sweep(self, gone: Gone = NOBODY, most: int = folded.SLICE) -> None:
        while folded.sweep(self.database, gone, most=most):
            pass

    def put_right(self) -> None:
        """What the reconciliation does with folded days, by its own SQL and writers, without Spark."""
        whole = Recomputed(self.raw)
        until = self.folded_to
        for number, table in enumerate(FOLDED):
            sums = whole.sums(table, until)
            list(reconcile_tables.folded_put(self.environment, number, [(*key, *used) for key, used in sums.items()]))

    def rows(self, table: str) -> int:
        with self.database.transaction() as cursor:
            self.database.run(cursor, f"SELECT COUNT(*) FROM {table}")
            return cursor.fetchone()[0]

    def answers(self, monkeypatch, bounds: list[datetime]) -> dict:
        """All that readers are told, by the product's own selectors."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selectors, "connection", self.connection)
            found: dict = {}
            for name in INSTANCES:
                about = {"instance": SimpleNamespace(pk=name), "start": FIRST, "end": END}
                found[name] = {
                    "hours": selectors.usage_hours(**about),
                    "whole": selectors.instance_hours(**about),
                    "total": selectors.usage_total(**about),
                    "parts": [
                        selectors.usage_total(instance=about["instance"], start=a, end=b) for a, b in pairwise(bounds)
                    ],
                    "topics": selectors.topics_used(**about),
                    "days": selectors.usage_by_topic(
                        instance=about["instance"], bounds=[FIRST + timedelta(days=each) for each in range(DAYS + 1)]
                    ),
                    "users": selectors.usage_by_user(
                        instance=about["instance"], bounds=[FIRST + timedelta(days=each) for each in range(DAYS + 1)]
                    ),
                    "by user": selectors.usage_by_user(instance=about["instance"], bounds=bounds),
                    "by topic": selectors.usage_by_topic(instance=about["instance"], bounds=bounds),
                    "of a topic": {
                        topic: sum(each.produced_bytes for each in selectors.topic_hours(**about, topic=topic))
                        for topic in TOPICS
                    },
                }
            return found


class Recomputed:
    """`usage_raw` in SQLite, and hours from it by the job's own SQL."""

    def __init__(self, rows: list[tuple]) -> None:
        self.connection = sqlite3.connect(":memory:")
        names = (*COUNTERS, *INSTANCE_COUNTERS)
        self.connection.execute(
            "CREATE TABLE usage_raw (kind, broker, instance, boot, topic, topic_uuid, booked_hour, user_name,"
            f" {', '.join(f'{name} INTEGER' for name in names)})"
        )
        self.connection.execute(f"CREATE TABLE caps (instance, boot, topic, {', '.join(COUNTERS)})")
        for instance, boot, topic, at, broker, *counters in (row[:8] for row in rows):
            of_topic, of_others = (*counters, 0, 0, 0, 0, 0), (0, 0, 0, *counters, 0, 0)
            told = [("instance", None, of_others)]
            if topic is not None:
                told = [("usage", None, of_topic), ("user", topic, of_others)]
            for kind, user, of in told:
                self.connection.execute(
                    f"INSERT INTO usage_raw VALUES ({', '.join('?' * 16)})",
                    (kind, broker, instance, boot, topic if user is None else None, "", at, user, *of),
                )

    def sums(self, table: folded.Folded, until: str) -> dict[tuple, list[int]]:
        about = {"start": hour(0), "end": until, "since": hour(0)}
        sql, named, at_hour, at_counters = {
            TOPIC_HOURS.source: (recompute.hours_sql("usage_raw", "caps"), "topic", 3, 6),
            INSTANCE_HOURS.source: (recompute.instance_hours_sql("usage_raw"), "", 2, 3),
            USER_DAYS.source: (recompute.user_hours_sql("usage_raw"), "user_name", 3, 4),
        }[table.source]
        found: dict[tuple, list[int]] = defaultdict(lambda: [0] * len(table.source.counters))
        for row in self.connection.execute(sql, about):
            names = {"instance": row[0], named: row[2]}
            at = row[at_hour]
            key = (*(names[name] for name in table.key), at if table.unit == "hour" else at[:10])
            found[key] = [a + b for a, b in zip(found[key], row[at_counters:], strict=True)]
        return found


@pytest.fixture
def usage(database_url):
    made = Usage(database_url)
    yield made
    made.close()


@pytest.fixture
def twin(tmp_path, django_db_blocker):
    url = f"sqlite:///{tmp_path / 'twin.sqlite3'}"
    with django_db_blocker.unblock():
        tables_make(url)
    made = Usage(url)
    yield made
    made.close()


@st.composite
def streams(draw: st.DrawFn) -> list[tuple]:
    """What brokers wrote, in order: each boot's counters only grow; some topics are idle for long; None: of the instance."""
    written: list[tuple] = []
    for boot in draw(st.lists(st.sampled_from(["b1", "b2.7", "b3"]), min_size=1, unique=True)):
        for instance in draw(st.lists(st.sampled_from(INSTANCES), min_size=1, unique=True)):
            for topic in draw(st.lists(st.sampled_from([*TOPICS, None]), min_size=1, unique=True)):
                at, counters = draw(st.integers(0, 30)), [0, 0, 0]
                for _ in range(draw(st.integers(1, 6))):
                    counters = [min(2**62, counter + draw(st.integers(0, 2**59))) for counter in counters]
                    written.append(record(instance, boot, topic, at, *counters, offset=len(written)))
                    at = min(24 * DAYS - 1, at + draw(st.integers(0, 40)))
    return written


def record(
    instance: str, boot: str, topic: str | None, at: int, produced: int, consumed: int = 0, stored: int = 0, *, offset: int = 0
) -> tuple:  # fmt: skip
    return (instance, boot, topic, hour(at), int(boot[1]), produced, consumed, stored, 0, offset, 0)


BOUNDS = st.lists(st.integers(0, 24 * DAYS), min_size=1, max_size=3, unique=True).map(
    lambda hours: [FIRST + timedelta(hours=each) for each in sorted({0, *hours, 24 * DAYS})]
)


@MANY
@given(data=st.data(), written=streams(), bounds=BOUNDS)
def test_whatever_is_folded_and_comes_late_after_it_every_answer_is_that_of_a_twin_that_never_folds(
    usage, twin, monkeypatch, data, written, bounds
):
    for each in (usage, twin):
        each.clear()
    cut = data.draw(st.integers(0, len(written)))
    batches = [written[:cut], written[cut:]]
    batches.append(data.draw(st.lists(st.sampled_from(written), max_size=12)))  # again
    batches.append(list(reversed(written)))  # and all of it, as after a checkpoint that was lost
    for batch in batches:
        batch = data.draw(st.permutations(batch)) if len(batch) < 10 else batch  # noqa: PLW2901
        for each in (usage, twin):
            each.take(list(batch))
        to = midnight(data.draw(st.integers(0, DAYS)))
        if to > usage.folded_to:
            assert usage.fold(to)
        if data.draw(st.booleans()):
            usage.sweep(most=data.draw(st.sampled_from([1, 7, 1000])))
        usage.put_right()
        expected, found = (each.answers(monkeypatch, bounds) for each in (twin, usage))
        for name in INSTANCES:
            exact = {key: value for key, value in expected[name].items() if key not in SHARED}
            assert {key: value for key, value in found[name].items() if key not in SHARED} == exact
            for total, part in zip(found[name]["parts"], found[name]["by topic"], strict=True):
                assert tuple(map(sum, zip((0, 0, 0), *part.values(), strict=True))) == total, (
                    "shares add up to the part"
                )
            assert found[name]["by user"] == found[name]["by topic"], "users that did the same have the same shares"
            assert all(value >= 0 for part in found[name]["by topic"] for used in part.values() for value in used)


@MANY
@given(written=streams(), day=st.integers(1, DAYS), again=st.randoms(use_true_random=False))
def test_what_is_read_again_after_a_fold_counts_nothing_twice_without_any_reconciliation(
    usage, twin, monkeypatch, written, day, again
):
    for each in (usage, twin):
        each.clear()
        each.take(written)
    usage.fold(midnight(day))
    usage.sweep(most=3)
    repeated = list(written)
    again.shuffle(repeated)
    for one in repeated:
        usage.take([one])
    usage.sweep(most=3)
    bounds = [FIRST, END]
    assert usage.answers(monkeypatch, bounds) == twin.answers(monkeypatch, bounds)


@MANY
@given(written=streams(), day=st.integers(1, DAYS))
def test_one_row_of_each_key_stays_before_the_horizon_and_all_from_it_on(usage, written, day):
    usage.clear()
    usage.take(written)
    usage.fold(midnight(day))
    usage.sweep()
    for source in SOURCES:
        columns = ", ".join((*source.owner, "hour"))
        with usage.database.transaction() as cursor:
            usage.database.run(cursor, f"SELECT {columns} FROM {source.table}")
            kept = [tuple(row) for row in cursor.fetchall()]
        keys = [(*row[:2], row[2], row[3]) for row in written if (row[2] is None) == (source is INSTANCE_HOURS.source)]
        keys = [(*key[:2], key[3]) if key[2] is None else key for key in keys]
        newest = {
            owner: max(key[-1] for key in keys if key[:-1] == owner and key[-1] < midnight(day))
            for owner in {key[:-1] for key in keys if key[-1] < midnight(day)}
        }
        wanted = {key for key in keys if key[-1] >= midnight(day) or newest.get(key[:-1]) == key[-1]}
        assert sorted(kept) == sorted(wanted)


def test_an_idle_topic_of_a_boot_that_lives_on_wakes_and_has_its_own_usage_only(usage, monkeypatch):
    usage.take([record(INSTANCES[0], "b1", "orders", 2, 100), record(INSTANCES[0], "b1", "orders", 5, 700)])
    usage.fold(midnight(2))
    usage.sweep()
    usage.fold(midnight(3))
    usage.sweep()
    usage.take([record(INSTANCES[0], "b1", "orders", 80, 705)])
    found = usage.answers(monkeypatch, [FIRST, END])[INSTANCES[0]]
    assert [(each.hour, each.produced_bytes) for each in found["hours"]] == [
        (hour(2), 100),
        (hour(5), 600),
        (hour(80), 5),
    ]


def test_a_late_record_of_a_folded_hour_is_seen_when_its_day_was_put_right(usage, twin, monkeypatch):
    for each in (usage, twin):
        each.take([record(INSTANCES[0], "b1", "orders", 2, 100), record(INSTANCES[0], "b1", "orders", 50, 900)])
    usage.fold(midnight(1))
    usage.sweep()
    for each in (usage, twin):
        each.take([record(INSTANCES[0], "b1", "orders", 4, 300), record(INSTANCES[1], "b2.7", "clicks", 3, 7)])
    before = usage.answers(monkeypatch, [FIRST, END])[INSTANCES[0]]
    assert [each.produced_bytes for each in before["hours"]] == [100, 600], "what is late is missing, and nothing else"
    usage.put_right()
    assert usage.answers(monkeypatch, [FIRST, END]) == twin.answers(monkeypatch, [FIRST, END])


class KilledError(Exception):
    """In place of SIGKILL: the transaction is lost with its connection."""


@pytest.mark.parametrize("step", range(1 + len(FOLDED)))
def test_killed_between_any_two_steps_of_a_fold_it_has_not_happened_and_happens_again(usage, monkeypatch, step):
    usage.take([record(INSTANCES[0], "b1", "orders", each, 100 * each) for each in range(60)])
    before = usage.answers(monkeypatch, [FIRST, END])
    run, seen = usage.database.run, []

    def dying(cursor, statement, values=()):
        done = run(cursor, statement, values)
        seen.append(statement)
        if sum(each.startswith(("INSERT", "UPDATE")) for each in seen) > step:
            raise KilledError
        return done

    usage.database.run = dying
    with pytest.raises(KilledError):
        folded.fold(usage.database, since="", until=midnight(1))
    usage.database.run = run
    assert usage.folded_to == ""
    assert usage.answers(monkeypatch, [FIRST, END]) == before
    assert usage.fold(midnight(1))
    assert usage.answers(monkeypatch, [FIRST, END]) == before


def test_killed_between_slices_the_deletion_goes_on_where_it_was(usage, monkeypatch):
    usage.take([record(INSTANCES[0], "b1", topic, each, 100 * each) for each in range(60) for topic in TOPICS])
    before = usage.answers(monkeypatch, [FIRST, END])
    usage.fold(midnight(2))
    assert folded.sweep(usage.database, NOBODY, most=50)
    left = usage.rows(TOPIC_HOURS.source.table)
    usage.database.close()
    looked_at = []
    run = usage.database.run
    usage.database.run = lambda cursor, statement, values=(): (
        looked_at.append(values) if statement.startswith(f"DELETE FROM {TOPIC_HOURS.source.table} ") else None,
        run(cursor, statement, values),
    )[1]
    usage.sweep(most=50)
    assert min(values[0] for values in looked_at) >= 50, "from where the slice before had ended"
    assert left > usage.rows(TOPIC_HOURS.source.table) == 3 * (60 - 48 + 1)
    assert usage.answers(monkeypatch, [FIRST, END]) == before
    assert not folded.sweep(usage.database, NOBODY), "nothing is left to do"


def test_of_two_that_fold_the_same_day_one_does(usage, database_url, monkeypatch):
    usage.take([record(INSTANCES[0], "b1", "orders", 2, 100)])
    other = Database(Environment.read({"DATABASE_URL": database_url}))
    assert folded.fold(other, since="", until=midnight(1))
    assert not folded.fold(usage.database, since="", until=midnight(1))
    assert not folded.fold(usage.database, since="", until=midnight(2)), "the horizon is elsewhere by now"
    assert usage.answers(monkeypatch, [FIRST, END])[INSTANCES[0]]["total"] == (100, 0, 0)
    other.close()


def test_of_two_that_fold_at_the_same_time_the_second_waits_for_the_first_and_finds_it_done(
    usage, database_url, monkeypatch
):
    usage.take([record(INSTANCES[0], "b1", "orders", 2, 100)])
    other, found = Database(Environment.read({"DATABASE_URL": database_url})), []

    def second():
        found.append(folded.fold(other, since="", until=midnight(1)))
        other.close()

    thread = threading.Thread(target=second)
    run = usage.database.run

    def slowly(cursor, statement, values=()):
        done = run(cursor, statement, values)
        if statement.startswith("UPDATE"):
            thread.start()
            thread.join(0.3)
            assert not found
        return done

    usage.database.run = slowly
    assert folded.fold(usage.database, since="", until=midnight(1))
    thread.join(20)
    assert found == [False]
    assert usage.answers(monkeypatch, [FIRST, END])[INSTANCES[0]]["total"] == (100, 0, 0)


def test_what_a_writer_holds_is_not_waited_for(usage, database_url):
    if database_url.startswith("sqlite"):
        pytest.skip("it has one writer")
    usage.take([record(INSTANCES[0], "b1", "orders", each, 100 * each) for each in range(1, 5)])
    usage.fold(midnight(1))
    writer = Database(Environment.read({"DATABASE_URL": database_url}))
    with writer.transaction() as cursor:
        writer.run(cursor, "UPDATE metering_usagemaximum SET broker = 7 WHERE hour = ?", [hour(1)])
        usage.sweep()
        assert usage.rows(TOPIC_HOURS.source.table) == 2
    writer.close()


def test_sums_beyond_63_bits_are_exact(usage, monkeypatch):
    rows = [record(INSTANCES[0], f"b{boot}", topic, 5, 1, 0, 2**63 - 1) for boot in range(1, 9) for topic in TOPICS]
    usage.take(rows, with_users=False)  # byte-seconds alone come so far
    usage.fold(midnight(1))
    usage.sweep()
    found = usage.answers(monkeypatch, [FIRST, FIRST + timedelta(hours=5), END])[INSTANCES[0]]
    assert found["total"] == (24, 0, 24 * (2**63 - 1))
    assert found["by topic"][1]["orders"] == (8, 0, 8 * (2**63 - 1))
    assert found["by topic"][0] == {}


def test_of_a_user_who_comes_and_goes_one_generation_stays(usage):
    rows = [record(INSTANCES[0], f"b1.{each}" if each else "b1", "alice", 3 * each, 10) for each in range(12)]
    others = [record(INSTANCES[0], "b1.1", "bob", 1, 10), record(INSTANCES[1], "b1.1", "alice", 1, 10)]
    others.append(record(INSTANCES[0], "b12", "alice", 1, 10))
    usage.take([*rows, *others])
    usage.fold(midnight(1))
    usage.sweep()
    with usage.database.transaction() as cursor:
        usage.database.run(
            cursor, f"SELECT instance, boot, user_name FROM {USER_DAYS.source.table} WHERE hour < ?", [midnight(1)]
        )
        kept = {tuple(row) for row in cursor.fetchall()}
    assert kept == {(INSTANCES[0], "b1.7", "alice"), *(row[:3] for row in others)}


def test_anchors_go_with_boots_that_a_later_one_has_told_and_that_nobody_names_any_more(usage):
    usage.take(
        [
            record(INSTANCES[0], "b1", "orders", 2, 100),  # told, and named again today by another topic
            record(INSTANCES[0], "b1.2", "clicks", 80, 5),
            record(INSTANCES[0], "b2.7", "orders", 2, 100),  # told
            record(INSTANCES[0], "b2.7", None, 2, 100),
            record(INSTANCES[0], "b3", "orders", 2, 100),  # away since then: it may tell more
        ]
    )
    with usage.database.transaction() as cursor:
        usage.database.statements_note(cursor, "t", [(1, hour(80), "b9", "b1,b2", 0, 0, 1)])
    usage.fold(midnight(3))
    gone = folded.boots_gone(usage.database, before=midnight(3), before_ms=1)
    assert gone.boots == ["b2"]
    usage.sweep(gone)
    assert usage.rows(TOPIC_HOURS.source.table) == 3
    assert usage.rows(INSTANCE_HOURS.source.table) == 0
    assert folded.boots_gone(usage.database, before=midnight(3), before_ms=0).boots == [], "raised lately"


def test_a_new_table_of_raw_records_begins_with_the_same_whether_key_rows_are_deleted_or_not(usage):
    usage.take([record(INSTANCES[0], "b1", "orders", 5, 100), record(INSTANCES[0], "b1", "orders", 2, 300)])
    usage.take([record(INSTANCES[0], "b1", "orders", 60, 310, 1)])
    known = list(usage.database.read(raw_table._KNOWN))
    usage.fold(midnight(1))
    usage.sweep()
    assert (
        list(usage.database.read(raw_table._KNOWN)) == known == [(INSTANCES[0], "b1", "orders", hour(60), 1, 310, 1, 0)]
    )


def test_topic_days_are_kept_by_day(usage):
    usage.take([record(INSTANCES[0], "b1", "orders", each, each) for each in (3, 20, 25)])
    usage.fold(midnight(2))
    with usage.database.transaction() as cursor:
        usage.database.run(cursor, f"SELECT day, produced_bytes FROM {TOPIC_DAYS.table} ORDER BY day")
        assert cursor.fetchall() == [("2026-05-01", 20), ("2026-05-02", 5)]
