"""The document of certificates, and private keys that are sealed for one instance and route."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota.contracts.certificates import (
    EVERY_ROUTE,
    LARGEST_PEM,
    CertificateSet,
    RouteCertificate,
    certificates_problem,
)
from quota.contracts.sealing import opened_by_any, route_key_purpose, sealed, unsealed

TEXT = st.text(max_size=30)
ITEMS = st.lists(st.builds(RouteCertificate, TEXT, TEXT, st.binary(max_size=30), TEXT), max_size=4)


@given(ITEMS, st.integers(0, 2**60))
def test_a_document_is_read_as_it_was_written(items, version):
    written = CertificateSet(version).changed(items)
    assert CertificateSet.from_json(written.to_json()) == written
    assert written.version == version + 1


def test_no_node_is_no_certificates():
    assert CertificateSet.from_json(None) == CertificateSet()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"version": 1}',
        b'{"version": "1", "items": []}',
        b'{"version": 1, "items": [{"route": "r", "chain": "", "key": "?", "client_ca": ""}]}',
        b'{"version": 1, "items": [{"route": "r", "chain": null, "key": "", "client_ca": ""}]}',
        b'{"version": 1, "items": [{"route": "r"}]}',
    ],
)
def test_what_is_not_legible_is_an_error(data):
    with pytest.raises(ValueError, match="not legible"):
        CertificateSet.from_json(data)


def test_a_route_has_its_own_or_what_is_for_every_route():
    common = RouteCertificate(EVERY_ROUTE, "chain", b"key", "ca")
    own = RouteCertificate("own", "its chain", b"its key")
    trusting = RouteCertificate("trusting", client_ca="its ca")
    found = CertificateSet(1, (common, own, trusting))
    assert [found.chain_of(route) for route in ("own", "trusting", "other")] == [own, common, common]
    assert [found.client_ca_of(route) for route in ("own", "trusting", "other")] == ["ca", "its ca", "ca"]
    assert CertificateSet().chain_of("own") is None


def test_what_is_too_large_is_said():
    assert certificates_problem([RouteCertificate("r", "x" * LARGEST_PEM, b"y")]) is None
    assert certificates_problem([RouteCertificate("r", "x" * (LARGEST_PEM + 1))])
    assert certificates_problem([RouteCertificate(str(n), "x" * LARGEST_PEM) for n in range(20)])


def test_a_key_is_opened_with_the_same_secret_for_the_same_route_only():
    purpose = route_key_purpose("ins-a", "r")
    data = sealed(b"private", secret="secret", purpose=purpose, nonce=b"n" * 12)
    assert b"private" not in data
    assert unsealed(data, secret="secret", purpose=purpose) == b"private"
    for secret, other in (("another", purpose), ("secret", route_key_purpose("ins-b", "r")), ("", purpose)):
        with pytest.raises(ValueError):
            unsealed(data, secret=secret, purpose=other)


@given(st.integers(0, 300), st.integers(1, 255))
def test_every_change_of_a_sealed_key_is_noticed(at, flip):
    data = bytearray(sealed(b"private", secret="s", purpose="p", nonce=b"n" * 12))
    data[at % len(data)] ^= flip
    with pytest.raises(ValueError):
        unsealed(bytes(data), secret="s", purpose="p")
    with pytest.raises(ValueError):
        unsealed(bytes(data)[: at % len(data)], secret="s", purpose="p")


def test_nonces_have_their_size_and_secrets_are_not_empty():
    with pytest.raises(ValueError):
        sealed(b"x", secret="s", purpose="p", nonce=b"short")
    with pytest.raises(ValueError):
        sealed(b"x", secret="", purpose="p", nonce=b"n" * 12)


def test_a_key_is_opened_by_whichever_of_some_secrets_sealed_it():
    data = sealed(b"private", secret="before", purpose="p", nonce=b"n" * 12)
    assert opened_by_any(data, secrets=("present", "", "before"), purpose="p") == b"private"
    with pytest.raises(ValueError, match="another secret"):
        opened_by_any(data, secrets=("present", "other"), purpose="p")
    with pytest.raises(ValueError, match="no secret"):
        opened_by_any(data, secrets=(), purpose="p")
