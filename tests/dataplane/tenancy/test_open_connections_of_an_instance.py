"""Connections that are open: whom a newer spec closes, who is judged by a proposal, and in whose place one more gets in."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from dataplane.records.steps import run_through
from dataplane.tenancy.access import NO_PERMIT
from dataplane.tenancy.instance import Instance
from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.instance import Endpoint, InstanceSpec, InstanceState, Limits, Route
from quota.contracts.token_issuers import TokenIssuer, TokenIssuerSet, TokenKey
from quota.contracts.users import User, UserSet
from quota.core.acls import AclBook

NEAR, FAR = "10.0.0.1", "192.0.2.1"
PER_STEP = 16
ROUTE = Route("default", {1: Endpoint(("10.0.0.1", 9100), ("203.0.113.9", 9100))})
PUBLIC = replace(ROUTE, id="public")
SPEC = InstanceSpec(
    "ins-aaaabbbb", 1, InstanceState.RUNNING, Limits(None, None, None, None), ("0.0.0.0/0",), (ROUTE, PUBLIC)
)
ACL = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:ann", "*", AclOperation.READ, Permission.ALLOW)
WITH_ACLS = replace(SPEC, acls=AclSet(1, (ACL,)))
HERE = TokenIssuer("https://login.example.com/", ("kafka",))
THERE = replace(HERE, issuer="https://login.example.org/")


class Connection:
    def __init__(self, peer=NEAR, route="default", user=None, issuer=None, *, authenticated=True):
        self.session = SimpleNamespace(
            peer=peer, route=route, user=user, issuer=issuer, authenticated=authenticated, principal=f"User:{user}"
        )
        self.is_open = True
        self.looks = 0

    def close(self):
        self.is_open = False

    def look_again(self):
        self.looks += 1


class Shadow:
    """Remembers who was judged."""

    def __init__(self):
        self.judged = []

    def connected(self, principal, source, route):
        self.judged.append((principal, source, route))


def connect(instance, *arguments, **members):
    connection = Connection(*arguments, **members)
    instance.connected(connection)
    return connection


def users(*names):
    return UserSet().changed([User(name, ()) for name in names])


# --- whom a newer spec closes -----------------------------------------------------------------------------------------


def test_who_logged_in_as_a_user_that_is_gone_is_closed_and_nobody_else():
    spec = replace(SPEC, users=users("alice", "bob"), token_issuers=TokenIssuerSet(1, (HERE,)))
    instance = Instance(spec)
    alice, bob, anonymous = [connect(instance, user=user) for user in ("alice", "bob", None)]
    by_token = connect(instance, user="alice", issuer=HERE)  # whom the issuer calls so is no user of the instance
    run_through(instance.apply(replace(spec, users=users("bob", "carol"))))
    assert [each.is_open for each in (alice, bob, anonymous, by_token)] == [False, True, True, True]


def test_who_came_by_a_token_of_an_issuer_that_is_gone_or_wants_other_things_is_closed_and_nobody_else():
    spec = replace(SPEC, users=users("bob"), token_issuers=TokenIssuerSet(1, (HERE, THERE)))
    instance = Instance(spec)
    here, there = [connect(instance, user="carol", issuer=issuer) for issuer in (HERE, THERE)]
    bob, anonymous = [connect(instance, user=user) for user in ("bob", None)]
    key = TokenKey("one", ("RS256",), b"der")
    run_through(instance.apply(replace(spec, token_issuers=TokenIssuerSet(2, (replace(HERE, keys=(key,)), THERE)))))
    assert all(each.is_open for each in (here, there, bob, anonymous))
    run_through(instance.apply(replace(spec, token_issuers=TokenIssuerSet(3, (replace(HERE, scope="kafka"), THERE)))))
    assert [each.is_open for each in (here, there, bob, anonymous)] == [False, True, True, True]
    run_through(instance.apply(replace(spec, token_issuers=TokenIssuerSet(4))))
    assert [each.is_open for each in (there, bob, anonymous)] == [False, True, True]


@pytest.mark.parametrize(
    "changes",
    [
        {"security": "sasl_ssl"},
        {"mechanisms": ("PLAIN",)},
        {"allow_plain_in_clear": True},
        {"client_certificates": "required"},
        {"principal_mapping": ("DEFAULT",)},
        {"proxy_protocol": True},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_who_came_by_a_route_that_is_entered_in_another_way_now_is_closed_and_who_came_by_another_is_not(changes):
    instance = Instance(SPEC)
    default, public = connect(instance), connect(instance, route="public")
    run_through(instance.apply(replace(SPEC, routes=(ROUTE, replace(PUBLIC, **changes)))))
    assert (default.is_open, public.is_open) == (True, False)


# --- which ACLs are asked ---------------------------------------------------------------------------------------------


def test_a_book_of_acls_that_was_made_in_steps_is_not_made_again():
    first, second = (AclBook((ACL,), SPEC.authorizer) for _ in range(2))
    instance = Instance(WITH_ACLS, first)
    assert instance.book is instance.acls is first
    run_through(instance.apply(WITH_ACLS, second))
    assert instance.book is instance.acls is second


def test_without_one_it_is_made_of_the_acls_of_the_spec():
    def reads(instance, who):
        return instance.book.decide(who, NEAR, AclOperation.READ, ResourceType.TOPIC, "orders").allowed

    instance = Instance(WITH_ACLS)
    assert (reads(instance, "User:ann"), reads(instance, "User:bob")) == (True, False)
    run_through(instance.apply(SPEC))
    assert reads(instance, "User:bob")
    assert instance.acls is None  # nobody need be asked
    run_through(instance.apply(WITH_ACLS))
    assert not reads(instance, "User:bob")
    assert instance.acls is instance.book


# --- permits ----------------------------------------------------------------------------------------------------------


def test_permits_are_numbered_from_1_and_each_change_of_who_may_do_what_ends_them():
    instance = Instance(SPEC)
    generations = [instance.permit.generation]
    for change in (lambda: instance.apply(SPEC), lambda: instance.take_shadow(Shadow()), instance.access_changed):
        change()
        generations.append(instance.permit.generation)
    assert generations == [1, 2, 3, 4]
    assert NO_PERMIT.generation not in generations


# --- open connections are gone through with pauses --------------------------------------------------------------------


def test_requests_that_wait_are_looked_at_again_with_a_pause_after_every_16_connections():
    instance = Instance(SPEC)
    connections = [connect(instance) for _ in range(2 * PER_STEP + 5)]
    looked_at = [[connection.looks for connection in connections] for _ in instance.look_again()]
    assert [sum(looks) for looks in looked_at] == [PER_STEP, 2 * PER_STEP]
    assert looked_at[0] == [1] * PER_STEP + [0] * (PER_STEP + 5)  # in the order in which they came
    assert [connection.looks for connection in connections] == [1] * len(connections)


def test_open_connections_are_judged_by_a_proposal_with_a_pause_after_every_16():
    instance, shadow = Instance(SPEC), Shadow()
    for number in range(2 * PER_STEP + 5):
        connect(instance, f"10.0.0.{number}", "public", user=str(number))
    instance.take_shadow(shadow)
    judged = [len(shadow.judged) for _ in instance.judge_connections()]
    assert judged == [PER_STEP, 2 * PER_STEP]
    assert shadow.judged == [(f"User:{n}", f"10.0.0.{n}", "public") for n in range(2 * PER_STEP + 5)]


def test_who_has_not_said_who_he_is_is_judged_when_he_does():
    instance, shadow = Instance(SPEC), Shadow()
    connect(instance, user="alice")
    connect(instance, user="bob", authenticated=False)
    instance.take_shadow(shadow)
    assert list(instance.judge_connections()) == []
    assert [principal for principal, _, _ in shadow.judged] == ["User:alice"]


def test_who_has_gone_is_not_judged_and_who_has_come_meanwhile_not_twice():
    instance, shadow = Instance(SPEC), Shadow()
    connections = [connect(instance, user=str(number)) for number in range(PER_STEP + 3)]
    instance.take_shadow(shadow)
    steps = instance.judge_connections()
    next(steps)
    instance.disconnected(connections[-2])
    connect(instance, user="new")  # who is judged as he comes
    assert list(steps) == []
    judged = [principal.removeprefix("User:") for principal, _, _ in shadow.judged]
    assert judged == [str(number) for number in range(PER_STEP + 3) if number != PER_STEP + 1]


def test_when_a_proposal_is_discarded_those_that_are_left_are_not_judged():
    instance, shadow = Instance(SPEC), Shadow()
    for number in range(PER_STEP + 3):
        connect(instance, user=str(number))
    instance.take_shadow(shadow)
    steps = instance.judge_connections()
    next(steps)
    instance.take_shadow(None)
    assert list(steps) == []
    assert len(shadow.judged) == PER_STEP


# --- in whose place one more gets in ----------------------------------------------------------------------------------

IN_PLACE_OF = [
    # the limit that is reached, and whose place would do: (address, route) of who wants in is (NEAR, "public")
    ({"connections": 1}, {}, {(NEAR, "public"), (FAR, "public"), (NEAR, "default"), (FAR, "default")}),
    ({"connections_per_address": 1}, {}, {(NEAR, "public"), (NEAR, "default")}),
    ({}, {"connections": 1}, {(NEAR, "public"), (FAR, "public")}),
    ({}, {"connections_per_address": 1}, {(NEAR, "public")}),
]


@pytest.mark.parametrize(("limits", "of_route", "would_do"), IN_PLACE_OF)
def test_one_more_gets_in_in_the_place_of_one_who_counts_to_the_limit_that_is_reached(limits, of_route, would_do):
    spec = replace(SPEC, limits=replace(SPEC.limits, **limits), routes=(ROUTE, replace(PUBLIC, **of_route)))
    instance = Instance(spec)
    connect(instance, NEAR, "public")
    assert not instance.admits(NEAR, "public")
    others = [SimpleNamespace(peer=peer, route=route) for peer in (NEAR, FAR) for route in ("public", "default")]
    found = {(one.peer, one.route) for one in others if instance.admits(NEAR, "public", instead_of=one)}
    assert found == would_do


def test_only_one_gets_in_in_the_place_of_one():
    instance = Instance(replace(SPEC, limits=replace(SPEC.limits, connections=1)))
    one, _ = connect(instance), connect(instance)  # as after the limit has become lower
    assert not instance.admits(NEAR, "default", instead_of=one.session)


def test_whom_no_whitelist_holds_gets_in_in_nobodys_place():
    instance = Instance(replace(SPEC, whitelist=("10.0.0.0/8",)))
    one = connect(instance)
    assert not instance.admits(FAR, "default", instead_of=one.session)
    assert not instance.admits(NEAR, "removed", instead_of=one.session)


# --- closed -----------------------------------------------------------------------------------------------------------


def test_who_has_gone_is_not_closed_once_more():
    instance = Instance(SPEC)
    gone, there = connect(instance), connect(instance)
    instance.disconnected(gone)
    run_through(instance.close_connections())
    assert (gone.is_open, there.is_open) == (True, False)


def test_a_route_that_is_closed_is_closed_until_another_spec_opens_it_and_its_instance_has_its_other_connections():
    instance = Instance(SPEC)
    default = connect(instance)
    run_through(instance.close_route("public"))  # of which there is no connection
    assert not instance.allows(NEAR, "public")
    assert instance.allows(NEAR, "default")
    assert default.is_open
    run_through(instance.apply(SPEC))
    assert instance.allows(NEAR, "public")
