"""What an alarm on bills is made of: invoices that wait and invoices that cannot be computed, by month. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from controlplane.billing.waiting import Waiting


def billing_text(waits: Iterable[Waiting], failing_months: Iterable[str]) -> str:
    """Prometheus' text format; a month without trouble has no sample."""
    failing = Counter(failing_months)
    waiting: Counter[str] = Counter()
    for each in waits:  # a month is there once for each cluster
        waiting[str(each.month)] += each.invoices
    samples = {
        "sluice_invoices_waiting": waiting,
        "sluice_invoices_failing": dict(sorted(failing.items())),
    }
    lines = []
    for name, by_month in samples.items():
        lines += [f"# TYPE {name} gauge", *(f'{name}{{month="{month}"}} {count}' for month, count in by_month.items())]
    return "\n".join(lines) + "\n"
