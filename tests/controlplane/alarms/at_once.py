"""Several workers at once on a database of their own, with a real receiver of webhooks. Run by test_workers_at_once.py.

A database in memory knows no waiting for each other; so this needs a process, and is one. Prints what was found, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

from tests.support.django_process import set_up

WORKERS, ALARMS, ROUNDS = 4, 6, 6


def main(directory: str, database: str) -> None:
    set_up(directory, database, SLUICE_WEBHOOK_NETWORKS="127.0.0.0/8")
    from django.db import connection

    from controlplane.accounts import services as accounts
    from controlplane.alarms import evaluation
    from controlplane.alarms.delivery.outbox import send_due
    from controlplane.alarms.models import AlarmEvent, Delivery
    from controlplane.alarms.readings import Reading
    from controlplane.clusters.services import cluster_ensure
    from controlplane.instances.models import Instance
    from controlplane.tenants import services as tenants
    from tests.controlplane.alarms.rows import alarm_row, receiver_row
    from tests.support.webhooks import WebhookServer

    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    began = datetime.now(UTC) - timedelta(hours=1)
    instance = Instance(
        id="ins-00000001", organisation=organisation, cluster=cluster_ensure(), name="events", bandwidth_mib_per_s=5,
        storage_gib=10, partitions=60, state="running", created_at=began,
    )  # fmt: skip
    instance.save(force_insert=True)
    percent = [0.0]
    evaluation.cluster_observe = lambda _cluster: None
    evaluation.readings_get = lambda rows, **_options: {
        row.pk: Reading({("storage_used_percent", None): percent[0]}) for row in rows
    }
    failed: list[str] = []
    with WebhookServer() as server:
        receiver = receiver_row(instance, address=server.url)
        for number in range(ALARMS):
            alarm_row(instance, f"alm-{number:012}", receivers=[receiver.pk], since=began, seen_at=began)
        for number in range(ROUNDS):
            percent[0] = 95.0 if number % 2 == 0 else 10.0
            start = threading.Barrier(WORKERS)

            def work(start=start) -> None:
                try:
                    start.wait()
                    evaluation.evaluate()
                    start.wait()
                    send_due()
                except Exception as error:  # noqa: BLE001  # it is printed
                    failed.append(repr(error))
                finally:
                    connection.close()

            threads = [threading.Thread(target=work) for _ in range(WORKERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        taken = [each.headers["webhook-id"] for each in server.taken]
    print(
        json.dumps(
            {
                "failed": failed,
                "events": Counter(AlarmEvent.objects.unscoped("a test").values_list("kind", flat=True)),
                "messages": Counter(Delivery.objects.unscoped("a test").values_list("state", flat=True)),
                "taken": len(taken),
                "different": len(set(taken)),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
