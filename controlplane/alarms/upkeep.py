"""What is older than 90 days goes, a bounded number of rows at a time.

Alarms of instances that are gone end, and secrets that an earlier secret key has sealed are sealed anew.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.alarms.delivery import secrets
from controlplane.alarms.models import Alarm, AlarmEvent, Delivery, DeliveryState, Receiver, ThrottledSpell
from controlplane.clusters.services import absences_purge
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.health import services as health
from controlplane.instances.models import InstanceState

if TYPE_CHECKING:
    from django.db.models import QuerySet

LOG = logging.getLogger(__name__)
KEPT = timedelta(days=90)
PORTION, PORTIONS = 2_000, 20
_REASON = "what is old goes, whoever's it is"


def keep_up(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """All of it; how many rows went."""
    seal_anew()
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
    """Their alarms fire no more, and nobody is told: there is nothing left to tell about."""
    now, gone = clock.now(), {"instance__state": InstanceState.DELETED}
    alarms = Alarm.objects.unscoped(_REASON).filter(deleted_at=None, **gone)
    names = list(alarms.values_list("pk", flat=True)[:PORTION])
    alarms.filter(pk__in=names).update(deleted_at=now, firing_since=None)
    waiting = Delivery.objects.unscoped(_REASON).filter(state=DeliveryState.WAITING, **gone)
    keys = list(waiting.values_list("pk", flat=True)[:PORTION])
    waiting.filter(pk__in=keys).update(state=DeliveryState.FAILED, error="the instance was deleted", ended_at=now)
    return purged(Receiver.objects.unscoped(_REASON).filter(**gone))


def seal_anew() -> tuple[int, int]:
    """Secrets that an earlier secret key has sealed are sealed with the present one.

    How many there were, and how many of all cannot be opened with any: those have to be made anew.
    """
    done, lost = 0, 0
    rows = Receiver.objects.unscoped("secrets of all webhooks are sealed anew")
    for receiver in rows.only("secret", "previous_secret"):
        for name in ("secret", "previous_secret"):
            before = bytes(getattr(receiver, name))
            if not before:
                continue
            try:
                after = secrets.sealed_anew(before, receiver.pk)
            except Unavailable as error:
                LOG.warning("receiver %s: %s", receiver.pk, error)
                lost += 1
                continue
            if after is not None:
                with transaction.atomic():
                    done += rows.filter(pk=receiver.pk, **{name: before}).update(**{name: after})
    return done, lost
