"""The end of a round: the same usage in five places, and the money.

    clients     what they produced and read is what the database has metered (`traffic` says what is exact)
    topic       every key of the database is what SQLite computes of the records that librdkafka read (`oracle`), of those records
                that the database has read; and it has read all of them
    count       the job says that it has counted each record once
    lake        usage_raw has each record of the topic once, with the counters that it has there; and what the job `reconcile`
                recomputes from it is what the database has
    bills       the product's hours and bills of the database are what the topic's hours are, and cost by another computation
                (`pricing`), to the cent

A difference is a sentence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.killed import pricing
from tests.killed.lake_reader import Ask
from tests.killed.oracle import Records, Used, of_instances
from tests.killed.side import Side
from tests.killed.traffic import Client
from tests.killed.usage_topic import UsageTopic
from tests.support.waiting import wait_for

COMES_WITHIN_S = 300.0
"""What is told, to the database: a JVM may have to start before."""
_QUIET_S = 1.5
_STOPS = 4
"""Attempts at a stop while nothing is told."""


@dataclass(frozen=True)
class Comparison:
    """Of one campaign."""

    clients: Mapping[str, tuple[Client, str]]  # by name; and the plan of each
    topic: UsageTopic
    records: Records
    lake: Ask
    opened: datetime  # since then instances are billed

    def differences(self, side: Side) -> tuple[list[str], dict[str, int]]:
        """What differs, and how much was compared. The clients rest; the job is stopped then."""
        found = self._clients(side)
        positions = self._stopped(side)
        now = datetime.now(UTC)
        hours = self.records.hours(positions)
        found += different("database", side.hours(), hours)
        count, told = side.counted(), sum(positions.values())
        if count != told:
            found.append(f"the job says that it has counted {count:,} records, the topic has {told:,}")
        found += self._lake(side, positions, now)
        found += self._bills(side, of_instances(hours), now)
        figures = {
            "records": told,
            "keys": len(hours),
            "hours": len({hour for *_, hour in hours}),
            "boots": len({boot for _, boot, _, _ in hours}),
            "produced_bytes": sum(used[0] for used in hours.values()),
            "consumed_bytes": sum(used[1] for used in hours.values()),
        }
        return found, figures

    def _clients(self, side: Side) -> list[str]:
        """Waits until all has come."""
        problems: list[str] = []

        def agree() -> bool:
            metered = side.metered()
            problems[:] = [
                f"{name} ({client.tenant.id}): {problem}"
                for name, (client, _) in self.clients.items()
                for problem in client.counted().problems(*metered.get(client.tenant.id, (0, 0)))
            ]
            return not problems

        try:
            wait_for(agree, COMES_WITHIN_S, "what clients counted to be metered")
        except AssertionError:
            return problems or ["the database does not answer"]
        return []

    def _stopped(self, side: Side) -> dict[int, int]:
        """The job is stopped where database and lake have all that the topic has; up to where. Raises AssertionError."""
        for _ in range(_STOPS):
            self._until_quiet(side)
            side.stop()
            positions = side.positions()
            if positions == self.topic.ends():
                self.records.add(self.topic.records(self.records.ends(), positions))
                return positions
            side.start()  # a broker told something while the job ended: the lake may have a batch that the database lacks
        raise AssertionError(f"the database is at {side.positions()}, the topic ends at {self.topic.ends()}")

    def _until_quiet(self, side: Side) -> None:
        seen: dict[int, int] = {}
        since = 0.0

        def is_quiet() -> bool:
            nonlocal seen, since
            ends = self.topic.ends()
            if ends != seen or side.positions() != ends:
                seen, since = ends, time.monotonic()
            return time.monotonic() - since > _QUIET_S

        wait_for(is_quiet, COMES_WITHIN_S, "the database to have all that is told, and nothing to be told any more")

    def _lake(self, side: Side, positions: Mapping[int, int], now: datetime) -> list[str]:
        found = self.lake(
            {
                "lake": str(side.lake),
                "database": side.url,
                "from": f"{self.opened - timedelta(hours=1):%Y-%m-%dT%H}:00:00Z",
                "to": f"{now + timedelta(hours=1):%Y-%m-%dT%H}:00:00Z",
            }
        )
        held = {int(partition): offset for partition, offset in found["held"].items()}
        lake = {int(partition): tuple(place) for partition, place in found["places"].items()}
        told = {
            partition: (count, count, positions[partition] - 1, offsets, counters)
            for partition, (count, offsets, counters) in self.records.places(positions).items()
        }
        begun = {partition: end for partition, end in positions.items() if end}
        differences = different("commits of the lake", held, begun) + different("rows of the lake", lake, told)
        if found["differences"]:
            differences.append(
                f"reconcile: {found['differences']} in {found['keys']} keys, such as {found['found'][0]}"
            )
        return differences

    def _bills(self, side: Side, hours: Mapping[str, Mapping[str, Used]], now: datetime) -> list[str]:
        told = side.bills("tell", {"now": now.isoformat()})
        differences = []
        for name, (client, own_plan) in self.clients.items():
            theirs, used = told[client.tenant.id], hours.get(client.tenant.id, {})
            shown = {hour: tuple(row) for hour, row in theirs["hours"].items()}
            differences += different(f"hours of {name}", shown, used)
            if set(theirs["bills"]) != {own_plan, pricing.FINE}:
                differences.append(f"bills of {name}: they are of the plans {sorted(theirs['bills'])}")
            for plan, by_month in theirs["bills"].items():
                for month, amounts in by_month.items():
                    computed = pricing.bill(plan, month, self.opened, now, used)
                    differences += different(f"bill of {name} under {plan}", amounts, computed)
        return differences


def different(what: str, shown: Mapping[Any, Any], computed: Mapping[Any, Any]) -> list[str]:
    """A sentence, where two are not the same."""
    keys = sorted(key for key in {*shown, *computed} if shown.get(key) != computed.get(key))
    if not keys:
        return []
    first = keys[0]
    values = f"{shown.get(first)} shown, {computed.get(first)} computed"
    return [f"{what}: {len(keys)} of {len(computed)} differ, such as {first}: {values}"]
