"""Whether the rounds would find anything: each planted bug, and the kinds of fault that are aimed at it.

`make chaos ARGS="--calibrate"` plants one bug after the other into every broker and runs those rounds until one finds
something. A bug that none finds means that the rounds are too gentle, and the exit status says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AIMED: dict[str, tuple[str, ...]] = {
    "acknowledge before replication": ("stall",),
    "acknowledge with an ISR of one": ("last",),
    "commit what only the leader has": ("stall",),
    "a proposed ISR counts at once": ("shrink",),
    "truncate to the high watermark": ("handover",),
    "never truncate": ("all", "stall"),
    "lead without writing the epoch": ("leader", "all"),
    "ignore the controller's epoch": ("stale",),
    "join the ISR while behind": ("straggler",),
    "trust who restarted unseen": ("unseen",),
    "commit with too few in sync": ("last",),
    "forget producers": ("all",),
    "any life of a broker will do": ("former",),
}
"""The kinds that catch a bug, by its name in `tests.simulation.bugs`."""

Caught = tuple[int, str | None, str]
"""Rounds run, the kind of the one that found something (None: none did), and what it found."""


def calibrate(
    bugs: Sequence[str], hunt: Callable[[str, tuple[str, ...]], Caught], kinds: tuple[str, ...] | None = None
) -> list[dict[str, Any]]:
    """A row for each bug. `hunt` plants one and runs rounds of the given kinds; `kinds` where not those aimed at it."""
    rows = []
    for bug in bugs:
        rounds, kind, findings = hunt(bug, kinds or AIMED[bug])
        rows.append({"bug": bug, "rounds": rounds, "kind": kind, "findings": findings})
        print(f"{bug}: " + (f"caught by {kind}" if kind else "NOT CAUGHT"), flush=True)
    return rows
