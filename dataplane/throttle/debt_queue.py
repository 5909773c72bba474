"""Who may pass a bucket now, and who waits for its debt to be paid.

Where a bucket owes nothing and nobody waits, everybody passes, at the cost of one comparison. From the moment it owes, it
has a line: its rate is divided between its senders (`quota.core.shares`); one that asks for more than an equal part waits.
When the debt is paid the first is served, which leaves a debt of its own, for which the next one waits. Were each woken by
a timer of its own, all would wake at the same moment, one would be served, and the others would find the new debt and lie
down again: a tenant with a thousand connections would have the loop do all that a thousand times as often.

So a turn serves one request of a line, and what a line costs grows with what is served, not with how many wait. A bucket
that is blocked (a rate of 0) serves nobody; that somebody waits is noted in it, or the master would see no demand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from dataplane.doors import Callback, Loop, Timer
from quota.core.bucket import MAX_DELAY_S, TokenBucket
from quota.core.shares import EVERYBODY, QUIET_S, Sender, Share, Shares

NOTHING_S = 0.001
"""Less than this is not waited for."""
LOOK_AGAIN_S = 1.0
"""A rate may have changed: the master grants once in this time."""


class Waiting:
    """A request that waits. Its sender may give up."""

    __slots__ = ("_leave", "_serve", "size")

    def __init__(self, serve: Callback, size: int) -> None:
        self._serve: Callback | None = serve
        self._leave: Callable[[Waiting], None] | None = None
        self.size = size

    def stands(self, leave: Callable[[Waiting], None] | None) -> None:
        """In a line, which is left by `leave`; None: it has left it."""
        self._leave = leave

    def give_up(self) -> None:
        """It will not be served."""
        self._serve = None
        leave, self._leave = self._leave, None
        if leave is not None:  # at a rate of 0 nobody else would ever take it out
            leave(self)

    def serve(self) -> None:
        """Its time has come. May raise."""
        serve = self._serve
        self.give_up()
        if serve is not None:
            serve()


class DebtQueue:
    """Of one bucket, for as long as it owes, somebody waits, or somebody's share is of interest."""

    def __init__(self, loop: Loop, bucket: TokenBucket) -> None:
        self._loop, self._bucket = loop, bucket
        self._shares = Shares()
        self._waiting = 0
        self._waiting_size = 0
        self._timer: Timer | None = None
        self._forget_at = loop.clock.monotonic() + QUIET_S
        self._look_in(LOOK_AGAIN_S)

    def passes(self, sender: Sender, size: int, now: float) -> bool:
        """Whether a request of this size may pass."""
        rate = self._bucket.rate
        if rate is None:
            return True
        share = self._shares.of(sender, now)
        if not rate or share.line:
            return False
        if not self._waiting and self._bucket.delay(now) <= NOTHING_S:
            return True
        return share.earns and self._shares.earned(share, rate, now) >= max(size, 1)

    def used(self, sender: Sender, size: int, now: float) -> float:
        """It has passed. The seconds until the sender's part covers another one."""
        return self._shares.use(self._shares.of(sender, now), size, self._bucket.rate or 1, now)

    def ahead_s(self) -> float:
        """How long those who wait will take."""
        return self._waiting_size / self._bucket.rate if self._bucket.rate else 0.0

    def join(self, sender: Sender, size: int, serve: Callback, now: float) -> Waiting:
        """Call `serve` when the bucket owes nothing and nobody else is to be served before."""
        waiting = Waiting(serve, size)
        share = self._shares.of(sender, now)
        share.line.append(waiting)
        waiting.stands(lambda waiting: self._left(share, waiting))
        self._waiting += 1
        self._waiting_size += size
        self._note(now)
        if self._waiting == 1 or (share.earns and len(share.line) == 1):  # else others are due before it
            self._look_when_due(now)
        return waiting

    def _left(self, share: Share, waiting: Waiting) -> None:
        """A request has gone before its turn came. The one behind it may be due earlier."""
        was_first = share.line[0] is waiting
        share.line.remove(waiting)
        self._waiting -= 1
        self._waiting_size -= waiting.size
        if was_first and share.line and share.earns:
            self._look_when_due(self._loop.clock.monotonic())

    def _note(self, now: float) -> None:
        """Where nothing passes, only this shows that somebody wants to."""
        if self._bucket.rate == 0:
            self._bucket.wait(now)

    def _look_when_due(self, now: float) -> None:
        """When the debt is paid, or when a sender has earned what its request asks for."""
        rate = self._bucket.rate
        earned_s = self._shares.covered(rate, now)[1] if rate else LOOK_AGAIN_S
        self._look_in(min(self._bucket.delay(now), max(earned_s, NOTHING_S), LOOK_AGAIN_S))

    def _look_in(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._look)

    def _look(self) -> None:
        now = self._loop.clock.monotonic()
        rate = self._bucket.rate
        if not self._waiting:
            self._rest(now)
            return
        if now >= self._forget_at:  # a line need not be empty for hours
            self._forget_at = now + QUIET_S
            self._shares.forget_quiet(now)
        share = None
        if rate != 0:
            share = self._shares.first(rate or 1, now) if self._bucket.delay(now) <= NOTHING_S else None
            share = share or (self._shares.covered(rate, now)[0] if rate else None)
        if share is None:
            self._note(now)
            self._look_when_due(now)
        else:
            self._serve(share)

    def _rest(self, now: float) -> None:
        """Nobody waits. When nobody has a share either, and nothing is owed, the bucket needs no line."""
        self._shares.forget_quiet(now)
        if len(self._shares) or self._bucket.delay(now) > NOTHING_S:
            self._look_in(LOOK_AGAIN_S)
        else:
            self._bucket.line = None

    def _serve(self, share: Share) -> None:
        waiting = share.line.popleft()
        assert isinstance(waiting, Waiting)
        waiting.stands(None)
        self._waiting -= 1
        self._waiting_size -= waiting.size
        try:
            waiting.serve()
        finally:
            if self._waiting:
                self._look_when_due(self._loop.clock.monotonic())
            else:
                self._look_in(LOOK_AGAIN_S)


