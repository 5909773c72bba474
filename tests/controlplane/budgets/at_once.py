"""Several workers compute costs, look at budgets and send at once, on a database of their own, from usage rows to a real webhook.

Run by test_workers_at_once.py; a database in memory knows no waiting for each other. Prints what was found, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from datetime import timedelta
from decimal import Decimal

from tests.support.django_process import set_up

WORKERS, BUDGETS, INSTANCES, ROUNDS = 4, 6, 3, 4
GB = 10**9


def main(directory: str, database: str) -> None:
    set_up(directory, database, SLUICE_WEBHOOK_NETWORKS="127.0.0.0/8")
    from django.db import connection

    from controlplane.accounts import services as accounts
    from controlplane.alarms.delivery.outbox import send_due
    from controlplane.alarms.models import Delivery
    from controlplane.billing.costs import costs_refresh
    from controlplane.billing.models import MonthCost, PlanChoice
    from controlplane.billing.pricing.rating import Month
    from controlplane.budgets import evaluation
    from controlplane.budgets.models import BudgetAlert
    from controlplane.clusters.services import cluster_ensure
    from controlplane.instances.models import Instance, SpecChange
    from controlplane.metering.selectors import usage_by_topic
    from controlplane.tenants import services as tenants
    from tests.controlplane.alarms.rows import receiver_row
    from tests.controlplane.fakes import ManualClock
    from tests.support.usage import usage_complete, usage_raise, usage_row
    from tests.support.webhooks import WebhookServer

    from .rows import budget_row

    month = Month(2026, 5)
    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    PlanChoice(organisation=organisation, plan="traffic", at=month.start).save(force_insert=True)
    made = []
    for number in range(INSTANCES):
        size = {"bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60}
        instance = Instance(
            id=f"ins-0000000{number}", organisation=organisation, cluster=cluster_ensure(), name=f"events {number}",
            state="running", created_at=month.start, **size,
        )  # fmt: skip
        instance.save(force_insert=True)
        about = {"organisation": organisation, "instance": instance, "kind": "opened", "at": month.start}
        SpecChange(**about, **size).save(force_insert=True)
        made.append(instance)
    clock = ManualClock()
    failed: list[str] = []
    with WebhookServer() as server:
        receiver = receiver_row(made[0], address=server.url)
        for number in range(BUDGETS):
            # In whole: 3 instances of 100, 200, 300 and 400 GB at 0.60.
            budget_row(
                organisation, receiver, budget_id=f"bud-{number:012}", amount=Decimal(720), actual_percents=[25, 50, 75, 100],
                forecast_percents=[],
            )  # fmt: skip
        for turn in range(ROUNDS):
            day = month.start + timedelta(days=10 * turn // ROUNDS + 1)
            usage_raise([usage_row(each.pk, f"{day:%Y-%m-%dT%H}", 100 * GB * (turn + 1)) for each in made])
            usage_complete(day + timedelta(hours=2))
            clock.time = day + timedelta(hours=2 + turn)
            start = threading.Barrier(WORKERS)

            def work(start=start) -> None:
                try:
                    start.wait()
                    costs_refresh(clock=clock)
                    start.wait()
                    evaluation.evaluate(clock=clock)
                    start.wait()
                    send_due(clock=clock)
                except Exception as error:  # noqa: BLE001  # it is printed
                    failed.append(repr(error))
                    start.abort()
                finally:
                    connection.close()

            threads = [threading.Thread(target=work) for _ in range(WORKERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        taken = [(each.headers["webhook-id"], each.document["data"]["percent"]) for each in server.taken]
    rows = MonthCost.objects.unscoped("a test").filter(month=str(month))
    usage_raise(
        [
            usage_row(
                made[0].pk, f"{month.start:%Y-%m-%d}T{hour:02}", 0, boot=f"b{hour}", topic="huge", stored=2**62 + 1
            )
            for hour in (3, 4, 5)
        ]
    )
    [topics] = usage_by_topic(instance=made[0], bounds=[month.start, month.end])
    print(
        json.dumps(
            {
                "failed": failed,
                "costs": sorted(str(row.so_far) for row in rows),
                "alerts": Counter(BudgetAlert.objects.unscoped("a test").values_list("percent", flat=True)),
                "messages": Counter(Delivery.objects.unscoped("a test").values_list("state", flat=True)),
                "told": Counter(percent for _, percent in taken),
                "different": len({name for name, _ in taken}),
                "huge": topics["huge"],
                "orders": topics["orders"][0],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
