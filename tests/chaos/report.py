"""What rounds have shown, in numbers by kind of fault: "0 in N trials", and what that says (at most 3/N, at 95 %).

`round_s` is the mean of what rounds took, `load_s` of that the part with load and faults: the rest is reading and comparing.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from tests.chaos.faults import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.round import Outcome

_BROKEN = ("lost", "duplicate", "reordered")
HEADS = (
    "rounds",
    "faults",
    "acknowledged",
    "lost",
    "doubled",
    "reordered",
    "other",
    "renumbered",
    "longest_gap_s",
    "round_s",
    "load_s",
)


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """All of it, as it is written to `chaos.json`."""
    kinds = [kind for kind in KINDS if any(outcome.kind == kind for outcome in outcomes)]
    return {
        "kinds": {kind: _row([outcome for outcome in outcomes if outcome.kind == kind]) for kind in kinds},
        "together": _row(outcomes),
        "wrong": [
            {"round": outcome.number, "kind": outcome.kind, "findings": sentence(outcome)}
            for outcome in outcomes
            if outcome.findings
        ],
    }


def table(figures: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"{'':<16}" + "".join(f"{head:>14}" for head in HEADS)]
    for kind, row in [*figures["kinds"].items(), ("together", figures["together"])]:
        lines.append(f"{kind:<16}" + "".join(f"{row[head]:>14}" for head in HEADS))
    return "\n".join([*lines, f"{figures['together']['promise']}; {len(figures['wrong'])} rounds with findings"])


def _row(outcomes: list[Outcome]) -> dict[str, Any]:
    def count(*kinds: str) -> int:
        return sum(outcome.findings.counts.get(kind, 0) for outcome in outcomes for kind in kinds)

    everything = sum(sum(outcome.findings.counts.values()) for outcome in outcomes)
    named = count("lost"), count("duplicate"), count("reordered")
    return {
        "rounds": len(outcomes),
        "faults": sum(outcome.faults for outcome in outcomes),
        "acknowledged": sum(outcome.acknowledged for outcome in outcomes),
        "refused": sum(outcome.refused for outcome in outcomes),
        **dict(zip(("lost", "doubled", "reordered"), named, strict=True)),
        "other": everything - sum(named),
        "renumbered": sum(outcome.findings.renumbered for outcome in outcomes),
        "longest_gap_s": round(max((outcome.longest_gap_s for outcome in outcomes), default=0.0), 1),
        "round_s": _mean([outcome.seconds for outcome in outcomes]),
        "load_s": _mean([outcome.steps.get("load", 0.0) for outcome in outcomes]),
        "promise": _promise(outcomes),
    }


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 1) if values else 0.0


def _promise(outcomes: Sequence[Outcome]) -> str:
    """With its unit: faults in which a record was lost, doubled or moved. Never "never"."""
    broken = sum(any(outcome.findings.counts.get(kind) for kind in _BROKEN) for outcome in outcomes)
    faults = sum(outcome.faults for outcome in outcomes)
    acknowledged = sum(outcome.acknowledged for outcome in outcomes)
    said = (
        f"{broken} rounds in which records were lost, doubled or reordered, in {faults} faults, {acknowledged} records"
    )
    return said if broken or not faults else f"{said} (at most {min(1.0, 3 / faults):.1%} of faults, at 95 %)"


def sentence(outcome: Outcome) -> str:
    """What was wrong in a round; empty where nothing was."""
    findings = outcome.findings
    return "; ".join(f"{count} {kind} ({findings.examples[kind][0]})" for kind, count in findings.counts.items())