class DebtQueues:
    """Of all buckets of a broker. A bucket that suffices has none."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def passes(self, bucket: TokenBucket, sender: Sender, size: int, now: float) -> bool:
        """Whether a request of this size, that is yet to be charged, may pass now."""
        if bucket.line is None and bucket.paid_at <= now + NOTHING_S:
            return True
        return self._of(bucket).passes(sender, size, now)

    def charge(self, bucket: TokenBucket, sender: Sender, size: int, now: float) -> float:
        """A request has passed; the seconds that its sender should wait before the next."""
        delay_s = bucket.charge(size, now)
        if sender is EVERYBODY or (bucket.line is None and not delay_s):
            return delay_s
        return self.began(bucket, sender, size, delay_s, now)

    def began(self, bucket: TokenBucket, sender: Sender, size: int, delay_s: float, now: float) -> float:
        """The same of what was charged already, and owes `delay_s`: a sender that makes a debt has had more than its part."""
        line = self._of(bucket)
        earned_s = line.used(sender, size, now)
        return min(delay_s + line.ahead_s(), earned_s, MAX_DELAY_S) if delay_s else 0.0

    def join(self, bucket: TokenBucket, sender: Sender, size: int, serve: Callback) -> Waiting:
        """Call `serve` once, later, when a request of this size may pass. It may raise, and may join again."""
        return self._of(bucket).join(sender, size, serve, self._loop.clock.monotonic())

    def _of(self, bucket: TokenBucket) -> DebtQueue:
        line = bucket.line
        if not isinstance(line, DebtQueue):
            line = bucket.line = DebtQueue(self._loop, bucket)
        return line


def owed_s(bucket: TokenBucket, now: float) -> float:
    """The seconds until what has passed is paid for. A rate of 0 is not a debt."""
    return bucket.delay(now) if bucket.rate else 0.0


def throttle_ms(delay_s: float) -> int:
    """A delay as answers report it, rounded up: a client that waits as told is not early."""
    return math.ceil(delay_s * 1000)


def most_owing(buckets: Iterable[TokenBucket], now: float) -> TokenBucket | None:
    """The one whose debt is waited for longest; None: nothing is owed."""
    found, longest_s = None, NOTHING_S
    for bucket in buckets:
        left_s = owed_s(bucket, now)
        if left_s > longest_s:
            found, longest_s = bucket, left_s
    return found
