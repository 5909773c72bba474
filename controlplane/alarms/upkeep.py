"""What is older than 90 days goes, a bounded number of rows at a time.

Alarms of instances that are gone end, and go when whoever knew one as firing has been told so: a silence is waited for, and one
that cannot be ended stays. Receivers go when nothing waits for them any more, and no alarm may still have something to tell.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from controlplane.alarms.evaluation import IS_OVER, end_of_gone
from controlplane.alarms.models import (
    Alarm,
    AlarmEvent,
    Delivery,
    DeliveryKind,
    DeliveryState,
    Receiver,
    ThrottledSpell,
)
from controlplane.clusters.services import absences_purge
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.health import services as health
from controlplane.instances.models import InstanceState

if TYPE_CHECKING:
    from django.db.models import QuerySet

KEPT = timedelta(days=90)
PORTION, PORTIONS = 2_000, 20
_REASON = "what is old goes, whoever's it is"


def keep_up(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """All of it; how many rows went."""
    gone = _of_gone_instances(clock)
    oldest = clock.now() - KEPT
    gone += purged(
        Delivery.objects.unscoped(_REASON).filter(created_at__lt=oldest).exclude(state=DeliveryState.WAITING)
    )
    gone += purged(AlarmEvent.objects.unscoped(_REASON).filter(at__lt=oldest))
    gone += purged(Alarm.objects.unscoped(_REASON).filter(deleted_at__lt=oldest))
    gone += purged(ThrottledSpell.objects.filter(until_at__lt=oldest))
    gone += absences_purge(before=oldest)
    return gone + health.changes_purge(before=oldest, portion=PORTION, portions=PORTIONS)


def purged(rows: QuerySet[Any]) -> int:
    """Delete these, so many at a time and so many times; the rest is for the next call."""
    gone = 0
    for _ in range(PORTIONS):
        keys = list(rows.order_by("pk").values_list("pk", flat=True)[:PORTION])
        if not keys:
            break
        rows.filter(pk__in=keys).delete()
        gone += len(keys)
    return gone


def _of_gone_instances(clock: Clock) -> int:
    """Their alarms end, and messages that say so are sent; what else waits is for nothing.

    A message is tried for a day (`delivery.outbox`), so a receiver that never answers stays no longer than that.
    """
    end_of_gone(clock=clock)
    now, gone = clock.now(), {"instance__state": InstanceState.DELETED}
    alarms = Alarm.objects.unscoped(_REASON).filter(deleted_at=None, **gone)
    over = alarms.filter(IS_OVER)
    names = list(over.order_by("pk").values_list("pk", flat=True)[:PORTION])
    over.filter(pk__in=names).update(deleted_at=now)
    waiting = Delivery.objects.unscoped(_REASON).filter(state=DeliveryState.WAITING, **gone)
    keys = list(waiting.exclude(kind=DeliveryKind.ALARM).values_list("pk", flat=True)[:PORTION])
    waiting.filter(pk__in=keys).update(state=DeliveryState.FAILED, error="the instance was deleted", ended_at=now)
    awaited = waiting.filter(receiver__isnull=False).values("receiver")
    receivers = Receiver.objects.unscoped(_REASON).filter(**gone).exclude(pk__in=awaited)
    return purged(receivers.exclude(instance__in=alarms.values("instance")))
