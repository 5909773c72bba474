"""Certificates of TLS routes: issued and renewed by the instance's own authority, or brought by the tenant; brokers are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from controlplane.certificates import services
from controlplane.certificates.models import Authority, RouteCertificate
from controlplane.clusters import coordination
from controlplane.core.errors import Invalid
from controlplane.core.models import AuditEntry
from quota.contracts.apart import certificates_path, nodes_of
from quota.contracts.certificates import CertificateSet
from quota.contracts.instance import Endpoint, Route
from quota.contracts.sealing import route_key_purpose, unsealed
from tests.controlplane.conftest import CLUSTER_SECRET as SECRET
from tests.controlplane.conftest import run_to_the_end
from tests.support.certificates import Authority as SomeCa
from tests.support.certificates import Issued, rsa_key

HOST = "kafka.example.com"


@pytest.fixture
def secure(tree, instance):
    """Alice's instance with a route of TLS beside its own, as brokers have been told."""
    routes(tree, instance, tls_route("r7", HOST))
    return instance


def tls_route(name, *hosts, security="ssl"):
    return Route(name, {n: Endpoint(("127.0.0.1", 21000 + n), (host, 9093)) for n, host in enumerate(hosts)}, security)


def routes(tree, instance, *more):
    spec = coordination.spec_read(tree, instance.id)[0]
    plain = tuple(route for route in spec.routes if not route.wants_tls)
    spec = replace(spec, generation=spec.generation + 1, routes=(*plain, *more))
    for path, data in nodes_of(spec).items():
        tree.nodes[path] = (data, tree.nodes[path][1] + 1 if path in tree.nodes else 0)


def shown(tree, instance):
    node = tree.nodes.get(certificates_path(instance.id))
    return CertificateSet.from_json(node[0] if node else None)


def leaf_of(item):
    return x509.load_pem_x509_certificate(item.chain.encode())


def url(instance, rest):
    return f"/api/v1/instances/{instance.id}/{rest}"


# --- issued -----------------------------------------------------------------------------------------------------------


def test_a_tls_route_gets_a_certificate_of_the_instances_authority(tree, alice, secure):
    services.ensure_for(secure)
    (item,) = shown(tree, secure).items
    leaf = leaf_of(item)
    assert item.route == "r7"
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [HOST]
    answer = alice.api.get(url(secure, "ca"))
    assert answer.status_code == 200
    assert f"{secure.id}-ca.pem" in answer["Content-Disposition"]
    leaf.verify_directly_issued_by(x509.load_pem_x509_certificate(answer.content))
    key = unsealed(item.key, secret=SECRET, purpose=route_key_purpose(secure.id, "r7"))
    assert b"PRIVATE KEY" in key
    assert b"PRIVATE KEY" not in tree.nodes[certificates_path(secure.id)][0]


def test_nothing_is_written_where_there_is_no_tls_or_nothing_new(tree, instance):
    services.ensure_for(instance)
    assert certificates_path(instance.id) not in tree.nodes
    routes(tree, instance, tls_route("r7", HOST))
    services.ensure_for(instance)
    before = tree.nodes[certificates_path(instance.id)]
    services.ensure_for(instance)
    assert tree.nodes[certificates_path(instance.id)] == before


def test_other_hosts_are_another_certificate_of_the_same_authority(tree, secure):
    services.ensure_for(secure)
    before = shown(tree, secure)
    routes(tree, secure, tls_route("r7", HOST, "10.0.0.7"))
    services.ensure_for(secure)
    after = shown(tree, secure)
    assert after.version == before.version + 1
    names = leaf_of(after.items[0]).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7"]
    assert Authority.objects.unscoped("a test").count() == 1


def test_a_route_that_is_gone_leaves_nothing(tree, secure):
    services.ensure_for(secure)
    services.route_forget(instance=secure, route="r7")
    assert shown(tree, secure).items == ()
    assert not RouteCertificate.objects.unscoped("a test").exists()
    services.route_forget(instance=secure, route="r7")


def test_a_route_that_brokers_are_not_told_of_keeps_its_certificate_here(tree, secure):
    services.ensure_for(secure)
    before = shown(tree, secure).items[0].chain
    routes(tree, secure)
    services.ensure_for(secure)
    assert shown(tree, secure).items == ()
    routes(tree, secure, tls_route("r7", HOST))
    services.ensure_for(secure)
    assert shown(tree, secure).items[0].chain == before


