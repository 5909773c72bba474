"""Several workers look at policies and carry operations on at once, on a database of their own.

Run by test_workers_at_once.py; a database in memory knows no waiting for each other. Prints what was found, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from typing import Any

from tests.support.django_process import set_up

WORKERS, INSTANCES, ROUNDS = 4, 4, 3
GIB = 2**30


def main(directory: str, database: str) -> None:
    set_up(directory, database)
    from django.db import connection

    from controlplane.accounts import services as accounts
    from controlplane.clusters import coordination, master, zookeeper
    from controlplane.clusters.services import cluster_ensure
    from controlplane.core import operations
    from controlplane.core.clock import SYSTEM_CLOCK
    from controlplane.core.models import Operation
    from controlplane.instances.models import Instance, SpecChange
    from controlplane.policies import evaluation
    from controlplane.policies.models import DiskPolicy
    from controlplane.tenants import services as tenants
    from tests.controlplane.fakes import ManualClock

    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    for number in range(INSTANCES):
        instance = Instance(
            id=f"ins-0000000{number}", organisation=organisation, cluster=cluster_ensure(), name=f"events {number}",
            state="running", created_at=SYSTEM_CLOCK.now(), bandwidth_mib_per_s=5, storage_gib=10, partitions=60,
        )  # fmt: skip
        instance.save(force_insert=True)
        DiskPolicy(instance=instance, organisation=organisation, policy="expansion", max_storage_gib=100).save(
            force_insert=True
        )

    def document(name: str) -> dict[str, Any]:
        """Always used to 80 %."""
        size = Instance.objects.unscoped("a test").get(pk=name).storage_gib
        return {"instance": name, "storage_used_bytes": round(size * GIB * 0.8)}

    def nothing(*_arguments: object, **_members: object) -> list[Any]:
        return []

    for module, name, answer in (
        (master, "short", lambda _cluster, names: [document(each) for each in names]),
        (master, "allocation", lambda _cluster, name: document(name)),
        (master, "brokers", nothing),
        (coordination, "live_brokers", nothing),
        (zookeeper, "tree", nothing),
        (operations, "wake", nothing),
    ):
        setattr(module, name, answer)
    clock = ManualClock()
    clock.time = SYSTEM_CLOCK.now()
    failed: list[str] = []
    for _ in range(ROUNDS):
        start = threading.Barrier(WORKERS)

        def work(start: threading.Barrier = start) -> None:
            try:
                start.wait()
                evaluation.evaluate(clock=clock)
                start.wait()
                kinds = Operation.objects.unscoped("a test").filter(kind="policies.expand", state="running")
                for operation_id in kinds.order_by("pk").values_list("pk", flat=True):
                    operations.run(operation_id, clock=clock)
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
        clock.advance(400)
    rows = Operation.objects.unscoped("a test")
    print(
        json.dumps(
            {
                "failed": failed,
                "operations": Counter(rows.filter(kind="policies.expand").values_list("state", flat=True)),
                "purchases": rows.filter(kind="instance.update").count(),
                "sizes": sorted(Instance.objects.unscoped("a test").values_list("storage_gib", flat=True)),
                "recorded": SpecChange.objects.unscoped("a test").count(),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
