"""Certificates of a TLS route on its page: the authority as a file, one's own brought and given up, authorities of clients."""

from __future__ import annotations

import pytest

from controlplane.certificates.models import RouteCertificate
from controlplane.core.models import Operation
from tests.controlplane.conftest import run_to_the_end
from tests.support.certificates import Authority

from .conftest import problem_beside, text_of

ROUTE = {
    "security": "sasl_ssl",
    "mechanisms": ["SCRAM-SHA-512"],
    "client_certificates": "none",
    "scope": "instance",
    "advertised_host": "kafka.example.com",
}


@pytest.fixture
def at(at_alice, instance):
    """The address of a route that speaks TLS."""
    opened(at_alice, instance, ROUTE)
    return f"instances/{instance.id}/routes/r2"


def opened(at_alice, instance, members):
    assert at_alice.post(f"instances/{instance.id}/new-route", members).status_code == 302
    [operation] = Operation.objects.unscoped("a test").filter(kind="route.create")
    assert run_to_the_end(operation.id).state == "succeeded"


def row():
    return RouteCertificate.objects.unscoped("a test").get(route="r2")


def brought(host="kafka.example.com"):
    made = Authority("Ours").issue("kafka", [host])
    return {"change": "bring", "chain": made.pem, "key": made.key_pem}


def test_what_clients_trust_is_a_file_beside_what_to_paste(at_alice, alice, instance, at):
    page = at_alice.get(at)
    assert "Download ca.pem" in text_of(page)
    assert f"/instances/{instance.id}/ca.pem" in page.content.decode()
    file = at_alice.get(f"instances/{instance.id}/ca.pem")
    assert file["Content-Disposition"] == 'attachment; filename="ca.pem"'
    assert file.content == alice.api.get(f"/api/v1/instances/{instance.id}/ca").content
    assert "ca.pem" not in at_alice.get(f"instances/{instance.id}/routes/default").content.decode()


def test_the_page_says_what_the_route_shows_and_who_renews_it(at_alice, at):
    shown = text_of(at_alice.get(f"{at}/certificate"))
    for words in ("the authority of this instance", "kafka.example.com", "by itself"):
        assert words in shown


def test_ones_own_is_brought_and_given_up(at_alice, at):
    wanted = brought()
    assert at_alice.post(f"{at}/certificate", wanted).status_code == 302
    assert (row().source, row().chain) == ("brought", wanted["chain"])
    assert "you have brought" in text_of(at_alice.get(at))
    assert "Give mine up" in text_of(at_alice.get(f"{at}/certificate"))
    assert at_alice.post(f"{at}/certificate", {"change": "give-back"}).status_code == 302
    assert row().source == "issued"


def test_what_is_wrong_stands_beside_its_field_and_the_key_is_in_no_answer(at_alice, at):
    wanted = brought("other.example.com")
    page = at_alice.post(f"{at}/certificate", wanted)
    assert page.status_code == 422
    assert "does not name kafka.example.com" in problem_beside(page, "chain")
    assert "PRIVATE KEY" not in page.content.decode()
    wanted = brought() | {"key": brought()["key"]}
    assert "not that of the first certificate" in problem_beside(at_alice.post(f"{at}/certificate", wanted), "key")
    assert row().source == "issued"


def test_authorities_of_clients_are_said_where_the_route_asks_for_them(at_alice, instance, at):
    page = at_alice.post(f"{at}/certificate", {"change": "client-ca", "client_ca": "nothing"})
    assert page.status_code == 422
    assert problem_beside(page, "client_ca")
    pem = Authority("Clients").pem
    assert at_alice.post(f"{at}/certificate", {"change": "client-ca", "client_ca": pem}).status_code == 302
    assert row().client_ca == pem
    assert pem.splitlines()[1] in at_alice.get(f"{at}/certificate").content.decode()


def test_a_route_that_waits_for_an_authority_of_clients_says_so_and_how_clients_show_theirs(at_alice, instance):
    opened(at_alice, instance, {**ROUTE, "client_certificates": "required"})
    at = f"instances/{instance.id}/routes/r2"
    shown = text_of(at_alice.get(at))
    assert "nobody has said whose" in shown
    for words in ("ssl.certificate.location", "ssl_certfile=", "ssl.keystore.location=client.pem"):
        assert words in shown
    pem = Authority("Clients").pem
    at_alice.post(f"{at}/certificate", {"change": "client-ca", "client_ca": pem})
    assert "nobody has said whose" not in text_of(at_alice.get(at))


def test_a_route_that_failed_for_want_of_it_is_given_one_and_tried_again(at_alice, instance, brokers):
    asked = {**ROUTE, "client_certificates": "required"}
    brokers.unserved = {"sasl_ssl"}  # as if for want of an authority
    assert at_alice.post(f"instances/{instance.id}/new-route", asked).status_code == 302
    [operation] = Operation.objects.unscoped("a test").filter(kind="route.create")
    assert run_to_the_end(operation.id).state == "failed"
    at = f"instances/{instance.id}/routes/r2"
    assert "could not be opened" in text_of(at_alice.get(at))
    pem = Authority("Clients").pem
    assert at_alice.post(f"{at}/certificate", {"change": "client-ca", "client_ca": pem}).status_code == 302
    assert row().client_ca == pem
    brokers.unserved = set()
    assert "/operations/" in at_alice.post(at, asked)["Location"]
    again = Operation.objects.unscoped("a test").filter(kind="route.create").exclude(pk=operation.pk).get()
    assert run_to_the_end(again.id).state == "succeeded"
    assert "could not be opened" not in text_of(at_alice.get(at))


def test_a_viewer_reads_and_changes_nothing(at_viewer, at):
    shown = text_of(at_viewer.get(f"{at}/certificate"))
    assert "Download ca.pem" in shown
    assert "Private key" not in shown
    assert at_viewer.post(f"{at}/certificate", brought()).status_code == 403


def test_a_route_without_tls_has_none(at_alice, instance):
    page = at_alice.get(f"instances/{instance.id}/routes/default/certificate")
    assert "does not speak TLS" in text_of(page)
