"""What metrics of the history are made of counts of requests. Pure.

A Produce takes until its records are as safe as `acks` asks. Of a Fetch the time that it waited for records is left out: clients
choose how long that may be, and most of it says only that nothing was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.history.metrics import PERCENTILES
from quota.contracts.requests import PHASES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quota.contracts.requests import ApiCounts, Histogram, RequestCounts

LATENCIES = {"produce": ("Produce", "total"), "fetch": ("Fetch", "local")}
"""Kafka's name of the API, and the phase that is shown as its latency."""
US = 1000
PLACES = 3


def carried_of(counts: RequestCounts, windows: int, seconds: float) -> dict[str, int]:
    """What flowed a second, to the byte, by the metrics' names; nothing where it is not known of all of these windows."""
    if counts.carried_windows != windows:
        return {}
    produced, consumed = counts.produced_bytes, counts.consumed_bytes
    return {"produce_bytes_per_s": round(produced / seconds), "consume_bytes_per_s": round(consumed / seconds)}


def values_of(counts: RequestCounts, seconds: float) -> dict[str, float | None]:
    """By the metrics' names. Of what did not happen there is no latency: None."""
    found: dict[str, float | None] = {
        "requests_per_s": per_s(counts.requests, seconds),
        "errors_per_s": per_s(sum(counts.errors.values()), seconds),
    }
    for name, (api, phase) in LATENCIES.items():
        found[f"{name}_requests_per_s"] = per_s(counts.of(api).requests, seconds)
        times = counts.of(api).times(phase)
        found |= {f"{name}_{percentile}_ms": _ms(times, share) for percentile, share in PERCENTILES.items()}
    return found


def per_s(count: int, seconds: float) -> float:
    """So many in so many seconds."""
    return round(count / seconds, PLACES)


def latencies(api: ApiCounts) -> dict[str, Mapping[str, float | None]]:
    """Percentiles in milliseconds by phase."""
    found: dict[str, Mapping[str, float | None]] = {}
    for phase in PHASES:
        times = api.times(phase)
        found[phase] = {percentile: _ms(times, share) for percentile, share in PERCENTILES.items()}
    return found


def _ms(times: Histogram, share: float) -> float | None:
    us = times.percentile_us(share)
    return None if us is None else round(us / US, PLACES)
