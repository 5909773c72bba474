"""An operator, somebody to approve, a cluster of three brokers with a topic of alice's, and a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controlplane.accounts.models import User
from controlplane.clusters.models import Broker
from controlplane.clusters.services import port_ensure
from controlplane.core import operations
from controlplane.kafka.client import Layout, Partition
from controlplane.rebalancing import services
from controlplane.rebalancing.models import Rebalance
from tests.controlplane.conftest import run_to_the_end

if TYPE_CHECKING:
    from controlplane.clusters.models import PhysicalCluster
    from tests.controlplane.fakes import ManualClock

MIB = 2**20


@pytest.fixture
def operator(charlie):
    """An operator of the service."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    return charlie


@pytest.fixture
def cluster(instance) -> PhysicalCluster:
    """Alice's instance's, with a fourth broker that serves it and has nothing yet."""
    fourth = Broker.objects.create(cluster=instance.cluster, broker_id=4, host="127.0.0.1", port=19004)
    port_ensure(broker=fourth, owner=instance.id, route="default")
    return instance.cluster


@pytest.fixture
def place(instance):
    """Puts a topic of alice's where a test wants it: one partition for each list of replicas, led by the first."""
    key = instance.id.removeprefix("ins-")

    def put(admin, *replicas, topic="orders", size=MIB) -> str:
        name = f"{key}.{topic}"
        admin.topics[name] = Layout(
            name,
            tuple(Partition(number, each[0], tuple(each), tuple(each)) for number, each in enumerate(replicas)),
        )
        admin.configs[name] = {}
        admin.placement.sizes |= {(name, number): size for number in range(len(replicas))}
        return name

    return put


def proposed(cluster, clock, **wishes) -> Rebalance:
    """Planned."""
    row = services.rebalance_propose(cluster=cluster, actor="olga@example.com", clock=clock, **wishes)
    assert run_to_the_end(row.operation_id, clock).state == "succeeded"
    row.refresh_from_db()
    return row


def begun(cluster, clock, **wishes) -> Rebalance:
    """Planned, and about to be carried out."""
    row = proposed(cluster, clock, **wishes)
    return services.rebalance_carry_out(rebalance_id=row.id, actor="olga@example.com", clock=clock)


def work(row: Rebalance, clock: ManualClock, rounds: int = 1) -> Rebalance:
    """Be the worker for so many rounds."""
    for _ in range(rounds):
        clock.advance(2)
        operations.run(row.operation_id, clock=clock)
    return Rebalance.objects.get(pk=row.pk)


def replicas_in(admin, topic) -> list[tuple[int, ...]]:
    return [each.replicas for each in admin.topics[topic].partitions]
