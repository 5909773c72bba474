"""May somebody do something, and which rule says so: asked in the order in which a broker asks. Pure.

============================  =====================================================================================
asked                         what it refuses
============================  =====================================================================================
1. the instance, the route    one that is not running; one that there is not, that has ended or that nobody opens
2. the instance's whitelist   an address that it does not hold
3. the route's whitelist      likewise, where it has one
4. the login                  whom the route does not know: it wants SASL or a certificate, or takes neither
5. what nobody may            what brokers do among themselves; to change `__sluice_audit`
6. the topic's whitelist      an address that it does not hold, where the topic has one
7. ACLs (`quota.core.acls`)   as Kafka's authorizer: super users, DENY before ALLOW, what is implied, no ACL at all
============================  =====================================================================================

Limits are not asked: how many connections there are, or whether storage is full, changes from one moment to the next. `Rule`
says which of these decided, `Explained.reason` says it in a sentence, for a tenant or for the log of a denial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from quota.contracts.acls import CLUSTER_NAME, READING, Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.instance import (
    OAUTHBEARER,
    PLAIN,
    ClientCertificates,
    InstanceSpec,
    InstanceState,
    Route,
    Security,
)
from quota.contracts.namespace import AUDIT_TOPIC
from quota.contracts.users import ScramMechanism, User
from quota.core.acls import AclBook, Decision, Reason

USER: Final = "User:"
ANONYMOUS: Final = "User:ANONYMOUS"


class Rule(StrEnum):
    """What decided."""

    INSTANCE = "instance"
    ROUTE = "route"
    INSTANCE_WHITELIST = "instance_whitelist"
    ROUTE_WHITELIST = "route_whitelist"
    LOGIN = "login"
    SERVICE = "service"  # what nobody may here, whatever a tenant sets
    TOPIC_WHITELIST = "topic_whitelist"
    SUPER_USER = "super_user"
    ACL = "acl"
    NO_ACL = "no_acl"  # none for the resource, or none that allows it


@dataclass(frozen=True, slots=True)
class Question:
    """May he? `source` is an address, `principal` such as ``User:bob``; a topic or group by the tenant's name."""

    source: str
    principal: str
    route: str
    operation: AclOperation
    resource_type: ResourceType
    resource_name: str


@dataclass(frozen=True, slots=True)
class Explained:
    """Whether he may, and why; `acl` is the one that decided, if one did."""

    allowed: bool
    rule: Rule
    reason: str
    acl: Acl | None = None


def explain(spec: InstanceSpec, question: Question, *, now_ms: int) -> Explained:
    """The answer for an instance's specification with its whitelists, ACLs, users and token issuers (None: none).

    Raises ValueError where the source is no address.
    """
    ip_address(question.source.partition("%")[0])
    refused = (
        _by_route(spec, question, now_ms)
        or _by_whitelists(spec, question)
        or _by_login(spec, question, now_ms)
        or _by_service(question)
        or _by_topic(spec, question)
    )
    if refused:
        return refused
    book = AclBook(spec.acls.items if spec.acls is not None else (), spec.authorizer)
    return _by_acls(book, question)


def _no(rule: Rule, reason: str) -> Explained:
    return Explained(allowed=False, rule=rule, reason=reason)


def _by_route(spec: InstanceSpec, question: Question, now_ms: int) -> Explained | None:
    if spec.state is not InstanceState.RUNNING:
        return _no(Rule.INSTANCE, f"the instance is {spec.state.value}: nobody may connect")
    route = _route(spec, question.route)
    if route is None:
        return _no(Rule.ROUTE, f"the instance has no route {question.route}")
    if not route.endpoints:
        return _no(Rule.ROUTE, f"no broker has an address for route {route.id} yet")
    if route.closes_at_ms is not None and route.closes_at_ms <= now_ms:
        return _no(Rule.ROUTE, f"route {route.id} has ended")
    if route.security not in tuple(Security):
        return _no(Rule.ROUTE, f"route {route.id} has a security that is not known, so it is not opened")
    return None


def _route(spec: InstanceSpec, route_id: str) -> Route | None:
    return next((route for route in spec.routes if route.id == route_id), None)


def _by_whitelists(spec: InstanceSpec, question: Question) -> Explained | None:
    source, route = question.source, _route(spec, question.route)
    if not holds(spec.whitelist, source):
        return _no(Rule.INSTANCE_WHITELIST, f"{source} is not on the whitelist of the instance")
    if route is not None and route.whitelist is not None and not holds(route.whitelist, source):
        return _no(Rule.ROUTE_WHITELIST, f"{source} is not on the whitelist of route {route.id}")
    return None


