"""TLS at the master's two ports: listeners whose every handshake takes the certificates that are there now.

asyncio's servers keep the context that they began with. OpenSSL asks, for each handshake, whether another is to be taken (what it
asks for is a server's name, whether the client has said one or not), and is given the current one.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable

from quota.contracts.identity import Identity
from quota.tls.contexts import server_context
from quota.tls.current import Current, Made
from quota.tls.material import LOOK_EVERY_S
from quota.tls.shown import identity_shown

HANDSHAKE_WITHIN_S = 5.0


class Secured:
    """Of one master."""

    def __init__(self, current: Current, log: Callable[[str], None]) -> None:
        self._current, self._log = current, log

    def reports(self) -> ssl.SSLContext:
        """For brokers, who have to show a certificate."""
        return self._following(lambda made: made.server)

    def http(self) -> ssl.SSLContext:
        """For readers, who show a certificate or say a credential."""
        return self._following(lambda made: made.open_server)

    def _following(self, wanted: Callable[[Made], ssl.SSLContext]) -> ssl.SSLContext:
        requires_client = wanted(self._current.made).verify_mode is ssl.CERT_REQUIRED
        listening = server_context(self._current.made.material, requires_client=requires_client)

        def take(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = wanted(self._current.made)

        listening.sni_callback = take
        return listening

    def identity(self, transport: asyncio.BaseTransport) -> Identity | None:
        """Who has shown a certificate; None: nobody. Raises ValueError: nobody of the cluster."""
        connection = transport.get_extra_info("ssl_object")
        certificate = connection.getpeercert(binary_form=True) if connection is not None else None
        return None if certificate is None else identity_shown(certificate, self._current.rules)

    async def watch(self) -> None:
        """Look at the files, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            for sentence in await asyncio.to_thread(self._current.look, int(time.time() * 1000)):
                self._log(sentence)
