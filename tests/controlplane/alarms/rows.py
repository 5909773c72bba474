"""Alarms, receivers and events of an instance as rows, without anybody who made them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.alarms.delivery import secrets
from controlplane.alarms.models import Alarm, AlarmEvent, Receiver, ThrottledSpell
from controlplane.clusters.models import BrokerAbsence
from controlplane.history.lag.expiry import digest_of
from controlplane.history.lag.rows import digest_of as digest_of_group
from controlplane.history.models import ExpiringUnread, GroupRebalances
from controlplane.instances.models import SpecChange
from controlplane.rebalancing.models import RebalanceMove
from tests.controlplane.rebalancing.rows import rebalance_row

if TYPE_CHECKING:
    from controlplane.instances.models import Instance

LONG_AGO = datetime(2026, 5, 2, tzinfo=UTC)
CODE = "abcdefghij"
KEY = b"k" * 32
STORAGE = {"watch": "storage_used_percent", "comparison": "at_least", "threshold": 90.0}


def alarm_row(instance: Instance, alarm_id: str = "alm-000000000001", **members: object) -> Alarm:
    """One that watches the storage, ok since long ago, unless it is said otherwise."""
    moments = dict.fromkeys(("created_at", "since", "seen_at"), LONG_AGO)
    row = Alarm(
        id=alarm_id,
        organisation=instance.organisation,
        instance=instance,
        **{"name": "storage", **STORAGE, **moments, **members},
    )
    row.save(force_insert=True)
    return row


def receiver_row(instance: Instance, receiver_id: str = "rcv-000000000001", **members: object) -> Receiver:
    """A webhook, unless it is said otherwise."""
    is_webhook, code = members.get("kind", "webhook") == "webhook", members.pop("code", "")
    row = Receiver(
        id=receiver_id,
        organisation=instance.organisation,
        instance=instance,
        **{
            "name": "pager",
            "kind": "webhook",
            "address": "https://hooks.example.com/alarms",
            "created_at": LONG_AGO,
            **members,
        },
    )
    if is_webhook:
        secrets.address_sealed(row, row.address)
        secrets.secret_sealed(row, KEY)
    if code:
        secrets.code_sealed(row, str(code))
    row.save(force_insert=True)
    return row


def event_row(alarm: Alarm, kind: str = "fired", at: datetime = LONG_AGO, **members: object) -> AlarmEvent:
    """Something that happened to an alarm."""
    row = AlarmEvent(
        organisation=alarm.organisation,
        instance=alarm.instance,
        alarm=alarm,
        name=alarm.name,
        kind=kind,
        at=at,
        **members,
    )
    row.save(force_insert=True)
    return row


def throttled(instance: Instance, began: datetime, until: datetime, direction: str = "produce") -> None:
    """A spell of it."""
    ThrottledSpell.objects.create(instance=instance.pk, direction=direction, began_at=began, until_at=until)


def absence(
    instance: Instance, began: datetime, ended: datetime | None = None, broker: int = 2, led: list[str] | None = None
) -> None:
    """A broker of its cluster was away. `led`: the instances of which it led partitions; None: not known."""
    BrokerAbsence.objects.create(
        cluster=instance.cluster, broker_id=broker, began_at=began, ended_at=ended, led=BrokerAbsence.led_text(led)
    )


def resized(instance: Instance, at: datetime, bandwidth: float = 10.0, kind: str = "resized", **sizes: float) -> None:
    """Another size; where it is not said, that of the tests' instance."""
    SpecChange.objects.unscoped("a test").create(
        organisation=instance.organisation, instance=instance, kind=kind, at=at, bandwidth_mib_per_s=bandwidth,
        **{"storage_gib": 10.0, "partitions": 60, **sizes},
    )  # fmt: skip


def expiring(
    instance: Instance,
    began: datetime,
    ended: datetime | None = None,
    group: str = "billing",
    expires: datetime | None = None,
    *,
    is_by_size: bool = False,
) -> None:
    """Of a group, in topic `orders`; where it is not said, they may expire at once."""
    ExpiringUnread.objects.create(
        instance=instance.pk, digest=digest_of(group, "orders"), group=group, topic="orders", messages=1204,
        expires_at=expires or began, began_at=began, seen_at=began, ended_at=ended, is_by_size=is_by_size,
    )  # fmt: skip


def rebalanced(instance: Instance, began: datetime, *, times: int = 1, seen: datetime | None = None) -> None:
    """Group `billing`, in the hour of that moment."""
    GroupRebalances.objects.create(
        instance=instance.pk, digest=digest_of_group("billing"), group="billing", times=times,
        hour=began.replace(minute=0, second=0, microsecond=0), began_at=began, seen_at=seen or began,
    )  # fmt: skip


def moved(instance: Instance, key: str, began: datetime, ended: datetime | None = None, **members: object) -> None:
    """A rebalance that copied one partition of the instance, and had another replica lead one."""
    row = rebalance_row(instance.cluster, key, moves=0)
    for number, copies in enumerate((True, False)):
        RebalanceMove.objects.create(
            rebalance=row, number=number, topic=f"{instance.pk.removeprefix('ins-')}.orders", partition=number,
            instance=instance.pk, before=[1, 2], after=[2, 3], size_bytes=1, copies=copies, bytes_to_copy=1,
            begun_at=began, finished_at=ended, state="moving" if ended is None else "done", **members,
        )  # fmt: skip
