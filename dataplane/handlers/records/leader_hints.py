"""Who leads, told with the error that says "not me" (KIP-951): the client need not ask for metadata first.

Fetch carries it from version 16 on, Produce from 10 on. Addresses are those of the client's own listener; a leader that
has none there is named without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataplane.handlers.context import BrokerRooms, RequestContext

T = TypeVar("T")
NOBODY = (-1, -1)


def current_leader(broker: BrokerRooms, topic: str, index: int) -> tuple[int, int]:
    """(broker, leader epoch) as we know it; our own replica knows first."""
    partition = broker.replicas.registry.get(topic, index)
    if partition is not None and not partition.state.is_offline:
        return partition.state.leader_id, partition.state.leader_epoch
    known = broker.metadata.partition(topic, index)
    return NOBODY if known is None else (known.leader, known.leader_epoch)


def endpoints(
    ctx: RequestContext, leaders: Iterable[int], make: Callable[[int, str, int, str | None], T]
) -> tuple[T, ...]:
    """Where the client reaches those of the brokers that live."""
    found = []
    for broker_id in sorted(leaders):
        broker = ctx.broker.metadata.brokers.get(broker_id)
        address = ctx.broker_address(broker_id)
        if broker is not None and address is not None:
            found.append(make(broker_id, address[0], address[1], broker.rack))
    return tuple(found)
