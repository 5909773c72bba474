"""Whose a certificate of the cluster is, until when it is good, and why a peer's is refused.

The identity (`quota.contracts.identity`) follows from the subject, by rules in the syntax of Kafka's
``ssl.principal.mapping.rules`` (`quota.core.principal_rules`). Without rules the subject is ``CN=<identity>`` and nothing else;
an organisation's own PKI states the rules that fit its subjects, such as ``RULE:^CN=([^,]+),OU=sluice-prod,O=Example$/$1/``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import Encoding

from quota.contracts.identity import Identity, identity_of
from quota.core.principal_rules import NoRuleError, mapping_of
from quota.core.subject import subject_of

Rules = tuple[str, ...]
DEFAULT_RULES: Rules = (r"RULE:^CN=([^,+]+)$/$1/",)


@dataclass(frozen=True, slots=True)
class Own:
    """What a process has to know of its own certificate."""

    identity: Identity
    not_after: datetime
    is_quick: bool  # P-256: a handshake takes a millisecond at most


def identity_shown(certificate: bytes, rules: Rules = DEFAULT_RULES) -> Identity:
    """Of a certificate in DER that was verified already. Raises ValueError: it is none of the cluster's."""
    subject = subject_of(certificate)
    try:
        name = mapping_of(rules).name(subject)
    except NoRuleError:
        raise ValueError(f"no rule makes an identity of the subject {subject}") from None
    identity = identity_of(name)
    if identity is None:
        raise ValueError(f"{name} is no identity of the cluster")
    return identity


def own_certificate(chain: str, rules: Rules = DEFAULT_RULES) -> Own:
    """Of the first certificate in a chain, PEM. Raises ValueError."""
    certificate = x509.load_pem_x509_certificate(chain.encode())
    identity = identity_shown(certificate.public_bytes(Encoding.DER), rules)
    key = certificate.public_key()
    is_quick = isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1)
    return Own(identity, certificate.not_valid_after_utc, is_quick)


def refusal(certificate: bytes | None, expected: Identity, rules: Rules = DEFAULT_RULES) -> str | None:
    """Why a peer that should be this one is not believed, in a sentence; None: it is."""
    if certificate is None:
        return "it has shown no certificate"
    try:
        shown = identity_shown(certificate, rules)
    except ValueError as error:
        return str(error)
    return None if shown == expected else f"it should be {expected.name}, and its certificate is {shown.name}'s"
