"""A tenant's Prometheus shows a client certificate in place of an API key, and reads the figures of its instance and no more.

The proxy is a header here, from the address that is configured as its own; `test_behind_a_tls_proxy.py` has a real handshake.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID
from django.utils import timezone
from rest_framework.test import APIClient

from controlplane.certificates.models import RouteCertificate
from controlplane.certificates.readers import MARK, REFUSED
from controlplane.core import client_certificate
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry
from controlplane.instances import services as instances
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.history.conftest import keep, sample
from tests.controlplane.test_instances_api import URL
from tests.support.certificates import DAY, Authority, Issued, name

PROXY, ELSEWHERE = "10.3.0.7", "10.4.0.7"
OURS, THEIRS = Authority("Alice's own"), Authority("Charlie's own")
MISSING = "ins-zzzzzzzz"


@pytest.fixture(autouse=True)
def proxy(settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, client_certificates_from=(ip_network("10.3.0.0/24"),))


@pytest.fixture
def trusting(instance):
    """Alice's instance, of which a route takes the clients of her authority, and which has seven connections now."""
    keep([sample(int(SYSTEM_CLOCK.now().timestamp()) // 10 * 10 - 10, instance.id)])
    return trusts(instance, OURS)


@pytest.fixture
def foreign(charlie, brokers):
    """Charlie's instance, with an authority of its own."""
    made, operation = instances.instance_create(
        organisation=charlie.organisation, actor="charlie@example.com", **WANTED
    )
    assert run_to_the_end(operation.id).state == "succeeded"
    return trusts(made, THEIRS)


def trusts(instance, *authorities, route="r7"):
    RouteCertificate.objects.unscoped("a test").update_or_create(
        instance_id=instance.id,
        route=route,
        defaults={
            "organisation_id": instance.organisation_id,
            "client_ca": "".join(each.pem for each in authorities),
        },
    )
    return instance


def issued(authority, *marks, since=-1, until=5, uses=None, ca=None):
    """Of a client, good from so many days from now until so many; `marks` are URIs."""
    key, now = ec.generate_private_key(ec.SECP256R1()), timezone.now()
    builder = (
        x509.CertificateBuilder()
        .subject_name(name("prometheus"))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + since * DAY)
        .not_valid_after(now + until * DAY)
    )
    if marks:
        names = [x509.UniformResourceIdentifier(mark) for mark in marks]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    if uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca, None), critical=True)
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def of(instance, authority=OURS, **options):
    return issued(authority, MARK.format(instance=instance.id), **options)


def told(certificate):
    """As RFC 9440 has it."""
    return f":{b64encode(certificate.der).decode()}:"


def asks(instance, header, *, path="prometheus", peer=PROXY, **more):
    instance_id = getattr(instance, "id", instance)
    return APIClient().get(f"{URL}/{instance_id}/{path}", headers={"client-cert": header}, REMOTE_ADDR=peer, **more)


def refusal(answer):
    return answer.status_code, answer.json()["detail"]


NOBODY = (401, "this needs the header Authorization: Bearer <API key>")


# --- who gets in ------------------------------------------------------------------------------------------------------


def test_a_certificate_reads_what_a_key_reads(alice, trusting):
    answer = asks(trusting, told(of(trusting)))
    by_key = alice.api.get(f"{URL}/{trusting.id}/prometheus")
    assert (answer.status_code, answer["Content-Type"]) == (200, by_key["Content-Type"])
    assert answer.content == by_key.content
    assert f'sluice_connections{{instance_id="{trusting.id}"}} 7' in answer.content.decode()
    assert int(answer["RateLimit-Remaining"]) == int(answer["RateLimit-Limit"]) - 1


def test_nginx_and_load_balancers_tell_it_as_pem(trusting):
    certificate = of(trusting)
    assert asks(trusting, quote(certificate.pem)).status_code == 200
    assert asks(trusting, quote(certificate.pem, safe="+=/")).status_code == 200


def test_a_renewed_certificate_needs_no_word(trusting):
    for _ in range(2):
        assert asks(trusting, told(of(trusting))).status_code == 200


