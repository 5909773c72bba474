"""Roles of an organisation's own: what they open, by REST and in the console alike, and what they never open."""

from __future__ import annotations

import random
from datetime import timedelta
from itertools import product

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

import controlplane.urls  # noqa: F401  # it knows the converters that the console's routes use
from controlplane.accounts import scopes
from controlplane.accounts import services as accounts
from controlplane.accounts.scopes import (
    BESIDE,
    BY_ADDRESS,
    CHANGING,
    NO_LIMITS,
    SCOPES,
    WHOLE_OF,
    Limits,
    both,
    of_role,
)
from controlplane.console import urls as pages
from controlplane.console.places import ORGANISATION, rest_of
from controlplane.core.errors import Forbidden, SluiceError
from controlplane.core.models import AuditEntry
from controlplane.tenants import services as tenants
from controlplane.tenants.models import CustomRole, Invitation, Membership, Role

from .conftest import WANTED, client_of
from .test_foreign_ids import PREFIX, endpoints
from .test_instances_api import problem

ROLES, MEMBERS = "/api/v1/roles", "/api/v1/members"


def membership(person):
    return Membership.objects.get(organisation=person.organisation, user=person.user)


def role_of(alice, name="own", **members):
    answer = alice.api.post(ROLES, {"name": name, "scopes": {"read": "look"}, **members})
    assert answer.status_code == 201, answer.content
    return answer.json()["id"]


def given_to(alice, person, role_id):
    answer = alice.api.patch(f"{MEMBERS}/{membership(person).pk}", {"custom_role": role_id})
    assert answer.status_code == 200, answer.content
    return answer.json()


def is_admitted(limits, route, ids, *, changes, deletes=False):
    try:
        limits.admit(route, ids, changes=changes, deletes=deletes)
    except SluiceError:
        return False
    return True


# --- the rule -------------------------------------------------------------------------------------------------------------

INSTANCES = ("ins-aaaaaaaa", "ins-bbbbbbbb")
SOME = st.none() | st.frozensets(st.sampled_from(INSTANCES), min_size=1)
KINDS = st.dictionaries(st.sampled_from(SCOPES), st.sampled_from(("look", "change")), min_size=1).map(
    lambda kinds: {scope: "change" if scope in WHOLE_OF else kind for scope, kind in kinds.items()}
)
OWN = st.builds(of_role, KINDS, SOME)
KEYS = st.just(NO_LIMITS) | st.builds(
    Limits,
    scopes=st.none() | st.frozensets(st.sampled_from(SCOPES), min_size=1),
    instances=SOME,
    is_bound=st.booleans(),
)
ROUTES = [text for text, _ in (*BY_ADDRESS, *BESIDE)] + [
    "instances/<id:instance_id>",
    "instances/<id:instance_id>/destroy",
    "instances/<id:instance_id>/topics/<str:topic>",
    "api-keys",
    "access-keys",
    "service-accounts",
    "roles",
    "clusters",
    "capacity",
]


@settings(deadline=None)
@given(key=KEYS, role=OWN)
def test_a_key_of_somebody_with_a_role_does_what_both_allow(key, role):
    together = both(key, role)
    acts = ({"changes": False}, {"changes": True}, {"changes": True, "deletes": True})
    for text, act, instance_id in product(ROUTES, acts, INSTANCES):
        ids = {"instance_id": instance_id} if "instance_id" in text else {}
        route = scopes.PREFIX + text
        each = [is_admitted(limits, route, ids, **act) for limits in (key, role)]
        assert is_admitted(together, route, ids, **act) == all(each), (route, ids, act)


@settings(deadline=None)
@given(role=OWN)
def test_no_role_opens_what_owners_decide(role):
    for text in ("service-accounts", "roles", "access-keys", "clusters", "organisations"):
        for changes in (False, True):
            assert not is_admitted(role, scopes.PREFIX + text, {}, changes=changes)
    for text in ("members", "invitations", "budgets", "plan"):
        assert not is_admitted(role, scopes.PREFIX + text, {}, changes=True)


