"""The audit trail of an organisation as a chain, by which it shows when something was changed, taken out or slipped in. Pure.

Entries are numbered within their organisation from 1 without gaps. The *hash* of one is the SHA-256 of the canonical JSON
(members sorted, no spaces, beyond ASCII escaped) of all that it says, of its number, and of the hash of the entry before; the
first has 64 zeros for that. Whoever keeps the number and the hash of one entry can check all that came before it::

    {"action": …, "actor": …, "address": …, "at": "2026-11-26T22:10:00.123456Z", "chain": 1, "detail": {…}, "id": …, "key": …,
     "number": …, "organisation": …, "previous_hash": …, "request_id": …, "target": …}

It is taken of an entry as the database gives it back, since a database may write a number in another way than it was given.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1
FIRST = "0" * 64


class Entry(Protocol):
    """A row of the trail, of today's model or of a migration's."""

    pk: Any
    organisation_id: str
    number: Any
    hash: Any
    actor: Any
    action: Any
    target: Any
    detail: Any
    at: Any
    request_id: Any
    address: Any
    key: Any


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain: up to here it is known."""

    number: int = 0
    hash: str = FIRST


@dataclass(frozen=True, slots=True)
class Break:
    """The first entry that does not fit.

    Codes: ``missing`` (there is none of this number), ``changed`` (its content, or what was before it, is another than was
    sealed), ``kept`` (its hash is another than the one that the caller kept), ``head`` (the chain ends elsewhere than recorded).
    """

    number: int
    id: int | None
    code: str
    detail: str  # a sentence


def missing(number: int) -> Break:
    """There is no entry of this number, and there was one."""
    return Break(number, None, "missing", f"the entry {number} is missing")


def not_kept(number: int, entry_id: int) -> Break:
    """The caller knows another hash of it."""
    return Break(number, entry_id, "kept", f"the entry {number} has another hash than the one that was kept")


def ends_elsewhere(number: int) -> Break:
    """The entries, and the row that says where they end, do not fit."""
    return Break(number, None, "head", f"the log is recorded to end with the entry {number}, and ends elsewhere")


def entry_hash(entry: Entry, *, number: int, previous_hash: str) -> str:
    """64 hexadecimal digits."""
    document = {
        "chain": VERSION,
        "organisation": entry.organisation_id,
        "number": number,
        "id": entry.pk,
        "at": moment_text(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "detail": entry.detail,
        "address": entry.address,
        "key": entry.key,
        "request_id": entry.request_id,
        "previous_hash": previous_hash,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def chained(entries: Iterable[Entry], after: Link) -> Link:
    """Give each its number and its hash, in this order; where the chain ends then."""
    last = after
    for entry in entries:
        last = Link(last.number + 1, entry_hash(entry, number=last.number + 1, previous_hash=last.hash))
        entry.number, entry.hash = last.number, last.hash
    return last


def followed(entries: Iterable[Entry], after: Link) -> tuple[Link, Break | None]:
    """Compute each again, in the order of their numbers; how far the chain is whole, and the first that is not."""
    last = after
    for entry in entries:
        number = last.number + 1
        if entry.number != number:
            return last, missing(number)
        if entry_hash(entry, number=number, previous_hash=last.hash) != entry.hash:
            return last, Break(number, entry.pk, "changed", f"the entry {number} is not as it was written")
        last = Link(number, entry.hash)
    return last, None


def moment_text(at: datetime) -> str:
    """To the microsecond, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
