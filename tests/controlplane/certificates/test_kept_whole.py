"""Certificates of TLS routes stay as they should be, whatever fails in between, whoever else writes; garbage is refused."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from controlplane.certificates import keys, services
from controlplane.certificates.models import Authority, RouteCertificate
from controlplane.core import operations
from controlplane.instances import reconcile
from controlplane.instances import services as services_of_instances
from quota.contracts.apart import certificates_path
from tests.controlplane.certificates.test_certificates import (
    HOST,
    PUBLIC,
    brought,
    leaf_of,
    routes,
    secure,
    shown,
    tls_route,
    url,
)
from tests.controlplane.conftest import WANTED, run_to_the_end

__all__ = ["secure"]


def rows():
    return RouteCertificate.objects.unscoped("a test")


def opened(alice, instance, **members):
    answer = alice.api.post(url(instance, "routes"), {"security": "ssl", "advertised_host": HOST, **members})
    assert answer.status_code == 202, answer.content
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    return answer.json()["id"]


# --- what fails in between --------------------------------------------------------------------------------------------


def test_one_that_was_renewed_while_the_cluster_was_away_reaches_brokers_later(tree, secure, clock):
    services.ensure_for(secure, clock=clock)
    clock.advance(timedelta(days=70).total_seconds())
    tree.away = True
    services.renew_due(clock=clock)
    tree.away = False
    services.renew_due(clock=clock)
    assert leaf_of(shown(tree, secure).items[0]).not_valid_after_utc > clock.now() + timedelta(days=60)


def test_one_that_a_tenant_brought_while_the_cluster_was_away_reaches_brokers_later(tree, alice, secure, monkeypatch):
    services.ensure_for(secure)
    own = PUBLIC.issue("x", [HOST])
    with monkeypatch.context() as patch:
        patch.setattr(services, "publish", _away)
        assert alice.api.put(url(secure, "routes/r7/certificate"), brought(own)).status_code == 503
    services.renew_due()
    assert shown(tree, secure).items[0].chain == own.pem


def _away(*_arguments):
    raise services.Unavailable("away")


def test_a_node_that_was_lost_is_written_again(tree, secure):
    services.ensure_for(secure)
    del tree.nodes[certificates_path(secure.id)]
    services.renew_due()
    assert shown(tree, secure).items[0].chain


def test_a_fault_that_nobody_foresaw_in_one_keeps_no_other_from_being_renewed(tree, alice, secure, clock):
    other, operation = services_of_instances.instance_create(organisation=alice.organisation, actor="alice", **WANTED)
    run_to_the_end(operation.id)
    routes(tree, other, tls_route("r7", HOST))
    for instance in (secure, other):
        services.ensure_for(instance, clock=clock)
    bad = rows().order_by("pk")[0].instance_id
    Authority.objects.unscoped("a test").filter(instance_id=bad).update(certificate="no PEM")
    clock.advance(timedelta(days=70).total_seconds())
    assert services.renew_due(clock=clock) == 1
    good = other if bad == secure.id else secure
    assert leaf_of(shown(tree, good).items[0]).not_valid_after_utc > clock.now() + timedelta(days=60)


def test_the_reconciler_tries_certificates_again_that_could_not_be_made(tree, alice, instance, brokers, monkeypatch):
    opened(alice, instance, advertised_host="")
    node = tree.nodes[certificates_path(instance.id)]
    brokers.start(4)
    with monkeypatch.context() as patch:
        patch.setattr(keys, "cluster_secret", _away)
        reconcile.reconcile_all()
    tree.nodes[certificates_path(instance.id)] = (b"{}", node[1] + 1)
    reconcile.reconcile_all()
    assert shown(tree, instance).items[0].chain


# --- who else writes --------------------------------------------------------------------------------------------------


def test_renewing_does_not_undo_what_a_tenant_brings_meanwhile(tree, alice, secure, clock, monkeypatch):
    services.ensure_for(secure, clock=clock)
    clock.advance(timedelta(days=70).total_seconds())
    own, make = PUBLIC.issue("x", [HOST]), services.certificate_make

    def slow(*arguments):
        assert alice.api.put(url(secure, "routes/r7/certificate"), brought(own)).status_code == 200
        return make(*arguments)

    monkeypatch.setattr(services, "certificate_make", slow)
    services.renew_due(clock=clock)
    assert rows().get().source == "brought"
    assert shown(tree, secure).items[0].chain == own.pem


# --- a route that does not open ---------------------------------------------------------------------------------------


def test_a_route_that_failed_to_open_keeps_what_its_tenant_brought_until_it_is_removed(tree, alice, instance, brokers):
    own = PUBLIC.issue("x", [HOST])
    answer = alice.api.post(url(instance, "routes"), {"security": "ssl", "advertised_host": HOST})
    route = answer.json()["id"]
    brokers.unserved.add("ssl")
    operations.run(answer.json()["operation_id"])
    assert alice.api.put(url(instance, f"routes/{route}/certificate"), brought(own)).status_code == 200
    assert alice.api.put(url(instance, f"routes/{route}/client-ca"), {"client_ca": PUBLIC.pem}).status_code == 200
    assert run_to_the_end(answer.json()["operation_id"]).state == "failed"
    reconcile.reconcile_all()
    services.renew_due()
    assert shown(tree, instance).items == ()
    brokers.unserved.clear()
    again = alice.api.patch(url(instance, f"routes/{route}"), {"connections": 5})
    assert run_to_the_end(again.json()["operation_id"]).state == "succeeded"
    (item,) = shown(tree, instance).items
    assert (item.chain, item.client_ca) == (own.pem, PUBLIC.pem)
    gone = alice.api.delete(url(instance, f"routes/{route}"))
    assert run_to_the_end(gone.json()["operation_id"]).state == "succeeded"
    assert not rows().exists()


# --- nothing is left --------------------------------------------------------------------------------------------------


def test_the_last_tls_route_takes_its_certificate_and_key_with_it(tree, alice, instance):
    route = opened(alice, instance)
    gone = alice.api.delete(url(instance, f"routes/{route}"))
    assert run_to_the_end(gone.json()["operation_id"]).state == "succeeded"
    assert shown(tree, instance).items == ()
    assert not rows().exists()


def test_a_deleted_instance_leaves_no_private_keys(alice, instance):
    opened(alice, instance)
    gone = alice.api.delete(f"/api/v1/instances/{instance.id}")
    assert run_to_the_end(gone.json()["operation_id"]).state == "succeeded"
    assert not rows().exists()
    assert not Authority.objects.unscoped("a test").exists()


# --- garbage ----------------------------------------------------------------------------------------------------------


def patched(pem, before, after):
    der = x509.load_pem_x509_certificate(pem.encode()).public_bytes(serialization.Encoding.DER)
    assert before in der
    text = base64.encodebytes(der.replace(before, after)).decode()
    return f"-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\n"


EC_KEY, NO_KEY = bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0209")
VERSION_3, VERSION_4 = bytes.fromhex("a003020102"), bytes.fromhex("a003020103")
USAGE, CONSTRAINTS = (bytes.fromhex(text) for text in ("0603551d0f", "0603551d13"))


@pytest.mark.parametrize(("before", "after"), [(EC_KEY, NO_KEY), (b"kafka.example", b"kafk\xff.example")])
def test_a_chain_that_is_not_legible_is_refused(alice, secure, before, after):
    own = PUBLIC.issue("x", [HOST])
    body = {"chain": patched(own.pem, before, after), "key": own.key_pem}
    assert alice.api.put(url(secure, "routes/r7/certificate"), body).status_code == 400


@pytest.mark.parametrize(
    ("before", "after"), [(USAGE, CONSTRAINTS), (b"Sluice CA", b"Sluic\xff CA"), (VERSION_3, VERSION_4)]
)
def test_an_authority_that_is_not_legible_is_refused(alice, secure, before, after):
    own = services.authority_of(secure)
    answer = alice.api.put(url(secure, "routes/r7/client-ca"), {"client_ca": patched(own, before, after)})
    assert answer.status_code == 400, answer.content
