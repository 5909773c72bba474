"""How often an alarm is told, and how many messages a receiver gets, within an hour.

What is more is held back by evaluation: an alarm as by a silence, and a receiver that has got enough alone, while the others are
told. Each is told how it is when there is room again.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db.models import Count

from controlplane.alarms.models import Delivery, DeliveryKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

MOST_OF_ALARM, MOST_PER_HOUR = 20, 120
"""So often an alarm is told in an hour, and so many messages of alarms and budgets go to one receiver."""
LIMITED = (DeliveryKind.ALARM, DeliveryKind.BUDGET)
_REASON = "messages of all organisations are counted"


def with_room(telling: Iterable[tuple[str, Sequence[str]]], *, at: datetime) -> dict[str, list[str]]:
    """Of alarms with the receivers' ids that are to be told: those of them that may be told now, in the same order.

    None of them, where the alarm was told often enough for now. An alarm that nobody is told of is not among the answers.
    """
    wanted = {alarm: receivers for alarm, receivers in telling if receivers}
    if not wanted:
        return {}
    rows = Delivery.objects.unscoped(_REASON).filter(
        event__alarm__in=list(wanted), kind=DeliveryKind.ALARM, created_at__gt=at - timedelta(hours=1)
    )
    told = dict(rows.values_list("event__alarm").annotate(Count("event", distinct=True)))
    lately = Counter(told_lately(sorted({name for names in wanted.values() for name in names}), at))
    found: dict[str, list[str]] = {}
    for alarm, names in wanted.items():
        is_loud = told.get(alarm, 0) >= MOST_OF_ALARM
        found[alarm] = [] if is_loud else [name for name in names if lately[name] < MOST_PER_HOUR]
        lately.update(found[alarm])
    return found


def told_lately(receivers: list[str], at: datetime) -> dict[str, int]:
    """How many messages of LIMITED each of these receivers was written in the last hour, those that were not sent included."""
    rows = Delivery.objects.unscoped(_REASON).filter(
        receiver__in=receivers, kind__in=LIMITED, created_at__gt=at - timedelta(hours=1)
    )
    return dict(rows.values_list("receiver").annotate(Count("pk")))