@pytest.mark.parametrize(
    ("without", "beside"),
    [
        (Limits(frozenset({"messages"})), Limits(frozenset({"messages", "audit"}))),
        (of_role({"messages": "look"}, None), of_role({"messages": "look", "audit": "look"}, None)),
    ],
)
def test_what_brokers_write_down_of_clients_is_not_read_as_messages_are(without, beside):
    route = f"{scopes.PREFIX}instances/<id:instance_id>/topics/<str:topic>/messages"
    ids = {"instance_id": INSTANCES[0], "topic": "orders"}
    audit = ids | {"topic": "__sluice_audit"}
    without.admit(route, ids, changes=False)
    beside.admit(route, audit, changes=False)
    for asked in (lambda: without.admit(route, audit, changes=False), lambda: without.admit_topic("__sluice_audit")):
        with pytest.raises(Forbidden):
            asked()
    NO_LIMITS.admit_topic("__sluice_audit")


def tenants_pages():
    for route in pages.urlpatterns:
        if str(route.pattern).startswith(ORGANISATION):
            yield route.name, str(route.pattern)


@pytest.mark.parametrize(("name", "route"), sorted(tenants_pages()))
def test_every_page_stands_for_an_address_of_rest(name, route):
    """Or for one that is closed: a page whose name says nothing to the table would be closed without anybody's notice."""
    known = {text for _, text in endpoints()}
    for changes in (False, True):
        text = rest_of(route, changes=changes).removeprefix(PREFIX)
        beginnings = {text.rsplit("/", count)[0] for count in range(text.count("/") + 1)} | {text}
        words = {each.partition("/")[0] for each in known}
        assert text.partition("/")[0] in words, f"{name} stands for nothing: {text}"
        if text.startswith("instances/<id:instance_id>/"):
            own = "/".join(text.split("/")[:3])
            is_of_table = scopes.scope_of(own) != scopes.INSTANCES
            assert is_of_table or beginnings & known, f"{name} stands for nothing: {text}"


# --- by REST and in the console -------------------------------------------------------------------------------------------

PAIRS = (
    # page, whether it is sent, method, address of REST that does the same
    ("instances", False, "get", "instances"),
    ("instances/new", True, "post", "instances"),
    ("instances/{i}", False, "get", "instances/{i}"),
    ("instances/{i}/settings", True, "patch", "instances/{i}"),
    ("instances/{i}/policies", True, "put", "instances/{i}/policies/disk"),
    ("instances/{i}/history", False, "get", "instances/{i}/history"),
    ("instances/{i}/topics", False, "get", "instances/{i}/topics"),
    ("instances/{i}/new-topic", True, "post", "instances/{i}/topics"),
    ("instances/{i}/delete", True, "delete", "instances/{i}?dry_run=true"),
    ("instances/{i}/topics/orders/delete", True, "delete", "instances/{i}/topics/orders?dry_run=true"),
    ("instances/{i}/group-new", True, "post", "instances/{i}/groups"),
    ("instances/{i}/topics/orders/messages", False, "get", "instances/{i}/topics/orders/messages"),
    ("instances/{i}/topics/orders/messages/new", True, "post", "instances/{i}/topics/orders/messages"),
    ("instances/{i}/topics/orders/access", True, "put", "instances/{i}/topics/orders/whitelist"),
    ("instances/{i}/groups", False, "get", "instances/{i}/groups"),
    ("instances/{i}/access", True, "put", "instances/{i}/whitelist"),
    ("instances/{i}/users", False, "get", "instances/{i}/users"),
    ("instances/{i}/users", True, "post", "instances/{i}/users"),
    ("instances/{i}/new-acl", True, "post", "instances/{i}/acls"),
    ("instances/{i}/new-route", True, "post", "instances/{i}/routes"),
    ("instances/{i}/alarms", False, "get", "instances/{i}/alarms"),
    ("instances/{i}/new-alarm", True, "post", "instances/{i}/alarms"),
    ("instances/{i}/timeline", False, "get", "instances/{i}/events"),
    ("instances/{i}/lake-loads", False, "get", "instances/{i}/lake-loads"),
    ("instances/{i}/bill", False, "get", "instances/{i}/bill"),
    ("instances/{i}/bill/topics", False, "get", "instances/{i}/cost/topics"),
    ("instances/{i}/bill/users", False, "get", "instances/{i}/cost/users"),
    ("bills", False, "get", "invoices"),
    ("budgets", False, "get", "budgets"),
    ("new-budget", True, "post", "budgets"),
    ("plan", True, "put", "plan"),
    ("operations", False, "get", "operations"),
    ("caps", False, "get", "caps"),
    ("audit", False, "get", "audit"),
    ("members", False, "get", "members"),
    ("members", True, "post", "invitations"),
    ("keys", False, "get", "api-keys"),
    ("service-accounts", False, "get", "service-accounts"),
    ("service-accounts", True, "post", "service-accounts"),
    ("roles", False, "get", "roles"),
    ("roles", True, "post", "roles"),
)


