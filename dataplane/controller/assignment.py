"""The replicas of a partition, and how they change (reassignment, KIP-455). Pure.

While replicas move, a partition has both the old ones and the new: `replicas` is the target followed by whatever of the
old is not in it, `adding` are those that it did not have, `removing` those that it shall not keep. All of them follow
and may be in sync. When the whole target is in sync, the others go.

Beginning, replacing, cancelling and finishing are one thing: another assignment, and the state of the partition without
who is not in it any more (`restricted`). The two are written together, so a controller that dies leaves either all of a
step or nothing, and its successor needs no memory of what it was about.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from dataplane.cluster.paths import NO_LEADER, PartitionState


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which brokers hold a partition, the preferred leader first."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """What it will be."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """What it was, as far as it is known: the order may be another, as in Kafka."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    @property
    def oldest_first(self) -> tuple[int, ...]:
        """All of them, those last that may have nothing yet."""
        return (*self.origin, *self.adding)

    def toward(self, target: Sequence[int]) -> Assignment:
        """The first step to a target, also from the middle of the way to another one, and back (to `origin`)."""
        origin = self.origin
        both = tuple(dict.fromkeys((*target, *origin)))
        return Assignment(
            both,
            tuple(replica for replica in both if replica not in origin),
            tuple(replica for replica in both if replica not in target),
        )


def restricted(
    state: PartitionState, replicas: Sequence[int], alive: Container[int], controller_epoch: int
) -> PartitionState | None:
    """The state with nobody but `replicas` in sync; None where that would leave nobody in sync, or nobody to lead.

    The leader stays if it may. The leader epoch rises in any case: so a leader takes over who its followers are, and
    what it has proposed of the old ones is refused.
    """
    isr = tuple(replica for replica in state.isr if replica in replicas)
    leader = state.leader
    if leader not in (*isr, NO_LEADER):
        leader = next((replica for replica in replicas if replica in isr and replica in alive), NO_LEADER)
        if leader == NO_LEADER:
            return None
    if not isr:
        return None
    return replace(
        state,
        leader=leader,
        isr=isr,
        eligible=tuple(replica for replica in state.eligible if replica in replicas),
        leader_epoch=state.leader_epoch + 1,
        controller_epoch=controller_epoch,
    )


def finished(
    state: PartitionState, assignment: Assignment, alive: Container[int], controller_epoch: int
) -> PartitionState | None:
    """The state at the end of a reassignment; None: not all of the target is in sync yet, or nobody leads.

    Without a leader nothing is given up: whichever of all the replicas returns first may be the one that is needed.
    """
    if state.leader == NO_LEADER or not all(replica in state.isr for replica in assignment.target):
        return None
    return restricted(state, assignment.target, alive, controller_epoch)
