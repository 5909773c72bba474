"""Access keys: made by REST, shown once, in no row, ended when their owner ends."""

from __future__ import annotations

import pytest
from django.core import serializers

from controlplane.accounts import access_keys
from controlplane.accounts.models import AccessKey
from controlplane.tenants.models import Membership

from .conftest import INSTALLATION_KEY, access_key, refused, sdk_of

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp")
URL = "/api/v1/access-keys"


def made_by(person):
    answer = person.api.post(URL, {"name": "terraform"})
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    return answer.json()


def may_ask(pair, wire):
    return "Result" in sdk_of(pair, wire).call_json("DescribeInstances", {})["Response"]


def test_a_key_is_made_by_rest_and_its_secret_shown_once(alice, bob, secrets, wire):
    made = made_by(alice)
    assert may_ask((made["secret_id"], made["secret_key"]), wire)
    listed = bob.api.get(URL).json()["items"]
    assert [key["secret_id"] for key in listed] == [made["secret_id"]]
    assert "secret_key" not in listed[0]
    assert listed[0]["last_used_at"] is not None
    assert listed[0]["owner"] == "alice@example.com"


def test_the_secret_is_in_no_row(alice, secrets):
    made = made_by(alice)
    rows = serializers.serialize("json", AccessKey.objects.unscoped("a test").all())
    assert made["secret_id"] in rows
    assert made["secret_key"] not in rows


def test_a_revoked_key_signs_nothing(alice, secrets, wire):
    made = made_by(alice)
    assert alice.api.delete(f"{URL}/{made['id']}").status_code == 204
    assert alice.api.delete(f"{URL}/{made['id']}").status_code == 204
    assert refused(lambda: may_ask((made["secret_id"], made["secret_key"]), wire))[0] == "AuthFailure"


def test_only_owners_revoke_what_is_somebody_elses(alice, bob, secrets):
    alices, bobs = made_by(alice), made_by(bob)
    assert bob.api.delete(f"{URL}/{alices['id']}").status_code == 403
    assert AccessKey.objects.unscoped("a test").get(pk=alices["id"]).revoked_at is None
    assert bob.api.delete(f"{URL}/{bobs['id']}").status_code == 204
    bobs = made_by(bob)
    assert alice.api.delete(f"{URL}/{bobs['id']}").status_code == 204


def test_strangers_and_viewers_have_no_say(alice, charlie, viewer, secrets):
    made = made_by(alice)
    assert charlie.api.get(URL).json()["items"] == []
    assert charlie.api.delete(f"{URL}/{made['id']}").status_code == 404
    assert viewer.api.post(URL, {"name": "mine"}).status_code == 403


@pytest.mark.parametrize("end", ["membership", "person"])
def test_a_key_ends_with_its_owner(end, bob, secrets, wire):
    pair = access_key(bob)
    assert may_ask(pair, wire)
    if end == "membership":
        Membership.objects.filter(user=bob.user).delete()
    else:
        bob.user.is_active = False
        bob.user.save()
    assert refused(lambda: may_ask(pair, wire))[0] == "AuthFailure"


def test_the_installation_key_can_be_changed(alice, secrets, wire):
    old = access_key(alice)
    newer = "n" * 40
    secrets(access_key_secret=f"{newer} {INSTALLATION_KEY}")
    new = access_key(alice)
    assert may_ask(old, wire)
    assert may_ask(new, wire)
    secrets(access_key_secret=newer)
    assert may_ask(new, wire)
    assert refused(lambda: may_ask(old, wire))[0] == "AuthFailure"


@pytest.mark.parametrize("members", [{}, {"access_key_secret": ""}, {"access_key_secret": "short"}])
def test_without_an_installation_key_there_are_none(members, alice, secrets):
    secrets(**members)
    answer = alice.api.post(URL, {"name": "terraform"})
    assert (answer.status_code, answer.json()["code"]) == (501, "access_keys_not_set_up")
    assert not AccessKey.objects.unscoped("a test").exists()


def test_secrets_differ_by_id_and_by_installation():
    made = {
        access_keys.secret_of(key, f"slak{letter * 24}") for key in (INSTALLATION_KEY, "n" * 40) for letter in "abc"
    }
    assert len(made) == 6
    assert {len(secret) for secret in made} == {43}


def test_an_api_key_signs_nothing(alice, secrets, wire):
    prefix, _, secret = alice.key.removeprefix("slc_").partition("_")
    assert refused(lambda: may_ask((f"slc_{prefix}", secret), wire))[0] == "AuthFailure"
