"""`sluice member` and `sluice invitation`: who belongs to the organisation."""

from __future__ import annotations

from controlplane.tenants.models import Membership, Role


def role_of(person):
    return Membership.objects.get(organisation=person.organisation, user=person.user).role


def test_members_are_listed_and_get_other_roles_by_address_or_id(ok, alice, bob):
    rows = ok("member", "list", "-o", "json").json["items"]
    assert rows == alice.api.get("/api/v1/members").json()["items"]
    assert [ok("member", "show", name, "-o", "json").json for name in ("bob@example.com", rows[1]["id"])] == rows[
        1:
    ] * 2
    ok("member", "role", "Bob@example.com", "viewer")
    assert role_of(bob) == Role.VIEWER
    ok("member", "role", rows[1]["id"], "owner")
    assert role_of(bob) == Role.OWNER


def test_a_member_is_taken_out_when_the_name_was_typed_again(ok, as_alice, alice, bob):
    assert as_alice("member", "remove", "bob@example.com", stdin="alice\n").status == 2
    assert role_of(bob) == Role.MEMBER
    said = ok("member", "remove", "bob@example.com", stdin="bob@example.com\n").err
    assert "bob@example.com is no member any more." in said
    assert not Membership.objects.filter(user=bob.user).exists()
    assert as_alice("member", "role", "bob@example.com", "viewer").status == 4
    assert as_alice("member", "remove", "alice@example.com", "--yes").status == 1


def test_somebody_is_invited_and_the_invitation_withdrawn(ok, as_alice):
    ran = ok("member", "invite", "dora@example.com", "--role", "viewer", "-o", "json")
    assert "/invitations/" in ran.json["link"]
    (row,) = ok("invitation", "list", "-o", "json").json["items"]
    assert (row["id"], row["role"]) == (ran.json["id"], "viewer")
    assert f"{row['id']} is withdrawn." in ok("invitation", "withdraw", row["id"]).err
    assert ok("invitation", "list", "-o", "json").json["items"] == []
    assert "The link is shown this once: send it to them." in ok("member", "invite", "eve@example.com").err
    assert as_alice("member", "invite", "dora").status == 1
    assert as_alice("member", "invite", "dora@example.com", "--role", "king").status == 2
