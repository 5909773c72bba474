"""A mirror as a process between two instances, which are two clusters as far as it can tell: killed and started again."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

from dataplane.clients.cluster import Cluster
from dataplane.clients.mirror.admin import configs_of, configure
from dataplane.clients.producer import Producer, ProducerConfig, ProducerData
from dataplane.clients.settings import ConnectionSettings, addresses
from tests.integration.clients import (
    TIMEOUT_S,
    admin,
    committed_offsets,
    consumer,
    create_topic,
    produce,
    read_all,
    take,
)
from tests.support.ports import free_port
from tests.support.waiting import wait_for

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


class Mirror:
    """The process."""

    def __init__(self, folder, old, new):
        self.port = free_port()
        self.file = folder / "mirror.toml"
        self.log = (folder / "mirror.log").open("ab")
        self.file.write_text(
            f'[target]\nname = "new"\nbootstrap = "{new.bootstrap}"\n'
            f'[[sources]]\nname = "old"\nbootstrap = "{old.bootstrap}"\ntopics = ".*"\ngroups = ".*"\n'
            f'[mirror]\nsync_s = 0.3\ncheckpoint_s = 0.1\nmetrics_port = {self.port}\ncompression = "lz4"\n'
        )
        self.process = None

    def command(self, *words):
        return [sys.executable, "-m", "dataplane.clients.mirror", str(self.file), *words]

    def start(self):
        self.process = subprocess.Popen(self.command(), cwd=ROOT, stdout=self.log, stderr=self.log)

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def stop(self):
        self.process.terminate()
        return self.process.wait(20)

    def says(self, *words):
        done = subprocess.run(self.command(*words), cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    def copied(self):
        """Messages, in this run."""
        lines = [
            line for line in self.metrics().splitlines() if line.startswith("sluice_mirror_copied_messages_total{")
        ]
        return sum(int(line.rpartition(" ")[2]) for line in lines)

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            return answer.read().decode()


def ends(new_tenant, tmp_path):
    old, new = new_tenant(), new_tenant()
    return old, new, Mirror(tmp_path, old, new)


def count(tenant, topic):
    return sum(len(some) for some in read_all(tenant, topic).values())


def test_killed_again_and_again_it_loses_nothing_and_repeats_nothing(new_tenant, tmp_path):
    old, new, mirror = ends(new_tenant, tmp_path)
    create_topic(old, "orders", 3, retention_ms="7200000")
    stop = threading.Event()
    sent: list[bytes] = []

    def send():
        with Producer(ProducerConfig(broker_list=old.bootstrap, request_required_acks=-1)) as producer:
            while not stop.is_set():
                values = [b"%d" % (len(sent) + number) for number in range(20)]
                producer.send([ProducerData("orders", value, key=value) for value in values])
                sent.extend(values)
                time.sleep(0.005)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(3):
            mirror.start()
            wait_for(lambda: mirror.copied() > 60, 30, "it to be in the midst of it")
            mirror.kill()
        mirror.start()
    finally:
        stop.set()
        sender.join(20)
    try:
        wait_for(lambda: mirror.says("compare")[0] == 0, 40, "the target to be equal")
        assert read_all(new, "orders") == read_all(old, "orders")
        assert count(new, "orders") == len(sent)
        assert 'sluice_mirror_lag_messages{source="old",topic="orders",partition="0"}' in mirror.metrics()
        assert mirror.stop() == 0
        status, text = mirror.says("status")
        assert (status, len(text.splitlines())) == (0, 4)
    finally:
        mirror.kill()
        mirror.log.close()


def test_partitions_configurations_and_groups_follow(new_tenant, tmp_path):
    old, new, mirror = ends(new_tenant, tmp_path)
    create_topic(old, "orders", 1, retention_ms="7200000")
    create_topic(new, "orders", 1)
    produce(new, "orders", [b"was there before"])  # offsets differ on both sides
    produce(old, "orders", [b"%d" % number for number in range(10)])
    with consumer(old, "billing") as reader:
        reader.subscribe(["orders"])
        take(reader, 4)
        reader.commit(offsets=[TopicPartition("orders", 0, 4)], asynchronous=False)
    mirror.start()
    try:
        place = [TopicPartition("orders", 0)]
        with consumer(new, "billing") as reader:
            wait_for(lambda: committed_offsets(reader, place) == {0: 5}, 30, "the group's offset")
            reader.subscribe(["orders"])
            assert [message.value() for message in take(reader, 6)] == [b"%d" % number for number in range(4, 10)]

        client = admin(old)
        client.create_partitions([NewPartitions("orders", 3)])["orders"].result(TIMEOUT_S)
        with Cluster(ConnectionSettings(), lambda: addresses(old.bootstrap)) as cluster:
            cluster.refresh(None)
            configure(cluster, "orders", {"retention.ms": "3600000"})
        with Cluster(ConnectionSettings(), lambda: addresses(new.bootstrap)) as cluster:
            wait_for(lambda: len(cluster.refresh(["orders"])["orders"].partitions) == 3, 20, "its new partitions")
            wait_for(lambda: configs_of(cluster, "orders") == {"retention.ms": "3600000"}, 20, "its configuration")
        assert mirror.says("compare")[0] == 0  # from where the mirror has begun
    finally:
        mirror.kill()
        mirror.log.close()
