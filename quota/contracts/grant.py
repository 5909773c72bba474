"""What the master answers: how much of its limit an instance may use on this broker, and for how long.

Sent as length-prefixed JSON (a 4-byte big-endian length, then the document). Version 3, rows as in reports::

    {"version": 3, "type": "grants", "epoch": 3, "sequence": 41, "lease_ms": 10000,
     "instances": {"ins-k3v9x2qa": [[1747626, "initial", null],            the fields of `Grant`: produce
                                    [1747626, "initial", null],            and consume
                                    987654321]}}                           storage used by the instance, bytes

The answer to a report that names everything does so, too. The answer to a partial one is `partial`: grants that are not
named are renewed as they are, and `gone` lists those that are not renewed.

`members` are those that brokers reported, of rules for consumer groups within these instances; absent where there are none.

`transactions` are those of other brokers, ``{"ins-k3v9x2qa": [3, 40]}``: open ones and transactional ids, so that each
coordinator knows how much is left of its instance's limits. A partial answer names what has changed since the last one; older
masters leave it out, and older brokers do not look at it.

`epoch` is the master's election epoch: a broker refuses grants of a lower one than it has seen. `allocation` is in
bytes/s, null for unlimited. `blocked` is null or "storage": it outlives the lease until a later grant lifts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quota.contracts.instance import ContractError
from quota.contracts.report import Members, Transactions, parse_members, parse_transactions, to_bytes

VERSION = 3
BLOCKED_STORAGE = "storage"


class Grant(NamedTuple):
    """One instance and direction on one broker."""

    allocation: int | None  # bytes/s; None = unlimited
    branch: str  # "initial", "proportional", "headroom", "bounded", "learning", "unlimited" or "reserved"
    blocked: str | None = None


class InstanceGrant(NamedTuple):
    """One instance on one broker."""

    produce: Grant
    consume: Grant
    storage_used_bytes: int  # of the whole instance, for error texts


@dataclass(frozen=True, slots=True)
class Grants:
    """The master's answer to one report."""

    epoch: int
    sequence: int  # of the report that this answers
    lease_ms: int
    instances: Mapping[str, InstanceGrant]
    members: Members = field(default_factory=dict)
    partial: bool = False
    gone: Sequence[str] = ()
    transactions: Transactions = field(default_factory=dict)

    def to_json(self) -> bytes:
        """The document, without the length prefix."""
        document: dict[str, Any] = {
            "version": VERSION,
            "type": "grants",
            "epoch": self.epoch,
            "sequence": self.sequence,
            "lease_ms": self.lease_ms,
            "instances": self.instances,
        }
        if self.members:
            document["members"] = self.members
        if self.transactions:
            document["transactions"] = self.transactions
        if self.partial:
            document |= {"partial": True, "gone": self.gone}
        return to_bytes(document)

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Grants:
        """From a parsed document of type "grants". Raises ContractError."""
        try:
            if document["version"] > VERSION:
                raise ContractError(f"grants: version {document['version']} is newer than {VERSION}")
            if document["version"] < VERSION:
                raise ContractError(f"grants: version {document['version']} is older than {VERSION}")
            return cls(
                epoch=document["epoch"],
                sequence=document["sequence"],
                lease_ms=document["lease_ms"],
                instances={
                    instance: InstanceGrant(Grant(*produce), Grant(*consume), used)
                    for instance, (produce, consume, used) in document["instances"].items()
                },
                members=parse_members(document),
                partial=bool(document.get("partial")),
                gone=tuple(map(str, document.get("gone", ()))),
                transactions=parse_transactions(document),
            )
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"grants: {type(error).__name__}: {error}") from error
