"""The reconciliation's rows, on SQLite and PostgreSQL: what is due, what executors read, what is written and put back."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline import raw_table, recompute, reconcile_tables, runs, session
from controlplane.metering.pipeline.comparable import Range
from controlplane.metering.pipeline.jobs import reconcile
from controlplane.metering.pipeline.jobs.reconcile import _hour
from controlplane.metering.pipeline.reconcile_tables import KEPT_MS, Compared, Found, Reconciled
from controlplane.metering.pipeline.tables import Database
from quota.contracts.usage import COUNTERS, INSTANCE_COUNTERS

pytestmark = pytest.mark.integration
START, END = "2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z"
ONE, TWO = "ins-aaaaaaaa", "ins-bbbbbbbb"
AT_MS = 1_800_000_000_000


@pytest.fixture
def environment(database_url):
    return Environment.read({"DATABASE_URL": database_url})


@pytest.fixture
def database(environment):
    made = Database(environment)
    with made.transaction() as cursor:  # what the job reads of an invoice; its own app's table has much more
        made.run(cursor, "CREATE TABLE billing_invoice (instance_id VARCHAR(32), month VARCHAR(7), inputs JSONB)")
        made.run(cursor, "CREATE TABLE instances_instance (id VARCHAR(32), cluster_id BIGINT)")
    yield made
    made.close()


@pytest.fixture
def reconciled(environment, database):
    made = Reconciled(environment)
    yield made
    made.close()


def row(instance: str, hour: str, produced: int, boot: str = "b1") -> tuple:
    return (instance, boot, "orders", f"2026-05-01T{hour}:00:00Z", 1, produced, 7, 2**62, 3, 100)


def raised(database, *rows):
    with database.transaction() as cursor:
        database.maxima_raise(cursor, [(*each, 0) for each in rows])


def invoiced(database, instance: str, month: str, used: list, *late: dict):
    with database.transaction() as cursor:
        inputs = json.dumps({"version": 2, "used": used, "late": list(late)})
        database.run(cursor, "INSERT INTO billing_invoice VALUES (?, ?, ?)", [instance, month, inputs])


def read_to(database, moment: datetime, cluster: str = "default"):
    with database.transaction() as cursor:
        database.run(cursor, "DELETE FROM metering_progress WHERE cluster = ?", [cluster])
        database.run(
            cursor,
            "INSERT INTO metering_progress (cluster, partition, topic_id, next_offset, end_offset, looked_at_ms, complete_to_ms)"
            " VALUES (?, 0, 't', 1, 1, 0, ?)",
            [cluster, int(moment.timestamp() * 1000)],
        )


def asked(database, statement: str, **about: str) -> list[tuple]:
    names = re.findall(r":(\w+)", statement)
    return sorted(database.read(re.sub(r":\w+", "?", statement), [about[name] for name in names]))


def test_the_sql_that_recomputes_hours_runs_on_either_database(database):
    counters = ", ".join(f"{name} BIGINT" for name in (*COUNTERS, *INSTANCE_COUNTERS))
    with database.transaction() as cursor:
        texts = ", ".join(
            f"{name} VARCHAR(64)" for name in ("kind", "instance", "boot", "topic", "topic_uuid", "booked_hour")
        )
        database.run(cursor, f"CREATE TABLE usage_raw ({texts}, broker INTEGER, {counters})")
        of_counters = ", ".join(f"{name} BIGINT" for name in COUNTERS)
        database.run(
            cursor, f"CREATE TABLE caps (instance VARCHAR(64), boot VARCHAR(64), topic VARCHAR(64), {of_counters})"
        )
        columns = f"kind, instance, boot, topic, topic_uuid, booked_hour, broker, {', '.join(COUNTERS)}"
        database.run_many(
            cursor,
            f"INSERT INTO usage_raw ({columns}) VALUES ('usage', ?, 'b1', 'orders', ?, ?, 1, ?, 0, ?)",
            [
                (ONE, "uuid", "2026-04-30T23:00:00Z", 5, 0),
                (ONE, None, "2026-05-01T07:00:00Z", 7, 2**62),
                (ONE, "uuid", "2026-05-01T07:00:00Z", 6, 1),
                (ONE, "uuid", "2026-05-01T08:00:00Z", 19, 2**62),
                (TWO, "other", "2026-05-01T08:00:00Z", 1, 0),
            ],
        )
        database.run(cursor, "INSERT INTO caps VALUES (?, 'b1', 'orders', 10, NULL, NULL)", [ONE])
        columns = f"kind, instance, boot, booked_hour, {', '.join(INSTANCE_COUNTERS)}"
        database.run_many(
            cursor,
            f"INSERT INTO usage_raw ({columns}) VALUES ('instance', ?, 'b1', ?, ?, 0, 0, 0, 0)",
            [(ONE, "2026-05-01T07:00:00Z", 30), (ONE, "2026-05-01T09:00:00Z", 35)],
        )
    about = {"start": START, "end": END}
    assert asked(database, recompute.since_sql("usage_raw"), **about) == [("2026-04-30T23:00:00Z",)]
    about["since"] = "2026-04-30T23:00:00Z"
    assert asked(database, recompute.hours_sql("usage_raw", "caps"), **about) == [
        (ONE, "b1", "orders", "2026-05-01T07:00:00Z", 1, "uuid", 2, 0, 2**62),
        (ONE, "b1", "orders", "2026-05-01T08:00:00Z", 1, "uuid", 3, 0, 0),
        (TWO, "b1", "orders", "2026-05-01T08:00:00Z", 1, "other", 1, 0, 0),
    ]
    assert asked(database, recompute.instance_hours_sql("usage_raw"), **about) == [
        (ONE, "b1", "2026-05-01T07:00:00Z", 30, 0, 0, 0, 0),
        (ONE, "b1", "2026-05-01T09:00:00Z", 5, 0, 0, 0, 0),
    ]


def test_executors_read_hours_as_differences_within_the_range(environment, database):
    raised(database, row(ONE, "09", 100), row(ONE, "11", 150), row(TWO, "09", 9))
    found = list(reconcile_tables.used_read(environment, "2026-05-01T10:00:00Z", END, ONE))
    assert found == [(ONE, "b1", "orders", "2026-05-01T11:00:00Z", 50, 0, 0)]


def test_executors_read_what_was_billed_and_that_a_month_was(environment, database):
    eleven = "2026-05-01T11:00:00Z"
    late = {"month": "2026-05", "by_hour": True, "changed": [[eleven, 1, 0, -2]]}
    invoiced(database, ONE, "2026-05", [[eleven, 5, 6, 7], ["2026-05-09T11:00:00Z", 1, 1, 1]])
    invoiced(database, ONE, "2026-06", [], late)
    invoiced(database, TWO, "2026-05", [[eleven, 8, 8, 8]])
    found = list(reconcile_tables.billed_read(environment, START, END, ONE))  # in the order of months and hours
    assert found == [(ONE, "2026-05", None, 0, 0, 0), (ONE, "2026-05", eleven, 6, 6, 5)]


def test_instances_are_those_that_used_anything_or_were_billed(database, reconciled):
    raised(database, row(ONE, "09", 100))
    invoiced(database, TWO, "2026-05", [])
    invoiced(database, "ins-cccccccc", "2026-07", [])
    assert reconciled.instances(START, END) == [ONE, TWO]


def test_what_is_put_back_is_what_the_stream_would_have_put_there(environment, database):
    rows = [row(ONE, f"{hour:02}", 100 * hour) for hour in (9, 10, 12)] + [row(TWO, "09", 5)]
    assert sum(reconcile_tables.maxima_raise(environment, AT_MS, rows)) == 4
    found = sorted(reconcile_tables.used_read(environment, START, END, ONE))
    assert [each[4] for each in found] == [900, 100, 200]
    assert sum(reconcile_tables.maxima_raise(environment, AT_MS, reversed(rows))) == 4
    assert sorted(reconcile_tables.used_read(environment, START, END, ONE)) == found


FOUND = Found("database", ONE, "2026-05-01T09:00:00Z", "b1", "orders", "produced_bytes", str(10**25), "5")


def test_what_differs_is_kept_with_the_run_and_goes_with_it(database, reconciled):
    reconciled.note(Compared(START, END, 24, 1, 0, [FOUND]), AT_MS)
    assert list(database.read("SELECT against, recomputed, known FROM metering_difference")) == [
        ("database", str(10**25), "5")
    ]
    read_to_ms = int(datetime(2026, 5, 2, 0, 10, tzinfo=UTC).timestamp() * 1000)
    assert reconciled.compared_to_ms("default") == read_to_ms, "what came later may not have been in the table yet"
    reconciled.note(Compared(START, END, 24, 0, 3), AT_MS + KEPT_MS + 1)
    assert list(database.read("SELECT different, raised FROM metering_reconciliation")) == [(0, 3)]
    assert list(database.read("SELECT known FROM metering_difference")) == []


class TestDue:
    def test_nothing_is_before_the_stream_has_read_a_day_to_its_end(self, database, reconciled):
        assert (reconciled.days_due(), reconciled.done_to_ms()) == ([], None)
        read_to(database, datetime(2026, 5, 2, 0, 9, tzinfo=UTC))
        assert reconciled.last_day() == date(2026, 4, 30)

    def test_the_first_time_it_is_the_last_day(self, database, reconciled):
        read_to(database, datetime(2026, 5, 2, 0, 40, tzinfo=UTC))
        assert reconciled.days_due() == [date(2026, 5, 1)]
        assert reconciled.done_to_ms() == int(datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1000)

    def test_then_it_is_whatever_no_run_has_compared_whole(self, database, reconciled):
        reconciled.note(Compared(START, END, 1, 0, 0), AT_MS)
        reconciled.note(Compared("2026-05-03T00:00:00Z", "2026-05-03T12:00:00Z", 1, 0, 0), AT_MS)
        reconciled.note(Compared("2026-05-04T00:00:00Z", "2026-05-06T00:00:00Z", 1, 0, 0), AT_MS)
        read_to(database, datetime(2026, 5, 7, 0, 40, tzinfo=UTC))
        assert reconciled.days_due() == [date(2026, 5, day) for day in (2, 3, 6)]
        assert reconciled.done_to_ms() == int(datetime(2026, 5, 2, tzinfo=UTC).timestamp() * 1000)

    def test_it_looks_back_two_weeks(self, database, reconciled):
        reconciled.note(Compared("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", 1, 0, 0), AT_MS)
        read_to(database, datetime(2026, 5, 31, 0, 40, tzinfo=UTC))
        due = reconciled.days_due()
        assert (due[0], due[-1], len(due)) == (date(2026, 5, 17), date(2026, 5, 30), 14)

    def test_when_all_is_done_it_is_done_to_the_last_midnight(self, database, reconciled):
        reconciled.note(Compared(START, END, 1, 0, 0), AT_MS)
        read_to(database, datetime(2026, 5, 2, 13, tzinfo=UTC))
        assert reconciled.days_due() == []
        assert reconciled.done_to_ms() == int(datetime(2026, 5, 2, tzinfo=UTC).timestamp() * 1000)


class TestSeveralClusters:
    def test_a_day_is_due_when_the_stream_of_each_has_read_it(self, database, reconciled):
        read_to(database, datetime(2026, 5, 4, 0, 30, tzinfo=UTC))
        read_to(database, datetime(2026, 5, 2, 0, 30, tzinfo=UTC), "second")
        assert reconciled.clusters() == ["default", "second"]
        assert reconciled.last_day() == date(2026, 5, 1)

    def test_one_that_is_retired_is_not_waited_for_and_its_records_stay(self, database, reconciled):
        with database.transaction() as cursor:
            registered = "INSERT INTO clusters_physicalcluster (name, state, capacity) VALUES ('second', 'retired', 10)"
            database.run(cursor, registered)
        read_to(database, datetime(2026, 5, 4, 0, 30, tzinfo=UTC))
        read_to(database, datetime(2026, 5, 2, 0, 30, tzinfo=UTC), "second")
        assert reconciled.clusters() == ["default", "second"]
        assert reconciled.last_day() == date(2026, 5, 3)


def test_hours_are_named_as_records_write_them():
    assert [_hour(text) for text in ("2026-05-01", "2026-05-01T07", "2026-05-01T07:00+02:00")] == [
        "2026-05-01T00:00:00Z", "2026-05-01T07:00:00Z", "2026-05-01T05:00:00Z",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="hour"):
        _hour("2026-05-01T07:30")


def test_a_range_has_the_days_of_which_it_has_every_hour():
    assert Range(START, "2026-05-03T00:00:00Z").days == ["2026-05-01", "2026-05-02"]
    assert Range(START, "2026-05-02T01:00:00Z").days == []


def second_cluster_of(database, *instances: str, state: str = "open"):
    """A cluster called second, whose stream has read something, with these instances."""
    with database.transaction() as cursor:
        inserted = "INSERT INTO clusters_physicalcluster (name, state, capacity) VALUES ('second', ?, 10) RETURNING id"
        database.run(cursor, inserted, [state])
        (number,) = cursor.fetchone()
        rows = [(each, number) for each in instances]
        database.run_many(cursor, "INSERT INTO instances_instance (id, cluster_id) VALUES (?, ?)", rows)
    read_to(database, datetime(2026, 5, 20, tzinfo=UTC), "second")


def test_usage_and_instances_are_known_by_cluster(database, reconciled):
    second_cluster_of(database, TWO, state="retired")
    raised(database, row(ONE, "07", 5), row(TWO, "09", 5))
    assert reconciled.used("second", Range("2026-05-01T09:00:00Z", "2026-05-01T10:00:00Z"))
    assert not reconciled.used("second", Range("2026-05-01T00:00:00Z", "2026-05-01T09:00:00Z"))
    assert not reconciled.used("default", Range(START, END))
    assert reconciled.instances_on(["default", "second"]) == [TWO]
    assert reconciled.instances_on([]) == []
    assert reconciled.retired() == ["second"]


class Job:
    """`work()` without Spark. `tables`: from which hour on each cluster's is there; `made`: what was compared, and of whom."""

    NOW = datetime(2026, 5, 20, 0, 40, tzinfo=UTC)

    def __init__(self, monkeypatch, environment) -> None:
        self.tables: dict[str, str | None] = {"default": "2026-04-02T03:00:00Z", "second": "2026-04-02T03:00:00Z"}
        self.made: list[tuple[str, str, tuple[str, ...]]] = []
        self.late: dict[str, date] = {}
        self._settings = SimpleNamespace(lake="", environment=environment)

        def table(_spark, _lake, _environment, cluster):
            return SimpleNamespace(begins=lambda: self.tables[cluster])

        def late_from(_spark, _settings, _since_ms, before, clusters):
            (cluster,) = clusters
            return self.late.get(cluster) if self.late.get(cluster, before) < before else None

        monkeypatch.setattr(raw_table, "RawTable", table)
        monkeypatch.setattr(reconcile, "late_from", late_from)
        monkeypatch.setattr(reconcile, "reconcile", self._reconcile)
        monkeypatch.setattr(reconcile, "_tidy", lambda *_: None)
        monkeypatch.setattr(session, "open_batch_session", lambda *_, **__: None)
        monkeypatch.setattr(session, "close_session", lambda _: None)

    def _reconcile(self, _spark, _settings, part, **_):
        self.made.append((part.hours.start[5:13], part.hours.end[5:13], part.read))
        return Compared(part.hours.start, part.hours.end, 24, 0, 0, (), part.gone, part.begins_later)

    def __call__(self, *asked: Range) -> date:
        """Up to which day it is done."""
        self.made.clear()
        run = runs.Current(0)
        self.done = reconcile.work(self._settings, asked, run, raises=False, now=self.NOW)
        return datetime.fromtimestamp((run.done_to_ms or 0) / 1000, UTC).date()


