"""Mutual TLS within the cluster, at this broker's end: how its internal listener and the connections that it opens are secured.

Who somebody is follows from the certificate (`quota.tls.shown`), at both ends: who connects is that identity from then on, and
who is connected to has to be the one that was meant. What TLS is made with is read again when its files change, beside the loop.
"""

from __future__ import annotations

from collections.abc import Callable

from dataplane.doors import Doors, Timer, TlsClient, TlsServer
from dataplane.tasks import Future
from quota.contracts.identity import Identity
from quota.contracts.internal_security import InternalSecurity
from quota.tls.current import Current
from quota.tls.material import LOOK_EVERY_S
from quota.tls.shown import identity_shown, refusal

HANDSHAKES_PER_S = 200
"""That begin at the internal listener. In ten seconds these are more than may be there without having shown who they are
(`security.strangers`): whoever waits in vain is closed there, the oldest first, and nobody who comes is refused."""


class InternalTls:
    """Begin with `start`: from then on the files are looked at."""

    def __init__(self, current: Current, doors: Doors, security: InternalSecurity, log: Callable[[str], None]) -> None:
        self._current, self._doors, self.security, self._log = current, doors, security, log
        self._timer: Timer | None = None

    def server(self) -> TlsServer:
        """For a connection to the internal listener that has come now."""
        made = self._current.made
        beside = None if made.own.is_quick else self._doors.background.run
        return TlsServer(made.server, HANDSHAKES_PER_S, beside, takes_plaintext=self.security.takes_plaintext)

    def client(self, expected: Identity) -> TlsClient:
        """For a connection that is opened now, to this one."""
        made, rules = self._current.made, self._current.rules
        beside = None if made.own.is_quick else self._doors.background.run
        return TlsClient(made.client, beside, lambda certificate: refusal(certificate, expected, rules))

    def identity(self, certificate: bytes | None) -> Identity:
        """Who has shown this at the internal listener. Raises ValueError: nobody of the cluster."""
        if certificate is None:
            raise ValueError("it has shown no certificate")
        return identity_shown(certificate, self._current.rules)

    def start(self) -> None:
        self._timer = self._doors.loop.call_later(LOOK_EVERY_S, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now_ms = self._doors.clock.now_ms()
        self._doors.background.run(lambda: self._current.look(now_ms)).then(self._looked)

    def _looked(self, looked: Future[list[str]]) -> None:
        if self._timer is not None:  # else it was stopped
            self.start()
        for sentence in looked.result():
            self._log(sentence)