def test_one_certificate_may_be_for_several_instances(trusting, foreign):
    trusts(foreign, THEIRS, OURS)
    both = issued(OURS, *(MARK.format(instance=each.id) for each in (foreign, trusting)))
    assert [asks(each, told(both)).status_code for each in (trusting, foreign)] == [200, 200]


def test_an_authority_below_another_issues_it_where_both_are_taken(trusting):
    below = issued(OURS, ca=True)
    trusts(trusting, OURS, below)
    assert asks(trusting, told(of(trusting, below))).status_code == 200


def test_who_shows_a_key_is_who_the_key_says(charlie, trusting):
    answer = asks(trusting, told(of(trusting)), HTTP_AUTHORIZATION=f"Bearer {charlie.key}")
    assert answer.status_code == 404
    assert asks(trusting, told(of(trusting)), HTTP_AUTHORIZATION="Bearer slc_x").status_code == 401


# --- forged -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", [ELSEWHERE, "127.0.0.1", "::1", "", "unix:"])
def test_a_header_from_any_other_address_is_as_if_it_were_not_there(trusting, peer):
    assert refusal(asks(trusting, told(of(trusting)), peer=peer)) == NOBODY
    assert refusal(asks(trusting, "nonsense", peer=peer)) == NOBODY


def test_nor_does_it_help_to_say_that_one_comes_from_the_proxy(trusting, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, tls=True)
    answer = asks(trusting, told(of(trusting)), peer=ELSEWHERE, HTTP_X_FORWARDED_FOR=PROXY)
    assert refusal(answer) == NOBODY


def test_where_no_proxy_is_configured_nobody_is_believed(trusting, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, client_certificates_from=())
    assert refusal(asks(trusting, told(of(trusting)))) == NOBODY


def test_another_header_than_the_configured_one_is_none(trusting, settings):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, client_certificate_header="X-Amzn-Mtls-Clientcert")
    assert refusal(asks(trusting, told(of(trusting)))) == NOBODY
    pem = quote(of(trusting).pem, safe="+=/")
    answer = APIClient().get(
        f"{URL}/{trusting.id}/prometheus", headers={"x-amzn-mtls-clientcert": pem}, REMOTE_ADDR=PROXY
    )
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        "nonsense",
        ":nonsense:",
        ":AAAA:",
        "::",
        "%00",
        "x" * (client_certificate.LONGEST + 1),
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_what_is_no_certificate_is_refused(trusting, header):
    assert refusal(asks(trusting, header)) == (401, "the client certificate cannot be read")


def test_two_certificates_in_one_header_are_none(trusting):
    certificate = told(of(trusting))
    assert asks(trusting, f"{certificate}, {certificate}").status_code == 401


def test_an_authority_of_the_same_name_is_another_one(trusting):
    assert refusal(asks(trusting, told(of(trusting, Authority("Alice's own"))))) == (401, REFUSED)


def test_who_has_issued_it_to_themselves_gets_nothing(trusting):
    own = Issued(
        OURS.certificate, ec.generate_private_key(ec.SECP256R1())
    )  # the name of her authority, and another key
    assert refusal(asks(trusting, told(of(trusting, own)))) == (401, REFUSED)


def test_a_client_of_kafka_is_no_prometheus(trusting):
    for marks in (
        (),
        ("spiffe://example.com/orders",),
        (f"{MARK.format(instance=trusting.id)}/",),
        ("sluice://ins-x",),
    ):
        assert refusal(asks(trusting, told(issued(OURS, *marks)))) == (401, REFUSED)


def test_a_client_does_not_issue_certificates(trusting):
    client = of(trusting, ca=False)
    trusts(trusting, OURS, client)  # not even if somebody took it for an authority
    assert refusal(asks(trusting, told(of(trusting, client)))) == (401, REFUSED)


def test_the_certificate_of_a_server_is_none_of_a_client(trusting):
    assert asks(trusting, told(of(trusting, uses=[ExtendedKeyUsageOID.SERVER_AUTH]))).status_code == 401
    assert asks(trusting, told(of(trusting, uses=[ExtendedKeyUsageOID.CLIENT_AUTH]))).status_code == 200


# --- over, or taken back ----------------------------------------------------------------------------------------------


def test_a_certificate_ends_with_its_time(trusting):
    assert refusal(asks(trusting, told(of(trusting, since=-3, until=-1)))) == (401, REFUSED)
    assert refusal(asks(trusting, told(of(trusting, since=1, until=3)))) == (401, REFUSED)


