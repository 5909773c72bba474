"""Operators move partitions between real brokers, by kafka-python and by Kafka's own tool, while a tenant writes."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import warnings

import pytest

from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from quota.contracts.identity import credential
from tests.integration.clients import Sender, create_topic, read_all
from tests.support import apache_kafka
from tests.support.processes import HOST, SECRET
from tests.support.waiting import wait_for
from tests.support.wire import Wire

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that Python 3.11 calls old
    import kafka
    import kafka.admin

OPERATORS = credential(SECRET, "operator")
pytestmark = pytest.mark.integration
PREFERRED = 0
ELECTION_NOT_NEEDED = 84
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"


def internal(cluster):
    return ",".join(f"{HOST}:{server.ports['internal']}" for server in cluster.brokers.values())


@pytest.fixture
def operator(cluster):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        client = kafka.admin.KafkaAdminClient(
            bootstrap_servers=internal(cluster).split(","),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="operator",
            sasl_plain_password=OPERATORS,
        )
    yield client
    client.close()


class Writer:
    """Produces with acks=all all the time, in a thread."""

    def __init__(self, tenant, topic):
        self.sender = Sender(tenant, enable_idempotence=True)
        self.sent = []
        self._topic = topic
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._over.is_set():
            self.sent.append(f"value-{len(self.sent)}".encode())
            self.sender.send(self._topic, self.sent[-1])
            self._over.wait(0.002)
        self.sender.flush()

    def __enter__(self):
        self._thread.start()
        wait_for(lambda: self.sender.acknowledged, 20, "the first acknowledgement")
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def replicas(cluster, physical):
    return cluster.read(f"/brokers/topics/{physical}")["partitions"]["0"]


def a_topic_on_two(cluster, tenant):
    """Its physical name, the two brokers that have it, and the one that has not."""
    create_topic(tenant, "orders", 1, 2)
    physical = f"{tenant.key}.orders"
    first, second = replicas(cluster, physical)
    (third,) = [broker for broker in cluster.brokers if broker not in (first, second)]
    return physical, first, second, third


def stores(cluster, broker, physical):
    """Whether a broker has a log of the partition on its disk."""
    return (cluster.brokers[broker].config.parent / f"data-{broker}" / f"{physical}-0").exists()


def check(cluster, tenant, physical, expected, writer):
    """The replicas are where they shall be, for the tenant too, and everything that was acknowledged is there."""
    assert replicas(cluster, physical) == expected
    wait_for(lambda: sorted(cluster.state(physical, 0)["isr"]) == sorted(expected), 20, "the replicas in sync")
    with Wire(tenant.addresses[expected[0]]) as wire:
        topic = wire.call(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),)), 9).topics[0]
    assert topic.partitions[0].replica_nodes == tuple(expected)
    assert not writer.sender.refused
    assert len(writer.sender.acknowledged) == len(writer.sent)
    assert read_all(tenant, "orders") == {0: writer.sent}


def test_a_partition_moves_while_its_tenant_writes_and_its_new_preferred_replica_leads(cluster, tenant, operator):
    physical, first, second, third = a_topic_on_two(cluster, tenant)
    place = kafka.TopicPartition(physical, 0)
    with Writer(tenant, "orders") as writer:
        assert operator.alter_partition_reassignments({place: [third, second]}) == {place: None}
        wait_for(lambda: not operator.list_partition_reassignments(), 30, "the reassignment")
        assert operator.alter_partition_reassignments({place: None})[place].errno == 85
        answer = operator.elect_leaders(PREFERRED, {physical: [0]})
        (result,) = answer.replica_election_results[0].partition_result
        assert result.error_code in (0, ELECTION_NOT_NEEDED)  # brokers may have been faster
        assert cluster.leader(tenant, "orders") == third
    check(cluster, tenant, physical, [third, second], writer)
    wait_for(lambda: not stores(cluster, first, physical), 20, "the old log to go")
    assert stores(cluster, third, physical)


def test_a_partition_does_not_move_to_where_its_tenant_cannot_reach_it(cluster, tenant, operator):
    cluster.specs.change(tenant, brokers=(1, 2))
    create_topic(tenant, "orders", 1, 2)
    place = kafka.TopicPartition(f"{tenant.key}.orders", 0)
    assert operator.alter_partition_reassignments({place: [3, 1]})[place].errno == 39  # INVALID_REPLICA_ASSIGNMENT
    assert sorted(replicas(cluster, place.topic)) == [1, 2]
    assert operator.alter_partition_reassignments({place: [2]}) == {place: None}
    wait_for(lambda: replicas(cluster, place.topic) == [2], 20, "the smaller one")


class Tools:
    """Kafka's own command lines, logged in to the internal listener."""

    def __init__(self, cluster, folder):
        if shutil.which("java") is None or not apache_kafka.JARS.is_dir():
            pytest.skip("Kafka's tools are not here: `make conformance` fetches them")
        login = (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'username="operator" password="{OPERATORS}";'
        )
        properties = folder / "operator.properties"
        properties.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
        self._server = ["--bootstrap-server", internal(cluster)]
        self._properties = str(properties)

    def reassign(self, *arguments):
        return self._run(REASSIGN, "--command-config", self._properties, *arguments)

    def elect(self, *arguments):
        return self._run(ELECT, "--admin.config", self._properties, *arguments)

    def _run(self, main, *arguments):
        command = [*apache_kafka.tool(main), *self._server, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.timeout(300)
def test_a_broker_is_drained_as_the_runbook_says_with_kafkas_own_tools_and_a_throttle(cluster, tenant, tmp_path):
    tools = Tools(cluster, tmp_path)
    physical, first, drained, third = a_topic_on_two(cluster, tenant)
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": physical}]}))
    others = ("--broker-list", f"{first},{third}")
    proposed = tools.reassign("--topics-to-move-json-file", str(topics), *others, "--generate").strip().split("\n")[-1]
    plan.write_text(proposed)
    target = json.loads(proposed)["partitions"][0]["replicas"]
    assert sorted(target) == sorted([first, third])
    with Writer(tenant, "orders") as writer:
        said = tools.reassign("--reassignment-json-file", str(plan), "--execute", "--throttle", "50000000")
        assert "Successfully started partition reassignment" in said
        assert cluster.read(f"/config/brokers/{third}")["config"]["follower.replication.throttled.rate"] == "50000000"
        assert cluster.read(f"/config/topics/{physical}")["config"]["follower.replication.throttled.replicas"]
        wait_for(lambda: replicas(cluster, physical) == target, 30, "the reassignment")
        said = tools.reassign("--reassignment-json-file", str(plan), "--verify")
        assert f"Reassignment of partition {physical}-0 is completed" in said
        assert "Clearing broker-level throttles" in said
        assert "follower.replication.throttled.rate" not in cluster.read(f"/config/brokers/{third}")["config"]
        said = tools.reassign("--list")
        assert "No partition reassignments found" in said
        tools.elect("--election-type", "preferred", "--topic", physical, "--partition", "0")
        assert cluster.leader(tenant, "orders") == target[0]
    check(cluster, tenant, physical, target, writer)
    wait_for(lambda: not stores(cluster, drained, physical), 20, "the drained broker's log to go")
