"""Failed logins of one instance: who fails often waits longer for the answer, and then is not heard for a while.

Counted by source and user together. Who guesses at alice's password from one address does not keep her out from another; an
address that is behind many users is not shut for all of them. An attempt counts from its beginning, so that a hundred at once
are a hundred, and one that succeeds has not counted. Beyond `MOST` failures in `WITHIN_S` an attempt is refused without a look
at its proof, and told the same sentence as any other.

Bounded: `MOST_PAIRS` are remembered, those that came last.
"""

from __future__ import annotations

from collections import deque

MOST, WITHIN_S = 20, 60.0
MOST_PAIRS = 1_024
LEAST_DELAY_S, MOST_DELAY_S = 0.1, 2.0


class Attempts:
    """Times are monotonic seconds, given by the caller."""

    __slots__ = ("_failed",)

    def __init__(self) -> None:
        self._failed: dict[tuple[str, str], deque[float]] = {}

    def begin(self, source: str, user: str, now: float) -> bool:
        """One more; it counts as failed until it has succeeded. False: it is not to be looked at."""
        key = (source, user)
        times = self._failed.pop(key, None)
        if times is None:
            times = deque(maxlen=MOST)
            if len(self._failed) >= MOST_PAIRS:
                del self._failed[next(iter(self._failed))]
        self._failed[key] = times  # the last in order
        while times and now - times[0] >= WITHIN_S:
            times.popleft()
        if len(times) >= MOST:
            return False
        times.append(now)
        return True

    def succeeded(self, source: str, user: str) -> None:
        """The last one was right."""
        times = self._failed.get((source, user))
        if times:
            times.pop()
            if not times:
                del self._failed[source, user]

    def delay_s(self, source: str, user: str) -> float:
        """How long who has just failed waits to be told."""
        failures = len(self._failed.get((source, user), ()))
        return min(MOST_DELAY_S, LEAST_DELAY_S * 2.0 ** max(0, failures - 1))

    @property
    def remembered(self) -> int:
        """How many pairs of source and user."""
        return len(self._failed)
