"""One round of carrying out: what rows say beside what the cluster shows, and one step for each partition.

======================  ===================================  ===========================================================
the row                 the cluster                          what is done
======================  ===================================  ===========================================================
asked, moving           on its way there                     nothing: it copies
asked, moving           there, its first replica leads       done
asked, moving           there, another leads                 an election
asked, moving           neither there nor on its way         asked for again, ASKED_AT_MOST times
asked, moving           on its way elsewhere, or gone        failed; skipped
cancelling              on its way                           called back
cancelling              back, in another order               put in order: the first replica is to lead again
cancelling              both old and new replicas are seen   nothing: metadata are late
cancelling              there; not there                     done; cancelled
waiting, as its turn    as the plan knew it                  marked as asked, named as throttled, asked for
comes                   there already; otherwise             done; skipped
waiting, in windows     its instance's is closed             nothing: its turn comes when the window opens
waiting, in windows     it goes where such a one has yet to  nothing: the plan has counted on that one's room
                        leave
======================  ===================================  ===========================================================

The controller is asked what is on its way, and metadata of any broker say where partitions are: those may be late, and what is
concluded from them is always something that may be done twice. A worker that was overtaken by another does the same again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from django.db.models import Count, F, Sum

from controlplane.instances.models import Instance
from controlplane.instances.windows import begins_next, is_open
from controlplane.rebalancing import throttling
from controlplane.rebalancing.models import ACTIVE, MoveState, Rebalance, RebalanceMove, RebalanceState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controlplane.kafka.flexible import Place
    from controlplane.kafka.placement_door import Placed, PlacementDoor
    from controlplane.kafka.placing import Ongoing, Refusal

ASKED_AT_MOST = 20
LEADERS_AT_ONCE = 200
GONE = "the topic, or the partition, is gone"
CHANGED = "its replicas are others than when the plan was made"
ELSEWHERE = "somebody else moves it"
LOST = "the controller has taken it 20 times, and it does not stay under way"
WINDOWS_TOO_SHORT = (
    "its maintenance window, or that of what it waits for, did not suffice within the time of a rebalance"
)
NOT_CALLED_BACK = "the controller does not call it back: it goes on"


@dataclass(slots=True)
class _Acts:
    """What is to be asked for in this round."""

    again: list[RebalanceMove] = field(default_factory=list)
    elect: list[RebalanceMove] = field(default_factory=list)
    back: list[RebalanceMove] = field(default_factory=list)
    sort: list[RebalanceMove] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Left:
    """What is still to be done, in words; whether nothing is being copied meanwhile; whether all of it waits for windows."""

    text: str
    only_leaders: bool
    in_windows: bool = False


def round_of(row: Rebalance, door: PlacementDoor, *, now: datetime) -> Left | None:
    """Make a round; None: nothing is left. Raises ClusterUnavailable."""
    under_way, placed = door.under_way(), {each.place: each for each in door.placed()}
    held = _held_up(row, now)
    is_slowed = row.state != RebalanceState.CANCELLING or row.throttle_in_force is not None
    if is_slowed and row.moves.filter(copies=True).exists() and not _all_waits(row, held):
        throttling.set_rate(row, door)
    active = list(row.moves.filter(state__in=ACTIVE).order_by("number"))
    acts = _Acts()
    for move in active:
        _look(row, move, placed.get(move.place), under_way.get(move.place), acts, now)
    _measure(row, door)
    _act(row, acts, door, now)
    if row.state == RebalanceState.CANCELLING:
        row.moves.filter(state=MoveState.WAITING).update(state=MoveState.CANCELLED, finished_at=now)
        held = {}
    elif row.state == RebalanceState.RUNNING:
        _begin(row, door, placed, held, now)
    left = _left(row, held)
    if left is not None and left.in_windows:
        throttling.release(row, door)  # for days a follower that restarts would catch up at the rebalance's rate
    return left


def give_windows_up(row: Rebalance, now: datetime) -> None:
    """Skip what a closed window holds up: there is no time to wait for the next."""
    held = row.moves.filter(pk__in=_held_up(row, now), state=MoveState.WAITING)
    held.update(state=MoveState.SKIPPED, finished_at=now, problem=WINDOWS_TOO_SHORT)


def outcome_of(row: Rebalance) -> str:
    """Such as "40 done, 2 skipped"."""
    counts = row.moves.values("state").annotate(count=Count("pk")).order_by("state")
    return ", ".join(f"{each['count']} {each['state']}" for each in counts)


# --- looking ----------------------------------------------------------------------------------------------------------


def _look(
    row: Rebalance, move: RebalanceMove, seen: Placed | None, ongoing: Ongoing | None, acts: _Acts, now: datetime
) -> None:
    is_cancelling = row.state == RebalanceState.CANCELLING
    if seen is None:
        _end(move, MoveState.SKIPPED, now, GONE)
    elif ongoing is not None:
        if is_cancelling:
            acts.back.append(move)
        elif set(ongoing.target) != set(move.after):
            _end(move, MoveState.FAILED, now, ELSEWHERE)
        elif move.state == MoveState.ASKED:
            _mark(move, MoveState.MOVING)
    elif list(seen.replicas) == move.after and (is_cancelling or seen.leader == move.after[0]):
        _end(move, MoveState.DONE, now)
    elif is_cancelling and list(seen.replicas) != move.before and set(seen.replicas) == set(move.before):
        acts.sort.append(move)
    elif is_cancelling and move.added and set(seen.replicas) == {*move.before, *move.after}:
        pass  # the controller has ended it, one way or the other; metadata will say in a moment which
    elif is_cancelling:
        _end(move, MoveState.CANCELLED, now)
    elif list(seen.replicas) == move.after:
        acts.elect.append(move)
    elif move.asked >= ASKED_AT_MOST:
        _end(move, MoveState.FAILED, now, LOST)
    else:
        acts.again.append(move)


def _measure(row: Rebalance, door: PlacementDoor) -> None:
    """How much of each partition is where it shall be."""
    moving = [move for move in row.moves.filter(state__in=ACTIVE) if move.bytes_to_copy]
    if not moving:
        return
    brokers = sorted({broker for move in moving for broker in move.added})
    disks = door.disks(brokers, [move.place for move in moving])
    for move in moving:
        there = [disks[broker].sizes.get(move.place, 0) for broker in move.added if broker in disks]
        copied = sum(min(size, move.size_bytes) for size in there)
        if copied > move.copied_bytes:
            RebalanceMove.objects.filter(pk=move.pk).update(copied_bytes=copied)


# --- acting -----------------------------------------------------------------------------------------------------------


def _act(row: Rebalance, acts: _Acts, door: PlacementDoor, now: datetime) -> None:
    if acts.back:
        for move, refusal in _refused(acts.back, door.reassign(dict.fromkeys(move.place for move in acts.back))):
            RebalanceMove.objects.filter(pk=move.pk).update(problem=f"{NOT_CALLED_BACK}: {refusal.text}")
    if acts.sort:
        door.reassign({move.place: move.before for move in acts.sort})
    if acts.elect:
        door.elect([move.place for move in acts.elect])  # what is refused now is asked for again in the next round
    _ask(row, acts.again, door, now)


def _held_up(row: Rebalance, now: datetime) -> dict[int, datetime]:
    """Waiting moves that a closed window holds up, by their keys, with when it opens; none where the proposal has no windows.

    The plan has counted on the room of all that moves away, so a copy to a broker that a held move has yet to leave waits as
    well, and what waits for that one. A move that has a window of its own waits for earlier ones alone: two instances that
    change places in different windows would wait for each other for ever.
    """
    if not row.wishes.get("in_windows"):
        return {}
    moves = list(row.moves.filter(state=MoveState.WAITING).order_by("number"))
    rows = Instance.objects.unscoped("operators see every tenant's").filter(pk__in={move.instance for move in moves})
    windows = dict(rows.filter(maintenance_window__isnull=False).values_list("pk", "maintenance_window"))
    opens = {pk: begins_next(window, now) for pk, window in windows.items() if window and not is_open(window, now)}
    held: dict[int, datetime] = {}
    leaving: dict[int, datetime] = {}  # brokers that a held move has yet to leave

    def hold(move: RebalanceMove, until: datetime) -> None:
        held[move.pk] = until
        leaving.update(dict.fromkeys(set(move.before) - set(move.after), until))

    def hold_back(move: RebalanceMove) -> bool:
        awaited = [leaving[broker] for broker in move.added if broker in leaving]
        if awaited:
            hold(move, max(awaited))
        return bool(awaited)

    for move in moves:
        if move.instance in opens:
            hold(move, opens[move.instance])
        elif move.instance in windows:
            hold_back(move)
    others = [move for move in moves if move.instance not in windows]
    while leaving and any(hold_back(move) for move in others if move.pk not in held):
        pass  # one more is held, and others may wait for that one
    return held


def _all_waits(row: Rebalance, held: Mapping[int, datetime]) -> bool:
    """Whether nothing is under way, and all that is left waits for windows."""
    return bool(held) and not row.moves.filter(state__in=(MoveState.WAITING, *ACTIVE)).exclude(pk__in=held).exists()


def _begin(
    row: Rebalance, door: PlacementDoor, placed: Mapping[Place, Placed], held: Mapping[int, datetime], now: datetime
) -> None:
    """As many as there is room for. Each is marked first, unless somebody has stopped it all meanwhile."""
    if not Rebalance.objects.filter(pk=row.pk, state=RebalanceState.RUNNING).exists():
        return
    begun = []
    leading = _next(row, held, copies=False, most=LEADERS_AT_ONCE)
    for move in (*leading, *_next(row, held, copies=True, most=row.at_once)):
        seen = placed.get(move.place)
        if seen is None:
            _end(move, MoveState.SKIPPED, now, GONE)
        elif list(seen.replicas) == move.after and seen.leader == move.after[0]:
            _end(move, MoveState.DONE, now)
        elif list(seen.replicas) != move.before:
            _end(move, MoveState.SKIPPED, now, CHANGED)
        else:
            begun.append(move)
    taken = [move for move in begun if _mark(move, MoveState.ASKED, begun_at=now)]
    _ask(row, taken, door, now)


def _next(row: Rebalance, held: Mapping[int, datetime], *, copies: bool, most: int) -> list[RebalanceMove]:
    """Those whose turn it is. Changes of leaders are not held up by what is copied, nor others by what waits for a window."""
    rows = row.moves.filter(copies=copies)
    room = most - rows.filter(state__in=ACTIVE).count()
    waiting = rows.filter(state=MoveState.WAITING).order_by("number")
    return list(islice((move for move in waiting.iterator() if move.pk not in held), max(room, 0)))


def _ask(row: Rebalance, moves: list[RebalanceMove], door: PlacementDoor, now: datetime) -> None:
    """Have them go, those that have somewhere to go; of the others another replica is to lead."""
    if not moves:
        return
    throttling.name_replicas(row, door, {move.topic for move in moves if move.added})  # before anything is copied
    RebalanceMove.objects.filter(pk__in=[move.pk for move in moves]).update(asked=F("asked") + 1)
    going = [move for move in moves if move.before != move.after]
    refused = dict(_refused(going, door.reassign({move.place: move.after for move in going}))) if going else {}
    for move in moves:
        if move in refused:
            _end(move, MoveState.FAILED, now, refused[move].text or f"Kafka's error {refused[move].code}")
        else:
            _mark(move, MoveState.MOVING)
    electable = [move.place for move in moves if move not in refused and not move.added]
    if electable:
        door.elect(electable)


def _refused(moves: list[RebalanceMove], refusals: Mapping[Place, Refusal]) -> list[tuple[RebalanceMove, Refusal]]:
    return [(move, refusals[move.place]) for move in moves if move.place in refusals]


# --- rows -------------------------------------------------------------------------------------------------------------


def _mark(move: RebalanceMove, state: MoveState, **changes: object) -> bool:
    """False: another worker was faster."""
    rows = RebalanceMove.objects.filter(pk=move.pk, state=move.state)
    changed = bool(rows.update(state=state, **changes))
    if changed:
        move.state = state
    return changed


def _end(move: RebalanceMove, state: MoveState, now: datetime, problem: str = "") -> None:
    copied = move.bytes_to_copy if state == MoveState.DONE else move.copied_bytes
    _mark(move, state, finished_at=now, problem=problem or move.problem, copied_bytes=copied)


def _left(row: Rebalance, held: Mapping[int, datetime]) -> Left | None:
    counts = dict(row.moves.values_list("state").annotate(count=Count("pk")))
    waiting, active = counts.get(MoveState.WAITING, 0), sum(counts.get(state, 0) for state in ACTIVE)
    if not waiting and not active:
        return None
    bytes_of = row.moves.aggregate(copied=Sum("copied_bytes"), whole=Sum("bytes_to_copy"))
    done = counts.get(MoveState.DONE, 0)
    text = f"{done} of {sum(counts.values())} done, {active} under way"
    if bytes_of["whole"]:
        text += f", {bytes_of['copied'] / 2**20:,.0f} of {bytes_of['whole'] / 2**20:,.0f} MiB copied"
    if row.state == RebalanceState.PAUSED:
        return Left(f"paused: {text}", only_leaders=False)
    if held:
        text += f", {len(held)} wait for maintenance windows, the next at {min(held.values()):%Y-%m-%d %H:%M} UTC"
    if len(held) == waiting and not active:
        return Left(text, only_leaders=False, in_windows=True)
    return Left(text, only_leaders=not row.moves.filter(copies=True, state__in=(MoveState.WAITING, *ACTIVE)).exists())