@pytest.mark.parametrize("seed", range(8))
def test_rest_and_the_console_admit_the_same(alice, bob, instance, admin, flow_master, seed):
    """What a role opens is written down once; here both doors are tried. What is sent is empty: who is admitted is told so."""
    assert alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders"}).status_code == 201
    source = random.Random(seed)
    wanted = source.sample(SCOPES, source.randint(1, 5))
    kinds = {each: source.choice(("look", "change")) if each in CHANGING else "look" for each in wanted}
    kinds |= {each: "change" for each in kinds if each in WHOLE_OF}
    only = source.choice((None, [instance.id], ["ins-00000000"]))
    given_to(alice, bob, role_of(alice, scopes=kinds, instances=only))
    key_scopes = source.sample(SCOPES, source.randint(1, 5))
    key, text = accounts.api_key_create(organisation=bob.organisation, user=bob.user, name="limited", scopes=key_scopes)
    api, at_bob = client_of(text), Client()
    at_bob.force_login(bob.user)
    role_limits = of_role(kinds, only)
    opened = 0
    for page, is_sent, method, address in PAIRS:
        at = f"/{bob.organisation.id}/{page.format(i=instance.id)}"
        by_page = (at_bob.post(at, {}) if is_sent else at_bob.get(at)).status_code not in (403, 404)
        url = f"/api/v1/{address.format(i=instance.id)}"
        by_rest = getattr(bob.api, method)(url, *([{}] if is_sent else [])).status_code not in (403, 404)
        assert by_page == by_rest, (page, is_sent, kinds, only)
        opened += by_rest
        by_key = getattr(api, method)(url, *([{}] if is_sent else [])).status_code not in (403, 404)
        assert by_rest or not by_key, (address, kinds, key_scopes)
    assert key.scopes
    assert opened or not role_limits.looks - {"members"} or only == ["ins-00000000"]


@pytest.mark.parametrize("role", ["operator", "billing"])
def test_rest_and_the_console_admit_the_same_to_roles_that_are_made_of_scopes(
    alice, bob, instance, admin, flow_master, role
):
    assert alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders"}).status_code == 201
    built_in_given(alice, bob, role)
    at_bob = Client()
    at_bob.force_login(bob.user)
    opened = set()
    for page, is_sent, method, address in (*PAIRS, ("instances/{i}/prepaid", False, "get", "instances/{i}/prepaid")):
        at = f"/{bob.organisation.id}/{page.format(i=instance.id)}"
        by_page = (at_bob.post(at, {}) if is_sent else at_bob.get(at)).status_code not in (403, 404)
        url = f"/api/v1/{address.format(i=instance.id)}"
        by_rest = getattr(bob.api, method)(url, *([{}] if is_sent else [])).status_code not in (403, 404)
        assert by_page == by_rest, (page, is_sent)
        opened |= {(address, is_sent)} if by_rest else set()
    assert opened == OPENED[role]


def built_in_given(alice, person, role):
    answer = alice.api.patch(f"{MEMBERS}/{membership(person).pk}", {"role": role})
    assert answer.status_code == 200, answer.content
    assert (answer.json()["role"], answer.json()["custom_role"]) == (role, None)


CLOSED_TO_OPERATORS = {
    "instances/{i}/bill", "instances/{i}/cost/topics", "instances/{i}/cost/users", "invoices",
    "budgets", "plan", "audit", "members", "invitations", "service-accounts", "roles",
    "instances/{i}/prepaid",
}  # fmt: skip
OPENED = {
    "operator": {(address, is_sent) for _, is_sent, _, address in PAIRS if address not in CLOSED_TO_OPERATORS},
    "billing": {
        ("instances/{i}/bill", False),
        ("invoices", False),
        ("budgets", False),
        ("budgets", True),
        ("plan", True),
        ("api-keys", False),
    },
}


