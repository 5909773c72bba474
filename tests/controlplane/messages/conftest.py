"""Alice's topic `orders` of three partitions, and what stands in it."""

from __future__ import annotations

import base64

import pytest

from controlplane.topics import services as topics


@pytest.fixture
def orders(alice, instance, admin):
    """Writes to the topic: (partition, value, key=…, headers=…)."""
    topics.topic_create(
        organisation=alice.organisation,
        actor="a",
        instance_id=instance.id,
        name="orders",
        partitions=3,
        replication_factor=1,
    )
    physical = f"{instance.id.removeprefix('ins-')}.orders"

    def write(partition, value, **members):
        return admin.messages.write(physical, partition, value, **members)

    write.physical = physical
    return write


@pytest.fixture
def address(instance, orders):
    return f"/api/v1/instances/{instance.id}/topics/orders/messages"


@pytest.fixture
def deletion(instance, orders):
    return f"/api/v1/instances/{instance.id}/topics/orders/delete-records"


def in_base64(content):
    return None if content is None else base64.b64encode(content).decode()
