"""What browsers and authenticators say of passkeys, verified by `fido2` (WebAuthn level 2). Pure.

The site is the service's own address as its operators have set it (`SLUICE_CONSOLE_URL`), whatever a request says about its
host: a passkey is bound to the name of the site, and an answer to its whole origin. Attestation is not asked for: any
authenticator will do that verifies its person (by a PIN, a finger, a face), which is asked for always.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialDescriptor,
    PublicKeyCredentialParameters,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

ALGORITHMS = (-7, -8, -257)
"""Of COSE: ES256, EdDSA, RS256. What authenticators of today make, and nothing with SHA-1."""
LONGEST_ANSWER = 16_000
LONGEST_ID = 1_023
"""Bytes: no authenticator makes a longer one, by the standard."""
LONGEST_CREDENTIAL = 2_000
"""Bytes, id and public key: an RSA key of a size that is slow to verify by does not fit."""
TIMEOUT_MS = 180_000
DEFAULT_PORTS = {"https": ":443", "http": ":80"}
"""Browsers leave them out of an origin."""
_REQUIRED = UserVerificationRequirement.REQUIRED


class PasskeyProblem(ValueError):  # noqa: N818  # what a browser has sent proves nothing; the text is for logs
    """An answer that is not from an authenticator, not for this site, or not to this challenge."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where passkeys are good."""

    id: str  # a host name: what passkeys are bound to
    origin: str  # with scheme and port: where answers come from


@dataclass(frozen=True, slots=True)
class Made:
    """A new passkey."""

    credential_id: str  # base64url
    credential: str  # base64url
    sign_count: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody presents, not verified yet."""

    credential_id: str  # base64url
    handle: str  # base64url; empty: the authenticator does not say
    text: str


def site_of(console_url: str) -> Site | None:
    """The site of this address; None: browsers make no passkeys for it, as it is an IP address or not https."""
    parts = urlsplit(console_url)
    host = parts.hostname or ""
    is_here = host == "localhost" or host.endswith(".localhost")
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_here)):
        return None
    try:
        ip_address(host)
    except ValueError:
        return Site(host, f"{parts.scheme}://{parts.netloc.lower().removesuffix(DEFAULT_PORTS[parts.scheme])}")
    return None


def creation_options(site: Site, *, challenge: bytes, handle: str, email: str, known: Sequence[str]) -> dict[str, Any]:
    """What a browser is to make; `known`: ids of those that the person has, which it does not make again."""
    options, _ = _server(site).register_begin(
        PublicKeyCredentialUserEntity(id=websafe_decode(handle), name=email, display_name=email),
        [_descriptor(each) for each in known],
        resident_key_requirement=ResidentKeyRequirement.REQUIRED,
        user_verification=_REQUIRED,
        challenge=challenge,
    )
    return dict(options)["publicKey"] | {"timeout": TIMEOUT_MS}


def request_options(site: Site, *, challenge: bytes, known: Sequence[str]) -> dict[str, Any]:
    """What a browser is to ask for; no `known`: whichever passkey the person picks."""
    options, _ = _server(site).authenticate_begin(
        [_descriptor(each) for each in known] or None, user_verification=_REQUIRED, challenge=challenge
    )
    return dict(options)["publicKey"] | {"timeout": TIMEOUT_MS}


def made(site: Site, *, challenge: bytes, text: str) -> Made:
    """The passkey that a browser has made. Raises PasskeyProblem."""
    document = _document(text)
    try:
        response = RegistrationResponse.from_dict(document)
        if response.response.client_data.cross_origin:
            raise PasskeyProblem("made in a frame of another site")
        data = _server(site).register_complete(_state(challenge), response)
        credential = data.credential_data
        if credential is None or credential.public_key.get(3) not in ALGORITHMS:
            raise PasskeyProblem("no public key of an algorithm that was asked for")
        is_long = len(credential.credential_id) > LONGEST_ID or len(credential) > LONGEST_CREDENTIAL
        if credential.credential_id != response.raw_id or is_long:
            raise PasskeyProblem("another id, or too long")
    except PasskeyProblem:
        raise
    except Exception as error:  # whatever a stranger sends, in layers of CBOR, is an answer that proves nothing
        raise PasskeyProblem(str(error)[:200]) from error
    return Made(websafe_encode(credential.credential_id), websafe_encode(bytes(credential)), data.counter)


def answer_of(text: str) -> Answer:
    """Which passkey is presented. Raises PasskeyProblem."""
    document = _document(text)
    try:
        response = AuthenticationResponse.from_dict(document)
        handle = response.response.user_handle
        return Answer(websafe_encode(response.raw_id), websafe_encode(handle) if handle else "", text)
    except Exception as error:  # as above
        raise PasskeyProblem(str(error)[:200]) from error


def verified(site: Site, *, challenge: bytes, credential: str, answer: Answer) -> int:
    """Whether the answer is by this passkey; its counter. Raises PasskeyProblem."""
    document = _document(answer.text)
    try:
        response = AuthenticationResponse.from_dict(document)
        if response.response.client_data.cross_origin:
            raise PasskeyProblem("asked for in a frame of another site")
        known = AttestedCredentialData(websafe_decode(credential))
        _server(site).authenticate_complete(_state(challenge), [known], response)
        return int(response.response.authenticator_data.counter)
    except PasskeyProblem:
        raise
    except Exception as error:  # as above
        raise PasskeyProblem(str(error)[:200]) from error


def _server(site: Site) -> Fido2Server:
    server = Fido2Server(
        PublicKeyCredentialRpEntity(id=site.id, name="Sluice"), verify_origin=lambda origin: origin == site.origin
    )
    server.allowed_algorithms = [
        PublicKeyCredentialParameters(type=PublicKeyCredentialType.PUBLIC_KEY, alg=each) for each in ALGORITHMS
    ]
    return server


def _descriptor(credential_id: str) -> PublicKeyCredentialDescriptor:
    return PublicKeyCredentialDescriptor(type=PublicKeyCredentialType.PUBLIC_KEY, id=websafe_decode(credential_id))


def _state(challenge: bytes) -> dict[str, Any]:
    return {"challenge": websafe_encode(challenge), "user_verification": _REQUIRED}


def _document(text: str) -> dict[str, Any]:
    if not text or len(text) > LONGEST_ANSWER:
        raise PasskeyProblem("nothing, or too much")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PasskeyProblem("no JSON") from error
    if not isinstance(document, dict):
        raise PasskeyProblem("no object")
    return document
