"""Who leads a partition, and who is in sync: decisions of the controller, without doing them. Pure.

Each function takes the present state and returns the next one, or None where nothing changes. A change by the
controller always raises the leader epoch, even if the leader stays: so a proposal that the leader had under way is
refused, and it starts again from the new state.

Vocabulary. `alive`: the brokers that may be counted on, each with its epoch. `lost`: those whose logs may lack what they
had when they were last known (a power cut, a disk that refused). `enough`: with fewer in sync the leader commits nothing.
Eligible (KIP-966): who left the ISR when it had become too small to commit anything without them, so they have all that
is committed although they are not in sync.

Who may lead, the first line that finds somebody:

    1  who leads or led last, if alive, in sync and not lost
    2  of those in sync and not lost, the first in the assignment that is alive
    3  of the eligible and not lost, the same
    4  who led last, if alive: only when everybody of the ISR and the eligible has come back, and all have lost something
    5  any live replica: only with unclean election

Otherwise there is no leader (-1), and ISR and eligible stay, without the lost, until one of them returns. The lines 4 and
5 may lose what was committed, the others never do: a commit was on all who are in sync or eligible now.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from dataplane.cluster.paths import NO_LEADER, PartitionState

Epochs = Mapping[int, int]
"""Live brokers and their epochs."""


def first_state(replicas: Sequence[int], alive: Epochs, controller_epoch: int) -> PartitionState | None:
    """Of a partition that nobody has led: the first live replica leads, all live ones are in sync (they are empty)."""
    isr = tuple(replica for replica in replicas if replica in alive)
    epochs = {replica: alive[replica] for replica in isr}
    return PartitionState(isr[0], 0, isr, controller_epoch, broker_epochs=epochs) if isr else None


def after_change(
    state: PartitionState,
    replicas: Sequence[int],
    alive: Epochs,
    controller_epoch: int,
    *,
    lost: Container[int] = (),
    enough: int = 1,
    unclean: bool = False,
) -> PartitionState | None:
    """Brokers have gone or returned: drop the dead and the lost from the ISR, and choose a leader where there is none."""
    in_sync = tuple(member for member in state.isr if member not in lost)
    eligible = tuple(member for member in state.eligible if member not in lost and member in replicas)
    isr = tuple(member for member in in_sync if member in alive)
    leader = _first((state.leader, state.last_leader, *replicas), alive, isr or eligible)
    if leader == NO_LEADER and not (in_sync or eligible):
        leader = _last_resort(state, replicas, alive)
    if leader == NO_LEADER and unclean:
        leader = _first(replicas, alive, replicas)
        in_sync = eligible = ()  # what they have beyond the new leader's log is void
    if leader == NO_LEADER:
        return _moved(state, NO_LEADER, in_sync, eligible, alive, controller_epoch)
    isr = isr or (leader,)
    left = tuple(member for member in (*eligible, *in_sync) if member not in isr)
    return _moved(state, leader, isr, left if len(isr) < enough else (), alive, controller_epoch)


def with_isr(
    state: PartitionState, isr: tuple[int, ...], alive: Epochs, controller_epoch: int, enough: int
) -> PartitionState:
    """The leader proposes this ISR, and may: the leader epoch stays."""
    left = tuple(member for member in (*state.eligible, *state.isr) if member not in isr)
    eligible = left if len(isr) < enough else ()
    joining = {member: alive[member] for member in isr if member not in state.isr and member in alive}
    epochs = _epochs_of((*isr, *eligible), {**alive, **state.broker_epochs, **joining})
    return replace(state, isr=isr, eligible=eligible, broker_epochs=epochs, controller_epoch=controller_epoch)


def preferred(
    state: PartitionState, replicas: Sequence[int], alive: Container[int], controller_epoch: int
) -> PartitionState | None:
    """Give the lead back to the first replica of the assignment, if it lives and is in sync."""
    first = replicas[0]
    if first not in alive or first not in state.isr:
        return None
    return _moved(state, first, state.isr, state.eligible, {}, controller_epoch)


def without(
    state: PartitionState,
    replicas: Sequence[int],
    alive: Epochs,
    leaving: int,
    controller_epoch: int,
    *,
    lost: Container[int] = (),
    enough: int = 1,
) -> PartitionState | None:
    """A broker is about to stop: lead and ISR go to the others, if one of them is in sync; otherwise it stays."""
    staying = {broker: epoch for broker, epoch in alive.items() if broker != leaving}
    if not any(member in staying and member not in lost for member in state.isr):
        return None
    return after_change(state, replicas, staying, controller_epoch, lost=lost, enough=enough)


def _first(replicas: Sequence[int], alive: Container[int], among: Sequence[int]) -> int:
    return next((member for member in (*replicas, *among) if member in among and member in alive), NO_LEADER)


def _last_resort(state: PartitionState, replicas: Sequence[int], alive: Container[int]) -> int:
    last = state.last_leader if state.leader == NO_LEADER else state.leader
    if last in replicas:
        return last if last in alive else NO_LEADER
    return _first(replicas, alive, replicas)


def _moved(
    state: PartitionState,
    leader: int,
    isr: tuple[int, ...],
    eligible: tuple[int, ...],
    alive: Epochs,
    controller_epoch: int,
) -> PartitionState | None:
    if (leader, isr, eligible) == (state.leader, state.isr, state.eligible):
        return None
    was = state.last_leader if state.leader == NO_LEADER else state.leader
    return replace(
        state,
        leader=leader,
        isr=isr,
        eligible=eligible,
        last_leader=was if leader == NO_LEADER else NO_LEADER,
        broker_epochs=_epochs_of((*isr, *eligible), {**state.broker_epochs, **alive}),
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=controller_epoch,
    )


def _epochs_of(members: Sequence[int], known: Epochs) -> dict[int, int]:
    return {member: known[member] for member in members if member in known}
