"""Bugs that can be planted into the brokers of a run, one at a time: whether the simulation would find them.

Each is a mistake that some broker has made, or nearly: it patches one method of the real code for as long as it is
planted. Nothing of this is in the product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from dataplane.cluster.metadata import Metadata
from dataplane.controller.channel import EPOCH_DURING_DELETE, Channels
from dataplane.controller.context import Context
from dataplane.controller.decisions import alter_partition
from dataplane.controller.leaders import Leaders
from dataplane.coordination import log as coordination_log
from dataplane.protocol.errors import ErrorCode
from dataplane.replication import (
    appending,
    leadership,
    waiting,
)
from dataplane.replication.appending import Appending
from dataplane.replication.manager import Replicas
from dataplane.replication.replica.partition import Partition
from dataplane.replication.replica.partition_state import PartitionState
from dataplane.replication.serving import follower_fetches
from dataplane.replication.waiting import Waiting
from dataplane.storage.checkpoints.epochs import Epochs
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.log import Log, cutting, flushing
from dataplane.storage.log import appending as log_appending
from tests.simulation.bugs_of_transactions import BUGS_OF_TRANSACTIONS
from tests.simulation.campaign import Outcome, run
from tests.support.memory_files import MemoryFiles

Plant = Callable[[ExitStack], Any]


def _patch(target: Any, name: str, replacement: Any) -> Plant:
    return lambda stack: stack.enter_context(mock.patch.object(target, name, replacement))


def _acknowledge_at_once(_self: Waiting, _partition: Partition, produces: list[Any]) -> None:
    for _, _, done in produces:
        done(ErrorCode.NONE)


_append = Appending.append


def _append_whatever_the_isr(self: Appending, partition: Partition, *rest: Any, **more: Any) -> Any:
    partition.state.configure(replace(partition.state.settings, min_insync_replicas=1))
    return _append(self, partition, *rest, **more)


_for_acks = Waiting.for_acks


def _acknowledge_alone(self: Waiting, partition: Partition, produces: list[Any]) -> None:
    act = _acknowledge_at_once if len(partition.state.isr) == 1 else _for_acks
    act(self, partition, produces)


def _own_end_counts(self: PartitionState, _counted_end: int, end_offset: int, _now: float) -> bool:
    moved = end_offset > self.high_watermark
    self.high_watermark = max(self.high_watermark, end_offset)
    return moved


def _smaller_isr_counts(self: PartitionState, isr: tuple[int, ...]) -> None:
    self.proposed_isr = self._maximal_isr = isr


_follow = Partition.follow


def _follow_from_the_high_watermark(self: Partition, state: Any) -> None:
    _follow(self, state)
    if self.log.end_offset > self.state.high_watermark:
        cutting.truncate(self.log, self.state.high_watermark)
        self.truncated()


def _always_a_prefix(*_: Any) -> None:
    return None


def _any_controller(self: Metadata, controller_id: int, epoch: int) -> bool:
    self.controller_id, self.controller_epoch = controller_id, epoch
    return True


def _join_at_once(self: PartitionState, broker_id: int, _now: float) -> tuple[int, ...] | None:
    return None if broker_id in self.isr or self.proposed_isr is not None else (*self.isr, broker_id)


def _forget(*_: Any) -> None:
    return None


def _any_life(replicas: Replicas, controller_id: int, controller_epoch: int, _broker_epoch: int) -> ErrorCode:
    seen = replicas.metadata.saw_controller(controller_id, controller_epoch)
    return ErrorCode.NONE if seen else ErrorCode.STALE_CONTROLLER_EPOCH


def _eligible_in_any_life(member: Any, brokers: Any, _leaving: Any, _partition: Any) -> bool:
    return member.broker_id in brokers


_lead = Partition.lead


def _lead_without_an_epoch(self: Partition, state: Any, now: float) -> bool:
    """The new leader does not know where its epoch begins, and its batches do not tell it either."""
    with mock.patch.object(Epochs, "begin"):
        moved = _lead(self, state, now)
    self.log.epochs.in_log = state.leader_epoch
    return moved


async def _trust_who_restarted(*_: Any) -> None:
    return None


_advance = PartitionState.advance


def _commit_with_too_few(self: PartitionState, *ends_and_now: Any) -> bool:
    asked = self.settings, self.others_eligible
    self.settings, self.others_eligible = replace(self.settings, min_insync_replicas=1), False
    try:
        return _advance(self, *ends_and_now)
    finally:
        self.settings, self.others_eligible = asked


def _ignore_eligible(self: PartitionState, *ends_and_now: Any) -> bool:
    self.others_eligible = False
    return _advance(self, *ends_and_now)


def _proposed_is_enough(self: PartitionState) -> bool:
    return len(self._maximal_isr) >= min(self.settings.min_insync_replicas, len(self.replicas))


def _nobody(*_: Any) -> list[int]:
    return []


def _never_enough(*_: Any) -> int:
    return 9


def _always_the_same(_self: MemoryFiles) -> str:
    return "memory"


def _unguarded(callback: Callable[..., None], *what: Any) -> None:
    callback(*what)


def _commit_unguarded(self: Appending, partition: Partition) -> None:
    if partition.queues.mark_clean():
        try:
            self._write_and_tell(partition)
        except OSError:
            self._roles.failed(partition)


def _no(*_: Any) -> bool:
    return False


def _yes(*_: Any) -> bool:
    return True


def _advance_in_memory(self: PartitionState, _counted_end: int, end_offset: int, now: float) -> bool:
    return _advance(self, end_offset, end_offset, now)


def _remove_whatever_the_epoch(self: Channels, broker_id: int, partition: Any) -> bool:
    return self._remove(broker_id, partition, EPOCH_DURING_DELETE)


def _synced_whatever_was_cut(log: Log, end: int, _truncations: int) -> None:
    log.recovery_point = max(log.recovery_point, min(end, log.end_offset))


_syncer = flushing.syncer


def _sync_without_the_directory(log: Log) -> Callable[[], None]:
    with mock.patch.object(Log, "is_founded", True):
        return _syncer(log)


BUGS: dict[str, tuple[Plant, ...]] = {
    "acknowledge before replication": (_patch(Waiting, "for_acks", _acknowledge_at_once),),
    "acknowledge with an ISR of one": (
        _patch(Appending, "append", _append_whatever_the_isr),
        _patch(Waiting, "for_acks", _acknowledge_alone),
    ),
    "commit what only the leader has": (_patch(PartitionState, "advance", _own_end_counts),),
    "a proposed ISR counts at once": (_patch(PartitionState, "propose", _smaller_isr_counts),),
    "truncate to the high watermark": (_patch(Partition, "follow", _follow_from_the_high_watermark),),
    "never truncate": (_patch(follower_fetches, "divergence", _always_a_prefix),),
    "lead without writing the epoch": (_patch(Partition, "lead", _lead_without_an_epoch),),
    "ignore the controller's epoch": (_patch(Metadata, "saw_controller", _any_controller),),
    "join the ISR while behind": (_patch(PartitionState, "isr_with", _join_at_once),),
    "trust who restarted unseen": (_patch(Leaders, "depose_who_restarted", _trust_who_restarted),),
    "commit with too few in sync": (_patch(PartitionState, "advance", _commit_with_too_few),),
    "commit on what is only proposed": (_patch(PartitionState, "has_enough_replicas", _proposed_is_enough),),
    "elect who has lost its tail": (_patch(Context, "lost", _nobody),),
    "a power cut loses nothing": (_patch(MemoryFiles, "memory", _always_the_same),),
    "eligible whatever the ISR": (
        _patch(Context, "enough", _never_enough),
        _patch(PartitionState, "advance", _ignore_eligible),
    ),
    "forget producers": (_patch(Producers, "update", _forget),),
    "any life of a broker will do": (
        _patch(leadership, "_refusal", _any_life),
        _patch(alter_partition, "_eligible", _eligible_in_any_life),
    ),
    "an exception ends the commit": (
        _patch(appending, "tell", _unguarded),
        _patch(waiting, "tell", _unguarded),
        _patch(waiting, "hear", _unguarded),
        _patch(Appending, "commit", _commit_unguarded),
    ),
    "a removal is never late": (
        _patch(leadership, "_is_late", _no),
        _patch(Metadata, "is_overtaken", _no),
        _patch(Channels, "remove", _remove_whatever_the_epoch),
    ),
    "a late word is obeyed": (_patch(Metadata, "is_overtaken", _no),),
    "what comes again is corrupt": (_patch(log_appending, "_has_already", _no),),
    "a sync counts whatever was cut": (_patch(flushing, "synced", _synced_whatever_was_cut),),
    "a sync leaves the directory out": (_patch(flushing, "syncer", _sync_without_the_directory),),
    "answer before the disk": (
        _patch(Partition, "is_synced", _yes),
        _patch(PartitionState, "advance", _advance_in_memory),
    ),
    "a commit is on its leader alone": (_patch(coordination_log, "ACKS_ALL", 1),),
    **BUGS_OF_TRANSACTIONS,
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The bug is in the code of this process."""
    with ExitStack() as stack:
        for plant in BUGS[name]:
            plant(stack)
        yield


def run_with(bug: str | None, seed: int, *, rounds: int, transfers: bool = False) -> Outcome:
    """A run with a bug planted, or with none. It has transactions where they are asked for, or the bug is one of theirs."""
    has_transfers = True if transfers or bug in BUGS_OF_TRANSACTIONS else None
    if bug is None:
        return run(seed, rounds=rounds, transfers=has_transfers)
    with planted(bug):
        return run(seed, rounds=rounds, transfers=has_transfers)
