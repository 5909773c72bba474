"""TLS to ZooKeeper. Only the authority that is named is trusted, and the certificate has to name the host that was asked for."""

from __future__ import annotations

import ssl

from quota.contracts.zookeeper_login import Tls


def context_of(tls: Tls) -> ssl.SSLContext:
    """Made anew for each connection, so that files that were replaced count with the next one. Raises OSError."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=tls.ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.certificate:
        context.load_cert_chain(tls.certificate, tls.key or None)
    return context
