"""A control plane of its own, on a real database, in which many threads buy and grow at once. Run by test_at_once.py.

A database in memory knows no waiting for each other; so this needs a process, and is one. Prints what was answered, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

THREADS = 8


def main(directory: Path, database_url: str) -> None:
    set_up(
        str(directory),
        database_url,
        SLUICE_ZOOKEEPER_ACL="off",  # there is none
        # No broker is known: the cluster is one, and has three times what one of the wanted takes.
        SLUICE_BROKER_ROOM="bandwidth_mib_per_s=15*1",
        SLUICE_CAPS="storage_gib=50",
    )
    from django.conf import settings
    from django.db import connection

    settings.ALLOWED_HOSTS = ["testserver"]
    from controlplane.accounts import services as accounts
    from controlplane.clusters import services as clusters
    from controlplane.core import operations
    from controlplane.instances.models import Instance
    from controlplane.tenants import services as tenants
    from tests.controlplane.conftest import WANTED, client_of

    operations.wake = lambda _ids: None
    clusters.cluster_ensure()
    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    _, key = accounts.api_key_create(organisation=organisation, user=user, name="test")

    def at_once(calls) -> list[list]:
        start, answers = threading.Barrier(len(calls)), []

        def call(one):
            start.wait()
            answer = one()
            answers.append([answer.status_code, answer.json().get("code")])
            connection.close()

        threads = [threading.Thread(target=call, args=(one,)) for one in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(answers, key=str)

    def buy():
        return client_of(key).post("/api/v1/instances", WANTED)

    def grow(instance_id):
        return lambda: client_of(key).patch(f"/api/v1/instances/{instance_id}", {"storage_gib": 30})

    rows = Instance.objects.unscoped("a test")
    bought = at_once([buy] * THREADS)
    grown = at_once([grow(instance_id) for instance_id in rows.values_list("pk", flat=True)])
    print(json.dumps({"bought": bought, "grown": grown, "storage": sorted(rows.values_list("storage_gib", flat=True))}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
