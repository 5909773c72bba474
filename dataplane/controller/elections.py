"""Who leads a partition, and who is in sync: decisions of the controller, without doing them. Pure.

Each function takes the present state and returns the next one, or None where nothing changes. A change by the
controller always raises the leader epoch, even if the leader stays: so a proposal that the leader had under way is
refused, and it starts again from the new state. `alive` holds the brokers that may be counted on.

The rules that keep what was committed:
  * a leader comes from the ISR only (unless unclean election is on);
  * the last ISR is never emptied: with no member alive there is no leader (-1), and whoever of it returns may lead.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from dataplane.cluster.paths import NO_LEADER, PartitionState


def first_state(replicas: Sequence[int], alive: Container[int], controller_epoch: int) -> PartitionState | None:
    """Of a partition that nobody has led: the first live replica leads, all live ones are in sync (they are empty)."""
    isr = tuple(replica for replica in replicas if replica in alive)
    return PartitionState(isr[0], 0, isr, controller_epoch) if isr else None


def after_change(
    state: PartitionState,
    replicas: Sequence[int],
    alive: Container[int],
    controller_epoch: int,
    *,
    unclean: bool = False,
) -> PartitionState | None:
    """Brokers have gone or returned: drop the dead from the ISR, and choose a leader where there is none alive."""
    isr = tuple(replica for replica in state.isr if replica in alive)
    if isr:
        leader = state.leader if state.leader in isr else next(r for r in (*replicas, *isr) if r in isr)
        return _moved(state, leader, isr, controller_epoch)
    if unclean:
        survivor = next((replica for replica in replicas if replica in alive), None)
        if survivor is not None:
            return _moved(state, survivor, (survivor,), controller_epoch)
    return _moved(state, NO_LEADER, state.isr, controller_epoch)


def preferred(
    state: PartitionState, replicas: Sequence[int], alive: Container[int], controller_epoch: int
) -> PartitionState | None:
    """Give the lead back to the first replica of the assignment, if it lives and is in sync."""
    first = replicas[0]
    if first not in alive or first not in state.isr:
        return None
    return _moved(state, first, state.isr, controller_epoch)


def without(
    state: PartitionState, replicas: Sequence[int], alive: Container[int], leaving: int, controller_epoch: int
) -> PartitionState | None:
    """A broker is about to stop: lead and ISR go to the others, if one of them is in sync; otherwise it stays."""
    isr = tuple(replica for replica in state.isr if replica != leaving and replica in alive)
    if not isr:
        return None
    leader = state.leader if state.leader in isr else next(r for r in (*replicas, *isr) if r in isr)
    return _moved(state, leader, isr, controller_epoch)


def _moved(state: PartitionState, leader: int, isr: tuple[int, ...], controller_epoch: int) -> PartitionState | None:
    if (leader, isr) == (state.leader, state.isr):
        return None
    return replace(
        state, leader=leader, isr=isr, leader_epoch=state.leader_epoch + 1, controller_epoch=controller_epoch
    )
