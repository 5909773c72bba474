"""`sluice sso`: the provider that signs members of the organisation in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.sso.models import SsoProvider
from tests.controlplane.sso.provider import CLIENT, SECRET, Provider


@pytest.fixture
def provider(settings):
    found = Provider()
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, token_issuer_hosts=found.url)
    yield found
    found.close()


def test_it_is_set_with_a_secret_that_is_asked_for_and_put_in_force_and_removed(ok, as_alice, alice, provider):
    typed = ("sso", "set", "--issuer", provider.url, "--client-id", CLIENT, "--label", "Corp")
    assert as_alice(*typed).status == 2, "no secret was given"
    assert "in_force" in ok(*typed, "--dry-run", stdin=f"{SECRET}\n").out
    assert not SsoProvider.objects.unscoped("a test").exists()
    ok(*typed, stdin=f"{SECRET}\n")
    assert ok("sso", "show", "-o", "json").json == alice.api.get("/api/v1/sso").json()
    ok(*typed, "--keep-secret")
    assert as_alice("sso", "alter").status == 2
    assert "test it first" in as_alice("sso", "alter", "--in-force").err
    SsoProvider.objects.unscoped("a test").update(tested_at="2026-11-29T00:00:00Z")
    assert ok("sso", "alter", "--in-force", "--required", "-o", "json").json["required"] is True
    assert ok("sso", "alter", "--not-required", "-o", "json").json["in_force"] is True
    assert as_alice("sso", "remove", stdin="no\n").status == 2
    assert "Single sign-on is removed." in ok("sso", "remove", "--yes").err
    assert as_alice("sso", "show").status == 4
