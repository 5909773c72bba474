"""A control plane of its own, on a real database, in which many write into one audit trail at once. Run by test_at_once.py.

Prints what became of each organisation's chain, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

WRITERS, ENTRIES = 8, 12


def main(directory: Path, database_url: str) -> None:
    set_up(str(directory), database_url, SLUICE_ZOOKEEPER_ACL="off")  # there is none
    from django.db import DatabaseError, connection, transaction

    from controlplane.accounts import services as accounts
    from controlplane.core import audit, audit_sealing
    from controlplane.core.models import AuditEntry
    from controlplane.tenants import services as tenants

    user, _ = accounts.user_ensure(email="alice@example.com", password=None)
    both = [tenants.organisation_create(name=name, owner=user) for name in ("first", "second")]
    start, failed = threading.Barrier(WRITERS + 1), []

    def write(number: int) -> None:
        """Changes that tell two organisations, in whatever order; every third is taken back."""
        start.wait()
        try:
            for each in range(ENTRIES):
                with transaction.atomic():
                    for organisation in both if number % 2 else reversed(both):
                        audit.record(organisation=organisation, actor="a", action="x.y", target=f"{number}-{each}")
                    if each % 3 == 2:
                        transaction.set_rollback(True)
        except DatabaseError as error:  # told to the test
            failed.append(repr(error))
        connection.close()

    def sweep() -> None:
        start.wait()
        for _ in range(20):
            audit_sealing.extend_all()
        connection.close()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    threads.append(threading.Thread(target=sweep))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {}
    for organisation in both:
        verified = audit_sealing.verify(organisation=organisation)
        numbers = AuditEntry.objects.for_organisation(organisation).values_list("number", flat=True)
        found[organisation.name] = {
            "checked": verified.checked,
            "waiting": verified.waiting,
            "broken": verified.broken and verified.broken.detail,
            "numbers": sorted(numbers) == list(range(1, len(numbers) + 1)),
        }
    print(json.dumps({**found, "failed": failed}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
