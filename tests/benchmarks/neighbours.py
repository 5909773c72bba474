"""``python -m tests.benchmarks.neighbours``: what do nine tenants feel of a tenth that offers ten times what it bought?

Three brokers, ten tenants with the same bandwidth, three partitions each: of ours, and of Apache Kafka with its own client
quotas (`neighbour_sides`), one after the other. Nine produce at half of their limit all the time (acks=all). In
alternation, the tenth is quiet, and offers ten times its limit from many clients with a connection to every broker each.
Nothing of the first seconds of a phase counts, nor of a side.

    latency      from `produce()` to the acknowledgement, over all nine; and of the one that fares worst
    throughput   acknowledged records of the nine a second
    held         acknowledged bytes of the tenth, of its limit; requests add about 0.5 % to them

Each round gives ratios of its two phases; the table shows their medians and spread; `var/reports/neighbours.json`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quota.contracts.instance import MIB
from tests.benchmarks.neighbour_clients import GREEDY_RECORD_BYTES, Client, Sent, Tenant, greedy, steady
from tests.benchmarks.neighbour_sides import SIDES
from tests.benchmarks.report import Say, keep, progress

REPORT = Path("var/reports/neighbours.json")
NEIGHBOURS = 9
RATIOS = ("p50", "p99", "worst_p99", "throughput")
TARGETS = {"p99": "below 1.2", "throughput": "above 0.99", "held_percent": "98 to 102"}

Phase = tuple[float, float]
"""From and to, monotonic."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, write the figures."""
    options = _options(arguments)
    say, sides = progress(), {}
    for side in options.sides:
        with SIDES[side](NEIGHBOURS + 1, int(options.limit_mib * MIB)) as tenants:
            say(f"{side}: {len(tenants)} tenants of {options.limit_mib:g} MiB/s on three brokers")
            rounds = _measure(tenants, options, say)
        sides[side] = {"medians": _medians(rounds), "rounds": rounds}
    for side, figures in sides.items():
        print(_table(side, figures["rounds"]))
    keep(REPORT, {"options": vars(options), "targets": TARGETS, "sides": sides})
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.neighbours", description="A noisy neighbour.")
    parser.add_argument("--sides", nargs="+", choices=list(SIDES), default=list(SIDES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each phase that count")
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds before the first phase")
    parser.add_argument("--settle", type=float, default=5.0, help="seconds before them that do not")
    parser.add_argument("--limit-mib", type=float, default=1.0, help="bandwidth of each instance, MiB/s")
    parser.add_argument("--times", type=float, default=10.0, help="its limit that the tenth offers")
    parser.add_argument("--clients", type=int, default=10, help="of the tenth, each with a connection to every broker")
    return parser.parse_args(arguments)


def _measure(tenants: Sequence[Tenant], options: argparse.Namespace, say: Say) -> list[dict[str, Any]]:
    """The phases, and what was sent in each."""
    limit = options.limit_mib * MIB
    phases: list[tuple[Phase, Phase]] = []
    with (
        Client(steady, tenants[:-1], limit / 2) as nine,
        Client(greedy, tenants[-1], options.clients, limit * options.times) as tenth,
    ):
        time.sleep(options.warm_up)  # compilers, connections, and what piled up meanwhile
        for number in range(options.rounds):
            quiet = _phase(options)
            say(f"round {number + 1} of {options.rounds}: the nine alone are measured")
            tenth.offering.set()
            noisy = _phase(options)
            tenth.offering.clear()
            say(f"round {number + 1} of {options.rounds}: with the noisy one, too")
            phases.append((quiet, noisy))
        calm, loud = nine.stop(), tenth.stop()
    return [_round(calm, loud, quiet, noisy, limit) for quiet, noisy in phases]


def _phase(options: argparse.Namespace) -> Phase:
    time.sleep(options.settle)
    began = time.monotonic()
    time.sleep(options.seconds)
    return began, time.monotonic()


def _round(calm: list[Sent], loud: list[Sent], quiet: Phase, noisy: Phase, limit: float) -> dict[str, Any]:
    alone, together = (_figures(calm, phase) for phase in (quiet, noisy))
    held = GREEDY_RECORD_BYTES * sum(noisy[0] <= sent.made_s + sent.took_ms / 1000 < noisy[1] for sent in loud)
    return {
        "alone": alone,
        "together": together,
        **{name: round(together[name] / alone[name], 4) for name in RATIOS},
        "held_percent": round(100 * held / (noisy[1] - noisy[0]) / limit, 2),
    }


def _figures(calm: list[Sent], phase: Phase) -> dict[str, float]:
    """Of records that were made in the phase: milliseconds, and acknowledged records a second."""
    those = [sent for sent in calm if phase[0] <= sent.made_s < phase[1]]
    of_each = [[sent.took_ms for sent in those if sent.tenant == tenant] for tenant in range(NEIGHBOURS)]
    took = [sent.took_ms for sent in those]
    return {
        "p50": _percentile(took, 0.5),
        "p99": _percentile(took, 0.99),
        "worst_p99": max(_percentile(each, 0.99) for each in of_each),
        "throughput": len(those) / (phase[1] - phase[0]),
    }


def _percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _medians(rounds: list[dict[str, Any]]) -> dict[str, float]:
    return {name: statistics.median(entry[name] for entry in rounds) for name in (*RATIOS, "held_percent")}


def _table(side: str, rounds: list[dict[str, Any]]) -> str:
    lines = [f"{side:<14}{'alone':>12}{'together':>12}{'ratio':>10}{'spread':>18}  {'aim':<12}"]
    for name, ratio in _medians(rounds).items():
        values = [entry[name] for entry in rounds]
        sides = [statistics.median(entry[side].get(name, 0.0) for entry in rounds) for side in ("alone", "together")]
        shown = "".join(f"{side:>12.2f}" if side else f"{'':>12}" for side in sides)
        spread = f"{min(values):g} - {max(values):g}"
        lines.append(f"{name:<14}{shown}{ratio:>10.3f}{spread:>18}  {TARGETS.get(name, ''):<12}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
