"""The quota report on a real local Spark, from minutes in a database to its rows, beside what plain Python makes of them."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace

import pytest

from controlplane.env import Environment
from controlplane.history.resolutions import MINUTES
from controlplane.metering.pipeline import quota_tables, runs
from controlplane.metering.pipeline.jobs import quota_report
from controlplane.metering.pipeline.quota_days import AGAIN_DAYS, COLUMNS, Added, begins_at, can_be_made_again, row_of
from controlplane.metering.pipeline.tables import Database

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(240),
    # PySpark leaves the sockets that results come through to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
DAY = date(2026, 11, 21)
NOW = datetime(2026, 11, 22, 1, tzinfo=UTC)
ONE, TWO, NONE = "ins-aaaaaaaa", "ins-bbbbbbbb", "ins-cccccccc"


def minutes(seed: int) -> list[dict]:
    """Of the day, and of the minutes around it: two instances, of which one grows at noon; one without limits; with gaps."""
    dice = random.Random(seed)
    found = []
    for instance in (ONE, TWO, NONE):
        for at in range(begins_at(DAY) - 120, begins_at(DAY) + 86_400 + 120, 60):
            if dice.random() < 0.8:
                continue  # no sample came
            samples = dice.randint(1, 6)
            limit = None if instance == NONE else 1000 if at < begins_at(DAY) + 43_200 else 2000
            row = {"instance": instance, "at": at, "samples": samples, "minutes": 1, "storage_limit_bytes": 10**12}
            for place in ("produce", "consume"):
                row |= {
                    f"{place}_bytes_per_s_sum": dice.randint(0, 1200) * samples + dice.randint(0, samples - 1),
                    f"{place}_bytes_per_s_max": 0, f"{place}_limit_bytes_per_s": limit,
                    f"{place}_allocated_bytes_per_s": None, f"{place}_throttled_ms_max": 0,
                    f"{place}_throttled_ms": dice.choice([0, 0, 0, 700, 60_000]),
                }  # fmt: skip
            used = dice.randint(0, 2**49)
            row |= {
                "storage_used_bytes_sum": used,
                "storage_used_bytes_max": used,
                "connections_sum": 0,
                "connections_max": 0,
            }
            found.append(row)
    return found


def waits() -> list[dict]:
    """100 s of ONE's produce below its limit, 80 s of TWO's consume; a rule's of its own, and another day's."""
    rows = []
    for instance, direction, rule, at, waited in (
        (ONE, "produce", "", "2026-11-21T00:00:00.000Z", 60_000),
        (ONE, "produce", "", "2026-11-21T23:59:59.999Z", 40_000),
        (TWO, "consume", "", "2026-11-21T10:00:00.000Z", 80_000),
        (TWO, "produce", "topic/x", "2026-11-21T10:00:00.000Z", 80_000_000),
        (TWO, "produce", "", "2026-11-22T00:00:00.000Z", 80_000_000),
    ):
        rows.append(
            {
                "instance": instance,
                "direction": direction,
                "rule": rule,
                "epoch": 1,
                "started_at": at,
                "throttled_ms": waited,
                "under_limit_ms": waited,
                "over_1_s_percent": 0,
                "over_10_s_percent": 0,
                "over_60_s_percent": 0,
                "document": "{}",
            }
        )
    return rows


def reported(day: date, instance: str, resource: str, p95: int) -> dict:
    return dict(
        zip(COLUMNS, row_of(day, Added(instance, resource, 5000, 0, p95, 0, 0, 0, 1440, 0, 0, 0, ())), strict=True)
    )


def inserted(database: Database, table: str, rows: list[dict]) -> None:
    with database.transaction() as cursor:
        for row in rows:
            places = ", ".join("?" * len(row))
            database.run(cursor, f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", list(row.values()))


def smallest_of(values: list[int], percent: int) -> int:
    """The smallest that so many percent do not exceed."""
    return next(
        value for value in sorted(values) if 100 * sum(each <= value for each in values) >= percent * len(values)
    )


def expected(rows: list[dict], earlier: dict[tuple[str, str], list[tuple[date, int]]]) -> list[tuple]:
    uses = defaultdict(list)
    for row in rows:
        if not begins_at(DAY) <= row["at"] < begins_at(DAY) + 86_400:
            continue
        for resource in ("produce", "consume"):
            use = row[f"{resource}_bytes_per_s_sum"] // row["samples"]
            uses[row["instance"], resource].append(
                (use, row[f"{resource}_limit_bytes_per_s"], row[f"{resource}_throttled_ms"])
            )
        uses[row["instance"], "storage"].append(
            (row["storage_used_bytes_sum"] // row["samples"], row["storage_limit_bytes"], 0)
        )
    under = {(ONE, "produce"): 100_000, (TWO, "consume"): 80_000}
    made = []
    for (instance, resource), found in uses.items():
        flow = [use for use, _, _ in found]
        permille = [use * 1000 // limit for use, limit, _ in found if limit]
        throttled = [waited for _, _, waited in found]
        added = Added(
            instance, resource, found[-1][1], *(smallest_of(flow, percent) for percent in (50, 95, 99)), max(flow),
            smallest_of(permille, 95) if permille else None, len(found), sum(waited > 0 for waited in throttled),
            sum(throttled), None if resource == "storage" else under.get((instance, resource), 0),
            earlier.get((instance, resource), ()),
        )  # fmt: skip
        made.append(row_of(DAY, added))
    return sorted(made)


@pytest.fixture
def database(database_url):
    made = Database(Environment.read({"DATABASE_URL": database_url}))
    yield made
    made.close()


def rows_of(database: Database, table: str = quota_tables.REPORT, where: str = "1 = 1") -> list[tuple]:
    return sorted(database.read(f"SELECT {', '.join(COLUMNS)} FROM {table} WHERE {where}"))


def test_a_day_of_the_report_is_what_its_minutes_say_and_takes_the_place_of_what_was_there(
    spark, database, database_url
):
    rows = minutes(17)
    earlier = {
        (ONE, "produce"): [(DAY - timedelta(days=x), 1100 - 20 * x) for x in range(1, 20)],
        (TWO, "storage"): [(DAY - timedelta(days=x), 5) for x in range(1, 5)],
    }
    before = [reported(day, *key, p95) for key, points in earlier.items() for day, p95 in points]
    too_old = reported(DAY - timedelta(days=401), ONE, "produce", 1)
    wrong = reported(DAY, "ins-gone0000", "produce", 7)
    inserted(database, quota_tables.MINUTE_TABLE, rows)
    inserted(database, quota_tables.INTERVAL_TABLE, waits())
    inserted(database, quota_tables.REPORT, [*before, too_old, wrong])
    inserted(database, quota_tables.STAGED, [{"run": "died", **wrong}])
    environment = Environment.read({"DATABASE_URL": database_url})
    report = quota_tables.Report(environment, now_s=now_s())
    report.begin()
    report.close()
    assert rows_of(database, quota_tables.STAGED) == []

    for _ in range(2 if database_url.startswith("sqlite") else 1):  # Spark is the same, and slow
        assert quota_report.report(spark, environment, DAY, now=NOW) == 9
        assert rows_of(database, where="day = '2026-11-21'") == expected(rows, earlier)
        assert rows_of(database, where="day <> '2026-11-21'") == sorted(tuple(row.values()) for row in before)
        assert rows_of(database, quota_tables.STAGED) == []
    by_key = {row[:3]: dict(zip(COLUMNS, row, strict=True)) for row in rows_of(database)}
    assert by_key[ONE, "2026-11-21", "produce"]["guarantee"] == "missed"
    assert by_key[ONE, "2026-11-21", "produce"]["exhausted_on"] > "2026-11-21"
    assert by_key[NONE, "2026-11-21", "produce"]["limit_in_force"] is None


def now_s(now: datetime = NOW) -> int:
    return int(now.timestamp())


@pytest.fixture
def report(database_url):
    made = quota_tables.Report(Environment.read({"DATABASE_URL": database_url}), now_s=now_s())
    yield made
    made.close()


def test_what_another_run_has_taken_away_is_not_published(database, report):
    inserted(database, quota_tables.REPORT, [reported(DAY, ONE, "produce", 1)])
    inserted(database, quota_tables.STAGED, [{"run": "r", **reported(DAY, ONE, "produce", 2)}])
    with pytest.raises(quota_tables.StagingError, match="1 of 2 rows"):
        report.publish("r", DAY, 2)
    assert [row[5] for row in rows_of(database)] == [1]


def test_two_attempts_at_one_task_stage_its_rows_at_the_same_moment_each_in_its_own_order(database, database_url):
    """Spark promises no order: PostgreSQL gives one up of two that wait for each other."""
    environment = Environment.read({"DATABASE_URL": database_url})
    counted = dict.fromkeys(
        ("p50", "p95", "p99", "most", "used_permille", "minutes", "throttled_minutes", "throttled_ms"), 1
    )
    rows = [
        SimpleNamespace(
            instance=f"ins-{number:08}", resource="storage", limit=5, under_limit_ms=None, earlier=(), **counted
        )
        for number in range(1000)
    ]
    begin = threading.Barrier(2, timeout=30)

    def attempt(own_rows: list[SimpleNamespace]) -> None:
        for turn in range(5):
            begin.wait()
            assert list(quota_tables.stage(environment, f"run {turn}", DAY, waits_known=True, rows=own_rows)) == [1000]

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(attempt, some) for some in (rows, rows[::-1])]:
            done.result()
    assert len(rows_of(database, quota_tables.STAGED)) == 5000


def test_nothing_takes_the_place_of_nothing(database, report):
    """A day has minutes when it is made. Where they were removed meanwhile, what was reported stays."""
    inserted(database, quota_tables.REPORT, [reported(DAY, ONE, "produce", 1)])
    with pytest.raises(quota_tables.StagingError, match="no minute of 2026-11-21"):
        report.publish("r", DAY, 0)
    assert [row[5] for row in rows_of(database)] == [1]


def test_who_waited_below_the_limit_stays_as_it_was_reported_once_it_is_known_no_more(database, report):
    def row(instance: str, resource: str, p95: int, under_limit_ms: int | None, guarantee: str) -> dict:
        return reported(DAY, instance, resource, p95) | {"under_limit_ms": under_limit_ms, "guarantee": guarantee}

    other_day = DAY - timedelta(days=1)
    inserted(
        database,
        quota_tables.REPORT,
        [
            row(ONE, "produce", 1, 90_000_000, "missed"),
            row(ONE, "consume", 1, 90_000_000, "missed"),
            row(ONE, "storage", 1, None, ""),
            row(TWO, "produce", 1, None, ""),
            row(TWO, "consume", 1, 90_000_000, "missed") | {"day": other_day.isoformat()},
        ],
    )
    staged = [
        row(ONE, "produce", 2, None, ""),
        row(ONE, "consume", 2, 7, "kept"),  # it is known
        row(ONE, "storage", 2, None, ""),
        row(TWO, "produce", 2, None, ""),
        row(TWO, "consume", 2, None, ""),
    ]
    inserted(database, quota_tables.STAGED, [{"run": "r", **each} for each in staged])
    report.publish("r", DAY, len(staged))
    found = {(each[0], each[2]): (each[5], *each[12:14]) for each in rows_of(database, where="day = '2026-11-21'")}
    assert found == {
        (ONE, "produce"): (2, 90_000_000, "missed"),
        (ONE, "consume"): (2, 7, "kept"),
        (ONE, "storage"): (2, None, ""),
        (TWO, "produce"): (2, None, ""),
        (TWO, "consume"): (2, None, ""),
    }


def test_days_are_due_as_far_as_minutes_are_made_and_nothing_starts_spark_where_none_is(
    database, database_url, report, tmp_path, monkeypatch
):
    assert report.due() == []
    inserted(database, quota_tables.MINUTE_TABLE, minutes(1))  # they begin a moment before the day, and end behind it
    inserted(database, quota_tables.MADE_TABLE, [{"step_s": 60, "until": begins_at(DAY) + 86_400 + 299}])
    assert report.due() == [DAY - timedelta(days=1)]
    inserted(database, quota_tables.MADE_TABLE, [{"step_s": 3600, "until": begins_at(DAY) + 10**6}])
    with database.transaction() as cursor:
        database.run(cursor, f"UPDATE {quota_tables.MADE_TABLE} SET until = until + 1 WHERE step_s = 60")
    assert report.due() == [DAY - timedelta(days=1), DAY]
    inserted(database, quota_tables.REPORT, [reported(DAY, ONE, "produce", 1)])
    assert report.due() == [DAY - timedelta(days=1)], "a newer day, made by hand, hides no older one"
    assert report.done_to_ms() == 1000 * begins_at(DAY - timedelta(days=1))
    inserted(database, quota_tables.REPORT, [reported(DAY - timedelta(days=1), ONE, "produce", 1)])
    assert report.due() == []
    monkeypatch.setenv("SLUICE_STACK_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("DATABASE_URL", database_url)

    def main(*words: str) -> int:
        return quota_report.main(words, clock=NOW.timestamp)

    assert main() == quota_report.DONE
    assert main("--day", "2026-11-22") == quota_report.NOT_YET
    assert main("--run", "7") == quota_report.TAKEN  # there is no such run: another runner has it
    assert main("--day", "2026-11-07") == quota_report.GONE  # no longer: the last of the minutes may be gone
    assert main("--day", "2026-11-19") == quota_report.GONE  # nothing was sampled
    assert not (tmp_path / "none").exists()
    *rows, too_old, nothing = database.read(
        "SELECT what, state, row_count, done_to_ms, reason FROM metering_jobrun ORDER BY id"
    )
    assert [row[:4] for row in rows] == [
        ("", "succeeded", 0, 1000 * (begins_at(DAY) + 86_400)), ("2026-11-22", "failed", 0, None)
    ]  # fmt: skip
    assert too_old[4].startswith("2026-11-07 stays as it was reported: ")
    assert nothing[4] == "2026-11-19 cannot have a report: nothing was sampled"


def test_a_run_by_hand_beside_another_does_not_begin(database, database_url, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    with runs.recorded(Environment.read({"DATABASE_URL": database_url}), job=quota_report.JOB):
        assert quota_report.main([]) == quota_report.TAKEN
    assert list(database.read("SELECT state FROM metering_jobrun")) == [("succeeded",)]


def test_a_clock_that_was_ahead_has_made_minutes_that_may_come_again(database, report):
    inserted(database, quota_tables.MINUTE_TABLE, minutes(1))
    inserted(database, quota_tables.MADE_TABLE, [{"step_s": 60, "until": begins_at(DAY) + 10**7}])
    assert report.made_to() == now_s() - quota_tables.AGAIN_S
    assert report.due() == [DAY - timedelta(days=1), DAY]


@pytest.mark.parametrize("time_of_day", [timedelta(0), timedelta(hours=23, minutes=59, seconds=59)])
def test_days_that_can_be_made_again_have_all_of_their_minutes(time_of_day):
    now = datetime(2026, 11, 22, tzinfo=UTC) + time_of_day
    oldest = now.date() - timedelta(days=AGAIN_DAYS)
    assert can_be_made_again(oldest, now.date())
    assert not can_be_made_again(oldest - timedelta(days=1), now.date())
    assert MINUTES.oldest(now_s(now)) <= begins_at(oldest) - 3600  # and while a job of an hour runs


def test_who_waited_below_the_limit_is_not_known_of_a_day_whose_intervals_have_expired():
    assert quota_tables.waits_known(DAY, datetime(2026, 11, 28, tzinfo=UTC))
    assert not quota_tables.waits_known(DAY, datetime(2026, 11, 28, 0, 0, 1, tzinfo=UTC))
