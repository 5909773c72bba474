"""The two sides of the matrix: an Apache Kafka with its AclAuthorizer and one of our brokers, with the same users and topics.

Both have a listener on which everybody is a super user, for preparations, and one where the users log in with PLAIN.
"""

from __future__ import annotations

import dataclasses
import hashlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.security import (
    AclCreation,
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ScramCredentialUpsertion,
)
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.instance import Authorizer, Endpoint, Route, Security
from tests.conformance.target import OurCluster, Profile
from tests.differential.answers import flat
from tests.differential.denials import NOWHERE, ORDERS, OTHER, SITUATIONS, Case
from tests.support.apache_kafka import ApacheKafka
from tests.support.ports import free_port
from tests.support.processes import HOST
from tests.support.waiting import wait_for
from tests.support.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

Address = tuple[str, int]
PROFILE = Profile(
    (0,),
    {
        "num_partitions": 1,
        "default_replication_factor": 1,
        "offsets_topic_num_partitions": 1,
        "offsets_topic_replication_factor": 1,
        "transaction_state_log_replication_factor": 1,
        "auto_create_topics_enable": False,
        "group_initial_rebalance_delay_ms": 0,
        "controller_mutation_rate": 100_000,
    },
)
_CODES = (
    "error_code",
    "topic_config_error_code",
    "topic_authorized_operations",
    "cluster_authorized_operations",
    "authorized_operations",
)
_NOT_COMPARED = ("api_keys[", "supported_features[", "finalized_features[")
_SOMEWHERE_ELSE = "10.9.9.9"
_ANY = 1
_SALT, _ITERATIONS = b"salt of the matrix", 4096


def password_of(user: str) -> str:
    """What a user logs in with."""
    return f"the password of {user}"


def acls_for(case: Case, situation: str) -> Iterator[Acl]:
    """What `SITUATIONS` says of a case's rights."""
    for right in case.rights:
        kind, name, pattern, operation = right.resource_type, right.name, right.pattern, right.operation
        if situation == "prefix" and kind is not ResourceType.CLUSTER:
            name, pattern = name[:-1], PatternType.PREFIXED
        elif situation == "every" and kind is not ResourceType.CLUSTER:
            name, pattern = "*", PatternType.LITERAL
        elif situation == "describe":
            operation = AclOperation.DESCRIBE
        if situation in ("all", "deny"):
            yield Acl(kind, pattern, name, f"User:{situation}", "*", AclOperation.ALL, Permission.ALLOW)
        elif situation != "none":
            host = _SOMEWHERE_ELSE if situation == "elsewhere" else "*"
            yield Acl(kind, pattern, name, f"User:{situation}", host, operation, Permission.ALLOW)
        if situation in ("deny", "host"):
            host = HOST if situation == "host" else "*"
            yield Acl(kind, pattern, name, f"User:{situation}", host, operation, Permission.DENY)


@dataclass
class Side:
    """One broker."""

    name: str
    admin_address: Address
    address: Address
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    _wires: dict[str, Wire] = field(default_factory=dict)

    def ask(self, user: str, request: Any, version: int) -> dict[str, object]:
        """What the user is told: codes, permitted operations, and which elements there are."""
        try:
            return told(self._wire(user).call(request, version), {of: name for name, of in self.topic_ids.items()})
        except ConnectionError:
            self._close(user)
            return {"connection": "closed"}
        except TimeoutError:
            self._close(user)
            return {"connection": "silent"}

    def quietly(self, request: Any, version: int) -> Any:
        """A preparation, by who may do everything."""
        return self._wire("").call(request, version)

    def set_acls(self, acls: Iterable[Acl]) -> None:
        """These, and no others."""
        gone = self.quietly(DeleteAclsRequest((DeleteAclsFilter(_ANY, None, _ANY, None, None, _ANY, _ANY),)), 3)
        assert gone.filter_results[0].error_code == 0, gone
        self.add_acls(acls)

    def add_acls(self, acls: Iterable[Acl]) -> None:
        rows = tuple(
            AclCreation(
                a.resource_type, a.resource_name, a.pattern_type, a.principal, a.host, a.operation, a.permission
            )
            for a in acls
        )
        made = self.quietly(CreateAclsRequest(rows), 3)
        assert all(row.error_code == 0 for row in made.results), made

    def gone(self, topic: str) -> bool:
        """Whether a topic that was deleted is not known any more, as it is soon after the answer."""
        asked = (MetadataRequestTopic(name=topic),)
        return bool(self.quietly(MetadataRequest(asked, allow_auto_topic_creation=False), 12).topics[0].error_code)

    def take_acls(self, user: str) -> None:
        """All of one user."""
        row = DeleteAclsFilter(_ANY, None, _ANY, f"User:{user}", None, _ANY, _ANY)
        self.quietly(DeleteAclsRequest((row,)), 3)

    def create_topics(self, names: Iterable[str]) -> None:
        """With leaders when this returns, and their ids known."""
        topics = tuple(CreatableTopic(name, 1, 1) for name in names)
        made = self.quietly(CreateTopicsRequest(topics, 30_000), 5)
        assert all(row.error_code == 0 for row in made.topics), made
        wait_for(lambda: self._have_leaders([topic.name for topic in topics]), 60, "the topics")

    def _have_leaders(self, names: list[str]) -> bool:
        asked = tuple(MetadataRequestTopic(name=name) for name in names)
        found = self.quietly(MetadataRequest(asked, allow_auto_topic_creation=False), 12).topics
        self.topic_ids.update({topic.name: topic.topic_id for topic in found if topic.error_code == 0})
        return all(topic.partitions and topic.partitions[0].leader_id >= 0 for topic in found)

    def _wire(self, user: str) -> Wire:
        if user not in self._wires:
            wire = self._wires[user] = Wire(self.address if user else self.admin_address, timeout_s=20.0)
            if user:
                assert wire.call(SaslHandshakeRequest("PLAIN"), 1).error_code == 0
                said = f"\0{user}\0{password_of(user)}".encode()
                answer = wire.call(SaslAuthenticateRequest(said), 2)
                assert answer.error_code == 0, f"{self.name}: {user} cannot log in: {answer.error_message}"
        return self._wires[user]

    def _close(self, user: str) -> None:
        self._wires.pop(user).socket.close()

    def close(self) -> None:
        for user in list(self._wires):
            self._close(user)


