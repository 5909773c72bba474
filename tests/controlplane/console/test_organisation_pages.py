"""The pages of an organisation itself: its name and owners, its end; and what is seen of one that is being deleted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.urls import reverse

import controlplane.urls  # noqa: F401  # it knows the converters that the console routes use
from controlplane.accounts.models import User
from controlplane.console import urls
from controlplane.console.single_sign_on import MARK
from controlplane.core.models import Operation
from controlplane.organisations import deletion
from controlplane.sso.models import SsoLink
from controlplane.tenants import services as tenants
from controlplane.tenants.models import Membership, Organisation, Role
from tests.controlplane.organisations.rows import emptied
from tests.controlplane.organisations.test_deletion import marked
from tests.controlplane.rows import custom_role_row
from tests.controlplane.sso.rows import provider_row
from tests.controlplane.test_custom_roles import given_to, role_of

from .conftest import problem_beside, text_of, visit

LONG_AGO = datetime(2026, 5, 2, tzinfo=UTC)


def owners(organisation):
    rows = Membership.objects.filter(organisation=organisation, role=Role.OWNER)
    return sorted(rows.values_list("user__email", flat=True))


def in_use(organisation):
    return Organisation.objects.get(pk=organisation.pk).is_in_use


# --- settings --------------------------------------------------------------------------------------------------------------


def test_an_owner_renames_it(at_alice, charlie):
    page = at_alice.post("settings", {"do": "rename", "name": "Harbour"}, follow=True)
    assert "Settings of Harbour" in text_of(page)
    page = at_alice.post("settings", {"do": "rename", "name": "charlie's"})
    assert page.status_code == 422
    assert problem_beside(page, "name").startswith("There is an organisation called charlie")


def test_members_see_who_owns_it_and_no_forms(at_bob, at_viewer):
    for visitor in (at_bob, at_viewer):
        page = visitor.get("settings")
        assert "alice@example.com" in text_of(page)
        assert 'name="do"' not in page.content.decode()
        assert visitor.post("settings", {"do": "rename", "name": "mine"}).status_code == 403


def test_an_owner_hands_it_over_and_steps_down(at_alice, at_bob):
    page = at_alice.post("settings", {"do": "transfer", "email": "BOB@example.com", "step_down": "viewer"}, follow=True)
    assert "bob@example.com is an owner now" in text_of(page)
    assert owners(at_alice.organisation) == ["bob@example.com"]
    assert at_alice.post("settings", {"do": "rename", "name": "x"}).status_code == 403
    Membership.objects.filter(user=at_alice.user).update(role=Role.OWNER)
    page = at_bob.post("settings", {"do": "transfer", "email": "alice@example.com", "step_down": "viewer"}, follow=True)
    assert "You have stepped down; alice@example.com is an owner, as before." in text_of(page)
    Membership.objects.filter(user__email="bob@example.com").update(role=Role.OWNER)
    assert at_bob.post("settings", {"do": "rename", "name": "x"}).status_code == 302


def test_or_takes_a_role_of_the_organisations_own(at_alice, bob):
    role = custom_role_row(at_alice.organisation)
    page = at_alice.post("settings", {"do": "transfer", "email": "bob@example.com", "step_down": role.id}, follow=True)
    assert page.status_code == 200, "they come to a page that their role opens"
    assert "bob@example.com is an owner now" in text_of(page)
    assert Membership.objects.get(user=at_alice.user).custom_role_id == role.id


def test_where_single_sign_on_is_required_the_page_says_who_gets_in_without_it(at_alice, bob):
    assert "Single sign-on is required here" not in text_of(at_alice.get("settings"))
    provider = provider_row(at_alice.organisation)
    provider.is_on = provider.is_required = True
    provider.required_at = LONG_AGO
    provider.save()
    User.objects.filter(pk=at_alice.user.pk).update(second_factor_at=LONG_AGO)
    page = text_of(at_alice.get("settings"))
    assert "Single sign-on is required here" in page
    assert "Owners who get in without the provider: alice@example.com" in page
    page = at_alice.post("settings", {"do": "transfer", "email": "bob@example.com", "step_down": "member"})
    assert page.status_code == 422
    assert "single sign-on" in problem_beside(page, "email")
    assert owners(at_alice.organisation) == ["alice@example.com"]


@pytest.mark.parametrize(
    ("email", "said"),
    [
        ("charlie@example.com", "is no member"),
        ("nobody@example.com", "is no member"),
        ("alice@example.com", "yourself"),
        ("", "required"),
    ],
)
def test_to_whom_it_cannot_be_handed_over_is_said_beside_the_field(at_alice, charlie, email, said):
    page = at_alice.post("settings", {"do": "transfer", "email": email, "step_down": "member"})
    assert page.status_code == 422
    assert said in problem_beside(page, "email")
    assert owners(at_alice.organisation) == ["alice@example.com"]


def test_a_role_of_the_organisations_own_opens_none_of_it(alice, bob, at_bob):
    given_to(alice, bob, role_of(alice, scopes={"members": "look", "billing": "look"}))
    for page in ("settings", "deletion"):
        assert at_bob.get(page).status_code == 403
        assert at_bob.post(page, {"do": "restore"}).status_code == 403


# --- deleting ----------------------------------------------------------------------------------------------------------------


def test_what_is_in_the_way_is_listed_instead_of_a_form(at_alice, instance):
    page = at_alice.get("deletion")
    assert "It cannot be deleted yet" in text_of(page)
    assert instance.id in text_of(page)
    assert 'name="confirmation"' not in page.content.decode()
    assert at_alice.post("deletion", {"do": "delete", "confirmation": "alice's"}).status_code == 409
    assert in_use(at_alice.organisation)


def test_an_owner_deletes_it_once_its_name_was_typed(at_alice, at_bob, instance):
    emptied(at_alice.organisation)
    assert at_bob.post("deletion", {"do": "delete", "confirmation": "alice's"}).status_code == 403
    page = at_alice.post("deletion", {"do": "delete", "confirmation": "alice"})
    assert "This is not the name" in problem_beside(page, "confirmation")
    assert in_use(at_alice.organisation)
    page = at_alice.post("deletion", {"do": "delete", "confirmation": "alice's"}, follow=True)
    assert "alice's is being deleted" in text_of(page)
    assert not in_use(at_alice.organisation)


TENANTS = [
    route.name
    for route in urls.urlpatterns
    if "organisation_id" in route.pattern.converters and len(route.pattern.converters) == 1
]


@pytest.mark.parametrize("name", [name for name in TENANTS if name != "organisation_deletion"])
def test_every_page_of_it_leads_to_the_one_that_says_so(alice, at_alice, at_viewer, name):
    marked(alice)
    address = reverse(f"console:{name}", args=[alice.organisation.id])
    for visitor in (at_alice, at_viewer):
        page = visitor.client.get(address)
        assert page.status_code in (302, 405)
        if page.status_code == 302:
            assert page["Location"] == f"/{alice.organisation.id}/deletion"
        assert visitor.client.post(address, {"name": "x", "email": "dora@example.com"}).status_code in (405, 409)


def test_a_part_of_a_page_that_polls_takes_the_whole_page_there(alice, at_alice):
    marked(alice)
    page = at_alice.get("operations", HTTP_HX_REQUEST="true")
    assert (page.status_code, page["HX-Redirect"]) == (204, f"/{alice.organisation.id}/deletion")


def test_signing_in_leads_there_whoever_it_is_and_a_stranger_learns_nothing(
    alice, at_alice, at_bob, at_viewer, at_charlie
):
    marked(alice)
    for visitor in (at_alice, at_bob, at_viewer):
        page = visitor.client.get("/", follow=True)
        assert "alice's is being deleted" in text_of(page)
        assert ("Keep the organisation" in text_of(page)) == (visitor is at_alice)
    assert at_charlie.client.get(f"/{alice.organisation.id}/deletion").status_code == 404
    assert at_charlie.client.get(f"/{alice.organisation.id}/instances").status_code == 404


def test_who_has_another_organisation_comes_to_that_one(alice, at_alice):
    other = tenants.organisation_create(name="zoo", owner=alice.user)
    marked(alice)
    assert at_alice.client.get("/")["Location"] == f"/{other.id}/instances"


def test_an_owner_takes_it_back_there_and_nobody_else(alice, at_alice, at_bob):
    marked(alice)
    assert at_bob.post("deletion", {"do": "restore"}).status_code == 403
    assert not in_use(alice.organisation)
    page = at_alice.post("deletion", {"do": "restore"}, follow=True)
    assert "alice's is in use again" in text_of(page)
    assert at_bob.get("instances").status_code == 200


def test_or_revokes_all_keys_with_it(alice, at_alice):
    marked(alice)
    page = at_alice.post("deletion", {"do": "restore_revoke"}, follow=True)
    assert "All keys of before are revoked" in text_of(page)
    assert in_use(alice.organisation)
    assert alice.api.get("/api/v1/me").status_code == 401


def test_its_page_offers_nothing_that_leads_nowhere(alice, at_alice):
    assert 'id="palette"' in at_alice.get("deletion").content.decode()
    marked(alice)
    page = at_alice.get("deletion").content.decode()
    assert "palette" not in page
    assert "by-cli" not in page


def test_a_page_that_was_open_before_says_where_to_go(alice, at_alice):
    marked(alice)
    page = at_alice.post("settings", {"do": "rename", "name": "x"})
    assert page.status_code == 409
    assert f'href="/{alice.organisation.id}/deletion"' in page.content.decode()


def test_somebody_with_a_role_of_its_own_is_shown_it_too(alice, bob, at_bob):
    given_to(alice, bob, role_of(alice, scopes={"topics": "look"}))
    marked(alice)
    assert "alice's is being deleted" in text_of(at_bob.client.get("/", follow=True))


def test_when_the_time_is_over_there_is_no_way_back(alice, at_alice):
    marked(alice)
    Organisation.objects.filter(pk=alice.organisation.pk).update(deletes_at=LONG_AGO)
    assert "Keep the organisation" not in text_of(at_alice.get("deletion"))
    page = at_alice.post("deletion", {"do": "restore"}, follow=True)
    assert "is over" in text_of(page)
    assert not in_use(alice.organisation)


def test_what_is_still_in_the_way_then_is_shown_to_owners_with_the_way_back(alice, at_alice, at_bob, instance):
    emptied(alice.organisation)
    marked(alice)
    Organisation.objects.filter(pk=alice.organisation.pk).update(deletes_at=LONG_AGO)
    operation = Operation.objects.for_organisation(alice.organisation).first()
    Operation.objects.for_organisation(alice.organisation).filter(pk=operation.pk).update(state="running")
    page = text_of(at_alice.get("deletion"))
    assert "It is not deleted yet" in page
    assert operation.pk in page
    assert operation.pk not in text_of(at_bob.get("deletion"))
    assert "is in use again" in text_of(at_alice.post("deletion", {"do": "restore"}, follow=True))
    assert in_use(alice.organisation)


def test_a_session_that_its_provider_has_begun_ends(alice, bob, at_bob):
    provider = provider_row(alice.organisation)
    provider.is_on = provider.is_required = True
    provider.save()
    link = SsoLink(
        organisation=alice.organisation, membership=Membership.objects.get(user=bob.user),
        issuer=provider.issuer, subject="bob", created_at=LONG_AGO,
    )  # fmt: skip
    link.save(force_insert=True)
    session = at_bob.client.session
    session[MARK] = {"link": link.pk, "organisation": alice.organisation.id}
    session.save()
    assert at_bob.get("instances").status_code == 200
    marked(alice)
    assert at_bob.get("deletion")["Location"] == "/sign-in"
    assert at_bob.client.get("/account")["Location"].startswith("/sign-in")


def test_one_that_asks_for_nothing_meanwhile_has_ended_too(alice, bob, at_bob):
    provider = provider_row(alice.organisation)
    provider.is_on = True
    provider.save()
    link = SsoLink(
        organisation=alice.organisation, membership=Membership.objects.get(user=bob.user),
        issuer=provider.issuer, subject="bob", created_at=LONG_AGO,
    )  # fmt: skip
    link.save(force_insert=True)
    session = at_bob.client.session
    session[MARK] = {"link": link.pk, "organisation": alice.organisation.id}
    session.save()
    assert at_bob.get("instances").status_code == 200
    marked(alice)
    deletion.organisation_restore(organisation=alice.organisation, by=alice.user)
    assert at_bob.get("instances")["Location"].startswith("/sign-in")
    assert SsoLink.objects.for_organisation(alice.organisation).get().subject == "bob", "who they are is still known"


def test_an_owner_gets_there_by_password_where_single_sign_on_was_required(alice, at_alice):
    provider = provider_row(alice.organisation)
    provider.is_on = provider.is_required = True
    provider.save()
    assert at_alice.get("deletion").status_code == 403
    marked(alice)
    assert at_alice.post("deletion", {"do": "restore"}, follow=True).status_code == 403, (
        "and is kept out again behind it"
    )
    assert in_use(alice.organisation)


def test_people_whose_only_organisation_is_gone_may_found_another(alice, at_alice):
    Membership.objects.filter(user=alice.user).delete()
    assert at_alice.client.get("/")["Location"] == "/organisations/new"


def test_operators_see_that_it_is_being_deleted(alice, at_staff, charlie):
    marked(alice)
    page = text_of(at_staff.get(f"/fleet/organisations/{alice.organisation.id}"))
    assert "marked for deletion" in page
    assert "being deleted" in text_of(at_staff.get("/fleet/capacity"))
    assert at_staff.get(f"/{alice.organisation.id}/deletion").status_code == 404
    assert at_staff.post(f"/{alice.organisation.id}/deletion", {"do": "restore"}).status_code == 404


def test_a_member_who_needs_a_second_factor_is_told_so_first(alice, bob):
    Organisation.objects.filter(pk=alice.organisation.pk).update(
        second_factor_demanded=True, deletion_asked_at=LONG_AGO, deletes_at=datetime(2100, 1, 1, tzinfo=UTC)
    )
    assert visit(bob).get("deletion").status_code == 403
