"""What the ledger divides between brokers: instances, their requests, broker time and throttle rules, by names of rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from quota.contracts.instance import InstanceSpec
from quota.contracts.rows import Row, Unit


class Limited(NamedTuple):
    """The limits of one row (None = unlimited, 0 = blocked), and how they are divided.

    In bytes/s; of requests in thousandths, of broker time in microseconds.
    """

    produce: int | None
    consume: int | None
    strategy: str

    def limit(self, direction: str) -> int | None:
        """Of ``produce`` or ``consume``."""
        return self.produce if direction == "produce" else self.consume


def limited_rows(
    specs: Iterable[InstanceSpec], reported: Collection[str], *, is_metered: bool = False
) -> dict[str, Limited]:
    """All rows that the specs name, and those of single clients that brokers report on.

    `is_metered`: elastic bandwidth is counted, so that its caps are shared out; else what was bought is.
    """
    rows: dict[str, Limited] = {}
    for spec in specs:
        limit = spec.limits.allocated if is_metered else spec.limits.bought
        rows[spec.id] = Limited(limit("produce"), limit("consume"), spec.strategy)
        for unit in (Unit.REQUESTS, Unit.LOOP_TIME):
            rate = spec.limits.rate(unit)
            if rate is not None:
                rows[Row(spec.id, unit=unit).key] = Limited(rate, None, spec.strategy)
        for rule in spec.rules.items:
            limited = Limited(rule.produce_bytes_per_s, rule.consume_bytes_per_s, spec.strategy)
            rows[Row(spec.id, rule.id).key] = limited
    for name in reported:
        if name not in rows:
            learn_row(rows, name)
    return rows


def learn_row(rows: dict[str, Limited], name: str) -> None:
    """The row of one client, of a rule for each, has no place in a spec: it has the limit of its rule."""
    rule = rows.get(Row.parse(name).rule.key)
    if rule is not None:
        rows[name] = rule
