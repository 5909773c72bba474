"""Alice's instance with the topic in which mirrors say how they are, and charlie's with one of the same names."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import pytest

from controlplane.instances import services as instances
from controlplane.mirrors.records import STATUS_TOPIC
from controlplane.topics import services as topics
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.fakes import FakeMessages

ROW = {
    "topic": "orders",
    "partition": 0,
    "state": "copying",
    "lag": 7,
    "source_end": 1207,
    "source_offset": 1200,
    "target_offset": 1150,
    "map_from": 20,
    "map_segments": 64,
    "map_slack": 3,
}


def status(**members) -> bytes:
    """A record as a mirror writes it."""
    said = {
        "version": 1,
        "at_ms": int(time.time() * 1000),
        "every_s": 10.0,
        "source": "old",
        "target": "new",
        "delivery": "exactly_once",
        "lag": 7,
        "messages_per_s": 120.5,
        "bytes_per_s": 98304.0,
        "partitions": 1,
        "rows": [ROW],
    }
    return json.dumps(said | members).encode()


@dataclass
class Given:
    """An instance into which mirrors copy."""

    instance_id: str
    messages: FakeMessages

    @property
    def url(self) -> str:
        return f"/api/v1/instances/{self.instance_id}/mirrors"

    def say(self, value=None, **members):
        physical = f"{self.instance_id.removeprefix('ins-')}.{STATUS_TOPIC}"
        self.messages.write(physical, 0, status(**members) if value is None else value, key=b"old")


def given(person, instance, admin) -> Given:
    topics.topic_create(
        organisation=person.organisation,
        actor="a",
        instance_id=instance.id,
        name=STATUS_TOPIC,
        partitions=1,
        replication_factor=1,
    )
    return Given(instance.id, admin.messages)


@pytest.fixture
def hers(alice, instance, admin) -> Given:
    return given(alice, instance, admin)


@pytest.fixture
def his(charlie, brokers, admin) -> Given:
    made, operation = instances.instance_create(organisation=charlie.organisation, actor="c", **WANTED)
    run_to_the_end(operation.id)
    made.refresh_from_db()
    return given(charlie, made, admin)
