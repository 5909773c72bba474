"""Long operations: work in visible, idempotent steps that survive the death of the worker.

Vocabulary. A *kind* of operation has named steps in an order, each a function. A step *finishes* (Finished), is
*not yet* ready (returns NotYet: come back in so many seconds), or raises. A *claim* is the right to work on an
operation, held by a lease.

Strategy. The row is everything; a Celery message is only a wake-up. Beat offers every operation that is runnable or
whose lease has expired; whoever hears of it claims it by ``UPDATE … WHERE version = <the one read>``, which at most one
can win on any database, and every later write of the worker is guarded in the same way. A worker that was paused beyond
its lease finds another version and stops. It may have repeated part of a step by then: steps must bear that.

A step that raises a retriable error, or one we did not foresee, is tried again with growing pauses, and after
ATTEMPTS ends the operation; so does any other SluiceError at once, and a step that was "not yet" for longer than its
patience. When an operation fails, its kind is told, and may mark the target.
"""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeGuard

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from controlplane.core import audit, dry_runs, ids, kept
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import LimitReached, OperationFailed, SluiceError
from controlplane.core.models import Operation, OperationState, StepState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controlplane.core.scope import Tenant

LOG = logging.getLogger(__name__)

ATTEMPTS = 6
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
SHORT_WAIT_S = 0.5
"""A "not yet" of at most this is waited for in place, holding the lease: most waits end within a second or two."""
WAITS_IN_PLACE = 10
MOST_RUNNING = 20
"""Operations of a tenant on one target at once."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The step is done. `result` members are merged into the operation's result."""

    note: str = ""
    result: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class NotYet:
    """The world is not there yet, or a part of the work is done: go on after a while. `result` is merged as Finished's is."""

    note: str
    after_s: float = SHORT_WAIT_S
    result: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One visible step. `run` must be idempotent. `patience_s` bounds how long it may be "not yet"."""

    name: str
    run: Callable[[Operation], Finished | NotYet]
    patience_s: float = 60.0


@dataclass(frozen=True, slots=True)
class OperationKind:
    """The steps of one kind of operation, and what is done about its target when it fails.

    One `beside` others only watches what is done elsewhere: it is not counted among those that run on the target.
    """

    kind: str
    steps: tuple[Step, ...]
    failed: Callable[[Operation], None] = lambda _operation: None
    beside: bool = False


Outcome = Finished | NotYet | Exception
"""What an attempt at a step can come to."""

_KINDS: dict[str, OperationKind] = {}


def register(kind: OperationKind) -> None:
    """Make a kind of operation known. Called once per kind, when Django starts."""
    _KINDS[kind.kind] = kind


def planned(kind: str) -> dry_runs.Begun:
    """What beginning one of this kind would do: for a dry run that does not begin it."""
    return dry_runs.Begun(kind, tuple(step.name for step in _KINDS[kind].steps))


def start(
    *,
    organisation: Tenant | None,
    kind: str,
    target: str,
    actor: str = audit.SYSTEM,
    arguments: dict[str, Any] | None = None,
    counted: bool = True,
    clock: Clock = SYSTEM_CLOCK,
    source: ids.RandomSource | None = None,
) -> Operation:
    """Write a new operation, inside the transaction that writes what it is about. Workers hear of it on commit.

    Without an organisation it is the service's own: for its operators. Raises LimitReached where a tenant has MOST_RUNNING on the
    target already, unless it is not `counted`: what takes away, and what operators do, is never refused. The caller has written
    the target's row in this transaction, so that of two who would be the last one the second waits, and counts the first.
    """
    if counted and organisation is not None:
        _check_running(organisation, target)
    operation = Operation(
        id=ids.operation_id(source or random.SystemRandom()),
        organisation_id=None if organisation is None else organisation.pk,
        kind=kind,
        target=target,
        actor=actor,
        arguments=arguments or {},
        steps=[{"name": step.name, "state": StepState.PENDING.value, "note": ""} for step in _KINDS[kind].steps],
        runnable_at=clock.now(),
        created_at=clock.now(),
    )
    operation.save(force_insert=True)
    dry_runs.note_begun(planned(kind))
    transaction.on_commit(lambda: wake([operation.id]))
    return operation


def kinds_beside() -> list[str]:
    """Of operations that only watch what is done elsewhere: they say nothing of how their target is."""
    return [kind.kind for kind in _KINDS.values() if kind.beside]


def _check_running(organisation: Tenant, target: str) -> None:
    beside = kinds_beside()
    rows = Operation.objects.for_organisation(organisation).filter(target=target, state=OperationState.RUNNING)
    if rows.exclude(kind__in=beside).count() >= MOST_RUNNING:
        raise LimitReached(
            f"{MOST_RUNNING} operations are running on {target}, and no more may: wait until one has ended",
            code="too_many_operations",
        )


def wake(operation_ids: Sequence[str]) -> None:
    """Send wake-ups. A broker that is away is no error: beat offers the same operations again."""
    from controlplane.core.tasks import operation_run  # noqa: PLC0415  # tasks import this module

    if kept.is_away():  # asked there, it says so within a second; a message would take five
        LOG.warning("no wake-up for operations: Redis does not answer")
        return
    for operation_id in operation_ids:
        try:
            operation_run.apply_async(args=[operation_id], expires=10, retry=False)
        except Exception as error:  # noqa: BLE001  # kombu and redis raise many kinds; none may fail the request
            LOG.warning("no wake-up for operation %s: %s", operation_id, error)
            return


def runnable(*, clock: Clock = SYSTEM_CLOCK) -> QuerySet[Operation]:
    """Operations that nobody works on and that may go on now, oldest first."""
    now = clock.now()
    return (
        Operation.objects.unscoped("workers serve every organisation")
        .filter(state=OperationState.RUNNING, runnable_at__lte=now)
        .filter(Q(lease_until__isnull=True) | Q(lease_until__lt=now))
        .order_by("runnable_at")
    )


def run(operation_id: str, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Claim an operation and carry it as far as it goes now. False if there was nothing to claim."""
    operation = runnable(clock=clock).filter(pk=operation_id).first()
    if operation is None or not _claim(operation, clock):
        return False
    waits, held = 0, True
    while held and operation.state == OperationState.RUNNING and operation.lease_until is not None:
        step = _step(operation)
        outcome = _attempt(step, operation)
        if _wait_in_place(outcome, step, operation, clock) and waits < WAITS_IN_PLACE:
            waits += 1
            held = _save(operation, {**_so_far(operation, outcome), "lease_until": _lease(clock)})
            clock.sleep(outcome.after_s)
        else:
            held = _record(step, operation, outcome, clock)
    return True


