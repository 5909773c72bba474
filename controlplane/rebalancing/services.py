"""What operators do with proposals. A proposal is a dry run: nothing moves until somebody has it carried out.

    propose -> (planned by a worker) -> [approve] -> carry out -> pause, resume, cancel, another throttle -> [roll back]

One at a time is under way in a cluster: who begins holds the row of the cluster until it is committed. Each of these writes an
event with its actor, in the transaction of the change. SLUICE_REBALANCE_APPROVAL says whether a second person has to approve.
"""

from __future__ import annotations

import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction

from controlplane.clusters.models import Broker, PhysicalCluster
from controlplane.core import ids, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, FieldProblem, Forbidden, Invalid, NotFound
from controlplane.instances.models import Instance
from controlplane.rebalancing import summaries
from controlplane.rebalancing.models import (
    DEFAULT_AT_ONCE,
    DEFAULT_THROTTLE_BYTES_PER_S,
    OVER,
    UNDER_WAY,
    MoveState,
    Rebalance,
    RebalanceEvent,
    RebalanceMove,
    RebalanceState,
)
from controlplane.rebalancing.planner.model import DEFAULT_GOALS, Goal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLAN, CARRY_OUT = "rebalance.plan", "rebalance.carry_out"
EXPIRES_AFTER = timedelta(hours=24)
LEAST_THROTTLE_BYTES_PER_S = 64 * 1024
"""Below this nothing of any size ends."""
MOST_AT_ONCE = 500
MOST_THROTTLE_BYTES_PER_S = 2**40
MARGIN_PERCENT, MOST_MARGIN_PERCENT = 10, 100


