"""Reading alarms, receivers and what became of messages, always through the instance, within an organisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controlplane.alarms.machine import Phase
from controlplane.alarms.models import Alarm, AlarmEvent, Delivery, Receiver
from controlplane.core.errors import NotFound
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

LOUDEST = (Phase.FIRING, Phase.PENDING, Phase.NO_DATA, Phase.OK)
"""The order in which a person wants to see them."""


def alarm_list(
    *,
    organisation: Organisation,
    instance_id: str,
    prefix: str = "",
    phase: str = "",
    watch: str = "",
    enabled: bool | None = None,
) -> QuerySet[Alarm]:
    """The alarms of an instance: all, or those whose names begin so, in a phase, that watch this. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    rows = Alarm.objects.for_organisation(organisation).filter(instance=instance, deleted_at=None)
    if enabled is not None:
        rows = rows.filter(enabled=enabled)
    wanted = {"name__startswith": prefix, "phase": phase, "watch": watch}
    return rows.filter(**{name: value for name, value in wanted.items() if value})


def alarm_get(*, organisation: Organisation, instance_id: str, alarm_id: str) -> Alarm:
    """One of them. Raises NotFound."""
    row = alarm_list(organisation=organisation, instance_id=instance_id).filter(pk=alarm_id).first()
    if row is None:
        raise NotFound(f"no alarm {alarm_id}")
    return row


def alarms_firing(instance: Instance) -> list[Alarm]:
    """Those that fire, the oldest first, those whose values went missing since among them. The caller has found the instance."""
    rows = Alarm.objects.unscoped("the caller has found the instance")
    return list(
        rows.filter(instance=instance, deleted_at=None, enabled=True, firing_since__isnull=False).order_by(
            "firing_since"
        )
    )


def event_list(*, organisation: Organisation, instance_id: str, alarm_id: str) -> QuerySet[AlarmEvent]:
    """What happened to one alarm. Raises NotFound."""
    alarm = alarm_get(organisation=organisation, instance_id=instance_id, alarm_id=alarm_id)
    return AlarmEvent.objects.for_organisation(organisation).filter(alarm=alarm)


def receiver_list(*, organisation: Organisation, instance_id: str) -> QuerySet[Receiver]:
    """The receivers of an instance. Raises NotFound."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    return Receiver.objects.for_organisation(organisation).filter(instance=instance)


def organisation_receivers(*, organisation: Organisation) -> list[Receiver]:
    """Those of all its instances, with these, by the instance's name."""
    rows = Receiver.objects.for_organisation(organisation).select_related("instance")
    return list(rows.order_by("instance__name", "created_at", "pk"))


def receiver_get(*, organisation: Organisation, instance_id: str, receiver_id: str) -> Receiver:
    """One of them. Raises NotFound."""
    row = receiver_list(organisation=organisation, instance_id=instance_id).filter(pk=receiver_id).first()
    if row is None:
        raise NotFound(f"no receiver {receiver_id}")
    return row


def delivery_list(*, organisation: Organisation, instance_id: str, receiver_id: str) -> QuerySet[Delivery]:
    """Messages to one receiver. Raises NotFound."""
    receiver = receiver_get(organisation=organisation, instance_id=instance_id, receiver_id=receiver_id)
    return Delivery.objects.for_organisation(organisation).filter(receiver=receiver)


def last_deliveries(receivers: list[Receiver]) -> dict[str, Delivery]:
    """The newest message to each of an instance's receivers, by its id; there are at most ten."""
    found: dict[str, Delivery] = {}
    for receiver in receivers:
        rows = Delivery.objects.unscoped("the caller has found the receivers").filter(receiver=receiver)
        last = rows.order_by("-created_at").first()
        if last is not None:
            found[receiver.pk] = last
    return found