def holds(cidrs: Iterable[str], source: str) -> bool:
    """Whether one of these blocks holds an address; an IPv4 address in an IPv6 one is the IPv4 address."""
    address = ip_address(source.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    networks = (ip_network(cidr) for cidr in cidrs)
    return any(address in network for network in networks if network.version == address.version)


def _by_login(spec: InstanceSpec, question: Question, now_ms: int) -> Explained | None:
    route, principal = _route(spec, question.route), question.principal
    if route is None:
        return None
    if route.wants_sasl:
        reason = _why_not_by_sasl(spec, route, principal, now_ms)
    elif route.wants_tls and route.client_certificates != ClientCertificates.NONE:
        is_needed = route.client_certificates == ClientCertificates.REQUIRED
        reason = (
            f"route {route.id} wants a certificate of each client, so nobody is {ANONYMOUS} there"
            if principal == ANONYMOUS and is_needed
            else None
        )
    elif principal != ANONYMOUS:
        reason = f"nobody logs in on route {route.id} ({route.security}): every client is {ANONYMOUS} there"
    else:
        reason = None
    return _no(Rule.LOGIN, reason) if reason else None


def _why_not_by_sasl(spec: InstanceSpec, route: Route, principal: str, now_ms: int) -> str | None:
    offered = route.offered
    if not offered:
        return f"route {route.id} offers no mechanism to log in by"
    if principal == ANONYMOUS:
        return f"clients of route {route.id} have to log in ({route.security})"
    if OAUTHBEARER in offered and spec.token_issuers is not None and spec.token_issuers.items:
        return None  # whom a token names need not be a user of the instance
    if offered == (OAUTHBEARER,):
        return f"clients of route {route.id} log in by tokens, and the instance trusts no token issuer"
    name = principal.removeprefix(USER)
    user = next((user for user in spec.users.items if user.name == name), None) if spec.users is not None else None
    if user is None:
        return f"the instance has no user {name}"
    if not _can_log_in(user, offered, now_ms):
        return f"user {name} has no password by {' or '.join(offered)}, which route {route.id} offers"
    return None


def _can_log_in(user: User, offered: Sequence[str], now_ms: int) -> bool:
    """PLAIN is verified by a credential of either mechanism."""
    wanted = [mechanism for mechanism in ScramMechanism if PLAIN in offered or mechanism.value in offered]
    good = [one for one in user.credentials if one.until_ms is None or one.until_ms > now_ms]
    return any(one.mechanism in wanted for one in good)


def _by_service(question: Question) -> Explained | None:
    if question.operation is AclOperation.CLUSTER_ACTION:
        return _no(Rule.SERVICE, "CLUSTER_ACTION is for the brokers among themselves")
    is_kept = question.resource_type is ResourceType.TOPIC and question.resource_name == AUDIT_TOPIC
    if is_kept and question.operation not in READING:
        return _no(Rule.SERVICE, f"{AUDIT_TOPIC} is the service's to change: clients may only read it")
    return None


def _by_topic(spec: InstanceSpec, question: Question) -> Explained | None:
    if question.resource_type is not ResourceType.TOPIC:
        return None
    cidrs = spec.topic_whitelists.get(question.resource_name)
    if cidrs is None or holds(cidrs, question.source):
        return None
    return _no(Rule.TOPIC_WHITELIST, f"{question.source} is not on the whitelist of topic {question.resource_name}")


def _by_acls(book: AclBook, question: Question) -> Explained:
    who, source = question.principal, question.source
    asked = question.operation, question.resource_type
    decision = book.decide(who, source, *asked, question.resource_name)
    others: Decision | None = None
    if asked == (AclOperation.CREATE, ResourceType.TOPIC):
        others = book.decide(who, source, AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    elif asked == (AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER):
        others = book.decide_by_type(who, source, AclOperation.WRITE, ResourceType.TOPIC)
    return of_decision(others if others is not None and others.allowed and not decision.allowed else decision, question)


def of_decision(decision: Decision, question: Question) -> Explained:
    """A decision of the ACLs in words."""
    who, what = question.principal, f"{question.resource_type.name} {question.resource_name}"
    if decision.acl is not None:
        return Explained(decision.allowed, Rule.ACL, acl_text(decision.acl), decision.acl)
    if decision.reason is Reason.SUPER_USER:
        return Explained(decision.allowed, Rule.SUPER_USER, f"{who} is a super user of the instance")
    if decision.reason is Reason.NONE_ALLOWS:
        reason = f"there are ACLs for {what}, and none of them allows {question.operation.name} to {who} from {question.source}"
    elif decision.allowed:
        reason = f"there is no ACL for {what}, and then everyone may (allow_everyone_if_no_acl_found)"
    else:
        reason = f"there is no ACL for {what}, and then nobody may (allow_everyone_if_no_acl_found is false)"
    return Explained(decision.allowed, Rule.NO_ACL, reason)


def acl_text(acl: Acl) -> str:
    """An ACL as a sentence."""
    verb = "allows" if acl.permission is Permission.ALLOW else "denies"
    where = "from everywhere" if acl.host == "*" else f"from {acl.host}"
    names = "whose names begin with " if acl.pattern_type is PatternType.PREFIXED else ""
    return (
        f"an ACL {verb} {acl.operation.name} on {acl.resource_type.name} {names}{acl.resource_name} "
        f"to {acl.principal} {where}"
    )
