"""Whose Prometheus it is that has shown a certificate: one that an instance's tenant has issued for reading its figures.

An instance takes the certificates of the authorities that its routes take of Kafka clients (`client_ca`), and of these only such
as say that they are for this: a URI among the alternative names, ``sluice://<instance id>/prometheus``, one for each instance
that may be read with it. Without it every Kafka client with a certificate, whose ACLs may open one topic to it, would read the
names and the lag of all groups. A certificate is renewed without a word to us, and ends with its time, with its authority (taken
out of `client_ca`, or over), with its route, and with its instance. There are no revocation lists, as brokers know none.

What is asked of a certificate and its authority is what OpenSSL asks, as brokers do; the profile of the web's public authorities,
which `cryptography` has by default, refuses what many companies' own authorities issue.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, PolicyBuilder, Store, VerificationError

from controlplane.certificates.models import RouteCertificate
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unauthenticated
from controlplane.tenants.in_use import DELETING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cryptography.x509.verification import Policy

    from controlplane.tenants.models import Organisation

MARK = "sluice://{instance}/prometheus"
_MARK = re.compile(r"sluice://(ins-[a-z0-9]{8})/prometheus")
_CLIENTS_USES = frozenset({ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE})
REFUSED = (
    "the client certificate is not valid here: it names no instance, none of the instance's authorities has issued it, or its "
    "time is over"
)
"""One sentence for every reason: who has no certificate of an instance does not learn whether there is one."""


class Reader(NamedTuple):
    """Who may read the figures of one instance."""

    organisation: Organisation
    instance_id: str
    fingerprint: str  # SHA-256 of the certificate, hex


def reader_of(certificate: x509.Certificate, *, asked: str, clock: Clock = SYSTEM_CLOCK) -> Reader:
    """Of the instance that is `asked` for, if the certificate is for that one, else of the first that it is for.

    Raises Unauthenticated.
    """
    named = named_in(certificate)
    if not named:
        raise Unauthenticated(REFUSED)
    instance_id = asked if asked in named else named[0]
    rows = list(
        RouteCertificate.objects.unscoped("the certificate decides the organisation")
        .filter(instance=instance_id, instance__deleted_at=None)
        .exclude(client_ca="")
        .select_related("organisation")
    )
    if not is_issued(certificate, [row.client_ca for row in rows], clock.now()):
        raise Unauthenticated(REFUSED)
    organisation = rows[0].organisation
    if not organisation.is_in_use:
        raise Unauthenticated("the organisation of this client certificate is being deleted", code=DELETING)
    return Reader(organisation, instance_id, certificate.fingerprint(hashes.SHA256()).hex())


def named_in(certificate: x509.Certificate) -> list[str]:
    """Ids of the instances whose figures it is for, in its order."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    found = map(_MARK.fullmatch, names.get_values_for_type(x509.UniformResourceIdentifier))
    return [mark[1] for mark in found if mark]


def is_issued(certificate: x509.Certificate, authorities: Iterable[str], now: datetime) -> bool:
    """Whether one of these (PEM, one or more in each) has issued it, directly or by another one of them, and both are in time."""
    anchors: list[x509.Certificate] = []
    for pem in authorities:
        anchors += x509.load_pem_x509_certificates(pem.encode())
    in_time = [each for each in anchors if each.not_valid_before_utc <= now <= each.not_valid_after_utc]
    if not in_time:
        return False
    verifier = (
        PolicyBuilder()
        .store(Store(in_time))
        .time(now)
        .extension_policies(ca_policy=_OF_AUTHORITIES, ee_policy=_OF_CLIENTS)
        .build_client_verifier()
    )
    try:
        verifier.verify(certificate, [])
    except VerificationError:
        return False
    return True


def _demand_authority(_policy: Policy, _certificate: x509.Certificate, found: x509.BasicConstraints | None) -> None:
    if found is None or not found.ca:
        raise ValueError  # not an authority


def _demand_issuing(_policy: Policy, _certificate: x509.Certificate, found: x509.KeyUsage | None) -> None:
    if found is not None and not found.key_cert_sign:
        raise ValueError  # not for issuing


def _demand_of_client(_policy: Policy, _certificate: x509.Certificate, found: x509.ExtendedKeyUsage | None) -> None:
    if found is not None and not _CLIENTS_USES.intersection(found):
        raise ValueError  # not of a client


_OF_AUTHORITIES = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _demand_authority)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _demand_issuing)
)
_OF_CLIENTS = (
    ExtensionPolicy.permit_all()
    .require_present(x509.SubjectAlternativeName, Criticality.AGNOSTIC, None)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _demand_of_client)
)
