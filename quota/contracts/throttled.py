"""A throttled interval: one direction of an instance, or of a throttle rule within one, had to wait.

The master's flight recorder keeps them, the control plane stores them, "why was I throttled?" is answered from them.

One line of JSON each, version 1. Rates in bytes/s (null: unlimited), moments in milliseconds since 1970, UTC::

    {"version": 1, "instance": "ins-k3v9x2qa", "rule": null, "direction": "produce", "epoch": 3, "strategy": "ckafka",
     "started_at_ms": 1763712063000, "ended_at_ms": 1763712119000, "limit": 5242880,
     "throttled_ms": 41000, "under_limit_ms": 0, "over_percent": [17.0, 3.1, 0.4],
     "waits_ms": {"1": 41000},                                            by broker, over the whole interval
     "moment": {"at_ms": 1763712070000,                                   the period in which most was waited
                "brokers": [[1, 4, 3495253, 3670016, 3670016, 3670016, "headroom", 1000, 40960]]}}   `BrokerInputs`

`rule` is null where the limit is the instance's own; otherwise it is the row's name within the instance
(`quota.contracts.rows`), which says in what rates and amounts are. An instance that carried more than was
bought has an interval too, with no waiting in it.

``"blocked": "storage"``, where it is there, says that producing was refused altogether, because storage was full: then it
is not the limit that made anybody wait.

An interval lasts a minute at most, so that what is kept is bounded however long somebody waits. The same
(instance, rule, direction, epoch, started_at_ms) may come again with a later end, while the interval lasts: the last one
counts, and a master that is killed loses seconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from quota.contracts.instance import ContractError
from quota.contracts.rows import Row

VERSION = 1
WINDOWS_S = (1, 10, 60)
"""What over-admission is measured over."""


class BrokerInputs(NamedTuple):
    """One broker in one period: everything that the decision was made from, and the decision."""

    broker: int
    leaders: int  # n
    initial_share: int | None  # F
    flow: int  # u
    allocation: int | None  # a, in force while u flowed; without a grant a broker stands on F
    granted: int | None  # a, as it was decided from this u
    branch: str  # of that decision
    throttled_ms: int
    waiting_bytes: int  # let through and not paid for yet, when the period ended: the debt of the bucket


class Moment(NamedTuple):
    """One period over all leaders, in broker order."""

    at_ms: int
    brokers: tuple[BrokerInputs, ...]


@dataclass(frozen=True, slots=True)
class ThrottledInterval:
    """One stretch of time in which a limit made an instance wait; members are listed above."""

    instance: str
    rule: str | None
    direction: str
    epoch: int
    strategy: str
    started_at_ms: int
    ended_at_ms: int
    limit: int
    throttled_ms: int  # time in which some broker made somebody wait
    under_limit_ms: int  # of it, below 95 % of the limit, by brokers that did not hold what the others left of it
    over_percent: tuple[float, ...]  # the most above the limit in windows of WINDOWS_S that ended in the interval
    waits_ms: Mapping[int, int]  # by broker
    moment: Moment
    blocked: str | None = None  # why nothing was let in at all

    @property
    def row(self) -> Row:
        """What had to wait."""
        return Row.within(self.instance, self.rule)

    def to_json(self) -> bytes:
        """One line, without its end."""
        document = {
            "version": VERSION,
            "instance": self.instance,
            "rule": self.rule,
            "direction": self.direction,
            "epoch": self.epoch,
            "strategy": self.strategy,
            "started_at_ms": self.started_at_ms,
            "ended_at_ms": self.ended_at_ms,
            "limit": self.limit,
            "throttled_ms": self.throttled_ms,
            "under_limit_ms": self.under_limit_ms,
            "over_percent": self.over_percent,
            "waits_ms": self.waits_ms,
            "moment": {"at_ms": self.moment.at_ms, "brokers": self.moment.brokers},
        }
        if self.blocked is not None:
            document["blocked"] = self.blocked
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> ThrottledInterval:
        """From a parsed line. Raises ContractError."""
        try:
            if document["version"] > VERSION:
                raise ContractError(f"throttled interval: version {document['version']} is newer than {VERSION}")
            moment = document["moment"]
            return cls(
                instance=document["instance"],
                rule=document["rule"],
                direction=document["direction"],
                epoch=document["epoch"],
                strategy=document["strategy"],
                started_at_ms=document["started_at_ms"],
                ended_at_ms=document["ended_at_ms"],
                limit=document["limit"],
                throttled_ms=document["throttled_ms"],
                under_limit_ms=document["under_limit_ms"],
                over_percent=tuple(document["over_percent"]),
                waits_ms={int(broker): waited_ms for broker, waited_ms in document["waits_ms"].items()},
                blocked=document.get("blocked"),
                moment=Moment(moment["at_ms"], tuple(BrokerInputs(*row) for row in moment["brokers"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, ContractError):
                raise
            raise ContractError(f"throttled interval: {type(error).__name__}: {error}") from error
