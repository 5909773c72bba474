"""Roles of an organisation's own in the console, and what somebody tries who has one: other instances, the whole, old keys."""

from __future__ import annotations

import pytest
from django.urls import reverse

import controlplane.urls  # noqa: F401  # it knows the converters that the routes of the console use
from controlplane.accounts import custom_roles
from controlplane.accounts import services as accounts
from controlplane.accounts.scopes import CHANGING, SCOPES
from controlplane.alarms.models import Delivery
from controlplane.console import urls as pages
from controlplane.console.places import ORGANISATION
from controlplane.console.views import history
from controlplane.core import audit
from controlplane.core.errors import Forbidden, NotFound, Unauthenticated
from controlplane.tenants import services as tenants
from controlplane.tenants.models import CustomRole, Membership, Role
from tests.controlplane.alarms.rows import LONG_AGO, alarm_row, receiver_row
from tests.controlplane.conftest import client_of
from tests.controlplane.rows import instance_row
from tests.controlplane.test_custom_roles import given_to, membership, role_of
from tests.controlplane.test_foreign_ids import PREFIX, endpoints
from tests.controlplane.test_instances_api import problem

from .conftest import text_of

ALL = {scope: "change" if scope in CHANGING else "look" for scope in SCOPES}
OTHER, NAME = "ins-secretid", "payroll-of-the-board"


@pytest.fixture
def other(alice, instance):
    """An instance beside the one that the role is for; bob has every scope there is, for that one alone."""
    row = instance_row(alice.organisation, OTHER)
    row.name = NAME
    row.save(update_fields=["name"])
    audit.record(organisation=alice.organisation, actor="alice@example.com", action="instance.change", target=OTHER)
    alarm_row(row, name=f"alarm of {NAME}")
    return row


@pytest.fixture
def limited(alice, bob, instance, other):
    given_to(alice, bob, role_of(alice, scopes=ALL, instances=[instance.id]))
    return bob


# --- other instances, and the organisation as a whole ----------------------------------------------------------------------

WHOLE = sorted(
    str(route.pattern).removeprefix(ORGANISATION)
    for route in pages.urlpatterns
    if str(route.pattern).startswith(ORGANISATION) and "<" not in str(route.pattern).removeprefix(ORGANISATION)
)
OF_ONE = sorted(
    text.removeprefix("instances/<id:instance_id>")
    for route in pages.urlpatterns
    if (text := str(route.pattern).removeprefix(ORGANISATION)).startswith("instances/<id:instance_id>")
    and text.count("<") == 1
)


def test_no_page_of_the_whole_names_an_instance_that_the_role_is_not_for(limited, at_bob, at_alice):
    for page in WHOLE:
        for query in ({}, {"q": "payroll", "search": "payroll"}):
            shown = at_bob.get(page, data=query)
            assert shown.status_code < 500, page
            assert OTHER not in shown.content.decode(), page
            assert NAME not in shown.content.decode(), page
    assert NAME in text_of(at_alice.get("instances")), "there is something to hide"


def test_every_page_of_another_instance_is_missing(limited, at_bob):
    for rest in OF_ONE:
        for answer in (at_bob.get(f"instances/{OTHER}{rest}"), at_bob.post(f"instances/{OTHER}{rest}")):
            assert answer.status_code in (404, 405), rest
            assert NAME not in answer.content.decode(), rest


def test_nothing_of_rest_names_it(limited):
    for method, text in endpoints():
        if method == "get" and "<" not in text:
            body = getattr(limited.api.get(f"/{PREFIX}{text}"), "content", b"").decode()
            assert OTHER not in body, text
            assert NAME not in body, text
    missing = limited.api.get("/api/v1/instances/ins-00000000").content.decode()
    assert limited.api.get(f"/api/v1/instances/{OTHER}").content.decode() == missing.replace("ins-00000000", OTHER)


