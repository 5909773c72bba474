"""Groups by a part of their name, as the history knows them: without asking a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Exists, OuterRef

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.history.lag.rows import RUN_S
from controlplane.history.models import LagGroup, LagMinutes
from controlplane.history.resolutions import MINUTES

if TYPE_CHECKING:
    from collections.abc import Collection

SEEN_S = 600
"""What was looked at so lately is there; older rows are of groups that may be gone."""


def groups_named(
    *, instance_ids: Collection[str], text: str, most: int, clock: Clock = SYSTEM_CLOCK
) -> list[tuple[str, str]]:
    """Instance and name of groups that the text is in, by name; the caller has the instances from its organisation's scope."""
    since = int(clock.now().timestamp()) - SEEN_S
    # A row is of steps within one hour.
    seen = LagMinutes.objects.filter(group=OuterRef("pk"), at__gte=since - RUN_S[MINUTES], until__gte=since)
    rows = LagGroup.objects.filter(Exists(seen), instance__in=instance_ids, name__icontains=text)
    return list(rows.order_by("name", "instance").values_list("instance", "name")[:most])
