"""An instance with all routes of the matrix, the files that clients need for them, and what has happened there.

    served = Served(cluster.tenant, folder)
    served.access(row, "wrong password")         # members of a job: addresses, who, which files
    served.log("orders-1"), served.committed("readers-1", "orders-1"), served.logins_again(row, during_ms)

Whoever looks comes by a route of its own as a super user. The instance is audited, which is how we know of logins: those that
succeeded on a broker, less the connections that came to it, were logins on a connection that was open.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.audit import AuditKind, AuditRecord
from quota.contracts.certificates import CertificateSet, RouteCertificate
from quota.contracts.instance import OAUTHBEARER, Authorizer, Endpoint, Route
from quota.contracts.namespace import AUDIT_TOPIC
from quota.contracts.sealing import route_key_purpose, sealed
from quota.contracts.users import UserSet
from tests.clients.checks import READ_ONLY, UNREADABLE
from tests.clients.rows import MECHANISMS
from tests.integration.clients import TIMEOUT_S, consumer, take
from tests.support.certificates import Authority
from tests.support.ports import free_port
from tests.support.processes import HOST, SECRET
from tests.support.tokens import Issuer
from tests.support.users import user

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.rows import Row
    from tests.support.certificates import Issued
    from tests.support.specs import Tenant

BROKERS = (1, 2, 3)
PARTITIONS = 6
ROOT, PASSWORD = "root", "the super user's"
ALICE, PENCIL = "alice", "pencil"
EVE = "eve"
"""Who gives a wrong password: a name of its own, since one that has failed often is not heard for a while."""
CAROL = "carol"
"""Whom a client's certificate names."""
ACCESS = ("right", "wrong password", "wrong ca", "no certificate", "foreign")
_SASL: dict[str, Any] = {"mechanisms": MECHANISMS, "allow_plain_in_clear": True}
_ISSUER = Issuer()
_TOKEN_S = 3_600.0
_MAPPING = ("RULE:^CN=([^,]+).*$/$1/",)


