"""What a period costs the master: reports parsed and taken, grants worked out and written, in CPU seconds.

    python -m tests.benchmarks.master [brokers] [instances]          100 and 2,000 unless said otherwise

Every broker leads something of every instance: as bad as it gets. `busy`: every flow differs from the period before;
`idle`: none does. Somebody waits in both directions of every tenth instance of busy periods, for the flight recorder.
Figures in var/reports/master.json.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from pathlib import Path

from quota.contracts.instance import InstanceSpec, InstanceState, Limits
from quota.contracts.report import Flow, FlowReport, InstanceReport
from quota.core.allocate import divide
from quota.core.ledger import Ledger
from quota.core.recorder import Recorder
from tests.benchmarks.report import keep

_LIMIT = 10_000_000


def main(arguments: list[str]) -> int:
    """Measure, print, write."""
    brokers, instances = (int(each) for each in (*arguments, 100, 2_000)[:2])
    gc.disable()  # as the master nearly does
    names = [f"ins-{number:08d}" for number in range(instances)]
    limits = Limits(_LIMIT, _LIMIT, None, None)
    ledger = Ledger(epoch=1, now=-100.0, period_ms=1000, lease_ms=10_000)
    recorder = Recorder(period_ms=1000)
    ledger.set_specs({name: InstanceSpec(name, 1, InstanceState.RUNNING, limits, (), ()) for name in names}, 0.0)
    figures: dict[str, object] = {"brokers": brokers, "instances": instances}
    for sequence, busy in enumerate((True, True, False, False), 1):
        frames = [_report(broker, sequence, names, busy=busy) for broker in range(brokers)]
        taken = _period(ledger, recorder, frames, brokers, float(sequence))
        figures["busy" if busy else "idle"] = taken  # the second of each counts: the first is the change to it
        print(f"period {sequence}, {'busy' if busy else 'idle'}: {taken}", flush=True)
    figures["divide_100k_cells_s"] = _divide()
    print(f"the rule on 100,000 cells: {figures['divide_100k_cells_s']} s")
    keep(Path("var/reports/master.json"), figures)
    return 0


def _report(broker: int, sequence: int, names: list[str], *, busy: bool) -> bytes:
    rows = {}
    for number, name in enumerate(names):
        waited_ms = 500 if busy and number % 10 == 0 else 0
        flow = Flow(random.randrange(180_000) if busy else 0, waited_ms, 0, 2, 100_000)
        rows[name] = InstanceReport(flow, flow, 1000, 1)
    return FlowReport(broker, "boot", sequence, 1000, rows).to_json()


def _period(ledger: Ledger, recorder: Recorder, frames: list[bytes], brokers: int, now: float) -> dict[str, float]:
    began = time.process_time()
    reports = [FlowReport.from_document(json.loads(frame)) for frame in frames]
    for report in reports:
        ledger.report(report, now)
    taken = time.process_time()
    grants = [ledger.grants(broker, now) for broker in range(brokers)]
    worked_out = time.process_time()
    for grant in grants:
        grant.to_json()
    written = time.process_time()
    for report in reports:
        recorder.take(report)
    for interval in recorder.tick(ledger, now, int(now * 1000)):
        interval.to_json()
    recorded = time.process_time()
    return {
        "reports_s": round(taken - began, 2),
        "grants_s": round(worked_out - taken, 2),
        "written_s": round(written - worked_out, 2),
        "recorded_s": round(recorded - written, 2),
        "all_s": round(recorded - began, 2),
    }


def _divide() -> float:
    columns = [[random.randrange(1, 1_000_000) for _ in range(100)] for _ in range(1_000)]
    leaders, waits = [2] * 100, [False] * 100
    began = time.process_time()
    for used in columns:
        divide(_LIMIT, leaders, used, waits)
    return round(time.process_time() - began, 4)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
