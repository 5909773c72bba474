"""Deleting an instance: what REST and the console call. The one way to its end by people.

What was paid in advance and is left is given back in the same transaction (prepaid.py); the rest is lifecycle's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.admission import prepaid
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances import lifecycle
from controlplane.instances.services import instance_locked

if TYPE_CHECKING:
    from controlplane.accounts.selectors import Caller
    from controlplane.core.models import Operation
    from controlplane.tenants.models import Organisation


@transaction.atomic
def instance_delete(
    *, organisation: Organisation, actor: str, instance_id: str, clock: Clock = SYSTEM_CLOCK, **members: Any
) -> Operation:
    """As lifecycle.instance_delete. Raises what that raises."""
    prepaid.give_back(instance=instance_locked(organisation, instance_id), actor=actor, clock=clock)
    return lifecycle.instance_delete(
        organisation=organisation, actor=actor, instance_id=instance_id, clock=clock, **members
    )


@transaction.atomic
def instance_destroy(*, caller: Caller, instance_id: str, confirmation: str, clock: Clock = SYSTEM_CLOCK) -> Operation:
    """As lifecycle.instance_destroy. Raises what that raises."""
    prepaid.give_back(instance=instance_locked(caller.organisation, instance_id), actor=caller.actor, clock=clock)
    return lifecycle.instance_destroy(caller=caller, instance_id=instance_id, confirmation=confirmation, clock=clock)
