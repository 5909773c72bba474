"""Access keys end after 90 days, unless whoever makes one says when, or never; their owner is told before."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from controlplane.accounts import services
from controlplane.accounts.key_expiry import expiries_tell
from controlplane.accounts.models import AccessKey
from controlplane.accounts.selectors import access_key_get
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Forbidden
from controlplane.core.models import AuditEntry
from controlplane.tenants.models import Membership
from tests.controlplane.ckafka_api.conftest import secrets  # noqa: F401  # a fixture: the installation key

from .test_instances_api import problem

KEYS = "/api/v1/access-keys"
DAYS_90 = timedelta(days=90)


@pytest.fixture
def now(monkeypatch):
    """A list, so that a test can let time pass."""
    moment = [SYSTEM_CLOCK.now()]
    monkeypatch.setattr(type(SYSTEM_CLOCK), "now", lambda _self: moment[0])
    return moment


def made(person, **members):
    answer = person.api.post(KEYS, {"name": "sdk", **members})
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_of_which_nothing_is_said_ends_after_90_days(alice, now, secrets):  # noqa: F811
    key = made(alice)
    assert datetime.fromisoformat(key["expires_at"]) == now[0] + DAYS_90
    assert alice.api.get(KEYS).json()["items"][0]["expires_at"] == key["expires_at"]
    now[0] += DAYS_90 - timedelta(seconds=1)
    assert access_key_get(key["secret_id"]) is not None
    now[0] += timedelta(seconds=1)
    assert access_key_get(key["secret_id"]) is None
    assert [each["id"] for each in alice.api.get(f"{KEYS}?state=expired").json()["items"]] == [key["id"]]
    assert alice.api.get(f"{KEYS}?state=active").json()["items"] == []


def test_never_has_to_be_said(alice, now, secrets):  # noqa: F811
    key = made(alice, expires_at=None)
    assert key["expires_at"] is None
    now[0] += timedelta(days=3000)
    assert access_key_get(key["secret_id"]) is not None
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="access_key.create")
    assert entry.detail["expires_at"] is None


@pytest.mark.parametrize("away", [timedelta(0), timedelta(days=-1), timedelta(days=4000)])
def test_a_moment_that_is_over_or_far_away_is_refused(alice, now, secrets, away):  # noqa: F811
    problem(alice.api.post(KEYS, {"name": "sdk", "expires_at": (now[0] + away).isoformat()}), 400, "invalid")
    assert not AccessKey.objects.for_organisation(alice.organisation).exists()


def test_its_owner_is_told_a_week_before_once(alice, now, secrets, mails):  # noqa: F811
    made(alice)
    now[0] += DAYS_90 - timedelta(days=8)
    assert expiries_tell(now=now[0]) == 0
    now[0] += timedelta(days=1)
    assert (expiries_tell(now=now[0]), expiries_tell(now=now[0])) == (1, 0)


@pytest.mark.parametrize("role", ["operator", "billing"])
def test_a_role_that_is_made_of_scopes_signs_nothing(alice, bob, now, secrets, role):  # noqa: F811
    """Signed calls are not asked by address: the table of scopes says nothing of them."""
    key = made(bob)
    assert access_key_get(key["secret_id"]) is not None
    Membership.objects.filter(organisation=bob.organisation, user=bob.user).update(role=role)
    assert access_key_get(key["secret_id"]) is None
    with pytest.raises(Forbidden):
        services.access_key_create(organisation=bob.organisation, user=bob.user, name="again")
