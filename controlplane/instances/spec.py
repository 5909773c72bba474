"""From what was bought to what brokers read. Pure.

Bandwidth is given in MiB/s and counts once per direction: an instance of 5 MiB/s may produce 5 and consume 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quota.contracts.instance import GIB, MIB, Endpoint, InstanceSpec, InstanceState, Limits, Route

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_ROUTE = "default"
CONNECTIONS_PER_BROKER = 1000
CONNECTIONS_PER_ADDRESS = 500  # a broker's, too: half of them are left when one machine runs wild
CONNECTIONS_PER_S = 200


@dataclass(frozen=True, slots=True)
class Listener:
    """Where one broker serves the instance."""

    broker: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Bought:
    """The members of an instance that its tenant chose."""

    bandwidth_mib_per_s: float
    storage_gib: float
    partitions: int
    whitelist: Sequence[str]
    topic_whitelists: Mapping[str, Sequence[str]]


def limits_of(bought: Bought) -> Limits:
    """Limits in bytes. What rounds to nothing is one byte: 0 would mean "blocked"."""
    bandwidth = max(1, round(bought.bandwidth_mib_per_s * MIB))
    return Limits(
        produce_bytes_per_s=bandwidth,
        consume_bytes_per_s=bandwidth,
        storage_bytes=max(1, round(bought.storage_gib * GIB)),
        partitions=bought.partitions,
        connections=CONNECTIONS_PER_BROKER,
        connections_per_address=CONNECTIONS_PER_ADDRESS,
        connections_per_s=CONNECTIONS_PER_S,
    )


def spec_of(
    *,
    instance_id: str,
    generation: int,
    state: InstanceState,
    bought: Bought,
    listeners: Sequence[Listener],
    advertised_host: str = "",
) -> InstanceSpec:
    """The document for ZooKeeper. `advertised_host` stands before the brokers where a VIP does; empty: as bound."""
    endpoints = {
        listener.broker: Endpoint(
            bind=(listener.host, listener.port), advertised=(advertised_host or listener.host, listener.port)
        )
        for listener in listeners
    }
    return InstanceSpec(
        id=instance_id,
        generation=generation,
        state=state,
        limits=limits_of(bought),
        whitelist=tuple(bought.whitelist),
        routes=(Route(DEFAULT_ROUTE, endpoints),),
        topic_whitelists={topic: tuple(cidrs) for topic, cidrs in bought.topic_whitelists.items()},
    )