def test_an_operator_runs_instances_and_pays_nothing_in_advance(alice, bob, instance, admin, flow_master):
    built_in_given(alice, bob, "operator")
    topics = f"/api/v1/instances/{instance.id}/topics"
    assert bob.api.post(topics, {"name": "orders"}).status_code == 201
    assert bob.api.get(f"{topics}/orders/messages").status_code == 200
    problem(bob.api.post("/api/v1/instances", {**WANTED, "name": "x", "prepaid_months": 1}), 403, "not_in_role")
    problem(bob.api.post(f"/api/v1/instances/{instance.id}/prepaid", {"months": 1}), 403, "not_in_role")
    problem(bob.api.get("/api/v1/prepaid-price?months=1"), 403, "not_in_role")
    for closed in (
        "cost",
        "invoices",
        "statement",
        "credit-notes",
        "members",
        "invitations",
        "service-accounts",
        "roles",
    ):
        problem(bob.api.get(f"/api/v1/{closed}"), 403, "not_in_role")
    problem(bob.api.post("/api/v1/invitations", {"email": "x@example.com", "role": "owner"}), 403, "not_in_role")
    at_bob = Client()
    at_bob.force_login(bob.user)
    page = at_bob.get(f"/{bob.organisation.id}/instances/new").content.decode()
    assert "prepaid_months" not in page
    assert "/prepaid" not in at_bob.get(f"/{bob.organisation.id}/instances/{instance.id}/settings").content.decode()


def test_billing_makes_budgets_and_sees_no_message(alice, bob, instance, admin):
    assert alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders"}).status_code == 201
    built_in_given(alice, bob, "billing")
    made = bob.api.post("/api/v1/budgets", {"name": "all", "amount": "100.00"})
    assert made.status_code == 201, made.content
    budget = f"/api/v1/budgets/{made.json()['id']}"
    changed = bob.api.patch(budget, {"amount": "200.00"})
    assert (changed.status_code, changed.json()["amount"]) == (200, "200.00"), changed.content
    assert bob.api.delete(budget).status_code == 204
    assert bob.api.get(budget).status_code == 404
    assert bob.api.get("/api/v1/cost").status_code == 200
    named = ("cost/topics", "cost/users")
    for closed in ("topics", "topics/orders/messages", "groups", "users", "acls", "alarms", *named):
        problem(bob.api.get(f"/api/v1/instances/{instance.id}/{closed}"), 403, "not_in_role")
    problem(bob.api.post("/api/v1/instances", WANTED), 403, "not_in_role")
    assert [each["id"] for each in bob.api.get("/api/v1/instance-names").json()["items"]] == [instance.id]


def test_a_key_of_theirs_does_no_more_than_the_role_and_of_before_no_more_either(alice, bob, instance, admin):
    before = bob.api.post("/api/v1/api-keys", {"name": "as a member"}).json()["key"]
    built_in_given(alice, bob, "billing")
    topics = f"/api/v1/instances/{instance.id}/topics"
    for text in (before, bob.api.post("/api/v1/api-keys", {"name": "now"}).json()["key"]):
        problem(client_of(text).get(topics), 403, "not_in_role")
        assert client_of(text).get("/api/v1/cost").status_code == 200
    limited = bob.api.post("/api/v1/api-keys", {"name": "narrow", "scopes": ["topics"]}).json()["key"]
    problem(client_of(limited).get(topics), 403, "scope_needed")
    problem(client_of(limited).get("/api/v1/cost"), 403, "scope_needed")


def test_a_service_account_may_be_an_operator(alice, instance, admin):
    account = alice.api.post("/api/v1/service-accounts", {"name": "ci", "role": "operator"}).json()
    key = alice.api.post(f"/api/v1/service-accounts/{account['id']}/keys", {"name": "k"}).json()["key"]
    assert client_of(key).get(f"/api/v1/instances/{instance.id}/topics").status_code == 200
    problem(client_of(key).get("/api/v1/invoices"), 403, "not_in_role")
    problem(client_of(key).post("/api/v1/api-keys", {"name": "x"}), 403, "person_needed")


