"""A control plane of its own, on a real database: what happens at once to an organisation. Run by test_at_once.py.

A database in memory knows no waiting for each other; so this needs a process, and is one. Prints what was answered, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from tests.support.django_process import set_up

ROUNDS, BUYERS = 6, 3


def main(directory: Path, database_url: str) -> None:
    set_up(str(directory), database_url, SLUICE_ZOOKEEPER_ACL="off")  # there is none
    from django.conf import settings
    from django.db import connection

    settings.ALLOWED_HOSTS = ["testserver"]
    from controlplane.accounts import services as accounts
    from controlplane.clusters import services as clusters
    from controlplane.core import operations
    from controlplane.instances.models import Instance
    from controlplane.tenants import services as tenants
    from controlplane.tenants.models import Membership, Organisation, Role
    from tests.controlplane.conftest import WANTED, client_of

    operations.wake = lambda _ids: None
    clusters.cluster_ensure()

    def owner(name, organisation=None):
        user, _ = accounts.user_ensure(email=f"{name}@example.com", password=None)
        if organisation is None:
            organisation = tenants.organisation_create(name=name, owner=user)
        else:
            tenants.membership_set(organisation=organisation, user=user, role=Role.OWNER)
        return organisation, user, accounts.api_key_create(organisation=organisation, user=user, name="test")[1]

    def at_once(calls) -> list[list]:
        start, answers = threading.Barrier(len(calls)), []

        def call(kind, one):
            start.wait()
            answer = one()
            answers.append([kind, answer.status_code, answer.json().get("code")])
            connection.close()

        threads = [threading.Thread(target=call, args=each) for each in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(answers, key=str)

    deletions = []
    for number in range(ROUNDS):
        organisation, _, key = owner(f"buyer-{number}")
        address = f"/api/v1/organisations/{organisation.id}/deletion"
        body = {"name": organisation.name}
        calls = [("buy", lambda key=key: client_of(key).post("/api/v1/instances", WANTED))] * BUYERS
        calls.insert(number % BUYERS, ("delete", lambda k=key, a=address, b=body: client_of(k).post(a, b)))
        answers = at_once(calls)
        deletions.append(
            {
                "answers": answers,
                "instances": Instance.objects.for_organisation(organisation).count(),
                "in_use": Organisation.objects.get(pk=organisation.pk).is_in_use,
            }
        )
    handovers = []
    for number in range(ROUNDS):
        organisation, first, one = owner(f"first-{number}")
        _, second, two = owner(f"second-{number}", organisation)
        rows = Membership.objects.filter(organisation=organisation)
        address = f"/api/v1/organisations/{organisation.id}/transfer"

        def hand_over(key, to, address=address, rows=rows):
            member = rows.get(user=to).pk
            return lambda: client_of(key).post(address, {"member_id": member, "step_down_to": "member"})

        answers = at_once([("first", hand_over(one, second)), ("second", hand_over(two, first))])
        handovers.append({"answers": answers, "owners": rows.filter(role=Role.OWNER).count()})
    print(json.dumps({"deletions": deletions, "handovers": handovers}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
