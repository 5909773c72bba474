"""A receiver is deleted while an alarm that tells it is looked at, on a database of its own. Run by test_workers_at_once.py.

The look has locked the alarm and is about to write its message when whoever deletes the receiver comes. Prints what was found,
as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

from tests.support.django_process import set_up

WITHIN_S = 30.0


def main(directory: str, database: str) -> None:
    set_up(directory, database)
    from django.db import connection

    from controlplane.accounts import services as accounts
    from controlplane.alarms import evaluation, receivers
    from controlplane.alarms.models import Alarm, Delivery, Receiver
    from controlplane.alarms.readings import Reading
    from controlplane.clusters.services import cluster_ensure
    from controlplane.instances.models import Instance
    from controlplane.tenants import services as tenants
    from tests.controlplane.alarms.rows import alarm_row, receiver_row

    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    organisation = tenants.organisation_create(name="alice's", owner=user)
    began = datetime.now(UTC) - timedelta(hours=1)
    instance = Instance(
        id="ins-00000001", organisation=organisation, cluster=cluster_ensure(), name="events", bandwidth_mib_per_s=5,
        storage_gib=10, partitions=60, state="running", created_at=began,
    )  # fmt: skip
    instance.save(force_insert=True)
    receiver = receiver_row(instance)
    alarm_row(instance, receivers=[receiver.pk], since=began, seen_at=began)
    evaluation.cluster_observe = lambda _cluster: None
    evaluation.readings_get = lambda rows, **_options: {
        row.pk: Reading({("storage_used_percent", None): 95.0}) for row in rows
    }
    write, is_locked = evaluation.happened, threading.Event()

    def write_when_another_waits(*arguments, **named) -> None:
        is_locked.set()
        until = time.monotonic() + WITHIN_S
        while not waits() and time.monotonic() < until:
            time.sleep(0.02)
        write(*arguments, **named)

    def waits() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            return bool(cursor.fetchone()[0])

    def delete() -> None:
        is_locked.wait(WITHIN_S)
        receivers.receiver_delete(
            organisation=organisation, actor="alice", instance_id=instance.pk, receiver_id=receiver.pk
        )

    failed: list[str] = []

    def work(part) -> None:
        try:
            part()
        except Exception as error:  # noqa: BLE001  # it is printed
            failed.append(repr(error))
        finally:
            connection.close()

    evaluation.happened = write_when_another_waits
    threads = [threading.Thread(target=work, args=(part,)) for part in (evaluation.evaluate, delete)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(
        json.dumps(
            {
                "failed": failed,
                "phase": Alarm.objects.unscoped("a test").get().phase,
                "told": Alarm.objects.unscoped("a test").get().receivers,
                "receivers": Receiver.objects.unscoped("a test").count(),
                "messages": list(Delivery.objects.unscoped("a test").values_list("state", "error")),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
