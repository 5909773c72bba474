"""Between the way to the provider and the way back seconds pass: what an owner decides in them holds for whoever comes back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.accounts import services as accounts
from controlplane.accounts.models import ApiKey
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import Conflict
from controlplane.core.models import AuditEntry
from controlplane.organisations import deletion
from controlplane.sso import services
from controlplane.sso.models import SsoLink, SsoProvider
from controlplane.tenants.models import Membership

from .rows import provider_row


@pytest.fixture
def asked(alice, bob, monkeypatch):
    """The provider that bob was sent to, in force then, as the request that he comes back with has read it; with a key of his."""
    monkeypatch.setattr(services.asking, "endpoints_at", lambda _issuer: None)  # there is no server
    monkeypatch.setattr(services.installed, "places", lambda: ["https://login.example.com"])
    provider = provider_row(alice.organisation)
    provider.is_on = True
    provider.save()
    SsoLink(
        organisation=alice.organisation,
        membership=Membership.objects.get(organisation=alice.organisation, user=bob.user),
        issuer=provider.issuer,
        subject="bob-there",
        created_at=SYSTEM_CLOCK.now(),
    ).save(force_insert=True)
    accounts.api_key_create(
        organisation=alice.organisation, user=bob.user, name="k", sso_until=SYSTEM_CLOCK.now() + timedelta(days=1)
    )
    return SsoProvider.objects.for_organisation(alice.organisation).select_related("organisation").get()


def marks(alice, asked):
    deletion.organisation_delete(organisation=alice.organisation, by=alice.user, confirmation="alice's")


def puts_out_of_force(alice, asked):
    services.provider_switch(organisation=alice.organisation, actor="a", is_on=False)


def sets_another_secret(alice, asked):
    place = {"organisation": alice.organisation, "actor": "a", "label": "Corp"}
    services.provider_set(**place, issuer=asked.issuer, client_id=asked.client_id, client_secret="another")
    SsoProvider.objects.for_organisation(alice.organisation).update(is_on=True)


def removes(alice, asked):
    services.provider_remove(organisation=alice.organisation, actor="a")


@pytest.mark.parametrize(
    ("decides", "code"),
    [
        (marks, "organisation_deleting"),
        (puts_out_of_force, "sso_changed"),
        (sets_another_secret, "sso_changed"),
        (removes, "sso_changed"),
    ],
)
def test_who_comes_back_after_that_is_not_signed_in(alice, asked, decides, code):
    decides(alice, asked)
    until = ApiKey.objects.for_organisation(alice.organisation).get(name="k").sso_until
    with pytest.raises(Conflict) as refused:
        services.member_signed_in(provider=asked, subject="bob-there")
    assert refused.value.code == code
    assert not AuditEntry.objects.for_organisation(alice.organisation).filter(action="sso.sign_in").exists()
    assert ApiKey.objects.for_organisation(alice.organisation).get(name="k").sso_until == until, (
        "and no key is prolonged"
    )


def test_who_comes_back_to_what_was_not_changed_is(alice, asked):
    services.provider_switch(organisation=alice.organisation, actor="a", is_required=True)
    assert services.member_signed_in(provider=asked, subject="bob-there").subject == "bob-there"
