"""One cluster for all tests of a worker; every test has instances of its own, so none sees what another left.

A test may kill what it likes: `cluster` hands the next one a cluster that is whole again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tests.support.kafka_python  # noqa: F401 - before any test makes a client of it
from tests.support.cluster import ProcessCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.specs import Tenant

PATIENCE_S = 40.0


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    settings = {
        "group_min_session_timeout_ms": 1000,
        "offsets_topic_num_partitions": 4,
    }
    settings |= {"group_consumer_session_timeout_ms": 6_000, "group_consumer_heartbeat_interval_ms": 500}
    with ProcessCluster(tmp_path_factory.mktemp("cluster"), settings) as cluster:
        cluster.make_coordinators()
        yield cluster


@pytest.fixture
def cluster(running_cluster: ProcessCluster) -> ProcessCluster:
    running_cluster.heal()
    return running_cluster


@pytest.fixture
def new_tenant(cluster: ProcessCluster) -> Iterator[Callable[..., Tenant]]:
    """Makes instances that are closed when the test ends."""
    made: list[Tenant] = []

    def make(**members: Any) -> Tenant:
        made.append(cluster.tenant(**members))
        return made[-1]

    yield make
    for tenant in made:
        cluster.forget(tenant)


@pytest.fixture
def tenant(new_tenant: Callable[..., Tenant]) -> Tenant:
    """An unlimited instance."""
    return new_tenant()


@pytest.fixture
def patient_doors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doors of the control plane are hasty, since somebody waits for a page. Here all is to be answered, however busy it is."""
    from controlplane.kafka import backlog_door, connection_door, group_door, message_door
    from controlplane.messages import selectors

    for module, name in (
        (backlog_door, "BROKER_S"),
        (backlog_door, "ROUND_S"),
        (connection_door, "BROKER_S"),
        (connection_door, "ROUND_S"),
        (group_door, "ROUND_S"),
        (group_door, "OLDEST_S"),
        (group_door, "LIST_S"),
        (message_door, "ASK_S"),
        (selectors, "MOST_S"),
    ):
        monkeypatch.setattr(module, name, PATIENCE_S)
