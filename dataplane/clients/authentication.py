"""Saying who we are: TLS, and SASL by PLAIN or SCRAM, the client's side. No sockets here.

A mechanism is a generator of tokens: it yields what is to be sent and is sent what came back, until it returns.

    SCRAM (RFC 5802)    client                          server
                        n,,n=user,r=nonce          ->
                                                   <-   r=nonce+theirs,s=salt,i=iterations
                        c=biws,r=both,p=proof      ->
                                                   <-   v=signature: it knows the password too
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Generator

from dataplane.clients.errors import AuthenticationError, ConfigurationError
from dataplane.clients.settings import ConnectionSettings

Tokens = Generator[bytes, bytes, None]
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_FEWEST_ITERATIONS = 4_096


def tls_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """The host's name is checked. Raises ConfigurationError where a file cannot be read."""
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=settings.ssl_ca_location or None)
        if settings.ssl_certificate_location:
            context.load_cert_chain(settings.ssl_certificate_location, settings.ssl_key_location or None)
    except OSError as error:
        raise ConfigurationError(f"TLS: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def tokens(settings: ConnectionSettings) -> Tokens:
    """The exchange of the mechanism that is set."""
    if settings.sasl_mechanism == "PLAIN":
        return _plain(settings.sasl_username, settings.sasl_password)
    nonce = base64.b64encode(secrets.token_bytes(24)).decode()
    return scram(_HASHES[settings.sasl_mechanism], settings.sasl_username, settings.sasl_password, nonce)


def _plain(user: str, password: str) -> Tokens:
    yield f"\0{user}\0{password}".encode()


def scram(name: str, user: str, password: str, nonce: str) -> Tokens:
    """By the hash of this name. Raises AuthenticationError where the server does not prove itself."""
    escaped = user.replace("=", "=3D").replace(",", "=2C")
    bare = f"n={escaped},r={nonce}"
    challenge = (yield f"n,,{bare}".encode()).decode()
    parts = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
    try:
        both, salt, iterations = parts["r"], base64.b64decode(parts["s"]), int(parts["i"])
    except (KeyError, ValueError, binascii.Error):
        raise AuthenticationError("SCRAM: a challenge that is none") from None
    if not both.startswith(nonce) or iterations < _FEWEST_ITERATIONS:
        raise AuthenticationError("SCRAM: a challenge to somebody else, or too cheap a one")
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    without = f"c=biws,r={both}"
    message = f"{bare},{challenge},{without}".encode()
    signature = hmac.digest(hashlib.new(name, client_key).digest(), message, name)
    proof = bytes(ours ^ theirs for ours, theirs in zip(client_key, signature, strict=True))
    final = yield f"{without},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", name), message, name)
    if not hmac.compare_digest(final, b"v=" + base64.b64encode(expected)):
        raise AuthenticationError("SCRAM: the broker does not prove that it knows the password")
