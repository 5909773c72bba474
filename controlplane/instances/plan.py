"""The next step towards brokers serving what is wanted. Pure: reconcile.py observes, asks here, does one step, returns.

In order, the first that applies:

1. A live broker has no port for a route of the instance      -> Allocate
2. ZooKeeper holds a newer generation than the database, or   -> Advance (the database is the truth: it must outrank)
   another document, or one of version 1, under the same one
3. ZooKeeper holds an older one, or none                      -> Publish
4. A broker says that it cannot have a route's port           -> Replace
5. A live broker has not applied the generation               -> Await
6. otherwise                                                  -> Settled
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quota.contracts.instance import InstanceSpec, InstanceState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quota.contracts.applied import AppliedInstance


_CANNOT_LISTEN = re.compile(r"cannot listen on \S+:(?P<port>[0-9]+): ")
"""How the sentence of a broker begins that has not got a port (`dataplane.tenancy.registry`)."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What is there. `applied` has an entry for every live broker: None for one that does not know the instance."""

    published: InstanceSpec | None
    applied: Mapping[int, AppliedInstance | None]


@dataclass(frozen=True, slots=True)
class Allocate:
    """Give out a port for each of these routes and brokers."""

    listeners: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Advance:
    """Raise the database's generation to this one."""

    generation: int


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the spec to ZooKeeper."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Another process has this broker's port of a route: pick another."""

    route: str
    broker: int
    port: int


@dataclass(frozen=True, slots=True)
class Await:
    """Nothing to do but wait for brokers; `note` says for which and why."""

    note: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Every live broker serves what is wanted."""


NextStep = Allocate | Advance | Publish | Replace | Await | Settled


def next_step(wanted: InstanceSpec, observed: Observed) -> NextStep:
    """The first that applies of the six above."""
    ports = _ports(wanted)
    live = sorted(observed.applied)
    homeless = tuple(
        (route.id, broker) for route in wanted.routes for broker in live if (route.id, broker) not in ports
    )
    if homeless and wanted.state is InstanceState.RUNNING:
        return Allocate(homeless)
    published = observed.published
    if published is not None and published.generation >= wanted.generation and _differs(published, wanted):
        return Advance(published.generation + 1)
    if published is None or published.generation < wanted.generation:
        return Publish()
    if not live:
        return Await("no broker is running")
    return _brokers_step(wanted, observed, ports)


def _differs(published: InstanceSpec, wanted: InstanceSpec) -> bool:
    """Throttle rules aside: others than the control plane write them."""
    return published.whitelists_of is None or replace(published, rules=wanted.rules) != wanted


def _brokers_step(wanted: InstanceSpec, observed: Observed, ports: Mapping[tuple[str, int], int]) -> NextStep:
    behind = []
    for broker, applied in sorted(observed.applied.items()):
        if applied is None:
            # A broker that has forgotten an instance to be deleted has done what was asked.
            if wanted.state is not InstanceState.DELETED:
                behind.append(f"broker {broker} has not seen it")
        elif applied.generation < wanted.generation:
            behind.append(f"broker {broker} is at generation {applied.generation} of {wanted.generation}")
        elif applied.problem is not None:
            taken = [at for at, port in sorted(ports.items()) if at[1] == broker and _has_not(applied, at[0], port)]
            if taken and wanted.state is InstanceState.RUNNING:
                return Replace(*taken[0], ports[taken[0]])
            behind.append(f"broker {broker}: {applied.problem}")
    return Await("; ".join(behind)) if behind else Settled()


def _has_not(applied: AppliedInstance, route: str, port: int) -> bool:
    """Whether the broker says that it cannot have this port for this route.

    Other sentences have numbers too, some of which tenants write: they must not have ports taken from the cluster.
    """
    found = _CANNOT_LISTEN.match(applied.problem_of(route) or "")
    return found is not None and int(found["port"]) == port


def _ports(spec: InstanceSpec) -> dict[tuple[str, int], int]:
    """By route and broker."""
    return {
        (route.id, broker): endpoint.bind[1] for route in spec.routes for broker, endpoint in route.endpoints.items()
    }