def test_the_price_of_another_instance_is_not_told(limited, at_bob, at_alice):
    sizes = {"bandwidth_mib_per_s": 20, "storage_gib": 100, "partitions": 300}
    assert at_alice.get("instances/estimate", data={**sizes, "instance": OTHER}).status_code == 200
    assert at_bob.get("instances/estimate", data={**sizes, "instance": OTHER}).status_code == 404


# --- pages that show a little of everything --------------------------------------------------------------------------------


def test_caps_show_the_spend_to_who_may_look_at_costs(alice, bob, at_alice, at_bob):
    given_to(alice, bob, role_of(alice, scopes={"read": "look"}))
    assert len(at_bob.get("caps").context["rows"]) + 1 == len(at_alice.get("caps").context["rows"])
    alice.api.patch(f"/api/v1/roles/{membership(bob).custom_role_id}", {"scopes": {"read": "look", "billing": "look"}})
    assert len(at_bob.get("caps").context["rows"]) == len(at_alice.get("caps").context["rows"])


@pytest.mark.parametrize(
    ("scopes", "named"), [({"instances": "look"}, False), ({"instances": "look", "alarms": "look"}, True)]
)
def test_an_instances_page_names_alarms_to_who_may_look_at_them(alice, bob, instance, at_bob, scopes, named):
    alarm_row(instance, name="much too full", phase="firing", firing_since=LONG_AGO)
    given_to(alice, bob, role_of(alice, scopes=scopes))
    assert ("much too full" in at_bob.get(f"instances/{instance.id}").content.decode()) == named


@pytest.mark.parametrize(
    ("scopes", "named"), [({"instances": "look"}, False), ({"instances": "look", "alarms": "look"}, True)]
)
def test_charts_of_a_history_mark_alarms_for_who_may_look_at_them(
    alice, bob, instance, at_bob, monkeypatch, scopes, named
):
    asked = []

    def events_of(_instance, **wanted):
        asked.extend(wanted["kinds"])
        return []

    monkeypatch.setattr(history, "events_of", events_of)
    given_to(alice, bob, role_of(alice, scopes=scopes))
    assert at_bob.get(f"instances/{instance.id}/history").status_code == 200
    assert ("alarm.fired" in asked) == named
    assert "instance.resized" in asked


@pytest.mark.parametrize(
    ("scopes", "named"), [({"alarms": "look"}, False), ({"alarms": "look", "billing": "look"}, True)]
)
def test_a_receivers_page_names_budgets_to_who_may_look_at_costs(alice, bob, instance, at_bob, scopes, named):
    receiver = receiver_row(instance)
    Delivery.objects.for_organisation(alice.organisation).create(
        id="dlv-000000000001",
        organisation=alice.organisation,
        instance=instance,
        receiver=receiver,
        address=receiver.address,
        kind="budget",
        document={"data": {"budget": {"name": "of the board"}, "kind": "actual", "percent": 80}},
        next_attempt_at=LONG_AGO,
        created_at=LONG_AGO,
    )
    given_to(alice, bob, role_of(alice, scopes=scopes))
    shown = at_bob.get(f"instances/{instance.id}/receivers/{receiver.id}")
    assert shown.status_code == 200
    assert ("of the board" in shown.content.decode()) == named


@pytest.mark.parametrize(
    ("scopes", "page"),
    [
        ({"read": "look"}, "instances"),
        ({"billing": "look"}, "bills"),
        ({"audit": "look"}, "audit"),
        ({"topics": "look"}, "instance-names"),
        ({"members": "look"}, "members"),
    ],
)
def test_they_come_to_a_page_that_is_open(alice, bob, at_bob, scopes, page):
    given_to(alice, bob, role_of(alice, scopes=scopes))
    assert at_bob.client.get("/").headers["Location"] == f"/{bob.organisation.id}/{page}"
    assert at_bob.get(page).status_code == 200


# --- keys of before, other organisations, operators --------------------------------------------------------------------------


