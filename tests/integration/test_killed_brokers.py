"""SIGKILL at the worst moment: nothing acknowledged at acks=all is lost, doubled or out of order; groups go on."""

from __future__ import annotations

import threading
import time
from collections import defaultdict

import pytest
from confluent_kafka import TopicPartition

from tests.integration.clients import (
    Sender,
    committed_offsets,
    consumer,
    create_topic,
    delete_topic,
    produce,
    read_all,
    take,
)
from tests.support.waiting import promised, wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

PARTITIONS = 3
PER_S = 1500


class Traffic(threading.Thread):
    """An idempotent producer that numbers its messages per partition, until it is told to stop."""

    def __init__(self, tenant) -> None:
        super().__init__(daemon=True)
        self.sender = Sender(tenant, enable_idempotence=True, linger_ms=5, message_timeout_ms=90_000)
        self.sent: dict[int, list[bytes]] = defaultdict(list)
        self.stopped = threading.Event()
        self.longest_gap_s = 0.0

    def run(self) -> None:
        began = last = time.monotonic()
        number = acknowledged = 0
        while not self.stopped.is_set():
            partition = number % PARTITIONS
            value = b"%d:%d" % (partition, number)
            self.sent[partition].append(value)
            self.sender.send("orders", value, partition=partition)
            number += 1
            now = time.monotonic()
            if len(self.sender.acknowledged) > acknowledged:
                acknowledged, last = len(self.sender.acknowledged), now
            self.longest_gap_s = max(self.longest_gap_s, now - last)
            ahead = number / PER_S - (now - began)
            if ahead > 0.01:
                self.sender.producer.poll(ahead)
        self.sender.flush(90)

    def __enter__(self):
        self.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_) -> None:
        self.stopped.set()
        self.join(120)

    def wait_for_more(self, count: int = 500, within_s: float = 30) -> float:
        """Until so many more are acknowledged."""
        wanted = len(self.sender.acknowledged) + count
        return wait_for(lambda: len(self.sender.acknowledged) >= wanted, within_s, f"{count} acknowledgements")

    def check(self, tenant) -> None:
        """Everything sent was acknowledged, and is there once, in order, where the acknowledgement said."""
        assert not self.is_alive(), "the producer did not finish"
        assert not self.sender.refused, self.sender.refused[:3]
        found = read_all(tenant, "orders")
        assert {p: len(values) for p, values in found.items()} == {p: len(values) for p, values in self.sent.items()}
        assert found == dict(self.sent)
        # A retry that a restarted broker knows for a duplicate, and no longer where, is acknowledged without an offset.
        told = [row for row in self.sender.acknowledged if row[1] is not None]
        assert len(told) > len(self.sender.acknowledged) * 0.9
        assert all(found[partition][offset] == value for partition, offset, value in told)


@pytest.fixture
def durable(tenant):
    create_topic(tenant, "orders", PARTITIONS, min_insync_replicas="2")
    return tenant


def in_sync(cluster, tenant) -> bool:
    return all(len(cluster.state(f"{tenant.key}.orders", p)["isr"]) == 3 for p in range(PARTITIONS))


def test_a_killed_leader_loses_nothing(cluster, durable):
    with Traffic(durable) as traffic:
        leader = cluster.leader(durable, "orders", 0)
        cluster.brokers[leader].kill()
        wait_for(lambda: cluster.leader(durable, "orders", 0) not in (leader, -1), 30, "another leader")
        traffic.wait_for_more(1000)
        cluster.restart(leader)
        wait_for(lambda: in_sync(cluster, durable), 40, "all replicas to be in sync")
        traffic.wait_for_more(500)
    traffic.check(durable)
    print(f"longest gap between acknowledgements: {traffic.longest_gap_s:.2f} s")
    assert traffic.longest_gap_s < promised(15)


def test_a_killed_controller_loses_nothing_and_topics_can_be_made_without_it(cluster, durable):
    with Traffic(durable) as traffic:
        controller = cluster.controller()
        cluster.brokers[controller].kill()
        wait_for(lambda: cluster.controller() not in (controller, None), 30, "another controller")
        traffic.wait_for_more(1000)
        create_topic(durable, "made-meanwhile", 2, factor=2)
        assert produce(durable, "made-meanwhile", [b"one", b"two"])
        delete_topic(durable, "made-meanwhile")
        cluster.restart(controller)
        wait_for(lambda: in_sync(cluster, durable), 40, "all replicas to be in sync")
    traffic.check(durable)


def test_all_three_killed_at_once_lose_nothing_acknowledged(cluster, durable):
    with Traffic(durable) as traffic:
        for broker in cluster.brokers.values():
            broker.kill()
        before = set(traffic.sender.acknowledged)
        cluster.heal()
        traffic.wait_for_more(1000)
    traffic.check(durable)
    found = read_all(durable, "orders")
    assert all(found[partition][offset] == value for partition, offset, value in before)


def test_one_after_the_other_is_killed_without_a_pause(cluster, durable):
    """The next one dies as soon as the one before has all it missed."""
    with Traffic(durable) as traffic:
        for broker in cluster.brokers:
            cluster.brokers[broker].kill()
            wait_for(lambda: broker not in cluster.registered(), 30, "its session to end")  # noqa: B023
            cluster.restart(broker)
            wait_for(lambda: in_sync(cluster, durable), 40, "all replicas to be in sync")
    traffic.check(durable)


def test_a_groups_offsets_survive_its_coordinator(cluster, durable):
    produce(durable, "orders", [b"%d" % number for number in range(300)])
    partitions = [TopicPartition("orders", p) for p in range(PARTITIONS)]
    # That a member has left may be lost with the coordinator; then it is missed for its session, by default 45 s.
    with consumer(durable, "billing", session_timeout_ms=6_000) as reader:
        reader.subscribe(["orders"])
        seen = {(message.partition(), message.offset()) for message in take(reader, 150)}
        committed = {p.partition: p.offset for p in reader.commit(asynchronous=False)}
    coordinator = cluster.coordinator(durable, "billing")
    cluster.brokers[coordinator].kill()
    wait_for(lambda: cluster.coordinator(durable, "billing") not in (coordinator, -1), 30, "another coordinator")
    with consumer(durable, "billing") as reader:
        found = {
            partition: offset for partition, offset in committed_offsets(reader, partitions).items() if offset >= 0
        }
        assert found == {p: offset for p, offset in committed.items() if offset >= 0}
        reader.subscribe(["orders"])
        rest = {(message.partition(), message.offset()) for message in take(reader, 300 - len(seen))}
        assert not rest & seen
        reader.commit(asynchronous=False)  # the new coordinator takes commits
        assert sum(committed_offsets(reader, partitions).values()) == 300


def test_a_group_keeps_its_members_when_its_coordinator_is_killed(cluster, durable):
    """A member that had to join again would read again what it has not committed."""
    with consumer(durable, "billing", session_timeout_ms=20_000) as reader:
        reader.subscribe(["orders"])
        produce(durable, "orders", [b"before"] * 30)
        take(reader, 30)
        cluster.brokers[cluster.coordinator(durable, "billing")].kill()
        produce(durable, "orders", [b"after"] * 30, message_timeout_ms=60_000)
        assert {message.value() for message in take(reader, 30, 60)} == {b"after"}
