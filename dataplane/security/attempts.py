"""Failed logins of one instance: who fails often waits longer for the answer, and then is not heard for a while.

Counted by source and user together. Who guesses at alice's password from one address does not keep her out from another; an
address that is behind many users is not shut for all of them. An attempt counts from its beginning, so that a hundred at once
are a hundred, and one that succeeds has not counted. Beyond `MOST` failures in `WITHIN_S` an attempt is refused without a look
at its proof, and told the same sentence as any other.

**Nobody clears his count by inventing names.** Of one address `MOST_NAMES` users are told apart, until their failures are a
minute old; all others of that address are counted together, as if they were one. So names cost an address its own hearing, and
nobody else's.

**Bounded:** `MOST_PAIRS` of address and user. Where there are more, addresses are forgotten: first those whose failures are all
too old to count, then those whose most guessed user was guessed at least. Who comes from so many addresses that he can make
that happen has twenty guesses from each of them anyway.
"""

from __future__ import annotations

from collections import deque

MOST, WITHIN_S = 20, 60.0
MOST_NAMES = 100
MOST_PAIRS = 4_096
LEAST_DELAY_S, MOST_DELAY_S = 0.1, 2.0
_FORGOTTEN_TOGETHER = MOST_PAIRS // 8
"""Pairs: to look at all addresses takes too long to do it for each that comes."""


class _Source:
    """An address: when users failed, those longest ago whose last failure is oldest."""

    __slots__ = ("names", "others")

    def __init__(self) -> None:
        self.names: dict[str, deque[float]] = {}
        self.others: deque[float] = deque(maxlen=MOST)  # of all users that are not among the names

    def __len__(self) -> int:
        return len(self.names) + bool(self.others)

    def begin(self, user: str, now: float) -> bool:
        """See `Attempts.begin`."""
        times = self.names.get(user)
        if times is None:
            times = self._newcomer(user, now)
        while times and now - times[0] >= WITHIN_S:
            times.popleft()
        if len(times) >= MOST:
            return False
        times.append(now)
        if times is not self.others:
            self.names[user] = self.names.pop(user)  # the last in order
        return True

    def _newcomer(self, user: str, now: float) -> deque[float]:
        while self.names:
            oldest = next(iter(self.names))
            if now - self.names[oldest][-1] < WITHIN_S:
                break
            del self.names[oldest]
        if len(self.names) >= MOST_NAMES:
            return self.others
        times = self.names[user] = deque(maxlen=MOST)
        return times

    def succeeded(self, user: str) -> None:
        times = self.names.get(user, self.others)
        if times:
            times.pop()
            if not times:
                self.names.pop(user, None)

    def failures(self, user: str) -> int:
        return len(self.names.get(user, self.others))

    def worst(self, now: float) -> int:
        """Of the user that failed most often within the minute; 0: it can be forgotten."""
        of_all = (*self.names.values(), self.others)
        return max((len(times) for times in of_all if times and now - times[-1] < WITHIN_S), default=0)


class Attempts:
    """Times are monotonic seconds, given by the caller."""

    __slots__ = ("_remembered", "_sources")

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}  # the last that tried at the end
        self._remembered = 0

    def begin(self, source: str, user: str, now: float) -> bool:
        """One more; it counts as failed until it has succeeded. False: it is not to be looked at."""
        found = self._sources.pop(source, None) or _Source()
        if self._remembered >= MOST_PAIRS:
            self._make_room(now)
        before = len(found)
        is_heard = found.begin(user, now)
        self._remembered += len(found) - before
        self._sources[source] = found
        return is_heard

    def _make_room(self, now: float) -> None:
        """Forget addresses: see the file's text."""
        room = 0
        for source in sorted(self._sources, key=lambda source: self._sources[source].worst(now)):
            room += len(self._sources.pop(source))
            if room >= _FORGOTTEN_TOGETHER:
                break
        self._remembered -= room

    def succeeded(self, source: str, user: str) -> None:
        """The last one was right."""
        found = self._sources.get(source)
        if found is not None:
            before = len(found)
            found.succeeded(user)
            self._remembered += len(found) - before
            if not found:
                del self._sources[source]

    def delay_s(self, source: str, user: str) -> float:
        """How long who has just failed waits to be told."""
        found = self._sources.get(source)
        failures = found.failures(user) if found is not None else 0
        return min(MOST_DELAY_S, LEAST_DELAY_S * 2.0 ** max(0, failures - 1))

    @property
    def remembered(self) -> int:
        """How many pairs of source and user."""
        return self._remembered
