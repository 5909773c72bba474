"""How many requests of an instance were answered here, with which errors, how long each took: since it was taken last.

A request is counted where its answer is given to its connection (`requests.answers`), which is the one place that all answers
pass; there the time since it was read is put into a bucket. Most requests wait for nothing; those that came and went together are
counted together. What waited, or was told to wait, has `Delays`. Lists come with the first request of an API, so an idle instance
has empty dicts. API keys are those of the table of handlers, and error codes Kafka's: what is kept is bounded.

`take` empties it and gives what `quota.contracts.requests` says. Times are floats until then.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from quota.contracts.requests import BOUNDS_US, BUCKETS, ApiCounts, Histogram, RequestCounts

if TYPE_CHECKING:
    from collections.abc import Iterable

BOUNDS_S = tuple(bound / 1e6 for bound in BOUNDS_US)
SUM = BUCKETS
"""In a list of counts by bucket: the place of the sum of all times, in seconds."""
_US = 1e6


def api_name(key: int) -> str:
    """As Kafka's metrics call an API: ``ListOffsets``."""
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


API_NAMES = {int(key): api_name(key) for key in ApiKey}
ERROR_NAMES = {int(code): code.name for code in ErrorCode}


class Delays:
    """Of one request that waited, or whose client is told to: seconds."""

    __slots__ = ("began_s", "key", "since_s", "told_s", "waited_s")

    def __init__(self, key: int, began_s: float) -> None:
        self.key, self.began_s = key, began_s  # of the API; monotonic
        self.waited_s = 0.0  # for others than the loop
        self.told_s = 0.0  # before its client's next request
        self.since_s: float | None = None  # monotonic: its answer is there since then, and one before it is not


class RequestFigures:
    """Of one instance, by API key: counts by bucket, and at `SUM` the sum in seconds."""

    __slots__ = ("_at_once", "_delayed", "_errors", "_unanswered")

    def __init__(self) -> None:
        self._at_once: dict[int, list[float]] = {}
        self._delayed: dict[int, tuple[list[float], list[float], list[float], list[float]]] = {}  # as PHASES
        self._errors: dict[tuple[int, int], int] = {}
        self._unanswered: dict[int, int] = {}

    def answered(self, key: int, took_s: float, count: int = 1) -> None:
        """So many requests of this API have their answers, each so many seconds after it came, and waited for nothing."""
        counts = self._at_once.get(key)
        if counts is None:
            counts = self._at_once[key] = _counts()
        counts[bisect_left(BOUNDS_S, took_s)] += count
        counts[SUM] += took_s * count

    def delayed(self, delays: Delays, now_s: float) -> None:
        """A request that waited, or whose client is told to, has its answer now."""
        phases = self._delayed.get(delays.key)
        if phases is None:
            phases = self._delayed[delays.key] = (_counts(), _counts(), _counts(), _counts())
        took_s, waited_s = now_s - delays.began_s, delays.waited_s
        if delays.since_s is not None:
            waited_s += max(0.0, now_s - delays.since_s)
        waited_s = min(waited_s, took_s)
        total, local, remote, throttle = phases
        _observe(total, took_s)
        _observe(local, took_s - waited_s)
        if waited_s:
            _observe(remote, waited_s)
        if delays.told_s:
            _observe(throttle, delays.told_s)

    def unanswered(self, key: int) -> None:
        """A request that has no answer is over."""
        self._unanswered[key] = self._unanswered.get(key, 0) + 1

    def refused(self, key: int, codes: Iterable[int]) -> None:
        """An answer has these error codes, of which 0 is none."""
        errors = self._errors
        for code in codes:
            if code:
                errors[key, code] = errors.get((key, code), 0) + 1

    def take(self) -> RequestCounts | None:
        """What was counted since this was asked last; None: nothing."""
        at_once, delayed, errors, unanswered = self._at_once, self._delayed, self._errors, self._unanswered
        if not (at_once or delayed or errors or unanswered):
            return None
        self._at_once, self._delayed, self._errors, self._unanswered = {}, {}, {}, {}
        found = RequestCounts()
        for key in dict.fromkeys((*at_once, *delayed, *unanswered, *(key for key, _ in errors))):
            if key not in API_NAMES:
                continue
            ours = found.apis[API_NAMES[key]] = ApiCounts(unanswered.get(key, 0))
            if key in at_once:
                ours.at_once = _histogram(at_once[key])
            if key in delayed:
                ours.total, ours.local, ours.remote, ours.throttle = map(_histogram, delayed[key])
        for (key, code), count in errors.items():
            if key in API_NAMES:
                found.apis[API_NAMES[key]].errors[ERROR_NAMES.get(code, f"CODE_{abs(code)}")] = count
        return found


def _counts() -> list[float]:
    return [0] * BUCKETS + [0.0]


def _observe(counts: list[float], seconds: float) -> None:
    counts[bisect_left(BOUNDS_S, seconds)] += 1
    counts[SUM] += seconds


def _histogram(counts: list[float]) -> Histogram:
    *by_bucket, seconds = counts
    return Histogram([int(count) for count in by_bucket], round(seconds * _US))
