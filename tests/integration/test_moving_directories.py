"""A broker with two data directories: a replica moves from one to the other under load, and survives what comes after."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from dataplane.protocol.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
)
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from quota.contracts.identity import credential
from tests.support.ports import free_port
from tests.support.processes import HOST, SECRET, broker_process, secrets_file
from tests.support.waiting import wait_for
from tests.support.wire import Wire
from tests.support.zookeeper import ZooKeeperServer, operator

pytestmark = pytest.mark.integration
# A load that any disk can follow: 1 MB and its acknowledgements, ten times a second at most. A producer that sends as fast
# as it can writes more than a busy disk syncs, and measures that disk: the copy's reads wait behind the log's own syncs.
BURST, BURST_EVERY_S = 500, 0.1
SETTINGS = {
    "default_replication_factor": 1,
    "offsets_topic_replication_factor": 1,
    "transaction_state_log_replication_factor": 1,
    "log_segment_bytes": 4 * 2**20,
}


@pytest.fixture
def broker(tmp_path):
    zookeeper = ZooKeeperServer(tmp_path / "zookeeper", free_port())
    zookeeper.start()
    homes = [str(tmp_path / name) for name in ("disk-1", "disk-2")]
    process = broker_process(
        tmp_path, 1, zookeeper=zookeeper.hosts, secrets=secrets_file(tmp_path), settings=SETTINGS, data_dirs=homes
    )
    client = operator(zookeeper.hosts, timeout=10)
    client.start(timeout=20)
    process.start()
    wait_for(lambda: client.exists("/controller"), 30, "the controller")
    yield process
    process.kill()
    client.stop()
    client.close()
    zookeeper.stop()


def ask(broker, request, version):
    with Wire((HOST, broker.ports["internal"])) as wire:
        assert wire.log_in(SECRET) == 0
        return wire.call(request, version)


def places(broker, topic):
    """Directories of partition 0, with whether it is the copy."""
    found = ask(broker, DescribeLogDirsRequest(None), 4).results
    return {
        Path(directory.log_dir).name: (partition.is_future_key, partition.partition_size)
        for directory in found
        for t in directory.topics
        for partition in t.partitions
        if t.name == topic
    }


def signed_in(broker, **config):
    return {
        "bootstrap.servers": f"{HOST}:{broker.ports['internal']}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "operator",
        "sasl.password": credential(SECRET, "operator"),
        **config,
    }


def everything(broker):
    reader = Consumer(signed_in(broker, **{"group.id": "none", "enable.auto.commit": False}))
    try:
        low, high = reader.get_watermark_offsets(TopicPartition("orders", 0), 20)
        reader.assign([TopicPartition("orders", 0, low)])
        found, deadline = [], time.monotonic() + 60
        while len(found) < high - low and time.monotonic() < deadline:
            found += [message.value() for message in reader.consume(1000, 1.0)]
    finally:
        reader.close()
    return found


def test_a_replica_moves_under_load_and_is_whole_after_a_kill(broker):
    create = CreateTopicsRequest(topics=(CreatableTopic("orders", 1, 1),), timeout_ms=10_000)
    wait_for(lambda: ask(broker, create, 5).topics[0].error_code in (0, 36), 20, "the topic")
    sent, refused = [], []

    def delivered(error, message):
        (refused if error is not None else sent).append(message.value())

    producer = Producer(signed_in(broker, acks="all", **{"linger.ms": 5}))

    def send(count, begin):
        for number in range(begin, begin + count):
            producer.produce("orders", f"{number:08d}".encode() + b"x" * 2_000, on_delivery=delivered)
            producer.poll(0)

    send(20_000, 0)
    producer.flush(60)
    (here,) = places(broker, "orders")
    there = "disk-2" if here == "disk-1" else "disk-1"
    target = str(Path(ask(broker, DescribeLogDirsRequest(None), 4).results[0].log_dir).parent / there)
    move = AlterReplicaLogDirsRequest((AlterReplicaLogDir(target, (AlterReplicaLogDirTopic("orders", (0,)),)),))
    assert ask(broker, move, 2).results[0].partitions[0].error_code == 0
    begin = 20_000
    deadline = time.monotonic() + 60
    while list(places(broker, "orders")) != [there]:
        assert time.monotonic() < deadline
        send(BURST, begin)
        begin += BURST
        assert producer.flush(60) == 0
        time.sleep(BURST_EVERY_S)
    assert begin > 20_000  # there was a load while it moved
    send(BURST, begin)
    assert producer.flush(60) == 0
    assert refused == []
    assert everything(broker) == sent
    broker.kill()
    broker.start()
    wait_for(lambda: broker.accepts() and places(broker, "orders").keys() == {there}, 30, "the broker")
    wait_for(lambda: everything(broker) == sent, 30, "all messages")
    assert [
        name for home in Path(target).parent.glob("disk-*") for name in home.iterdir() if "orders" in name.name
    ] == [Path(target) / "orders-0"]
