"""Groups as the history knows them: without asking a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.history.lag.rows import RUN_S
from controlplane.history.models import LagGroup, LagMinutes
from controlplane.history.resolutions import MINUTES

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet

SEEN_S = 600
"""What was looked at so lately is there; older rows are of groups that may be gone."""


def groups_seen(
    *, instance_ids: Collection[str] | QuerySet[Any, str], clock: Clock = SYSTEM_CLOCK
) -> QuerySet[LagGroup]:
    """Groups of these instances that are there; the caller has the instances from its organisation's scope."""
    since = int(clock.now().timestamp()) - SEEN_S
    # A row is of steps within one hour.
    seen = LagMinutes.objects.filter(group=OuterRef("pk"), at__gte=since - RUN_S[MINUTES], until__gte=since)
    return LagGroup.objects.filter(Exists(seen), instance__in=instance_ids)
