"""How fast an instance may have the controller change things (KIP-599): partitions made, added or deleted, a second.

Each of them is several writes to ZooKeeper and a word to every broker, which all instances share; so each costs a token of
the instance's bucket on the controller. As in Kafka a bucket saves up what the rate gives in all windows of
`controller.quota.window.*`, and a change is let through while nothing is owed, whatever it costs: the debt has to be paid
before the next one. A change that is refused for another reason, or only validated, costs nothing.

strict      from the versions on that know THROTTLING_QUOTA_EXCEEDED. While something is owed a topic is refused with it,
            and `throttle_time_ms` says when to come again. Clients do so by themselves
patient     older versions would take that for a failure. Kafka lets their requests through whole and then stops reading
            from the connection; but so an instance with a thousand connections is let through a thousand times. Here the
            next such request of the instance, on whatever connection, waits until the debt is paid, one behind the
            other, for `LONGEST_WAIT_S` at most; then it is told that its time is over, which every version knows

The internal listener pays nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tasks import Future, either, sleep
from dataplane.throttle.debt_queue import throttle_ms
from quota.core.bucket import TokenBucket

if TYPE_CHECKING:
    from dataplane.config import Settings
    from dataplane.doors import Loop

LONGEST_WAIT_S = 10.0
"""Of a request that cannot be told to come again: clients give theirs up after 30 s by default."""


class MutationBucket(TokenBucket):
    """Tokens, not bytes; and what is saved up are many seconds' worth, since topics are made in handfuls."""

    __slots__ = ("has_turn", "waiting")

    def __init__(self, settings: Settings, now: float) -> None:
        super().__init__(settings.controller_mutation_rate, now)
        self._burst = self._level = _burst(settings)
        self.has_turn = False  # somebody
        self.waiting: deque[Future[None]] = deque()  # for their turn; those are done that wait no more

    def follow(self, settings: Settings, now: float) -> None:
        """They may be others than before."""
        self.set_rate(settings.controller_mutation_rate, now)
        self._burst = _burst(settings)

    def next_turn(self) -> None:
        """Whoever had it is through."""
        while self.waiting:
            following = self.waiting.popleft()
            if not following.done:
                following.resolve(None)
                return
        self.has_turn = False


def _burst(settings: Settings) -> float:
    seconds = settings.controller_quota_window_num * settings.controller_quota_window_size_seconds
    return float(settings.controller_mutation_rate * seconds)


class Owner(Protocol):
    """An instance, as far as this is concerned."""

    mutation_bucket: MutationBucket | None


def mutation_bucket(instance: Owner, settings: Settings, now: float) -> MutationBucket:
    """An instance's bucket on this broker, made when it is first asked for."""
    bucket = instance.mutation_bucket
    if bucket is None:
        bucket = instance.mutation_bucket = MutationBucket(settings, now)
    bucket.follow(settings, now)
    return bucket


class Toll(Protocol):
    """What one request pays."""

    def pay(self, mutations: int) -> None:
        """Before a change is made. Raises ApiError: it may not be."""
        ...

    def decided(self) -> None:
        """Nothing more will be paid: requests that wait for their turn may go on. Harmless when said again."""
        ...


class Free:
    """Of who pays nothing, and the beginning of the others."""

    async def turn(self) -> None:
        """Wait until the request may begin. Raises ApiError: its time is over."""

    def pay(self, mutations: int) -> None:
        """See `Toll`."""

    def decided(self) -> None:
        """See `Toll`."""

    @property
    def throttle_time_ms(self) -> int:
        """What the answer says."""
        return 0


FREE = Free()


class StrictToll(Free):
    """Of versions that can be told to come again. Nothing waits."""

    def __init__(self, bucket: MutationBucket, loop: Loop) -> None:
        self._bucket, self._clock = bucket, loop.clock
        self._has_refused = False

    def pay(self, mutations: int) -> None:
        now = self._clock.monotonic()
        delay_s = self._bucket.delay(now)
        if delay_s:
            self._has_refused = True
            raise ApiError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"the instance may have {self._bucket.rate} partitions a second made, added or deleted: "
                f"come again in {delay_s:.1f} s",
            )
        self._bucket.charge(mutations, now)

    @property
    def throttle_time_ms(self) -> int:
        """As Kafka, only where something was refused."""
        return throttle_ms(self._bucket.delay(self._clock.monotonic())) if self._has_refused else 0


class PatientToll(Free):
    """Of versions that cannot."""

    def __init__(self, bucket: MutationBucket, loop: Loop, patience_s: float) -> None:
        self._bucket, self._loop = bucket, loop
        self._patience_s = max(0.0, min(patience_s, LONGEST_WAIT_S))
        self._has_turn = False

    async def turn(self) -> None:
        """See `Free`. Whoever has it keeps it until it has paid: what it will have to pay is not known before."""
        bucket, loop = self._bucket, self._loop
        if bucket.has_turn or bucket.delay(loop.clock.monotonic()):
            await self._wait(sleep(loop, self._patience_s))
        self._has_turn = bucket.has_turn = True

    async def _wait(self, late: Future[None]) -> None:
        bucket, loop = self._bucket, self._loop
        if bucket.has_turn:
            turn: Future[None] = Future()
            bucket.waiting.append(turn)
            if not await either(turn, late):
                turn.resolve(None)  # passed over when it would be its turn
                raise self._too_late()
        self._has_turn = bucket.has_turn = True
        while delay_s := bucket.delay(loop.clock.monotonic()):
            if not await either(sleep(loop, delay_s), late):
                self.decided()
                raise self._too_late()

    def _too_late(self) -> ApiError:
        return ApiError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"the instance may have {self._bucket.rate} partitions a second made, added or deleted, and others were first",
        )

    def pay(self, mutations: int) -> None:
        self._bucket.charge(mutations, self._loop.clock.monotonic())

    def decided(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._loop.call_soon(self._bucket.next_turn)  # not on this stack: each would stand on the one before

    @property
    def throttle_time_ms(self) -> int:
        """What is owed, by whomever."""
        return throttle_ms(self._bucket.delay(self._loop.clock.monotonic()))
