"""What operators decide about metering."""

from __future__ import annotations

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import NotFound
from controlplane.metering.models import Loss


def loss_settle(*, loss_id: int, actor: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """An operator has seen to it that no usage is missing, or that it shall not be billed. Once: the first one stands.

    Raises NotFound.
    """
    if not Loss.objects.filter(pk=loss_id).exists():
        raise NotFound("there is no such loss")
    Loss.objects.filter(pk=loss_id, settled_at=None).update(settled_at=clock.now(), settled_by=actor)
