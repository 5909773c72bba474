"""A control plane on a real database, in which two workers sample, roll up and purge at once. Run by test_on_databases.py.

A database in memory knows no waiting for each other; so this needs a process, and is one. Prints what came of it, as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

HOURS, NAMES = 3, ("ins-k3v9x2qa", "ins-another1", "ins-third123")


def main(directory: Path, database_url: str) -> None:
    set_up(str(directory), database_url)
    from django.db import connection

    from controlplane.history import selectors, services
    from controlplane.history.models import Hour, Minute, Sample
    from controlplane.instances.models import Instance
    from tests.controlplane.fakes import ManualClock

    from . import plain
    from .conftest import NOON, keep, keep_waits, move, rows_of, sample

    chance = random.Random(5)
    end = NOON + HOURS * 3600
    samples = [
        sample(
            at, name, produce_bytes_per_s=chance.randrange(2**40), storage_used_bytes=chance.randrange(2**49),
            consume_limit_bytes_per_s=chance.choice([None, chance.randrange(2**40)]), connections=chance.randrange(2**31),
        )
        for at in range(NOON, end, 10)
        for name in NAMES
        if chance.random() < 0.9
    ]  # fmt: skip
    waits = [
        (name, direction, 1000 * at + chance.randrange(9000), 1000 * at + 10_000 + chance.randrange(50_000), 9_000)
        for at in range(NOON, end, 90)
        for name in NAMES
        for direction in ("produce", "consume")
        if chance.random() < 0.5
    ]
    keep_waits(waits)
    errors: list[str] = []

    def worker(part: list[dict[str, object]], at: int) -> None:
        clock = ManualClock()
        move(clock, at)
        start.wait()
        try:
            keep(part)
            services.roll_up(clock=clock)
            services.purge(clock=clock)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is told
            errors.append(repr(error))
        connection.close()

    for stop in range(NOON + 1500, end + 1500, 1500):
        part = [row for row in samples if stop - 1500 <= row["at"] < stop]
        start = threading.Barrier(2)
        threads = [threading.Thread(target=worker, args=(part, stop)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    asked = requests_of_two(errors)
    clock = ManualClock()
    move(clock, end + 900)
    services.roll_up(clock=clock)
    place = {"instance": Instance(id=NAMES[0]), "start": moment(NOON), "end": moment(end), "clock": clock}
    whole = [selectors.history_get(step_s=step_s, **place) for step_s in (3600, HOURS * 3600)]
    found = {
        "errors": errors,
        "minutes": rows_of(Minute) == plain.steps(samples, waits, 60, end + 900),
        "hours": rows_of(Hour) == plain.steps(samples, waits, 3600, end + 900),
        "samples": Sample.objects.count(),
        "shown": [len(each.times) for each in whole],
        "average": [whole[1].series[0].values, plain_average(samples)],
        "requests": asked,
    }
    print(json.dumps(found))


def requests_of_two(errors: list[str]) -> list[int]:
    """So many requests that the master told, and what minutes, hours, days and the total have of them."""
    from django.db import connection

    from controlplane.accounts import services as accounts
    from controlplane.clusters import master
    from controlplane.clusters.services import cluster_ensure
    from controlplane.core.clock import SYSTEM_CLOCK
    from controlplane.history import services
    from controlplane.history.models import RequestDay, RequestHour, RequestMinute
    from controlplane.history.requests import sampling
    from controlplane.history.requests.reading import totals_of
    from controlplane.instances.models import Instance
    from controlplane.tenants import services as tenants
    from quota.contracts.requests import RequestCounts
    from tests.controlplane.fakes import ManualClock

    from .conftest import NOON, counts_of, move

    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    Instance(
        id=NAMES[0], organisation=tenants.organisation_create(name="alice's", owner=user), cluster=cluster_ensure(),
        name="events", bandwidth_mib_per_s=5, storage_gib=10, partitions=60, state="running", created_at=SYSTEM_CLOCK.now(),
    ).save(force_insert=True)  # fmt: skip
    windows = {NOON + 10 * number: 1 + number % 7 for number in range(90)}
    told = {at: [counts_of(count).to_text()] for at, count in windows.items()}
    master.requests = lambda _cluster, _names, at: master.Window(
        {1: max(at, NOON) + 20}, {NAMES[0]: told[at]} if at in told else {}
    )
    for stop in range(NOON + 40, NOON + 1000, 40):
        start = threading.Barrier(2)

        def worker(stop: int = stop, start: threading.Barrier = start) -> None:
            clock = ManualClock()
            move(clock, stop)
            start.wait()
            try:
                sampling.sample(clock=clock)
                services.purge(clock=clock)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is told
                errors.append(repr(error))
            connection.close()

        threads = [threading.Thread(target=worker) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = [
        sum(RequestCounts.from_text(row.counts).requests for row in model.objects.all())
        for model in (RequestMinute, RequestHour, RequestDay)
    ]
    total = totals_of(NAMES[0])
    return [sum(windows.values()), *rows, 0 if total is None else total.requests]


def plain_average(samples: list[dict[str, object]]) -> list[int]:
    values = [row["produce_bytes_per_s"] for row in samples if row["instance"] == NAMES[0]]
    return [round(sum(values) / len(values))]


def moment(at: int):
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
