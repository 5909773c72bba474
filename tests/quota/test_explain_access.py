"""May somebody do something, and which rule says so: each rule decides where those before it let him pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.tenancy.whitelist import Whitelist
from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.instance import Authorizer, Endpoint, InstanceSpec, InstanceState, Limits, Route, Security
from quota.contracts.namespace import AUDIT_TOPIC
from quota.contracts.token_issuers import TokenIssuer, TokenIssuerSet
from quota.contracts.users import Credential, ScramMechanism, User, UserSet
from quota.core.explain_access import ANONYMOUS, Explained, Question, Rule, explain, holds

NOW_MS = 1_000_000
WRITE = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:bob", "*", AclOperation.WRITE, Permission.ALLOW)
BOB = User("bob", (Credential(ScramMechanism.SHA_256, b"s", 4096, b"k", b"k"),))
ENDPOINTS = {1: Endpoint(("127.0.0.1", 20100), ("127.0.0.1", 20100))}
R1 = Route("r1", ENDPOINTS, Security.SASL_SSL, ("SCRAM-SHA-256",), whitelist=("10.0.0.0/16",))
SPEC = InstanceSpec(
    "ins-k3v9x2qa",
    1,
    InstanceState.RUNNING,
    Limits(None, None, None, None),
    ("10.0.0.0/8",),
    (R1, Route("plain", ENDPOINTS)),
    topic_whitelists={"orders": ("10.0.0.0/24",)},
    authorizer=Authorizer(allow_everyone_if_no_acl_found=False, super_users=("User:root",)),
    acls=AclSet(1, (WRITE,)),
    users=UserSet(1, (BOB, User("root", BOB.credentials))),
)
ISSUERS = TokenIssuerSet(1, (TokenIssuer("https://login.example.com/", ("kafka",)),))
MAY_BOB = Question("10.0.0.7", "User:bob", "r1", AclOperation.WRITE, ResourceType.TOPIC, "orders")


def asked(spec: InstanceSpec = SPEC, **members: object) -> Explained:
    return explain(spec, replace(MAY_BOB, **members), now_ms=NOW_MS)  # type: ignore[arg-type]


def with_route(**members: object) -> InstanceSpec:
    return replace(SPEC, routes=(replace(R1, **members),))  # type: ignore[arg-type]


def by_token(
    *,
    mechanisms: tuple[str, ...] = ("OAUTHBEARER",),
    security: Security = Security.SASL_SSL,
    token_issuers: TokenIssuerSet | None = ISSUERS,
    users: UserSet | None = SPEC.users,
) -> InstanceSpec:
    """With a route for tokens, and an issuer."""
    spec = with_route(mechanisms=mechanisms, security=security)
    return replace(spec, token_issuers=token_issuers, users=users)


def test_bob_may_write_by_his_acl() -> None:
    found = asked()
    assert (found.allowed, found.rule, found.acl) == (True, Rule.ACL, WRITE)
    assert found.reason == "an ACL allows WRITE on TOPIC orders to User:bob from everywhere"


MAY_ALL = replace(SPEC, topic_whitelists={}, authorizer=Authorizer(super_users=("User:root",)))
DENY_ALL = replace(WRITE, principal="User:*", operation=AclOperation.ALL, permission=Permission.DENY)


@pytest.mark.parametrize(
    ("spec", "members", "rule"),
    [
        (replace(SPEC, state=InstanceState.STOPPED), {}, Rule.INSTANCE),
        (SPEC, {"route": "r2"}, Rule.ROUTE),
        (with_route(endpoints={}), {}, Rule.ROUTE),
        (with_route(closes_at_ms=NOW_MS), {}, Rule.ROUTE),
        (with_route(security="sasl_quic"), {}, Rule.ROUTE),
        (replace(SPEC, whitelist=()), {}, Rule.INSTANCE_WHITELIST),
        (SPEC, {"source": "192.168.0.1"}, Rule.INSTANCE_WHITELIST),
        (SPEC, {"source": "10.1.0.7"}, Rule.ROUTE_WHITELIST),
        (SPEC, {"principal": ANONYMOUS}, Rule.LOGIN),
        (SPEC, {"principal": "User:carol"}, Rule.LOGIN),
        (with_route(mechanisms=("SCRAM-SHA-512",)), {}, Rule.LOGIN),
        (with_route(mechanisms=()), {}, Rule.LOGIN),
        (with_route(mechanisms=("PLAIN",), security=Security.SASL_PLAINTEXT), {}, Rule.LOGIN),
        (by_token(token_issuers=None), {}, Rule.LOGIN),
        (by_token(token_issuers=TokenIssuerSet(1)), {}, Rule.LOGIN),
        (by_token(security=Security.SASL_PLAINTEXT), {}, Rule.LOGIN),
        (by_token(), {"principal": ANONYMOUS}, Rule.LOGIN),
        (SPEC, {"route": "plain"}, Rule.LOGIN),
        (with_route(security=Security.SSL, client_certificates="required"), {"principal": ANONYMOUS}, Rule.LOGIN),
        (SPEC, {"resource_type": ResourceType.TRANSACTIONAL_ID}, Rule.NO_ACL),
        (SPEC, {"operation": AclOperation.CLUSTER_ACTION, "resource_type": ResourceType.CLUSTER}, Rule.SERVICE),
        (MAY_ALL, {"resource_name": AUDIT_TOPIC}, Rule.SERVICE),
        (MAY_ALL, {"resource_name": AUDIT_TOPIC, "operation": AclOperation.DELETE}, Rule.SERVICE),
        (MAY_ALL, {"resource_name": AUDIT_TOPIC, "principal": "User:root"}, Rule.SERVICE),
        (SPEC, {"source": "10.0.1.7"}, Rule.TOPIC_WHITELIST),
        (SPEC, {"principal": "User:root", "source": "10.0.1.7"}, Rule.TOPIC_WHITELIST),
        (replace(SPEC, acls=AclSet(1, (WRITE, DENY_ALL))), {}, Rule.ACL),
        (SPEC, {"operation": AclOperation.READ}, Rule.NO_ACL),
        (SPEC, {"resource_name": "clicks"}, Rule.NO_ACL),
        (SPEC, {"resource_type": ResourceType.GROUP}, Rule.NO_ACL),
        (replace(SPEC, acls=None), {}, Rule.NO_ACL),
    ],
)
def test_he_may_not_and_this_rule_says_so(spec: InstanceSpec, members: dict[str, object], rule: Rule) -> None:
    found = asked(spec, **members)
    assert (found.allowed, found.rule) == (False, rule)
    assert found.reason


@pytest.mark.parametrize(
    ("spec", "members", "rule"),
    [
        (with_route(closes_at_ms=NOW_MS + 1), {}, Rule.ACL),
        (with_route(whitelist=None), {"source": "10.0.0.9"}, Rule.ACL),
        (with_route(mechanisms=("PLAIN",)), {}, Rule.ACL),
        (with_route(mechanisms=("PLAIN",), security=Security.SASL_PLAINTEXT, allow_plain_in_clear=True), {}, Rule.ACL),
        (with_route(security=Security.SSL, client_certificates="requested"), {}, Rule.ACL),
        (with_route(security=Security.SSL, client_certificates="required"), {}, Rule.ACL),
        (by_token(), {}, Rule.ACL),
        (by_token(users=None), {}, Rule.ACL),
        (by_token(), {"principal": "User:root"}, Rule.SUPER_USER),
        (by_token(mechanisms=("OAUTHBEARER", "SCRAM-SHA-256"), token_issuers=None), {}, Rule.ACL),  # by his password
        (SPEC, {"operation": AclOperation.DESCRIBE}, Rule.ACL),  # implied
        (MAY_ALL, {"operation": AclOperation.READ, "resource_name": AUDIT_TOPIC}, Rule.NO_ACL),
        (SPEC, {"principal": "User:root", "resource_name": "clicks"}, Rule.SUPER_USER),
        (replace(SPEC, acls=None, authorizer=Authorizer()), {"route": "plain", "principal": ANONYMOUS}, Rule.NO_ACL),
        (SPEC, {"source": "::ffff:10.0.0.7"}, Rule.ACL),
    ],
)
def test_he_may_and_this_rule_says_so(spec: InstanceSpec, members: dict[str, object], rule: Rule) -> None:
    found = asked(spec, **members)
    assert (found.allowed, found.rule) == (True, rule), found.reason


def test_who_shows_no_certificate_where_none_is_needed_is_anonymous() -> None:
    requested = with_route(security=Security.SSL, client_certificates="requested")
    assert asked(requested, principal=ANONYMOUS).rule is Rule.NO_ACL  # he is let in, and nothing is allowed to him


def test_a_password_of_before_is_good_until_it_ends() -> None:
    old = User("bob", (replace(BOB.credentials[0], until_ms=NOW_MS + 1),))
    assert asked(replace(SPEC, users=UserSet(1, (old,)))).allowed
    ended = User("bob", (replace(BOB.credentials[0], until_ms=NOW_MS),))
    assert asked(replace(SPEC, users=UserSet(1, (ended,)))).rule is Rule.LOGIN


@pytest.mark.parametrize(("host", "allowed"), [("*", True), ("10.0.0.7", True), ("10.0.0.8", False)])
def test_who_may_create_on_the_cluster_may_create_a_topic(host: str, allowed: bool) -> None:
    everywhere = Acl(
        ResourceType.CLUSTER,
        PatternType.LITERAL,
        "kafka-cluster",
        "User:bob",
        host,
        AclOperation.CREATE,
        Permission.ALLOW,
    )
    found = asked(replace(SPEC, acls=AclSet(1, (WRITE, everywhere))), operation=AclOperation.CREATE)
    assert (found.allowed, found.acl) == (allowed, everywhere if allowed else None)


def test_who_may_write_to_some_topic_may_write_idempotently() -> None:
    cluster = {"operation": AclOperation.IDEMPOTENT_WRITE, "resource_type": ResourceType.CLUSTER}
    assert asked(**cluster, resource_name="kafka-cluster").acl == WRITE
    assert not asked(replace(SPEC, acls=None), **cluster, resource_name="kafka-cluster").allowed


def test_a_source_that_is_no_address_is_refused() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        asked(source="nowhere")


@given(
    st.lists(st.ip_addresses(v=4).map(lambda a: f"{a}/32") | st.sampled_from(["10.0.0.0/8", "::/0", "0.0.0.0/1"])),
    st.ip_addresses().map(str) | st.ip_addresses(v=4).map(lambda address: f"::ffff:{address}"),
)
def test_a_whitelist_holds_whom_brokers_let_in(cidrs: list[str], source: str) -> None:
    assert holds(cidrs, source) == Whitelist(cidrs).allows(source)


def test_reasons_are_sentences_for_people() -> None:
    assert asked(principal="User:root").reason == "User:root is a super user of the instance"
    assert asked().reason == "an ACL allows WRITE on TOPIC orders to User:bob from everywhere"
    prefixed = replace(WRITE, pattern_type=PatternType.PREFIXED, resource_name="ord", host="10.0.0.0/8")
    found = asked(replace(SPEC, acls=AclSet(1, (prefixed,))))
    assert found.reason == "an ACL allows WRITE on TOPIC whose names begin with ord to User:bob from 10.0.0.0/8"
    transactional = asked(resource_type=ResourceType.TRANSACTIONAL_ID, resource_name="t")
    assert (transactional.allowed, transactional.rule) == (False, Rule.NO_ACL)
    assert transactional.reason.startswith("there is no ACL for TRANSACTIONAL_ID t, and then nobody may")


CLUSTER = {"resource_type": ResourceType.CLUSTER, "resource_name": "kafka-cluster"}
SSL = with_route(security=Security.SSL, client_certificates="required")


@pytest.mark.parametrize(
    ("spec", "members", "sentence"),
    [
        (replace(SPEC, state=InstanceState.STOPPED), {}, "the instance is stopped: nobody may connect"),
        (SPEC, {"route": "r2"}, "the instance has no route r2"),
        (with_route(endpoints={}), {}, "no broker has an address for route r1 yet"),
        (with_route(closes_at_ms=NOW_MS), {}, "route r1 has ended"),
        (with_route(security="quic"), {}, "route r1 has a security that is not known, so it is not opened"),
        (replace(SPEC, whitelist=()), {}, "10.0.0.7 is not on the whitelist of the instance"),
        (SPEC, {"source": "10.1.0.7"}, "10.1.0.7 is not on the whitelist of route r1"),
        (SPEC, {"principal": ANONYMOUS}, "clients of route r1 have to log in (sasl_ssl)"),
        (SPEC, {"principal": "User:carol"}, "the instance has no user carol"),
        (replace(SPEC, users=None), {}, "the instance has no user bob"),
        (
            with_route(mechanisms=("SCRAM-SHA-512", "OAUTHBEARER")),
            {},
            "user bob has no password by SCRAM-SHA-512 or OAUTHBEARER, which route r1 offers",
        ),
        (with_route(mechanisms=()), {}, "route r1 offers no mechanism to log in by"),
        (
            by_token(token_issuers=None),
            {},
            "clients of route r1 log in by tokens, and the instance trusts no token issuer",
        ),
        (SPEC, {"route": "plain"}, f"nobody logs in on route plain (plaintext): every client is {ANONYMOUS} there"),
        (SSL, {"principal": ANONYMOUS}, f"route r1 wants a certificate of each client, so nobody is {ANONYMOUS} there"),
        (
            SPEC,
            {"operation": AclOperation.CLUSTER_ACTION} | CLUSTER,
            "CLUSTER_ACTION is for the brokers among themselves",
        ),
        (
            SPEC,
            {"resource_name": AUDIT_TOPIC},
            f"{AUDIT_TOPIC} is the service's to change: clients may only read it",
        ),
        (SPEC, {"source": "10.0.1.7"}, "10.0.1.7 is not on the whitelist of topic orders"),
        (
            replace(SPEC, acls=AclSet(1, (WRITE, DENY_ALL))),
            {},
            "an ACL denies ALL on TOPIC orders to User:* from everywhere",
        ),
        (
            SPEC,
            {"operation": AclOperation.READ},
            "there are ACLs for TOPIC orders, and none of them allows READ to User:bob from 10.0.0.7",
        ),
        (
            SPEC,
            {"resource_name": "clicks"},
            "there is no ACL for TOPIC clicks, and then nobody may (allow_everyone_if_no_acl_found is false)",
        ),
        (
            MAY_ALL,
            {"resource_name": "clicks"},
            "there is no ACL for TOPIC clicks, and then everyone may (allow_everyone_if_no_acl_found)",
        ),
    ],
)
def test_each_reason_is_a_sentence(spec: InstanceSpec, members: dict[str, object], sentence: str) -> None:
    assert asked(spec, **members).reason == sentence
