"""What there is a history of. Pure.

A metric is of one of five kinds, which says what a step of time has of it:

=========  =================================  ==========================================================================
kind       in a step                          why
=========  =================================  ==========================================================================
measured   average and maximum                it changes all the time; the average of what flows is exact (`CARRIED`)
set        the last value                     limits and allocations are decided; an average of two is none of them
waited     average and maximum, in ms/s       throttled time, from the intervals of the flight recorder, not from samples
largest    the largest                        lag, of whichever group is furthest behind: of several groups an average is none's
counted    the rate, or a percentile of all   requests, which brokers count one by one: a maximum of percentiles is none
=========  =================================  ==========================================================================

Bytes are on the wire for flows, and of all replicas for storage, as everywhere. A limit, or an allocation, that is absent
where the flow is known is unlimited; in a step without a sample (`selectors.History.gaps`) it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """See the file's text."""

    MEASURED = "measured"
    SET = "set"
    WAITED = "waited"
    COUNTED = "counted"
    LARGEST = "largest"


@dataclass(frozen=True, slots=True)
class Metric:
    """One of them."""

    name: str
    unit: str
    kind: Kind
    help: str

    @property
    def maximum(self) -> str | None:
        """What its maximum is called; None: it has none."""
        return None if self.kind in (Kind.SET, Kind.COUNTED, Kind.LARGEST) else f"{self.name}_max"


def _of(direction: str) -> tuple[Metric, ...]:
    verb = {"produce": "produced", "consume": "consumed"}[direction]
    return (
        Metric(f"{direction}_bytes_per_s", "bytes/s", Kind.MEASURED, f"bytes {verb} a second"),
        Metric(
            f"{direction}_limit_bytes_per_s", "bytes/s", Kind.SET, "the limit in force; null: unlimited, or in a gap"
        ),
        Metric(
            f"{direction}_allocated_bytes_per_s",
            "bytes/s",
            Kind.SET,
            "what brokers may carry together; null: unlimited, no partition has a leader, or in a gap",
        ),
        Metric(
            f"{direction}_throttled_ms_per_s", "ms/s", Kind.WAITED, "milliseconds a second in which some client waited"
        ),
    )


PERCENTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
"""Which of latencies are shown, as shares of requests that took no longer."""


def _requests() -> tuple[Metric, ...]:
    latency = {
        "produce": "milliseconds until a produce was acknowledged",
        "fetch": "milliseconds that a fetch took, without its wait for records",
    }
    return (
        Metric("requests_per_s", "requests/s", Kind.COUNTED, "requests answered a second, of all brokers"),
        Metric(
            "errors_per_s",
            "errors/s",
            Kind.COUNTED,
            "error codes answered a second; of a request one for each partition",
        ),
        Metric("produce_requests_per_s", "requests/s", Kind.COUNTED, "produce requests a second"),
        Metric("fetch_requests_per_s", "requests/s", Kind.COUNTED, "fetch requests a second"),
        *(
            Metric(
                f"{api}_{name}_ms",
                "ms",
                Kind.COUNTED,
                f"{text}: {100 * share:g} % took no longer; null: there was none",
            )
            for api, text in latency.items()
            for name, share in PERCENTILES.items()
        ),
    )


_ALL = (
    *(metric for direction in DIRECTIONS for metric in _of(direction)),
    Metric("storage_used_bytes", "bytes", Kind.MEASURED, "bytes stored, of all replicas"),
    Metric("storage_limit_bytes", "bytes", Kind.SET, "the storage bought"),
    Metric("connections", "connections", Kind.MEASURED, "open connections, of all brokers"),
    *_requests(),
)
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _ALL}
OF_GROUPS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "group_lag_messages",
            "records",
            Kind.LARGEST,
            "the most records that a group can still read; the last hour's",
        ),
        Metric(
            "group_lag_bytes",
            "bytes",
            Kind.LARGEST,
            "the most bytes that a group can still read, as they are stored; about; the last hour's",
        ),
        Metric(
            "group_lag_seconds",
            "s",
            Kind.LARGEST,
            "age of the oldest record that a group has still to read; the last hour's",
        ),
    )
}
"""Of all groups of an instance, or of those that read a topic. Kept each ten seconds for an hour; of one group, as all others."""
EVERY: Mapping[str, Metric] = {**METRICS, **OF_GROUPS}
"""Of an instance over time. Those of METRICS are of its brokers, and have rows of minutes and hours as well."""
MEASURED = tuple(metric.name for metric in _ALL if metric.kind is Kind.MEASURED)
SET = tuple(metric.name for metric in _ALL if metric.kind is Kind.SET)
COUNTED = tuple(metric.name for metric in _ALL if metric.kind is Kind.COUNTED)
CARRIED = tuple(f"{direction}_bytes_per_s" for direction in DIRECTIONS)
"""Measured, and counted as requests are: where that is known, the average of a step is exact."""
WAITED = {f"{direction}_throttled_ms_per_s": direction for direction in DIRECTIONS}
"""By the direction that had to wait."""
