"""Hours recomputed on a real local Spark, beside plain Python; their roll-ups, and what differs. Without Delta Lake."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from controlplane.metering.pipeline import reconcile_frames, transforms
from controlplane.metering.pipeline.folded import TOPIC_DAYS, TOPIC_HOURS, USER_DAYS
from quota.contracts.usage import COUNTERS, InstanceRecord, UsageRecord, UserRecord
from tests.pipeline.test_usage_job import SOURCE

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(240),
    # PySpark leaves the sockets that results come through to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]
ONE, TWO = "ins-aaaaaaaa", "ins-bbbbbbbb"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
START, END = "2026-05-02T00:00:00Z", "2026-05-03T00:00:00Z"


def told(seed: int) -> list[UsageRecord]:
    """Three days of boots that begin and end, some before the second day; byte-seconds come near to 63 bits."""
    dice, found = random.Random(seed), []
    counters: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 2**62])
    for boot, first, last in (("b1", 0, 20), ("b2", 10, 60), ("b3", 30, 40), ("b4", 50, 71), ("b5", 26, 47)):
        for number in range(first, last):
            hour = f"2026-05-{1 + number // 24:02}T{number % 24:02}:00:00Z"
            for instance in (ONE, TWO):
                for topic in ("orders", "clicks"):
                    if dice.random() < 0.4:
                        continue
                    key = (boot, instance, topic)
                    counters[key] = [value + dice.randint(0, 10**12) for value in counters[key]]
                    found.append(UsageRecord(int(boot[1]), boot, hour, instance, topic, *counters[key], "uuid", "c"))
    return found + dice.choices(found, k=30)


def expected(records: list[UsageRecord]) -> dict[tuple[str, ...], tuple[int, ...]]:
    """(instance, boot, topic, hour) -> what was used, of the second day."""
    largest: dict[tuple[str, ...], dict[str, tuple[int, ...]]] = defaultdict(dict)
    for record in records:
        counters = tuple(getattr(record, name) for name in COUNTERS)
        of_key = largest[record.instance, record.boot, record.topic]
        of_key[record.hour] = tuple(map(max, of_key.get(record.hour, counters), counters))
    found = {}
    for key, by_hour in largest.items():
        before = (0,) * len(COUNTERS)
        for hour in sorted(by_hour):
            if START <= hour < END:
                found[(*key, hour)] = tuple(now - then for now, then in zip(by_hour[hour], before, strict=True))
            before = tuple(map(max, before, by_hour[hour]))
    return found


@pytest.fixture
def raw(spark):
    """`usage_raw` in any order."""

    def make(records, *, seed: int = 1):
        rows = [
            (record.value(), 0, offset, datetime.fromisoformat(record.hour)) for offset, record in enumerate(records)
        ]
        random.Random(seed).shuffle(rows)
        parsed = transforms.parsed(spark.createDataFrame(rows, SOURCE))
        return transforms.raw_rows(parsed, "t1", NOW).localCheckpoint()  # as a table has them: they are parsed once

    return make


def recomputed(raw_, caps=()):
    records = reconcile_frames.of_hours(reconcile_frames.records(raw_, NOW), START, END)
    return reconcile_frames.hours(records, caps, START, END), records


def by_key(rows) -> dict[tuple[str, ...], tuple[int, ...]]:
    return {
        (row.instance, row.boot, row.topic, row.hour): tuple(row[name] for name in COUNTERS) for row in rows.collect()
    }


@pytest.mark.parametrize("seed", range(3))
def test_hours_are_what_the_records_say_in_whatever_order(raw, seed):
    records = told(seed)
    hours, matter = recomputed(raw(records, seed=seed))
    assert by_key(hours) == expected(records)
    boots = {row.boot for row in matter.select("boot").distinct().collect()}
    assert boots == {"b1", "b2", "b3", "b5"}, "from the beginning of the oldest boot that matters to the end of the day"


def test_caps_are_believed(raw):
    records = told(5)
    hours, _ = recomputed(raw(records), [(ONE, "b2", "orders", 10, None, None)])
    capped = {key: used for key, used in by_key(hours).items() if key[:3] == (ONE, "b2", "orders")}
    assert sum(used[0] for used in capped.values()) <= 10
    assert {key: used[1:] for key, used in capped.items()} == {
        key: used[1:] for key, used in expected(records).items() if key in capped
    }


def test_roll_ups_add_up_beyond_63_bits(raw):
    records = told(2)
    hours, _ = recomputed(raw(records))
    hourly = reconcile_frames.hourly(hours)
    daily = reconcile_frames.daily(hourly)
    rows = daily.collect()
    assert {(row.day, row.topic_uuid) for row in rows} == {("2026-05-02", "uuid")}
    sums = {(row.instance, row.topic): row.stored_byte_seconds for row in rows}
    wanted: dict[tuple[str, str], int] = defaultdict(int)
    for (instance, _, topic, _), used in expected(records).items():
        wanted[instance, topic] += used[2]
    assert sums == {key: Decimal(value) for key, value in wanted.items()}
    assert max(sums.values()) > 2**63
    assert hourly.count() == len({(key[0], key[2], key[3]) for key in expected(records)})


def test_what_is_counted_of_instances_is_rolled_up_likewise(raw):
    records = [
        InstanceRecord(1, boot, f"2026-05-02T{hour:02}:00:00Z", ONE, 10 * hour, hour, 0, 0, 0, "c")
        for boot in ("b1", "b2") for hour in (3, 5)
    ]  # fmt: skip
    records += [UsageRecord(1, "b1", "2026-05-02T03:00:00Z", ONE, "orders", 1, 1, 1, "uuid", "c")]
    _, matter = recomputed(raw(records))
    rolled = reconcile_frames.instances_hourly(reconcile_frames.instance_hours(matter, START, END), matter)
    assert {row.hour: int(row.wire_in_bytes) for row in rolled.collect()} == {
        "2026-05-02T03:00:00Z": 60, "2026-05-02T05:00:00Z": 40,
    }  # fmt: skip


def test_the_roll_up_has_nothing_of_the_hour_in_which_the_table_begins_within_a_boot(raw, spark):
    records = [
        InstanceRecord(1, boot, f"2026-05-02T{hour:02}:00:00Z", instance, 10 * hour, hour, 0, 0, 0, "c")
        for boot, instance in (("b1", ONE), ("b2", TWO)) for hour in (3, 5)
    ]  # fmt: skip
    known = transforms.known_rows(spark, [(ONE, "b1", "orders", "2026-05-02T01:00:00Z", 1, 9, 9, 9)], NOW)
    _, matter = recomputed(raw(records).unionByName(known))
    rolled = reconcile_frames.instances_hourly(reconcile_frames.instance_hours(matter, START, END), matter)
    assert {(row.instance, row.hour): int(row.wire_in_bytes) for row in rolled.collect()} == {
        (ONE, "2026-05-02T05:00:00Z"): 20, (TWO, "2026-05-02T03:00:00Z"): 30, (TWO, "2026-05-02T05:00:00Z"): 20,
    }  # fmt: skip


def test_users_are_counted_each_by_themselves(raw):
    records = [
        UserRecord(1, boot, f"2026-05-02T{hour:02}:00:00Z", ONE, user, 10 * hour, hour, 1, "c")
        for boot in ("b1", "b2.1") for user in ("alice", "") for hour in (3, 5)
    ]  # fmt: skip
    _, matter = recomputed(raw(records))
    found = reconcile_frames.folded(reconcile_frames.user_hours(matter, START, END), USER_DAYS).collect()
    assert {(row.user_name, row.day): (int(row.wire_in_bytes), int(row.wire_out_bytes), int(row.requests)) for row in found} == {
        ("alice", "2026-05-02"): (100, 10, 2), ("", "2026-05-02"): (100, 10, 2),
    }  # fmt: skip


def test_instances_are_left_out_of_which_a_boot_had_counted_before_the_table_begins(raw, spark):
    instances = [
        InstanceRecord(1, boot, "2026-05-02T03:00:00Z", instance, 10, 1, 0, 0, 0, "c")
        for boot, instance in (("b1", ONE), ("b2", TWO))
    ]
    users = [
        UserRecord(1, "b1.7", "2026-05-02T03:00:00Z", ONE, "alice", 5, 5, 5, "c"),
        UserRecord(1, "b2", "2026-05-02T03:00:00Z", TWO, "alice", 5, 5, 5, "c"),
    ]
    known = transforms.known_rows(spark, [(ONE, "b1.2", "orders", "2026-05-02T01:00:00Z", 1, 9, 9, 9)], NOW)
    _, matter = recomputed(raw([*instances, *users]).unionByName(known))
    for hours_ in (
        reconcile_frames.instance_hours(matter, START, END), reconcile_frames.user_hours(matter, START, END),
    ):  # fmt: skip
        assert [tuple(row) for row in reconcile_frames.without_beginning(hours_, matter).collect()] == [(ONE,)]


def test_maxima_to_be_put_back_are_of_whole_boots(raw):
    records = told(3)
    _, matter = recomputed(raw(records))
    found = reconcile_frames.maxima(matter, START).collect()
    largest: dict[tuple[str, ...], int] = defaultdict(int)
    for each in records:
        if each.boot in ("b2", "b3", "b5") and each.hour < END:
            key = (each.instance, each.boot, each.topic, each.hour)
            largest[key] = max(largest[key], each.produced_bytes)
    assert {(row.instance, row.boot, row.topic, row.hour): row.produced_bytes for row in found} == largest


class TestWhatDiffers:
    @pytest.fixture
    def hours(self, raw):
        records = told(4)
        made, _ = recomputed(raw(records))
        return made.persist(), expected(records)

    def differing(self, beside, against):
        rows = reconcile_frames.differing(beside, against).collect()
        return {(row.instance, row.hour, row.boot, row.topic, row.counter): (row.recomputed, row.known) for row in rows}

    def test_nothing_where_the_database_says_the_same(self, spark, hours):
        made, known = hours
        used = spark.createDataFrame([(*key, *counters) for key, counters in known.items()], reconcile_frames.USED)
        beside = reconcile_frames.against_database(made, used)
        assert (self.differing(beside, "database"), beside.count()) == ({}, len(known))

    def test_what_either_lacks_or_has_otherwise(self, spark, hours):
        made, known = hours
        lacks, other, *_ = sorted(known)
        rows = [(*key, *counters) for key, counters in known.items() if key != lacks]
        rows = [(*row[:4], row[4] + 5, *row[5:]) if row[:4] == other else row for row in rows]
        more = (ONE, "b9", "orders", "2026-05-02T01:00:00Z")
        used = spark.createDataFrame([*rows, (*more, 0, 3, 0)], reconcile_frames.USED)
        found = self.differing(reconcile_frames.against_database(made, used), "database")
        instance, boot, topic, hour = other
        produced = known[other][0]
        assert found.pop((instance, hour, boot, topic, "produced_bytes")) == (str(produced), str(produced + 5))
        assert found.pop((more[0], more[3], more[1], more[2], "consumed_bytes")) == ("0", "3")
        instance, boot, topic, hour = lacks
        wanted = {name: value for name, value in zip(COUNTERS, known[lacks], strict=True) if value}
        assert found == {(instance, hour, boot, topic, name): (str(value), "0") for name, value in wanted.items()}

    def test_invoices_are_compared_by_instance_and_hour_in_months_that_have_one(self, spark, hours):
        made, known = hours
        sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for (instance, _, _, hour), counters in known.items():
            if instance == ONE:
                sums[hour] = [a + b for a, b in zip(sums[hour], counters, strict=True)]
        hour = min(sums)
        sums[hour][1] -= 4
        # Byte-seconds of an instance's hour fit into a long as the job reads them; here they would not, and are left out.
        small = made.withColumn("stored_byte_seconds", made.stored_byte_seconds * 0)
        rows = [(ONE, "2026-05", None, 0, 0, 0), *((ONE, "2026-05", at, p, c, 0) for at, (p, c, _) in sums.items())]
        billed = spark.createDataFrame(rows, reconcile_frames.BILLED)
        beside = reconcile_frames.against_invoices(small, billed)
        assert self.differing(beside, "invoices") == {
            (ONE, hour, "", "", "consumed_bytes"): (str(sums[hour][1] + 4), str(sums[hour][1]))
        }
        assert beside.count() == len(sums), "the other instance was not invoiced"

    def test_a_month_that_was_invoiced_with_nothing_in_it_is_compared_too(self, spark, hours):
        made, known = hours
        billed = spark.createDataFrame([(TWO, "2026-05", None, 0, 0, 0)], reconcile_frames.BILLED)
        found = self.differing(reconcile_frames.against_invoices(made, billed), "invoices")
        assert {key[0] for key in found} == {TWO}
        assert {known_ for _, known_ in found.values()} == {"0"}
        assert {key[1] for key in found} == {key[3] for key, used in known.items() if key[0] == TWO and any(used)}


class TestFoldedDays:
    """Sums of the second day as the database should have them, beside what it has."""

    @pytest.fixture
    def recomputed(self, spark):
        rows = [
            (ONE, "b1", "orders", f"{START[:11]}05:00:00Z", 5, 1, 2**62),
            (ONE, "b2", "orders", f"{START[:11]}05:00:00Z", 7, 1, 2**62),
            (ONE, "b1", "clicks", f"{START[:11]}09:00:00Z", 0, 0, 2**62),
            (TWO, "b1", "orders", f"{START[:11]}05:00:00Z", 3, 0, 0),
        ]
        columns = "instance string, boot string, topic string, hour string, produced_bytes long, consumed_bytes long"
        return spark.createDataFrame(rows, f"{columns}, stored_byte_seconds long")

    def known(self, spark, table, *rows):
        read = [(*key, *map(Decimal, used)) for key, used in rows]
        return spark.createDataFrame(read, reconcile_frames.folded_schema(table))

    def test_sums_are_by_hour_and_by_topic_and_day_beyond_63_bits(self, recomputed):
        hours = reconcile_frames.folded(recomputed, TOPIC_HOURS).collect()
        assert sorted(map(tuple, hours)) == [
            (ONE, f"{START[:11]}05:00:00Z", 12, 2, 2**63), (ONE, f"{START[:11]}09:00:00Z", 0, 0, 2**62),
            (TWO, f"{START[:11]}05:00:00Z", 3, 0, 0),
        ]  # fmt: skip
        days = reconcile_frames.folded(recomputed, TOPIC_DAYS).collect()
        assert sorted(map(tuple, days)) == [
            (ONE, "clicks", START[:10], 0, 0, 2**62), (ONE, "orders", START[:10], 12, 2, 2**63),
            (TWO, "orders", START[:10], 3, 0, 0),
        ]  # fmt: skip

    def test_rows_that_are_wrong_or_not_there_are_told_as_they_should_be(self, spark, recomputed):
        sums = reconcile_frames.folded(recomputed, TOPIC_DAYS)
        known = self.known(
            spark, TOPIC_DAYS,
            ((ONE, "orders", START[:10]), (12, 2, 2**63)), ((TWO, "orders", START[:10]), (4, 0, 0)),
            ((TWO, "views", START[:10]), (9, 0, 0)),
        )  # fmt: skip
        assert sorted(map(tuple, reconcile_frames.wrong(sums, known, TOPIC_DAYS).collect())) == [
            (ONE, "clicks", START[:10], 0, 0, 2**62), (TWO, "orders", START[:10], 3, 0, 0),
            (TWO, "views", START[:10], 0, 0, 0),
        ]  # fmt: skip
        beside = reconcile_frames.against_folded(sums, known, TOPIC_DAYS)
        found = reconcile_frames.differing(beside, "database").collect()
        assert sorted((each.instance, each.topic, each.hour, each.recomputed, each.known) for each in found) == [
            (ONE, "clicks", START, str(2**62), "0"), (TWO, "orders", START, "3", "4"), (TWO, "views", START, "0", "9"),
        ]  # fmt: skip

    def test_an_instance_of_which_the_records_say_less_in_all_is_told(self, spark, recomputed):
        sums = reconcile_frames.folded(recomputed, TOPIC_HOURS)
        moved = ((ONE, f"{START[:11]}05:00:00Z"), (2, 2, 0)), ((ONE, f"{START[:11]}06:00:00Z"), (10, 0, 2**63))
        less = ((TWO, f"{START[:11]}07:00:00Z"), (3, 1, 0))
        assert reconcile_frames.fallen(sums, self.known(spark, TOPIC_HOURS, *moved, less), TOPIC_HOURS) == [TWO]
        gone = (("ins-cccccccc", f"{START[:11]}07:00:00Z"), (1, 0, 0))
        assert reconcile_frames.fallen(sums, self.known(spark, TOPIC_HOURS, *moved, gone), TOPIC_HOURS) == [
            "ins-cccccccc"
        ]

    def test_what_is_missing_of_one_hour_does_not_hide_behind_what_came_late_for_another(self, spark, recomputed):
        sums = reconcile_frames.folded(recomputed, TOPIC_HOURS)
        hidden = ((ONE, f"{START[:11]}05:00:00Z"), (12, 2, 2**63 + 1))
        assert reconcile_frames.fallen(sums, self.known(spark, TOPIC_HOURS, hidden), TOPIC_HOURS) == [ONE]
        days = reconcile_frames.folded(recomputed, TOPIC_DAYS)
        lost = ((ONE, "orders", START[:10]), (1, 1, 2**63 + 2**62 + 1))
        assert reconcile_frames.fallen(days, self.known(spark, TOPIC_DAYS, lost), TOPIC_DAYS) == [ONE]
