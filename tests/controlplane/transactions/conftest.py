"""Alice's topic `orders`, in which `copier` has a transaction open for a minute, and the same names at charlie's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from controlplane.instances import services as instances
from controlplane.topics import services as topics
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.fakes import FakeTransactions


@dataclass
class Given:
    """An instance with its transactions."""

    instance_id: str
    transactions: FakeTransactions

    @property
    def url(self) -> str:
        return f"/api/v1/instances/{self.instance_id}/transactions"

    @property
    def key(self) -> str:
        return self.instance_id.removeprefix("ins-")

    def begin(self, name, *partitions, **said):
        places = [(f"{self.key}.orders", number) for number in partitions]
        return self.transactions.begin(f"{self.key}.{name}", *places, **said)

    def state(self, name, state):
        self.transactions.found[name] = replace(self.transactions.found[name], state=state)

    def now(self, name):
        return self.transactions.found[f"{self.key}.{name}"]


def given(person, instance, admin) -> Given:
    topics.topic_create(
        organisation=person.organisation, actor="a", instance_id=instance.id, name="orders", partitions=2
    )
    made = Given(instance.id, admin.transactions)
    made.begin("copier", 0, 1)
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
