"""What operators have capped stays capped, whatever the stream brings and whenever the cap was set; on both databases."""

from __future__ import annotations

import itertools
import threading

import pytest

from controlplane.env import Environment
from controlplane.metering.pipeline.tables import Database

pytestmark = pytest.mark.integration
CAP = (
    "INSERT INTO metering_cap (instance, boot, topic, produced_bytes, reason, set_at, set_by)"
    " VALUES ('ins-k3v9x2qa', 'b1', 'orders', 120, 'torn', '2026-05-01 12:00:00', 'olga')"
)


def row(hour: int, produced: int, boot: str = "b1") -> tuple:
    return ("ins-k3v9x2qa", boot, "orders", f"2026-05-01T{hour:02d}:00:00Z", 1, produced, 7, 0, 3, 100 + hour, 0)


@pytest.fixture
def environment(database_url):
    return Environment.read({"DATABASE_URL": database_url})


@pytest.fixture
def database(environment):
    made = Database(environment)
    yield made
    made.close()


def shown(database) -> list[tuple]:
    with database.transaction() as cursor:
        columns = "boot, hour, produced_bytes, produced_bytes_before, consumed_bytes"
        cursor.execute(f"SELECT {columns} FROM metering_usagemaximum ORDER BY boot, hour")
        return [(boot, int(hour[11:13]), *counters) for boot, hour, *counters in cursor.fetchall()]


def test_records_above_a_cap_count_up_to_it_in_whatever_order_they_come(database):
    with database.transaction() as cursor:
        database.run(cursor, CAP)
    for rows in itertools.permutations([row(9, 100), row(10, 2**59), row(11, 2**59 + 5), row(9, 500, boot="b2")]):
        with database.transaction() as cursor:
            database.run(cursor, "DELETE FROM metering_usagemaximum")
            for one in rows:
                database.maxima_raise(cursor, [one])
        assert shown(database) == [
            ("b1", 9, 100, 0, 7), ("b1", 10, 120, 100, 7), ("b1", 11, 120, 120, 7), ("b2", 9, 500, 0, 7)
        ]  # fmt: skip


def test_a_cap_that_is_set_while_a_batch_is_under_way_waits_for_it_so_that_it_lowers_what_the_batch_brought(
    database, environment
):
    done = threading.Event()

    def set_it() -> None:
        other = Database(environment)
        with other.transaction() as cursor:
            other.run(cursor, CAP)
            other.run(cursor, "UPDATE metering_usagemaximum SET produced_bytes = 120 WHERE produced_bytes > 120")
        other.close()
        done.set()

    setting = threading.Thread(target=set_it)
    with database.transaction() as cursor:
        database.maxima_raise(cursor, [row(9, 100)])
        setting.start()
        assert not done.wait(0.3)
        database.maxima_raise(cursor, [row(10, 2**59)])
    setting.join(10)
    assert [found[2] for found in shown(database)] == [100, 120]
