"""A control plane of its own, on a database in a file, that is called by many threads at once. Run by test_many_at_once.py.

A database in memory knows no waiting for each other; so this needs a process, and is one. Prints what was answered, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

THREADS, KEYS = 8, 5


def main(directory: Path, database_url: str) -> None:
    set_up(str(directory), database_url)
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
    found: dict[str, list[tuple[int, str]]] = {}
    for number in range(KEYS):
        start = threading.Barrier(THREADS)
        answers = found[str(number)] = []

        def call(number=number, start=start, answers=answers):
            start.wait()
            answer = client_of(key).post("/api/v1/instances", WANTED, HTTP_IDEMPOTENCY_KEY=f"key-{number}")
            answers.append((answer.status_code, answer.json().get("id") or answer.json()["code"]))
            connection.close()

        threads = [threading.Thread(target=call) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(json.dumps({"answers": found, "instances": Instance.objects.unscoped("a test").count()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
