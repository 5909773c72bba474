"""What the control plane wants of an instance, as it stands in ZooKeeper at ``/sluice/instances/<id>``.

The control plane writes it; brokers and the master read it. JSON, version 2::

    {"version": 2, "id": "ins-k3v9x2qa", "generation": 7, "state": "running",
     "limits": {"produce_bytes_per_s": 5242880, "consume_bytes_per_s": 5242880, "storage_bytes": 10737418240,
                "partitions": 60, "connections": 1000, "connections_per_address": 500, "connections_per_s": 200,
                "topics": 20, "requests_per_s": null, "loop_ms_per_s": 600, "open_transactions": 250,
                "transactional_ids": 10000, "transaction_timeout_ms": 900000},
     "whitelists": 7, "brokers": [1, 2, 3], "strategy": "ckafka", "auto_create_topics": false,
     "authorizer": {"allow_everyone_if_no_acl_found": true, "super_users": ["User:admin"]},
     "routes": [{"id": "default", "security": "sasl_ssl", "mechanisms": ["SCRAM-SHA-256"], "allow_plain_in_clear": false,
                 "client_certificates": "none", "principal_mapping": [], "proxy_protocol": false,
                 "whitelist": ["10.0.0.0/8"], "connections": 100, "connections_per_address": null, "closes_at_ms": null,
                 "endpoints": {"1": {"bind": "127.0.0.1:20100", "advertised": "127.0.0.1:20100"}}}]}

A route has what it does not say from its instance: a whitelist and limits of connections of its own are asked beside the
instance's. A route of a security that a broker does not know, or cannot serve, is not opened. From "closes_at_ms" on it
is closed.

What can grow has nodes of its own: whitelists, of the generation that is named or a later one, throttle rules, ACLs, users,
token issuers and certificates (`quota.contracts.apart`). Version 1 has no "whitelists" and holds those and the rules itself
instead, which is more than a node can for some instances::

     "whitelist": ["10.0.0.0/8"], "topic_whitelists": {"orders": ["10.1.2.3/32"]},
     "rules": {"version": 4, "items": [...]}                 only where there are some: `quota.contracts.rules`

A member "topic_defaults", ``{"partitions": 3, "replication_factor": 2, "max_message_bytes": 1048588}``, where the instance has
some of its own: what holds for topics that do not say. What it leaves out is as the brokers have it.

It is still read, and stays what it is until the control plane writes it anew.

A limit of null is "unlimited", 0 is "blocked": two different things. `loop_ms_per_s` is broker time: milliseconds a second
that the loops of all brokers together may work for the instance (what Kafka calls a request percentage, KIP-124). The last
three are of transactions: how many may be open at a time, and how many transactional ids there may be, over all coordinators;
and for how long a producer may have one open. What older writers did not know is missing, and then unlimited. A reader ignores
members it does not know, so a newer writer may add some; it refuses a higher ``version``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from quota.contracts.acls import AclSet
from quota.contracts.networks import network_of, without_zone
from quota.contracts.rows import LOOP_MS, REQUEST, Unit
from quota.contracts.rules import RuleSet
from quota.contracts.token_issuers import TokenIssuerSet
from quota.contracts.users import UserSet

VERSION = 2
WHOLE_VERSION = 1
"""Of documents that hold whitelists and rules themselves."""
MIB = 2**20
"""Bytes in the MB of every specification and limit."""
GIB = 2**30

INSTANCES_PATH = "/sluice/instances"
WHITELISTS_PATH = "/sluice/whitelists"
RULES_PATH = "/sluice/rules"
ACLS_PATH = "/sluice/acls"
USERS_PATH = "/sluice/users"
TOKEN_ISSUERS_PATH = "/sluice/token_issuers"  # noqa: S105  # a place, not a secret
CERTIFICATES_PATH = "/sluice/certificates"
CHANGES_PATH = "/sluice/changes"
APPLIED_PATH = "/sluice/applied"
MASTER_PATH = "/sluice/master"
MASTER_EPOCH_PATH = "/sluice/master_epoch"


class ContractError(ValueError):
    """A document that does not follow its contract; the text says where."""


class UnreadAccessError(ContractError):
    """Who may do what is not known: nobody may connect, until it is."""


class UnreadWhitelistsError(UnreadAccessError):
    """Who may connect is not known: nobody may, until it is."""


class InstanceState(StrEnum):
    """What brokers do with the instance."""

    RUNNING = "running"  # listeners open
    STOPPED = "stopped"  # listeners closed, data kept
    DELETED = "deleted"  # listeners closed, data about to go


@dataclass(frozen=True, slots=True)
class Limits:
    """What was bought. None means unlimited, 0 blocked."""

    produce_bytes_per_s: int | None
    consume_bytes_per_s: int | None
    storage_bytes: int | None
    partitions: int | None  # replicas included, as CKafka counts
    connections: int | None = None  # these three per broker
    connections_per_address: int | None = None
    connections_per_s: int | None = None  # that begin; a second's worth may begin at once
    topics: int | None = None  # this and what follows is an operator's to set
    requests_per_s: int | None = None
    loop_ms_per_s: int | None = None  # broker time: of all brokers' loops together
    open_transactions: int | None = None  # at a time, over all brokers
    transactional_ids: int | None = None  # over all brokers
    transaction_timeout_ms: int | None = None  # the longest that a producer may ask for; None: the brokers' own

    def rate(self, unit: Unit) -> int | None:
        """Of requests or of broker time, a second, as rows count it; None: there is no such limit."""
        limit, counts = (self.requests_per_s, REQUEST) if unit is Unit.REQUESTS else (self.loop_ms_per_s, LOOP_MS)
        return None if limit is None else limit * counts


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one broker serves a route: the address it binds and the one it tells clients (they differ behind a VIP)."""

    bind: tuple[str, int]
    advertised: tuple[str, int]


PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
SECRETS_ARE_SENT = (PLAIN, OAUTHBEARER)
"""Mechanisms of SASL by which a password, or a token that is as good as one, is sent as it is."""


class Security(StrEnum):
    """What clients speak on a route: with SASL or without, inside TLS or not."""

    PLAINTEXT = "plaintext"
    SASL_PLAINTEXT = "sasl_plaintext"
    SSL = "ssl"
    SASL_SSL = "sasl_ssl"


class ClientCertificates(StrEnum):
    """Whether clients of a route show a certificate: what Kafka calls ssl.client.auth."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Route:
    """One way in: a listener per broker, all with the same security."""

    id: str
    endpoints: Mapping[int, Endpoint]  # by broker id
    security: str = Security.PLAINTEXT.value  # of `Security`, or what a newer writer means by it
    mechanisms: tuple[str, ...] = ()  # of SASL, by their registered names
    allow_plain_in_clear: bool = False  # whether `SECRETS_ARE_SENT` may be used where there is no TLS
    client_certificates: str = ClientCertificates.NONE.value
    principal_mapping: tuple[str, ...] = ()  # rules from a certificate's subject to a name, as Kafka writes them
    proxy_protocol: bool = False
    whitelist: tuple[str, ...] | None = None  # CIDRs; None: the instance's alone
    connections: int | None = None  # these two per broker; None: the instance's alone
    connections_per_address: int | None = None
    closes_at_ms: int | None = None  # of the wall's clock; None: it stays

    @property
    def wants_sasl(self) -> bool:
        """Whether a connection has to log in."""
        return self.security in (Security.SASL_PLAINTEXT, Security.SASL_SSL)

    @property
    def wants_tls(self) -> bool:
        """Whether its bytes are TLS."""
        return self.security in (Security.SSL, Security.SASL_SSL)

    @property
    def offered(self) -> tuple[str, ...]:
        """Its mechanisms without those whose secrets would be seen: such a one needs TLS, or `allow_plain_in_clear`."""
        in_clear = not self.wants_tls and not self.allow_plain_in_clear
        return tuple(name for name in self.mechanisms if not (in_clear and name in SECRETS_ARE_SENT))


@dataclass(frozen=True, slots=True)
class Authorizer:
    """How ACLs are meant, as Kafka's settings of these names say it."""

    allow_everyone_if_no_acl_found: bool = True
    super_users: tuple[str, ...] = ()  # principals, "User:admin"

    def document(self) -> dict[str, Any]:
        return {
            "allow_everyone_if_no_acl_found": self.allow_everyone_if_no_acl_found,
            "super_users": list(self.super_users),
        }


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What holds for an instance's topics that do not say. None: as the brokers have it."""

    partitions: int | None = None
    replication_factor: int | None = None
    max_message_bytes: int | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Those that it has, by the names of brokers' settings."""
        named = {
            "num.partitions": self.partitions,
            "default.replication.factor": self.replication_factor,
            "message.max.bytes": self.max_message_bytes,
        }
        return {name: str(value) for name, value in named.items() if value is not None}

    def document(self) -> dict[str, int]:
        members = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """The wanted state of one instance at one generation, and at one version of its rules."""

    id: str
    generation: int
    state: InstanceState
    limits: Limits
    whitelist: tuple[str, ...]  # CIDRs; empty = nobody
    routes: tuple[Route, ...]
    topic_whitelists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # tenant topic name -> CIDRs
    brokers: tuple[int, ...] = ()  # where replicas may be placed; empty = anywhere
    strategy: str = "ckafka"
    auto_create_topics: bool = False
    topic_defaults: TopicDefaults = TopicDefaults()
    audit: bool = False  # whether brokers write what happens to its topic `quota.contracts.audit`
    rules: RuleSet = field(default_factory=RuleSet)
    authorizer: Authorizer = Authorizer()
    acls: AclSet | None = field(
        default=None, compare=False
    )  # these three as the broker found them; None: not looked for
    users: UserSet | None = field(default=None, compare=False)
    token_issuers: TokenIssuerSet | None = field(default=None, compare=False)
    whitelists_of: int | None = field(default=None, compare=False)
    """The generation of the whitelists that it needs of their own node; None: they are in the document."""

    @property
    def hosts(self) -> tuple[int, ...]:
        """The brokers that have a listener of the instance."""
        return tuple(sorted({broker for route in self.routes for broker in route.endpoints}))

    def to_json(self) -> bytes:
        """All of it as one document, version 1, with sorted keys so that equal specs are equal bytes."""
        document = {
            **self._document(),
            "version": WHOLE_VERSION,
            "whitelist": list(self.whitelist),
            "topic_whitelists": {topic: list(cidrs) for topic, cidrs in self.topic_whitelists.items()},
        }
        if self.rules.version:
            document["rules"] = self.rules.document()
        return to_bytes(document)

    def head_json(self) -> bytes:
        """Without what stands in nodes of its own, version 2; it needs the whitelists of its own generation."""
        return to_bytes({**self._document(), "version": VERSION, "whitelists": self.generation})

    def _document(self) -> dict[str, Any]:
        defaults = self.topic_defaults.document()
        return {
            **({"topic_defaults": defaults} if defaults else {}),
            **({"audit": True} if self.audit else {}),
            **({"authorizer": self.authorizer.document()} if self.authorizer != Authorizer() else {}),
            "id": self.id,
            "generation": self.generation,
            "state": self.state.value,
            "limits": {name: getattr(self.limits, name) for name in Limits.__slots__},
            "brokers": list(self.brokers),
            "strategy": self.strategy,
            "auto_create_topics": self.auto_create_topics,
            "routes": [_route_document(route) for route in self.routes],
        }

    @classmethod
    def from_json(cls, data: bytes) -> InstanceSpec:
        """Parse and check a document of either version. Raises ContractError with the member at fault.

        Without its other nodes (`quota.contracts.apart.joined`), one of version 2 lets nobody in and has no rules.
        """
        try:
            document = json.loads(data)
            return cls._from_document(document)
        except ContractError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ContractError(f"instance spec: {type(error).__name__}: {error}") from error

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> InstanceSpec:
        if document["version"] > VERSION:
            raise ContractError(f"instance spec: version {document['version']} is newer than {VERSION}")
        limits, is_whole = document["limits"], document["version"] == WHOLE_VERSION
        return cls(
            id=document["id"],
            generation=document["generation"],
            state=InstanceState(document["state"]),
            limits=Limits(**{name: _limit(name, limits.get(name)) for name in Limits.__slots__}),
            whitelist=cidrs_of(document["whitelist"]) if is_whole else (),
            routes=tuple(_route(route) for route in document["routes"]),
            topic_whitelists=topics_of(document.get("topic_whitelists", {})) if is_whole else {},
            brokers=tuple(document.get("brokers", ())),
            strategy=document.get("strategy", "ckafka"),
            auto_create_topics=document.get("auto_create_topics", False),
            topic_defaults=_defaults(document.get("topic_defaults", {})),
            audit=_audit(document.get("audit", False)),
            authorizer=_authorizer(document.get("authorizer", {})),
            rules=RuleSet.from_document(document["rules"]) if is_whole and "rules" in document else RuleSet(),
            whitelists_of=None if is_whole else _generation(document["whitelists"]),
        )


