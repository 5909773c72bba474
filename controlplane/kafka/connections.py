"""An instance's connections by the tenant's own names. Nothing about them is kept here.

A broker is asked about one instance, and knows which connections are that instance's. Topics are mapped by `InstanceNames`
all the same, and what the instance does not own is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.core.errors import ClusterUnavailable
from controlplane.kafka import connection_door
from controlplane.kafka.topics import names_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.clusters.address import ClusterAddress
    from controlplane.kafka.connection_bytes import Answer, ConnectionRow

MOST = 1_000
"""Clients, and connections, that each broker is asked for where it is to be said who would be cut off."""


@dataclass(frozen=True, slots=True)
class Told:
    """What brokers say, in order of their ids, and which of them do not answer."""

    answers: dict[int, Answer]
    missing: tuple[int, ...]


def read(
    cluster: ClusterAddress,
    instance_id: str,
    *,
    most_connections: int = 0,
    most_talkers: int = 0,
    topic: str | None = None,
) -> Told:
    """So many rows of each broker at most; of talkers, of one topic if it is named. Raises ClusterUnavailable: nobody answers."""
    names = names_of(instance_id)
    physical = None if topic is None else names.topic_in(topic)
    found = connection_door.door(cluster).asked(instance_id, physical, most_connections, most_talkers)
    answers: dict[int, Answer] = {}
    for broker, answer in sorted(found.items()):
        if answer is not None:
            own = (row._replace(topic=names.topic_out(row.topic)) for row in answer.talkers if names.owns(row.topic))
            answers[broker] = answer._replace(talkers=tuple(own))
    if not answers:
        raise ClusterUnavailable("no broker says who is connected")
    return Told(answers, tuple(broker for broker in sorted(found) if broker not in answers))


def client_text(client_id: str, address: str) -> str:
    """``shop-1 (10.0.0.7)``; ``- (10.0.0.7)`` of one that has said no name."""
    return f"{client_id or '-'} ({address})"


def clients_of(cluster: ClusterAddress, instance_id: str, takes: Callable[[ConnectionRow], bool]) -> tuple[str, ...]:
    """Clients of these connections at this moment, sorted; none as well where no broker answers.

    Of brokers that do not answer, and of a broker's connections behind the MOST that move most, nobody knows.
    """
    try:
        told = read(cluster, instance_id, most_connections=MOST)
    except ClusterUnavailable:
        return ()
    rows = (row for answer in told.answers.values() for row in answer.connections if takes(row))
    return tuple(sorted({client_text(row.client_id, row.address) for row in rows}))
