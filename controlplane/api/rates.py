"""How many requests an API key, and its organisation, may make by REST in a minute.

======================  ========= =========  =====================================================================
counted by              reads     changes    why
======================  ========= =========  =====================================================================
API key                 3,000     600        a program that has gone wild does not take what the others need
organisation            12,000    2,400      nor do many keys
======================  ========= =========  =====================================================================

These are the defaults; SLUICE_REST_LIMITS says others, 0 is none. GET, HEAD and OPTIONS read, all else counts as a change, dry
runs and questions that are asked by POST as well. A request above its key's own limit is not counted for the organisation: one
key does not use up what is the others'. The counts are in the cache that all web processes share, by the minute of the clock:
who uses up one minute at its end and the next one at its beginning makes twice as many in a row.

Not counted: what needs no key (/health, /metrics, the schema), and operators of the service with a key without limits, who look
after an incident. Where the cache is away requests are let through, and the cache is not asked for some seconds: each question
could take one. How many were let through so is told to Prometheus.

Answers have the headers of draft-ietf-httpapi-ratelimit-headers-06: RateLimit-Limit, -Remaining and -Reset (seconds) of
whichever of the two limits is nearer to its end, and both in RateLimit-Policy. What is too much is 429 `too_many_requests`, with
Retry-After.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.core import kept
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import TooManyRequests

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

LOG = logging.getLogger(__name__)
WINDOW_S = 60
READING = ("GET", "HEAD", "OPTIONS")
READS, CHANGES = "reads", "changes"
KEY, ORGANISATION = "key", "organisation"
AWAY_S = 5.0
"""So long a cache that did not answer is not asked."""
_STATE = "_sluice_rates"


@dataclass(frozen=True, slots=True)
class Count:
    """Of one limit, this request included."""

    whose: str
    limit: int
    used: int

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.used)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a request is answered with besides its answer."""

    headers: Mapping[str, str]
    refusal: TooManyRequests | None = None


class _Away:
    """Since when the cache does not answer, and how many requests were let through uncounted. Of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until_s = 0.0
        self.uncounted = 0

    def is_asked(self) -> bool:
        return monotonic() >= self._until_s

    def let_through(self, *, was_asked: bool) -> None:
        """One request more; `was_asked`: the cache has just failed to answer."""
        with self._lock:
            self.uncounted += 1
            if was_asked:
                self._until_s = monotonic() + AWAY_S

    def forget(self) -> None:
        """As at the start of the process."""
        with self._lock:
            self._until_s, self.uncounted = 0.0, 0


AWAY = _Away()


def admit(request: HttpRequest, *, key: str, organisation: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Count a request, once however often it is asked. Raises TooManyRequests."""
    outcome: _Outcome | None = getattr(request, _STATE, None)
    if outcome is None:
        kind = READS if request.method in READING else CHANGES
        outcome = _counted({KEY: key, ORGANISATION: organisation}, kind, int(clock.now().timestamp()))
        setattr(request, _STATE, outcome)
    if outcome.refusal is not None:
        raise outcome.refusal


def metrics_text() -> str:
    """A line of /metrics, of the process that answers."""
    name = "sluice_rest_uncounted_requests_total"
    return f'# TYPE {name} counter\n{name}{{process="{os.getpid()}"}} {AWAY.uncounted}\n'


class RateLimitMiddleware:
    """Gives answers to counted requests their headers, whoever answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass on, and add to the answer."""
        response = self._get_response(request)
        outcome: _Outcome | None = getattr(request, _STATE, None)
        for name, value in outcome.headers.items() if outcome else ():
            response.headers[name] = value
        return response


def _counted(ids: Mapping[str, str], kind: str, now_s: int) -> _Outcome:
    wanted = {whose: settings.ENVIRONMENT.rest_limits[f"{whose}_{kind}"] for whose in ids}
    counts: list[Count] = []
    for whose, limit in wanted.items():
        if not limit:
            continue
        used = _used(f"rest:{whose}:{ids[whose]}:{kind}:{now_s // WINDOW_S}")
        if used is None:
            return _Outcome({})
        counts.append(Count(whose, limit, used))
        if used > limit:  # nor is it counted for those behind
            break
    return _outcome(counts, [limit for limit in wanted.values() if limit], WINDOW_S - now_s % WINDOW_S, kind)


def _used(name: str) -> int | None:
    """None: the cache is away."""
    if not AWAY.is_asked():
        AWAY.let_through(was_asked=False)
        return None
    used = kept.counted(name, WINDOW_S, LOG, "requests are let through uncounted")
    if used is None:
        AWAY.let_through(was_asked=True)
    return used


def _outcome(counts: list[Count], limits: list[int], reset_s: int, kind: str) -> _Outcome:
    if not counts:
        return _Outcome({})
    nearest = min(counts, key=lambda count: count.remaining)
    headers = {
        "RateLimit-Limit": str(nearest.limit),
        "RateLimit-Remaining": str(nearest.remaining),
        "RateLimit-Reset": str(reset_s),
        "RateLimit-Policy": ", ".join(f"{limit};w={WINDOW_S}" for limit in limits),
    }
    over = next((count for count in counts if count.used > count.limit), None)
    if over is None:
        return _Outcome(headers)
    return _Outcome(headers, TooManyRequests(_SAID[over.whose, kind].format(limit=over.limit), reset_s))


_SAID = {
    (KEY, READS): "this API key has made {limit} requests in this minute",
    (KEY, CHANGES): "this API key has made {limit} changes in this minute",
    (ORGANISATION, READS): "the organisation has made {limit} requests in this minute",
    (ORGANISATION, CHANGES): "the organisation has made {limit} changes in this minute",
}
