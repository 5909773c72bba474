"""From what was bought to what brokers read. Pure.

Bandwidth is given in MiB/s and counts once per direction: an instance of 5 MiB/s may produce 5 and consume 5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quota.contracts.instance import (
    GIB,
    MIB,
    Authorizer,
    Endpoint,
    InstanceSpec,
    InstanceState,
    Limits,
    Route,
    TopicDefaults,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_ROUTE = "default"
CONNECTIONS_PER_BROKER = 1000
CONNECTIONS_PER_ADDRESS = 500  # a broker's, too: half of them are left when one machine runs wild
CONNECTIONS_PER_S = 200
LEAST_LOOP_MS_PER_S = 300
LOOP_MS_PER_MIB = 60
MOST_LOOP_MS_PER_S_AND_BROKER = 900
OPEN_TRANSACTIONS, MOST_OPEN_TRANSACTIONS = (200, 50), 10_000  # at least, for each MiB/s, and at most
TRANSACTIONAL_IDS, MOST_TRANSACTIONAL_IDS = (10_000, 2_000), 100_000
TRANSACTION_TIMEOUT_MS = 900_000  # Kafka's own
DEFAULT_CONFIG: Mapping[str, Any] = MappingProxyType(
    {
        "auto_create_topics": False,
        "default_partitions": 3,
        "default_replication_factor": 3,
        "max_message_bytes": 1_048_588,  # Kafka's own
        "allow_everyone_if_no_acl_found": True,  # these two are how ACLs are meant, not of topics
        "super_users": (),
        "audit": False,
    }
)
"""What holds for an instance as long as its tenant has said nothing else."""
OPERATORS_LIMITS = (
    "topics",
    "requests_per_s",
    "loop_ms_per_s",
    "open_transactions",
    "transactional_ids",
    "transaction_timeout_ms",
)
"""Which plans do not sell, by their names in `Limits`: there is a default, and an operator may set another."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Where one broker serves a route of the instance."""

    broker: int
    host: str
    port: int
    route: str = DEFAULT_ROUTE


@dataclass(frozen=True, slots=True)
class WantedRoute:
    """A route but for its endpoints, and where its clients are told to connect: by broker, or at one host, or as bound."""

    route: Route
    advertised_host: str = ""
    advertised_hosts: Mapping[int, str] = field(default_factory=dict)

    def advertised(self, listener: Listener, otherwise: str = "") -> tuple[str, int]:
        """The address of a listener that clients are told; `otherwise` is the installation's host, or empty."""
        host = self.advertised_hosts.get(listener.broker) or self.advertised_host or otherwise or listener.host
        return host, listener.port


PLAIN_ROUTE = WantedRoute(Route(DEFAULT_ROUTE, {}))
"""What a new instance has."""


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


def transactions_default(bandwidth_mib_per_s: float) -> dict[str, int]:
    """What an instance may have of transactions for which no operator has set something else; how many, over all brokers.

    A transaction that is open costs coordinators memory, and a record for each change. A program has one open for each of its
    threads, and seldom more than fifty threads for a MiB/s. A transactional id is kept in memory for seven days after its last
    use; and some programs take a new one for each of their checkpoints: ten in a minute are 100,000 in that time. What each
    partition of the brokers' topic holds of one instance (`transactional_ids_per_instance`) may be reached before.
    """

    def between(amounts: tuple[int, int], most: int) -> int:
        least, per_mib = amounts
        return min(max(least, round(per_mib * bandwidth_mib_per_s)), most)

    return {
        "open_transactions": between(OPEN_TRANSACTIONS, MOST_OPEN_TRANSACTIONS),
        "transactional_ids": between(TRANSACTIONAL_IDS, MOST_TRANSACTIONAL_IDS),
        "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
    }


def operators_limits(
    bandwidth_mib_per_s: float, *, operators: Mapping[str, int | None], brokers: int
) -> dict[str, int | None]:
    """What is in force of OPERATORS_LIMITS: what an operator has set, or the default."""
    loop_ms = loop_ms_default(bandwidth_mib_per_s, brokers)
    defaults = {"loop_ms_per_s": loop_ms, **transactions_default(bandwidth_mib_per_s)}
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
    routes: Sequence[WantedRoute] = (PLAIN_ROUTE,),
    operators: Mapping[str, int | None] = MappingProxyType({}),
    advertised_host: str = "",
) -> InstanceSpec:
    """The document for ZooKeeper. `advertised_host` stands before the brokers where a VIP does; empty: as bound.

    `operators` has the limits that an operator has set, None for unlimited. Whom an instance without listeners would let in
    is nobody: so one that has more whitelists than can be written can still be closed and taken away.
    """
    is_open = state is InstanceState.RUNNING
    config = config_of(bought.config)
    return InstanceSpec(
        id=instance_id,
        generation=generation,
        state=state,
        limits=limits_of(bought, operators=operators, brokers=len({each.broker for each in listeners})),
        whitelist=tuple(bought.whitelist) if is_open else (),
        routes=tuple(_with_endpoints(route, listeners, advertised_host) for route in routes),
        auto_create_topics=config["auto_create_topics"],
        topic_defaults=TopicDefaults(
            partitions=config["default_partitions"],
            replication_factor=config["default_replication_factor"],
            max_message_bytes=config["max_message_bytes"],
        ),
        audit=config["audit"],
        authorizer=Authorizer(config["allow_everyone_if_no_acl_found"], tuple(config["super_users"])),
        topic_whitelists=({topic: tuple(cidrs) for topic, cidrs in bought.topic_whitelists.items()} if is_open else {}),
    )


def _with_endpoints(wanted: WantedRoute, listeners: Sequence[Listener], advertised_host: str) -> Route:
    """Listeners of other routes, of one that is being taken away for instance, are none of its business."""
    endpoints = {
        each.broker: Endpoint(bind=(each.host, each.port), advertised=wanted.advertised(each, advertised_host))
        for each in listeners
        if each.route == wanted.route.id
    }
    return replace(wanted.route, endpoints=endpoints)
