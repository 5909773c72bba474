"""How long operations take, by those that have succeeded here: for whoever asks before beginning one."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from controlplane.core.models import Operation, OperationState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controlplane.core.dry_runs import Begun

LOOKED_AT = 500
"""Operations of all kinds and organisations, those that were at work last: an index has them in this order."""
ENOUGH = 20
"""Of one kind: the newest of them count."""
STEP_S = 1
"""For each step of a kind that has not succeeded among those: what a step takes where brokers answer."""


def usual_s(begun: Iterable[Begun]) -> int:
    """Whole seconds from when they are asked for until the last has ended, one after the other; 0: there is none.

    Of each the median of the newest that succeeded, from its creation to its end, so waiting for a worker counts as well. What
    is not known is taken as STEP_S a step.
    """
    operations = list(begun)
    taken = _taken_s({each.kind for each in operations}) if operations else {}
    return sum(_of(taken.get(each.kind, []), len(each.steps)) for each in operations)


def _of(taken_s: list[float], steps: int) -> int:
    return max(1, math.ceil(median(taken_s))) if taken_s else max(1, steps * STEP_S)


def _taken_s(kinds: set[str]) -> dict[str, list[float]]:
    rows = Operation.objects.unscoped("how long operations of a kind take, whosever they are")
    newest = rows.filter(state=OperationState.SUCCEEDED).order_by("-runnable_at")
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    for kind, began, ended in newest.values_list("kind", "created_at", "finished_at")[:LOOKED_AT]:
        if kind in found and ended is not None and len(found[kind]) < ENOUGH:
            found[kind].append((ended - began).total_seconds())
    return found