def test_a_key_of_before_does_what_the_role_allows(alice, bob, instance, admin):
    topics = f"/api/v1/instances/{instance.id}/topics"
    assert bob.api.post(topics, {"name": "before"}).status_code == 201
    given_to(alice, bob, role_of(alice, scopes={"alarms": "look"}))
    problem(bob.api.post(topics, {"name": "after"}), 403, "not_in_role")
    problem(bob.api.get("/api/v1/members"), 403, "not_in_role")
    alice.api.patch(f"/api/v1/members/{membership(bob).pk}", {"role": "member"})
    assert bob.api.post(topics, {"name": "after"}).status_code == 201


def test_an_owners_key_of_before_decides_nothing_any_more(alice, bob):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    assert bob.api.post("/api/v1/service-accounts", {"name": "mine", "role": "member"}).status_code == 201
    given_to(alice, bob, role_of(alice, scopes=ALL))
    for path in ("service-accounts", "roles", "invitations"):
        assert (
            bob.api.post(f"/api/v1/{path}", {"name": "x", "role": "owner", "email": "x@example.com"}).status_code == 403
        )
    assert bob.api.patch(f"/api/v1/members/{membership(bob).pk}", {"role": "owner"}).status_code == 403


def test_in_another_organisation_they_are_what_they_are_there(alice, bob, instance, at_bob):
    own = tenants.organisation_create(name="bob's own", owner=bob.user)
    _, text = accounts.api_key_create(organisation=own, user=bob.user, name="own")
    given_to(alice, bob, role_of(alice, scopes={"billing": "look"}))
    at_home = client_of(text)
    made = at_home.post("/api/v1/roles", {"name": "x", "scopes": {"read": "look"}})
    assert made.status_code == 201
    assert at_home.get("/api/v1/me").json()["custom_role"] is None
    assert at_home.get(f"/api/v1/instances/{instance.id}").status_code == 404
    assert at_bob.client.get(f"/{own.id}/members").status_code == 200
    assert at_bob.get("members").status_code == 403
    theirs = membership(bob).custom_role_id
    here = Membership.objects.get(organisation=own, user=bob.user)
    problem(at_home.patch(f"/api/v1/members/{here.pk}", {"custom_role": theirs}), 404, "not_found")


def test_an_operator_with_one_is_none_by_that_key_and_keeps_the_pages_of_the_service(alice, bob, at_bob):
    bob.user.is_staff = True
    bob.user.save()
    assert bob.api.get("/api/v1/capacity").status_code == 200
    given_to(alice, bob, role_of(alice, scopes=ALL))
    problem(bob.api.get("/api/v1/capacity"), 403, "not_in_role")
    assert at_bob.client.get(reverse("console:fleet_capacity")).status_code == 200
    assert at_bob.get("roles").status_code == 403


# --- meanwhile ----------------------------------------------------------------------------------------------------------------


def test_who_owned_when_the_request_began_makes_no_role(alice, bob):
    asked = {"organisation": alice.organisation, "by": bob.user}
    with pytest.raises(Forbidden):
        custom_roles.custom_role_create(**asked, name="x", scopes={"read": "look"})
    role_id = role_of(alice)
    with pytest.raises(Forbidden):
        custom_roles.custom_role_change(**asked, role_id=role_id, name="y")
    with pytest.raises(Forbidden):
        custom_roles.custom_role_delete(**asked, role_id=role_id)


def test_who_owned_when_the_request_began_gives_nobody_a_role(alice, bob):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=Role.OWNER)
    given_to(alice, bob, role_of(alice))
    with pytest.raises(Forbidden):
        custom_roles.member_role_give(
            organisation=alice.organisation, by=bob.user, membership_id=membership(bob).pk, role="owner"
        )
    assert membership(bob).role == Role.VIEWER


