"""Dry runs of keys, members, invitations, roles and service accounts: nothing is made, no secret told, and who is touched is."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from controlplane.accounts import services as accounts
from controlplane.accounts.models import AccessKey, ApiKey, User
from controlplane.api.dry_runs import SECRETS
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.sso import asking
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants import invitations
from controlplane.tenants.models import Invitation, Membership, Role
from controlplane.token_issuers import installed

from .ckafka_api.conftest import INSTALLATION_KEY
from .conftest import client_of
from .organisations.rows import emptied
from .rows import LONG_AGO, access_key_row, custom_role_row, service_account_row
from .sso.rows import provider_row
from .test_foreign_ids import rows
from .test_instances_api import problem
from .test_limited_keys import made

DRY = "?dry_run=true"
KEYS, ACCESS_KEYS, MEMBERS = "/api/v1/api-keys", "/api/v1/access-keys", "/api/v1/members"
INVITATIONS, ACCOUNTS, ROLES = "/api/v1/invitations", "/api/v1/service-accounts", "/api/v1/roles"
SSO = "/api/v1/sso"
ROLE = {"name": "auditors", "scopes": {"audit": "look"}}
DORA = {"email": "dora@example.com", "role": "member"}
OTHER_RIGHTS = "may do what the new role opens, from the next request on"
ASKS = "is the one that asks: the next request with it would be refused"


@pytest.fixture
def dry(django_capture_on_commit_callbacks):
    """Asks for a dry run: 200, nothing is stored, nothing waits to happen. What it says."""

    def ask(call, url, body=None):
        before = rows()
        with django_capture_on_commit_callbacks() as awaited:
            answer = call(f"{url}{DRY}", body)
        assert answer.status_code == 200, answer.content
        assert rows() == before
        assert awaited == []
        said = answer.json()
        assert said["dry_run"] is True
        return said

    return ask


def membership(person):
    return Membership.objects.get(organisation=person.organisation, user=person.user)


def touched(said):
    """By whom it is: names and what becomes of them."""
    return {each["who"]: (each["names"], each["effect"]) for each in said["affected"]}


def keys_of(person):
    return sorted(
        ApiKey.objects.for_organisation(person.organisation).filter(user=person.user).values_list("pk", flat=True)
    )


# --- keys -----------------------------------------------------------------------------------------------------------------


def test_a_key_would_be_made_and_its_text_is_nowhere(alice, dry):
    said = dry(alice.api.post, KEYS, {"name": "ci", "scopes": ["topics"], "instances": ["ins-abcdefgh"]})
    assert said["changes"]["name"] == [None, "ci"]
    assert said["changes"]["scopes"] == [None, ["topics"]]
    assert said["changes"]["owner"] == [None, "alice@example.com"]
    assert not set(said["changes"]) & (SECRETS | {"id", "prefix"})
    assert "slc_" not in json.dumps(said)


def test_a_key_of_a_service_account_would_be_made_and_its_text_is_nowhere(alice, dry):
    account = service_account_row(alice.organisation)
    said = dry(alice.api.post, f"{ACCOUNTS}/{account.pk}/keys", {"name": "ci"})
    assert said["changes"]["service_account.id"] == [None, account.pk]
    assert "slc_" not in json.dumps(said)
    assert not set(said["changes"]) & (SECRETS | {"id", "prefix"})


def test_an_access_key_would_be_made_and_neither_half_of_it_is_told(alice, dry, monkeypatch, settings):
    environment = type(settings.ENVIRONMENT)
    monkeypatch.setattr(environment, "secret", lambda _self, _name: INSTALLATION_KEY)
    said = dry(alice.api.post, ACCESS_KEYS, {"name": "sdk"})
    (before, until) = said["changes"].pop("expires_at")
    assert (before, until is not None) == (None, True), "it would end one day, since nothing is said"
    assert said["changes"] == {"name": [None, "sdk"], "owner": [None, "alice@example.com"]}
    assert "slak" not in json.dumps(said)


def test_a_rotation_says_until_when_the_present_secret_would_be_good_and_it_stays_the_only_one(alice, dry):
    (key,) = keys_of(alice)
    digest = ApiKey.objects.unscoped("a test").get(pk=key).digest
    said = dry(alice.api.post, f"{KEYS}/{key}/rotate", {"overlap_s": 60})
    assert set(said["changes"]) == {"previous_until"}
    assert touched(said) == {"api_keys": ([key], "the present secret would be good for 60 s more")}
    assert "slc_" not in json.dumps(said)
    assert ApiKey.objects.unscoped("a test").get(pk=key).digest == digest
    at_once = dry(alice.api.post, f"{KEYS}/{key}/rotate", {"overlap_s": 0})
    assert touched(at_once) == {"api_keys": ([key], "the present secret would end at once")}


def test_whoever_works_with_a_key_is_named_when_it_would_be_revoked(alice, bob, dry):
    (his,), (hers,) = keys_of(bob), keys_of(alice)
    said = dry(alice.api.delete, f"{KEYS}/{his}")
    assert said["changes"]["revoked_at"][0] is None
    assert touched(said) == {"members": (["bob@example.com"], "refused with this key from the next request on")}
    own = touched(dry(alice.api.delete, f"{KEYS}/{hers}"))
    assert own["api_keys"] == ([hers], ASKS)
    assert bob.api.get("/api/v1/me").status_code == alice.api.get("/api/v1/me").status_code == 200


def test_what_is_not_allowed_is_refused_in_a_dry_run_in_the_same_words(alice, bob, charlie):
    (hers,) = keys_of(alice)
    account = service_account_row(alice.organisation)
    at = f"{MEMBERS}/{membership(alice).pk}"
    before = rows(but_denials_of=alice.organisation)
    for person, method, url, body, status, code in (
        (alice, "post", KEYS, {"name": ""}, 400, "invalid"),
        (alice, "post", KEYS, {"name": "k", "scopes": ["everything"]}, 400, "invalid"),
        (alice, "post", f"{KEYS}/{hers}/rotate", {"overlap_s": 10**9}, 400, "invalid"),
        (bob, "post", f"{KEYS}/{hers}/rotate", {"overlap_s": 60}, 403, "forbidden"),
        (bob, "delete", f"{KEYS}/{hers}", None, 403, "forbidden"),
        (charlie, "delete", f"{KEYS}/{hers}", None, 404, "not_found"),
        (alice, "post", ACCESS_KEYS, {"name": "sdk"}, 501, "access_keys_not_set_up"),
        (alice, "delete", at, None, 409, "last_owner"),
        (alice, "patch", at, {"role": "viewer"}, 409, "last_owner"),
        (alice, "patch", at, {"custom_role": "rol-000000000000"}, 404, "not_found"),
        (bob, "delete", at, None, 403, "forbidden"),
        (charlie, "delete", at, None, 404, "not_found"),
        (bob, "post", INVITATIONS, DORA, 403, "forbidden"),
        (alice, "post", INVITATIONS, {**DORA, "email": "bob@example.com"}, 400, "invalid"),
        (bob, "post", ROLES, ROLE, 403, "forbidden"),
        (alice, "post", ROLES, {**ROLE, "scopes": {"audit": "change"}}, 400, "invalid"),
        (alice, "post", ACCOUNTS, {"name": account.name, "role": "member"}, 409, "already_exists"),
        (charlie, "delete", f"{ACCOUNTS}/{account.pk}", None, 404, "not_found"),
    ):
        call = getattr(person.api, method)
        asked, called = call(f"{url}{DRY}", body), call(url, body)
        told = problem(asked, called.status_code, called.json()["code"])
        assert told == problem(called, called.status_code, called.json()["code"]), (method, url)
        assert (called.status_code, called.json()["code"]) == (status, code), (method, url)
    assert rows(but_denials_of=alice.organisation) == before


def test_what_changes_nothing_touches_nobody(alice, bob, dry):
    at = f"{MEMBERS}/{membership(bob).pk}"
    same = dry(alice.api.patch, at, {"role": "member"})
    assert (same["changes"], same["affected"]) == ({}, [])


def test_a_key_with_the_administrative_scope_is_told_how_many_keys_and_no_ids(alice, bob):
    _, api = made(alice, scopes=["members"])
    said = api.delete(f"{MEMBERS}/{membership(bob).pk}{DRY}")
    assert said.status_code == 200, said.content
    assert said.json()["affected"] == [{"who": "api_keys", "count": 1, "names": [], "effect": "revoked for good"}]
    assert "key-" not in said.content.decode()


# --- members and invitations ------------------------------------------------------------------------------------------------


def test_a_member_who_leaves_takes_keys_and_invitations_along(alice, bob, dry):
    Membership.objects.filter(user=bob.user).update(role=Role.OWNER)
    invitation, _ = invitations.invitation_create(
        organisation=bob.organisation, inviter=bob.user, email="dora@example.com", role=Role.VIEWER
    )
    said = dry(alice.api.delete, f"{MEMBERS}/{membership(bob).pk}")
    assert said["changes"]["email"] == ["bob@example.com", None]
    assert touched(said) == {
        "api_keys": (keys_of(bob), "revoked for good"),
        "invitations": ([invitation.pk], "withdrawn: the links lead nowhere"),
    }
    assert bob.api.get("/api/v1/me").status_code == 200
    assert Invitation.objects.unscoped("a test").get().withdrawn_at is None


def test_another_role_says_what_it_changes_for_the_members_keys(alice, bob, dry):
    said = dry(alice.api.patch, f"{MEMBERS}/{membership(bob).pk}", {"role": "viewer"})
    assert said["changes"] == {"role": ["member", "viewer"]}
    assert touched(said)["api_keys"][0] == keys_of(bob)
    role = custom_role_row(alice.organisation)
    own = dry(alice.api.patch, f"{MEMBERS}/{membership(bob).pk}", {"custom_role": role.pk})
    assert own["changes"]["custom_role.id"] == [None, role.pk]
    assert membership(bob).role == Role.MEMBER


def test_access_keys_of_who_has_a_role_of_the_organisations_own_sign_nothing(alice, bob, dry):
    pair = access_key_row(alice.organisation, bob.user)
    role, at = custom_role_row(alice.organisation), f"{MEMBERS}/{membership(bob).pk}"
    assert touched(dry(alice.api.patch, at, {"custom_role": role.pk})) == {
        "api_keys": (keys_of(bob), OTHER_RIGHTS),
        "access_keys": ([pair.pk], "sign nothing as long as they have this role"),
    }
    viewer = touched(dry(alice.api.patch, at, {"role": "viewer"}))
    assert viewer["access_keys"] == ([pair.pk], OTHER_RIGHTS)
    gone = touched(dry(alice.api.delete, at))
    assert gone["access_keys"] == ([pair.pk], "revoked for good")


def test_an_invitation_is_neither_made_nor_mailed_and_its_link_is_not_told(alice, dry, mails):
    said = dry(alice.api.post, INVITATIONS, DORA)
    assert said["changes"]["email"] == [None, "dora@example.com"]
    assert said["changes"]["is_mailed"] == [None, True]
    assert touched(said) == {"people": (["dora@example.com"], "is sent the link by mail")}


def test_twenty_dry_runs_count_as_no_invitation(alice, dry, mails):
    for _ in range(21):
        dry(alice.api.post, INVITATIONS, DORA)
    assert alice.api.post(INVITATIONS, DORA).status_code == 201


def test_where_no_mail_is_sent_the_link_is_not_told_either_and_the_one_of_before_is_named(alice, dry):
    first = alice.api.post(INVITATIONS, DORA).json()
    said = dry(alice.api.post, INVITATIONS, {**DORA, "role": "viewer"})
    assert "link" not in said["changes"]
    assert "/invitations/" not in json.dumps(said)
    assert touched(said)["invitations"] == ([first["id"]], "withdrawn: the new one takes its place")
    gone = dry(alice.api.delete, f"{INVITATIONS}/{first['id']}")
    assert gone["changes"]["email"] == ["dora@example.com", None]
    assert dry(alice.api.delete, f"{INVITATIONS}/{first['id']}") == gone


# --- roles and service accounts -----------------------------------------------------------------------------------------------


def test_a_role_would_be_made_changed_and_ended(alice, bob, dry):
    made = dry(alice.api.post, ROLES, ROLE)
    assert made["changes"]["scopes.audit"] == [None, "look"]
    role = custom_role_row(alice.organisation)
    ended = dry(alice.api.delete, f"{ROLES}/{role.pk}")
    assert (ended["changes"]["name"], ended["affected"]) == ([role.name, None], [])
    Membership.objects.filter(user=bob.user).update(role=Role.VIEWER, custom_role=role)
    account = service_account_row(alice.organisation)
    type(account).objects.unscoped("a test").update(role=Role.VIEWER, custom_role=role)
    renamed = dry(alice.api.patch, f"{ROLES}/{role.pk}", {"name": "other"})
    assert (renamed["changes"], renamed["affected"]) == ({"name": [role.name, "other"]}, [])
    opened = dry(alice.api.patch, f"{ROLES}/{role.pk}", {"scopes": {"topics": "change"}})
    assert opened["changes"] == {"scopes.topics": ["look", "change"]}
    assert {who: names for who, (names, _) in touched(opened).items()} == {
        "members": ["bob@example.com"],
        "service_accounts": [account.pk],
    }
    assert problem(alice.api.delete(f"{ROLES}/{role.pk}{DRY}"), 409, "role_in_use")


def test_a_service_account_would_be_made_disabled_and_deleted_with_its_keys(alice, dry):
    made = dry(alice.api.post, ACCOUNTS, {"name": "pipeline", "role": "viewer"})
    assert made["changes"]["created_by"] == [None, "alice@example.com"]
    account = service_account_row(alice.organisation)
    key = alice.api.post(f"{ACCOUNTS}/{account.pk}/keys", {"name": "ci"}).json()
    url = f"{ACCOUNTS}/{account.pk}"
    disabled = dry(alice.api.patch, url, {"disabled": True})
    assert touched(disabled) == {"api_keys": ([key["id"]], "refused while it is disabled")}
    assert dry(alice.api.patch, url, {"description": "deploys"})["affected"] == []
    gone = dry(alice.api.delete, url)
    assert touched(gone) == {"api_keys": ([key["id"]], "revoked for good")}
    assert client_of(key["key"]).get("/api/v1/me").status_code == 200


def test_keys_are_touched_by_what_would_be_another_and_not_by_what_is_only_said_again(alice, dry):
    account = service_account_row(alice.organisation)
    alice.api.post(f"{ACCOUNTS}/{account.pk}/keys", {"name": "ci"})

    def effects(body):
        return [each["effect"] for each in dry(alice.api.patch, f"{ACCOUNTS}/{account.pk}", body)["affected"]]

    other, off = "may do what the new role opens, from the next request on", "refused while it is disabled"
    assert effects({"role": "viewer", "disabled": True}) == [other, off]
    assert effects({"role": "member", "disabled": True}) == [off]
    assert effects({"role": "viewer", "disabled": False}) == [other]
    assert effects({"role": "member", "disabled": False, "description": "deploys"}) == []


def test_who_has_a_role_is_not_touched_where_only_its_name_would_be_another(alice, bob, dry):
    role = custom_role_row(alice.organisation)
    Membership.objects.filter(user=bob.user).update(role=Role.VIEWER, custom_role=role)
    said = dry(alice.api.patch, f"{ROLES}/{role.pk}", {"name": "other", "scopes": role.scopes})
    assert (said["changes"], said["affected"]) == ({"name": [role.name, "other"]}, [])


def test_of_many_who_are_touched_fifty_are_named_and_all_are_counted(alice, dry):
    user = User.objects.create_user("many@example.com", None)
    row = Membership.objects.create(organisation=alice.organisation, user=user, role=Role.MEMBER)
    for number in range(51):
        accounts.api_key_create(organisation=alice.organisation, user=user, name=f"k{number}")
    (of_keys,) = dry(alice.api.delete, f"{MEMBERS}/{row.pk}")["affected"]
    assert (of_keys["count"], len(of_keys["names"])) == (51, 50)


# --- the organisation ------------------------------------------------------------------------------------------------------


def test_handing_over_says_what_both_would_be_whose_keys_it_concerns_and_mails_nobody(alice, bob, dry, mails):
    at = f"/api/v1/organisations/{alice.organisation.id}/transfer"
    owner = {"member_id": membership(bob).pk}
    beside = dry(alice.api.post, at, owner)
    assert beside["changes"] == {"owner.role": ["member", "owner"]}
    assert list(touched(beside)) == ["api_keys"]
    assert touched(beside)["api_keys"][0] == keys_of(bob)
    down = dry(alice.api.post, at, {**owner, "step_down_to": "viewer"})
    assert down["changes"] == {"owner.role": ["member", "owner"], "yourself.role": ["owner", "viewer"]}
    assert [each["names"] for each in down["affected"]] == [keys_of(bob), keys_of(alice)]
    assert mails.mails == []


def test_stepping_down_beside_an_owner_concerns_ones_own_keys_alone(alice, bob, dry):
    Membership.objects.filter(user=bob.user).update(role=Role.OWNER)
    access_key_row(alice.organisation, bob.user)
    pair = access_key_row(alice.organisation, alice.user, "key-000000000002")
    at, owner = f"/api/v1/organisations/{alice.organisation.id}/transfer", {"member_id": membership(bob).pk}
    down = dry(alice.api.post, at, {**owner, "step_down_to": "viewer"})
    assert down["changes"] == {"yourself.role": ["owner", "viewer"]}
    keys = {"api_keys": (keys_of(alice), OTHER_RIGHTS)}
    assert len(down["affected"]) == 2
    assert touched(down) == {**keys, "access_keys": ([pair.pk], OTHER_RIGHTS)}
    own = dry(alice.api.post, at, {**owner, "custom_role": custom_role_row(alice.organisation).pk})
    assert touched(own) == {**keys, "access_keys": ([pair.pk], "sign nothing as long as they have this role")}


def test_what_a_transfer_refuses_is_refused_in_its_dry_run(alice, charlie):
    at = f"/api/v1/organisations/{alice.organisation.id}/transfer{DRY}"
    problem(alice.api.post(at, {"member_id": membership(charlie).pk}), 404, "not_found")
    problem(alice.api.post(at, {"member_id": membership(alice).pk}), 400, "invalid")


def test_deleting_says_whose_keys_would_be_refused_which_links_end_and_who_is_out(alice, bob, dry, mails):
    emptied(alice.organisation)
    pair = access_key_row(alice.organisation, bob.user)
    account = service_account_row(alice.organisation)
    of_account = alice.api.post(f"{ACCOUNTS}/{account.pk}/keys", {"name": "ci"}).json()["id"]
    invitation = alice.api.post(INVITATIONS, DORA).json()["id"]
    (hers,) = keys_of(alice)
    revoked, _ = accounts.api_key_create(organisation=alice.organisation, user=bob.user, name="of before")
    accounts.api_key_revoke(organisation=alice.organisation, actor="bob@example.com", key_id=revoked.pk)
    others = sorted({*keys_of(bob), of_account} - {revoked.pk})
    said = dry(alice.api.post, f"/api/v1/organisations/{alice.organisation.id}/deletion", {"name": "alice's"})
    back = "until an owner takes the deletion back"
    assert [(each["who"], each["names"], each["effect"]) for each in said["affected"]] == [
        ("members", ["bob@example.com"], f"cannot use it any more, {back}"),
        ("api_keys", others, f"refused from the next request on, {back}"),
        ("api_keys", [hers], ASKS),
        ("access_keys", [pair.pk], f"refused from the next request on, {back}"),
        ("invitations", [invitation], "withdrawn: the links lead nowhere"),
    ]


# --- single sign-on --------------------------------------------------------------------------------------------------------


def made_by_sso(keys):
    keys.update(sso_until=SYSTEM_CLOCK.now() + timedelta(days=30))


@pytest.fixture
def by_sso(alice, bob, monkeypatch):
    """A provider in force to which bob is connected, and the ids of an API key and an access key that he has by it."""
    monkeypatch.setattr(asking, "endpoints_at", lambda _issuer: None)
    monkeypatch.setattr(installed, "places", lambda: ("somewhere",))
    provider = provider_row(alice.organisation)
    provider.is_on = True
    provider.save(update_fields=["is_on"])
    SsoLink.objects.for_organisation(alice.organisation).create(
        organisation=alice.organisation,
        membership=membership(bob),
        issuer=provider.issuer,
        subject="bob-there",
        created_at=LONG_AGO,
    )
    key, _ = accounts.api_key_create(organisation=alice.organisation, user=bob.user, name="by sso")
    pair = access_key_row(alice.organisation, bob.user)
    made_by_sso(ApiKey.objects.unscoped("a test").filter(pk=key.pk))
    made_by_sso(AccessKey.objects.unscoped("a test").filter(pk=pair.pk))
    return key.pk, pair.pk


@pytest.mark.parametrize("ends", ["off", "removed", "another issuer"])
def test_what_ends_single_sign_on_says_which_keys_end_and_who_is_signed_out(alice, bob, by_sso, dry, ends):
    key, pair = by_sso
    another = {"label": "Corp", "issuer": "https://other.example.com", "client_id": "sluice", "client_secret": "s"}
    call, body = {
        "off": (alice.api.patch, {"in_force": False}),
        "removed": (alice.api.delete, None),
        "another issuer": (alice.api.put, another),
    }[ends]
    signed_out = "signed out where the provider has signed them in"
    gone = "connected to the provider no more, and signed out where it has signed them in"
    expected = {
        "api_keys": ([key], "revoked for good"),
        "access_keys": ([pair], "revoked for good"),
        "members": (["bob@example.com"], signed_out if ends == "off" else gone),
    }
    said = dry(call, SSO, body)
    assert len(said["affected"]) == 3
    assert touched(said) == expected
    assert key not in said["changes"]


def test_the_key_that_asks_is_told_where_it_would_end_with_single_sign_on(alice, by_sso, dry):
    (hers,) = keys_of(alice)
    made_by_sso(ApiKey.objects.unscoped("a test").filter(pk=hers))
    of_keys = [each for each in dry(alice.api.delete, SSO)["affected"] if each["who"] == "api_keys"]
    assert [(each["names"], each["effect"]) for each in of_keys] == [([by_sso[0]], "revoked for good"), ([hers], ASKS)]


def test_a_new_secret_of_the_client_signs_out_and_ends_no_keys(alice, by_sso, dry):
    same = {"label": "Corp", "issuer": "https://login.example.com", "client_id": "sluice", "client_secret": "new"}
    said = dry(alice.api.put, SSO, same)
    assert said["changes"]["in_force"] == [True, False]
    assert touched(said) == {"members": (["bob@example.com"], "signed out where the provider has signed them in")}


def test_who_gets_in_by_the_provider_alone_is_named_where_it_would_be_required(alice, bob, by_sso, dry):
    required = {"members": (["bob@example.com"], "get into the console by the provider alone")}
    User.objects.filter(pk=alice.user.pk).update(second_factor_at=LONG_AGO)
    assert touched(dry(alice.api.patch, SSO, {"required": True})) == required
    User.objects.filter(pk=alice.user.pk).update(second_factor_at=None)
    both = touched(dry(alice.api.patch, SSO, {"required": True}))
    assert both["members"][0] == ["alice@example.com", "bob@example.com"]


def test_what_ends_nothing_of_single_sign_on_touches_nobody(alice, bob, by_sso, dry):
    provider = SsoProvider.objects.unscoped("a test")
    assert dry(alice.api.patch, SSO, {"in_force": True})["affected"] == []
    provider.update(is_on=False)
    assert dry(alice.api.patch, SSO, {"in_force": False})["affected"] == []
    assert dry(alice.api.patch, SSO, {"in_force": True})["affected"] == []
    provider.all().delete()
    first = {"label": "Corp", "issuer": "https://x.example.com", "client_id": "c", "client_secret": "s"}
    assert dry(alice.api.put, SSO, first)["affected"] == []


def test_keys_of_other_organisations_are_no_part_of_it(alice, charlie, by_sso, dry):
    made_by_sso(ApiKey.objects.for_organisation(charlie.organisation))
    assert touched(dry(alice.api.delete, SSO))["api_keys"][0] == [by_sso[0]]