def told(answer: Any, names: Mapping[UUID, str]) -> dict[str, object]:
    """Of an answer, what this is about. `names`: of the topics, by their ids."""
    fields = flat(_named(answer, names))
    elements = {path[: path.rindex("]") + 1]: "there" for path in fields if "]" in path}
    codes = {path: value for path, value in fields.items() if path.rpartition(".")[2] in _CODES}
    return {path: value for path, value in {**elements, **codes}.items() if not path.startswith(_NOT_COMPARED)}


def _named(answer: Any, names: Mapping[UUID, str]) -> Any:
    """With the names of topics where it says ids."""
    changes: dict[str, Any] = {}
    for member in dataclasses.fields(answer):
        rows = getattr(answer, member.name)
        if isinstance(rows, tuple) and rows and hasattr(rows[0], "topic_id"):
            what = "topic" if hasattr(rows[0], "topic") else "name"
            changes[member.name] = tuple(
                dataclasses.replace(row, **{what: names.get(row.topic_id, getattr(row, what))}) for row in rows
            )
    return dataclasses.replace(answer, **changes)


@contextmanager
def apache_side(folder: Path) -> Iterator[Side]:
    """A real Apache Kafka."""
    port = free_port()
    users = "".join(f' user_{user}="{password_of(user)}"' for user in SITUATIONS)
    settings = {
        **PROFILE.apache_settings(),
        "allow.everyone.if.no.acl.found": "false",
        "super.users": "User:ANONYMOUS",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required{users};"
        ),
    }
    kafka = ApacheKafka(folder, settings=settings, heap="512m", more_listeners=f"CLIENTS://{HOST}:{port}")
    with kafka:
        side = Side("apache", (HOST, kafka.ports[0]), (HOST, port))
        prepare(side)
        yield side
        side.close()


@contextmanager
def our_side(folder: Path) -> Iterator[tuple[Side, OurCluster]]:
    """One of our brokers, by an instance's ports."""
    with OurCluster(folder, PROFILE, "tenant", auto_create_topics=False) as cluster:
        tenant = cluster.tenant
        port = (HOST, free_port())
        clients = Route(
            "clients",
            {0: Endpoint(port, port)},
            security=Security.SASL_PLAINTEXT.value,
            mechanisms=("PLAIN",),
            allow_plain_in_clear=True,
        )
        cluster.specs.change(
            tenant,
            routes=(*tenant.spec.routes, clients),
            authorizer=Authorizer(allow_everyone_if_no_acl_found=False, super_users=("User:ANONYMOUS",)),
        )
        side = Side("ours", cluster.addresses[0], port)
        _make_users(side)
        prepare(side)
        yield side, cluster
        side.close()


def _make_users(side: Side) -> None:
    rows = tuple(
        ScramCredentialUpsertion(
            user,
            1,
            _ITERATIONS,
            _SALT,
            hashlib.pbkdf2_hmac("sha256", password_of(user).encode(), _SALT, _ITERATIONS),
        )
        for user in SITUATIONS
    )
    made = side.quietly(AlterUserScramCredentialsRequest((), rows), 0)
    assert all(row.error_code == 0 for row in made.results), made


def prepare(side: Side) -> None:
    """Topics that all cases know. A broker that answers need not know itself yet."""
    wait_for(lambda: side.quietly(MetadataRequest(()), 9).controller_id >= 0, 60, "a controller")
    wait_for(lambda: side.quietly(MetadataRequest(()), 9).brokers, 60, "brokers")
    side.create_topics((ORDERS, OTHER))
    side.topic_ids[NOWHERE] = UUID(int=77)