def _wait_in_place(outcome: Outcome, step: Step, operation: Operation, clock: Clock) -> TypeGuard[NotYet]:
    short = isinstance(outcome, NotYet) and outcome.after_s <= SHORT_WAIT_S
    return short and not _out_of_patience(step, operation, clock)


def _claim(operation: Operation, clock: Clock) -> bool:
    began = operation.step_began_at or clock.now()
    return _save(
        operation, {**_mark(operation, StepState.RUNNING), "lease_until": _lease(clock), "step_began_at": began}
    )


def _attempt(step: Step, operation: Operation) -> Outcome:
    """Run the step, catching everything: whatever goes wrong is an outcome to be recorded."""
    try:
        return step.run(operation)
    except SluiceError as error:
        LOG.warning("operation %s, %s: %s", operation, step.name, error)
        return error
    except Exception as error:
        LOG.exception("operation %s, %s", operation, step.name)
        return error


def _record(step: Step, operation: Operation, outcome: Outcome, clock: Clock) -> bool:
    """Write what became of an attempt. False if another worker has taken over."""
    if isinstance(outcome, Finished):
        return _finish_step(operation, outcome, clock)
    if isinstance(outcome, NotYet):
        if _out_of_patience(step, operation, clock):
            return _fail(operation, OperationFailed(_patience_text(step, outcome)), clock)
        return _pause(operation, outcome.after_s, _so_far(operation, outcome), clock)
    hopeless = isinstance(outcome, SluiceError) and not outcome.retriable
    final = hopeless or operation.attempts + 1 >= ATTEMPTS
    if final:
        return _fail(operation, outcome, clock)
    pause_s = min(FIRST_PAUSE_S * 2**operation.attempts, LONGEST_PAUSE_S)
    note = f"attempt {operation.attempts + 1} failed, trying again: {_error_text(outcome)}"
    return _pause(operation, pause_s, {**_note(operation, note), "attempts": operation.attempts + 1}, clock)


