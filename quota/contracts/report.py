"""What a broker tells the master every period: how much flowed, per instance and direction.

Sent as length-prefixed JSON (a 4-byte big-endian length, then the document). Version 3, a row of numbers per flow: a
broker has thousands of instances, a master a hundred brokers, and names would be most of what is parsed every second::

    {"version": 3, "type": "report", "broker": 2, "boot": "…", "sequence": 41, "period_ms": 1000,
     "instances": {"ins-k3v9x2qa": [[812345, 0, 0, 2, 1747626, null],      the fields of `Flow`: produce
                                    [0, 0, 0, 2, 1747626, null],           and consume
                                    123456789, 12]}}                       storage bytes, connections

The first report of a connection names every instance. Those that follow are `partial`: they continue the report with the
sequence before theirs and leave out a row that is as it was there, if nothing flowed in it and nobody waited. `gone` lists
rows that are gone. A master that does not know the report before closes the connection, and the next one begins anew.

`bytes` are request or response bytes on the wire in the `period_ms` before the report, between client and leader; what
a throttled sender still has to wait for counts when the wait is over. Periods of reports in a row may overlap.
A throttle rule within an instance has a row of its own (`quota.contracts.rows`), with nothing stored; so have an
instance's requests and its broker time, where they are limited: there `bytes` are thousandths of requests, and
microseconds. Rules for consumer groups need to know whose fetches they are about: `members`, present where there are
some, are those of groups that this broker coordinates, ``{row: [[client id, address], …]}``; grants bring them to all
brokers.

`loop` is how busy the broker's loop was since its last report: ``{"longest_us": 1830, "longest_of": "ins-k3v9x2qa",
"busy_ms": 412, "cut": {"ins-k3v9x2qa": 3}, "too_large": {"ins-k3v9x2qa": 1}}``: the longest turn and the instance that had
most of it ("": the cluster itself), and by instance, since the broker's boot: connections that were cut off because their
instance held too much memory, requests that were larger than may come, idempotent producers that were forgotten because
the instance has too many (`forgotten_producers`), fetches that found no place for a session (`refused_sessions`), logins
that failed (`failed_logins`; "": at the internal listener), and requests of transactions that found no room for what they bring
(`refused_in_transactions`). `times` is what the loop worked for each in the last window of ten seconds, where one has ended
(`quota.contracts.loop_time`). Older brokers leave out what they do not know.

`transactions` counts what the broker coordinates: ``{"ins-k3v9x2qa": [3, 40]}`` are transactions that are open, or are being
ended, and transactional ids. A report that names everything names all instances that have some, a partial one those whose
numbers have changed, ``[0, 0]`` where nothing is left; a row that is gone takes its numbers along. Older brokers leave it out.

`trouble` is what the broker that is the controller knows of all brokers: ``{"ins-k3v9x2qa": [1, 6]}`` are partitions without a
leader, and partitions that have one and fewer replicas in sync than replicas. Only instances that have such are named, in
partial reports too; other brokers, and older ones, leave it out. `absent`, by the same broker, is what the cluster lacks of other
brokers, ``{"3": [6, 1, 0]}``: replicas of theirs that are not in sync with a leader, replicas of partitions that have none, and
how many of these hold groups' offsets, so that groups have no coordinator.

`requests` is what became of requests in windows of ten seconds that are over (`quota.contracts.requests`): ``{"ins-k3v9x2qa":
{"1740830400": text}}`` by when they began. A window is told once, and again to whom this connection is new; older brokers, and
reports that have none to tell, leave it out. `requests_until` says of which windows nothing is missing, those that began before
this second by the broker's clock; of an older broker, which leaves it out, that is not known.

`leaders` is n_b of ALLOCATION.md. `allocation` is what the broker holds at the moment in bytes/s (null: it has no grant
and stands on its initial share), so that a new master can learn; `blocked` is the reason a grant gave, for the same
purpose. `queued_bytes` is what was let through and is not paid for yet; what waits behind it is in sockets, unread and
uncounted. `storage_bytes` counts every replica on the broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from quota.contracts.instance import ContractError
from quota.contracts.loop_time import LoopTimes, times_of
from quota.contracts.loop_time import documents_of as loop_documents_of
from quota.contracts.requests import Windows, documents_of, windows_of
from quota.steps import ROWS_PER_STEP, Steps, run_through

VERSION = 3
DIRECTIONS = ("produce", "consume")


Absent = Mapping[int, tuple[int, int, int]]
"""By broker: its replicas that are not in sync, those of partitions without a leader, and of these, those of groups."""
Transactions = Mapping[str, tuple[int, int]]
"""By instance: transactions that are open, and transactional ids."""
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


def parse_transactions(document: dict[str, Any]) -> Transactions:
    """Of a report or of grants. Raises ValueError, TypeError, AttributeError, ContractError."""
    rows = document.get("transactions")
    if not rows:
        return {}
    for counts in rows.values():
        _check("transactions", counts)
    return {str(instance): (is_open, ids) for instance, (is_open, ids) in rows.items()}


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

    @property
    def is_busy(self) -> bool:
        """Whether anything flowed, or somebody waited."""
        produce, consume, _, _ = self
        return bool(produce[0] or produce[1] or consume[0] or consume[1])

    def flow(self, direction: str) -> Flow:
        """The flow of ``produce`` or ``consume``."""
        return self.produce if direction == "produce" else self.consume


class LoopLoad(NamedTuple):
    """What a broker's loop did since the last report; counts by instance are since the broker's boot."""

    longest_us: int
    longest_of: str  # an instance; "": the cluster itself
    busy_ms: int
    cut: Mapping[str, int]  # connections that were cut off because their instance held too much
    too_large: Mapping[str, int]  # requests that were larger than may come
    forgotten_producers: Mapping[str, int]  # because their instance has too many
    refused_sessions: Mapping[str, int]  # fetches that found no place for one
    failed_logins: Mapping[str, int]  # "": at the internal listener
    refused_in_transactions: Mapping[str, int]  # requests that found no room for an id, for partitions, or for offsets
    times: LoopTimes = MappingProxyType({})  # by window

    def to_document(self) -> dict[str, Any]:
        """As a report has it."""
        document = self._asdict()
        times: LoopTimes = document.pop("times")
        return document | {"times": loop_documents_of(times)} if times else document

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> LoopLoad:
        """Raises KeyError, TypeError, ValueError, AttributeError, ContractError."""
        return cls(
            _whole(document, "longest_us"),
            str(document["longest_of"]),
            _whole(document, "busy_ms"),
            _counts(document, "cut"),
            _counts(document, "too_large"),
            _counts(document, "forgotten_producers"),
            _counts(document, "refused_sessions"),
            _counts(document, "failed_logins"),
            _counts(document, "refused_in_transactions"),
            times_of(document.get("times", {})),
        )


@dataclass(frozen=True, slots=True)
class FlowReport:
    """All of one broker's instances and throttle rules over one period."""

    broker: int
    boot: str  # random per start of the broker
    sequence: int
    period_ms: int
    instances: Mapping[str, InstanceReport]
    members: Members = field(default_factory=dict)
    partial: bool = False
    gone: Sequence[str] = ()
    loop: LoopLoad | None = None
    trouble: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    absent: Absent = field(default_factory=dict)
    transactions: Transactions = field(default_factory=dict)
    requests: Windows = field(default_factory=dict)
    requests_until: int | None = None

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
            pieces.append(to_bytes({name: self.instances[name] for name in names[at : at + ROWS_PER_STEP]})[1:-1])
        # No string of the document can look like this: JSON escapes the quotes that are part of one.
        head, _, tail = to_bytes(self._frame()).partition(b'"instances":{}')
        return b"".join((head, b'"instances":{', b",".join(pieces), b"}", tail))

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
        if self.loop is not None:
            document["loop"] = self.loop.to_document()
        if self.trouble:
            document["trouble"] = self.trouble
        if self.transactions:
            document["transactions"] = self.transactions
        if self.absent:
            document["absent"] = {str(broker): counts for broker, counts in self.absent.items()}
        if self.requests:
            document["requests"] = documents_of(self.requests)
        if self.requests_until is not None:
            document["requests_until"] = self.requests_until
        if self.partial:
            document |= {"partial": True, "gone": self.gone}
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
                instances=_instances(document["instances"]),
                members=parse_members(document),
                partial=bool(document.get("partial")),
                gone=tuple(map(str, document.get("gone", ()))),
                loop=LoopLoad.from_document(document["loop"]) if document.get("loop") is not None else None,
                trouble=_trouble(document.get("trouble", {})),
                absent=_absent(document.get("absent", {})),
                transactions=parse_transactions(document),
                requests=windows_of(document.get("requests", {})),
                requests_until=_whole(document, "requests_until") if "requests_until" in document else None,
            )
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"flow report: {type(error).__name__}: {error}") from error


