"""Buying an instance, and changing one: what REST and the console call. The one way to a larger size.

The change is written first, which judges all of its members, and then admitted within the same transaction: what is
refused was never there. A new instance goes to the cluster that `places` puts first; where somebody else was faster there, to the
next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.admission import prepaid
from controlplane.admission.places import clusters_to_try
from controlplane.admission.rules import SIZES
from controlplane.admission.services import admit
from controlplane.billing.pricing.prepaid import EXPIRE
from controlplane.clusters.models import PhysicalCluster
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterFull, Forbidden
from controlplane.instances import services
from controlplane.instances.selectors import instance_get

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


@transaction.atomic
def instance_buy(
    *,
    confirm_price: bool = False,
    prepaid_months: int | None = None,
    prepaid_at_end: str = EXPIRE,
    cluster: PhysicalCluster | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **members: Any,
) -> tuple[Instance, Operation]:
    """A new instance, as services.instance_create; on this cluster, or (None) on the one that suits it best.

    `prepaid_months`: so many are paid in advance, from its opening on; None: it is paid by the hour. Raises what
    services.instance_create raises, what `admit` and prepaid.buy do, and NoPlace.
    """
    paid = None if prepaid_months is None else (prepaid_months, prepaid_at_end)
    *others, last = [cluster] if cluster is not None else _clusters_to_try(members, clock)
    for home in others:
        try:
            with transaction.atomic():  # what is refused was never there: neither the row nor a lock is kept
                return _bought(home, members, paid, confirm_price, clock)
        except ClusterFull:
            continue
    return _bought(last, members, paid, confirm_price, clock)


def _clusters_to_try(members: Mapping[str, Any], clock: Clock) -> list[PhysicalCluster]:
    return clusters_to_try(
        organisation=members["organisation"],
        sizes={name: members.get(name) for name in SIZES},
        placement=members.get("placement") or {},
        clock=clock,
    )


def _bought(
    home: PhysicalCluster,
    members: Mapping[str, Any],
    paid: tuple[int, str] | None,
    confirm_price: bool,
    clock: Clock,
) -> tuple[Instance, Operation]:
    """`paid`: months in advance, and what becomes of it then."""
    instance, operation = services.instance_create(**members, cluster=home, clock=clock)
    admit(instance=instance, is_price_confirmed=confirm_price, clock=clock)
    if paid is not None:
        months, at_end = paid
        prepaid.buy(
            instance=instance,
            operation=operation,
            actor=members["actor"],
            months=months,
            at_end=at_end,
            is_price_confirmed=confirm_price,
            clock=clock,
        )
    return instance, operation


def may_pay(admit_paying: Callable[[], None] | None) -> bool:
    """Whether who asks for a change pays in advance: what is kept of them where it is made later. As of `instance_change`."""
    try:
        if admit_paying is not None:
            admit_paying()
    except Forbidden:
        return False
    return True


@transaction.atomic
def instance_change(
    *,
    organisation: Organisation,
    instance_id: str,
    changes: Mapping[str, Any],
    confirm_price: bool = False,
    admit_paying: Callable[[], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
    **members: Any,
) -> tuple[Instance, Operation]:
    """Another name, size or config, as services.instance_update. Raises what that raises, and what `admit` does.

    `admit_paying` is called where the instance is paid in advance and becomes larger, which is charged at once; it raises
    Forbidden for who pays nothing in advance.
    """
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
        is_larger = any(getattr(instance, name) > before[name] for name in SIZES)
        if admit_paying is not None and charged is not None and is_larger:
            admit_paying()
        prepaid.check_not_smaller(instance, before, clock)
        admit(instance=instance, before=before, is_price_confirmed=confirm_price, clock=clock)
        prepaid.growth_check(instance=instance, before=charged, is_price_confirmed=confirm_price, clock=clock)
    return instance, operation
