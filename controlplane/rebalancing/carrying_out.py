"""The steps of a rebalance's operations. Each is idempotent: a worker may die in the middle of any of them.

=========== ============================================================================
plan        look at the cluster and plan
carry out   move partitions; take the throttle away
=========== ============================================================================

Moving is a comparison, made again and again until nothing is left: what rows say beside what the cluster shows (`rounds`). A
row is marked before the controller is asked, so a worker that dies in between leaves a mark, and the next one asks again: to go
where one goes already changes nothing. A cluster that does not answer is waited for: what is under way goes on without us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.core import operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.operations import Finished, NotYet, OperationKind, Step
from controlplane.kafka import placement_door
from controlplane.rebalancing import picture, rounds, throttling
from controlplane.rebalancing.models import OVER, MoveState, Rebalance, RebalanceMove, RebalanceState
from controlplane.rebalancing.planner.model import Goal, Wishes
from controlplane.rebalancing.planner.planning import plan
from controlplane.rebalancing.services import CARRY_OUT, PLAN
from controlplane.rebalancing.summaries import summary_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from controlplane.core.models import Operation
    from controlplane.rebalancing.planner.model import Plan

PLANNING_PATIENCE_S = 600.0
MOVING_PATIENCE_S = 30 * 24 * 3600.0
"""Terabytes at a throttle take days. A pause counts as well."""
ENDING_S = 24 * 3600.0
"""So long before patience is over nothing waits for a window any more, and what is under way then has time to end."""
AWAY_PAUSE_S, ROUND_PAUSE_S, WINDOWS_PAUSE_S = 5.0, 2.0, 30.0
LEADERS_PAUSE_S = operations.SHORT_WAIT_S
"""Changing leaders takes no time, so the worker waits in place; for days of copying it would be missed elsewhere."""


def register() -> None:
    """Make both kinds of operation known."""
    operations.register(
        OperationKind(
            PLAN, (Step("look at the cluster and plan", look_and_plan, PLANNING_PATIENCE_S),), failed=mark_failed
        )
    )
    operations.register(
        OperationKind(
            CARRY_OUT,
            (
                Step("move partitions", move_partitions, MOVING_PATIENCE_S),
                Step("take the throttle away", take_throttle_away, MOVING_PATIENCE_S),
            ),
            failed=mark_failed,
        )
    )


def look_and_plan(operation: Operation) -> Finished:
    """The moves, as rows, and the figures. One that was cancelled meanwhile stays so."""
    row = _row(operation)
    seen = picture.cluster_seen(row.cluster, scope=row.wishes["instances"])
    found = plan(seen.cluster, wishes_of(row.wishes))
    with transaction.atomic():
        planned = Rebalance.objects.filter(pk=row.pk, state=RebalanceState.PLANNING)
        if planned.update(state=RebalanceState.PROPOSED, summary=summary_of(found, seen.notes)):
            row.moves.all().delete()
            RebalanceMove.objects.bulk_create(_moves(row, found), batch_size=1000)
    return Finished(note=f"{len(found.moves)} moves")


def move_partitions(operation: Operation) -> Finished | NotYet:
    """One round; there is another as long as something is to be done."""
    row = _row(operation)
    if row.state in OVER:
        return Finished(
            note=rounds.outcome_of(row)
        )  # it has failed, and its operation runs on: nothing is begun any more
    try:
        now = SYSTEM_CLOCK.now()
        if row.state == RebalanceState.RUNNING and _ends_soon(operation, now):
            rounds.give_windows_up(row, now)
        left = rounds.round_of(row, placement_door.door(row.cluster.address), now=now)
    except ClusterUnavailable as error:
        return NotYet(str(error), after_s=AWAY_PAUSE_S)
    if left is None:
        return Finished(note=rounds.outcome_of(row))
    pause_s = WINDOWS_PAUSE_S if left.in_windows else LEADERS_PAUSE_S if left.only_leaders else ROUND_PAUSE_S
    return NotYet(left.text, after_s=pause_s)


def take_throttle_away(operation: Operation) -> Finished | NotYet:
    """Brokers replicate as fast as they can again, and the proposal is over."""
    row = _row(operation)
    try:
        throttling.release(row, placement_door.door(row.cluster.address))
    except ClusterUnavailable as error:
        return NotYet(str(error), after_s=AWAY_PAUSE_S)
    if row.state in OVER:
        return Finished()  # by a worker that died before it could say so
    ended = RebalanceState.CANCELLED if row.state == RebalanceState.CANCELLING else RebalanceState.DONE
    left_out = row.moves.filter(state__in=(MoveState.SKIPPED, MoveState.FAILED)).count()
    problem = (
        f"{left_out} of {row.moves.count()} moves could not be made: each says why. Propose again for what is left"
        if left_out
        else ""
    )
    as_read = Rebalance.objects.filter(pk=row.pk, state=row.state)
    if not as_read.update(state=ended, problem=problem, finished_at=SYSTEM_CLOCK.now()):
        return NotYet("somebody has paused or cancelled it meanwhile")
    return Finished()


def _ends_soon(operation: Operation, now: datetime) -> bool:
    began = operation.step_began_at or now
    return (now - began).total_seconds() > MOVING_PATIENCE_S - ENDING_S


def mark_failed(operation: Operation) -> None:
    """It gave up. What the controller has of it goes on; the throttle is taken back by `upkeep`."""
    # By the row's own operation alone: one of planning may be late, and what was begun since is none of its business.
    Rebalance.objects.filter(pk=operation.target, operation=operation).exclude(state__in=OVER).update(
        state=RebalanceState.FAILED, problem=operation.error, finished_at=SYSTEM_CLOCK.now()
    )


def wishes_of(document: Mapping[str, Any]) -> Wishes:
    """From the row's document."""
    return Wishes(
        goals=tuple(Goal(name) for name in document["goals"]),
        cordoned=frozenset(document["cordoned"]),
        draining=frozenset(document["draining"]),
        demoted=frozenset(document["demoted"]),
        margin_percent=document["margin_percent"],
        leaders_only=document["leaders_only"],
    )


def _moves(row: Rebalance, found: Plan) -> list[RebalanceMove]:
    return [
        RebalanceMove(
            rebalance=row,
            number=number,
            topic=move.topic,
            partition=move.partition,
            instance=move.instance,
            before=list(move.before),
            after=list(move.after),
            size_bytes=move.size_bytes,
            copies=not move.is_leader_only,
            bytes_to_copy=move.bytes_to_copy,
            returns_bytes_per_s=move.returns_bytes_per_s,
        )
        for number, move in enumerate(found.moves)
    ]


def _row(operation: Operation) -> Rebalance:
    return Rebalance.objects.select_related("cluster").get(pk=operation.target)
