"""From certificates to what TLS at our end is made with.

TLS 1.2 and 1.3, no compression, no renegotiation, one session ticket; of TLS 1.2 only ciphers with forward secrecy that
authenticate what they encrypt. (The cluster's own processes have contexts of `quota.tls`.)
"""

from __future__ import annotations

import ssl

from quota.tls.contexts import load_chain

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
        load_chain(context, chain, key)
        if client_ca:
            context.load_verify_locations(cadata=client_ca)
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a tenant may trust less than a root, as in Java
            context.verify_mode = ssl.CERT_REQUIRED if requires_client else ssl.CERT_OPTIONAL
        elif requires_client:
            raise ValueError("client certificates are required, and there is no CA for them")
    except ssl.SSLError as error:
        raise ValueError(f"certificate not usable: {error.reason or error}") from error
    return context
