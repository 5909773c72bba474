"""Groups as the history knows them, without asking a cluster; and which of them are not there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, Q

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.history.lag.rows import GONE_AFTER_S, RUN_S, digest_of
from controlplane.history.models import LagGroup, LagMinutes
from controlplane.history.resolutions import MINUTES

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from django.db.models import QuerySet

AT_ONCE = 500
AHEAD_S = 120
"""A moment further ahead than this is of a clock that was wrong."""
LATELY_S = 86_400
SEEN_S = 600
"""What was looked at so lately is there; older rows are of groups that may be gone."""


def groups_seen(
    *, instance_ids: Collection[str] | QuerySet[Any, str], clock: Clock = SYSTEM_CLOCK
) -> QuerySet[LagGroup]:
    """Groups of these instances that are there; the caller has the instances from its organisation's scope."""
    return _seen_since(int(clock.now().timestamp()) - SEEN_S, instance_ids)


def groups_to_miss(*, instance_ids: Collection[str], now_s: int) -> QuerySet[LagGroup]:
    """Groups of these instances that were seen within the last hour, and of which nobody has said that they are gone."""
    return _seen_since(now_s - GONE_AFTER_S, instance_ids)


def _seen_since(since: int, instance_ids: Collection[str] | QuerySet[Any, str]) -> QuerySet[LagGroup]:
    # A row is of steps within one hour.
    seen = LagMinutes.objects.filter(group=OuterRef("pk"), at__gte=since - RUN_S[MINUTES], until__gte=since)
    return LagGroup.objects.filter(Exists(seen), instance__in=instance_ids, deleted_at=None)


def deleted_lately(*, instance_ids: Collection[str], now_s: int) -> dict[str, set[str]]:
    """Names of groups that were deleted in the last day, of those of these instances that have had no other within the hour."""
    others = set(groups_to_miss(instance_ids=instance_ids, now_s=now_s).values_list("instance", flat=True))
    left = [name for name in instance_ids if name not in others]
    rows = LagGroup.objects.filter(instance__in=left, deleted_at__gte=now_s - LATELY_S)
    found: dict[str, set[str]] = {}
    for instance, group in rows.values_list("instance", "name"):
        found.setdefault(instance, set()).add(group)
    return found


def group_deleted(instance_id: str, name: str, now_s: int) -> None:
    """A group is not there any more, and nothing that it had is of now; until a round that begins later sees it again."""
    LagGroup.objects.filter(instance=instance_id, digest=digest_of(name)).update(deleted_at=now_s)


def groups_gone(keys: Sequence[int], now_s: int) -> None:
    """The same of many, by their keys."""
    for part in portions(keys, AT_ONCE):
        LagGroup.objects.filter(pk__in=part, deleted_at=None).update(deleted_at=now_s)


def groups_back(keys: Sequence[int], begun_s: int) -> None:
    """A round that began at that moment has seen these: what was deleted before is there again, under the same name.

    One that was deleted since is gone, whatever the round has read. A moment far ahead is of a clock that was wrong.
    """
    earlier = Q(deleted_at__lt=begun_s) | Q(deleted_at__gt=begun_s + AHEAD_S)
    for part in portions(keys, AT_ONCE):
        LagGroup.objects.filter(earlier, pk__in=part).update(deleted_at=None)