def test_members_of_before_keep_what_they_may(alice, bob, instance, admin):
    """Nobody's role is another one by an update."""
    assert membership(bob).role == "member"
    for open_to in (f"instances/{instance.id}/topics", "invoices", "members"):
        assert bob.api.get(f"/api/v1/{open_to}").status_code == 200


# --- invited with one -----------------------------------------------------------------------------------------------------


def test_an_invitation_brings_in_with_a_role_of_ones_own(alice, instance):
    role_id = role_of(alice, scopes={"topics": "look"})
    body = {"email": "dora@example.com", "custom_role": role_id}
    made = alice.api.post("/api/v1/invitations", body)
    assert made.status_code == 201, made.content
    assert (made.json()["role"], made.json()["custom_role"]) == ("viewer", {"id": role_id, "name": "own"})
    problem(alice.api.delete(f"{ROLES}/{role_id}"), 409, "role_in_use")
    link = made.json()["link"].partition("testserver")[2]
    page = Client().get(link).content.decode()
    assert "with the role own" in page
    Client().post(link, {"name": "Dora", "password": "water over the wheel"})
    joined = Membership.objects.get(user__email="dora@example.com")
    assert (joined.role, joined.custom_role_id) == ("viewer", role_id)
    added = AuditEntry.objects.for_organisation(alice.organisation).get(action="member.add")
    assert added.detail == {"role": "viewer", "custom_role": role_id}


def test_a_role_that_links_of_before_named_can_be_deleted(alice):
    role_id = role_of(alice)
    made = alice.api.post("/api/v1/invitations", {"email": "dora@example.com", "custom_role": role_id}).json()
    assert alice.api.delete(f"/api/v1/invitations/{made['id']}").status_code == 204
    assert alice.api.delete(f"{ROLES}/{role_id}").status_code == 204


def test_an_expired_invitation_keeps_no_role(alice):
    """It is withdrawn: a link of it would bring in nobody either."""
    role_id = role_of(alice)
    assert alice.api.post("/api/v1/invitations", {"email": "d@example.com", "custom_role": role_id}).status_code == 201
    problem(alice.api.delete(f"{ROLES}/{role_id}"), 409, "role_in_use")
    rows = Invitation.objects.for_organisation(alice.organisation)
    rows.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert alice.api.delete(f"{ROLES}/{role_id}").status_code == 204
    assert rows.get().withdrawn_at is not None
    entries = AuditEntry.objects.for_organisation(alice.organisation)
    assert entries.get(action="invitation.withdraw").detail["custom_role"] == role_id


def test_nobody_is_invited_with_a_role_of_others_or_with_two_or_none(alice, charlie):
    theirs = charlie.api.post(ROLES, {"name": "own", "scopes": {"read": "look"}}).json()["id"]
    body = {"email": "dora@example.com"}
    foreign = alice.api.post("/api/v1/invitations", {**body, "custom_role": theirs})
    missing = alice.api.post("/api/v1/invitations", {**body, "custom_role": "rol-00000000"})
    problem(foreign, 404, "not_found")
    assert foreign.json()["detail"].replace(theirs, "") == missing.json()["detail"].replace("rol-00000000", "")
    for wrong in ({}, {"role": "member", "custom_role": role_of(alice)}):
        problem(alice.api.post("/api/v1/invitations", {**body, **wrong}), 400, "invalid")


def test_the_console_invites_with_one_too(alice):
    role_id = role_of(alice, name="Night watch")
    at_alice = Client()
    at_alice.force_login(alice.user)
    members = f"/{alice.organisation.id}/members"
    page = at_alice.post(members, {"email": "dora@example.com", "role": role_id}).content.decode()
    assert "Invitation for dora@example.com" in page
    assert "Night watch" in page
    assert at_alice.post(members, {"email": "erin@example.com", "role": "rol-00000000"}).status_code == 422