@pytest.fixture
def job(monkeypatch, environment, database, reconciled) -> Job:
    """All days before the 18th are compared, the 18th and 19th are due; `second` has TWO, which has usage on the 18th."""
    read_to(database, datetime(2026, 5, 20, 0, 30, tzinfo=UTC))
    second_cluster_of(database, TWO)
    read_to(database, datetime(2026, 5, 20, 0, 30, tzinfo=UTC), "second")
    used_on(database, 18)
    reconciled.note(Compared("2026-05-01T00:00:00Z", "2026-05-18T00:00:00Z", 1, 0, 0), AT_MS)
    return Job(monkeypatch, environment)


def used_on(database, day: int):
    raised(database, (TWO, "b1", "orders", f"2026-05-{day:02}T07:00:00Z", 1, 5, 7, 9, 3, 100))


def noted(database) -> list[tuple]:
    """After the first: hours, clusters that were gone, clusters that begin later."""
    rows = database.read("SELECT start_hour, end_hour, gone, begins_later FROM metering_reconciliation ORDER BY id")
    return [
        (start[5:13], end[5:13], *map(reconcile_tables._names, names)) for start, end, *names in list(rows)[1:]
    ]  # fmt: skip


ALL = ("default", "second")


def test_a_cluster_without_a_table_is_left_out_and_named_and_the_day_is_compared_again_when_it_is_back(job, database):
    job.tables["second"] = None
    assert job() == date(2026, 5, 18)
    assert job.made == [("05-18T00", "05-20T00", ("default",))]
    assert noted(database) == [("05-18T00", "05-20T00", ("second",), ())]
    assert job() == date(2026, 5, 18), "the 18th stays due; on the 19th it has no usage"
    assert job.made == [("05-18T00", "05-19T00", ("default",))]
    job.tables["second"] = "2026-04-02T03:00:00Z"
    assert job() == date(2026, 5, 20)
    assert job.made == [("05-18T00", "05-19T00", ALL)]
    assert noted(database)[-1] == ("05-18T00", "05-19T00", (), ())
    assert (job(), job.made) == (date(2026, 5, 20), [])


