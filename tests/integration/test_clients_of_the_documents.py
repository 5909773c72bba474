"""The documents' clients against real brokers: with other people's clients, by the examples of their page, and with kills."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from dataplane.clients.cluster import Cluster
from dataplane.clients.connector import ConsumerConfig, ConsumerConnector
from dataplane.clients.errors import AuthenticationError, FailedToSendError
from dataplane.clients.producer import Producer, ProducerConfig, ProducerData
from dataplane.clients.settings import ConnectionSettings, addresses
from dataplane.clients.simple_consumer import EARLIEST_TIME, LATEST_TIME, FetchRequest, SimpleConsumer
from quota.contracts.identity import credential
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import access_by_secret
from tests.integration.clients import create_topic, produce, read_all
from tests.integration.test_logging_in import make_topic
from tests.integration.test_tls import AUTHORITY, TLS, leaf, secure, shows
from tests.support.processes import SECRET
from tests.support.users import LOGS_IN, USERS
from tests.support.waiting import wait_for

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "subsystems" / "clients.md"
OPERATOR = {
    "zk_access": access_by_secret([SECRET], Party.OPERATORS),
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_username": "operator",
    "sasl_password": credential(SECRET, "operator"),
}


def test_the_examples_of_the_page_run(cluster, tenant):
    create_topic(tenant, "page-views", 4)
    names = {
        "topic": f"{tenant.key}.page-views",
        "secret": SECRET,
        "wait_until": lambda condition: wait_for(condition, 30, "the messages"),
    }
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    blocks.sort(key=lambda block: "secret" not in block)  # who an operator is comes before what it does
    assert len(blocks) == 6
    for block in blocks:
        text = block.replace("127.0.0.1:2181", cluster._zookeeper.hosts).replace("127.0.0.1:9092", tenant.bootstrap)
        host, port = addresses(tenant.bootstrap)[0]
        text = text.replace('[("127.0.0.1", 9092)]', repr([(host, port)]))
        exec(compile(text, str(PAGE), "exec"), names)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_we_write_others_read_and_the_other_way_round(tenant, codec):
    create_topic(tenant, "orders", 3)
    ours = [f"ours {number} ".encode() * 20 for number in range(300)]
    theirs = [f"theirs {number} ".encode() * 20 for number in range(300)]
    config = ProducerConfig(
        broker_list=tenant.bootstrap, compression_codec=codec, partitioner_class="murmur2", request_required_acks=-1
    )
    with Producer(config) as producer:
        sent = producer.send([ProducerData("orders", value, key=value[-8:]) for value in ours])
    assert Counter(place.partition for place in sent).total() == 300
    acknowledged = produce(tenant, "orders", theirs, compression_type=codec, partitioner="murmur2_random")
    found = read_all(tenant, "orders")
    assert sorted(value for some in found.values() for value in some) == sorted(ours + theirs)
    for place, value in zip(sent, ours, strict=True):
        assert found[place.partition][place.offset] == value

    by_key = {value[-8:]: partition for partition, _, value in acknowledged}
    for place, value in zip(sent, ours, strict=True):  # one key is in one partition, whoever writes it
        assert by_key.get(value[-8:], place.partition) == place.partition

    with Cluster(ConnectionSettings(), lambda: addresses(tenant.bootstrap)) as cluster:
        leaders = [cluster.leader("orders", partition) for partition in range(3)]
        brokers = cluster.brokers()
    for partition, leader in enumerate(leaders):
        with SimpleConsumer(*brokers[leader]) as consumer:
            begin = consumer.get_offsets_before("orders", partition, EARLIEST_TIME, 1)[0]
            end = consumer.get_offsets_before("orders", partition, LATEST_TIME, 1)[0]
            read, offset = [], begin
            while offset < end:
                messages = consumer.fetch(FetchRequest("orders", partition, offset, fetch_size=5_000))
                read += [each.message.value for each in messages]
                offset = messages.next_offset
        assert read == found[partition]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_we_log_in_where_one_has_to(new_tenant, mechanism):
    tenant = new_tenant(route=LOGS_IN, users=USERS)
    make_topic(tenant)
    login = {"broker_list": tenant.bootstrap, "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism}
    with Producer(ProducerConfig(**login, sasl_username="bob", sasl_password="brush, =")) as producer:
        (sent,) = producer.send(ProducerData("orders", b"v"))
        assert sent.offset == 0
    with Producer(ProducerConfig(**login, sasl_username="bob", sasl_password="guess")) as producer:
        with pytest.raises(FailedToSendError) as failed:
            producer.send(ProducerData("orders", b"v"))
        assert isinstance(failed.value.failures[0][1], AuthenticationError)


def test_we_speak_tls_and_believe_one_authority_only(new_tenant, tmp_path):
    tenant = new_tenant(route=TLS, certificates=shows(leaf()))
    admin = AdminClient({"bootstrap.servers": tenant.bootstrap, "log_level": 0, **secure()})
    admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(30)
    trusted = tmp_path / "ca.pem"
    trusted.write_text(AUTHORITY.pem)
    secured = {"broker_list": tenant.bootstrap, "security_protocol": "SSL", "message_send_max_retries": 3}
    with Producer(ProducerConfig(**secured, ssl_ca_location=str(trusted))) as producer:
        assert producer.send(ProducerData("orders", b"v"))[0].offset == 0
    with (
        Producer(ProducerConfig(**secured)) as producer,
        pytest.raises(FailedToSendError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        producer.send(ProducerData("orders", b"v"))


def test_a_producer_rides_over_a_killed_leader(cluster, tenant):
    create_topic(tenant, "orders", 1)
    config = ProducerConfig(
        broker_list=tenant.bootstrap,
        request_required_acks=-1,
        message_send_max_retries=200,
        connect_timeout_ms=1_000,
        socket_timeout_ms=3_000,
    )
    with Producer(config) as producer:
        acknowledged = []
        for number in range(30):
            if number == 10:
                cluster.brokers[cluster.leader(tenant, "orders")].kill()
            value = str(number).encode()
            producer.send(ProducerData("orders", value, partition=0))
            acknowledged.append(value)
    found = read_all(tenant, "orders")[0]
    assert (
        list(dict.fromkeys(found)) == acknowledged
    )  # a lost answer is sent again: perhaps twice, never less, in order


def _connector(cluster, **settings):
    defaults = {
        "group_id": "readers",
        "zk_connect": cluster._zookeeper.hosts,
        "autooffset_reset": "smallest",
        "autocommit_interval_ms": 100,
        "rebalance_backoff_ms": 200,
        "rebalance_max_retries": 50,
        "zk_session_timeout_ms": 6_000,  # a machine that stands still for a moment ends none
    }
    return ConsumerConnector(ConsumerConfig(**{**defaults, **OPERATOR, **settings}))


_MEMBER = """
import sys
from tests.integration.test_clients_of_the_documents import _connector
class Cluster:
    class _zookeeper: hosts = sys.argv[1]
