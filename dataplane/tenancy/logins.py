"""Tenants' clients say who they are (SASL): what a route offers, where an exchange stands, and what becomes of its session.

::

    not logged in --begin--> an exchange --take, take...--> logged in, for a while or for good --begin--> again (KIP-368)
                                  |--------> failed: told after a while, and the connection ends
                                  `--------> refused by a token of the mechanism's own: told after a while, and failed with
                                             whatever the client answers (RFC 7628)

A session has a `Login` while an exchange is under way. When it is over `authenticated` says how it ended; who drives the
connection (`requests.introduction`) acts on that. A session that logs in again may change neither its principal nor its
mechanism.

Proofs that take long are verified beside the loop, one of each instance at a time (`verifying`). Whoever fails waits for the
answer (`security.attempts`); so many wait at once, what comes then is closed on without one. A user who is gone when his proof
has been verified has failed, and so has a token whose issuer is gone. A failure counts, and is audited, when it is known, once.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dataplane.security.attempts import LEAST_DELAY_S, Attempts
from dataplane.security.exchange import Exchange, Judged, Proof, SaslError, Verified, Wrong
from dataplane.security.known import KnownUsers
from dataplane.security.oauthbearer import OauthBearer
from dataplane.security.plain import Plain
from dataplane.security.scram import NONCE_BYTES, Scram
from dataplane.tasks import Future, Later, without_traceback
from dataplane.tenancy.verifying import Verifying
from quota.contracts.instance import Route
from quota.contracts.users import ScramMechanism

if TYPE_CHECKING:
    from dataplane.doors import Doors, Timer
    from dataplane.tenancy.instance import Instance
    from dataplane.tenancy.session import Session

BETWEEN_LOGINS_S = 1.0
"""A connection logs in again this often at most, as in Kafka."""
MOST_TOLD_LATER = 200
"""Failures of one instance that wait to be told."""
LONGEST_BY_TOKEN_MS = 24 * 3_600_000
"""Of a token that is good for longer. Timers beyond some weeks are none that a system keeps."""
_SCRAM = {mechanism.value: mechanism for mechanism in ScramMechanism}
_SERVED = (Plain.mechanism, *_SCRAM, OauthBearer.mechanism)


@dataclass(slots=True)
class Login:
    """An exchange that is under way on a connection."""

    exchange: Exchange
    is_raw: bool  # its tokens come without headers: SaslHandshake version 0
    client_id: str = ""  # of the request that began it
    bad_mechanism: str | None = None  # which one, where a session that logs in again chose another than it had
    refused: str | None = None  # who was told that his proof is wrong, and answers it before the failure; None: nobody


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client is told."""

    token: bytes = b""
    error: str | None = None  # a sentence: it has failed
    lifetime_ms: int = 0  # for which the session is good; 0: it does not end
    is_dropped: bool = False  # too many wait to be told: its connection ends without an answer


class Pending(Later[Any]):
    """An answer that comes later; until then its connection is not read."""

    __slots__ = ("forget",)

    def __init__(self) -> None:
        super().__init__()
        self.forget: Callable[[], None] | None = None  # what it waits for now

    @property
    def held_until(self) -> Future[Any]:
        return self

    def become(self, reply: Callable[[], Any]) -> None:
        """It is what this returns, or what that becomes, or the error."""
        try:
            found = reply()
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            self.fail(without_traceback(error))
            return
        if isinstance(found, Pending):
            self.forget = found.give_up
            found.then(lambda future: self.become(future.result))
        else:
            self.resolve(found)

    def give_up(self) -> None:
        forget, self.forget = self.forget, None
        if forget is not None and not self.done:
            forget()


_DROPPED = Answer(error="", is_dropped=True)


def offered(route: Route) -> tuple[str, ...]:
    """The mechanisms by which clients may log in on a route, in its order."""
    return tuple(one for one in route.offered if one in _SERVED)


