"""The pages of service accounts: owners make them and their keys, others look."""

from __future__ import annotations

import re

from controlplane.accounts.models import ApiKey, ServiceAccount
from tests.controlplane.conftest import client_of
from tests.controlplane.rows import service_account_row

from .conftest import text_of

PAGE = "service-accounts"
WANTED = {"name": "pipeline", "description": "deploys", "role": "member"}


def made(at_alice):
    answer = at_alice.post(PAGE, WANTED)
    assert answer.status_code == 302
    return ServiceAccount.objects.for_organisation(at_alice.organisation).get()


def key_of(at_alice, row, **limits):
    page = at_alice.post(f"{PAGE}/{row.id}/keys", {"name": "ci", **limits})
    assert page.status_code == 200
    (text,) = re.findall(r'id="new-key"[^>]*>(slc_[^<]+)<', page.content.decode())
    return client_of(text)


def test_an_owner_makes_one_and_a_key_which_is_shown_once(at_alice):
    row = made(at_alice)
    assert "It has no keys yet." in text_of(at_alice.get(f"{PAGE}/{row.id}"))
    api = key_of(at_alice, row, scopes=["read"])
    assert api.get("/api/v1/me").json()["service_account"]["id"] == row.id
    assert 'id="new-key"' not in at_alice.get(f"{PAGE}/{row.id}").content.decode()
    assert "pipeline" in text_of(at_alice.get("keys")), "the page of all keys names whose it is"


def test_it_is_switched_off_and_on_and_deleted(at_alice):
    row = made(at_alice)
    api = key_of(at_alice, row)
    at_alice.post(f"{PAGE}/{row.id}/switch", {"disabled": "1"})
    assert api.get("/api/v1/me").status_code == 401
    assert "all of its keys are refused" in text_of(at_alice.get(f"{PAGE}/{row.id}"))
    at_alice.post(f"{PAGE}/{row.id}/switch", {"disabled": "0"})
    assert api.get("/api/v1/me").status_code == 200
    at_alice.post(f"{PAGE}/{row.id}/delete", {})
    assert api.get("/api/v1/me").status_code == 401
    assert at_alice.get(f"{PAGE}/{row.id}").status_code == 404


def test_another_name_and_role(at_alice):
    row = made(at_alice)
    at_alice.post(f"{PAGE}/{row.id}", {"name": "deployer", "description": "", "role": "viewer"})
    row.refresh_from_db()
    assert (row.name, row.description, row.role) == ("deployer", "", "viewer")
    service_account_row(at_alice.organisation)
    page = at_alice.post(f"{PAGE}/{row.id}", {"name": "svc-abcdefghijkl", "role": "viewer"})
    assert page.status_code == 422
    assert "there is a service account called" in text_of(page).lower()


def test_it_is_no_owner(at_alice):
    assert at_alice.post(PAGE, WANTED | {"role": "owner"}).status_code == 422
    row = made(at_alice)
    assert at_alice.post(f"{PAGE}/{row.id}", WANTED | {"role": "owner"}).status_code == 422


def test_an_owner_rotates_its_key_on_the_page_of_keys(at_alice):
    row = made(at_alice)
    before = key_of(at_alice, row)
    key = ApiKey.objects.for_organisation(at_alice.organisation).get(service_account=row)
    page = at_alice.post(f"keys/{key.id}/rotate", {"overlap_s": "0"})
    assert "The new secret of ci" in text_of(page)
    assert before.get("/api/v1/me").status_code == 401


def test_keys_of_a_deleted_one_name_it_and_lead_to_no_page_that_is_gone(at_alice):
    row = made(at_alice)
    key_of(at_alice, row)
    assert f'/{PAGE}/{row.id}"' in at_alice.get("keys").content.decode()
    at_alice.post(f"{PAGE}/{row.id}/delete", {})
    page = at_alice.get("keys")
    assert "pipeline" in text_of(page)
    assert f'/{PAGE}/{row.id}"' not in page.content.decode()


def test_a_viewer_sees_no_button(at_alice, at_viewer):
    row = made(at_alice)
    key_of(at_alice, row)
    page = at_viewer.get(f"{PAGE}/{row.id}").content.decode()
    assert "/switch" not in page
    assert "/rotate" not in page
    for path, body in ((PAGE, WANTED), (f"{PAGE}/{row.id}/keys", {"name": "x"}), (f"{PAGE}/{row.id}/delete", {})):
        assert at_viewer.post(path, body).status_code == 403
