"""A round of reconciling looks at a cluster once: what it asks does not grow with instances that need nothing."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.clusters import coordination
from controlplane.clusters.models import Broker, PortAllocation
from controlplane.clusters.services import brokers_sync, cluster_ensure
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.health.services import health_observe
from controlplane.instances import reconcile
from controlplane.instances.models import Instance, Route
from controlplane.instances.selectors import spec_wanted
from quota.contracts.apart import nodes_of, spec_path


@pytest.fixture
def settled(alice, tree, brokers):
    """`settled(500)`: as many instances that run, and of which nothing is to be done."""

    def make(count: int) -> list[Instance]:
        cluster, now = cluster_ensure(), SYSTEM_CLOCK.now()
        brokers_sync(cluster=cluster, live=coordination.live_brokers(tree))
        made = [
            Instance(
                id=f"ins-{number:08}", organisation=alice.organisation, cluster=cluster, name=f"number {number}",
                bandwidth_mib_per_s=5, storage_gib=10, partitions=60, state="running", created_at=now,
            )
            for number in range(count)
        ]  # fmt: skip
        Instance.objects.unscoped("a test").bulk_create(made)
        Route.objects.unscoped("a test").bulk_create(
            Route(
                organisation=alice.organisation, instance=instance, number=1, key="default", state="running", created_at=now
            )
            for instance in made
        )  # fmt: skip
        PortAllocation.objects.bulk_create(
            PortAllocation(
                host=broker.host, port=20_000 + 3 * number + broker.broker_id, broker=broker, owner=instance.id,
                route="default", changed_at=now,
            )
            for number, instance in enumerate(made)
            for broker in Broker.objects.all()
        )  # fmt: skip
        for instance in made:
            for path, data in nodes_of(spec_wanted(instance)).items():
                tree.put(path, data)
        brokers.apply()
        tree.after_write = lambda: None
        return made

    return make


def asked_in_a_round(tree):
    tree.asked = 0
    with CaptureQueriesContext(connection) as queries:
        reconcile.reconcile_all()
    return tree.asked, len(queries)


def test_what_a_round_asks_does_not_grow_with_settled_instances(settled, tree):
    settled(reconcile.INSTANCES_AT_ONCE)
    assert not Instance.objects.unscoped("a test").exclude(problem="").exists()
    few = asked_in_a_round(tree)
    assert few[0] <= 6  # two of registrations, two of what is applied, two of specifications
    Instance.objects.unscoped("a test").filter(pk__gte="ins-00000005").update(state="deleted")
    assert asked_in_a_round(tree) == few


def test_what_is_to_be_done_for_one_is_done_with_the_rounds_observation(settled, tree):
    made = settled(20)
    few = asked_in_a_round(tree)
    del tree.nodes[spec_path(made[7].id)]
    more = asked_in_a_round(tree)
    assert tree.spec(made[7].id)
    assert 0 < more[0] - few[0] < 25
    assert asked_in_a_round(tree) == few


def test_a_round_of_health_looks_at_a_cluster_once(settled, tree):
    settled(10)
    tree.asked = 0
    health_observe()
    assert tree.asked == 4  # two of registrations, two of what is applied
