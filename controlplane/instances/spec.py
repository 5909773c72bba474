"""From what was bought to what brokers read. Pure.

Bandwidth is given in MiB/s and counts once per direction: an instance of 5 MiB/s may produce 5 and consume 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quota.contracts.instance import GIB, MIB, Endpoint, InstanceSpec, InstanceState, Limits, Route, TopicDefaults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_ROUTE = "default"
CONNECTIONS_PER_BROKER = 1000
CONNECTIONS_PER_ADDRESS = 500  # a broker's, too: half of them are left when one machine runs wild
CONNECTIONS_PER_S = 200
LEAST_LOOP_MS_PER_S = 300
LOOP_MS_PER_MIB = 60
MOST_LOOP_MS_PER_S_AND_BROKER = 900
DEFAULT_CONFIG: Mapping[str, bool | int] = MappingProxyType(
    {
        "auto_create_topics": False,
        "default_partitions": 3,
        "default_replication_factor": 3,
        "max_message_bytes": 1_048_588,  # Kafka's own
    }
)
"""What holds for an instance's topics as long as its tenant has said nothing else."""
OPERATORS_LIMITS = ("topics", "requests_per_s", "loop_ms_per_s")
"""Which plans do not sell, by their names in `Limits`: there is a default, and an operator may set another."""


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
    config: Mapping[str, Any] = field(default_factory=dict)  # of DEFAULT_CONFIG, what was set


def loop_ms_default(bandwidth_mib_per_s: float, brokers: int) -> int:
    """Broker time of an instance for which no operator has set another, in milliseconds a second over all its brokers.

    A broker's loop takes about a tenth of a millisecond for a small request and its answer, and a few milliseconds for a MiB
    in large ones. 60 ms for each MiB/s of both directions is enough for 600 small requests a MiB: who sends batches of more
    than 2 KiB meets the limit of bandwidth first. Below 5 MiB/s it is 300 ms for the cluster, so that a small instance can
    list its topics and have its groups rebalance. Nobody gets the last tenth of a loop, which is everybody's: 900 ms a broker.
    """
    by_bandwidth = max(LEAST_LOOP_MS_PER_S, round(LOOP_MS_PER_MIB * 2 * bandwidth_mib_per_s))
    return min(by_bandwidth, MOST_LOOP_MS_PER_S_AND_BROKER * max(1, brokers))


def operators_limits(
    bandwidth_mib_per_s: float, *, operators: Mapping[str, int | None], brokers: int
) -> dict[str, int | None]:
    """What is in force of OPERATORS_LIMITS: what an operator has set, or the default."""
    defaults = {"loop_ms_per_s": loop_ms_default(bandwidth_mib_per_s, brokers)}
    return {name: operators.get(name, defaults.get(name)) for name in OPERATORS_LIMITS}


def limits_of(bought: Bought, *, operators: Mapping[str, int | None], brokers: int) -> Limits:
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
        **operators_limits(bought.bandwidth_mib_per_s, operators=operators, brokers=brokers),
    )


def config_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """What is in force: what the tenant has set, and defaults."""
    return {name: found.get(name, default) for name, default in DEFAULT_CONFIG.items()}


def spec_of(
    *,
    instance_id: str,
    generation: int,
    state: InstanceState,
    bought: Bought,
    listeners: Sequence[Listener],
    operators: Mapping[str, int | None] = MappingProxyType({}),
    advertised_host: str = "",
) -> InstanceSpec:
    """The document for ZooKeeper. `advertised_host` stands before the brokers where a VIP does; empty: as bound.

    `operators` has the limits that an operator has set, None for unlimited. Whom an instance without listeners would let in
    is nobody: so one that has more whitelists than can be written can still be closed and taken away.
    """
    is_open = state is InstanceState.RUNNING
    config = config_of(bought.config)
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
        limits=limits_of(bought, operators=operators, brokers=len(endpoints)),
        whitelist=tuple(bought.whitelist) if is_open else (),
        routes=(Route(DEFAULT_ROUTE, endpoints),),
        auto_create_topics=config["auto_create_topics"],
        topic_defaults=TopicDefaults(
            partitions=config["default_partitions"],
            replication_factor=config["default_replication_factor"],
            max_message_bytes=config["max_message_bytes"],
        ),
        topic_whitelists=({topic: tuple(cidrs) for topic, cidrs in bought.topic_whitelists.items()} if is_open else {}),
    )
