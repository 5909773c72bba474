"""Buying an instance, and changing one: what REST and the console call. The one way to a larger size.

The change is written first, which judges all of its members, and then admitted within the same transaction: what is
refused was never there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.admission import prepaid
from controlplane.admission.rules import SIZES
from controlplane.admission.services import admit
from controlplane.billing.pricing.prepaid import EXPIRE
from controlplane.clusters.models import PhysicalCluster
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances import services
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


@transaction.atomic
def instance_buy(
    *,
    confirm_price: bool = False,
    prepaid_months: int | None = None,
    prepaid_at_end: str = EXPIRE,
    clock: Clock = SYSTEM_CLOCK,
    **members: Any,
) -> tuple[Instance, Operation]:
    """A new instance, as services.instance_create. Raises what that raises, and what `admit` and prepaid.buy do.

    `prepaid_months`: so many are paid in advance, from its opening on; None: it is paid by the hour.
    """
    instance, operation = services.instance_create(**members, clock=clock)
    admit(instance=instance, is_price_confirmed=confirm_price, clock=clock)
    if prepaid_months is not None:
        prepaid.buy(
            instance=instance,
            operation=operation,
            actor=members["actor"],
            months=prepaid_months,
            at_end=prepaid_at_end,
            is_price_confirmed=confirm_price,
            clock=clock,
        )
    return instance, operation


@transaction.atomic
def instance_change(
    *,
    organisation: Organisation,
    instance_id: str,
    changes: Mapping[str, Any],
    confirm_price: bool = False,
    clock: Clock = SYSTEM_CLOCK,
    **members: Any,
) -> tuple[Instance, Operation]:
    """Another name, size or config, as services.instance_update. Raises what that raises, and what `admit` does."""
    before = charged = None
    if any(name in changes for name in SIZES):
        instance = instance_get(organisation=organisation, instance_id=instance_id)
        PhysicalCluster.objects.select_for_update().get(pk=instance.cluster_id)
        instance.refresh_from_db(fields=[*SIZES])  # nobody changes them now
        before = {name: getattr(instance, name) for name in SIZES}
        charged = prepaid.charged(instance, clock)
    instance, operation = services.instance_update(
        organisation=organisation, instance_id=instance_id, changes=changes, clock=clock, **members
    )
    if before is not None:
        prepaid.check_not_smaller(instance, before, clock)
        admit(instance=instance, before=before, is_price_confirmed=confirm_price, clock=clock)
        prepaid.growth_check(instance=instance, before=charged, is_price_confirmed=confirm_price, clock=clock)
    return instance, operation