def _defaults(members: Mapping[str, Any]) -> TopicDefaults:
    found = {name: members.get(name) for name in TopicDefaults.__slots__}
    for name, value in found.items():
        if value is not None and (type(value) is not int or value < 1):
            raise ContractError(
                f"instance spec: topic_defaults.{name} must be a whole number of 1 or more, not {value!r}"
            )
    return TopicDefaults(**found)


def address_text(address: tuple[str, int]) -> str:
    """``host:port``, an IPv6 host in brackets."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """The inverse of `address_text`. Raises ContractError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ContractError(f"not host:port: {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _limit(name: str, value: object) -> int | None:
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
        raise ContractError(f"instance spec: limits.{name} must be null or a whole number of 0 or more, not {value!r}")
    return value


def _generation(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ContractError(f"instance spec: whitelists must be a generation, not {value!r}")
    return value


def to_bytes(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def cidrs_of(values: list[str]) -> tuple[str, ...]:
    """A stored whitelist. Raises ValueError, TypeError, AttributeError."""
    return tuple(str(network_of(without_zone(value))) for value in values)


def topics_of(document: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """Whitelists of topics. Raises ValueError, TypeError, AttributeError."""
    return {topic: cidrs_of(cidrs) for topic, cidrs in document.items()}


def _route(document: dict[str, Any]) -> Route:
    endpoints = {
        int(broker): Endpoint(parse_address(endpoint["bind"]), parse_address(endpoint["advertised"]))
        for broker, endpoint in document["endpoints"].items()
    }
    whitelist = document.get("whitelist")
    return Route(
        id=document["id"],
        endpoints=endpoints,
        security=document.get("security", Security.PLAINTEXT.value),
        mechanisms=tuple(document.get("mechanisms", ())),
        allow_plain_in_clear=document.get("allow_plain_in_clear", False),
        client_certificates=document.get("client_certificates", ClientCertificates.NONE.value),
        principal_mapping=tuple(document.get("principal_mapping", ())),
        proxy_protocol=document.get("proxy_protocol", False),
        whitelist=None if whitelist is None else cidrs_of(whitelist),
        connections=_limit("connections", document.get("connections")),
        connections_per_address=_limit("connections_per_address", document.get("connections_per_address")),
        closes_at_ms=_limit("closes_at_ms", document.get("closes_at_ms")),
    )


def _audit(value: object) -> bool:
    if type(value) is not bool:
        raise ContractError(f"instance spec: audit is true or false, not {value!r}")
    return value


def _authorizer(members: Mapping[str, Any]) -> Authorizer:
    everyone = members.get("allow_everyone_if_no_acl_found", True)
    if type(everyone) is not bool:
        raise ContractError(
            f"instance spec: authorizer.allow_everyone_if_no_acl_found is true or false, not {everyone!r}"
        )
    return Authorizer(everyone, tuple(members.get("super_users", ())))


_ROUTE_DEFAULTS = Route("", {})


def _route_document(route: Route) -> dict[str, Any]:
    said = {
        name: list(value) if isinstance(value, tuple) else value
        for name in Route.__slots__
        if name not in ("id", "endpoints")
        and (
            (value := getattr(route, name)) != getattr(_ROUTE_DEFAULTS, name) or name in ("security", "proxy_protocol")
        )
    }
    return {
        "id": route.id,
        **said,
        "endpoints": {
            str(broker): {"bind": address_text(endpoint.bind), "advertised": address_text(endpoint.advertised)}
            for broker, endpoint in sorted(route.endpoints.items())
        },
    }
