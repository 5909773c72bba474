"""What a broker writes to the topic ``__usage``: cumulative counters, from which hourly usage and every bill is computed.

Key and value are JSON. Brokers write version 2; version 1 is read as well (see below). There are four kinds.

**Usage of a topic**, which has no `kind`. The key is the identity of the row, so that compaction keeps the newest::

    key    {"boot": "5f0c…", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa", "topic": "orders"}
    value  {"version": 2, "cluster": "default", "broker": 2, "boot": …, "hour": …, "instance": …, "topic": …,
            "topic_id": "0Oe5…", "produced_bytes": 81234567, "consumed_bytes": 1234, "stored_byte_seconds": 99887766}

Counters are cumulative **since the broker's boot** (a random id per start; with a generation behind it, `5f0c….3`, where a
topic has begun again from zero within it, so that no counter passes 63 bits), over all hours: the usage of an hour is the
largest value of its key minus the largest of the same (boot, instance, topic) in any earlier hour, and none where that is
larger. Taking the largest makes repeated, late and reordered records harmless. A record whose hour has not come when it is
written to the topic (which stamps it with its leader's clock) is taken for one of the hour in which it was written.
`topic` is the tenant's name, `topic_id` the topic's UUID as Kafka prints it; all records of a (boot, instance, topic) are of
one UUID. It is empty where a name of more than 215 characters was told by a later boot. `cluster` is the physical cluster's name.

`produced_bytes` and `consumed_bytes` are record bytes: the sum of 12 + batchLength of record batches; produced when the
high watermark passes them on the leader (a duplicate of an idempotent producer never counts), consumed when they have
left by the socket. `stored_byte_seconds` integrates the bytes of every replica on the broker over time. Sums of it over
topics or hours may pass 63 bits: whoever adds them up does so in decimals.

**Usage of an instance**, what belongs to no topic::

    key    {"kind": "instance", "boot": "5f0c…", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa"}
    value  {"version": 2, "kind": "instance", "cluster": "default", "broker": 2, "boot": …, "hour": …, "instance": …,
            "wire_in_bytes": 5432, "wire_out_bytes": 987, "requests": 12, "loop_us": 3456, "throttled_ms": 0}

Cumulative in the same way, since the boot (no generations). `wire_in_bytes` and `wire_out_bytes` are all that came and went by
the sockets of the instance's clients, requests and answers of every kind, as it is on the wire (over TLS encrypted);
`requests` are frames; `loop_us` is the time of the broker's loop that was spent for the instance; `throttled_ms` is how
long somebody waited for its limit of what flows in, and for that of what flows out, added up. They are read once a minute, so an
hour's edge is a minute wide, and what a killed broker had not told is not told by the next one. No price is made of them.

**Usage of a user** of an instance, of the same sockets by who has signed in at them::

    key    {"kind": "user", "boot": "5f0c…", "hour": "2026-11-21T09:00:00Z", "instance": "ins-k3v9x2qa", "user": "alice"}
    value  {"version": 2, "kind": "user", "cluster": "default", "broker": 2, "boot": …, "hour": …, "instance": …,
            "user": "alice", "wire_in_bytes": 5432, "wire_out_bytes": 987, "requests": 12}

Cumulative in the same way, with generations: a broker forgets users who are gone, and one who comes again counts from zero
in another generation. `user` is the name by which clients signed in, by SASL or by a certificate, as the tenant knows it;
empty for connections that did not sign in; `*` (`OTHER_USERS`), which nobody can be called, for all users together beyond
those that a broker keeps apart. A certificate may name somebody by more than 255 characters, or by some that cannot be
shown: `user_told` says how such a name is told. The users of an instance add up to its own counters, but for what moves
between two readings. Read, and lost with a killed broker, as usage of an instance is. Bills are shared by it, and computed
without it.

Emitted every 10 s where a byte counter has changed (and less often where so many have that it would be more than a few hundred
records a second), every 10 minutes where only storage has, each minute of instances and users that did anything, and at each
hour's edge (under the hour that ends).

Once all of that is acknowledged, and what earlier boots of the broker left, the broker says so: everything that it counted
under this hour and all before it stands in the topic (`HoursComplete`)::

    key    {"broker": 2, "kind": "complete"}
    value  {"version": 2, "kind": "complete", "cluster": "default", "broker": 2, "boot": "5f0c…",
            "hour": "2026-11-21T08:00:00Z", "after": ["a1b2…"]}

`after` names the boots of this broker before it whose counters it has told, or that were told by those. A boot that has
told anything and is not among them counted somewhere that the broker does not see any more (a disk is missing, the machine is
another): what it counted last may never come, and somebody has to judge that.

Said of the last hour that has passed, once an hour and after each start; the latest counts. A broker that died in an hour leaves
it open until it is back, has told what stood in its counters, and says so. A reader that sees such a record, and has read the
other partitions up to the moment at which it was written, has all of the broker's usage of these hours.

**Version 1** has usage of topics only, without `cluster` and `topic_id`; `HoursComplete` had version 2 then, too, and no
`cluster`. A boot writes one version, and what it left is told by a boot of the newer release under the same key with the same
counters: who takes the largest counts nothing twice. Readers are renewed before brokers: one that knows version 1 only keeps
what is newer aside, and does not count it. So does one that does not know a kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from quota.contracts.instance import ContractError
from quota.contracts.users import LONGEST_NAME, RESERVED_NAMES, user_name_problem

VERSION = 2
COMPLETE_VERSION = 2
COMPLETE, INSTANCE, USER = "complete", "instance", "user"
USAGE_TOPIC = "__usage"
_KEY_MEMBERS = ("boot", "hour", "instance", "topic")
_INSTANCE_KEY_MEMBERS = ("boot", "hour", "instance")
_USER_KEY_MEMBERS = ("boot", "hour", "instance", "user")
_SINCE_VERSION_2 = ("cluster", "topic_id")
COUNTERS = ("produced_bytes", "consumed_bytes", "stored_byte_seconds")
"""Of a topic."""
INSTANCE_COUNTERS = ("wire_in_bytes", "wire_out_bytes", "requests", "loop_us", "throttled_ms")
"""Of an instance."""
USER_COUNTERS = ("wire_in_bytes", "wire_out_bytes", "requests")
"""Of a user."""
NO_USER, OTHER_USERS = "", RESERVED_NAMES[0]
"""Who has not signed in; all users together beyond those that a broker keeps apart."""
LONGEST_USER = LONGEST_NAME
_DIGEST_LENGTH = 16


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
    topic_id: str = ""  # "": not known
    cluster: str = ""  # "": not known

    def key(self) -> bytes:
        return _json({name: getattr(self, name) for name in _KEY_MEMBERS})

    def value(self) -> bytes:
        return _json({"version": VERSION, **{name: getattr(self, name) for name in self.__slots__}})

    @classmethod
    def from_value(cls, data: bytes) -> UsageRecord:
        """Parse a value. Raises ContractError."""
        with _understood():
            document = json.loads(data)
            if document.get("kind") is not None:
                raise ContractError(f"usage record: of the kind {document['kind']!r}, not of a topic")
            return cls._from(document)

    @classmethod
    def _from(cls, document: dict[str, Any]) -> UsageRecord:
        version = document["version"]
        if version > VERSION:
            raise ContractError(f"usage record: version {version} is newer than {VERSION}")
        lacks = _SINCE_VERSION_2 if version < 2 else ()
        return cls(**{name: document[name] for name in cls.__slots__ if name not in lacks})


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """What one boot of a broker has counted of an instance in an hour, so far."""

    broker: int
    boot: str
    hour: str
    instance: str
    wire_in_bytes: int
    wire_out_bytes: int
    requests: int
    loop_us: int
    throttled_ms: int
    cluster: str = ""

    def key(self) -> bytes:
        return _json({"kind": INSTANCE, **{name: getattr(self, name) for name in _INSTANCE_KEY_MEMBERS}})

    def value(self) -> bytes:
        members = {name: getattr(self, name) for name in self.__slots__}
        return _json({"version": VERSION, "kind": INSTANCE, **members})


@dataclass(frozen=True, slots=True)
class UserRecord:
    """What one boot of a broker has counted of a user of an instance in an hour, so far."""

    broker: int
    boot: str
    hour: str
    instance: str
    user: str  # as the tenant knows it; or NO_USER, OTHER_USERS
    wire_in_bytes: int
    wire_out_bytes: int
    requests: int
    cluster: str = ""

    def key(self) -> bytes:
        return _json({"kind": USER, **{name: getattr(self, name) for name in _USER_KEY_MEMBERS}})

    def value(self) -> bytes:
        members = {name: getattr(self, name) for name in self.__slots__}
        return _json({"version": VERSION, "kind": USER, **members})


def user_told(name: str) -> str:
    """A name by which somebody has signed in, as records tell it: as it is, where a user of SASL may have it.

    What a tenant's rules make of a certificate may be longer, cannot always be shown (nor stored: NUL), and may be a reserved
    name: then it is its beginning and a digest of all of it.
    """
    if user_name_problem(name) is None:
        return name
    shown = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in name)
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{shown[: LONGEST_USER - _DIGEST_LENGTH - 1]}~{digest}"


@dataclass(frozen=True, slots=True)
class HoursComplete:
    """All that this broker counted under `hour` and the hours before it stands in the topic."""

    broker: int
    boot: str  # which says so
    hour: str
    after: tuple[str, ...] = ()  # boots before it
    cluster: str = ""

    def key(self) -> bytes:
        return _json({"kind": COMPLETE, "broker": self.broker})

    def value(self) -> bytes:
        members = {name: getattr(self, name) for name in self.__slots__}
        return _json({"version": COMPLETE_VERSION, "kind": COMPLETE, **members, "after": list(self.after)})


Told = UsageRecord | InstanceRecord | UserRecord | HoursComplete


def parse_value(data: bytes) -> Told:
    """Any kind. Raises ContractError."""
    with _understood():
        document = json.loads(data)
        kind = document.get("kind")
        if kind is None:
            return UsageRecord._from(document)  # noqa: SLF001  # of this module
        if (kind, document["version"]) == (INSTANCE, VERSION):
            return InstanceRecord(**{name: document[name] for name in InstanceRecord.__slots__})
        if (kind, document["version"]) == (USER, VERSION):
            return UserRecord(**{name: document[name] for name in UserRecord.__slots__})
        if (kind, document["version"]) != (COMPLETE, COMPLETE_VERSION):
            raise ContractError(f"usage record: {kind!r} of version {document['version']} is not known")
        members = {name: document[name] for name in HoursComplete.__slots__ if name != "cluster"}
        return HoursComplete(**members | {"after": tuple(document["after"]), "cluster": document.get("cluster", "")})


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