connector = _connector(Cluster, group_id=sys.argv[3], consumer_id="killed")
for message in connector.create_message_streams({sys.argv[2]: 1})[sys.argv[2]][0]:
    print(message.message.decode(), flush=True)
"""


def test_of_three_members_one_is_killed_and_nothing_is_lost(cluster, tenant):
    create_topic(tenant, "orders", 6)
    topic, group = f"{tenant.key}.orders", f"readers-{tenant.key}"
    lock, read = threading.Lock(), []

    def reader(stream):
        for message in stream:
            with lock:
                read.append(message.message.decode())

    arguments = [cluster._zookeeper.hosts, topic, group]
    killed = subprocess.Popen(
        [sys.executable, "-c", _MEMBER, *arguments], cwd=ROOT, stdout=subprocess.PIPE, env=dict(os.environ)
    )
    members = [_connector(cluster, group_id=group) for _ in range(2)]
    owners = f"/consumers/{group}/owners/{topic}"

    def owned():
        nodes = cluster.zookeeper.get_children(owners)
        return Counter(cluster.zookeeper.get(f"{owners}/{node}")[0].decode() for node in nodes)

    threads = []
    try:
        wait_for(lambda: owned()["killed-0"] == 6, 60, "the first member to have all")
        for member in members:
            (stream,) = member.create_message_streams({topic: 1})[topic]
            threads.append(threading.Thread(target=reader, args=(stream,)))
            threads[-1].start()
        wait_for(lambda: sorted(owned().values()) == [2, 2, 2], 30, "each to have its share")
        with Producer(ProducerConfig(broker_list=tenant.bootstrap)) as producer:
            producer.send([ProducerData("orders", f"a{number}".encode()) for number in range(60)])
            lines = [killed.stdout.readline().decode().strip() for _ in range(20)]
            wait_for(lambda: len(read) == 40, 20, "the others to have read their share")
            assert sorted(lines + read) == sorted(f"a{number}" for number in range(60))
            killed.kill()
            killed.wait(10)
            wait_for(lambda: sorted(owned().values()) == [3, 3], 30, "the others to have it all")
            producer.send([ProducerData("orders", f"b{number}".encode()) for number in range(60)])
        wait_for(lambda: sum(value[0] == "b" for value in read) == 60, 20, "what came after the kill")
        assert set(lines + read) == {f"{name}{number}" for name in "ab" for number in range(60)}
        twice = [value for value, count in Counter(lines + read).items() if count > 1]
        assert set(twice) <= set(lines)  # only what the killed one had read and not yet committed
    finally:
        killed.kill()
        killed.wait(10)
        killed.stdout.close()
        for member in members:
            member.shutdown()
        for thread in threads:
            thread.join(20)
