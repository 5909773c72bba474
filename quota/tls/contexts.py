"""From certificates and keys to what TLS is made with. Making a context takes a millisecond or more: not on a busy loop.

Between the cluster's own processes there is TLS 1.3 and nothing else, each shows a certificate, and no session is resumed: a
connection that begins is verified against the authorities that are believed now. OpenSSL reads chain and key from files only;
it is given one that is nothing but memory.
"""

from __future__ import annotations

import os
import ssl

from quota.tls.material import Material


def server_context(material: Material, *, requires_client: bool = True) -> ssl.SSLContext:
    """For who is connected to. `requires_client`: whoever shows no certificate is refused. Raises ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    _prepare(context, material)
    context.verify_mode = ssl.CERT_REQUIRED if requires_client else ssl.CERT_OPTIONAL
    return context


def client_context(material: Material, *, checks_host: bool) -> ssl.SSLContext:
    """For who connects. Without `checks_host` the caller has to look whose the certificate is. Raises ValueError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = checks_host
    _prepare(context, material)
    return context


def load_chain(context: ssl.SSLContext, chain: str, key: str) -> None:
    """Have it show this chain, PEM. Raises ssl.SSLError, ValueError."""
    memory = os.memfd_create("certificate", os.MFD_CLOEXEC)
    try:
        os.write(memory, f"{chain.rstrip()}\n{key.rstrip()}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{memory}", password=_no_password)
    finally:
        os.close(memory)


def _prepare(context: ssl.SSLContext, material: Material) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_TICKET
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority below a root may be all that is trusted
    try:
        load_chain(context, material.chain, material.key)
        context.load_verify_locations(cadata=material.authorities)
    except ssl.SSLError as error:
        raise ValueError(f"certificate not usable: {error.reason or error}") from error


def _no_password() -> str:
    """Of a key that is encrypted OpenSSL would ask for one at the terminal."""
    raise ValueError("the private key is encrypted")
