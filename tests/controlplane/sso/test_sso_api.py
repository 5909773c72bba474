"""REST and commands of single sign-on: what owners set, what a dry run says, and what nobody but an owner learns."""

from __future__ import annotations

import pytest

from controlplane.accounts import services as accounts
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.sso.models import SsoLink, SsoProvider
from tests.controlplane.conftest import client_of
from tests.controlplane.console.conftest import at_alice, quick_passwords
from tests.controlplane.identity.conftest import time
from tests.controlplane.test_foreign_ids import rows
from tests.controlplane.test_instances_api import problem

from .provider import CLIENT, SECRET
from .rows import provider_row
from .test_signing_in import connect, provider

__all__ = ["at_alice", "provider", "quick_passwords", "time"]
URL = "/api/v1/sso"
CALLS = (
    ("get", None),
    ("put", {"label": "Corp", "issuer": "https://x.example.com", "client_id": "c", "client_secret": "s"}),
    ("patch", {"in_force": True}),
    ("delete", None),
)


def body(provider, **other):
    return {"label": "Corp", "issuer": provider.url, "client_id": CLIENT, "client_secret": SECRET} | other


def row():
    return SsoProvider.objects.unscoped("a test").get()


def test_owners_set_it_and_it_is_in_force_once_it_was_tested(alice, at_alice, provider):
    problem(alice.api.get(URL), 404, "not_found")
    made = alice.api.put(URL, body(provider)).json()
    assert (made["in_force"], made["required"], made["tested_at"]) == (False, False, None)
    assert made["redirect_uri"].endswith(f"/sign-in/sso/back/{alice.organisation.id}")
    assert made["sign_in_url"].endswith(f"/sign-in/sso?organisation={alice.organisation.id}")
    assert alice.api.get(URL).json() == made
    problem(alice.api.patch(URL, {"in_force": True}), 409, "sso_not_tested")
    connect(at_alice.client, alice, provider, "alice-there")
    assert alice.api.patch(URL, {"in_force": True}).json()["in_force"] is True
    found = alice.api.patch(URL, {"required": True}).json()
    assert (found["in_force"], found["required"]) == (True, True), "what is left out stays as it is"
    found = alice.api.patch(URL, {"in_force": False}).json()
    assert (found["in_force"], found["required"]) == (False, False)
    assert alice.api.delete(URL).status_code == 204
    problem(alice.api.get(URL), 404, "not_found")
    assert not SsoLink.objects.unscoped("a test").exists()
    actions = AuditEntry.objects.for_organisation(alice.organisation).filter(action__startswith="sso.")
    assert set(actions.values_list("action", flat=True)) == {"sso.set", "sso.connect", "sso.switch", "sso.remove"}


def test_the_secret_is_taken_and_never_shown_kept_or_written_down(alice, provider):
    answer = alice.api.put(URL, body(provider))
    assert SECRET not in answer.content.decode() + alice.api.get(URL).content.decode()
    assert "client_secret" not in answer.json()
    assert SECRET not in repr(rows())
    assert alice.api.put(URL, {"label": "Other", "issuer": provider.url, "client_id": CLIENT}).status_code == 200
    without = {"label": "Corp", "issuer": f"{provider.url}/evil", "client_id": CLIENT}
    (refused,) = problem(alice.api.put(URL, without), 400, "invalid")["errors"]
    assert refused["field"] == "client_secret", "another issuer is not sent the one of before"


def test_whatever_is_set_anew_is_tested_anew(alice, provider):
    provider_row(alice.organisation)
    SsoProvider.objects.unscoped("a test").update(is_on=True, is_required=True)
    found = alice.api.put(URL, body(provider)).json()
    assert (found["in_force"], found["required"], found["tested_at"]) == (False, False, None)


