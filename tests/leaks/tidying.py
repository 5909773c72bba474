"""What a side has beside what it had: taken away again, so that every cell finds the side as the first one did.

Most questions leave nothing. Of those that do, `after` takes back what the next cell would trip over (a topic that was made, a
member that has joined), and `restore` everything at the end, as an installation that is somebody's wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.headers import decode_response
from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    DescribeClientQuotasRequest,
    OpData,
)
from dataplane.protocol.messages.discovery import MetadataRequest
from dataplane.protocol.messages.fetch import FetchRequest
from dataplane.protocol.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
)
from dataplane.protocol.messages.security import (
    AclCreation,
    AlterUserScramCredentialsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from dataplane.protocol.messages.topics import DeleteTopicsRequest
from tests.leaks.client import Client, Told

_ANY = 1
_LAST_EPOCH = -1
_ANY_ACL = (_ANY, None, _ANY, None, None, _ANY, _ANY)


@dataclass(frozen=True)
class Belongings:
    """Names of everything."""

    topics: frozenset[str]
    groups: frozenset[tuple[int, str]]  # with who keeps them
    acls: frozenset[tuple[Any, ...]]
    users: frozenset[tuple[str, int]]  # with the mechanism
    quotas: frozenset[tuple[Any, ...]]


def belongings(client: Client) -> Belongings:
    """As a side is told that it has."""
    broker = next(iter(client.brokers))
    acls = client.call(broker, DescribeAclsRequest(*_ANY_ACL), 3)
    users = client.call(broker, DescribeUserScramCredentialsRequest(None), 0)
    quotas = client.call(broker, DescribeClientQuotasRequest(()), 1)
    return Belongings(
        topics(client),
        frozenset(
            (keeper, group.group_id)
            for keeper in client.brokers
            for group in client.call(keeper, ListGroupsRequest(), 0).groups
        ),
        frozenset(
            (r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
            for r in acls.resources
            for a in r.acls
        ),
        frozenset((row.user, info.mechanism) for row in users.results for info in row.credential_infos),
        frozenset(
            (tuple((part.entity_type, part.entity_name) for part in entry.entity), tuple(v.key for v in entry.values))
            for entry in quotas.entries or ()
        ),
    )


def topics(client: Client) -> frozenset[str]:
    """All that the side sees."""
    broker = client.controller if client.controller in client.brokers else next(iter(client.brokers))
    return frozenset(topic.name for topic in client.call(broker, MetadataRequest(None), 5).topics)


def delete_topics(client: Client, but: frozenset[str]) -> None:
    """All others, gone when this returns."""
    more = tuple(sorted(topics(client) - but))
    if not more:
        return

    def gone() -> bool:
        client.call(client.controller, DeleteTopicsRequest(topic_names=more, timeout_ms=10_000), 4)
        return not topics(client) - but

    client.wait(gone, "end of topics that were made")


def restore(client: Client, before: Belongings) -> None:
    """As it was."""
    now, broker = belongings(client), next(iter(client.brokers))
    delete_topics(client, before.topics)
    for keeper, group in sorted(now.groups - before.groups):
        for member in client.call(keeper, DescribeGroupsRequest((group,)), 0).groups[0].members:
            client.call(keeper, LeaveGroupRequest(group, member.member_id), 0)
        client.call(keeper, DeleteGroupsRequest((group,)), 0)
    for acl in sorted(now.acls - before.acls):
        client.call(broker, DeleteAclsRequest((DeleteAclsFilter(*acl),)), 3)
    gone = tuple(ScramCredentialDeletion(*row) for row in sorted(now.users - before.users))
    if gone:
        client.call(broker, AlterUserScramCredentialsRequest(gone, ()), 0)
    for entity, keys in sorted(now.quotas - before.quotas):
        parts = tuple(AlterClientQuotasRequestEntityData(*part) for part in entity)
        entry = AlterClientQuotasRequestEntryData(parts, tuple(OpData(key, 0.0, True) for key in keys))
        client.call(broker, AlterClientQuotasRequest((entry,), False), 1)


# --- after one question ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """One request of a cell, with its answer."""

    client: Client
    broker: int
    request: Any
    version: int
    told: Told
    topics: frozenset[str]  # that the side is to keep

    @property
    def answer(self) -> Any:
        """Decoded; None: there is none."""
        if self.told.answer is None:
            return None
        return decode_response(APIS[self.key], self.version, self.told.answer)[1]

    @property
    def key(self) -> ApiKey:
        """Which API."""
        key: int = type(self.request).INFO.api_key
        return ApiKey(key)


def after(asked: Asked) -> None:
    """Take back what the next cell would trip over."""
    undo = _UNDO.get(asked.key)
    if undo is not None:
        undo(asked)


def _leave(asked: Asked) -> None:
    answer = asked.answer
    if answer is not None and answer.member_id and answer.member_id != asked.request.member_id:
        asked.client.call(asked.broker, LeaveGroupRequest(asked.request.group_id, answer.member_id), 0)


def _end_session(asked: Asked) -> None:
    answer = asked.answer
    if answer is not None and answer.session_id:
        ends = FetchRequest(session_id=answer.session_id, session_epoch=_LAST_EPOCH)
        asked.client.call(asked.broker, ends, max(7, asked.version))


def _delete_acls(asked: Asked) -> None:
    rows: tuple[AclCreation, ...] = asked.request.creations
    filters = tuple(
        DeleteAclsFilter(
            row.resource_type,
            row.resource_name,
            row.resource_pattern_type,
            row.principal,
            row.host,
            row.operation,
            row.permission_type,
        )
        for row in rows
    )
    asked.client.call(asked.broker, DeleteAclsRequest(filters), 3)


_UNDO: Mapping[ApiKey, Callable[[Asked], None]] = {
    ApiKey.METADATA: lambda asked: delete_topics(asked.client, asked.topics),
    ApiKey.CREATE_TOPICS: lambda asked: delete_topics(asked.client, asked.topics),
    ApiKey.JOIN_GROUP: _leave,
    ApiKey.FETCH: _end_session,
    ApiKey.CREATE_ACLS: _delete_acls,
}