def test_who_may_look_at_topics_changes_none(alice, bob, instance, admin):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}))
    topics = f"/api/v1/instances/{instance.id}/topics"
    assert bob.api.get(topics).status_code == 200
    problem(bob.api.post(topics, {"name": "orders"}), 403, "not_in_role")
    problem(bob.api.get(f"/api/v1/instances/{instance.id}/acls"), 403, "not_in_role")
    problem(bob.api.post("/api/v1/instances", WANTED), 403, "not_in_role")


def test_a_role_of_some_instances_shows_these_alone(alice, bob, instance):
    given_to(alice, bob, role_of(alice, scopes={"instances": "change"}, instances=["ins-00000000"]))
    assert bob.api.get("/api/v1/instances").json()["items"] == []
    problem(bob.api.get(f"/api/v1/instances/{instance.id}"), 404, "not_found")
    at_bob = Client()
    at_bob.force_login(bob.user)
    at = f"/{bob.organisation.id}"
    assert at_bob.get(f"{at}/instances/{instance.id}").status_code == 404
    for page in ("instances", "operations", "palette?q=events", "instances/new"):
        shown = at_bob.get(f"{at}/{page}")
        assert shown.status_code == 200 if page != "operations" else shown.status_code in (200, 403)
        assert instance.id not in shown.content.decode(), page


def test_who_may_change_sizes_does_not_change_who_gets_in(alice, bob, instance, flow_master, admin):
    given_to(alice, bob, role_of(alice, scopes={"instances": "change", "audit": "look", "access": "look"}))
    guarded = {"config": {"allow_everyone_if_no_acl_found": True}}
    assert bob.api.patch(f"/api/v1/instances/{instance.id}", guarded).status_code == 403
    at_bob = Client()
    at_bob.force_login(bob.user)
    at = f"/{bob.organisation.id}/instances/{instance.id}"
    before = instance.config
    at_bob.post(f"{at}/acl-rules", {"allow_everyone_if_no_acl_found": "on", "super_users": "User:bob"})
    at_bob.post(f"{at}/audit", {"audit": "on"})
    instance.refresh_from_db()
    assert instance.config == before


def test_their_own_keys_are_theirs_and_those_of_others_are_not_shown(alice, bob, instance):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}))
    made = bob.api.post("/api/v1/api-keys", {"name": "own"})
    assert made.status_code == 201
    assert {each["owner"] for each in bob.api.get("/api/v1/api-keys").json()["items"]} == {"bob@example.com"}
    assert client_of(made.json()["key"]).get("/api/v1/cost").status_code == 403
    theirs = alice.api.get("/api/v1/api-keys").json()["items"]
    other = next(each["id"] for each in theirs if each["owner"] == "alice@example.com")
    problem(bob.api.delete(f"/api/v1/api-keys/{other}"), 403, "forbidden")
    problem(bob.api.post("/api/v1/access-keys", {"name": "x"}), 403, "not_in_role")


# --- giving and taking ----------------------------------------------------------------------------------------------------


def test_it_stands_in_place_of_a_role_and_one_of_all_takes_its_place(alice, bob):
    shown = given_to(alice, bob, role_of(alice))
    assert (shown["role"], shown["custom_role"]["name"]) == ("viewer", "own")
    assert bob.api.get("/api/v1/me").json()["custom_role"]["name"] == "own"
    for role in ("member", "owner"):
        alice.api.patch(f"{MEMBERS}/{membership(bob).pk}", {"role": role})
        assert (membership(bob).role, membership(bob).custom_role) == (role, None)
    given_to(alice, bob, CustomRole.objects.for_organisation(alice.organisation).get().pk)
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.MEMBER)
    assert membership(bob).custom_role is None


def test_nobody_with_one_is_an_owner_and_the_last_owner_has_none(alice, bob):
    role_id = role_of(alice)
    problem(alice.api.patch(f"{MEMBERS}/{membership(alice).pk}", {"custom_role": role_id}), 409, "last_owner")
    given_to(alice, bob, role_id)
    with pytest.raises(IntegrityError), transaction.atomic():
        Membership.objects.filter(pk=membership(bob).pk).update(role="owner")


