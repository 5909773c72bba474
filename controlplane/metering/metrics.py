"""What Prometheus reads of metering. Pure: from the selectors' values to its text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from controlplane.metering.selectors import STATES, MeteringStatus, PartitionProgress

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text(
    status: MeteringStatus, partitions: Iterable[PartitionProgress], *, open_losses: int, now: datetime
) -> str:
    """One line for each sample; what is not known has none."""
    samples = [*_samples(status, open_losses=open_losses, now=now), *_lags(partitions)]
    return "\n".join(samples) + "\n"


def _samples(status: MeteringStatus, *, open_losses: int, now: datetime) -> Iterator[str]:
    yield "# TYPE sluice_metering_state gauge"
    for state in STATES:
        yield f'sluice_metering_state{{state="{state}"}} {int(state == status.state)}'
    for name, moment in (
        ("complete", status.complete_to),
        ("final", status.final_to),
        ("moved", status.moved_at),
        ("seen", status.seen_at),
    ):
        if moment is not None:
            yield f"# TYPE sluice_metering_{name}_age_seconds gauge"
            yield f"sluice_metering_{name}_age_seconds {(now - moment).total_seconds():.3f}"
    if status.batch_ms is not None:
        yield "# TYPE sluice_metering_batch_seconds gauge"
        yield f"sluice_metering_batch_seconds {status.batch_ms / 1000}"
    totals = (("", status.records), ("refused_", status.bad_records), ("early_", status.early_records))
    for name, value in totals:
        yield f"# TYPE sluice_metering_{name}records_total counter"
        yield f"sluice_metering_{name}records_total {value}"
    yield "# TYPE sluice_metering_open_losses gauge"
    yield f"sluice_metering_open_losses {open_losses}"


def _lags(partitions: Iterable[PartitionProgress]) -> Iterator[str]:
    yield "# TYPE sluice_metering_lag_records gauge"
    for row in partitions:
        yield f'sluice_metering_lag_records{{partition="{row.partition}"}} {row.lag}'
