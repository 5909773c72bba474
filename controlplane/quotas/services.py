"""Throttled intervals come here from the masters' journals, and go after a week.

The last line of an interval counts. What the database
does not take is left out, and a journal that cannot be read is left for the next time: neither keeps the others from being read,
and both are noted for operators.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.db import DataError, IntegrityError, transaction

from controlplane.clusters import master
from controlplane.clusters.journals import journals_pull
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.quotas.models import KEY, LONGEST_RULE, MasterJournal, RecordedInterval
from controlplane.quotas.moments import text_of, text_of_ms
from quota.contracts.instance import ContractError
from quota.contracts.throttled import ThrottledInterval

if TYPE_CHECKING:
    from collections.abc import Iterable

LOG = logging.getLogger(__name__)
KEPT = timedelta(days=7)
ROWS_AT_ONCE = 500
_REFUSALS = (DataError, IntegrityError, OverflowError, ValueError)
"""What databases, and their drivers, say of a value that they cannot hold. A database that is away says something else."""
_COUNTED = ("throttled_ms", "under_limit_ms", "over_1_s_percent", "over_10_s_percent", "over_60_s_percent", "document")


def throttling_pull(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Read on in every journal (`clusters.journals`)."""
    journals_pull(MasterJournal, _page_taken, clock=clock)


def throttling_purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Forget intervals, and masters that were not active, for longer than is kept."""
    oldest = clock.now() - KEPT
    RecordedInterval.objects.filter(started_at__lt=text_of(oldest)).delete()
    MasterJournal.objects.filter(active_at__lt=oldest).delete()


def _page_taken(journal: MasterJournal) -> bool:
    """Whether there was anything, and it was for us to take."""
    documents, following = master.throttled(journal.http, journal.position)
    if following == journal.position:
        return False
    rows = _rows(documents)
    with transaction.atomic():
        if not journal.went_on(following):
            return False
        left_out = _keep(rows)
    journal.position = following
    if left_out or journal.problem:
        journal.note(f"{left_out} of its intervals were left out: the database did not take them" if left_out else "")
    return True


def _keep(rows: list[RecordedInterval]) -> int:
    """Write what can be written; how many could not."""
    if not rows:
        return 0
    try:
        with transaction.atomic():
            RecordedInterval.objects.bulk_create(
                rows, batch_size=ROWS_AT_ONCE, update_conflicts=True, unique_fields=KEY, update_fields=_COUNTED
            )
    except _REFUSALS as error:
        if len(rows) == 1:
            LOG.warning("an interval is left out: %s: %s", rows[0], error)
            return 1
        half = len(rows) // 2
        return _keep(rows[:half]) + _keep(rows[half:])
    return 0


def _rows(documents: Iterable[dict[str, Any]]) -> list[RecordedInterval]:
    """One for each interval, as its last line tells it."""
    rows: dict[tuple[Any, ...], RecordedInterval] = {}
    for document in documents:
        try:
            row = _row(ThrottledInterval.from_document(document), document)
        except ContractError as error:
            LOG.warning("a journal's line is left out: %s", error)
            continue
        rows[tuple(getattr(row, name) for name in KEY)] = row
    return list(rows.values())


def _rule(row: str) -> str:
    """The row of one client of a rule has its names in it, which may be longer than what a database can index."""
    if len(row) <= LONGEST_RULE:
        return row
    digest = sha256(row.encode()).hexdigest()
    return row[: LONGEST_RULE - len(digest)] + digest


def _row(interval: ThrottledInterval, document: dict[str, Any]) -> RecordedInterval:
    over_1_s, over_10_s, over_60_s = interval.over_percent
    return RecordedInterval(
        instance=interval.instance,
        rule=_rule(interval.rule or ""),
        direction=interval.direction,
        epoch=interval.epoch,
        started_at=text_of_ms(interval.started_at_ms),
        throttled_ms=interval.throttled_ms,
        under_limit_ms=interval.under_limit_ms,
        over_1_s_percent=over_1_s,
        over_10_s_percent=over_10_s,
        over_60_s_percent=over_60_s,
        document=document,
    )
