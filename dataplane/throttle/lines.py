"""Who waits for a debt to be paid: one behind the other, with one timer for all of them.

A request that is parked joins the line of the bucket that owes. When the debt is paid, the first of the line is served,
which leaves a debt of its own, for which the next one waits. Were each woken by a timer of its own, all would wake at the
same moment, one would be served, and the others would find the new debt and lie down again: a tenant with a thousand
connections would have the loop do all that a thousand times as often, and his neighbours would wait for it.

So a turn serves one request of a line, and what a line costs grows with what is served, not with how many wait. A bucket
that is blocked (a rate of 0) never pays: then everybody waits until the moment that he was told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from dataplane.doors import Callback, Loop
from quota.core.bucket import TokenBucket

NOTHING_S = 0.001
"""Less than this is not waited for."""
LOOK_AGAIN_S = 1.0
"""A rate may have changed: the master grants once in this time."""


class _Waiting(NamedTuple):
    """A request that is parked."""

    told: float  # the moment until which its sender was told to wait
    serve: Callback


class Lines:
    """Of all buckets of a broker. `serve` may raise, and may join a line again."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._lines: dict[TokenBucket, deque[_Waiting]] = {}  # each has a timer, and somebody in it

    def join(self, bucket: TokenBucket, told: float, serve: Callback) -> None:
        """Call `serve` when the bucket owes nothing and those who came before have been served."""
        line = self._lines.get(bucket)
        if line is None:
            line = self._lines[bucket] = deque()
        line.append(_Waiting(told, serve))
        if len(line) == 1:
            self._look_later(bucket, line)

    def _look_later(self, bucket: TokenBucket, line: deque[_Waiting]) -> None:
        left_s = waits_s(bucket, line[0].told, self._loop.clock.monotonic())
        self._loop.call_later(min(left_s, LOOK_AGAIN_S), lambda: self._look(bucket, line))

    def _look(self, bucket: TokenBucket, line: deque[_Waiting]) -> None:
        if waits_s(bucket, line[0].told, self._loop.clock.monotonic()) > NOTHING_S:
            self._look_later(bucket, line)
            return
        try:
            line[0].serve()  # still in its place: whoever joins meanwhile sets no timer
        finally:
            line.popleft()
            if line:
                self._look_later(bucket, line)
            else:
                del self._lines[bucket]


def waits_s(bucket: TokenBucket, told: float, now: float) -> float:
    """How long somebody who was told to wait until a moment has to."""
    return max(0.0, told - now) if bucket.rate == 0 else bucket.delay(now)


def owed_s(bucket: TokenBucket, now: float) -> float:
    """The seconds until what has passed is paid for."""
    # An allocation of 0 is not a debt: a request that waited for ever would never show the master that there is demand.
    return bucket.delay(now) if bucket.rate else 0.0


def most_owing(buckets: Iterable[TokenBucket], now: float) -> TokenBucket | None:
    """The one whose debt is waited for longest; None: nothing is owed."""
    found, longest_s = None, NOTHING_S
    for bucket in buckets:
        left_s = owed_s(bucket, now)
        if left_s > longest_s:
            found, longest_s = bucket, left_s
    return found
