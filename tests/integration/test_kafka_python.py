"""kafka-python against a tenant's port, as itself and as if the cluster were an old one."""

from __future__ import annotations

import threading
import time
import warnings

import pytest

from tests.integration.clients import create_topic

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import KafkaAdminClient

pytestmark = pytest.mark.integration

# What the client believes it talks to. Below 0.11 it writes message formats that come later.
VERSIONS = [None, (2, 0), (0, 11)]


@pytest.fixture(params=VERSIONS, ids=["asks", "2.0", "0.11"])
def options(request, tenant):
    chosen = {"bootstrap_servers": tenant.bootstrap.split(",")}
    return chosen if request.param is None else chosen | {"api_version": request.param}


def test_producing_a_group_of_two_and_commits(tenant, options):
    create_topic(tenant, "orders", 2)
    with KafkaProducer(acks="all", **options) as producer:
        sent = [producer.send("orders", f"v{number}".encode(), partition=number % 2) for number in range(100)]
        assert [future.get(20).offset for future in sent] == [number // 2 for number in range(100)]

    group = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
    seen: list[bytes] = []
    held: list[set[TopicPartition]] = [set(), set()]
    shared = threading.Event()

    def member(number: int) -> None:
        # Long polls, a thread each: a join that outlives its poll leaves this client without heartbeats.
        with KafkaConsumer("orders", heartbeat_interval_ms=500, **group) as reader:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (shared.is_set() and len(set(seen)) == 100):
                for records in reader.poll(2000 if not reader.assignment() else 200).values():
                    seen.extend(record.value for record in records)
                held[number] = reader.assignment()
                if len(held[0]) == len(held[1]) == 1:
                    shared.set()
            reader.commit()

    members = [threading.Thread(target=member, args=(number,)) for number in (0, 1)]
    for thread in members:
        thread.start()
    assert shared.wait(60)
    assert held[0] | held[1] == {TopicPartition("orders", 0), TopicPartition("orders", 1)}
    for thread in members:
        thread.join(60)
    assert set(seen) == {f"v{number}".encode() for number in range(100)}
    with KafkaConsumer(**group) as later:
        assert [later.committed(TopicPartition("orders", p)) for p in (0, 1)] == [50, 50]


def test_the_admin_client_sees_the_tenants_world(tenant):
    create_topic(tenant, "orders", 2)
    admin = KafkaAdminClient(bootstrap_servers=tenant.bootstrap.split(","))
    try:
        assert admin.list_topics() == ["orders"]
        assert admin.describe_cluster()["cluster_id"] == tenant.id
        assert [topic["name"] for topic in admin.describe_topics(["orders"])] == ["orders"]
    finally:
        admin.close()
