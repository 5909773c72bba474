"""Whose a certificate is, and why a peer is not believed."""

import pytest
from cryptography.x509.oid import NameOID

from quota.contracts.identity import METERING, broker
from quota.tls.shown import identity_shown, own_certificate, refusal
from tests.support.certificates import Authority, name, rsa_key

AUTHORITY = Authority()


def test_the_subject_is_the_identity_and_nothing_else():
    assert identity_shown(AUTHORITY.issue("broker-7").der) == broker(7)
    assert identity_shown(AUTHORITY.issue("metering").der) == METERING
    for other in ("broker-07", "broker", "root", "broker-1,OU=x", "User:broker-1"):
        with pytest.raises(ValueError, match=r"no identity|no rule"):
            identity_shown(AUTHORITY.issue(other).der)
    with pytest.raises(ValueError, match="no rule makes an identity of the subject CN=broker-1,O=Tenant"):
        identity_shown(AUTHORITY.issue(name("broker-1", (NameOID.ORGANIZATION_NAME, "Tenant"))).der)


def test_rules_decide_alone_where_there_are_some():
    rules = ("RULE:^CN=([^,]+),O=Sluice$/$1/",)
    inside = name("broker-1", (NameOID.ORGANIZATION_NAME, "Sluice"))
    assert identity_shown(AUTHORITY.issue(inside).der, rules) == broker(1)
    with pytest.raises(ValueError, match="no rule"):
        identity_shown(AUTHORITY.issue("broker-1").der, rules)


def test_a_peer_that_is_another_is_not_believed():
    assert refusal(AUTHORITY.issue("broker-2").der, broker(2)) is None
    assert refusal(AUTHORITY.issue("broker-3").der, broker(2)) == (
        "it should be broker-2, and its certificate is broker-3's"
    )
    assert refusal(AUTHORITY.issue("stranger").der, broker(2)) == "stranger is no identity of the cluster"
    assert refusal(None, broker(2)) == "it has shown no certificate"


def test_what_takes_long_is_known():
    assert own_certificate(AUTHORITY.issue("broker-1").pem).is_quick
    assert not own_certificate(AUTHORITY.issue("broker-1", key=rsa_key()).pem).is_quick
