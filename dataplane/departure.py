"""How a broker leaves in order, so that clients notice as little as can be (controlled shutdown).

1. It asks the controller, who gives what it leads to others in sync and takes it out of all ISRs. Where nobody is the
   controller just now it asks again.
2. It waits until the controller's LeaderAndIsr has deposed it: only then can it tell its clients who leads (KIP-951).
3. It waits until what it took as the leader is known to be committed.
4. It stays for a moment. A client that asks and hears "not me, but broker 2 at this address" goes there at once; one that
   finds the connection closed pauses, and looks for somebody who knows.

Safety needs none of this: a broker that is cut short has been killed, and that must lose nothing either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import ControlledShutdownRequest, ControlledShutdownResponse
from dataplane.tasks import sleep

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from dataplane.cluster.membership import Membership
    from dataplane.cluster.metadata import Metadata
    from dataplane.config import BrokerConfig
    from dataplane.doors import Doors
    from dataplane.peers.outbound import Peers
    from dataplane.replication.manager import Replicas
    from dataplane.tenancy.registry import Registry

_VERSION = 3
_ANSWERED_WITHIN_S = 5.0
_SESSIONS_ASKED = 2  # by then there is another controller, or none to be had
_ASK_AGAIN_S = 0.1
_DEPOSED_WITHIN_S = 1.0
_SETTLED_WITHIN_S = 1.0
_LOOK_EVERY_S = 0.01
_CLIENTS_MOVE_S = 0.2


class Leaver(Protocol):
    """What it takes of a broker."""

    log: Callable[[str], None]
    config: BrokerConfig
    doors: Doors
    membership: Membership
    metadata: Metadata
    peers: Peers
    replicas: Replicas
    registry: Registry


async def leave(broker: Leaver) -> None:
    """Give away what is led here; resolved when nothing more is to be waited for."""
    end = broker.doors.clock.monotonic() + _SESSIONS_ASKED * broker.config.session_timeout_ms / 1000
    answer = await _ask(broker)
    while answer is None and broker.doors.clock.monotonic() < end:
        await sleep(broker.doors.loop, _ASK_AGAIN_S)
        answer = await _ask(broker)
    if answer is None:
        broker.log("no controlled shutdown: no controller has answered")
        return
    kept = {(row.topic_name, row.partition_index) for row in answer.remaining_partitions}
    await _deposed(broker, kept)
    await broker.replicas.settle(_SETTLED_WITHIN_S)
    if any(instance.connections for instance in broker.registry.all()):
        await sleep(broker.doors.loop, _CLIENTS_MOVE_S)


async def _ask(broker: Leaver) -> ControlledShutdownResponse | None:
    """The controller's answer; None: nobody who could decide it has."""
    request = ControlledShutdownRequest(broker_id=broker.config.id, broker_epoch=broker.membership.broker_epoch)
    try:
        answer: ControlledShutdownResponse = await broker.peers.call(
            broker.metadata.controller_id, request, _VERSION, _ANSWERED_WITHIN_S
        )
    except Exception as error:  # noqa: BLE001 - whatever it was, the next controller may answer
        broker.log(f"controlled shutdown: {type(error).__name__}: {error}")
        return None
    return answer if answer.error_code == ErrorCode.NONE else None


async def _deposed(broker: Leaver, kept: AbstractSet[tuple[str, int]]) -> None:
    """Wait for the controller's word, which travels beside its answer. `kept`: nobody else could lead those."""
    end = broker.doors.clock.monotonic() + _DEPOSED_WITHIN_S
    while broker.doors.clock.monotonic() < end and any(
        partition.state.is_leader
        and len(partition.state.replicas) > 1
        and (partition.topic, partition.index) not in kept
        for partition in broker.replicas.registry.partitions()
    ):
        await sleep(broker.doors.loop, _LOOK_EVERY_S)