def _finish_step(operation: Operation, outcome: Finished, clock: Clock) -> bool:
    changes: dict[str, Any] = {**_mark(operation, StepState.SUCCEEDED, outcome.note), **_merged(operation, outcome)}
    if operation.step + 1 == len(operation.steps):
        changes |= {"state": OperationState.SUCCEEDED, "lease_until": None, "finished_at": clock.now()}
        return _save(operation, changes)
    changes |= {"step": operation.step + 1, "attempts": 0, "step_began_at": clock.now(), "lease_until": _lease(clock)}
    changes["steps"][operation.step + 1]["state"] = StepState.RUNNING.value
    return _save(operation, changes)


def _pause(operation: Operation, seconds: float, changes: dict[str, Any], clock: Clock) -> bool:
    """Let go of the operation until later."""
    later = clock.now() + timedelta(seconds=seconds)
    return _save(operation, {**changes, "runnable_at": later, "lease_until": None})


def _fail(operation: Operation, error: Exception, clock: Clock) -> bool:
    text = _error_text(error)
    changes = {
        **_mark(operation, StepState.FAILED, text),
        "state": OperationState.FAILED,
        "error": text,
        "error_code": error.code if isinstance(error, SluiceError) else SluiceError.code,
        "lease_until": None,
        "finished_at": clock.now(),
    }
    with transaction.atomic():  # the mark on the target stands or falls with the failure
        saved = _save(operation, changes)
        if saved:
            _KINDS[operation.kind].failed(operation)
    return saved


def _save(operation: Operation, changes: dict[str, Any]) -> bool:
    """Compare-and-set on the version: the one guard of every write."""
    rows = Operation.objects.unscoped("a worker writes what it claimed").filter(
        pk=operation.pk, version=operation.version
    )
    if not rows.update(version=operation.version + 1, **changes):
        LOG.warning("operation %s was taken over by another worker", operation)
        return False
    operation.version += 1
    for name, value in changes.items():
        setattr(operation, name, value)
    return True


def _mark(operation: Operation, state: StepState, note: str = "") -> dict[str, Any]:
    """The change that gives the present step a state."""
    steps = [dict(step) for step in operation.steps]
    steps[operation.step] |= {"state": state.value, "note": note}
    return {"steps": steps}


def _note(operation: Operation, note: str) -> dict[str, Any]:
    return _mark(operation, StepState.RUNNING, note)


def _so_far(operation: Operation, outcome: NotYet) -> dict[str, Any]:
    return {**_note(operation, outcome.note), **_merged(operation, outcome)}


def _merged(operation: Operation, outcome: Finished | NotYet) -> dict[str, Any]:
    return {"result": {**(operation.result or {}), **outcome.result}} if outcome.result else {}


def _lease(clock: Clock) -> Any:
    return clock.now() + timedelta(seconds=settings.ENVIRONMENT.lease_s)


def _out_of_patience(step: Step, operation: Operation, clock: Clock) -> bool:
    began = operation.step_began_at or clock.now()
    return clock.now() - began > timedelta(seconds=step.patience_s)


def _patience_text(step: Step, outcome: NotYet) -> str:
    return f"gave up after {step.patience_s:.0f} s: {outcome.note}"


def _error_text(error: Exception) -> str:
    """What a tenant may read. The text of an unforeseen error stays in the log: it may name things of others."""
    return error.detail if isinstance(error, SluiceError) else "an internal error; the log has the details"


def _step(operation: Operation) -> Step:
    """The code of the present step, found by name: an operation begun by an older release keeps its own steps."""
    name = operation.steps[operation.step]["name"]
    for step in _KINDS[operation.kind].steps:
        if step.name == name:
            return step

    def gone(_operation: Operation) -> Finished:
        raise OperationFailed(f"this release does not know the step {name!r}")

    return Step(name, gone)
