"""What a broker tells the master every period: how much flowed, per instance and direction.

Sent as length-prefixed JSON (a 4-byte big-endian length, then the document). Version 1::

    {"version": 1, "type": "report", "broker": 2, "boot": "…", "sequence": 41, "period_ms": 1000,
     "instances": {"ins-k3v9x2qa": {
        "produce": {"bytes": 812345, "throttled_ms": 0, "queued_bytes": 0, "leaders": 2, "allocation": 1747626,
                    "blocked": null},
        "consume": {"bytes": 0, "throttled_ms": 0, "queued_bytes": 0, "leaders": 2, "allocation": 1747626,
                    "blocked": null},
        "storage_bytes": 123456789, "connections": 12}}}

`bytes` are request or response bytes on the wire in the `period_ms` before the report, between client and leader; what
a throttled sender still has to wait for counts when the wait is over. Periods of reports in a row may overlap.
`leaders` is n_b of ALLOCATION.md. `allocation` is what the broker holds at the moment in bytes/s (null: it has no grant
and stands on its initial share), so that a new master can learn; `blocked` is the reason a grant gave, for the same
purpose (a writer may leave it out). `storage_bytes` counts every replica on the broker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from quota.contracts.instance import ContractError

VERSION = 1
DIRECTIONS = ("produce", "consume")


@dataclass(frozen=True, slots=True)
class Flow:
    """One instance and direction on one broker over one period."""

    bytes: int
    throttled_ms: int
    queued_bytes: int
    leaders: int
    allocation: int | None
    blocked: str | None = None


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """One instance on one broker over one period."""

    produce: Flow
    consume: Flow
    storage_bytes: int
    connections: int

    def flow(self, direction: str) -> Flow:
        """The flow of ``produce`` or ``consume``."""
        return self.produce if direction == "produce" else self.consume


@dataclass(frozen=True, slots=True)
class FlowReport:
    """All of one broker's instances over one period."""

    broker: int
    boot: str  # random per start of the broker
    sequence: int
    period_ms: int
    instances: Mapping[str, InstanceReport]

    def to_json(self) -> bytes:
        """The document, without the length prefix."""
        document = {
            "version": VERSION,
            "type": "report",
            "broker": self.broker,
            "boot": self.boot,
            "sequence": self.sequence,
            "period_ms": self.period_ms,
            "instances": {instance: asdict(report) for instance, report in self.instances.items()},
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> FlowReport:
        """From a parsed document of type "report". Raises ContractError."""
        try:
            if document["version"] > VERSION:
                raise ContractError(f"flow report: version {document['version']} is newer than {VERSION}")
            return cls(
                broker=_whole(document, "broker"),
                boot=document["boot"],
                sequence=_whole(document, "sequence"),
                period_ms=_whole(document, "period_ms"),
                instances={instance: _instance(report) for instance, report in document["instances"].items()},
            )
        except ContractError:
            raise
        except (KeyError, TypeError, AttributeError) as error:
            raise ContractError(f"flow report: {type(error).__name__}: {error}") from error


def _instance(document: dict[str, Any]) -> InstanceReport:
    return InstanceReport(
        produce=_flow(document["produce"]),
        consume=_flow(document["consume"]),
        storage_bytes=_whole(document, "storage_bytes"),
        connections=_whole(document, "connections"),
    )


def _flow(document: dict[str, Any]) -> Flow:
    allocation = document["allocation"]
    return Flow(
        bytes=_whole(document, "bytes"),
        throttled_ms=_whole(document, "throttled_ms"),
        queued_bytes=_whole(document, "queued_bytes"),
        leaders=_whole(document, "leaders"),
        allocation=None if allocation is None else _whole(document, "allocation"),
        blocked=document.get("blocked"),
    )


def _whole(document: dict[str, Any], name: str) -> int:
    value = document[name]
    if type(value) is not int or value < 0:
        raise ContractError(f"flow report: {name} must be a whole number of 0 or more, not {value!r}")
    return value