@transaction.atomic
def rebalance_propose(
    *,
    cluster: PhysicalCluster,
    actor: str,
    goals: Sequence[str] = tuple(map(str, DEFAULT_GOALS)),
    cordoned: Sequence[int] = (),
    draining: Sequence[int] = (),
    demoted: Sequence[int] = (),
    instances: Sequence[str] = (),
    margin_percent: int = MARGIN_PERCENT,
    leaders_only: bool = False,
    in_windows: bool = False,
    throttle_bytes_per_s: int = DEFAULT_THROTTLE_BYTES_PER_S,
    at_once: int = DEFAULT_AT_ONCE,
    cause: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> Rebalance:
    """A proposal, which a worker plans. Raises Invalid.

    `in_windows`: partitions of an instance that has a maintenance window begin to move only while it is open. `cause`: why there
    is one though nobody has asked for it (`automatic`).
    """
    wishes = {
        "goals": list(goals),
        "cordoned": sorted(set(cordoned)),
        "draining": sorted(set(draining)),
        "demoted": sorted(set(demoted)),
        "instances": list(dict.fromkeys(instances)),
        "margin_percent": margin_percent,
        "leaders_only": leaders_only,
        "in_windows": in_windows,
    }
    problems = _problems(cluster, wishes) + pace_problems(throttle_bytes_per_s, at_once)
    if problems:
        raise Invalid.fields(problems)
    row = _new(cluster, actor, wishes, throttle_bytes_per_s, at_once, clock, cause=cause)
    _begin_planning(row, actor, clock)
    _record(row, actor, "propose", clock, wishes | ({"cause": cause} if cause else {}))
    return row


@transaction.atomic
def rebalance_approve(*, rebalance_id: str, actor: str, clock: Clock = SYSTEM_CLOCK) -> Rebalance:
    """A second person's word. Raises NotFound, Conflict, Forbidden."""
    row = _locked(rebalance_id)
    _expect(row, [RebalanceState.PROPOSED], "approved")
    if row.approved_by:
        if row.approved_by == actor:
            return row
        raise Conflict(f"{row.approved_by} has approved it already", code="rebalance_approved")
    if actor == row.created_by:
        raise Forbidden(f"you have proposed {row.id} yourself: another operator has to approve it")
    row.approved_by, row.approved_at = actor, clock.now()
    row.save(update_fields=["approved_by", "approved_at"])
    _record(row, actor, "approve", clock)
    return row


@transaction.atomic
def rebalance_carry_out(*, rebalance_id: str, actor: str, clock: Clock = SYSTEM_CLOCK) -> Rebalance:
    """Begin. Asked again while it is under way, the answer is the same. Raises NotFound, Conflict."""
    row = _locked(rebalance_id)
    if row.state in UNDER_WAY:
        return row
    _expect(row, [RebalanceState.PROPOSED], "carried out")
    if row.expires_at <= clock.now():
        raise Conflict(
            "the proposal has expired: the cluster may have changed since. Make a new one", code="rebalance_expired"
        )
    if settings.ENVIRONMENT.rebalance_approval and not row.approved_by:
        raise Conflict(f"an operator other than {row.created_by} has to approve it first", code="rebalance_unapproved")
    other = Rebalance.objects.filter(cluster=row.cluster, state__in=UNDER_WAY).first()
    if other is not None:
        raise Conflict(
            f"one at a time: {other.id} is under way in this cluster. Wait for it, or cancel it",
            code="rebalance_under_way",
        )
    row.state, row.begun_at = RebalanceState.RUNNING, clock.now()
    row.operation = operations.start(organisation=None, kind=CARRY_OUT, target=row.id, actor=actor, clock=clock)
    row.save(update_fields=["state", "begun_at", "operation"])
    _record(row, actor, "carry_out", clock)
    return row


def rebalance_pause(*, rebalance_id: str, actor: str, clock: Clock = SYSTEM_CLOCK) -> Rebalance:
    """Begin nothing new; what is under way goes on. Raises NotFound, Conflict."""
    return _turn(rebalance_id, actor, "pause", "paused", RebalanceState.PAUSED, [RebalanceState.RUNNING], clock)


def rebalance_resume(*, rebalance_id: str, actor: str, clock: Clock = SYSTEM_CLOCK) -> Rebalance:
    """Go on. Raises NotFound, Conflict."""
    return _turn(rebalance_id, actor, "resume", "resumed", RebalanceState.RUNNING, [RebalanceState.PAUSED], clock)


@transaction.atomic
def rebalance_cancel(*, rebalance_id: str, actor: str, clock: Clock = SYSTEM_CLOCK) -> Rebalance:
    """Call back what is under way; what is done stays. A proposal that nobody began is over at once.

    Raises NotFound, Conflict.
    """
    row = _locked(rebalance_id)
    if row.state == RebalanceState.CANCELLED:
        return row
    if row.state in (RebalanceState.PROPOSED, RebalanceState.PLANNING):
        row.state, row.finished_at = RebalanceState.CANCELLED, clock.now()
        row.save(update_fields=["state", "finished_at"])
        _record(row, actor, "cancel", clock)
        return row
    return _turn(
        rebalance_id,
        actor,
        "cancel",
        "cancelled",
        RebalanceState.CANCELLING,
        [RebalanceState.RUNNING, RebalanceState.PAUSED],
        clock,
    )


@transaction.atomic
def rebalance_pace(
    *,
    rebalance_id: str,
    actor: str,
    throttle_bytes_per_s: int | None = None,
    at_once: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Rebalance:
    """Another throttle, or another number of partitions at once; also while it is under way.

    Raises NotFound, Conflict, Invalid.
    """
    if throttle_bytes_per_s is None and at_once is None:
        raise Invalid("nothing to change: give throttle_bytes_per_s, at_once or both")
    row = _locked(rebalance_id)
    _expect(row, [RebalanceState.PLANNING, RebalanceState.PROPOSED, *UNDER_WAY], "changed")
    throttle = row.throttle_bytes_per_s if throttle_bytes_per_s is None else throttle_bytes_per_s
    count = row.at_once if at_once is None else at_once
    problems = pace_problems(throttle, count)
    if problems:
        raise Invalid.fields(problems)
    row.throttle_bytes_per_s, row.at_once = throttle, count
    row.save(update_fields=["throttle_bytes_per_s", "at_once"])
    _record(row, actor, "pace", clock, {"throttle_bytes_per_s": throttle, "at_once": count})
    return row


@transaction.atomic
def rebalance_roll_back(*, rebalance_id: str, actor: str, clock: Clock = SYSTEM_CLOCK) -> Rebalance:
    """A proposal for the way back, of what this one has moved. It is approved and carried out as any.

    Raises NotFound, Conflict.
    """
    row = _locked(rebalance_id)
    _expect(row, OVER, "rolled back")
    done = list(row.moves.filter(state=MoveState.DONE).order_by("-number"))
    if not done:
        raise Conflict("there is nothing to roll back: it has moved nothing", code="nothing_moved")
    back = _new(row.cluster, actor, row.wishes, row.throttle_bytes_per_s, row.at_once, clock)
    moves = [_reversed(back, number, move) for number, move in enumerate(done)]
    back.rollback_of, back.state = row, RebalanceState.PROPOSED
    back.summary = summaries.backwards(
        row.summary or {},
        moves=len(moves),
        leader_moves=sum(not move.copies for move in moves),
        bytes_to_copy=sum(move.bytes_to_copy for move in moves),
        busiest=_busiest(moves),
    )
    back.save()
    RebalanceMove.objects.bulk_create(moves, batch_size=1000)
    _record(back, actor, "roll_back", clock, {"of": row.id})
    return back


def _reversed(back: Rebalance, number: int, move: RebalanceMove) -> RebalanceMove:
    copied = sum(broker not in move.after for broker in move.before) * move.size_bytes
    return RebalanceMove(
        rebalance=back,
        number=number,
        topic=move.topic,
        partition=move.partition,
        instance=move.instance,
        before=move.after,
        after=move.before,
        size_bytes=move.size_bytes,
        copies=any(broker not in move.after for broker in move.before),
        bytes_to_copy=copied,
        returns_bytes_per_s=-move.returns_bytes_per_s,
    )


def _busiest(moves: Sequence[RebalanceMove]) -> int:
    taken: dict[tuple[str, int], int] = {}
    for move in moves:
        for broker in move.added:
            for way in (("in", broker), ("out", move.before[0])):
                taken[way] = taken.get(way, 0) + move.size_bytes
    return max(taken.values(), default=0)


def _new(
    cluster: PhysicalCluster,
    actor: str,
    wishes: Mapping[str, Any],
    throttle: int,
    at_once: int,
    clock: Clock,
    *,
    cause: str = "",
) -> Rebalance:
    row = Rebalance(
        id=ids.rebalance_id(random.SystemRandom()),
        cluster=cluster,
        wishes=dict(wishes),
        throttle_bytes_per_s=throttle,
        at_once=at_once,
        cause=cause,
        created_by=actor,
        created_at=clock.now(),
        expires_at=clock.now() + EXPIRES_AFTER,
    )
    row.save(force_insert=True)
    return row


def _begin_planning(row: Rebalance, actor: str, clock: Clock) -> None:
    row.operation = operations.start(organisation=None, kind=PLAN, target=row.id, actor=actor, clock=clock)
    row.save(update_fields=["operation"])


@transaction.atomic
def _turn(
    rebalance_id: str,
    actor: str,
    action: str,
    done: str,
    into: RebalanceState,
    of: Sequence[RebalanceState],
    clock: Clock,
) -> Rebalance:
    row = _locked(rebalance_id)
    if row.state == into:
        return row
    _expect(row, of, done)
    row.state = into
    row.save(update_fields=["state"])
    _record(row, actor, action, clock)
    if row.operation_id is not None:
        wanted = row.operation_id
        transaction.on_commit(lambda: operations.wake([wanted]))
    return row


def _locked(rebalance_id: str) -> Rebalance:
    """The row, with its cluster's held until the transaction ends. Raises NotFound."""
    row = Rebalance.objects.select_related("cluster").filter(pk=rebalance_id).first()
    if row is None:
        raise NotFound(f"no rebalance {rebalance_id}")
    PhysicalCluster.objects.select_for_update().get(pk=row.cluster_id)
    row.refresh_from_db()
    return row


def _expect(row: Rebalance, states: Sequence[RebalanceState], done: str) -> None:
    if row.state not in states:
        allowed = " or ".join(states)
        raise Conflict(
            f"the rebalance is {row.state} and cannot be {done}: only one that is {allowed} can", code="rebalance_state"
        )


def _record(row: Rebalance, actor: str, action: str, clock: Clock, detail: Mapping[str, Any] | None = None) -> None:
    RebalanceEvent(rebalance=row, actor=actor, action=action, detail=dict(detail or {}), at=clock.now()).save(
        force_insert=True
    )


def _problems(cluster: PhysicalCluster, wishes: Mapping[str, Any]) -> list[FieldProblem]:
    known = set(Broker.objects.filter(cluster=cluster).values_list("broker_id", flat=True))
    found = [
        FieldProblem(name, f"there is no broker {number} in this cluster")
        for name in ("cordoned", "draining", "demoted")
        for number in wishes[name]
        if number not in known
    ]
    if set(wishes["goals"]) - set(map(str, Goal)):
        found.append(FieldProblem("goals", f"must be some of {', '.join(Goal)}"))
    if len(set(wishes["goals"])) != len(wishes["goals"]):
        found.append(FieldProblem("goals", "names a goal twice"))
    if not 0 <= wishes["margin_percent"] <= MOST_MARGIN_PERCENT:
        found.append(FieldProblem("margin_percent", f"must be at least 0 and at most {MOST_MARGIN_PERCENT}"))
    there = set(
        Instance.objects.unscoped("operators name any tenant's")
        .filter(cluster=cluster, pk__in=wishes["instances"])
        .values_list("pk", flat=True)
    )
    found += [
        FieldProblem("instances", f"there is no instance {name} in this cluster")
        for name in wishes["instances"]
        if name not in there
    ]
    return found


def pace_problems(throttle: int, at_once: int) -> list[FieldProblem]:
    """What is wrong with how fast it is to go."""
    found = []
    if not LEAST_THROTTLE_BYTES_PER_S <= throttle <= MOST_THROTTLE_BYTES_PER_S:
        text = f"must be at least {LEAST_THROTTLE_BYTES_PER_S} and at most {MOST_THROTTLE_BYTES_PER_S} bytes a second"
        found.append(FieldProblem("throttle_bytes_per_s", text))
    if not 1 <= at_once <= MOST_AT_ONCE:
        found.append(FieldProblem("at_once", f"must be at least 1 and at most {MOST_AT_ONCE}"))
    return found
