"""Who has a role of the organisation's own finds the pages that are open, and is led to no others."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

import controlplane.urls  # noqa: F401  # it knows the converters that the routes of the console use
from controlplane.accounts import services as accounts
from controlplane.accounts.models import AccessKey
from controlplane.accounts.scopes import MEMBERS, SCOPES, WHOLE_OF
from controlplane.console import urls as pages
from controlplane.console.places import FIRST, MENU, OF_INSTANCE, ORGANISATION
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Role
from tests.controlplane.conftest import client_of
from tests.controlplane.rows import instance_row
from tests.controlplane.test_custom_roles import given_to, role_of
from tests.controlplane.test_instances_api import problem

from .conftest import text_of

OTHER = "ins-secretid"


@pytest.fixture
def other(alice):
    row = instance_row(alice.organisation, OTHER)
    row.name = "payroll"
    row.save(update_fields=["name"])
    return row


def led_to(visitor, path):
    """Addresses of the menu, and of the tabs of an instance."""
    body = visitor.get(path).content.decode()
    found = re.findall(r'<nav [^>]*class="(?:menu|tabs)".*?</nav>', body, re.DOTALL)
    hrefs = {href for nav in found for href in re.findall(r'href="([^"]+)"', nav)}
    return {
        href.removeprefix(f"/{visitor.organisation.id}/")
        for href in hrefs
        if href.startswith(f"/{visitor.organisation.id}/")
    }


# --- names of instances -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [each for each in SCOPES if each != MEMBERS])
def test_whoever_may_do_anything_at_an_instance_finds_it_by_name(alice, bob, at_bob, instance, other, scope):
    least = "change" if scope in WHOLE_OF else "look"
    given_to(alice, bob, role_of(alice, scopes={scope: least}, instances=[instance.id]))
    assert bob.api.get("/api/v1/instance-names").json() == {
        "items": [{"id": instance.id, "name": "events"}],
        "next": None,
    }
    shown = at_bob.get("instance-names")
    assert shown.status_code == 200
    assert instance.id in shown.content.decode()
    assert OTHER not in shown.content.decode()


def test_who_belongs_to_the_organisation_is_not_about_instances(alice, bob, at_bob, instance):
    given_to(alice, bob, role_of(alice, scopes={"members": "look"}))
    problem(bob.api.get("/api/v1/instance-names"), 403, "not_in_role")
    assert at_bob.get("instance-names").status_code == 403


def test_keys_are_asked_alike(alice, instance, other):
    def key(**limits):
        return client_of(
            accounts.api_key_create(organisation=alice.organisation, user=alice.user, name="k", **limits)[1]
        )

    both = {instance.id, OTHER}
    assert {each["id"] for each in alice.api.get("/api/v1/instance-names").json()["items"]} == both
    assert {each["id"] for each in key(scopes=["topics"]).get("/api/v1/instance-names").json()["items"]} == both
    one = key(scopes=["alarms"], instances=[OTHER]).get("/api/v1/instance-names").json()
    assert one["items"] == [{"id": OTHER, "name": "payroll"}]
    problem(key(scopes=["members"]).get("/api/v1/instance-names"), 403, "scope_needed")


def test_nothing_but_names_and_ids_is_said(alice, bob, at_bob, instance, flow_master):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}))
    assert set(bob.api.get("/api/v1/instance-names").json()["items"][0]) == {"id", "name"}
    assert "MiB/s" not in text_of(at_bob.get("instance-names"))
    assert bob.api.post("/api/v1/instance-names", {}).status_code in (403, 405)


def test_other_organisations_are_not_in_it(alice, charlie, instance):
    assert charlie.api.get("/api/v1/instance-names").json()["items"] == []


def test_the_page_leads_to_what_is_open_there_and_nowhere_else(alice, bob, at_bob, instance, admin):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look", "alarms": "look"}))
    body = at_bob.get("instance-names").content.decode()
    found = set(re.findall(rf'class="chip" href="/[^/]+/instances/{instance.id}([^"]*)"', body))
    assert {"/topics", "/groups", "/alarms", "/timeline"} <= found
    assert "" not in found, "its overview takes another scope"
    for rest in found:
        assert at_bob.get(f"instances/{instance.id}{rest}").status_code == 200, rest


def test_they_come_to_it_who_have_no_page_before_it(alice, bob, at_bob, instance):
    given_to(alice, bob, role_of(alice, scopes={"topics": "change"}))
    assert at_bob.client.get("/").headers["Location"] == f"/{bob.organisation.id}/instance-names"


def test_a_role_for_instances_that_are_gone_says_so(alice, bob, at_bob):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}, instances=["ins-00000000"]))
    assert "Your role is for no instance that there is now" in text_of(at_bob.get("instance-names"))


# --- the menu ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.OWNER, Role.MEMBER, Role.VIEWER])
def test_whoever_sees_roles_has_them_in_the_menu(alice, bob, at_bob, role):
    tenants.membership_set(organisation=alice.organisation, user=bob.user, role=role)
    assert at_bob.get("roles").status_code == 200
    assert "roles" in led_to(at_bob, "keys")
    assert "instance-names" not in led_to(at_bob, "keys"), "they see all of them"


@pytest.mark.parametrize(
    "scopes", [{"topics": "look"}, {"read": "look"}, {"billing": "look", "alarms": "change"}, {"members": "look"}]
)
def test_menu_and_tabs_lead_to_pages_that_are_open(alice, bob, at_bob, instance, admin, flow_master, scopes):
    given_to(alice, bob, role_of(alice, scopes=scopes))
    found = led_to(at_bob, "keys")
    assert "keys" in found
    assert "roles" not in found
    if scopes.get("topics") or scopes.get("alarms"):
        found |= led_to(at_bob, f"instances/{instance.id}/{'topics' if 'topics' in scopes else 'alarms'}")
    for path in found:
        assert at_bob.get(path).status_code == 200, path


def test_each_place_is_a_page_of_the_console():
    known = {route.name: str(route.pattern).removeprefix(ORGANISATION) for route in pages.urlpatterns}
    for name, address in (*FIRST, *MENU):
        assert known[name] == address
    for name, rest, _ in OF_INSTANCE:
        assert known[name] == f"instances/<id:instance_id>{rest}"


def test_the_switcher_leads_to_a_page_that_is_open_in_each_organisation(alice, bob, at_bob, charlie):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}))
    own = tenants.organisation_create(name="Bob's own", owner=bob.user)
    for here, there in ((own, alice.organisation), (alice.organisation, own)):
        body = at_bob.client.get(f"/{here.id}/keys").content.decode()
        assert f'href="/{there.id}/instances"' not in body
        assert f'href="/?organisation={there.id}"' in body
        answer = at_bob.client.get(f"/?organisation={there.id}", follow=True)
        assert answer.status_code == 200
        assert answer.request["PATH_INFO"].startswith(f"/{there.id}/")
    shown = at_bob.client.get("/account").content.decode()
    assert f'href="/{alice.organisation.id}/instances"' not in shown


@pytest.mark.parametrize("wanted", ["charlie", "org-000000000000", "", "\0"])
def test_another_organisation_is_as_one_that_is_not_there(bob, at_bob, charlie, wanted):
    wanted = charlie.organisation.id if wanted == "charlie" else wanted
    answer = at_bob.client.get("/", {"organisation": wanted})
    assert answer.headers["Location"] == f"/{bob.organisation.id}/instances"


def test_the_tab_connections_is_called_alike_in_the_list_of_names(alice, bob, at_bob, instance):
    """连接 is the page, and 连接数 how many there are."""
    given_to(alice, bob, role_of(alice, scopes={"instances": "look"}))
    at_bob.client.cookies["language"] = "zh-hans"
    body = at_bob.get("instance-names").content.decode()
    assert re.search(r'/connections">连接<', body), re.findall(r'/connections">[^<]*', body)


# --- access keys of before ----------------------------------------------------------------------------------------------------


@pytest.fixture
def pairs(alice, bob, tmp_path, settings):
    """Bob and Alice have made an access key each; then Bob is given a role."""
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps({"access_key_secret": "k" * 40}))
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=path)
    made = {
        person.user.email: accounts.access_key_create(organisation=alice.organisation, user=person.user, name="pair")[0]
        for person in (alice, bob)
    }
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}))
    return made


def is_revoked(key):
    return AccessKey.objects.unscoped("a test").get(pk=key.pk).revoked_at is not None


def test_who_has_a_role_ends_access_keys_of_before_and_makes_none(pairs, alice, bob):
    own, hers = pairs["bob@example.com"], pairs["alice@example.com"]
    problem(bob.api.delete(f"/api/v1/access-keys/{hers.id}"), 403, "forbidden")
    assert bob.api.delete(f"/api/v1/access-keys/{own.id}").status_code == 204
    assert (is_revoked(own), is_revoked(hers)) == (True, False)
    problem(bob.api.post("/api/v1/access-keys", {"name": "x"}), 403, "not_in_role")
    problem(bob.api.get("/api/v1/access-keys"), 403, "not_in_role")


def test_a_key_with_limits_of_theirs_ends_none(pairs, bob):
    _, text = accounts.api_key_create(organisation=bob.organisation, user=bob.user, name="k", scopes=["topics"])
    own = pairs["bob@example.com"]
    assert client_of(text).delete(f"/api/v1/access-keys/{own.id}").status_code == 403
    assert not is_revoked(own)


def test_the_page_of_keys_shows_them_their_own_to_be_revoked(pairs, at_bob, at_charlie):
    own, hers = pairs["bob@example.com"], pairs["alice@example.com"]
    shown = at_bob.get("keys").content.decode()
    assert own.secret_id in shown
    assert hers.secret_id not in shown
    assert at_bob.post(f"access-keys/{hers.id}/revoke").status_code == 403
    assert at_charlie.client.post(f"/{at_bob.organisation.id}/access-keys/{own.id}/revoke").status_code == 404
    assert at_charlie.post(f"access-keys/{own.id}/revoke").status_code == 404
    assert at_bob.post(f"access-keys/{own.id}/revoke").status_code == 302
    assert (is_revoked(own), is_revoked(hers)) == (True, False)
    assert own.secret_id not in at_bob.get("keys").content.decode()
