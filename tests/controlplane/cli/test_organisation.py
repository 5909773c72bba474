"""`sluice organisation`: its name, its owners, its end."""

from __future__ import annotations

from controlplane.tenants.models import Membership, Organisation, Role
from tests.controlplane.rows import custom_role_row


def role_of(person):
    return Membership.objects.get(organisation=person.organisation, user=person.user).role


def test_it_is_shown_and_renamed(ok, as_alice, alice, charlie):
    assert ok("organisation", "show", "-o", "json").json["id"] == alice.organisation.id
    assert ok("organisation", "rename", "Harbour", "-o", "json").json["name"] == "Harbour"
    assert as_alice("organisation", "rename", "charlie's").status == 1


def test_it_is_handed_over_when_the_address_was_typed_again(ok, as_alice, alice, bob):
    assert as_alice("organisation", "transfer", "bob@example.com", stdin="alice\n").status == 2
    assert role_of(bob) == Role.MEMBER
    ok("organisation", "transfer", "bob@example.com", stdin="bob@example.com\n")
    assert (role_of(alice), role_of(bob)) == (Role.OWNER, Role.OWNER)
    assert as_alice("organisation", "transfer", "bob@example.com", "--step-down", "king", "--yes").status == 2
    role = custom_role_row(alice.organisation)
    ok("organisation", "transfer", "bob@example.com", "--step-down", role.id, "--yes")
    assert Membership.objects.get(user=alice.user).custom_role_id == role.id
    assert as_alice("organisation", "rename", "x").status == 1


def test_it_is_deleted_when_its_name_was_typed_and_the_key_is_refused_from_then_on(ok, as_alice, alice):
    assert ok("organisation", "obstacles", "-o", "json").json["items"] == []
    assert as_alice("organisation", "delete", stdin="other\n").status == 2
    said = ok("organisation", "delete", "--dry-run", "-o", "json").json["changes"]
    assert said["state"] == ["active", "deleting"]
    assert Organisation.objects.get(pk=alice.organisation.pk).is_in_use
    ran = ok("organisation", "delete", "-o", "json", stdin="alice's\n")
    assert ran.json["state"] == "deleting"
    assert "in the console, not here" in ran.err
    assert as_alice("whoami").status == 3


def test_what_is_in_the_way_is_listed(ok, as_alice, alice, instance):
    assert "instances" in [each["code"] for each in ok("organisation", "obstacles", "-o", "json").json["items"]]
    ran = as_alice("organisation", "delete", "--yes")
    assert (ran.status, instance.id in ran.err) == (1, True)
