"""No page asks the database more as its rows grow; and the largest organisation we promise is still quick to look at."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts import services as accounts
from controlplane.accounts.models import User
from controlplane.clusters.models import Broker, PortAllocation
from controlplane.clusters.services import cluster_ensure
from controlplane.core import ids
from controlplane.core.models import Operation
from controlplane.instances.models import Instance, Route
from controlplane.instances.spec import DEFAULT_ROUTE
from controlplane.kafka.client import Layout, Partition
from controlplane.tenants.models import Membership
from tests.controlplane.fakes import FakeGroup
from tests.support.usage import usage_raise, usage_row

from .test_instance_pages import flowing

MOST_QUERIES = 30
MOST_S = 0.3
TOPICS_EACH = 50


def populate(organisation, admin, flow_master, instances: int, *, hours: int = 24, brokers_told=(1,)) -> list[str]:
    """Instances with addresses, topics and operations; keys, members, and usage of the first instance: in each of the last
    hours, of each topic on each of `brokers_told`.
    """
    source, now = random.Random(4), datetime.now(UTC)
    cluster = cluster_ensure()
    brokers = [
        Broker.objects.get_or_create(cluster=cluster, broker_id=n, defaults={"host": "127.0.0.1", "port": n})[0]
        for n in (1, 2, 3)
    ]
    made = [
        Instance(
            id=ids.instance_id(source),
            organisation=organisation,
            cluster=cluster,
            name=f"instance {number}",
            bandwidth_mib_per_s=20,
            storage_gib=100,
            partitions=300,
            whitelist=["10.0.0.0/8"],
            state="running",
            created_at=now - timedelta(minutes=number),
        )
        for number in range(instances)
    ]
    Instance.objects.unscoped("a test").bulk_create(made)
    Route.objects.unscoped("a test").bulk_create(
        Route(organisation=organisation, instance=instance, number=1, key=DEFAULT_ROUTE, state="running",
              created_at=instance.created_at)
        for instance in made
    )  # fmt: skip
    PortAllocation.objects.bulk_create(
        PortAllocation(
            host=f"h{number}", port=20_000 + broker.broker_id, broker=broker, owner=instance.id, changed_at=now
        )
        for number, instance in enumerate(made)
        for broker in brokers
    )
    Operation.objects.unscoped("a test").bulk_create(
        Operation(
            id=ids.operation_id(source),
            organisation=organisation,
            kind="instance.create",
            target=instance.id,
            state="succeeded",
            steps=[{"name": "wait for brokers", "state": "succeeded", "note": ""}],
            runnable_at=now,
            created_at=now,
        )
        for instance in made
    )
    partition = Partition(0, 1, (1, 2, 3), (1, 2, 3))
    for instance in made:
        for topic in range(TOPICS_EACH):
            name = f"{instance.id.removeprefix('ins-')}.topic-{topic:03}"
            admin.topics[name] = Layout(name, (partition,) * 3)
            admin.configs[name] = {}
            admin.groups.found[f"{name}-readers"] = FakeGroup({(name, 0): 0})
            admin.transactions.begin(f"{name}-copier", (name, 0))
            admin.transactions.hang((name, 0), at=0)
    flow_master.answers = dict.fromkeys((instance.id for instance in made), flowing())
    for number in range(60):
        user = User.objects.create_user(f"member{number}@example.com")
        Membership.objects.create(organisation=organisation, user=user, role="member")
        accounts.api_key_create(organisation=organisation, user=user, name=f"key {number}")
    usage_raise(
        usage_row(
            made[0].id, f"{now - timedelta(hours=hour):%Y-%m-%dT%H}", 10**9 - hour, consumed=10**9 - hour,
            stored=10**12 - hour, boot=f"boot-{broker}", topic=f"topic-{topic:03}", broker=broker, offset=hour,
        )
        for topic in range(TOPICS_EACH)
        for hour in range(hours)
        for broker in brokers_told
    )  # fmt: skip
    return [instance.id for instance in made]


def paths(first: str) -> list[str]:
    one = f"instances/{first}"
    return [
        "instances", "instances?q=instance&page=2", one, f"{one}/settings", f"{one}/delete", f"{one}/access",
        f"{one}/live", f"{one}/status", f"{one}/topics", f"{one}/topics/topic-007", f"{one}/groups", f"{one}/groups?q=7",
        f"{one}/groups/topic-007-readers", f"{one}/group-offsets/topic-007-readers", f"{one}/usage",
        f"{one}/usage?month={datetime.now(UTC):%Y-%m}", f"{one}/usage/{datetime.now(UTC):%Y-%m-%dT%H}", f"{one}/bill",
        "operations", "operations?q=instance", "bills", "keys", "members", "instances/new",
    ]  # fmt: skip


def costs(at_alice, at_staff, first: str) -> dict[str, tuple[int, float]]:
    """Queries and CPU seconds of every page that shows rows; the first time, which compiles templates, does not count."""
    found = {}
    addresses = [(at_alice.client, at_alice.address(path)) for path in paths(first)]
    addresses += [(at_staff, path) for path in ("/fleet", "/fleet?q=instance", f"/fleet/instances/{first}")]
    for client, address in addresses:
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            began = time.thread_time()
            page = client.get(address)
            took_s = time.thread_time() - began
        assert page.status_code == 200, address
        found[address] = (len(queries), took_s)
    return found


def test_no_page_asks_more_as_its_rows_grow(at_alice, at_staff, admin, flow_master):
    (first, *_) = populate(at_alice.organisation, admin, flow_master, instances=60)
    for address, (queries, _) in costs(at_alice, at_staff, first).items():
        assert queries < MOST_QUERIES, address


@pytest.mark.long
@pytest.mark.timeout(600)
def test_two_thousand_instances_of_fifty_topics_are_quick_to_look_at(at_alice, at_staff, admin, flow_master):
    (first, *_) = populate(at_alice.organisation, admin, flow_master, instances=2000)
    assert len(admin.topics) == 100_000
    found = costs(at_alice, at_staff, first)
    for address, (queries, took_s) in sorted(found.items(), key=lambda item: -item[1][1]):
        print(f"{queries:3} queries {1000 * took_s:6.0f} ms  {address}")
    slow = {address: cost for address, cost in found.items() if cost[0] >= MOST_QUERIES or cost[1] >= MOST_S}
    assert slow == {}
