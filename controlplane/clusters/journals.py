"""Journals of flow masters, read on from where one was: what a master keeps stays with it, whichever is active.

A journal is read page by page. Each page and the position behind it are written in one transaction, by compare-and-set on the
position (`Journal.went_on`): pulling twice, or by two workers at once, changes nothing.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.models import ClusterState, Journal
from controlplane.clusters.services import cluster_list
from controlplane.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.core.clock import Clock

LOG = logging.getLogger(__name__)
PAGES_AT_ONCE = 20
READ_AT_WITHIN = timedelta(minutes=1)
"""So often it is written that a standby's journal was read to its end: it is looked at every few seconds."""
J = TypeVar("J", bound=Journal)


def journals_pull(kind: type[J], page_taken: Callable[[J], bool], *, clock: Clock) -> None:
    """Read on in every journal: `page_taken` says whether there was anything, and it was for us to take.

    A master that does not answer is asked again next time; of a retired cluster none is asked. Every other error is noted with
    the journal, and the other journals are read all the same.
    """
    for cluster in cluster_list():
        _remember_active(kind, cluster, clock)
    rows = kind._default_manager.exclude(cluster__state=ClusterState.RETIRED)  # noqa: SLF001 - of whichever model it is
    for journal in rows.order_by("cluster", "master"):
        try:
            for _ in range(PAGES_AT_ONCE):
                if not page_taken(journal):
                    _read_to_its_end(journal, clock)
                    break
        except Unavailable as error:
            LOG.info("master %s: %s", journal.master, error.detail)
        except Exception as error:
            LOG.exception("%s of %s", kind.__name__, journal)
            journal.note(f"it cannot be read: {type(error).__name__}: {error}")


def _read_to_its_end(journal: Journal, clock: Clock) -> None:
    now = clock.now()
    if journal.read_at is None or journal.read_at <= journal.active_at or now - journal.read_at >= READ_AT_WITHIN:
        type(journal)._default_manager.filter(pk=journal.pk).update(read_at=now)  # noqa: SLF001


def _remember_active(kind: type[J], cluster: PhysicalCluster, clock: Clock) -> None:
    try:
        active = coordination.master(zookeeper.tree(cluster.address))
    except Unavailable:
        return
    if active is not None:
        seen = {"http": active.http, "active_at": clock.now()}
        kind._default_manager.update_or_create(cluster=cluster, master=active.id, defaults=seen)  # noqa: SLF001
