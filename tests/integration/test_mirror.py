"""A mirror as a process between two instances, which are two clusters as far as it can tell: killed and started again.

In the clear, and where everybody logs in by TLS and has the rights of the runbook.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

from dataplane.clients.cluster import Cluster
from dataplane.clients.mirror.admin import configs_of, configure
from dataplane.clients.producer import Producer, ProducerConfig, ProducerData
from dataplane.clients.settings import ConnectionSettings, addresses
from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.users import UserSet
from tests.integration.clients import (
    TIMEOUT_S,
    admin,
    committed_offsets,
    consumer,
    create_topic,
    delete_topic,
    produce,
    read_all,
    take,
)
from tests.integration.test_tls import AUTHORITY, create, leaf, shows
from tests.support.ports import free_port
from tests.support.users import user
from tests.support.waiting import wait_for

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]


class Mirror:
    """The process."""

    def __init__(self, folder, old, new, delivery="auto", properties=None):
        self.port = free_port()
        self.file = folder / "mirror.toml"
        self.log = (folder / "mirror.log").open("ab")
        self.file.write_text(
            f'[target]\nname = "new"\nbootstrap = "{new.bootstrap}"\n'
            f"{_table('target.properties', properties)}"
            f'[[sources]]\nname = "old"\nbootstrap = "{old.bootstrap}"\ntopics = ".*"\ngroups = ".*"\n'
            f"{_table('sources.properties', properties)}"
            f'[mirror]\nsync_s = 0.3\ncheckpoint_s = 0.1\nmetrics_port = {self.port}\ncompression = "lz4"\n'
            f'delivery = "{delivery}"\n'
        )
        self.process = None

    def command(self, *words):
        return [sys.executable, "-m", "dataplane.clients.mirror", str(self.file), *words]

    def start(self):
        self.process = subprocess.Popen(self.command(), cwd=ROOT, stdout=self.log, stderr=self.log)

    def kill(self):
        if self.process is not None:
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


def _table(name, members):
    return "".join([f"[{name}]\n", *(f'"{key}" = "{value}"\n' for key, value in (members or {}).items())])


def ends(new_tenant, tmp_path, delivery="auto"):
    old, new = new_tenant(), new_tenant()
    return old, new, Mirror(tmp_path, old, new, delivery)


def committed(tenant, topic, count, **login):
    """What a reader at read_committed gets, by partition: so many messages, and no more."""
    found = defaultdict(list)
    with consumer(tenant, "read-committed", isolation_level="read_committed", **login) as reader:
        partitions = reader.list_topics(topic, TIMEOUT_S).topics[topic].partitions
        reader.assign([TopicPartition(topic, p, 0) for p in partitions])
        for message in take(reader, count, 60):
            found[message.partition()].append(message.value())
        assert [message.value() for message in reader.consume(1, 2.0) if message.error() is None] == []
    return dict(found)


def test_a_topic_that_was_made_anew_at_either_end_is_known_by_its_id(new_tenant, tmp_path):
    old, new, mirror = ends(new_tenant, tmp_path)
    create_topic(old, "orders", 1)
    values = [b"%d" % number for number in range(50)]
    produce(old, "orders", values)
    try:
        mirror.start()
        wait_for(lambda: mirror.says("compare")[0] == 0, 40, "the target to be equal")
        delete_topic(new, "orders")
        wait_for(lambda: mirror.says("compare")[0] == 0, 60, "the target to be made again, and equal")
        assert committed(new, "orders", len(values)) == {0: values}
        assert "orders-0 was made anew in the target: all is copied again" in Path(mirror.log.name).read_text()
        assert mirror.stop() == 0
        delete_topic(old, "orders")
        create_topic(old, "orders", 1)
        produce(old, "orders", [b"other %d" % number for number in range(90)])
        mirror.start()
        said = "orders-0 was made anew at the source: somebody has to look"
        wait_for(lambda: said in Path(mirror.log.name).read_text(), 30, "it to be said")
        assert mirror.stop() == 0
        assert committed(new, "orders", len(values)) == {0: values}, "what came to be there follows nothing of this"
    finally:
        mirror.kill()
        mirror.log.close()


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_killed_again_and_again_it_loses_nothing_and_repeats_nothing(new_tenant, tmp_path, delivery):
    old, new, mirror = ends(new_tenant, tmp_path, delivery)
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
        assert committed(new, "orders", len(sent)) == read_all(old, "orders")
        assert delivery.replace("_", " ") in Path(mirror.log.name).read_text()
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


def test_a_second_one_of_the_same_names_ends_the_first(new_tenant, tmp_path):
    old, new, mirror = ends(new_tenant, tmp_path)
    create_topic(old, "orders", 2)
    produce(old, "orders", [b"%d" % number for number in range(100)])
    (tmp_path / "second").mkdir()
    second = Mirror(tmp_path / "second", old, new)
    mirror.start()
    try:
        wait_for(lambda: mirror.says("compare")[0] == 0, 40, "the first to have copied it")
        second.start()
        numbers = itertools.count(100)

        def is_over():
            produce(old, "orders", [b"%d" % next(numbers)])  # it hears of the other when it writes
            return mirror.process.poll() is not None

        wait_for(is_over, 60, "the first to end")
        assert mirror.process.returncode == 4
        sent = next(numbers)
        wait_for(lambda: second.says("compare")[0] == 0, 40, "the second to go on")
        both = committed(new, "orders", sent)
        assert sorted(int(value) for values in both.values() for value in values) == list(range(sent))
        assert second.stop() == 0
    finally:
        for each in (mirror, second):
            each.kill()
            each.log.close()


# --- between ends where everybody logs in, by TLS, and has the rights of the runbook and no others -----------------------

ALICE, MIRROR = user("alice", "pencil"), user("mirror", "brush")
SECURED = {"security": "sasl_ssl", "mechanisms": ("SCRAM-SHA-512",)}
TOPIC, GROUP, TRANSACTIONAL_ID = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
AT_SOURCE = {TOPIC: "DESCRIBE DESCRIBE_CONFIGS READ", GROUP: "DESCRIBE"}
AT_TARGET = {TOPIC: "CREATE ALTER ALTER_CONFIGS DESCRIBE READ WRITE", GROUP: "READ"}
OF_ITS_IDS = Acl(
    TRANSACTIONAL_ID, PatternType.PREFIXED, "sluice-mirror.", "User:mirror", "*", AclOperation.WRITE, Permission.ALLOW
)


def may(name, rights):
    """Of everything."""
    return [
        Acl(kind, PatternType.LITERAL, "*", f"User:{name}", "*", AclOperation[operation], Permission.ALLOW)
        for kind, operations in rights.items()
        for operation in operations.split()
    ]


def secured(new_tenant, rights, *more):
    """An instance where alice may all, and the mirror what is said."""
    acls = [*may("alice", dict.fromkeys((TOPIC, GROUP, TRANSACTIONAL_ID), "ALL")), *may("mirror", rights), *more]
    return new_tenant(
        route=SECURED, users=UserSet(1, (ALICE, MIRROR)), certificates=shows(leaf()), acls=AclSet(1, tuple(acls))
    )


def logged_in(name, password):
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": name,
        "sasl.password": password,
    }


@pytest.fixture
def as_mirror(tmp_path):
    """As whom it logs in at both ends."""
    (tmp_path / "ca.pem").write_text(AUTHORITY.pem)
    return logged_in("mirror", "brush") | {"ssl.ca.location": str(tmp_path / "ca.pem")}


AS_ALICE = logged_in("alice", "pencil") | {"ssl.ca.pem": AUTHORITY.pem}


def test_with_the_rights_of_the_runbook_it_copies_between_ends_where_everybody_logs_in(new_tenant, tmp_path, as_mirror):
    old, new = secured(new_tenant, AT_SOURCE), secured(new_tenant, AT_TARGET, OF_ITS_IDS)
    mirror = Mirror(tmp_path, old, new, "exactly_once", as_mirror)
    create(old, "orders", **AS_ALICE)
    sent = [b"%d" % number for number in range(200)]
    produce(old, "orders", sent, **AS_ALICE)
    place = [TopicPartition("orders", 0, 4), TopicPartition("orders", 1, 7)]
    with consumer(old, "billing", **AS_ALICE) as reader:
        reader.commit(offsets=place, asynchronous=False)
    try:
        mirror.start()
        wait_for(lambda: mirror.says("compare")[0] == 0, 60, "the target to be equal")
        with consumer(new, "billing", **AS_ALICE) as reader:
            wait_for(lambda: committed_offsets(reader, place) == {0: 4, 1: 7}, 30, "the group's offsets")
        copied = committed(new, "orders", len(sent), **AS_ALICE)
        assert sorted(value for values in copied.values() for value in values) == sorted(sent)
        assert mirror.stop() == 0
        said = Path(mirror.log.name).read_text()
        assert "exactly once" in said
        assert "AUTHORIZATION_FAILED" not in said
    finally:
        mirror.kill()
        mirror.log.close()


@pytest.mark.parametrize(
    ("rights", "more", "said"),
    [
        (AT_TARGET, (), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (AT_TARGET | {TOPIC: "CREATE DESCRIBE READ"}, (OF_ITS_IDS,), "TOPIC_AUTHORIZATION_FAILED"),
    ],
)
def test_a_right_that_it_lacks_is_said_and_nothing_is_copied(new_tenant, tmp_path, as_mirror, rights, more, said):
    old, new = secured(new_tenant, AT_SOURCE), secured(new_tenant, rights, *more)
    mirror = Mirror(tmp_path, old, new, "exactly_once", as_mirror)
    create(old, "orders", **AS_ALICE)
    produce(old, "orders", [b"one"], **AS_ALICE)
    create(new, "orders", **AS_ALICE)
    try:
        mirror.start()
        wait_for(lambda: said in Path(mirror.log.name).read_text(), 40, "it to be said")
        assert committed(new, "orders", 0, **AS_ALICE) == {}
    finally:
        mirror.kill()
        mirror.log.close()
