"""Many runs summed up: medians and 95th percentiles by scenario and strategy, as rows, a table, and plots."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from importlib import import_module, util
from pathlib import Path
from typing import Any

from quota.contracts.instance import MIB
from quota.simulator.figures import WINDOWS_S, Figures
from quota.simulator.run import Trace

HEAD = (
    f"{'scenario':<10}{'brokers':>8}{'strategy':>10}{'runs':>6}{'converged':>11}{'over 1 s':>10}{'over 10 s':>11}"
    f"{'over 60 s':>11}{'used':>8}{'Jain':>8}{'waits under':>13}"
)


def row(scenario: str, brokers: int, strategy: str, runs: Sequence[Figures]) -> dict[str, Any]:
    """One line. Over-admission is the 95th percentile of each run's peak, the rest are means."""
    converged = [each.convergence_periods for each in runs if each.convergence_periods is not None]
    over = {
        f"{window}": _percentile([each.over_admission[window] for each in runs if window in each.over_admission])
        for window in WINDOWS_S
    }
    return {
        "scenario": scenario,
        "brokers": brokers,
        "strategy": strategy,
        "runs": len(runs),
        "convergence_periods": round(statistics.mean(converged), 1) if converged else None,
        "over_admission_p95_percent": over,
        "utilisation_percent": round(statistics.mean(each.utilisation for each in runs), 1),
        "fairness": round(statistics.mean(each.fairness for each in runs), 3),
        "throttled_under_percent": round(statistics.mean(each.throttled_under for each in runs), 1),
    }


def line(values: dict[str, Any]) -> str:
    """One line of the table whose head is `HEAD`."""
    converged = values["convergence_periods"]
    over = values["over_admission_p95_percent"]
    cells = "".join(
        f"{_percent(over[str(window)]):>{width}}" for window, width in zip(WINDOWS_S, (10, 11, 11), strict=True)
    )
    return (
        f"{values['scenario']:<10}{values['brokers']:>8}{values['strategy']:>10}{values['runs']:>6}"
        f"{'-' if converged is None else f'{converged:g}':>11}{cells}{values['utilisation_percent']:>6.1f} %"
        f"{values['fairness']:>8.3f}{values['throttled_under_percent']:>11.1f} %"
    )


def plot(trace: Trace, path: Path) -> bool:
    """What was let through and allowed, by broker, as a picture. False where matplotlib is not installed."""
    if util.find_spec("matplotlib") is None:
        return False
    figure = import_module("matplotlib.figure").Figure(figsize=(10, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    seconds = range(len(trace.admitted))
    above.stackplot(seconds, *([value / MIB for value in column] for column in zip(*trace.admitted, strict=True)))
    above.plot(seconds, [min(sum(each), 4 * trace.limit) / MIB for each in trace.demanded], "k:", label="demand")
    above.axhline(trace.limit / MIB, color="red", label="limit")
    above.set(ylabel="let through, MiB/s", title=f"{trace.scenario}, {trace.strategy}")
    above.legend()
    for number, column in enumerate(zip(*trace.allocated, strict=True), 1):
        below.plot(seconds, [(value or 0) / MIB for value in column], label=f"broker {number}")
    below.set(ylabel="allowed, MiB/s", xlabel="seconds")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def _percentile(values: Sequence[float]) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)], 1)
