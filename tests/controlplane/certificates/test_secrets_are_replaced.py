"""The cluster's secret is replaced: no certificate has to be brought again. Without the keys of the rows, nothing is spoilt."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from django.core.management import call_command

from controlplane.certificates import services
from controlplane.core.errors import Unavailable
from controlplane.env import Environment, EnvironmentProblem
from controlplane.sealing.keyring import drawn
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


@pytest.fixture
def own(tree, alice, secure):
    """A certificate that a tenant has brought, and one that was issued."""
    routes(tree, secure, tls_route("r7", HOST), tls_route("r8", HOST))
    services.ensure_for(secure)
    issued = PUBLIC.issue("x", [HOST])
    assert alice.api.put(url(secure, "routes/r7/certificate"), brought(issued)).status_code == 200
    return issued


def test_without_the_key_that_sealed_them_nothing_is_written_and_it_is_said(
    tree, alice, secure, own, settings, tmp_path
):
    path = tmp_path / "encryption.keys"
    path.write_text(drawn())
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, encryption_keys_file=path)
    before = shown(tree, secure)
    with pytest.raises(Unavailable, match="cannot be read: tell the operators"):
        services.ensure_for(secure)
    assert shown(tree, secure) == before
    answer = alice.api.delete(url(secure, "routes/r7/certificate"))
    assert answer.status_code == 503
    assert str(path) not in answer.content.decode()
    assert alice.api.get(url(secure, "routes/r7/certificate")).status_code == 200, "what is not secret is shown"


def test_another_secret_of_the_cluster_seals_what_brokers_have_anew(tree, secure, own, monkeypatch):
    monkeypatch.setattr(services.keys, "cluster_secret", lambda: "the next one")
    call_command("seal_keys_anew")
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