def test_it_ends_with_the_time_of_its_authority(trusting):
    ended = issued(OURS, since=-5, until=-1, ca=True)
    trusts(trusting, ended)
    assert refusal(asks(trusting, told(of(trusting, ended, since=-4)))) == (401, REFUSED)


def test_it_ends_when_its_authority_is_taken_out_of_the_route(trusting):
    certificate = told(of(trusting))
    assert asks(trusting, certificate).status_code == 200
    trusts(trusting, Authority("the next one"))
    assert refusal(asks(trusting, certificate)) == (401, REFUSED)
    trusts(trusting)
    assert refusal(asks(trusting, certificate)) == (401, REFUSED)


def test_it_ends_with_the_route_and_with_the_instance(trusting):
    certificate = told(of(trusting))
    trusting.deleted_at = timezone.now()
    trusting.save(update_fields=["deleted_at"])
    assert refusal(asks(trusting, certificate)) == (401, REFUSED)
    trusting.deleted_at = None
    trusting.save(update_fields=["deleted_at"])
    assert asks(trusting, certificate).status_code == 200
    RouteCertificate.objects.unscoped("a test").all().delete()
    assert refusal(asks(trusting, certificate)) == (401, REFUSED)


def test_of_an_organisation_that_is_being_deleted_nothing_is_read(alice, trusting):
    organisation = alice.organisation
    organisation.deletion_asked_at, organisation.deletes_at = timezone.now(), timezone.now() + timedelta(days=7)
    organisation.save(update_fields=["deletion_asked_at", "deletes_at"])
    answer = asks(trusting, told(of(trusting)))
    assert (answer.status_code, answer.json()["code"]) == (401, "organisation_deleting")


# --- others, and other calls ------------------------------------------------------------------------------------------


def test_anothers_instance_is_one_that_is_not_there(trusting, foreign):
    theirs = told(of(foreign, THEIRS))
    assert asks(foreign, theirs).status_code == 200
    other, missing = asks(trusting, theirs), asks(MISSING, theirs)
    assert (other.status_code, missing.status_code) == (404, 404)
    assert other.content.replace(trusting.id.encode(), b"ID") == missing.content.replace(MISSING.encode(), b"ID")


def test_another_tenants_authority_says_nothing_of_an_instance(trusting, foreign):
    forged = told(of(trusting, THEIRS))  # it says that it is for Alice's
    of_nothing = told(issued(THEIRS, MARK.format(instance=MISSING)))
    there, nowhere = asks(trusting, forged), asks(MISSING, of_nothing)
    assert refusal(there) == refusal(nowhere) == (401, REFUSED)
    assert there.content.replace(trusting.id.encode(), b"ID") == nowhere.content.replace(MISSING.encode(), b"ID")


def test_both_marks_open_only_what_each_instances_own_authority_has_issued(trusting, foreign):
    both = told(issued(THEIRS, *(MARK.format(instance=each.id) for each in (trusting, foreign))))
    assert asks(foreign, both).status_code == 200
    assert refusal(asks(trusting, both)) == (401, REFUSED)


@pytest.mark.parametrize("path", ["history", "metrics", "scrape-config", "topics", "groups", "requests"])
def test_no_other_call_takes_a_certificate(trusting, path):
    assert refusal(asks(trusting, told(of(trusting)), path=path)) == NOBODY


def test_a_certificate_changes_nothing(trusting):
    answer = APIClient().post(
        f"{URL}/{trusting.id}/prometheus", headers={"client-cert": told(of(trusting))}, REMOTE_ADDR=PROXY
    )
    assert answer.status_code in {403, 405}


def test_whose_certificate_asked_for_another_instance_is_on_record(trusting, foreign):
    certificate = of(foreign, THEIRS)
    asks(trusting, told(certificate))
    (entry,) = AuditEntry.objects.for_organisation(foreign.organisation).filter(action="access.denied")
    fingerprint = certificate.certificate.fingerprint(hashes.SHA256()).hex()
    assert entry.actor == f"client certificate {fingerprint[:16]}"
    assert not AuditEntry.objects.for_organisation(trusting.organisation).filter(action="access.denied").exists()
