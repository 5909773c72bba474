"""What a period costs the master: reports parsed and taken, grants worked out and written, in CPU seconds.

    python -m tests.benchmarks.master [brokers] [instances] [on]     100, 2,000 and 100 unless said otherwise

Every instance is led by all brokers, which is as bad as it gets, or by so many of them (`on`). Brokers do not report at
the same moment, and are answered as the master does it, in groups that came within `GATHER_S`: what one group reported
changes the answers to the next. Of every tenth busy instance somebody waits in both directions, for the flight recorder.

    busy      every flow differs from the period before
    tenth     those of every tenth instance do, the others are at rest
    idle      all are at rest

Figures in var/reports/master.json, or master-<on>.json.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from math import ceil
from pathlib import Path

from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.contracts.report import Flow, FlowReport, InstanceReport
from quota.core.allocate import divide
from quota.core.ledger import Ledger
from quota.core.recorder import Recorder
from quota.master.service import GATHER_S
from quota.wire import Decoder, frame
from tests.benchmarks.report import keep

_LIMIT = 10_000_000
_PERIODS = 3
"""Of each kind."""


def main(arguments: list[str]) -> int:
    """Measure, print, write."""
    brokers, instances, on = (int(each) for each in [*arguments, *("100", "2000", "100")[len(arguments) :]])
    gc.disable()  # as the master nearly does
    names = [f"ins-{number:08d}" for number in range(instances)]
    limits = Limits(_LIMIT, _LIMIT, None, None)
    ledger = Ledger(epoch=1, now=-100.0, period_ms=1000, lease_ms=10_000)
    recorder = Recorder(period_ms=1000)
    ledger.set_specs({name: InstanceSpec(name, 1, InstanceState.RUNNING, limits, (), ()) for name in names}, 0.0)
    figures: dict[str, object] = {"brokers": brokers, "instances": instances, "on": on}
    led = [[name for number, name in enumerate(names) if (number + broker) % brokers < on] for broker in range(brokers)]
    kinds = {"busy": 1, "tenth": 10, "idle": None}
    sequence = 0
    for kind, every in kinds.items():
        for _ in range(_PERIODS):
            sequence += 1
            frames = [_report(broker, sequence, led[broker], every, 2 * _LIMIT // on) for broker in range(brokers)]
            figures[kind] = _period(
                ledger, recorder, frames, float(sequence)
            )  # the last counts: the first is the change
            print(f"period {sequence}, {kind}: {figures[kind]}", flush=True)
    figures["divide_100k_cells_s"] = _divide()
    print(f"the rule on 100,000 cells: {figures['divide_100k_cells_s']} s")
    keep(Path("var/reports/master.json" if on == brokers else f"var/reports/master-{on}.json"), figures)
    return 0


def _report(broker: int, sequence: int, names: list[str], every: int | None, most: int) -> bytes:
    """As a broker's agent makes it: after the first report only what is busy, or has just ceased to be."""
    rows = {}
    for name in names:
        number = int(name.removeprefix("ins-"))
        busy = every is not None and number % every == 0
        if busy or sequence % _PERIODS == 1:
            waited_ms = 500 if busy and number % (10 * (every or 1)) == 0 else 0
            flow = Flow(random.randrange(most) if busy else 0, waited_ms, 0, 2, 100_000)
            rows[name] = InstanceReport(flow, flow, 1000, 1)
    return frame(FlowReport(broker, "boot", sequence, 1000, rows, partial=sequence > 1).to_json())


def _period(ledger: Ledger, recorder: Recorder, frames: list[bytes], now: float) -> dict[str, float]:
    spent = dict.fromkeys(("parsed", "taken", "granted", "written", "recorded"), 0.0)
    since = time.process_time()

    def lap(name: str) -> None:
        nonlocal since
        spent[name] += time.process_time() - since
        since = time.process_time()

    together = ceil(len(frames) * GATHER_S)
    for first in range(0, len(frames), together):
        documents = [next(Decoder().feed(data)) for data in frames[first : first + together]]
        reports = [FlowReport.from_document(document) for document in documents]
        lap("parsed")
        for report in reports:
            ledger.report(report, now)
        lap("taken")
        grants = [ledger.grants(report.broker, now) for report in reports]
        lap("granted")
        for grant in grants:
            frame(grant.to_json())
        lap("written")
        for report in reports:
            recorder.take(report)
        lap("recorded")
    for interval in recorder.tick(ledger, now, int(now * 1000)):
        interval.to_json()
    lap("recorded")
    return {f"{name}_s": round(seconds, 3) for name, seconds in {**spent, "all": sum(spent.values())}.items()}


def _divide() -> float:
    columns = [[random.randrange(1, 1_000_000) for _ in range(100)] for _ in range(1_000)]
    leaders, waits = [2] * 100, [False] * 100
    began = time.process_time()
    for used in columns:
        _, amount = divide(_LIMIT, leaders, used, waits)
        for place in range(len(used)):
            amount(place)
    return round(time.process_time() - began, 4)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
