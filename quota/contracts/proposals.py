"""A change of who may do what that is tried before it is put in force, at ``/sluice/proposals/<id>``, and what it would do.

::

    /sluice/proposals/<instance>            {"version": 1, "id": "prp-4h2k9xw1", "made_at_ms": …, "ends_at_ms": …,
                                             "whitelist": ["10.0.0.0/8"], "route_whitelists": {"r2": []},
                                             "acls_added": […], "acls_removed": […], "allow_everyone": false}
    /sluice/proposals/<instance>/<broker>   {"version": 1, "proposal": "prp-4h2k9xw1", "since_ms": …, "connections": 12,
                                             "requests": 4096, "left_out": 0, "items": [{"principal": "User:bob",
                                             "source": "10.0.0.7", "route": "r2", "operation": "WRITE",
                                             "resource": "TOPIC:orders", "count": 3, "first_ms": …, "last_ms": …}]}

The control plane writes the first, with a change node in the same transaction, and takes both away. What the proposal does not
name stays as it is in force; ACLs are those in force at each moment, without `acls_removed` and with `acls_added` (in
`quota.contracts.acls`' words). From `ends_at_ms` on it is nothing any more.

Each broker writes what it has seen as a child: who would be cut off, and how much it has judged. So what is found of a proposal
goes with it, and nothing can be found of one that is gone. A broker that does not know proposals writes no child; one that
cannot read this one neither. `operation` of a connection is CONNECT, and its resource is empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from quota.contracts.acls import Acl
from quota.contracts.instance import ContractError, cidrs_of, to_bytes
from quota.contracts.items import ITEMS_PER_STEP, item_bytes
from quota.steps import Steps, run_through

PROPOSALS_PATH = "/sluice/proposals"
VERSION = 1
LARGEST_PROPOSAL = 300_000
MOST_ACLS = 500
LARGEST_FINDINGS = 400_000
"""Bytes of a broker's document; what does not fit is counted."""
MOST_FINDINGS = 1_000
"""Of an instance on a broker."""
CONNECT = "CONNECT"


def proposal_path(instance: str) -> str:
    """Where the proposal of an instance stands."""
    return f"{PROPOSALS_PATH}/{instance}"


def findings_path(instance: str, broker: int) -> str:
    """Where a broker says what it has seen."""
    return f"{proposal_path(instance)}/{broker}"


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would be in force. None, or empty: as it is."""

    id: str
    made_at_ms: int
    ends_at_ms: int
    whitelist: tuple[str, ...] | None = None
    route_whitelists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    acls_added: tuple[Acl, ...] = ()
    acls_removed: tuple[Acl, ...] = ()
    allow_everyone: bool | None = None

    @property
    def is_about_acls(self) -> bool:
        """Whether it could change what a request may do."""
        return bool(self.acls_added or self.acls_removed) or self.allow_everyone is not None

    def acls_after(self, acls: Sequence[Acl]) -> list[Acl]:
        """What would stand in place of these."""
        gone = set(self.acls_removed)
        return list(dict.fromkeys([*(acl for acl in acls if acl not in gone), *self.acls_added]))

    def to_json(self) -> bytes:
        """The document. Equal proposals are equal bytes."""
        document: dict[str, Any] = {
            "version": VERSION,
            "id": self.id,
            "made_at_ms": self.made_at_ms,
            "ends_at_ms": self.ends_at_ms,
            "route_whitelists": {route: list(cidrs) for route, cidrs in self.route_whitelists.items()},
            "acls_added": [acl.document() for acl in self.acls_added],
            "acls_removed": [acl.document() for acl in self.acls_removed],
        }
        if self.whitelist is not None:
            document["whitelist"] = list(self.whitelist)
        if self.allow_everyone is not None:
            document["allow_everyone"] = self.allow_everyone
        return to_bytes(document)

    @classmethod
    def from_json(cls, data: bytes) -> Proposal:
        """Raises ContractError."""
        return run_through(cls.reading(data))

    @classmethod
    def reading(cls, data: bytes) -> Steps[Proposal]:
        """The same in steps. Raises ContractError."""
        try:
            document = json.loads(data)
            if document["version"] > VERSION:
                raise ContractError(f"proposal: version {document['version']} is newer than {VERSION}")
            whitelist, everyone = document.get("whitelist"), document.get("allow_everyone")
            moments = document["made_at_ms"], document["ends_at_ms"]
            if not all(type(moment) is int for moment in moments) or type(document["id"]) is not str:
                raise ContractError("proposal: its id or its times are something else")
            if everyone is not None and type(everyone) is not bool:
                raise ContractError("proposal: allow_everyone is something else")
            return cls(
                document["id"],
                *moments,
                whitelist=None if whitelist is None else cidrs_of(whitelist),
                route_whitelists={route: cidrs_of(cidrs) for route, cidrs in document["route_whitelists"].items()},
                acls_added=(yield from _acls(document["acls_added"])),
                acls_removed=(yield from _acls(document["acls_removed"])),
                allow_everyone=everyone,
            )
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"proposal: {type(error).__name__}: {error}") from error


def _acls(items: Sequence[Mapping[str, Any]]) -> Steps[tuple[Acl, ...]]:
    made: list[Acl] = []
    for item in items:
        made.append(Acl.from_document(item))
        if not len(made) % ITEMS_PER_STEP:
            yield None
    return tuple(made)


def proposal_problem(proposal: Proposal) -> str | None:
    """Why it cannot be written, in a sentence with the limit and the size; None: it can."""
    acls = len(proposal.acls_added) + len(proposal.acls_removed)
    if acls > MOST_ACLS:
        return f"a proposal may add and remove {MOST_ACLS} ACLs, not {acls}"
    size = len(proposal.to_json())
    return f"a proposal may take {LARGEST_PROPOSAL} bytes, not {size}" if size > LARGEST_PROPOSAL else None


@dataclass(frozen=True, slots=True, order=True)
class Cut:
    """Who would be cut off from what, in the tenant's own names."""

    principal: str
    source: str
    route: str
    operation: str
    resource: str  # "TOPIC:orders"


