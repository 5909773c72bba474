"""What buying, changing, deleting an instance or paying for it in advance would do: the calls themselves, taken back.

Each raises what the call itself would raise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from controlplane.admission import endings, prepaid, purchases, rules, selectors
from controlplane.billing.pricing.money import total_of
from controlplane.billing.selectors import account_get
from controlplane.clusters import master
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook, PriceChange, differences, flat, taken_back
from controlplane.core.text import second_text
from controlplane.instances import services
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import instance_get
from controlplane.instances.spec import config_of
from quota.contracts.sizes import size_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation


def buying(*, organisation: Organisation, clock: Clock = SYSTEM_CLOCK, **members: Any) -> Outlook:
    """Of purchases.instance_buy, which takes the same."""
    with taken_back() as made:
        instance, _ = purchases.instance_buy(organisation=organisation, clock=clock, **members)
        price = _price(organisation, None, instance, clock)
        months = members.get("prepaid_months")
        if months is not None:
            sizes = {name: getattr(instance, name) for name in rules.SIZES}
            quote = prepaid.prepaid_quote(organisation=organisation, months=months, sizes=sizes, clock=clock)
            price = replace(price, at_once=quote.amount)
    return Outlook(differences({}, _members(instance)), price, begun=tuple(made.begun))


def changing(
    *,
    organisation: Organisation,
    instance_id: str,
    changes: Mapping[str, Any],
    clock: Clock = SYSTEM_CLOCK,
    **members: Any,
) -> Outlook:
    """Of purchases.instance_change, which takes the same."""
    with taken_back() as made:
        before = instance_get(organisation=organisation, instance_id=instance_id)
        charged = prepaid.charged(before, clock)
        after, _ = purchases.instance_change(
            organisation=organisation, instance_id=instance_id, changes=changes, clock=clock, **members
        )
        price = _in_advance(_price(organisation, before, after, clock), after, charged, clock)
    problem = services.use_problem(before, changes["storage_gib"]) if "storage_gib" in changes else None
    changes, problems = differences(_members(before), _members(after)), (problem,) if problem else ()
    return Outlook(changes, price, problems, begun=tuple(made.begun))


def deleting(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK, **members: Any) -> Outlook:
    """Of endings.instance_delete, which takes the same."""
    with taken_back() as made:
        before = instance_get(organisation=organisation, instance_id=instance_id)
        charged = prepaid.charged(before, clock)
        endings.instance_delete(organisation=organisation, instance_id=instance_id, clock=clock, **members)
        after = instance_get(organisation=organisation, instance_id=instance_id)
        price = _in_advance(_price(organisation, before, None, clock), after, charged, clock)
    if before.state == InstanceState.DELETING:
        return Outlook({}, None, ("it is being deleted already",))
    if before.state == InstanceState.ISOLATED:
        return Outlook({}, None, ("it is isolated already",))
    if after.state == InstanceState.ISOLATED:
        return replace(_isolating(before, after, price), begun=tuple(made.begun))
    used = master.storage_used_bytes(before.cluster.address, before.id)
    lost = "all topics and records" if used is None else f"all topics and records ({size_text(used)} on disk)"
    return Outlook(
        {"state": (before.state, InstanceState.DELETING.value)},
        price,
        (f"{lost} would be deleted for good",),
        begun=tuple(made.begun),
    )


def beginning(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK, **members: Any) -> Outlook:
    """Of prepaid.prepaid_begin, which takes the same."""
    with taken_back() as made:
        before = prepaid.prepaid_get(organisation=organisation, instance_id=instance_id, clock=clock)
        was = _price(organisation, None, before.instance, clock)
        prepaid.prepaid_begin(organisation=organisation, instance_id=instance_id, clock=clock, **members)
        after = prepaid.prepaid_get(organisation=organisation, instance_id=instance_id, clock=clock)
        quote = _quoted(after, members["months"], clock)
    changes = _paid(before, after)
    at_once = quote.amount if changes else None  # asked again, it costs nothing more
    price = PriceChange(was.per_month_after, quote.a_month, was.currency, at_once)
    return Outlook(changes, price, begun=tuple(made.begun))


def renewing(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK, **members: Any) -> Outlook:
    """Of prepaid.prepaid_renew, which takes the same."""
    with taken_back() as made:
        before = prepaid.prepaid_get(organisation=organisation, instance_id=instance_id, clock=clock)
        prepaid.prepaid_renew(organisation=organisation, instance_id=instance_id, clock=clock, **members)
        after = prepaid.prepaid_get(organisation=organisation, instance_id=instance_id, clock=clock)
        quote = _quoted(after, members["months"], clock)
    changes = _paid(before, after)
    at_once = quote.amount if changes else None
    price = PriceChange(quote.a_month, quote.a_month, quote.prices.currency, at_once)
    return Outlook(changes, price, begun=tuple(made.begun))


def _quoted(now: prepaid.PrepaidNow, months: int, clock: Clock) -> prepaid.Quote:
    sizes = {name: getattr(now.instance, name) for name in rules.SIZES}
    return prepaid.prepaid_quote(organisation=now.instance.organisation, months=months, sizes=sizes, clock=clock)


def _paid(before: prepaid.PrepaidNow, after: prepaid.PrepaidNow) -> dict[str, tuple[object, object]]:
    """By the names that prepaid has in the API."""

    def members(each: prepaid.PrepaidNow) -> dict[str, object]:
        paid = {"prepaid.state": each.state, "prepaid.ends_at": each.ends_text, "prepaid.at_end": each.at_end}
        return {"state": each.instance.state, **paid}

    return differences(members(before), members(after))


def _in_advance(price: PriceChange, after: Instance, charged: Decimal | None, clock: Clock) -> PriceChange:
    if charged is None:
        return price
    account = account_get(after, clock.now())
    return replace(price, at_once=total_of(line.amount for line in account.paid.charges) - charged)


def _isolating(before: Instance, after: Instance, price: PriceChange) -> Outlook:
    ends = after.destroys_at
    assert ends is not None, "isolated"
    text = second_text(ends)
    lost = f"nobody could produce or consume any more; until {text} it could be restored, then its data would be deleted for good"
    return Outlook({"state": (before.state, after.state), "destroys_at": (None, text)}, price, (lost,))


def _members(instance: Instance) -> dict[str, object]:
    sizes = {name: _plain(getattr(instance, name)) for name in rules.SIZES}
    others = {name: getattr(instance, name) for name in ("deletion_protection", "maintenance_window")}
    wished = {"placement": instance.placement} if instance.placement else {}
    within = flat({**wished, "config": config_of(instance.config)})
    return {"name": instance.name, **sizes, "whitelist": instance.whitelist, **others, **within}


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