class Logins:
    """Of all instances on this broker. `secret` is the cluster's: names that do not exist look alike on all brokers."""

    def __init__(self, doors: Doors, secret: str, most_lifetime_ms: Callable[[], int]) -> None:
        self._doors, self._most_lifetime_ms = doors, most_lifetime_ms
        self._secret = secret.encode() or doors.random.randbytes(32)
        self._verifying = Verifying(doors.background)
        self._known: dict[str, KnownUsers] = {}  # these four by the instance's key
        self._attempts: dict[str, Attempts] = {}
        self._waiting: dict[str, int] = {}
        self._outcomes: dict[str, list[int]] = {}
        self.on_outcome: Callable[[Session, str, bool, str | None], None] = _nobody_hears
        """Called with the session, the user that it says to be, whether that was right, and why not, where that is known."""

    def forget(self, account: str) -> None:
        """An instance is gone."""
        self._known.pop(account, None)
        self._attempts.pop(account, None)
        self._outcomes.pop(account, None)

    def outcomes(self) -> dict[str, tuple[int, int]]:
        """Of each instance, by its key: logins that succeeded and that failed, since the beginning."""
        return {account: (good, bad) for account, (good, bad) in self._outcomes.items()}

    # --- an exchange --------------------------------------------------------------------------------------------------

    def may_begin(self, session: Session) -> bool:
        """Whether one that has logged in may do so again now: where it does not last for ever, and not all the time."""
        now = self._doors.clock.monotonic()
        return session.expires_s is not None and now - session.began_s >= BETWEEN_LOGINS_S

    def begin(self, session: Session, mechanism: str, *, is_raw: bool, client_id: str) -> None:
        """An exchange by a mechanism that its route offers."""
        instance = session.instance
        assert instance is not None
        session.began_s = self._doors.clock.monotonic()
        is_other = session.mechanism is not None and mechanism != session.mechanism
        bad_mechanism = mechanism if is_other else None
        session.login = Login(self._exchange(instance, mechanism), is_raw, client_id, bad_mechanism)

    def _exchange(self, instance: Instance, mechanism: str) -> Exchange:
        known = self._known.get(instance.names.key)
        if known is None or known.users is not instance.users:
            # A secret of each instance's own: that a name does not exist in one says nothing about another.
            secret = hmac.digest(self._secret, f"sasl {instance.spec.id}".encode(), "sha256")
            known = self._known[instance.names.key] = KnownUsers(instance.users, secret)
        if mechanism == Plain.mechanism:
            return Plain(known)
        if mechanism == OauthBearer.mechanism:
            return OauthBearer(instance.token_issuers)
        nonce = self._doors.random.randbytes(NONCE_BYTES)
        return Scram(_SCRAM[mechanism], known, nonce, self._doors.clock.now_ms())

    def take(self, session: Session, token: bytes, say: Callable[[Answer], Any]) -> Any:
        """What a client says next in its exchange. What `say` makes of the answer, or a future of it."""
        login = session.login
        assert login is not None
        if login.bad_mechanism is not None:
            text = "SASL mechanism '{}' requested by client is not supported for re-authentication of mechanism '{}'"
            return self._failed(session, "", text.format(login.bad_mechanism, session.mechanism), say)
        try:
            found = login.exchange.take(token)
        except SaslError as error:
            return self._failed(session, login.refused or "", error.told, say)
        if not isinstance(found, Proof):
            return say(Answer(found))
        return self._judge(session, found, say)

    # --- its end ------------------------------------------------------------------------------------------------------

    def _judge(self, session: Session, proof: Proof, say: Callable[[Answer], Any]) -> Any:
        attempts = self._attempts.setdefault(session.account, Attempts())
        if not attempts.begin(session.peer, proof.user, self._doors.clock.monotonic()):
            return self._wrong(session, proof, Wrong("too many failures within a minute"), say)
        now_ms = self._doors.clock.now_ms()
        if not proof.takes_long:
            return self._judged(session, proof, proof.verify(now_ms), say)
        pending = Pending()
        job = self._verifying.submit(session.account, session.peer, lambda: proof.verify(now_ms))
        if job is None:
            self._count_failure(session, proof.user)
            return say(self._over(session, _DROPPED))
        pending.forget = job.forget

        def verified(future: Future[Judged]) -> None:
            pending.forget = None
            pending.become(lambda: self._judged(session, proof, future.result(), say))

        job.then(verified)
        return pending

    def _judged(self, session: Session, proof: Proof, verified: Judged, say: Callable[[Answer], Any]) -> Any:
        instance, login = session.instance, session.login
        assert instance is not None
        assert login is not None
        if not isinstance(verified, Verified):
            return self._wrong(session, proof, verified, say)
        if not _still_there(instance, proof.user, verified):
            return self._wrong(session, proof, None, say)
        if session.mechanism is not None and session.user != proof.user:
            text = f"Cannot change principals during re-authentication from User.{session.user}: User.{proof.user}"
            return self._failed(session, proof.user, text, say)
        self._attempts.setdefault(session.account, Attempts()).succeeded(session.peer, proof.user)
        self._outcomes.setdefault(session.account, [0, 0])[0] += 1
        lifetime_ms = self._lifetime_ms(verified)
        session.log_in(
            proof.user,
            login.exchange.mechanism,
            self._doors.clock.monotonic() + lifetime_ms / 1000 if lifetime_ms else None,
            verified.issuer,
        )
        self.on_outcome(session, proof.user, True, None)
        return say(Answer(verified.said, lifetime_ms=lifetime_ms))

    def _lifetime_ms(self, verified: Verified) -> int:
        most_ms = self._most_lifetime_ms()
        if verified.expires_ms is None:
            return max(0, most_ms)
        left_ms = min(LONGEST_BY_TOKEN_MS, max(1, verified.expires_ms - self._doors.clock.now_ms()))
        return min(left_ms, most_ms) if most_ms > 0 else left_ms

    def _wrong(self, session: Session, proof: Proof, wrong: Wrong | None, say: Callable[[Answer], Any]) -> Any:
        """What becomes of a proof that does not prove it: the mechanism's own refusal first, where it has one."""
        login, refusal = session.login, proof.refusal
        assert login is not None
        why = wrong.why if wrong is not None else None
        if refusal is None:
            return self._failed(session, proof.user, None, say, why)
        self._count_failure(session, proof.user, why)
        login.refused = proof.user
        return self.tell_later(session, self._delay_s(session, proof.user), lambda: say(Answer(refusal)), say)

    def _count_failure(self, session: Session, user: str, why: str | None = None) -> None:
        self._outcomes.setdefault(session.account, [0, 0])[1] += 1
        self.on_outcome(session, user, False, why)

    def _over(self, session: Session, answer: Answer) -> Answer:
        session.login = None
        session.authenticated = False
        return answer

    def _failed(
        self, session: Session, user: str, told: str | None, say: Callable[[Answer], Any], why: str | None = None
    ) -> Any:
        """The answer, after a while."""
        login = session.login
        assert login is not None
        if login.refused is None:
            self._count_failure(session, user, why)
        when = "authentication" if session.mechanism is None else "re-authentication"
        text = f"Authentication failed during {when} due to invalid credentials with SASL mechanism {login.exchange.mechanism}"
        return self.tell_later(
            session, self._delay_s(session, user), lambda: say(self._over(session, Answer(error=told or text))), say
        )

    def _delay_s(self, session: Session, user: str) -> float:
        attempts = self._attempts.get(session.account)
        return attempts.delay_s(session.peer, user) if attempts is not None else LEAST_DELAY_S

    def tell_later(
        self, session: Session, delay_s: float, tell: Callable[[], Any], say: Callable[[Answer], Any]
    ) -> Any:
        """What `tell` says, so much later; what `say` does of a client that is dropped, where too many wait."""
        account = session.account
        if self._waiting.get(account, 0) >= MOST_TOLD_LATER:
            return say(self._over(session, _DROPPED))
        self._waiting[account] = self._waiting.get(account, 0) + 1
        pending = Pending()
        timer: Timer

        def gone() -> None:
            timer.cancel()
            self._told(account)

        def ring() -> None:
            pending.forget = None
            self._told(account)
            pending.become(tell)

        timer = self._doors.loop.call_later(delay_s, ring)
        pending.forget = gone
        return pending

    def _told(self, account: str) -> None:
        left = self._waiting[account] - 1
        if left:
            self._waiting[account] = left
        else:
            del self._waiting[account]


def _nobody_hears(_session: Session, _user: str, _is_right: bool, _why: str | None) -> None:
    """Of logins."""


def _still_there(instance: Instance, user: str, verified: Verified) -> bool:
    """Whether what vouched for him still does: user, password or issuer may have gone meanwhile."""
    if verified.issuer is not None:
        return instance.trusts(verified.issuer)
    if verified.credential is None:
        return True
    found = instance.users.get(user)
    stored_key = verified.credential.stored_key
    return found is not None and any(one.stored_key == stored_key for one in found.credentials)