def test_one_that_comes_back_with_a_new_table_lacks_the_day_for_good(job, database):
    job.tables["second"] = None
    job()
    job.tables["second"] = "2026-05-18T20:00:00Z"
    assert job() == date(2026, 5, 20)
    assert job.made == [("05-18T00", "05-19T00", ("default",))]
    assert noted(database)[-1] == ("05-18T00", "05-19T00", (), ("second",))


def test_a_retired_cluster_whose_table_is_gone_holds_up_nothing(job, database):
    with database.transaction() as cursor:
        database.run(cursor, "UPDATE clusters_physicalcluster SET state = 'retired' WHERE name = 'second'")
        database.run(cursor, "DELETE FROM metering_usagemaximum")
    job.tables["second"] = None
    assert job() == date(2026, 5, 20)
    assert noted(database) == [("05-18T00", "05-20T00", (), ())]


def test_where_a_table_begins_later_each_day_is_compared_of_all_that_can_be(job, database):
    used_on(database, 19)
    job.tables["second"] = "2026-05-18T20:00:00Z"
    assert job() == date(2026, 5, 20)
    assert job.made == [("05-18T00", "05-19T00", ("default",)), ("05-19T00", "05-20T00", ALL)]
    assert noted(database) == [("05-18T00", "05-19T00", (), ("second",)), ("05-19T00", "05-20T00", (), ())]