def test_a_key_that_was_revoked_meanwhile_makes_no_role(alice):
    key, _ = accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="gone")
    accounts.api_key_revoke(organisation=alice.organisation, actor="alice@example.com", key_id=key.id)
    with pytest.raises(Unauthenticated):
        custom_roles.custom_role_create(
            organisation=alice.organisation, by=alice.user, name="x", scopes={"read": "look"}, with_key=key
        )


def test_one_that_was_deleted_meanwhile_is_given_to_nobody(alice, bob):
    row = CustomRole.objects.for_organisation(alice.organisation).get(pk=role_of(alice))
    assert alice.api.delete(f"/api/v1/roles/{row.id}").status_code == 204
    with pytest.raises(NotFound):
        tenants.member_role_set(
            organisation=alice.organisation,
            actor="a",
            membership_id=membership(bob).pk,
            role=Role.VIEWER,
            custom_role=row,
        )
    assert membership(bob).role == Role.MEMBER


def test_an_answer_of_before_is_not_repeated_to_who_may_not_ask_any_more(alice, bob, instance, admin):
    topics, once = f"/api/v1/instances/{instance.id}/topics", {"headers": {"Idempotency-Key": "k"}}
    role_id = role_of(alice, scopes={"topics": "change"})
    given_to(alice, bob, role_id)
    assert bob.api.post(topics, {"name": "orders"}, **once).status_code == 201
    alice.api.patch(f"/api/v1/roles/{role_id}", {"scopes": {"topics": "look"}})
    problem(bob.api.post(topics, {"name": "orders"}, **once), 403, "not_in_role")


def test_a_change_of_nothing_is_refused(alice):
    problem(alice.api.patch(f"/api/v1/roles/{role_of(alice)}", {}), 400, "invalid")


# --- the pages ------------------------------------------------------------------------------------------------------------------


def test_an_owner_makes_changes_gives_and_deletes_one(alice, bob, instance, at_alice, at_bob):
    wanted = {"name": "on call", "looks": ["read"], "changes": ["alarms"], "instances": instance.id}
    assert at_alice.post("roles", wanted).status_code == 302
    row = CustomRole.objects.for_organisation(alice.organisation).get()
    assert (row.scopes, row.instances) == ({"read": "look", "alarms": "change"}, [instance.id])
    assert "alarms: change" in text_of(at_alice.get("roles"))
    at_alice.post(f"members/{membership(bob).pk}/role", {"role": row.id})
    assert membership(bob).custom_role == row
    assert "on call" in text_of(at_alice.get("members"))
    assert at_bob.get(f"instances/{instance.id}/alarms").status_code == 200
    at_alice.post(f"roles/{row.id}", {**wanted, "changes": [], "instances": ""})
    row.refresh_from_db()
    assert (row.scopes, row.instances) == ({"read": "look"}, None)
    at_alice.post(f"roles/{row.id}/delete")
    assert CustomRole.objects.for_organisation(alice.organisation).count() == 1, "bob has it"
    at_alice.post(f"members/{membership(bob).pk}/role", {"role": "viewer"})
    at_alice.post(f"roles/{row.id}/delete")
    assert CustomRole.objects.for_organisation(alice.organisation).count() == 0


def test_others_look_and_change_none(alice, at_bob):
    role_id = role_of(alice)
    assert at_bob.get("roles").status_code == at_bob.get(f"roles/{role_id}").status_code == 200
    for path in ("roles", f"roles/{role_id}", f"roles/{role_id}/delete"):
        assert at_bob.post(path, {"name": "x", "looks": ["read"]}).status_code == 403


@pytest.mark.parametrize("wrong", [{"looks": []}, {"instances": "all of them"}, {"changes": ["members"]}, {"name": ""}])
def test_what_is_no_role_stays_in_the_form(alice, at_alice, wrong):
    answer = at_alice.post("roles", {"name": "x", "looks": ["read"], **wrong})
    assert answer.status_code == 422
    assert answer.context["form"].errors
    assert not CustomRole.objects.for_organisation(alice.organisation).exists()


