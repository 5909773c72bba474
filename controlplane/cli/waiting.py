"""An operation until it has ended: asked for now and then, its steps shown as they go.

On a terminal the present step stands on one line that changes; elsewhere each step is a line when it is over. Ctrl-C and the end
of the time to wait end the waiting alone: the operation goes on, and the way back to it is said.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from controlplane.cli import operations as ops
from controlplane.cli.errors import INTERRUPTED, Away, GivenUp, Refused
from controlplane.cli.output import stderr_console
from controlplane.cli.values import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.status import Status

    from controlplane.cli.client import Client
    from controlplane.cli.output import Output

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 2.0
RUNNING, SUCCEEDED, PENDING = "running", "succeeded", "pending"
DEFAULT_TIMEOUT_S = 1800


class InterruptedWaitError(GivenUp):
    """Ctrl-C."""

    exit_status = INTERRUPTED


@dataclass(frozen=True, slots=True)
class Clock:
    """Time; tests have another."""

    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic


def awaited(
    client: Client, operation_id: str, *, output: Output, clock: Clock, timeout_s: float = DEFAULT_TIMEOUT_S
) -> dict[str, Any]:
    """The operation as it ended. Raises Refused where it failed, GivenUp."""
    way_back = (f"It goes on: sluice operation wait {operation_id}",)
    try:
        found = _ended(client, operation_id, output=output, clock=clock, timeout_s=timeout_s)
    except Away as error:
        raise Away(str(error), notes=(*error.notes, *way_back), code=error.code) from error
    except KeyboardInterrupt as interrupt:
        raise InterruptedWaitError(f"no longer waiting for {operation_id}", notes=way_back) from interrupt
    if found["state"] == RUNNING:
        raise GivenUp(f"{operation_id} is still running after {timeout_s:g} s", notes=way_back)
    if found["state"] != SUCCEEDED:
        raise Refused(
            f"{found['kind']} of {found['target']} failed: {plain(found['error'] or 'no reason is given')}",
            notes=(f"Its steps: sluice operation show {operation_id}",),
            code=found["error_code"] or "",
        )
    return found


def _ended(client: Client, operation_id: str, *, output: Output, clock: Clock, timeout_s: float) -> dict[str, Any]:
    until, pause_s = clock.now() + timeout_s, FIRST_PAUSE_S
    told = 0
    with _status() as status:
        while True:
            found: dict[str, Any] = client.call(ops.OPERATION, {"operation_id": operation_id})
            if status is not None:
                status.update(_now(found))
            else:
                told = _tell(found, told, output)
            if found["state"] != RUNNING or clock.now() + pause_s > until:
                return found
            clock.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)


@contextlib.contextmanager
def _status() -> Iterator[Status | None]:
    console = stderr_console()
    if console is None:
        yield None
    else:
        with console.status("") as status:
            yield status


def _now(found: dict[str, Any]) -> str:
    """One line: how far, and what is being done."""
    step = next((step for step in found["steps"] if step["state"] in (RUNNING, PENDING)), None)
    doing = "" if step is None else f"  {step['name']}" + (f": {step['note']}" if step["note"] else "")
    # The status line reads markup; a bracket in a note is none.
    return plain(f"{found['progress']} %{doing}").replace("[", r"\[")


def _tell(found: dict[str, Any], told: int, output: Output) -> int:
    """Steps that are over since the last look, a line each; how many have been told now."""
    over = [step for step in found["steps"] if step["state"] not in (RUNNING, PENDING)]
    for step in over[told:]:
        output.note(f"{step['name']}: {step['state']}")
    return len(over)
