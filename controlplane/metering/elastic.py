"""What is billed of elastic bandwidth comes here from the masters' journals.

Of a minute the most that was said counts; what masters of different epochs have counted in it adds up, since they have counted
different seconds.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F, Q, Sum
from django.db.models.functions import Substr

from controlplane.clusters import master
from controlplane.clusters.journals import journals_pull
from controlplane.clusters.models import ClusterState
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances.models import Instance
from controlplane.metering.models import ElasticJournal, ElasticMinute
from quota.contracts.elastic import ElasticUse
from quota.contracts.instance import ContractError
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

LOG = logging.getLogger(__name__)
KEPT = timedelta(days=400)
ASKED_FOR = timedelta(days=60)
"""A master that has not been active for so long has nothing in its journal any more."""
READ_WITHIN = timedelta(minutes=15)
"""A journal that was not read to its end for so long is told of: its master is gone, or its disk."""
_MAY_HOLD_MORE = Q(read_at=None) | Q(read_at__lt=F("active_at"))
"""Its master was active after it was read to its end last: one that has not been since has counted nothing."""
_REASON = "the service reads what all masters have counted"
HOUR_LETTERS = 13
_MOST_BYTES = 2**63 - 1


def elastic_pull(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Read on in every journal (`clusters.journals`)."""
    journals_pull(ElasticJournal, _page_taken, clock=clock)


def elastic_purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Forget minutes that are on invoices for long, and masters that are gone."""
    now = clock.now()
    ElasticMinute.objects.filter(minute__lt=minute_text(now - KEPT)).delete()
    ElasticJournal.objects.filter(active_at__lt=now - ASKED_FOR).delete()


def journals_unread(now: datetime) -> QuerySet[ElasticJournal]:
    """Of whose masters something may be on no bill and in no budget, for operators: the longest unread first."""
    rows = ElasticJournal.objects.exclude(cluster__state=ClusterState.RETIRED).select_related("cluster")
    late = _MAY_HOLD_MORE & (Q(read_at__lt=now - READ_WITHIN) | Q(read_at=None, active_at__lt=now - READ_WITHIN))
    return rows.filter(late | ~Q(problem="")).order_by(F("read_at").asc(nulls_first=True), "cluster", "master")


def unread_since(cluster: str) -> dict[int, datetime | None]:
    """Masters of a cluster that may have counted what is on no bill, and since when; None: nothing of theirs was ever read.

    Empty where nobody's instance has elastic bandwidth, or had it lately: then nothing is counted.
    """
    rows = ElasticJournal.objects.filter(_MAY_HOLD_MORE, cluster__name=cluster).order_by("master")
    found = dict(rows.values_list("master", "read_at"))
    return found if found and _is_used(cluster) else {}


def _is_used(cluster: str) -> bool:
    lately = ElasticMinute.objects.order_by().values("instance")
    instances = Instance.objects.unscoped(_REASON).filter(cluster__name=cluster)
    return instances.filter(Q(elastic_mib_per_s__isnull=False) | Q(pk__in=lately)).exists()


def is_kept(start: datetime, *, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Whether all minutes from then on are still known."""
    return start >= clock.now() - KEPT


def elastic_hours(*, instance: Instance, start: datetime, end: datetime) -> dict[datetime, tuple[int, int]]:
    """Bytes above what was bought, produced and consumed, by the beginning of the UTC hour, in [start, end)."""
    rows = (
        ElasticMinute.objects.filter(instance=instance.pk, minute__gte=minute_text(start), minute__lt=minute_text(end))
        .annotate(hour=Substr("minute", 1, HOUR_LETTERS))
        .values("hour", "direction")
        .annotate(sum=Sum("bytes"))
    )
    found: dict[datetime, list[int]] = {}
    for row in rows:
        hour = datetime.fromisoformat(f"{row['hour']}:00:00Z")
        found.setdefault(hour, [0, 0])[DIRECTIONS.index(row["direction"])] = int(row["sum"])
    return {hour: (sums[0], sums[1]) for hour, sums in sorted(found.items())}


def minute_text(moment: datetime) -> str:
    """``2026-11-21T09:03:00Z``: the minute that a moment lies in."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M}:00Z"


def _page_taken(journal: ElasticJournal) -> bool:
    """Whether there was anything, and it was for us to take. The end of an empty journal moves on with its clock."""
    documents, following = master.elastic(journal.http, journal.position)
    if journal.problem:
        journal.note("")
    if following == journal.position:
        return False
    uses = _uses(documents)
    with transaction.atomic():
        if not journal.went_on(following):
            return False
        for (instance, direction, epoch, minute), most in uses.items():
            key = {"instance": instance, "direction": direction, "epoch": epoch, "minute": minute}
            row, is_new = ElasticMinute.objects.get_or_create(**key, defaults={"bytes": most})
            if not is_new and row.bytes < most:
                ElasticMinute.objects.filter(pk=row.pk, bytes__lt=most).update(bytes=most)
    journal.position = following
    return bool(documents)


def _uses(documents: Iterable[dict[str, Any]]) -> dict[tuple[str, str, int, str], int]:
    """Of each minute the most. A line that breaks the contract is left out: nobody pays for what cannot be read."""
    found: dict[tuple[str, str, int, str], int] = {}
    for document in documents:
        try:
            use = ElasticUse.from_document(document)
            minute = minute_text(datetime.fromtimestamp(use.minute_ms / 1000, UTC))
        except (ContractError, OverflowError, ValueError, OSError) as error:
            LOG.warning("a line about elastic bandwidth is left out: %s", error)
            continue
        key = (use.instance, use.direction, use.epoch, minute)
        if max(use.above_bytes, use.epoch) > _MOST_BYTES or len(use.instance) > 32 or "\0" in use.instance:
            LOG.warning("a line about elastic bandwidth is left out: the database cannot hold it")
            continue
        found[key] = max(found.get(key, 0), use.above_bytes)
    return found