def _trouble(rows: Mapping[str, Sequence[Any]]) -> dict[str, tuple[int, int]]:
    """Raises ValueError, TypeError, AttributeError, ContractError."""
    for counts in rows.values():
        _check("trouble", counts)
    return {str(instance): (leaderless, behind) for instance, (leaderless, behind) in rows.items()}


def _absent(rows: Mapping[str, Sequence[Any]]) -> Absent:
    """Raises ValueError, TypeError, AttributeError, ContractError."""
    for counts in rows.values():
        _check("absent", counts)
    return {int(broker): (behind, leaderless, groups) for broker, (behind, leaderless, groups) in rows.items()}


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """JSON of what is sent every second. NamedTuples become arrays."""
    data: bytes = orjson.dumps(document, default=tuple, option=orjson.OPT_SORT_KEYS)
    return data


_new = tuple.__new__  # a third of the cost of the constructor: a master reads 200,000 rows a second
_flow = partial(_new, Flow)


def _instances(rows: Mapping[str, Sequence[Any]]) -> dict[str, InstanceReport]:
    """Checked column by column, which costs a third of looking at each number by itself."""
    if not rows:
        return {}
    produce, consume, stored, connections = zip(*rows.values(), strict=True)
    for flows in (produce, consume):
        *numbers, allocation, blocked = zip(*flows, strict=True)
        for name, column in zip(Flow._fields[:4], numbers, strict=True):
            _check(name, column)
        _check("allocation", [value for value in allocation if value is not None])
        if not {*map(type, blocked)} <= {str, type(None)}:
            raise ContractError("flow report: blocked must be a reason or null")
    _check("storage_bytes", stored)
    _check("connections", connections)
    entries = zip(map(_flow, produce), map(_flow, consume), stored, connections, strict=True)
    return dict(zip(rows, map(_new, repeat(InstanceReport), entries), strict=True))


def _check(name: str, column: Sequence[Any]) -> None:
    if not {*map(type, column)} <= {int} or min(column, default=0) < 0:
        fault = next(value for value in column if type(value) is not int or value < 0)
        raise ContractError(f"flow report: {name} {fault!r} must be a whole number of 0 or more")


def _counts(document: dict[str, Any], name: str) -> dict[str, int]:
    counts = {str(instance): count for instance, count in document.get(name, {}).items()}
    _check(name, list(counts.values()))
    return counts


def _whole(document: dict[str, Any], name: str) -> int:
    value = document[name]
    if type(value) is not int or value < 0:
        raise ContractError(f"flow report: {name} must be a whole number of 0 or more, not {value!r}")
    return value