def test_nothing_is_asked_that_operators_have_not_listed(alice, provider):
    for issuer in ("http://127.0.0.1:1", "http://169.254.169.254", "file:///etc/passwd", "https://localhost"):
        (refused,) = problem(alice.api.put(URL, body(provider, issuer=issuer)), 400, "invalid")["errors"]
        assert refused["field"] == "issuer"
    assert not SsoProvider.objects.unscoped("a test").exists()


def test_an_installation_that_asks_nobody_says_so(alice):
    problem(alice.api.put(URL, dict(CALLS[1][1])), 409, "sso_off")


@pytest.mark.parametrize(("method", "sent"), CALLS)
def test_owners_alone_look_and_change(alice, bob, viewer, method, sent):
    provider_row(alice.organisation)
    before = rows(but_denials_of=alice.organisation)
    for person in (bob, viewer):
        problem(getattr(person.api, method)(URL, sent), 403, "forbidden")
        if method != "get":
            problem(getattr(person.api, method)(f"{URL}?dry_run=true", sent), 403, "forbidden")
    assert rows(but_denials_of=alice.organisation) == before


@pytest.mark.parametrize(("method", "sent"), CALLS)
def test_a_key_with_limits_does_not_decide_who_signs_people_in(alice, method, sent):
    provider_row(alice.organisation)
    _, text = accounts.api_key_create(
        organisation=alice.organisation, user=alice.user, name="k", scopes=["members", "access"]
    )
    problem(getattr(client_of(text), method)(URL, sent), 403, "whole_key_needed")
    _, text = accounts.api_key_create(
        organisation=alice.organisation, user=alice.user, name="bound", addresses=["127.0.0.0/8"]
    )
    answer = getattr(client_of(text), method)(URL, sent)
    assert answer.status_code == 200 if method == "get" else problem(answer, 403, "whole_key_needed")


def test_another_organisations_is_as_one_that_is_not_there(alice, charlie):
    nothing = problem(charlie.api.get(URL), 404, "not_found")
    provider_row(alice.organisation)
    before = rows()
    assert problem(charlie.api.get(URL), 404, "not_found") == nothing
    for method, sent in (("patch", {"in_force": True}), ("delete", None)):
        problem(getattr(charlie.api, method)(URL, sent), 404, "not_found")
    assert rows() == before


@pytest.mark.parametrize(
    "sent", [{}, {"in_force": 1}, {"required": "yes"}, {"in_force": None}, {"is_on": True}, {"tested_at": None}]
)
def test_what_is_no_change_is_refused(alice, sent):
    provider_row(alice.organisation)
    problem(alice.api.patch(URL, sent), 400, "invalid")


def test_what_is_not_in_force_cannot_be_required(alice):
    provider_row(alice.organisation)
    problem(alice.api.patch(URL, {"required": True}), 409, "sso_not_in_force")
    problem(alice.api.patch(URL, {"in_force": False, "required": True}), 409, "sso_not_in_force")
    assert not row().is_required


def test_a_dry_run_says_what_would_be_different_and_leaves_all_as_it_was(alice, provider):
    before = rows()
    changes = alice.api.put(f"{URL}?dry_run=true", body(provider)).json()["changes"]
    assert (changes["issuer"], changes["in_force"]) == ([None, provider.url], [None, False])
    assert SECRET not in repr(changes)
    assert rows() == before
    provider_row(alice.organisation)
    before = rows()
    answer = alice.api.patch(f"{URL}?dry_run=true", {"in_force": True, "required": True})
    assert answer.json()["changes"] == {"in_force": [False, True], "required": [False, True]}
    gone = alice.api.delete(f"{URL}?dry_run=true").json()["changes"]
    assert gone["label"] == ["Corp", None]
    assert rows() == before


def test_rest_goes_on_where_it_is_required(alice, bob):
    provider_row(alice.organisation)
    assert alice.api.patch(URL, {"in_force": True, "required": True}).status_code == 200
    assert bob.api.get("/api/v1/instances").status_code == 200
    assert row().created_at < SYSTEM_CLOCK.now()
