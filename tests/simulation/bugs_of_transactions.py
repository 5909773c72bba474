"""Planted bugs of transactions, as those of `bugs`: found by runs that have the workload `transfers`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

from dataplane.coordination.effects import Begin, Store
from dataplane.groups.coordinator import GroupCoordinator
from dataplane.replication.replica.partition_state import PartitionState
from dataplane.storage.checkpoints.producers import Producers
from dataplane.storage.log import aborting
from dataplane.transactions import ending, state
from dataplane.transactions.events import Resume, Stored, WriteMarkers
from dataplane.transactions.model import PREPARED, durable_value
from dataplane.transactions.verification import Verifier

Plant = Callable[[ExitStack], Any]


def _patch(target: Any, name: str, replacement: Any) -> Plant:
    return lambda stack: stack.enter_context(mock.patch.object(target, name, replacement))


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _none(*_: Any, **__: Any) -> list[Any]:
    return []


_propose = state.Draft.propose


def _markers_first(self: state.Draft, to: Any, ask: Any = None) -> None:
    """The decision is told to the partitions before it is stored."""
    if to.state in PREPARED:
        self.effects.append(Begin(WriteMarkers(to)))
    _propose(self, to, ask)


def _same_epoch(original: Callable[..., None]) -> Callable[..., None]:
    """Whoever takes a transactional id over gets the epoch of the one before."""

    def give(draft: state.Draft, ask: Any) -> None:
        before = draft.transaction.producer_epoch
        original(draft, ask)
        effect = draft.effects[-1]
        if before >= 0 and isinstance(effect, Store) and isinstance(effect.then, Stored):
            to = replace(effect.then.to, producer_epoch=before)
            draft.transaction = replace(draft.transaction, producer_epoch=before)
            draft.effects[-1] = Store(durable_value(to), Stored(to, effect.then.ask))

    return give


def _epoch_of_before(draft: state.Draft, ask: Any) -> None:
    """An end raises no epoch, though it says that it does."""
    before = draft.transaction
    _end_and_raise(draft, ask)
    effect = draft.effects[-1]
    if isinstance(effect, Store) and isinstance(effect.then, Stored):
        to = replace(effect.then.to, producer_epoch=before.producer_epoch)
        draft.effects[-1] = Store(durable_value(to), Stored(to, effect.then.ask))


_end_and_raise = ending._end_and_raise
_ended = GroupCoordinator.transaction_ended


def _always_committed(self: GroupCoordinator, index: int, producer_id: int, *, committed: bool) -> None:
    del committed
    _ended(self, index, producer_id, committed=True)


BUGS_OF_TRANSACTIONS: dict[str, tuple[Plant, ...]] = {
    "what is committed is stable": (_patch(PartitionState, "hold_back", _nothing),),
    "nobody hears what was aborted": (_patch(aborting, "aborted_between", _none),),
    "markers before the decision": (_patch(state.Draft, "propose", _markers_first),),
    "nobody verifies": (
        _patch(Verifier, "verify", _nothing),
        _patch(Verifier, "add", _nothing),
        _patch(Producers, "check_transaction", _nothing),
    ),
    "the epoch stays": (
        _patch(state, "_give_epoch", _same_epoch(state._give_epoch)),
        _patch(state, "_fence", _same_epoch(state._fence)),
    ),
    "an end raises no epoch": (_patch(ending, "_end_and_raise", _epoch_of_before),),
    "offsets of what was aborted count": (_patch(GroupCoordinator, "transaction_ended", _always_committed),),
    "a decision is not resumed": (
        lambda stack: stack.enter_context(mock.patch.dict(state._HANDLERS, {Resume: _nothing})),
    ),
}