def test_certificates_are_renewed_a_month_before_their_end(tree, secure, clock):
    services.ensure_for(secure, clock=clock)
    before = shown(tree, secure).items[0]
    clock.advance(timedelta(days=59).total_seconds())
    assert services.renew_due(clock=clock) == 0
    clock.advance(timedelta(days=2).total_seconds())
    assert services.renew_due(clock=clock) == 1
    after = shown(tree, secure).items[0]
    assert leaf_of(after).not_valid_after_utc > leaf_of(before).not_valid_after_utc
    assert services.renew_due(clock=clock) == 0


def test_one_that_cannot_be_renewed_keeps_no_other_from_it(tree, secure, clock):
    services.ensure_for(secure, clock=clock)
    clock.advance(timedelta(days=70).total_seconds())
    tree.away = True
    assert services.renew_due(clock=clock) == 0
    tree.away = False
    services.ensure_for(secure, clock=clock)
    assert leaf_of(shown(tree, secure).items[0]).not_valid_after_utc > clock.now() + timedelta(days=60)


def test_what_somebody_else_has_written_is_put_right(tree, secure):
    services.ensure_for(secure)
    path = certificates_path(secure.id)
    tree.nodes[path] = (b"{", tree.nodes[path][1] + 1)
    services.ensure_for(secure)
    assert shown(tree, secure).items[0].route == "r7"


# --- brought ----------------------------------------------------------------------------------------------------------

PUBLIC = SomeCa("Public CA")


def brought(issued, **more):
    return {"chain": issued.pem, "key": issued.key_pem, **more}


def test_a_certificate_that_a_tenant_brings_is_shown_instead(tree, alice, secure):
    services.ensure_for(secure)
    own = PUBLIC.issue(HOST, [f"*.{HOST.partition('.')[2]}"])
    answer = alice.api.put(url(secure, "routes/r7/certificate"), brought(own))
    assert (answer.status_code, answer.json()["source"]) == (200, "brought")
    assert "key" not in answer.json()
    assert shown(tree, secure).items[0].chain == own.pem
    services.ensure_for(secure)  # it stays
    assert shown(tree, secure).items[0].chain == own.pem
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="certificate.bring")
    assert "PRIVATE" not in str(entry.detail)
    back = alice.api.delete(url(secure, "routes/r7/certificate"))
    assert back.json()["source"] == "issued"
    assert shown(tree, secure).items[0].chain == back.json()["chain"] != own.pem


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (brought(PUBLIC.issue("x", ["elsewhere.example.com"])), f"does not name {HOST}"),
        (brought(PUBLIC.issue("x", ["*.kafka.example.com"])), f"does not name {HOST}"),
        (brought(PUBLIC.issue("x", ["*.com"])), f"does not name {HOST}"),
        (brought(PUBLIC.issue(HOST)), f"does not name {HOST}"),
        (brought(PUBLIC.issue("x", [HOST], from_days=-9, to_days=-1)), "is over since"),
        (brought(PUBLIC.issue("x", [HOST], from_days=3)), "begins on"),
        (brought(Issued(PUBLIC.issue("x", [HOST]).certificate, PUBLIC.key)), "not that of the first certificate"),
        (brought(PUBLIC.issue("x", [HOST], key=rsa_key(1024))), "RSA key has 2048 to 4096 bits"),
        (brought(PUBLIC.issue("x", [HOST], key=ec.generate_private_key(ec.SECP256K1()))), "one of the curves"),
        ({"chain": "no", "key": "no"}, "is not certificates in PEM"),
        ({"chain": PUBLIC.pem, "key": "no"}, "is not a private key in PEM"),
        ({"chain": PUBLIC.pem}, "key"),
    ],
)
def test_what_could_not_be_used_is_refused_with_a_sentence(tree, alice, secure, body, sentence):
    answer = alice.api.put(url(secure, "routes/r7/certificate"), body)
    assert answer.status_code == 400
    assert sentence in answer.content.decode()
    assert shown(tree, secure).items == ()