# --- parts of scopes ------------------------------------------------------------------------------------------------------------


def links(page):
    return page.content.decode()


def test_a_form_shows_parts_below_their_scope_and_takes_them(alice, at_alice):
    page = links(at_alice.get("roles"))
    boxes = [page.index(f'value="{scope}"', page.index("What it may change")) for scope in CHANGING]
    assert boxes == sorted(boxes)
    assert 'name="looks" value="topics_delete"' not in page, "looking is of the whole"
    wanted = {"name": "on call", "looks": ["read"], "changes": ["groups", "instances_change"]}
    assert at_alice.post("roles", wanted).status_code == 302
    row = CustomRole.objects.for_organisation(alice.organisation).get()
    assert row.scopes == {"read": "look", "instances_change": "change", "groups": "change"}
    shown = at_alice.get(f"roles/{row.id}").context["form"]
    assert (shown.initial["looks"], shown.initial["changes"]) == (["read"], ["instances_change", "groups"])


def test_pages_lead_to_what_a_part_opens_and_refuse_the_rest(
    alice, bob, instance, at_alice, at_bob, admin, flow_master
):
    """May reset offsets and not delete topics; may change topics and not delete them; may resize and not delete."""
    base = f"instances/{instance.id}"
    assert alice.api.post(f"/api/v1/{base}/topics", {"name": "orders"}).status_code == 201
    deletes_topic, deletes_instance = f"{base}/topics/orders/delete", f"{base}/delete"
    role_id = role_of(alice, scopes={"read": "look", "groups": "change"})
    given_to(alice, bob, role_id)
    assert f"{base}/group-new" in links(at_bob.get(f"{base}/groups"))
    assert at_bob.post(f"{base}/group-new", {"name": ""}).status_code == 422
    topic = links(at_bob.get(f"{base}/topics/orders"))
    assert deletes_topic not in topic
    assert f"{base}/topics/orders/settings" not in topic
    for path in (deletes_topic, f"{base}/topics/orders/settings", f"{base}/new-topic", deletes_instance):
        assert at_bob.post(path, {}).status_code == 403, path

    alice.api.patch(f"/api/v1/roles/{role_id}", {"scopes": {"read": "look", "topics_change": "change"}})
    topic = links(at_bob.get(f"{base}/topics/orders"))
    assert f"{base}/topics/orders/settings" in topic
    assert deletes_topic not in topic
    assert 'name="confirmation"' not in links(at_bob.get(deletes_topic))
    assert at_bob.post(deletes_topic, {"confirmation": "orders"}).status_code == 403
    assert at_bob.post(f"{base}/group-new", {}).status_code == 403

    alice.api.patch(f"/api/v1/roles/{role_id}", {"scopes": {"read": "look", "instances_change": "change"}})
    settings = links(at_bob.get(f"{base}/settings"))
    assert "bandwidth_mib_per_s" in settings
    assert deletes_instance not in settings
    assert 'name="confirmation"' not in links(at_bob.get(deletes_instance))
    assert at_bob.post(deletes_instance, {"confirmation": instance.name}).status_code == 403
    assert at_bob.post("instances/new", {}).status_code == 403
    assert "instances/new" not in links(at_bob.get("instances"))

    alice.api.patch(
        f"/api/v1/roles/{role_id}",
        {"scopes": {"read": "look", "topics_delete": "change", "instances_delete": "change"}},
    )
    assert deletes_topic in links(at_bob.get(f"{base}/topics/orders"))
    assert deletes_instance in links(at_bob.get(f"{base}/settings"))
    assert at_bob.post(f"{base}/settings", {}).status_code == 403
    assert at_bob.post(f"{base}/new-topic", {}).status_code == 403
    assert at_bob.post(deletes_topic, {"confirmation": "orders"}).status_code == 302
