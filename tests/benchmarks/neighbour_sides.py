"""Whose quotas `neighbours` measures: ten tenants of three brokers of ours, or of Apache Kafka.

sluice    an instance each, whose limit is divided between the brokers by the master
apache    a client id each. Its quotas (KIP-13) are of each broker by itself: a third of the limit on each of three, which is
          as much as is sold and fits the demand here, where every tenant's partitions are led evenly

Both sides have their logs on the same file system, in memory where there is one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from dataplane.throttle.client_quotas import PRODUCE_RATE
from quota.contracts.instance import Limits
from tests.benchmarks.apache import ApacheRig
from tests.benchmarks.neighbour_clients import Tenant
from tests.benchmarks.report import APACHE, OURS
from tests.benchmarks.server import create_topic
from tests.support.cluster import BROKERS, ProcessCluster
from tests.support.waiting import wait_for
from tests.support.wire import Wire

PARTITIONS = 3
_MEMORY = Path("/dev/shm")


@contextmanager
def _sluice(tenants: int, limit: int) -> Iterator[list[Tenant]]:
    memory = _MEMORY if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder, ProcessCluster(Path(folder)) as cluster:
        made = [cluster.tenant(limits=Limits(limit, limit, None, None)) for _ in range(tenants)]
        for tenant in made:
            create_topic(tenant.bootstrap, "flow", PARTITIONS, len(BROKERS))
        wait_for(lambda: not cluster.master_says("/health")["learning"], 60, "the master to have learnt")
        yield [Tenant("flow", {"bootstrap.servers": tenant.bootstrap}) for tenant in made]


@contextmanager
def _apache(tenants: int, limit: int) -> Iterator[list[Tenant]]:
    with ApacheRig(brokers=len(BROKERS)) as kafka:
        names = [f"tenant-{number}" for number in range(tenants)]
        for name in names:
            create_topic(kafka.bootstrap, name, PARTITIONS, len(BROKERS))
        with Wire(kafka.address(), timeout_s=30) as wire:
            answer = wire.call(_client_quotas(names, limit // len(BROKERS)), 1)
            assert not any(entry.error_code for entry in answer.entries), answer
        yield [Tenant(name, {"bootstrap.servers": kafka.bootstrap, "client.id": name}) for name in names]


def _client_quotas(names: list[str], bytes_per_s: int) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=tuple(
            AlterClientQuotasRequestEntryData(
                entity=(AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name=name),),
                ops=(OpData(key=PRODUCE_RATE, value=bytes_per_s),),
            )
            for name in names
        )
    )


SIDES: Mapping[str, Callable[[int, int], AbstractContextManager[list[Tenant]]]] = {OURS: _sluice, APACHE: _apache}
"""By name: how many tenants, and the limit of each in bytes/s."""
