"""What a broker writes to the topic ``__usage``: cumulative counters, from which hourly usage and every bill is computed.

Key and value are JSON, version 1; the key is the identity of the row, so that compaction keeps the newest::

    key    {"boot": "5f0c…", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa", "topic": "orders"}
    value  {"version": 1, "broker": 2, "boot": …, "hour": …, "instance": …, "topic": …,
            "produced_bytes": 81234567, "consumed_bytes": 1234, "stored_byte_seconds": 99887766}

Counters are cumulative **since the broker's boot** (a random id per start; with a generation behind it, `5f0c….3`, where a
topic has begun again from zero within it, so that no counter passes 63 bits), over all hours: the usage of an hour is the
largest value of its key minus the largest of the same (boot, instance, topic) in any earlier hour, and none where that is
larger. Taking the largest makes repeated, late and reordered records harmless. A record whose hour has not come when it is
written to the topic (which stamps it with its leader's clock) is taken for one of the hour in which it was written.
`topic` is the tenant's name.

`produced_bytes` and `consumed_bytes` are record bytes: the sum of 12 + batchLength of record batches; produced when the
high watermark passes them on the leader (a duplicate of an idempotent producer never counts), consumed when they have
left by the socket. `stored_byte_seconds` integrates the bytes of every replica on the broker over time.

Emitted every 10 s where a byte counter has changed, every 10 minutes where only storage has, and at each hour's edge
(under the hour that ends).

Once all of that is acknowledged, and what earlier boots of the broker left, the broker says so: everything that it counted
under this hour and all before it stands in the topic (`HoursComplete`, version 2)::

    key    {"broker": 2, "kind": "complete"}
    value  {"version": 2, "kind": "complete", "broker": 2, "boot": "5f0c…", "hour": "2026-11-21T08:00:00Z", "after": ["a1b2…"]}

`after` names the boots of this broker before it whose counters it has told, or that were told by those. A boot that has
spoken and is not among them counted somewhere that the broker does not see any more (a disk is missing, the machine is another):
what it counted last may never come, and somebody has to judge that.

Said of the last hour that has passed, once an hour and after each start; the latest counts. A broker that died in an hour leaves
it open until it is back, has told what stood in its counters, and says so. A reader that sees such a record, and has read the
other partitions up to the moment at which it was written, has all of the broker's usage of these hours.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from quota.contracts.instance import ContractError

VERSION = 1
COMPLETE_VERSION = 2
COMPLETE = "complete"
USAGE_TOPIC = "__usage"
_KEY_MEMBERS = ("boot", "hour", "instance", "topic")
COUNTERS = ("produced_bytes", "consumed_bytes", "stored_byte_seconds")


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """What one boot of a broker has counted of a topic in an hour, so far."""

    broker: int
    boot: str
    hour: str  # the UTC hour's beginning, "2026-11-21T09:00:00Z"
    instance: str
    topic: str  # as the tenant calls it
    produced_bytes: int
    consumed_bytes: int
    stored_byte_seconds: int

    def key(self) -> bytes:
        return _json({name: getattr(self, name) for name in _KEY_MEMBERS})

    def value(self) -> bytes:
        return _json({"version": VERSION, **{name: getattr(self, name) for name in self.__slots__}})

    @classmethod
    def from_value(cls, data: bytes) -> UsageRecord:
        """Parse a value. Raises ContractError."""
        with _understood():
            return cls._from(json.loads(data))

    @classmethod
    def _from(cls, document: dict[str, Any]) -> UsageRecord:
        if document["version"] > VERSION:
            raise ContractError(f"usage record: version {document['version']} is newer than {VERSION}")
        return cls(**{name: document[name] for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class HoursComplete:
    """All that this broker counted under `hour` and the hours before it stands in the topic."""

    broker: int
    boot: str  # which says so
    hour: str
    after: tuple[str, ...] = ()  # boots before it

    def key(self) -> bytes:
        return _json({"kind": COMPLETE, "broker": self.broker})

    def value(self) -> bytes:
        members = {name: getattr(self, name) for name in self.__slots__}
        return _json({"version": COMPLETE_VERSION, "kind": COMPLETE, **members, "after": list(self.after)})


Told = UsageRecord | HoursComplete


def parse_value(data: bytes) -> Told:
    """Either kind. Raises ContractError."""
    with _understood():
        document = json.loads(data)
        if document.get("kind") is None:
            return UsageRecord._from(document)  # noqa: SLF001  # of this module
        if (document["kind"], document["version"]) != (COMPLETE, COMPLETE_VERSION):
            raise ContractError(f"usage record: {document['kind']!r} of version {document['version']} is not known")
        members = {name: document[name] for name in HoursComplete.__slots__}
        return HoursComplete(**members | {"after": tuple(document["after"])})


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except ContractError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ContractError(f"usage record: {type(error).__name__}: {error}") from error


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