def test_before_all_tables_a_day_is_done_with_nothing_compared(job, database):
    job.tables = dict.fromkeys(ALL, "2026-05-18T20:00:00Z")
    assert job() == date(2026, 5, 20)
    assert job.made == [("05-19T00", "05-20T00", ALL)]
    assert noted(database) == [("05-18T00", "05-19T00", (), ALL), ("05-19T00", "05-20T00", (), ())]


def test_without_any_table_nothing_is_compared_and_days_with_usage_stay_due(job, database):
    job.tables = dict.fromkeys(ALL)
    assert job() == date(2026, 5, 18)
    assert job.made == []
    assert noted(database) == [(f"05-{day}T00", f"05-{day + 1}T00", ALL, ()) for day in (18, 19)]
    job.tables = dict.fromkeys(ALL, "2026-04-02T03:00:00Z")
    assert job() == date(2026, 5, 20)
    assert job.made == [("05-18T00", "05-19T00", ALL)]


def test_late_usage_of_one_cluster_has_its_days_compared_again(job):
    job.late = {"second": date(2026, 5, 9)}
    job()
    assert job.made == [("05-09T00", "05-20T00", ALL)]


class TestAsked:
    MAY = Range("2026-05-01T00:00:00Z", "2026-05-11T00:00:00Z")

    def test_a_range_is_cut_to_where_the_table_begins_and_that_is_said(self, job, database, caplog):
        job.tables = {"default": "2026-05-04T05:00:00Z", "second": "2026-05-04T05:00:00Z"}
        job(self.MAY)
        assert job.made == [("05-05T00", "05-11T00", ALL)]
        assert noted(database) == [("05-05T00", "05-11T00", (), ())]
        said = (
            "2026-05-01T00:00:00Z to 2026-05-05T00:00:00Z: left out, since usage_raw begins with 2026-05-04T05:00:00Z"
        )
        assert said in caplog.text
        assert reconcile._status(job.done) == reconcile.NOT_ALL

    def test_nothing_is_done_where_one_of_the_ranges_cannot_be_compared_at_all(self, job):
        job.tables = {"default": "2026-05-12T05:00:00Z", "second": None}
        with pytest.raises(
            reconcile.NoTableError, match="usage_raw-second is not there, usage_raw begins with 2026-05-12T05"
        ):
            job(Range("2026-05-13T00:00:00Z", "2026-05-14T00:00:00Z"), self.MAY)
        assert job.made == []

    def test_a_cluster_that_is_gone_is_named(self, job, database):
        job.tables["second"] = None
        job(self.MAY)
        assert noted(database) == [("05-01T00", "05-11T00", ("second",), ())]
        assert reconcile._status(job.done) == reconcile.NOT_ALL
        job.tables["second"] = "2026-04-02T03:00:00Z"
        job(self.MAY)
        assert reconcile._status(job.done) == reconcile.DONE