class Served:
    """`make`: of an instance with these members (`Specs.create`); `folder`: for the files."""

    def __init__(self, make: Callable[..., Tenant], folder: Path) -> None:
        self._servers, self._clients = Authority("CA of the instance"), Authority("CA of clients")
        self._elsewhere = Authority("CA of somebody else")
        self._folder = folder
        self._write_files()
        self.tenant = make(
            routes=_routes(),
            users=UserSet(1, (user(ALICE, PENCIL), user(EVE, "hers"), user(ROOT, PASSWORD))),
            acls=AclSet(1, tuple(sorted(_acls()))),
            token_issuers=_ISSUER.trusted_set(),
            certificates=self._certificates,
            authorizer=Authorizer(allow_everyone_if_no_acl_found=False, super_users=(f"User:{ROOT}",)),
            audit=True,
        )
        self._addresses = {
            route.id: ",".join("{}:{}".format(*endpoint.advertised) for endpoint in route.endpoints.values())
            for route in self.tenant.spec.routes
        }
        self.make_topic(UNREADABLE)
        self.make_topic(READ_ONLY)

    # --- how clients come ---------------------------------------------------------------------------------------------

    def access(self, row: Row, how: str) -> dict[str, str]:
        """The members of a job that say where a client connects and what it shows; `how` is one of `ACCESS`."""
        assert how in ACCESS, how
        name, password = (EVE, "not hers") if how == "wrong password" else (ALICE, PENCIL)
        if row.mechanism == OAUTHBEARER:
            audience = "another" if how == "wrong password" else _ISSUER.audiences[0]
            password = _ISSUER.token(name, time.time(), _TOKEN_S, aud=audience)
        certificate = ""
        if row.shows_certificate and how != "no certificate":
            certificate = "foreign" if how == "foreign" else CAROL
        return {
            "bootstrap": self._addresses[row.route],
            "protocol": row.security.upper(),
            "mechanism": row.mechanism,
            "user": name if row.wants_sasl else "",
            "password": password if row.wants_sasl else "",
            "ca": self._path("elsewhere-ca" if how == "wrong ca" else "ca") if row.wants_tls else "",
            "certificate": certificate and self._path(certificate),
            "key": certificate and self._path(f"{certificate}-key"),
            "keystore": certificate and self._path(f"{certificate}-both"),
        }

    def _path(self, name: str) -> str:
        return str(self._folder / f"{name}.pem")

    def _write_files(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        texts = {"ca": self._servers.pem, "elsewhere-ca": self._elsewhere.pem}
        for name, issued in ((CAROL, self._clients.issue(CAROL)), ("foreign", self._elsewhere.issue(CAROL))):
            texts |= {
                name: issued.pem,
                f"{name}-key": issued.key_pem,
                f"{name}-both": issued.key_pem + issued.pem,
            }
        for name, text in texts.items():
            (self._folder / f"{name}.pem").write_text(text)

    def _certificates(self, instance: str) -> CertificateSet:
        issued = self._servers.issue("brokers", [HOST, "localhost"])
        routes = [("mtls", self._clients.pem), ("sasl_ssl", ""), ("ssl", "")]
        return CertificateSet(1, tuple(_shown(instance, route, issued, client_ca) for route, client_ca in routes))

    # --- what has happened --------------------------------------------------------------------------------------------

    @property
    def _root(self) -> dict[str, str]:
        """Of librdkafka."""
        return {
            "bootstrap.servers": self._addresses["beside"],
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": ROOT,
            "sasl.password": PASSWORD,
        }

    def make_topic(self, name: str) -> None:
        """With a leader for some of its partitions on every broker."""
        admin = AdminClient({"log_level": 0, **self._root})
        topic = NewTopic(name, PARTITIONS, len(BROKERS))
        admin.create_topics([topic], request_timeout=TIMEOUT_S)[name].result(TIMEOUT_S)

    def log(self, topic: str) -> dict[int, list[tuple[bytes, bytes]]]:
        """Keys and values of a topic by partition, from its beginning to where it ends now."""
        found: dict[int, list[tuple[bytes, bytes]]] = {partition: [] for partition in range(PARTITIONS)}
        with consumer(self.tenant, "beside", **self._root) as reader:
            ends = {p: reader.get_watermark_offsets(TopicPartition(topic, p), TIMEOUT_S)[1] for p in found}
            reader.assign([TopicPartition(topic, partition, 0) for partition in found])
            for message in take(reader, sum(ends.values()), 2 * TIMEOUT_S):
                found[message.partition()].append((message.key(), message.value()))
        return found

    def committed(self, group: str, topic: str) -> int:
        """The sum of a group's offsets; where it has none, nothing."""
        with consumer(self.tenant, group, **self._root) as reader:
            offsets = reader.committed([TopicPartition(topic, partition) for partition in range(PARTITIONS)], TIMEOUT_S)
        return sum(max(0, offset.offset) for offset in offsets)

    def logins_again(self, row: Row, during_ms: range, wanted: int, within_s: float) -> dict[int, int]:
        """Logins within that time on connections that were open, by broker; returns when each has that many, or after a while."""
        deadline = time.monotonic() + within_s
        counts: Counter[int] = Counter(dict.fromkeys(BROKERS, 0))
        with consumer(self.tenant, "beside", **self._root) as reader:
            reader.assign([TopicPartition(AUDIT_TOPIC, 0, 0)])
            while time.monotonic() < deadline and min(counts[broker] for broker in BROKERS) < wanted:
                for message in reader.consume(500, 0.5):
                    error = message.error()
                    if error is not None and error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise KafkaException(error)
                    if error is None:
                        _count(counts, AuditRecord.from_value(message.value()), row.route, during_ms)
        return dict(counts)


def _count(counts: Counter[int], record: AuditRecord, route: str, during_ms: range) -> None:
    if record.route != route or record.time_ms not in during_ms:
        return
    if record.kind is AuditKind.AUTHENTICATION and record.outcome == "success":
        counts[record.broker] += 1
    elif record.kind is AuditKind.CONNECTION and record.outcome == "accepted":
        counts[record.broker] -= 1


def _routes() -> tuple[Route, ...]:
    certificates = {"client_certificates": "required", "principal_mapping": _MAPPING}
    return (
        _route("beside", security="sasl_plaintext", **_SASL),
        _route("plaintext"),
        _route("sasl_plaintext", security="sasl_plaintext", **_SASL),
        _route("ssl", security="ssl"),
        _route("mtls", security="ssl", **certificates),
        _route("sasl_ssl", security="sasl_ssl", **_SASL),
    )


def _route(name: str, **members: Any) -> Route:
    addresses = {broker: (HOST, free_port()) for broker in BROKERS}
    return Route(name, {broker: Endpoint(address, address) for broker, address in addresses.items()}, **members)


def _acls() -> list[Acl]:
    """The same rights for whoever comes by whichever route; none for anybody else."""
    rights = [
        (ResourceType.TOPIC, PatternType.PREFIXED, "orders-", AclOperation.READ),
        (ResourceType.TOPIC, PatternType.PREFIXED, "orders-", AclOperation.WRITE),
        (ResourceType.TOPIC, PatternType.LITERAL, READ_ONLY, AclOperation.READ),
        (ResourceType.GROUP, PatternType.PREFIXED, "readers-", AclOperation.READ),
    ]
    return [
        Acl(kind, pattern, name, f"User:{who}", "*", operation, Permission.ALLOW)
        for who in ("ANONYMOUS", ALICE, CAROL)
        for kind, pattern, name, operation in rights
    ]


def _shown(instance: str, route: str, issued: Issued, client_ca: str) -> RouteCertificate:
    purpose = route_key_purpose(instance, route)
    key = sealed(issued.key_pem.encode(), secret=SECRET, purpose=purpose, nonce=f"{route:.12}".encode().ljust(12))
    return RouteCertificate(route, issued.pem, key, client_ca)
