"""A control plane of its own, on a real database, in which many workers at once tell owners of the same. Run by test_at_once.py.

A database in memory knows no waiting for each other; so this needs a process, and is one. Prints how many were told of, and
how many mails were written, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

WORKERS = 8


def main(directory: Path, database_url: str) -> None:
    set_up(
        str(directory),
        database_url,
        SLUICE_ZOOKEEPER_ACL="off",  # there is none
        SLUICE_SMTP="127.0.0.1:9",  # nothing is sent here
        SLUICE_EMAIL_FROM="service@sluice.example.com",
        SLUICE_CONSOLE_URL="https://sluice.example.com",
    )
    from datetime import timedelta

    from django.db import connection

    from controlplane.accounts import services as accounts
    from controlplane.admission import scheduling
    from controlplane.clusters import services as clusters
    from controlplane.core import operations
    from controlplane.core.clock import SYSTEM_CLOCK
    from controlplane.core.models import Operation
    from controlplane.instances import lifecycle, services
    from controlplane.instances.models import Instance, InstanceState
    from controlplane.mail.models import Mail
    from controlplane.tenants import services as tenants
    from tests.controlplane.admission.rows import change_row
    from tests.controlplane.conftest import WANTED
    from tests.controlplane.fakes import ManualClock

    operations.wake = lambda _ids: None
    clusters.cluster_ensure()
    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    instance, _ = services.instance_create(organisation=organisation, actor="alice@example.com", **WANTED)
    rows, clock = Instance.objects.unscoped("a test"), ManualClock()
    clock.time = SYSTEM_CLOCK.now()
    rows.update(state=InstanceState.RUNNING)

    def at_once(call) -> list[int]:
        """What each said of how many it told, and how many mails there are since."""
        before, told = Mail.objects.count(), []
        start = threading.Barrier(WORKERS)

        def work():
            start.wait()
            told.append(call())
            connection.close()

        threads = [threading.Thread(target=work) for _ in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [len(told), sum(told), Mail.objects.count() - before]

    def delete() -> int:
        lifecycle.instance_delete(organisation=organisation, actor="alice@example.com", instance_id=instance.id)
        return 0

    change = change_row(instance, at=clock.time)
    found = {"made": at_once(lambda: scheduling.changes_carry_out(clock=clock))}
    change.refresh_from_db()
    Operation.objects.unscoped("a test").filter(pk=change.operation_id).update(state="succeeded")
    found["told"] = at_once(lambda: scheduling.changes_tell(clock=clock))
    change_row(instance, "chg-000000000002", at=clock.time, changes={"bandwidth_mib_per_s": 10_000})
    found["refused"] = at_once(lambda: scheduling.changes_carry_out(clock=clock))
    found["isolated"] = at_once(delete)
    clock.time = rows.get().destroys_at - timedelta(hours=2)
    found["foretold"] = at_once(lambda: lifecycle.ends_foretell(clock=clock))
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
