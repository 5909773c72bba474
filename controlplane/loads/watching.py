"""The operation of a load that was asked to load at once: it watches the first run, which the runner carries out.

It works at nothing itself, so it does not count among the operations of an instance, of which only so many may run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.core import operations
from controlplane.core.errors import OperationFailed
from controlplane.core.operations import Finished, NotYet, OperationKind, Step
from controlplane.loads.models import LoadRun, RunState
from controlplane.loads.services import FIRST_RUN

if TYPE_CHECKING:
    from controlplane.core.models import Operation

LOOKS_AFTER_S = 5.0
PATIENCE_S = 3 * 24 * 3600.0
"""Of each step: runs of others come first, and one that gives way waits again."""


def register() -> None:
    """Make the kind of operation known."""
    steps = (Step("wait for a runner", wait_for_a_runner, PATIENCE_S), Step("load", load, PATIENCE_S))
    operations.register(OperationKind(FIRST_RUN, steps, beside=True))


def wait_for_a_runner(operation: Operation) -> Finished | NotYet:
    """Until a runner has taken it, or it is over. Raises OperationFailed."""
    if _run(operation).state == RunState.WAITING:
        return NotYet("the run waits for its turn", LOOKS_AFTER_S)
    return Finished()


def load(operation: Operation) -> Finished | NotYet:
    """Until the run has ended. Raises OperationFailed where it has not succeeded."""
    run = _run(operation)
    if run.state in (RunState.WAITING, RunState.RUNNING):
        return NotYet(run.says or "the run waits for its turn again", LOOKS_AFTER_S)
    if run.state != RunState.SUCCEEDED:
        raise OperationFailed(f"the run {run.state}: {run.says}")
    return Finished(run.says, {"load_id": run.load_id, "rows": run.row_count, "bytes": run.byte_count})


def _run(operation: Operation) -> LoadRun:
    rows = LoadRun.objects.unscoped("its operation was begun with it")
    found = rows.filter(pk=operation.arguments["run"], load=operation.arguments["load"]).first()
    if found is None:
        raise OperationFailed("the load was deleted")
    return found