@dataclass(slots=True)
class Seen:
    """How often, and when first and last: milliseconds of a broker's wall clock."""

    count: int
    first_ms: int
    last_ms: int

    def add(self, other: Seen) -> None:
        """Another broker's."""
        self.count += other.count
        self.first_ms, self.last_ms = min(self.first_ms, other.first_ms), max(self.last_ms, other.last_ms)


@dataclass(slots=True)
class Findings:
    """What a broker has seen of a proposal."""

    proposal: str
    since_ms: int
    connections: int = 0  # that were judged
    requests: int = 0  # questions of requests that were judged; what a connection repeats and may is one
    left_out: int = 0  # times that somebody would be cut off whom there was no room to name
    cuts: dict[Cut, Seen] = field(default_factory=dict)

    def to_json(self) -> Steps[bytes]:
        """The document, in steps: a thousand take milliseconds."""
        items: list[bytes] = []
        size, left_out = 0, self.left_out
        for number, (cut, seen) in enumerate(list(self.cuts.items()), 1):
            item = item_bytes(
                {
                    **{name: getattr(cut, name) for name in Cut.__slots__},
                    **{name: getattr(seen, name) for name in Seen.__slots__},
                }
            )
            size += len(item) + 1
            if size <= LARGEST_FINDINGS:
                items.append(item)
            else:
                left_out += seen.count
            if not number % ITEMS_PER_STEP:
                yield None
        head = to_bytes(
            {
                "version": VERSION,
                "proposal": self.proposal,
                "since_ms": self.since_ms,
                "connections": self.connections,
                "requests": self.requests,
                "left_out": left_out,
            }
        )
        return b'%b,"items":[%b]}' % (head[:-1], b",".join(items))

    @classmethod
    def from_json(cls, data: bytes) -> Findings:
        """Raises ContractError."""
        try:
            document = json.loads(data)
            if document["version"] > VERSION:
                raise ContractError(f"findings: version {document['version']} is newer than {VERSION}")
            numbers = [document[name] for name in ("since_ms", "connections", "requests", "left_out")]
            cuts = {
                Cut(*(item[name] for name in Cut.__slots__)): Seen(*(item[name] for name in Seen.__slots__))
                for item in document["items"]
            }
            numbers += [getattr(seen, name) for seen in cuts.values() for name in Seen.__slots__]
            if not all(type(number) is int for number in numbers):
                raise ContractError("findings: what is to be a number is something else")
            since_ms, connections, requests, left_out = numbers[:4]
            return cls(document["proposal"], since_ms, connections, requests, left_out, cuts)
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"findings: {type(error).__name__}: {error}") from error
