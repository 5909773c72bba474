"""Alice's instance with clients on two brokers, and charlie's with one of the same names."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from controlplane.instances import services as instances
from controlplane.kafka.connection_bytes import ConnectionRow, RefusedRow, Rest, TalkerRow
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.fakes import FakeConnections

MINUTE_MS = 60_000


def connection(client_id="shop", address="10.0.0.7", *, sends=0, is_sent=0, requests=0, principal="User:ann", **other):
    """With what it moves in a second."""
    row = ConnectionRow(
        client_id, "apache-kafka-java", "3.9.1", address, principal, "default", int(time.time() * 1000) - 90_000,
        MINUTE_MS, 60 * sends, 60 * is_sent, 60 * requests,
    )  # fmt: skip
    return row._replace(**other)


@dataclass
class Given:
    """An instance with its connections."""

    instance_id: str
    door: FakeConnections

    @property
    def url(self) -> str:
        return f"/api/v1/instances/{self.instance_id}"

    def say(self, broker=1, **said):
        self.door.say(self.instance_id, broker, **said)

    def talker(self, client_id="shop", topic="orders", *, produces=0, consumes=0, address="10.0.0.7"):
        physical = f"{self.instance_id.removeprefix('ins-')}.{topic}"
        return TalkerRow(client_id, address, physical, MINUTE_MS, 60 * produces, 60 * consumes)


def refused(address="192.0.2.1", reason="whitelist", count=1, age_s=30, route="default", user="", client_id=""):
    return RefusedRow(address, route, reason, count, int((time.time() - age_s) * 1000), user, client_id)


def rest(count, sends=0, is_sent=0):
    return Rest(count, sends, is_sent, 0)


@pytest.fixture
def hers(instance, admin) -> Given:
    return Given(instance.id, admin.connections)


@pytest.fixture
def his(charlie, brokers, admin) -> Given:
    made, operation = instances.instance_create(organisation=charlie.organisation, actor="c", **WANTED)
    run_to_the_end(operation.id)
    return Given(made.id, admin.connections)
