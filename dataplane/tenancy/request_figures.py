"""How many requests of an instance were answered here, with which errors, how long each took: since it was taken last.

A request is counted where its answer is given to its connection (`requests.answers`), which is the one place that all answers
pass; there the time since it was read is put into a bucket. Most requests wait for nothing, and cost one look-up and two
additions; what waited, or was told to wait, has `Delays`. Lists come with the first request of an API, so an idle instance has
two empty dicts. API keys are those of the table of handlers, and error codes Kafka's: what is kept is bounded.

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

    __slots__ = ("since_s", "told_s", "waited_s")

    def __init__(self) -> None:
        self.waited_s = 0.0  # for others than the loop
        self.told_s = 0.0  # before its client's next request
        self.since_s: float | None = None  # monotonic: its answer is there since then, and one before it is not


class RequestFigures:
    """Of one instance. `at_once` is by API key: counts by bucket, and at `SUM` the sum in seconds."""

    __slots__ = ("_delayed", "_errors", "_unanswered", "at_once")

    def __init__(self) -> None:
        self.at_once: dict[int, list[float]] = {}
        self._delayed: dict[int, tuple[list[float], list[float], list[float], list[float]]] = {}  # as PHASES
        self._errors: dict[tuple[int, int], int] = {}
        self._unanswered: dict[int, int] = {}

    def answered(self, key: int, took_s: float, delays: Delays | None) -> None:
        """A request of this API has its answer, so many seconds after it came."""
        if delays is None:
            counts = self.at_once.get(key)
            if counts is None:
                counts = self.at_once[key] = _counts()
            _observe(counts, took_s)
            return
        phases = self._delayed.get(key)
        if phases is None:
            phases = self._delayed[key] = (_counts(), _counts(), _counts(), _counts())
        waited_s = min(delays.waited_s, took_s)
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
        at_once, delayed, errors, unanswered = self.at_once, self._delayed, self._errors, self._unanswered
        if not (at_once or delayed or errors or unanswered):
            return None
        self.at_once, self._delayed, self._errors, self._unanswered = {}, {}, {}, {}
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
