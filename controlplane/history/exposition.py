"""An instance's figures of now in Prometheus' text format, version 0.0.4, for a tenant's own Prometheus. Pure.

Every metric is a gauge: it is what REST answers of the newest step of the history that is known (docs/subsystems/history.md has
the table). What is not known has no sample, so a gap is a gap there, too. A limit that is unlimited is ``+Inf``.

Names follow Prometheus' own rules: base units in the name, ``sluice_`` before it, and the instance's id as the label
``instance_id`` (``instance`` is the label that Prometheus sets itself, to the address that it has scraped).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.history.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "sluice_"
MS = 1000


@dataclass(frozen=True, slots=True)
class Gauge:
    """What a metric of the history is called here, and what its value is divided by."""

    name: str
    help: str
    divisor: int = 1


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group now; None: its age is not known."""

    name: str
    messages: int
    seconds: float | None


def _gauge_of(name: str) -> Gauge:
    metric = METRICS[name]
    if metric.unit == "ms/s":
        stem = name.removesuffix("_ms_per_s")
        return Gauge(f"{PREFIX}{stem}_ratio", "Share of the time in which some client waited, 0 to 1.", MS)
    called = name.removesuffix("_per_s") + "_per_second" if name.endswith("_per_s") else name
    text = metric.help.partition(";")[0]
    return Gauge(PREFIX + called, f"{text[0].upper()}{text[1:]}.")


GAUGES: Mapping[str, Gauge] = {name: _gauge_of(name) for name in METRICS}
"""By the metric's name in the history."""
UNLIMITED = frozenset(name for name in METRICS if name.endswith("_limit_bytes_per_s"))
"""Whose null says that there is no limit."""
LAG_MESSAGES = Gauge(f"{PREFIX}group_lag_messages", "Records that a consumer group can still read, of all partitions.")
LAG_SECONDS = Gauge(
    f"{PREFIX}group_lag_seconds",
    "Age of the oldest record that a consumer group is still to read; the largest of the partitions' that are known.",
)


def exposition(
    instance_id: str, values: Mapping[str, float | None], groups: Sequence[GroupLag], *, is_known: bool
) -> str:
    """One document. `values` are by the metrics' names in the history; `is_known`: there is a sample, null in it is unlimited."""
    labels = _labels(instance_id=instance_id)
    lines: list[str] = []
    for name, gauge in GAUGES.items():
        value = values.get(name)
        if value is None and name in UNLIMITED and is_known:
            value = math.inf
        if value is not None:
            lines += _family(gauge, [(labels, value / gauge.divisor)])
    messages = [(_labels(instance_id=instance_id, group=each.name), each.messages) for each in groups]
    seconds = [
        (_labels(instance_id=instance_id, group=each.name), each.seconds) for each in groups if each.seconds is not None
    ]
    lines += _family(LAG_MESSAGES, messages)
    lines += _family(LAG_SECONDS, seconds)
    return "".join(f"{line}\n" for line in lines)


def _family(gauge: Gauge, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    found = list(samples)
    if found:
        yield f"# HELP {gauge.name} {gauge.help}"
        yield f"# TYPE {gauge.name} gauge"
        yield from (f"{gauge.name}{labels} {_number(value)}" for labels, value in found)


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    """A group may be called anything."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
