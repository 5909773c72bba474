"""What operators decide about metering."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Invalid, NotFound
from controlplane.instances.models import Instance
from controlplane.metering.models import Cap, FoldedTopicDay, Loss, UsageMaximum
from quota.contracts.usage import COUNTERS


def loss_settle(*, loss_id: int, actor: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """An operator has seen to it that no usage is missing, or that it shall not be billed. Once: the first one stands.

    Raises NotFound.
    """
    if not Loss.objects.filter(pk=loss_id).exists():
        raise NotFound("there is no such loss")
    Loss.objects.filter(pk=loss_id, settled_at=None).update(settled_at=clock.now(), settled_by=actor)


@transaction.atomic
def usage_cap(
    *, instance_id: str, boot: str, topic: str, caps: Mapping[str, int], reason: str, actor: str,
    clock: Clock = SYSTEM_CLOCK,
) -> int:  # fmt: skip
    """Counters (names as in the contract) of a topic and boot are believed up to these values only; rows that it lowered.

    For maxima that a damaged counter brought: the cap is the last value that can be true. Bills so far follow at once; of days
    that are folded once the next reconciliation has recomputed them. Invoices are not touched. Raises NotFound, Invalid.
    """
    instance = Instance.objects.unscoped("an operator corrects usage").filter(pk=instance_id).first()
    rows = UsageMaximum.objects.filter(instance=instance_id, boot=boot, topic=topic)
    # Of boots that ended long ago there are sums alone: the reconciliation knows from the raw records what was theirs.
    is_summed = FoldedTopicDay.objects.filter(instance=instance_id, topic=topic).exists()
    if instance is None or not (is_summed or rows.exists()):
        raise NotFound("there is no usage of that instance, boot and topic")
    if not caps or set(caps) - set(COUNTERS) or min(caps.values()) < 0:
        raise Invalid.field("caps", f"must name one of {', '.join(COUNTERS)}, with a value of 0 or more")
    if not reason.strip():
        raise Invalid.field("reason", "must say why")
    of_it = Cap.objects.filter(instance=instance_id, boot=boot, topic=topic)
    before = of_it.values(*COUNTERS).first() or dict.fromkeys(COUNTERS)
    after = {**dict.fromkeys(COUNTERS), **caps}  # a cap that is left out is no more: that is on record, too
    # The row first: on PostgreSQL it waits for a batch that has read the caps, and makes the next one wait for us.
    Cap.objects.update_or_create(
        instance=instance_id, boot=boot, topic=topic,
        defaults={**after, "reason": reason, "set_at": clock.now(), "set_by": actor},
    )  # fmt: skip
    lowered: set[int] = set()
    for name, most in caps.items():
        for column in (name, f"{name}_before"):
            higher = rows.filter(**{f"{column}__gt": most})
            lowered.update(higher.values_list("pk", flat=True))
            higher.update(**{column: most})
    detail = {"boot": boot, "topic": topic, **audit.changed(before, after), "reason": reason}
    audit.record_about(instance, actor, "usage.cap", detail, clock)
    return len(lowered)
