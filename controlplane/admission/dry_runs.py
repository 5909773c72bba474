"""What buying, changing or deleting an instance would do: `purchases` and `lifecycle`, taken back.

Each raises what the call itself would raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.admission import purchases, rules, selectors
from controlplane.clusters import master
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook, PriceChange, differences, taken_back
from controlplane.instances import lifecycle, services
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of
from quota.contracts.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


def buying(*, organisation: Organisation, clock: Clock = SYSTEM_CLOCK, **members: Any) -> Outlook:
    """Of purchases.instance_buy, which takes the same."""
    with taken_back():
        instance, _ = purchases.instance_buy(organisation=organisation, clock=clock, **members)
        price = _price(organisation, None, instance, clock)
    return Outlook(differences({}, _members(instance)), price)


def changing(
    *,
    organisation: Organisation,
    instance_id: str,
    changes: Mapping[str, Any],
    clock: Clock = SYSTEM_CLOCK,
    **members: Any,
) -> Outlook:
    """Of purchases.instance_change, which takes the same."""
    with taken_back():
        before = instance_get(organisation=organisation, instance_id=instance_id)
        after, _ = purchases.instance_change(
            organisation=organisation, instance_id=instance_id, changes=changes, clock=clock, **members
        )
        price = _price(organisation, before, after, clock)
    problem = services.use_problem(before, changes["storage_gib"]) if "storage_gib" in changes else None
    return Outlook(differences(_members(before), _members(after)), price, (problem,) if problem else ())


def deleting(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK, **members: Any) -> Outlook:
    """Of lifecycle.instance_delete, which takes the same."""
    with taken_back():
        before = instance_get(organisation=organisation, instance_id=instance_id)
        lifecycle.instance_delete(organisation=organisation, instance_id=instance_id, clock=clock, **members)
        after = instance_get(organisation=organisation, instance_id=instance_id)
        price = _price(organisation, before, None, clock)
    if before.state == InstanceState.DELETING:
        return Outlook({}, None, ("it is being deleted already",))
    if before.state == InstanceState.ISOLATED:
        return Outlook({}, None, ("it is isolated already",))
    if after.state == InstanceState.ISOLATED:
        return _isolating(before, after, price)
    used = master.storage_used_bytes(before.cluster.address, before.id)
    lost = "all topics and records" if used is None else f"all topics and records ({size_text(used)} on disk)"
    return Outlook(
        {"state": (before.state, InstanceState.DELETING.value)}, price, (f"{lost} would be deleted for good",)
    )


def _isolating(before: Instance, after: Instance, price: PriceChange) -> Outlook:
    ends = after.destroys_at
    assert ends is not None, "isolated"
    text = f"{ends:%Y-%m-%dT%H:%M:%SZ}"
    lost = f"nobody could produce or consume any more; until {text} it could be restored, then its data would be deleted for good"
    return Outlook({"state": (before.state, after.state), "destroys_at": (None, text)}, price, (lost,))


def _members(instance: Instance) -> dict[str, object]:
    config = {f"config.{name}": value for name, value in config_of(instance.config).items()}
    sizes = {name: _plain(getattr(instance, name)) for name in rules.SIZES}
    others = {name: getattr(instance, name) for name in ("deletion_protection", "maintenance_window")}
    placement = {f"placement.{name}": wished for name, wished in instance.placement.items()}
    return {"name": instance.name, **sizes, "whitelist": instance.whitelist, **others, **placement, **config}


def _plain(amount: float) -> float:
    return int(amount) if float(amount).is_integer() else amount


def _price(organisation: Organisation, before: Instance | None, after: Instance | None, clock: Clock) -> PriceChange:
    """By the prices that decide whether a purchase is admitted."""
    plan = selectors.plan_counted(organisation, clock=clock)
    first, last = (
        each and selectors.counted({name: getattr(each, name) for name in rules.SIZES}, plan)[rules.PRICE]
        for each in (before, after)
    )
    return PriceChange(first, last, plan.currency)  # type: ignore[arg-type]  # a price is a Decimal
