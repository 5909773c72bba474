"""An instance's transactions by the tenant's own names. Nothing about them is kept here; the coordinators are the truth.

The internal listener shows the transactional ids of every tenant. What leaves this module belongs to the instance asked for, as
with `groups`: ids and topics are mapped by `InstanceNames`, and what the instance does not own is left out: of a transaction's
partitions, those of the topic of offsets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable, Conflict, NotFound
from controlplane.kafka import transaction_door
from controlplane.kafka.patience import patiently
from controlplane.kafka.topics import names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.flexible import Place
    from controlplane.kafka.transaction_bytes import Transaction
    from controlplane.kafka.transaction_door import Coordinated, TransactionDoor
    from quota.contracts.namespace import InstanceNames

    Answer = TypeVar("Answer")

ONGOING = "Ongoing"
STATES = ("Empty", ONGOING, "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
"""Kafka's own words."""
OPEN = (ONGOING, "PrepareCommit", "PrepareAbort")
"""Of which partitions hold something that readers at read_committed wait for."""
MOST_NAME = 1000
"""As brokers have it: a longer id is nobody's."""


def list_all(
    cluster: ClusterAddress, instance_id: str, *, states: Sequence[str] = (), open_for_ms: int | None = None
) -> list[str]:
    """Transactional ids in one of these states (none: any) whose transaction began that long ago, sorted."""
    names = names_of(instance_id)
    owned = _asked(cluster, lambda door: door.listed(names.owns, states, open_for_ms))
    return sorted(filter(None, map(names.transactional_id_out, owned)))


def read(cluster: ClusterAddress, instance_id: str, wanted: Sequence[str]) -> list[Transaction]:
    """These in this order, without those that are not there."""
    names = names_of(instance_id)
    physical = [names.transactional_id_in(name) for name in wanted if can_be(name)]
    found = _asked(cluster, lambda door: door.described(physical)) if physical else {}
    return [_own(names, found[name].transaction) for name in physical if name in found]


def get(cluster: ClusterAddress, instance_id: str, transactional_id: str) -> Transaction:
    """One of them. Raises NotFound."""
    found = read(cluster, instance_id, [transactional_id])
    if not found:
        raise missing(transactional_id)
    return found[0]


def open_producers(
    cluster: ClusterAddress, instance_id: str, places: Iterable[Place]
) -> dict[Place, Mapping[int, int]]:
    """By partition: where the open transaction of each producer id begins."""
    names = names_of(instance_id)
    asked = [(names.topic_in(topic), number) for topic, number in places]
    found = transaction_door.door(cluster).open_producers(asked) if asked else {}
    return {(names.topic_out(topic), number): starts for (topic, number), starts in found.items()}


def end(
    cluster: ClusterAddress, instance_id: str, transactional_id: str, *, clock: Clock = SYSTEM_CLOCK
) -> Transaction:
    """Abort what is open and fence its producer; what it was. Raises NotFound, Conflict.

    Whether it is there is asked first: to initialise an id that is not would make it. After an attempt whose answer was lost, one
    that is no longer open has been ended.
    """
    names = names_of(instance_id)
    before: list[Transaction] = []

    def attempt(again: bool) -> None:
        door = transaction_door.door(cluster)
        found = _one(door, names, transactional_id)
        is_open = found.transaction.state == ONGOING
        if is_open:
            before[:] = [_own(names, found.transaction)]
            door.fence(found)
        elif not (again and before):
            raise not_open(found.transaction.state)

    if not can_be(transactional_id):
        raise missing(transactional_id)
    patiently(cluster, lambda _admin, again: attempt(again), clock)
    return before[0]


def to_end(
    cluster: ClusterAddress, instance_id: str, transactional_id: str, *, clock: Clock = SYSTEM_CLOCK
) -> Transaction:
    """The one that `end` would end, which takes the same, raises the same, and waits as long for a coordinator."""
    if not can_be(transactional_id):
        raise missing(transactional_id)
    names = names_of(instance_id)
    found = patiently(
        cluster, lambda _admin, _again: _one(transaction_door.door(cluster), names, transactional_id), clock
    ).transaction
    if found.state != ONGOING:
        raise not_open(found.state)
    return _own(names, found)


def _one(door: TransactionDoor, names: InstanceNames, transactional_id: str) -> Coordinated:
    """Raises NotFound."""
    physical = names.transactional_id_in(transactional_id)
    found = door.described([physical]).get(physical)
    if found is None:
        raise missing(transactional_id)
    return found


def can_be(name: str) -> bool:
    """Whether a transactional id can be called so."""
    return 0 < len(name) <= MOST_NAME and not any("\ud800" <= letter <= "\udfff" for letter in name)


def missing(transactional_id: str) -> NotFound:
    """What is said of one that is not there."""
    return NotFound(f"no transactional id {transactional_id}", code="transaction_not_found")


def not_open(state: str) -> Conflict:
    """What is said where there is nothing to end."""
    return Conflict(
        f"the transaction is in state {state}: only one that is {ONGOING} can be ended", code="transaction_not_open"
    )


def _own(names: InstanceNames, found: Transaction) -> Transaction:
    places = tuple(sorted((names.topic_out(topic), number) for topic, number in found.partitions if names.owns(topic)))
    return replace(found, transactional_id=names.transactional_id_out(found.transactional_id), partitions=places)


def _asked(cluster: ClusterAddress, ask: Callable[[TransactionDoor], Answer]) -> Answer:
    """The answer, of the second attempt if the first has none: a broker may have gone that was registered a moment ago."""
    try:
        return ask(transaction_door.door(cluster))
    except ClusterUnavailable:
        return ask(transaction_door.door(cluster))
