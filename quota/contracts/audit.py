"""What brokers write to the topic ``__sluice_audit`` of an instance that is audited: who did what, and who could not.

The topic is the tenant's to read and nobody's to write but the brokers'. A value is JSON, version 1, and there is no key::

    {"version": 1, "time": "2026-11-22T21:04:05.123Z", "broker": 2, "kind": "denial", "principal": "User:bob",
     "source": "10.0.0.7", "route": "public", "client_id": "billing", "api": "PRODUCE", "operation": "WRITE",
     "resource": "TOPIC:orders", "outcome": "TOPIC_AUTHORIZATION_FAILED", "reason": "no rule permits it", "count": 31}

`kind` says which: a ``connection`` that came or was refused, an ``authentication`` (by SASL, with its "mechanism"), a
``denial``, a ``request`` that changes the instance (a record for each thing that it names). What a kind has no use for is
left out, and so are null and the numbers that are their default:

``count`` (1)      denials of the same principal, source, API, operation and resource are told once, and how many followed
                   within a minute when it is over: such a record counts those that were not told before, and has the time of
                   the one that was
``left_out`` (0)   so many records before this one were not written, since the instance had more of them than a broker writes

What has changed something (a ``request`` with the outcome "NONE") at any instance, whether it is audited or not, stands in the
cluster's own topic ``__changes`` as well, where brokers are told to write it (`Settings.changes_topic_enable`), with one more
member, the ``instance``. The control plane takes it from there into the organisation's audit trail.

Records hold no secrets, nor anything of a record's key or value. Texts that clients choose are cut at 256 characters. The
order is that of one broker's writing; there are as many writers as brokers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from quota.contracts.instance import ContractError

CHANGES_TOPIC = "__changes"
"""Of the cluster, and of no tenant."""
VERSION = 1
MOST_TEXT = 256


class AuditKind(StrEnum):
    """What a record is about."""

    CONNECTION = "connection"
    AUTHENTICATION = "authentication"
    DENIAL = "denial"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One thing that happened, in the tenant's own names."""

    time_ms: int  # of the broker's wall clock
    broker: int
    kind: AuditKind
    outcome: (
        str  # "accepted", "refused", "success", "failure", or the name of one of Kafka's errors; "NONE": it was done
    )
    source: str  # the client's address
    route: str
    principal: str | None = None
    client_id: str | None = None
    api: str | None = None  # Kafka's name of a request
    operation: str | None = None
    resource: str | None = None  # "TOPIC:orders"
    reason: str | None = None  # a sentence
    mechanism: str | None = None  # of SASL, of a login
    instance: str | None = None  # its id, in the cluster's own topic
    count: int = 1
    left_out: int = 0

    def value(self) -> bytes:
        """The document. The same record is the same bytes."""
        document = {name: getattr(self, name) for name in _TEXTS if getattr(self, name) is not None}
        document = {name: text[:MOST_TEXT] for name, text in document.items()}
        numbers = {name: getattr(self, name) for name, usual in _NUMBERS.items() if getattr(self, name) != usual}
        whole = {"version": VERSION, "time": _text(self.time_ms), "broker": self.broker, **document, **numbers}
        return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_value(cls, data: bytes) -> AuditRecord:
        """Parse a value. Raises ContractError."""
        try:
            document = json.loads(data)
            if document["version"] > VERSION:
                raise ContractError(f"audit record: version {document['version']} is newer than {VERSION}")
            texts = {name: document[name] for name in _TEXTS if name in document}
            if not all(isinstance(text, str) for text in texts.values()):
                raise ContractError("audit record: what is to be text is something else")
            numbers = {name: document.get(name, usual) for name, usual in _NUMBERS.items()}
            if not all(type(number) is int for number in (document["broker"], *numbers.values())):
                raise ContractError("audit record: what is to be a number is something else")
            texts["kind"] = AuditKind(texts["kind"])
            return cls(time_ms=_ms(document["time"]), broker=document["broker"], **texts, **numbers)
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"audit record: {type(error).__name__}: {error}") from error


_TEXTS = (
    "kind",
    "outcome",
    "source",
    "route",
    "principal",
    "client_id",
    "api",
    "operation",
    "resource",
    "reason",
    "mechanism",
    "instance",
)
_NUMBERS = {"count": 1, "left_out": 0}


def _text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03}Z"


def _ms(text: str) -> int:
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
