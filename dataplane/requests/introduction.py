"""Who is on a connection: until that is known, for as long as it is good, and again (SASL; KIP-368).

A connection has an introduction where it has to log in. Until it has, it has small frames, few requests and little time, and
counts among those who have not (`newcomers` of its instance, `strangers` of the internal listener). When the time for which a
login is good is over, whatever the short cuts have learned is forgotten, and the slow way refuses: they need not ask.

Tokens without headers (SaslHandshake version 0) are taken where the short cuts stand (`tokens`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dataplane.handlers.outcome import CloseConnectionError, Reply
from dataplane.protocol.api import ApiKey
from dataplane.protocol.headers import prefixed
from dataplane.requests.served import Served
from dataplane.requests.tokens import RawTokens
from dataplane.tasks import Future, Later
from dataplane.tenancy.logins import Answer, Pending

if TYPE_CHECKING:
    from dataplane.doors import Connection, Timer
    from dataplane.requests.slots import Parts, Slot
    from dataplane.security.strangers import Strangers
    from dataplane.tenancy.recent import Counters

UNAUTHENTICATED_FRAME_BYTES = 64 * 2**10
AUTHENTICATION_WITHIN_S = 10.0
MOST_BEFORE_AUTHENTICATION = 20
"""Requests. The longest way in has five; their answers wait in memory for a client that does not read them."""


class Introduced(Served, Protocol):
    """A connection that has to log in (`dispatch.ClientConnection`)."""

    def take_tokens(self, tokens: RawTokens | None) -> None:
        """Every frame is a token from now on; None: none is."""
        ...

    def forget_shapes(self) -> None:
        """Nothing that the short cuts have learned holds any more."""
        ...

    opened_s: float

    @property
    def client_id(self) -> str: ...

    def close(self) -> None: ...

    def look_again(self) -> None: ...

    def look(self, patience: int) -> None: ...

    def lately(self, now_s: float) -> tuple[float, Counters]: ...

    def tell_traffic(self) -> None: ...


class Introduction:
    """Of one connection. `strangers`: those of the internal listener, where it is one of them."""

    __slots__ = ("_asked", "_client", "_connection", "_deadline", "_strangers")

    def __init__(self, client: Introduced, connection: Connection, strangers: Strangers | None) -> None:
        self._client, self._connection, self._strangers = client, connection, strangers
        self._asked = 0  # requests since it has to log in
        self._deadline: Timer | None = client.broker.doors.loop.call_later(AUTHENTICATION_WITHIN_S, connection.close)
        connection.max_frame_bytes = UNAUTHENTICATED_FRAME_BYTES
        if client.session.instance is not None:
            client.session.instance.newcomers.came(client)
        elif strangers is not None:
            strangers.came(client)

    def gone(self) -> None:
        """The connection is."""
        self._is_none_of_them()
        self._no_deadline()

    def one_more(self) -> None:
        """A request before it has logged in. Raises CloseConnectionError."""
        self._asked += 1
        if self._asked > MOST_BEFORE_AUTHENTICATION:
            raise CloseConnectionError("too many requests before authentication")

    def told(self, reply: Reply) -> Reply:
        """What it is told to its token: on the internal listener who has failed waits for it, and is not read meanwhile."""
        session, loop = self._client.session, self._client.broker.doors.loop
        if self._strangers is None or session.authenticated:
            return reply
        pending = Pending()
        delay_s = self._strangers.failed_s(session.peer, loop.clock.monotonic())
        pending.forget = loop.call_later(delay_s, lambda: pending.become(lambda: reply)).cancel
        return pending

    def look_after(self, reply: Reply) -> None:
        """What has become of it when this is answered; until then nothing that came behind is looked at."""
        if isinstance(reply, Future):
            reply.then(lambda _: self._look())
        else:
            self._look()

    def _look(self) -> None:
        client, session = self._client, self._client.session
        if client.answers.is_closed:
            return
        if session.login is not None:
            if session.login.is_raw:
                client.take_tokens(RawTokens(self._take))
        elif session.authenticated:
            self.let_in()
        else:
            self._connection.close_after_send()

    def let_in(self) -> None:
        """It is known who it is: by what was said, or by the certificate that was shown before the first request."""
        client, session = self._client, self._client.session
        settings, loop = client.broker.config.settings, client.broker.doors.loop
        self._asked = 0
        self._no_deadline()
        self._is_none_of_them()
        self._connection.max_frame_bytes = settings.socket_request_max_bytes
        if session.is_internal:
            return
        self._connection.max_frame_bytes = min(settings.socket_request_max_bytes, settings.tenant_max_request_bytes)
        client.turnstile.let_in(session)
        client.take_tokens(None)
        if session.expires_s is not None:
            self._deadline = loop.call_later(session.expires_s - loop.clock.monotonic(), self._expire)

    def _expire(self) -> None:
        """What it said of itself is too long ago. It may say it again: any other request ends it, a learned one too."""
        self._client.session.authenticated = False
        self._client.forget_shapes()

    def _no_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _is_none_of_them(self) -> None:
        instance = self._client.session.instance
        if instance is not None:
            instance.newcomers.went(self._client)
        elif self._strangers is not None:
            self._strangers.went(self._client)

    # --- tokens without headers ---------------------------------------------------------------------------------------

    def _take(self, token: bytes) -> None:
        client = self._client
        reply = client.broker.logins.take(client.session, token, _raw)
        client.answers.begin(ApiKey.SASL_AUTHENTICATE)  # which its bytes do not say
        slot = client.answers.reserve()
        if not isinstance(reply, Future):
            client.answers.fill(slot, reply)
            self._look()
            return
        client.answers.wait_at(slot, 0, reply if isinstance(reply, Later) else None)
        client.answers.hold_until(reply)
        reply.then(lambda future: self._taken(slot, future))

    def _taken(self, slot: Slot, future: Future[Any]) -> None:
        answers = self._client.answers
        answers.waited(slot, 0)
        if future.error is not None:
            self._connection.close()
        else:
            answers.fill(slot, future.result())
            self._look()


def _raw(answer: Answer) -> Parts:
    """A length and a token. There is no room to say that it has failed: the connection ends."""
    if answer.error is not None:
        raise CloseConnectionError(answer.error)
    return (prefixed(answer.token),)
