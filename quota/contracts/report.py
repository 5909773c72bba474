"""What a broker tells the master every period: how much flowed, per instance and direction.

Sent as length-prefixed JSON (a 4-byte big-endian length, then the document). Version 2, a row of numbers per flow: a
broker has thousands of instances, a master a hundred brokers, and names would be most of what is parsed every second::

    {"version": 2, "type": "report", "broker": 2, "boot": "…", "sequence": 41, "period_ms": 1000,
     "instances": {"ins-k3v9x2qa": [[812345, 0, 0, 2, 1747626, null],      the fields of `Flow`: produce
                                    [0, 0, 0, 2, 1747626, null],           and consume
                                    123456789, 12]}}                       storage bytes, connections

`bytes` are request or response bytes on the wire in the `period_ms` before the report, between client and leader; what
a throttled sender still has to wait for counts when the wait is over. Periods of reports in a row may overlap.
A throttle rule within an instance has a row of its own (`quota.contracts.rules.flow_key`), with nothing stored; so have an
instance's requests, where they are limited: there `bytes` are thousandths of requests. Rules for consumer groups need to
know whose fetches they are about: `members`, present where there are some, are those of groups that this broker
coordinates, ``{row: [[client id, address], …]}``; grants bring them to all brokers.

`leaders` is n_b of ALLOCATION.md. `allocation` is what the broker holds at the moment in bytes/s (null: it has no grant
and stands on its initial share), so that a new master can learn; `blocked` is the reason a grant gave, for the same
purpose. `queued_bytes` is what was let through and is not paid for yet, and what is parked. `storage_bytes` counts every
replica on the broker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quota.contracts.instance import ContractError
from quota.steps import ROWS_PER_STEP, Steps, run_through

VERSION = 2
DIRECTIONS = ("produce", "consume")


Members = Mapping[str, Sequence[tuple[str, str]]]
"""Client id and address of the members of consumer groups, by the row of their rule."""


def parse_members(document: dict[str, Any]) -> Members:
    """Of a report or of grants. Raises ValueError, TypeError, AttributeError."""
    rows = document.get("members")
    if not rows:
        return {}
    return {
        row: tuple((str(client_id), str(address)) for client_id, address in members) for row, members in rows.items()
    }


class Flow(NamedTuple):
    """One instance and direction on one broker over one period."""

    bytes: int
    throttled_ms: int
    queued_bytes: int
    leaders: int
    allocation: int | None
    blocked: str | None = None


class InstanceReport(NamedTuple):
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
    """All of one broker's instances and throttle rules over one period."""

    broker: int
    boot: str  # random per start of the broker
    sequence: int
    period_ms: int
    instances: Mapping[str, InstanceReport]
    members: Members = field(default_factory=dict)

    def to_json(self) -> bytes:
        """The document, without the length prefix."""
        return run_through(self.json_steps())

    def json_steps(self) -> Steps[bytes]:
        """`to_json` in pieces."""
        names = sorted(self.instances)
        pieces = []
        for at in range(0, len(names), ROWS_PER_STEP):
            if at:
                yield
            pieces.append(document_text({name: self.instances[name] for name in names[at : at + ROWS_PER_STEP]})[1:-1])
        # No string of the document can look like this: JSON escapes the quotes that are part of one.
        head, _, tail = document_text(self._frame()).partition('"instances":{}')
        return "".join((head, '"instances":{', ",".join(pieces), "}", tail)).encode()

    def _frame(self) -> dict[str, Any]:
        """The document without its instances."""
        document: dict[str, Any] = {
            "version": VERSION,
            "type": "report",
            "broker": self.broker,
            "boot": self.boot,
            "sequence": self.sequence,
            "period_ms": self.period_ms,
            "instances": {},
        }
        if self.members:
            document["members"] = self.members
        return document

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> FlowReport:
        """From a parsed document of type "report". Raises ContractError."""
        try:
            if document["version"] > VERSION:
                raise ContractError(f"flow report: version {document['version']} is newer than {VERSION}")
            if document["version"] < VERSION:
                raise ContractError(f"flow report: version {document['version']} is older than {VERSION}")
            return cls(
                broker=_whole(document, "broker"),
                boot=document["boot"],
                sequence=_whole(document, "sequence"),
                period_ms=_whole(document, "period_ms"),
                instances={instance: _instance(report) for instance, report in document["instances"].items()},
                members=parse_members(document),
            )
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"flow report: {type(error).__name__}: {error}") from error


def document_text(document: Mapping[str, Any]) -> str:
    """JSON of what is sent every second."""
    # Looking for circles, which these documents cannot have, would be a quarter of the cost.
    return json.dumps(document, sort_keys=True, separators=(",", ":"), check_circular=False)


_new = tuple.__new__  # a third of the cost of the constructor: a master reads 200,000 rows a second
_ONLY_INT = {int}


def _instance(row: list[Any]) -> InstanceReport:
    produce, consume, storage_bytes, connections = row
    used, throttled_ms, queued, leaders, allocation, _ = produce
    used_2, throttled_ms_2, queued_2, leaders_2, allocation_2, _ = consume
    numbers = (used, throttled_ms, queued, leaders, used_2, throttled_ms_2, queued_2, leaders_2)
    more = (allocation or 0, allocation_2 or 0, storage_bytes, connections)
    report = _new(InstanceReport, (_new(Flow, produce), _new(Flow, consume), storage_bytes, connections))
    if {*map(type, numbers), *map(type, more)} != _ONLY_INT or min(numbers) < 0 or min(more) < 0:
        raise ContractError(f"flow report: {_fault(report)} must be a whole number of 0 or more")
    return report


def _fault(report: InstanceReport) -> str:
    """The first number at fault, by name."""
    for flow in (report.produce, report.consume):
        for name, value in zip(Flow._fields[:4], flow, strict=False):
            if type(value) is not int or value < 0:
                return f"{name} {value!r}"
    return "allocation, storage_bytes or connections"


def _whole(document: dict[str, Any], name: str) -> int:
    value = document[name]
    if type(value) is not int or value < 0:
        raise ContractError(f"flow report: {name} must be a whole number of 0 or more, not {value!r}")
    return value
