"""What came of a request that changes an instance: one line for each thing that its answer names. Pure.

Which APIs are audited is said here. Records are not: Produce and Fetch are a tenant's data, not what happens to its instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode


class Outcome(NamedTuple):
    """Names are the cluster's: see `names`."""

    kind: str  # of resource, as ACLs call it; "": there is none to name
    name: str
    code: int  # of Kafka's errors


class Audited(NamedTuple):
    """Where an answer has its rows, and what is said of one."""

    rows: str  # "": the answer is the one row
    outcomes: Callable[[Any], Iterable[Outcome]]


def _named(kind: str, name: str) -> Callable[[Any], Iterable[Outcome]]:
    return lambda row: (Outcome(kind, getattr(row, name) or "", row.error_code),)


def _unnamed(row: Any) -> Iterable[Outcome]:
    return (Outcome("", "", row.error_code),)


def _config(row: Any) -> Iterable[Outcome]:
    kind = "TOPIC" if row.resource_type == _TOPIC_CONFIG else "CLUSTER"
    return (Outcome(kind, row.resource_name, row.error_code),)


def _deleted_records(row: Any) -> Iterable[Outcome]:
    """Of a topic; the partitions are numbers."""
    codes = (partition.error_code for partition in row.partitions[:_LOOKED_AT])
    return (Outcome("TOPIC", row.name, next((code for code in codes if code), 0)),)


def _ended_transactions(row: Any) -> Iterable[Outcome]:
    """Of each topic of a marker; producers and partitions are numbers."""
    for topic in row.topics[:_LOOKED_AT]:
        codes = (partition.error_code for partition in topic.partitions[:_LOOKED_AT])
        yield Outcome("TOPIC", topic.name, next((code for code in codes if code), 0))


def _deleted_acls(row: Any) -> Iterable[Outcome]:
    if row.error_code or not row.matching_acls:
        return _unnamed(row)
    acls = row.matching_acls[:_LOOKED_AT]
    return (Outcome(_ACL_KINDS.get(acl.resource_type, ""), acl.resource_name, acl.error_code) for acl in acls)


_LOOKED_AT = 100
_TOPIC_CONFIG = 2
_ACL_KINDS = {2: "TOPIC", 3: "GROUP"}
AUDITED: dict[int, Audited] = {
    ApiKey.CREATE_TOPICS: Audited("topics", _named("TOPIC", "name")),
    ApiKey.DELETE_TOPICS: Audited("responses", _named("TOPIC", "name")),
    ApiKey.CREATE_PARTITIONS: Audited("results", _named("TOPIC", "name")),
    ApiKey.DELETE_RECORDS: Audited("topics", _deleted_records),
    ApiKey.WRITE_TXN_MARKERS: Audited("markers", _ended_transactions),
    ApiKey.ALTER_CONFIGS: Audited("responses", _config),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Audited("responses", _config),
    ApiKey.DELETE_GROUPS: Audited("results", _named("GROUP", "group_id")),
    ApiKey.OFFSET_DELETE: Audited("", _unnamed),
    ApiKey.CREATE_ACLS: Audited("results", _unnamed),
    ApiKey.DELETE_ACLS: Audited("filter_results", _deleted_acls),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: Audited("results", _named("USER", "user")),
    ApiKey.ALTER_CLIENT_QUOTAS: Audited("entries", _unnamed),
}
"""By API key; anything else that a tenant may send changes nothing, or is data."""
VALIDATED = frozenset(
    {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS}
)
"""Of these a client can ask what would become of them (`validate_only`)."""


def outcomes_of(api_key: int, answer: Any, most: int) -> tuple[list[Outcome], int]:
    """The first of them, and how many more there are. An answer may have twenty thousand rows: no more are looked at."""
    audited = AUDITED[api_key]
    rows = getattr(answer, audited.rows) if audited.rows else (answer,)
    found = [outcome for row in rows[:most] for outcome in audited.outcomes(row)]
    return found[:most], max(0, len(rows) - most) + max(0, len(found) - most)


def code_name(code: int) -> str:
    """Of one of Kafka's errors."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
