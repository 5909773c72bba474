"""Who belongs to an organisation, in which role, and the keys of its programs."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from controlplane.accounts import selectors
from controlplane.accounts.models import ApiKey
from controlplane.accounts.selectors import caller_in
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.tenants.models import Membership, Organisation, Role
from tests.controlplane.conftest import client_of
from tests.controlplane.rows import access_key_row

from .conftest import problem_beside, text_of, visit


def membership(visitor) -> Membership:
    return Membership.objects.get(organisation=visitor.organisation, user=visitor.user)


def test_an_owner_changes_a_role(at_alice, at_bob):
    path = f"members/{membership(at_bob).id}/role"
    answer = at_alice.post(path, {"role": "viewer"}, follow=True)
    assert "bob@example.com is a viewer now." in text_of(answer)
    assert at_bob.post("keys", {"name": "mine"}).status_code == 403


def test_whoever_is_removed_is_out_and_so_are_their_keys(at_alice, at_bob, bob):
    at_alice.post(f"members/{membership(at_bob).id}/remove")
    assert at_bob.get().status_code == 404
    assert client_of(bob.key).get("/api/v1/instances").status_code == 401


def test_the_last_owner_stays(at_alice, at_bob):
    own = membership(at_alice)
    for path, data in ((f"members/{own.id}/remove", {}), (f"members/{own.id}/role", {"role": "member"})):
        answer = at_alice.post(path, data, follow=True)
        assert "An organisation needs an owner: make someone else one first." in text_of(answer)
    own.refresh_from_db()
    assert own.role == Role.OWNER
    at_alice.post(f"members/{membership(at_bob).id}/role", {"role": "owner"})
    at_alice.post(f"members/{own.id}/remove")
    assert at_alice.get().status_code == 404


@pytest.mark.parametrize("who", ["at_bob", "at_viewer"])
def test_only_owners_decide_who_belongs(request, at_alice, who):
    visitor = request.getfixturevalue(who)
    assert "Invite someone" not in text_of(visitor.get("members"))
    own = membership(at_alice).id
    for path, data in (
        ("members", {"email": "charlie@example.com", "role": "owner"}),
        (f"members/{membership(visitor).id}/role", {"role": "owner"}),
        (f"members/{own}/remove", {}),
    ):
        page = visitor.post(path, data)
        assert page.status_code == 403, path
        assert "only owners of the organisation decide" in text_of(page).lower()
    assert membership(visitor).role != Role.OWNER


def test_members_of_another_organisation_cannot_be_touched(at_alice, at_charlie):
    theirs = membership(at_charlie).id
    assert at_alice.post(f"members/{theirs}/role", {"role": "viewer"}).status_code == 404
    assert at_alice.post(f"members/{theirs}/remove").status_code == 404
    assert membership(at_charlie).role == Role.OWNER


def test_another_organisation_is_made_and_switched_to(at_alice):
    answer = at_alice.client.post("/organisations/new", {"name": "Second"}, follow=True)
    assert "Second is yours." in text_of(answer)
    second = Organisation.objects.get(name="Second")
    assert at_alice.client.get("/")["Location"] == f"/{second.id}/instances"
    at_alice.get()
    assert at_alice.client.get("/")["Location"] == at_alice.address()
    page = at_alice.client.post("/organisations/new", {"name": "Second"})
    assert problem_beside(page, "name") == "There is an organisation called Second."


def test_a_key_is_shown_once_and_works(at_alice):
    page = at_alice.post("keys", {"name": "pipeline"})
    (text,) = set(re.findall(r"slc_[a-z0-9]{8}_[a-z0-9]{40}", page.content.decode()))
    assert "no-store" in page["Cache-Control"]
    assert client_of(text).get("/api/v1/me").json()["email"] == "alice@example.com"
    again = at_alice.get("keys").content.decode()
    assert text not in again
    assert text[:12] in again


def test_a_key_without_a_name_is_said_beside_it(at_alice):
    assert problem_beside(at_alice.post("keys", {"name": " "}), "name") == "This field is required."


def test_a_revoked_key_ends_at_once(at_alice, alice):
    key = ApiKey.objects.for_organisation(alice.organisation).get()
    answer = at_alice.post(f"keys/{key.id}/revoke", follow=True)
    assert "The key was revoked." in text_of(answer)
    assert "Revoked" in text_of(answer)
    assert client_of(alice.key).get("/api/v1/me").status_code == 401


def test_a_member_is_offered_to_revoke_keys_of_their_own(at_bob, alice, bob):
    rows = ApiKey.objects.for_organisation(alice.organisation)
    alices, bobs = rows.get(user=alice.user), rows.get(user=bob.user)
    page = at_bob.get("keys").content.decode()
    assert f"keys/{bobs.id}/revoke" in page
    assert f"keys/{alices.id}/revoke" not in page
    assert at_bob.post(f"keys/{alices.id}/revoke").status_code == 403
    assert client_of(alice.key).get("/api/v1/me").status_code == 200


def test_another_organisations_key_cannot_be_revoked(at_alice, charlie):
    key = ApiKey.objects.for_organisation(charlie.organisation).get()
    assert at_alice.post(f"keys/{key.id}/revoke").status_code == 404
    assert client_of(charlie.key).get("/api/v1/me").status_code == 200


def test_a_viewer_is_offered_nothing_to_change(at_viewer, instance):
    for path in ("instances", "keys", f"instances/{instance.id}", f"instances/{instance.id}/topics"):
        text = text_of(at_viewer.get(path))
        for words in ("New instance", "Create your", "Create key", "Revoke…", "Change ", "Delete"):
            assert words not in text, path


def test_someone_of_no_organisation_is_led_to_making_one(db, django_user_model):
    from types import SimpleNamespace

    user = django_user_model.objects.create_user("dora@example.com")
    visitor = visit(SimpleNamespace(user=user, organisation=None))
    assert visitor.client.get("/")["Location"] == "/organisations/new"


def key_text(page):
    (text,) = set(re.findall(r"slc_[a-z0-9]{8}_[a-z0-9]{40}", page.content.decode()))
    return text


def test_a_key_with_limits_is_made_and_its_limits_are_shown(at_alice, alice, instance):
    last = SYSTEM_CLOCK.now().date() + timedelta(days=90)
    ends = last + timedelta(days=1)
    page = at_alice.post(
        "keys",
        {
            "name": "pipeline",
            "scopes": ["read", "topics"],
            "instances": f"{instance.name}\n",
            "addresses": "10.0.0.0/8",
            "expires_on": f"{last}",
        },
    )
    assert page.status_code == 200
    key = ApiKey.objects.for_organisation(alice.organisation).get(name="pipeline")
    assert (key.scopes, key.instances, key.addresses) == (["read", "topics"], [instance.id], ["10.0.0.0/8"])
    assert f"{key.expires_at:%Y-%m-%d %H:%M}" == f"{ends} 00:00"
    assert client_of(key_text(page)).get("/api/v1/me").status_code == 403
    shown = text_of(at_alice.get("keys"))
    for part in ("read, topics", instance.id, "10.0.0.0/8", f"until {ends}", "refused from 127.0.0.1"):
        assert part in shown


def test_what_is_wrong_with_a_limit_stands_beside_it(at_alice, instance):
    for field, value, problem in (
        ("instances", "evens", "evens: there is no such instance"),
        ("addresses", "10.0.0.1/8", "Line 1"),
        ("expires_on", "2020-01-01", "Must be to come, and within ten years."),
        ("scopes", "everything", "Select a valid choice"),
    ):
        page = at_alice.post("keys", {"name": "pipeline", field: value})
        assert page.status_code == 422
        assert problem in text_of(page)


def test_a_key_is_rotated_by_whoever_it_is_of(at_alice, at_bob, alice, bob):
    key = ApiKey.objects.for_organisation(alice.organisation).get(user=bob.user)
    page = at_bob.post(f"keys/{key.id}/rotate", {"overlap_s": "3600"})
    assert "The new secret of test" in text_of(page)
    assert "no-store" in page["Cache-Control"]
    for text in (bob.key, key_text(page)):
        assert client_of(text).get("/api/v1/me").status_code == 200
    again = at_bob.post(f"keys/{key.id}/rotate", {"overlap_s": "3600"}, follow=True)
    assert "two secrets of this key are good already" in text_of(again).lower()
    last = key_text(at_bob.post(f"keys/{key.id}/rotate", {"overlap_s": "0"}))
    assert client_of(bob.key).get("/api/v1/me").status_code == 401
    assert client_of(last).get("/api/v1/me").status_code == 200
    assert at_alice.post(f"keys/{key.id}/rotate", {"overlap_s": "0"}).status_code == 403


def test_before_a_second_factor_is_required_it_is_said_who_loses_access(at_alice, at_bob, alice):
    """It acts at once, on keys as well: the names come first, and a second click."""
    type(alice.user).objects.filter(pk=alice.user.pk).update(second_factor_at=SYSTEM_CLOCK.now())
    body = at_alice.get("members").content.decode()
    (asked,) = re.findall(
        r'<details class="sure"><summary class="button">Require it.*?</details>', body, flags=re.DOTALL
    )
    assert "1 member has no second factor and loses access at once, by API key too" in asked
    assert "bob@example.com" in asked
    assert "alice@example.com" not in asked
    assert body.count('name="demanded"') == 1, "nothing outside of that asks for it"
    assert "no second factor and loses access" not in text_of(at_bob.get("members"))


def test_where_everybody_has_one_that_is_said(at_alice, alice):
    alice.organisation.memberships.exclude(user=alice.user).delete()
    type(alice.user).objects.filter(pk=alice.user.pk).update(second_factor_at=SYSTEM_CLOCK.now())
    assert "Every member has a second factor: nobody loses access." in text_of(at_alice.get("members"))


def test_access_keys_with_a_role_that_signs_nothing_are_not_called_active(at_alice, at_bob, bob):
    access_key_row(bob.organisation, bob.user)
    assert "Active" in text_of(at_bob.get("keys")).partition("Your access keys")[2].partition("New")[0]
    for role in ("operator", "billing"):
        at_alice.post(f"members/{membership(at_bob).id}/role", {"role": role})
        shown = text_of(at_bob.get("keys")).partition("Your access keys")[2]
        assert "With the role operator or billing" in shown
        assert "AKIDkey-000000000001" in shown
        assert "Signs nothing" in shown.partition("AKIDkey-000000000001")[2].partition("Revoke")[0]
    changed = at_alice.post(f"members/{membership(at_bob).id}/role", {"role": "billing"}, follow=True)
    assert "bob@example.com now has the billing role." in text_of(changed)


def test_access_keys_that_have_expired_push_none_off_the_page(alice, monkeypatch):
    monkeypatch.setattr(selectors, "MOST_SHOWN", 2)
    now = SYSTEM_CLOCK.now()
    for number, (age, ends) in enumerate([(1, -1), (2, 9), (3, None), (4, -1)]):
        row = access_key_row(alice.organisation, alice.user, f"key-00000000000{number}")
        row.created_at = now - timedelta(days=age)
        row.expires_at = None if ends is None else now + timedelta(days=ends)
        row.save()
    caller = caller_in(user=alice.user, organisation_id=alice.organisation.id)
    assert [row.pk[-1] for row in selectors.access_keys_standing(caller)] == ["1", "2"]
    monkeypatch.setattr(selectors, "MOST_SHOWN", 4)
    assert [row.pk[-1] for row in selectors.access_keys_standing(caller)] == ["1", "2", "0", "3"]
