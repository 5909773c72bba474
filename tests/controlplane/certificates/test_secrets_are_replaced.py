"""The control plane's secret key and the cluster's secret are replaced: no certificate is lost, none has to be brought again."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from controlplane.certificates import services
from controlplane.certificates.models import Authority, RouteCertificate
from controlplane.core.errors import Unavailable
from controlplane.env import Environment, EnvironmentProblem
from quota.contracts.sealing import route_key_purpose, unsealed
from tests.controlplane.certificates.test_certificates import (
    HOST,
    PUBLIC,
    brought,
    routes,
    secure,
    shown,
    tls_route,
    url,
)
from tests.controlplane.conftest import CLUSTER_SECRET

__all__ = ["secure"]

OLD, NEW = "the secret key before", "the present secret key"


@pytest.fixture
def own(tree, alice, secure, settings):
    """A certificate that a tenant has brought, and one that was issued, under the old secret key."""
    settings.SECRET_KEY = OLD
    routes(tree, secure, tls_route("r7", HOST), tls_route("r8", HOST))
    services.ensure_for(secure)
    issued = PUBLIC.issue("x", [HOST])
    assert alice.api.put(url(secure, "routes/r7/certificate"), brought(issued)).status_code == 200
    return issued


def sealed():
    """What stands in the rows."""
    found = (*RouteCertificate.objects.unscoped("a test"), *Authority.objects.unscoped("a test"))
    return [bytes(row.key) for row in found]


def test_keys_of_an_earlier_secret_key_are_opened_and_sealed_anew(tree, secure, own, settings):
    before = sealed()
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, ["never was", OLD]
    services.ensure_for(secure)
    assert shown(tree, secure).chain_of("r7").chain == own.pem
    call_command("seal_keys_anew")
    assert not set(before) & set(sealed())
    settings.SECRET_KEY_FALLBACKS = []
    after = sealed()
    assert services.seal_anew() == (0, 0)
    assert sealed() == after
    assert services.renew_due() == 0
    services.certificate_give_back(instance=secure, route="r7", actor="alice")  # the authority's key is good as well
    assert shown(tree, secure).chain_of("r7").chain != own.pem


def test_without_the_earlier_key_nothing_is_written_and_it_is_said(secure, own, settings):
    before = sealed()
    settings.SECRET_KEY = NEW
    with pytest.raises(Unavailable, match="not named among the accepted ones"):
        services.ensure_for(secure)
    with pytest.raises(CommandError, match="3 private keys cannot be opened"):
        call_command("seal_keys_anew")
    assert sealed() == before


def test_a_key_that_somebody_replaces_meanwhile_is_not_overwritten(own, settings, monkeypatch):
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [OLD]
    real = services.keys.sealed_anew

    def slow(data, instance_id, route):
        RouteCertificate.objects.unscoped("a test").filter(route=route).update(key=b"another")
        return real(data, instance_id, route)

    monkeypatch.setattr(services.keys, "sealed_anew", slow)
    assert services.seal_anew() == (1, 0)  # the authority's
    assert sealed()[:2] == [b"another"] * 2


def test_another_secret_of_the_cluster_seals_what_brokers_have_anew(tree, secure, own, monkeypatch):
    monkeypatch.setattr(services.keys, "cluster_secret", lambda: "the next one")
    services.renew_due()
    item = shown(tree, secure).chain_of("r7")
    purpose = route_key_purpose(secure.id, "r7")
    assert unsealed(item.key, secret="the next one", purpose=purpose).decode() == own.key_pem
    with pytest.raises(ValueError, match="another secret"):
        unsealed(item.key, secret=CLUSTER_SECRET, purpose=purpose)


@pytest.mark.parametrize(
    ("document", "found"), [({}, []), ({"accepted_django_secret_keys": ["one", "two"]}, ["one", "two"])]
)
def test_earlier_secret_keys_stand_in_the_secrets_file(tmp_path, document, found):
    (tmp_path / "secrets.json").write_text(json.dumps(document))
    assert Environment.read({"SLUICE_STACK_DIR": str(tmp_path)}).accepted_secret_keys() == found


@pytest.mark.parametrize("wrong", ["one", [1], [""]])
def test_what_is_no_list_of_them_is_told(tmp_path, wrong):
    (tmp_path / "secrets.json").write_text(json.dumps({"accepted_django_secret_keys": wrong}))
    with pytest.raises(EnvironmentProblem, match="accepted_django_secret_keys"):
        Environment.read({"SLUICE_STACK_DIR": str(tmp_path)}).accepted_secret_keys()
