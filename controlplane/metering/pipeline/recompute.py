"""The SQL by which hours are recomputed from `usage_raw`, and nothing else: for whoever checks a bill.

It needs no other table of ours and no other order than that of hours, and runs as it stands on Spark, SQLite and PostgreSQL
(docs/subsystems/reconcile.md has it for people). It says what quota/contracts/usage.py says: an hour's usage is the largest
counter of its key minus the largest of the same (instance, boot, topic) in any earlier hour. Records that came twice, late or
out of order change nothing. Rows of the kind `known` are the largest counters of keys at the table's beginning (raw_table.py).

The stream does it in another way: record by record, in the database, with running maxima. So an error of the one is not one of
the other. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from quota.contracts.usage import COUNTERS, INSTANCE_COUNTERS, USER_COUNTERS

KEY = ("instance", "boot", "topic")
HOUR = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:00:00Z")


def since_sql(table: str) -> str:
    """The first hour of the boots that told anything of [:start, :end): before it no record matters to these hours."""
    return f"""
SELECT MIN(first_hour) FROM (
    SELECT boot, MIN(booked_hour) AS first_hour, MAX(booked_hour) AS last_hour
    FROM {table} WHERE kind IN ('usage', 'known', 'instance', 'user') AND booked_hour < :end GROUP BY boot
) AS boots WHERE last_hour >= :start"""  # noqa: S608  # the table is ours, values are bound


def hours_sql(table: str, caps: str) -> str:
    """Usage of the hours in [:start, :end), by instance, boot and topic. `:since`: see above.

    `caps` has instance, boot, topic and, by counter, up to where it is believed (null: as it is): what operators have ruled out.
    """
    counters = ", ".join(f"MAX({_capped(name)}) AS {name}" for name in COUNTERS)
    names = ", ".join(COUNTERS)
    before = ", ".join(f"COALESCE(MAX({name}) OVER earlier, 0) AS {name}_before" for name in COUNTERS)
    grown = ", ".join(_grown(name) for name in COUNTERS)
    return f"""
SELECT instance, boot, topic, hour, broker, topic_uuid, {grown}
FROM (
    SELECT instance, boot, topic, hour, broker, topic_uuid, {names}, {before}
    FROM (
        SELECT r.instance, r.boot, r.topic, r.booked_hour AS hour, MAX(r.broker) AS broker,
               MAX(COALESCE(r.topic_uuid, '')) AS topic_uuid, {counters}
        FROM {table} r
        LEFT JOIN {caps} c ON c.instance = r.instance AND c.boot = r.boot AND c.topic = r.topic
        WHERE r.kind IN ('usage', 'known') AND r.booked_hour >= :since AND r.booked_hour < :end
        GROUP BY r.instance, r.boot, r.topic, r.booked_hour
    ) AS largest
    WINDOW earlier AS (
        PARTITION BY instance, boot, topic ORDER BY hour ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )
) AS counted WHERE hour >= :start"""  # noqa: S608


def instance_hours_sql(table: str) -> str:
    """What is counted of whole instances, by instance, boot and hour, in the same way."""
    return _of_kind_sql(table, "instance", ("instance", "boot"), INSTANCE_COUNTERS)


def user_hours_sql(table: str) -> str:
    """What is counted of users, by instance, boot, user and hour, in the same way."""
    return _of_kind_sql(table, "user", ("instance", "boot", "user_name"), USER_COUNTERS)


def _of_kind_sql(table: str, kind: str, key: Sequence[str], counters: Sequence[str]) -> str:
    largest = ", ".join(f"MAX({name}) AS {name}" for name in counters)
    names, owner = ", ".join(counters), ", ".join(key)
    before = ", ".join(f"COALESCE(MAX({name}) OVER earlier, 0) AS {name}_before" for name in counters)
    grown = ", ".join(_grown(name) for name in counters)
    return f"""
SELECT {owner}, hour, {grown}
FROM (
    SELECT {owner}, hour, {names}, {before}
    FROM (
        SELECT {owner}, booked_hour AS hour, {largest} FROM {table}
        WHERE kind = '{kind}' AND booked_hour >= :since AND booked_hour < :end GROUP BY {owner}, booked_hour
    ) AS largest
    WINDOW earlier AS (PARTITION BY {owner} ORDER BY hour ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS counted WHERE hour >= :start"""  # noqa: S608


def _capped(name: str) -> str:
    return f"CASE WHEN c.{name} < r.{name} THEN c.{name} ELSE r.{name} END"


def _grown(name: str) -> str:
    return f"CASE WHEN {name} > {name}_before THEN {name} - {name}_before ELSE 0 END AS {name}"
