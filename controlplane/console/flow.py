"""What flows through an instance, for a page: totals against limits, and which rule shares the limit out, in words.

The master answers in bytes/s (quota/master/views.py). `flow_of` adds what a page draws: shares of a limit in percent,
and for each branch of the rule a sentence that a tenant understands. Pure.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from controlplane.health.rules import NEARLY_FULL_PERCENT
from quota.contracts.instance import GIB, MIB

RULES = {
    "initial": "Even",
    "proportional": "By traffic",
    "headroom": "Burst",
    "bounded": "Shared",
    "unlimited": "No limit",
    "learning": "Starting",
    "reserved": "Reserved",
}
"""What the rules are called on pages; their own names (ALLOCATION, master's documents) stand in tooltips."""
BRANCHES = {
    "initial": "No broker is near its share, so each may carry its part by the partitions it leads.",
    "proportional": "Brokers are used alike, so each may carry its part of the traffic.",
    "headroom": "Traffic is uneven, so busy brokers are given more and quiet ones keep room to grow.",
    "bounded": "Traffic is uneven; brokers that wait share equally what the others leave.",
    "unlimited": "There is no limit in this direction.",
    "learning": "A new flow master has taken over; brokers keep what they had until it knows them.",
    "reserved": "A broker does not report at the moment; its part is kept for it.",
}
DIRECTIONS = ("produce", "consume")
NEARLY = 80  # percent, from where a bar is drawn in the colour of a warning
FULL = 97
HUNDRED = 100


@dataclass(frozen=True, slots=True)
class Bar:
    """An amount against its limit."""

    used: int  # bytes, or bytes/s
    limit: int | None
    percent: float  # 0-100; 0 where there is no limit
    fills: bool = True  # what is full stops: storage, partitions. Flow at its limit is only slower

    @property
    def level(self) -> str:
        """ok, near or full: how it is drawn."""
        if self.fills:
            return "full" if self.percent >= FULL else "near" if self.percent >= NEARLY else "ok"
        return "near" if self.percent >= FULL else "ok"


@dataclass(frozen=True, slots=True)
class StorageBar(Bar):
    """Storage, in the colours of the instance's health: a bar says nothing else than the notice above it."""

    is_full: bool = False  # producing is refused

    @property
    def level(self) -> str:
        """Near from where health calls it nearly full; full only when nothing can be produced any more."""
        is_near = bool(self.limit) and self.used * HUNDRED >= (self.limit or 0) * NEARLY_FULL_PERCENT
        return "full" if self.is_full else "near" if is_near else "ok"


@dataclass(frozen=True, slots=True)
class Direction:
    """What a page shows of producing, or of consuming: flow, limit, and each broker's part."""

    bar: Bar
    branch: str
    words: str
    brokers: list[dict[str, Any]]

    @property
    def rule(self) -> str:
        """The branch, as pages call it."""
        return rule_name(self.branch)


@dataclass(frozen=True, slots=True)
class Flow:
    """What a page shows of an instance's flow and storage at one moment."""

    produce: Direction
    consume: Direction
    storage: Bar
    connections: int

    def as_json(self) -> dict[str, Any]:
        """What static/console/live.js draws."""
        document = asdict(self)
        for bar, value in (
            (document["storage"], self.storage),
            (document["produce"]["bar"], self.produce.bar),
            (document["consume"]["bar"], self.consume.bar),
        ):
            bar["level"] = value.level
        for name, direction, _ in directions(self):
            document[name]["rule"] = direction.rule
        return document


def rule_name(branch: str) -> str:
    """What a rule of the allocation is called on pages; itself, where a newer master has others."""
    return RULES.get(branch, branch)


def directions(flow: Flow) -> list[tuple[str, Direction, str]]:
    """Name, figures and title of both, for a page."""
    return [(name, getattr(flow, name), name.capitalize()) for name in DIRECTIONS]


def broker_time_of(document: dict[str, Any]) -> dict[str, Any] | None:
    """Broker time with what is used of it in all, in milliseconds a second; None: not limited, or not known."""
    found: dict[str, Any] | None = document.get("broker_time")
    return found and found | {"used": round(sum(broker["flow"] for broker in found["brokers"]), 1)}


def transactions_of(document: dict[str, Any]) -> dict[str, Bar] | None:
    """Open transactions and transactional ids against their limits; None: not known."""
    found: dict[str, Any] | None = document.get("transactions")
    return found and {name: bar(found[name], found[f"{name}_limit"]) for name in ("open", "ids")}


def bar(used: int | None, limit: int | None, *, fills: bool = True) -> Bar:
    """With its percentage."""
    used = used or 0
    return Bar(used, limit, round(min(HUNDRED, HUNDRED * used / limit), 1) if limit else 0.0, fills)


def storage_bar(used: int | None, limit: int, *, is_full: bool) -> StorageBar:
    """With its percentage."""
    plain = bar(used, limit)
    return StorageBar(plain.used, plain.limit, plain.percent, is_full=is_full)


class Bought(Protocol):
    """An instance, by its sizes (`instances.models.Instance`)."""

    bandwidth_mib_per_s: float
    storage_gib: float


def flow_of(instance: Bought, document: dict[str, Any]) -> Flow:
    """From the master's document. Storage is measured against what was bought."""
    bandwidth = round(instance.bandwidth_mib_per_s * MIB)
    return Flow(
        produce=_direction(document.get("produce"), bandwidth),
        consume=_direction(document.get("consume"), bandwidth),
        storage=storage_bar(
            document.get("storage_used_bytes"),
            round(instance.storage_gib * GIB),
            is_full=bool(document.get("storage_full")),
        ),
        connections=document.get("connections") or 0,
    )


def _direction(document: dict[str, Any] | None, bought: int) -> Direction:
    document = document or {"limit": bought, "branch": "initial", "brokers": []}
    brokers = document["brokers"]
    branch = document["branch"]
    return Direction(
        bar=bar(sum(broker["flow"] for broker in brokers), document["limit"], fills=False),
        branch=branch,
        words=BRANCHES.get(branch, "") if brokers else "No partition has a leader yet: make a topic first.",
        brokers=brokers,
    )
