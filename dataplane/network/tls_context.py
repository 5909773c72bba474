"""From certificates to what TLS at our end is made with.

TLS 1.2 and 1.3, no compression, no renegotiation, one session ticket; of TLS 1.2 only ciphers with forward secrecy that
authenticate what they encrypt. OpenSSL reads chain and key from files only: they are given one that is nothing but memory.
"""

from __future__ import annotations

import os
import ssl

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2."""


def server_context(chain: str, key: str, client_ca: str = "", *, requires_client: bool = False) -> ssl.SSLContext:
    """With a chain and its private key, PEM. With a client CA clients are asked for certificates.

    Raises ValueError with what is wrong. It takes a millisecond or more: not on the loop.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= (
        ssl.OP_NO_COMPRESSION
        | ssl.OP_NO_RENEGOTIATION
        | ssl.OP_CIPHER_SERVER_PREFERENCE
        | ssl.OP_SINGLE_ECDH_USE
        | ssl.OP_SINGLE_DH_USE
    )
    context.set_ciphers(CIPHERS)
    context.num_tickets = 1
    try:
        _load(context, chain, key)
        if client_ca:
            context.load_verify_locations(cadata=client_ca)
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a tenant may trust less than a root, as in Java
            context.verify_mode = ssl.CERT_REQUIRED if requires_client else ssl.CERT_OPTIONAL
        elif requires_client:
            raise ValueError("client certificates are required, and there is no CA for them")
    except ssl.SSLError as error:
        raise ValueError(f"certificate not usable: {error.reason or error}") from error
    return context


def _load(context: ssl.SSLContext, chain: str, key: str) -> None:
    memory = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(memory, f"{chain.rstrip()}\n{key.rstrip()}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{memory}", password=_no_password)
    finally:
        os.close(memory)


def _no_password() -> str:
    """Of a key that is encrypted OpenSSL would ask for one at the terminal."""
    raise ValueError("the private key is encrypted")
