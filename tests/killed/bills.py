"""The product's side of a bill, in a process of its own with Django on one of the campaign's databases.

    python -m tests.killed.bills make FOLDER URL       tables, organisations, instances
    python -m tests.killed.bills tell FOLDER URL       what instances used and owe

Standard input of `make` is {"opened": …, "plans": {instance: plan}}, of `tell` {"now": …}. Standard output of `tell` is
{instance: {"hours": {hour: [produced, consumed, stored]}, "bills": {plan: {month: {item: amount}}}}}, under the instance's own
plan (`billing.selectors.bill_get`) and under FINE (`inputs_of`, `documents.rated`).
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.killed.pricing import FINE, PRICES, SIZE
from tests.support.clocks import StandingClock
from tests.support.django_process import set_up


def make(opened: datetime, plans: dict[str, str]) -> None:
    """Each instance in an organisation of its own, whose plan is in force since before it was opened."""
    from controlplane.accounts.services import user_ensure
    from controlplane.billing.models import PlanChoice
    from controlplane.clusters.services import cluster_ensure
    from controlplane.instances.history import spec_change_record
    from controlplane.instances.models import Instance, InstanceState, SpecChangeKind
    from controlplane.tenants.services import organisation_create

    cluster = cluster_ensure()
    for number, (instance_id, plan) in enumerate(plans.items()):
        owner, _ = user_ensure(email=f"owner-{number}@example.com", password=None)
        organisation = organisation_create(name=f"organisation {number}", owner=owner)
        instance = Instance(
            id=instance_id, organisation=organisation, cluster=cluster, name=f"instance {number}",
            state=InstanceState.RUNNING, created_at=opened, **SIZE,
        )  # fmt: skip
        instance.save(force_insert=True)
        spec_change_record(instance=instance, kind=SpecChangeKind.OPENED, at=opened)
        first = opened.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        PlanChoice(organisation=organisation, plan=plan, at=first).save(force_insert=True)


def tell(now: datetime) -> dict[str, Any]:
    """What the module says."""
    from controlplane.instances.models import Instance

    instances = Instance.objects.unscoped("all of this campaign").select_related("organisation")
    return {instance.id: _told(instance, now) for instance in instances}


def _told(instance: Any, now: datetime) -> dict[str, Any]:
    from controlplane.billing import selectors
    from controlplane.billing.pricing import documents
    from controlplane.billing.pricing.plans import Plan
    from controlplane.billing.pricing.rating import Month, Term, total
    from controlplane.metering.selectors import usage_hours

    prices = {f"{item}_per_gb": Decimal(PRICES[FINE][item]) for item in ("produced", "consumed")}
    stored = Decimal(PRICES[FINE]["stored"])
    fine = Plan(FINE, 1, "Fine", "CNY", (), None, None, **prices, stored_per_gb_hour=stored)
    hours = usage_hours(instance=instance, start=instance.created_at, end=now + timedelta(days=1), now=now)
    bills: dict[str, dict[str, Any]] = {}
    month = Month.of(instance.created_at)
    while month.start <= now:
        bill = selectors.bill_get(
            organisation=instance.organisation, instance_id=instance.id, month=month, clock=StandingClock(now)
        )
        amounts = [(line["item"], line["amount"]) for line in bill.lines]
        bills.setdefault(bill.plan, {})[str(month)] = _by_item(amounts) | {"total": bill.total}
        lines = documents.rated(selectors.inputs_of(instance, (Term(month.start, fine),), month, now))
        amounts = [(line.item, str(line.amount)) for line in lines]
        bills.setdefault(FINE, {})[str(month)] = _by_item(amounts) | {"total": str(total(lines))}
        month = month.before(-1)
    return {
        "hours": {hour.hour: [hour.produced_bytes, hour.consumed_bytes, hour.stored_byte_seconds] for hour in hours},
        "bills": bills,
    }


def _by_item(amounts: list[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, Decimal] = {}
    for item, amount in amounts:
        found[item] = found.get(item, Decimal(0)) + Decimal(amount)
    return {item: f"{amount:f}" for item, amount in found.items()}


def main() -> None:
    word, folder, url = sys.argv[1:]
    asked = json.load(sys.stdin)
    set_up(folder, url, makes_tables=word == "make")
    if word == "make":
        make(datetime.fromisoformat(asked["opened"]).astimezone(UTC), asked["plans"])
        answer: dict[str, Any] = {}
    else:
        answer = tell(datetime.fromisoformat(asked["now"]))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