def test_changing_it_holds_from_the_next_request_on(alice, bob, instance, admin):
    role_id = role_of(alice, scopes={"topics": "look"})
    given_to(alice, bob, role_id)
    topics = f"/api/v1/instances/{instance.id}/topics"
    assert bob.api.get(topics).status_code == 200
    assert alice.api.patch(f"{ROLES}/{role_id}", {"scopes": {"alarms": "look"}}).status_code == 200
    problem(bob.api.get(topics), 403, "not_in_role")


def test_one_that_somebody_has_is_not_deleted(alice, bob):
    role_id = role_of(alice)
    given_to(alice, bob, role_id)
    problem(alice.api.delete(f"{ROLES}/{role_id}"), 409, "role_in_use")
    alice.api.patch(f"{MEMBERS}/{membership(bob).pk}", {"role": "viewer"})
    account = alice.api.post("/api/v1/service-accounts", {"name": "ci", "custom_role": role_id}).json()
    problem(alice.api.delete(f"{ROLES}/{role_id}"), 409, "role_in_use")
    alice.api.delete(f"/api/v1/service-accounts/{account['id']}")
    assert alice.api.delete(f"{ROLES}/{role_id}").status_code == 204
    problem(alice.api.patch(f"{MEMBERS}/{membership(bob).pk}", {"custom_role": role_id}), 404, "not_found")


def test_a_service_account_acts_within_it(alice, instance, admin):
    role_id = role_of(alice, scopes={"topics": "look"})
    account = alice.api.post("/api/v1/service-accounts", {"name": "ci", "custom_role": role_id}).json()
    key = alice.api.post(f"/api/v1/service-accounts/{account['id']}/keys", {"name": "k"}).json()["key"]
    topics = f"/api/v1/instances/{instance.id}/topics"
    assert client_of(key).get(topics).status_code == 200
    problem(client_of(key).post(topics, {"name": "x"}), 403, "not_in_role")
    problem(client_of(key).post("/api/v1/api-keys", {"name": "x"}), 403, "person_needed")
    both_given = {"name": "x", "custom_role": role_id, "role": "member"}
    problem(alice.api.post("/api/v1/service-accounts", both_given), 400, "invalid")


def test_that_of_another_organisation_is_given_to_nobody(alice, bob, charlie):
    theirs = charlie.api.post(ROLES, {"name": "own", "scopes": {"read": "look"}}).json()["id"]
    problem(alice.api.patch(f"{MEMBERS}/{membership(bob).pk}", {"custom_role": theirs}), 404, "not_found")
    problem(alice.api.post("/api/v1/service-accounts", {"name": "x", "custom_role": theirs}), 404, "not_found")
    foreign = CustomRole.objects.for_organisation(charlie.organisation).get()
    with pytest.raises(SluiceError):
        tenants.member_role_set(
            organisation=alice.organisation,
            actor="a",
            membership_id=membership(bob).pk,
            role=Role.VIEWER,
            custom_role=foreign,
        )


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": {}},
        {"scopes": {"owner": "look"}},
        {"scopes": {"topics": "own"}},
        {"scopes": {"members": "change"}},
        {"scopes": {"billing": "change"}},
        {"scopes": {"read": "change"}},
        {"scopes": {"topics_delete": "look"}},
        {"instances": []},
        {"instances": ["all"]},
        {"name": "a\nb"},
    ],
)
def test_what_is_no_role_is_refused(alice, wrong):
    problem(alice.api.post(ROLES, {"name": "x", "scopes": {"read": "look"}, **wrong}), 400, "invalid")


def test_owners_alone_make_them_and_it_is_written_down(alice, bob, viewer):
    role_id = role_of(alice)
    for person in (bob, viewer):
        problem(person.api.post(ROLES, {"name": "x", "scopes": {"read": "look"}}), 403, "forbidden")
        problem(person.api.patch(f"{ROLES}/{role_id}", {"name": "x"}), 403, "forbidden")
        problem(person.api.delete(f"{ROLES}/{role_id}"), 403, "forbidden")
    problem(alice.api.post(ROLES, {"name": "own", "scopes": {"read": "look"}}), 409, "already_exists")
    given_to(alice, bob, role_id)
    actions = set(AuditEntry.objects.for_organisation(alice.organisation).values_list("action", flat=True))
    assert {"role.create", "member.role"} <= actions
