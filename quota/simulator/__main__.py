"""`python -m quota.simulator`: demand scenarios under the documented rule, under `bounded`, and under static quotas.

    python -m quota.simulator                               every scenario on 3 and 10 brokers, 20 runs each
    python -m quota.simulator --scenarios random --runs 200
    python -m quota.simulator --plots var/plots             a picture of the first run of each
    python -m quota.simulator --replay day.json             a recorded day under every strategy

A recorded day is `{"limit": bytes/s, "rows": [[bytes/s of broker 1, of broker 2, ...], ... one row a second]}`.
It prints the figures of each line as it is done, and writes them to var/reports/quota-simulator.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from quota.contracts.instance import MIB
from quota.core.model import Strategy
from quota.simulator.demand import SCENARIOS, Scenario, recorded
from quota.simulator.figures import Figures, figures
from quota.simulator.report import HEAD, line, plot, row
from quota.simulator.run import STATIC, run

STRATEGIES = (Strategy.CKAFKA.value, Strategy.BOUNDED.value, STATIC)
REPORT = Path("var/reports/quota-simulator.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, write. Exit code 2 for a bad argument."""
    options = _options(arguments)
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    print(HEAD)
    for name, brokers, limit, makers in _subjects(options):
        for strategy in options.strategies:
            judged: list[Figures] = []
            for seed, scenario in makers:
                trace = run(scenario, limit, strategy, Random(seed))
                judged.append(figures(trace, scenario.changes))
                if options.plots is not None and seed == options.seed:
                    picture = options.plots / f"quota-{name}-{brokers}-{strategy}.png"
                    if not plot(trace, picture):
                        sys.exit("plots need matplotlib, which `make test` installs")
            rows.append(row(name, brokers, strategy, judged))
            print(line(rows[-1]), flush=True)
    report = {"seconds": round(time.monotonic() - began, 1), "seed": options.seed, "rows": rows}
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=1))
    print(f"figures: {REPORT}")
    return 0


def _subjects(options: argparse.Namespace) -> Iterator[tuple[str, int, int, list[tuple[int, Scenario]]]]:
    """(name, brokers, limit, runs as (seed, scenario)): every strategy gets the same runs."""
    if options.replay is not None:
        try:
            day = json.loads(options.replay.read_text())
            scenario, limit = recorded(day["rows"]), int(day["limit"])
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            sys.exit(f"{options.replay} is not a recorded day: {type(error).__name__}: {error}")
        yield "recorded", scenario.brokers, limit, [(options.seed, scenario)]
        return
    limit = options.limit * MIB
    for brokers in options.brokers:
        for name in options.scenarios:
            seeds = range(options.seed, options.seed + options.runs)
            yield (
                name,
                brokers,
                limit,
                [(seed, SCENARIOS[name](brokers, limit, options.seconds, Random(seed))) for seed in seeds],
            )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m quota.simulator", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scenarios", type=_names(SCENARIOS), default=list(SCENARIOS), help=", ".join(SCENARIOS))
    parser.add_argument("--strategies", type=_names(STRATEGIES), default=list(STRATEGIES), help=", ".join(STRATEGIES))
    parser.add_argument("--brokers", type=lambda text: [int(part) for part in text.split(",")], default=[3, 10])
    parser.add_argument("--runs", type=int, default=20, help="of each scenario, with seeds one after the other")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run")
    parser.add_argument("--limit", type=int, default=30, help="what the instance bought, MiB/s")
    parser.add_argument("--plots", type=Path, help="a folder for pictures of the first runs")
    parser.add_argument("--replay", type=Path, help="a recorded day")
    options = parser.parse_args(arguments)
    if min(options.runs, options.limit, options.seconds, *options.brokers) < 1:
        parser.error("numbers must be at least 1")
    return options


def _names(known: Sequence[str] | dict[str, Any]) -> Any:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"no such name: {', '.join(unknown)} (there are {', '.join(known)})")
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main())
