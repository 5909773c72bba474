"""Alice's topic `orders` of two partitions, a group that lags in it, and the same names at charlie's."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from controlplane.instances import services as instances
from controlplane.kafka.group_door import Member
from controlplane.topics import services as topics
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.fakes import FakeGroup

ALIVE = Member("billing-1-uuid", "billing-1", "10.0.0.7", (("orders", 0), ("orders", 1)))


@dataclass
class Given:
    """An instance with its groups."""

    instance_id: str
    url: str
    groups: object

    @property
    def key(self) -> str:
        return self.instance_id.removeprefix("ins-")

    @property
    def billing(self) -> FakeGroup:
        return self.groups.found[f"{self.key}.billing"]

    def log(self, partition: int, start: int, ages_s: list[float]) -> None:
        """Records of these ages from an offset on."""
        stamps = [int(time.time() * 1000 - 1000 * age) for age in ages_s]
        self.groups.logs[f"{self.key}.orders", partition] = (start, stamps)


def given(person, instance, admin) -> Given:
    topics.topic_create(
        organisation=person.organisation, actor="a", instance_id=instance.id, name="orders", partitions=2
    )
    made = Given(instance.id, f"/api/v1/instances/{instance.id}/groups", admin.groups)
    made.log(0, 100, [90.0, 60.0, 30.0, 10.0])
    made.log(1, 0, [50.0, 40.0])
    topic = f"{made.key}.orders"
    admin.groups.found[f"{made.key}.billing"] = FakeGroup({(topic, 0): 102, (topic, 1): 2})
    return made


@pytest.fixture
def hers(alice, instance, admin) -> Given:
    return given(alice, instance, admin)


@pytest.fixture
def his(charlie, brokers, admin) -> Given:
    made, operation = instances.instance_create(organisation=charlie.organisation, actor="c", **WANTED)
    run_to_the_end(operation.id)
    made.refresh_from_db()
    return given(charlie, made, admin)