def test_a_chain_is_whole_and_in_order(alice, secure):
    leaf = PUBLIC.issue("x", [HOST])
    whole = {"chain": leaf.pem + PUBLIC.pem, "key": leaf.key_pem}
    assert alice.api.put(url(secure, "routes/r7/certificate"), whole).status_code == 200
    for chain in (leaf.pem + SomeCa("Public CA").pem, leaf.pem + leaf.pem):
        answer = alice.api.put(url(secure, "routes/r7/certificate"), {**whole, "chain": chain})
        assert "has not issued" in answer.json()["detail"]


def test_an_encrypted_key_is_refused(secure):
    from cryptography.hazmat.primitives import serialization

    leaf = PUBLIC.issue("x", [HOST])
    encrypted = leaf.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    ).decode()
    with pytest.raises(Invalid, match="encrypted"):
        services.certificate_bring(instance=secure, route="r7", actor="a", chain=leaf.pem, key=encrypted)


# --- clients ----------------------------------------------------------------------------------------------------------


def test_a_ca_for_clients_is_told_and_taken_back(tree, alice, secure):
    services.ensure_for(secure)
    ca = url(secure, "routes/r7/client-ca")
    assert alice.api.put(ca, {"client_ca": PUBLIC.pem}).json()["client_ca"] == PUBLIC.pem
    assert shown(tree, secure).client_ca_of("r7") == PUBLIC.pem
    assert shown(tree, secure).items[0].chain  # as before
    assert alice.api.put(ca, {"client_ca": ""}).status_code == 200
    assert shown(tree, secure).client_ca_of("r7") == ""


def test_a_ca_may_be_given_before_there_is_a_certificate(tree, alice, secure):
    assert alice.api.put(url(secure, "routes/r7/client-ca"), {"client_ca": PUBLIC.pem}).status_code == 200
    services.ensure_for(secure)
    (item,) = shown(tree, secure).items
    assert (item.client_ca, bool(item.chain)) == (PUBLIC.pem, True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("no", "not certificates in PEM"),
        (PUBLIC.issue("x").pem, "not an authority's"),
        (PUBLIC.pem * 51, "may have 50"),
    ],
)
def test_what_is_no_ca_is_refused(alice, secure, text, sentence):
    answer = alice.api.put(url(secure, "routes/r7/client-ca"), {"client_ca": text})
    assert answer.status_code == 400
    assert sentence in answer.content.decode()


# --- whose ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("get", "ca"),
        ("get", "routes/r7/certificate"),
        ("put", "routes/r7/certificate"),
        ("delete", "routes/r7/certificate"),
        ("put", "routes/r7/client-ca"),
    ],
)
def test_another_organisations_instance_does_not_exist(charlie, secure, method, rest):
    services.ensure_for(secure)
    body = brought(PUBLIC.issue("x", [HOST]), client_ca=PUBLIC.pem)
    answer = getattr(charlie.api, method)(url(secure, rest), body if method == "put" else None)
    assert answer.status_code == 404


def test_a_viewer_changes_nothing(viewer, secure):
    answer = viewer.api.put(url(secure, "routes/r7/client-ca"), {"client_ca": ""})
    assert answer.status_code == 403


def test_routes_that_are_not_there_or_not_of_tls(alice, secure):
    answer = alice.api.put(url(secure, "routes/r9/certificate"), brought(PUBLIC.issue("x", [HOST])))
    assert answer.status_code == 404
    answer = alice.api.put(url(secure, "routes/default/certificate"), brought(PUBLIC.issue("x", [HOST])))
    assert (answer.status_code, answer.json()["code"]) == (409, "not_tls")


def test_private_keys_are_sealed_in_the_database(secure):
    services.ensure_for(secure)
    for row in (*Authority.objects.unscoped("a test"), *RouteCertificate.objects.unscoped("a test")):
        assert b"PRIVATE" not in bytes(row.key)


def test_a_route_of_tls_that_is_opened_by_rest_has_its_certificate(tree, alice, instance):
    answer = alice.api.post(url(instance, "routes"), {"security": "ssl", "advertised_host": HOST})
    assert answer.status_code == 202, answer.content
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    (item,) = shown(tree, instance).items
    assert HOST in leaf_of(item).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    ).value.get_values_for_type(x509.DNSName)
    assert alice.api.get(url(instance, f"routes/{item.route}/certificate")).json()["source"] == "issued"
