"""Rows about topics, of topics that are gone.

What is kept about a topic is kept by the id that the cluster gave it. Of topics that clients delete by Kafka's own protocol
nothing is heard here: a job looks for them.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.instances.models import Instance, InstanceState
from controlplane.kafka import topics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

LOG = logging.getLogger(__name__)
SETTLED = timedelta(minutes=10)
"""A broker that has just come up may still tell the id of the topic before; what was written later than this ago is let be."""


def tidy(rows: QuerySet[Any], what: str, *, clock: Clock = SYSTEM_CLOCK) -> int:
    """Remove those of topics and instances that are gone; how many they were. A cluster that is away is passed over.

    `rows` have instance, topic_id, name and updated_at; `what` they are, for the log.
    """
    gone, _ = rows.filter(instance__state=InstanceState.DELETED).delete()
    noted = Instance.objects.unscoped("everyone's topics are tidied").filter(pk__in=rows.values("instance"))
    for instance in noted.select_related("cluster"):
        old = list(rows.filter(instance=instance, updated_at__lt=clock.now() - SETTLED))
        try:
            there = _there(instance, {row.name for row in old})
        except Unavailable as error:
            LOG.warning("%s of %s are not looked through: %s", what, instance.pk, error)
            continue
        stale = [row.pk for row in old if there.get(row.name, "") != row.topic_id and _is_sure(there, row)]
        gone += rows.filter(pk__in=stale).delete()[0] if stale else 0
    return gone


def _there(instance: Instance, names: Iterable[str]) -> dict[str, str]:
    """Ids by name. ZooKeeper says which topics there are: a broker that has just come up may not know them yet."""
    cluster = instance.cluster.address
    listed = set(topics.names_listed(cluster, [instance.pk])[instance.pk])
    known = sorted(set(names) & listed)
    found = topics.ids(cluster, instance.pk, known) if known else {}
    return {name: found.get(name, "") for name in known}


def _is_sure(there: dict[str, str], row: Any) -> bool:
    """A topic that is there and whose id nobody tells now may be the one that was written about."""
    return row.name not in there or bool(there[row.name])
