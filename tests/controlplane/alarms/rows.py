"""Alarms and receivers of an instance as rows, without anybody who made them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from controlplane.alarms.delivery import secrets
from controlplane.alarms.models import Alarm, AlarmEvent, Receiver

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
