"""The doors to brokers and master: one mapping of errors, the tenant's own names, and an end to every wait."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError

from controlplane.clusters import master
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.identification import Identification
from controlplane.core.errors import (
    AlreadyExists,
    ClusterUnavailable,
    Invalid,
    LimitReached,
    MasterUnavailable,
    NotFound,
    Unsupported,
)
from controlplane.kafka import client, group_door, topics
from quota.contracts.namespace import InstanceNames
from tests.support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTER = ClusterAddress(1, "127.0.0.1:1")
REAL_ADMIN, REAL_ALLOCATION = client.admin, master.allocation
REAL_SHORT, REAL_BROKERS = master.short, master.brokers
REAL_ALLOCATIONS, REAL_THROTTLED = master.allocations, master.throttled


@pytest.mark.parametrize(
    ("code", "kind", "answer", "status"),
    [
        (KafkaError.TOPIC_ALREADY_EXISTS, AlreadyExists, "topic_exists", 409),
        (KafkaError.INVALID_PARTITIONS, Invalid, "invalid_partitions", 400),
        (KafkaError.INVALID_REPLICATION_FACTOR, Invalid, "invalid_replication_factor", 400),
        (KafkaError.INVALID_CONFIG, Invalid, "invalid_config", 400),
        (KafkaError.TOPIC_EXCEPTION, Invalid, "invalid_topic", 400),
        (KafkaError.POLICY_VIOLATION, LimitReached, "limit_reached", 409),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, NotFound, "topic_not_found", 404),
        (KafkaError.UNSUPPORTED_VERSION, Unsupported, "unsupported", 501),
        (KafkaError._UNSUPPORTED_FEATURE, Unsupported, "unsupported", 501),
        (KafkaError.NOT_CONTROLLER, client.ClusterChanging, "cluster_unavailable", 503),
        (KafkaError.REQUEST_TIMED_OUT, client.ClusterChanging, "cluster_unavailable", 503),
        (KafkaError._TRANSPORT, client.ClusterChanging, "cluster_unavailable", 503),
        (KafkaError._TIMED_OUT, client.ClusterChanging, "cluster_unavailable", 503),
        (KafkaError._ALL_BROKERS_DOWN, ClusterUnavailable, "cluster_unavailable", 503),
    ],
)
def test_each_kafka_error_has_its_answer(code, kind, answer, status):
    error = client.problem_of(KafkaError(code, "why"), "k3v9x2qa.orders")
    assert (type(error), error.code, error.http_status) == (kind, answer, status)


@pytest.mark.parametrize("problem_of", [lambda error: client.problem_of(error, "k.orders"), group_door.problem_of])
@pytest.mark.parametrize("code", [*client.PASSING, *group_door.PASSING, KafkaError._ALL_BROKERS_DOWN])
def test_why_the_cluster_cannot_answer_now_is_a_sentence_and_no_code(code, problem_of):
    said = problem_of(KafkaError(code, "why")).detail
    assert KafkaError(code).name().strip("_") not in said
    assert not re.search("[A-Z]{2}|_", said), said


def test_an_error_without_a_sentence_has_its_name_in_kafkas_protocol():
    assert "(KAFKA_STORAGE_ERROR)" in client.why_not_now(KafkaError(KafkaError.KAFKA_STORAGE_ERROR))


def test_a_brokers_text_is_shown_with_the_tenants_name():
    error = client.problem_of(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS, "Topic 'k3v9x2qa.a' exists"), "k3v9x2qa.a")
    assert error.detail == "Topic 'a' exists"


def test_no_broker_and_no_secret_are_said(brokers, settings, tmp_path):
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, secrets_file=tmp_path / "missing.json")
    with pytest.raises(ClusterUnavailable, match="no credential"):
        REAL_ADMIN(CLUSTER)
    for broker in (1, 2, 3):
        brokers.kill(broker)
    with pytest.raises(ClusterUnavailable, match="no broker is running"):
        REAL_ADMIN(CLUSTER)


def test_a_cluster_that_is_away_ends_the_wait(monkeypatch):
    monkeypatch.setattr(client, "TIMEOUT_S", 0.5)
    admin = client.KafkaAdmin(f"127.0.0.1:{free_port()}", Identification("secret"))
    with pytest.raises(ClusterUnavailable):
        admin.layouts(["k3v9x2qa.t"])
    with pytest.raises(ClusterUnavailable):
        admin.create("k3v9x2qa.t", partitions=1, replication_factor=1, config={})


def test_a_topic_is_waited_for_until_it_is_seen(admin, clock):
    show = admin.layout
    looks = []

    def late(name):
        looks.append(name)
        return show(name) if len(looks) > 3 else None

    admin.layout = late
    topics.create(CLUSTER, "ins-k3v9x2qa", "t", partitions=1, replication_factor=1, config={}, clock=clock)
    assert len(looks) == 4
    assert InstanceNames("k3v9x2qa").topic_in("t") == looks[0]


class Answer(BaseHTTPRequestHandler):
    status, body = 200, b"{}"

    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(tree) -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", free_port()), Answer)
    server.status, server.body, server.asked = 200, b"{}", []
    address = f"http://127.0.0.1:{server.server_port}"
    tree.put("/sluice/master", json.dumps({"id": 1, "report": "127.0.0.1:1", "http": address, "epoch": 1}).encode())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_masters_document_is_passed_on(server):
    server.body = b'{"storage_used_bytes": 5}'
    assert REAL_ALLOCATION(CLUSTER, "ins-k3v9x2qa") == {"storage_used_bytes": 5}
    assert server.asked == ["/v1/instances/ins-k3v9x2qa/allocation"]


def test_several_instances_and_all_brokers_are_one_question_each(server):
    server.body = b'{"instances": [{"instance": "ins-1"}], "brokers": [{"broker": 1}]}'
    assert REAL_SHORT(CLUSTER, ["ins-1", "ins-2"]) == [{"instance": "ins-1"}]
    assert REAL_BROKERS(CLUSTER) == [{"broker": 1}]
    assert REAL_SHORT(CLUSTER, []) == []
    assert server.asked == ["/v1/instances/ins-1,ins-2", "/v1/brokers"]
    server.body = b'{"instances": 5}'
    for ask in (lambda: REAL_SHORT(CLUSTER, ["ins-1"]), lambda: REAL_BROKERS(CLUSTER)):
        with pytest.raises(MasterUnavailable, match="not legible"):
            ask()


@pytest.mark.parametrize(
    ("of_all", "is_learning"),
    [
        ('"learning": true, "brokers": [1]', True),
        ('"learning": false, "brokers": []', True),
        ('"learning": false, "brokers": [1, 2]', False),
    ],
)
def test_that_a_master_does_not_know_its_brokers_yet_stands_with_each_instance(server, of_all, is_learning):
    server.body = f'{{{of_all}, "instances": [{{"instance": "ins-1"}}, {{"instance": "ins-2"}}]}}'.encode()
    found = REAL_SHORT(CLUSTER, ["ins-1", "ins-2"])
    assert [each["instance"] for each in found] == ["ins-1", "ins-2"]
    assert [bool(each.get("learning")) for each in found] == [is_learning] * 2


def test_allocations_of_several_are_one_question(server):
    server.body = b'{"instances": [{"instance": "ins-1"}]}'
    assert REAL_ALLOCATIONS(CLUSTER, ["ins-1", "ins-2"]) == [{"instance": "ins-1"}]
    assert REAL_ALLOCATIONS(CLUSTER, []) == []
    assert server.asked == ["/v1/instances/ins-1,ins-2/allocations"]


def test_a_journal_is_read_from_a_position_at_the_address_of_its_master(server, tree):
    tree.away = True
    http = f"http://127.0.0.1:{server.server_port}"
    server.body = b'{"intervals": [{"version": 1}], "next": 99}'
    assert REAL_THROTTLED(http, 42) == ([{"version": 1}], 99)
    assert server.asked == ["/v1/throttled/42"]
    for body in (b'{"intervals": []}', b'{"intervals": 5, "next": 1}'):
        server.body = body
        with pytest.raises(MasterUnavailable, match="not legible"):
            REAL_THROTTLED(http, 42)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [(404, b"{}", "allocation_unknown"), (500, b"{}", "master_unavailable"), (200, b"[1", "master_unavailable"),
     (200, b"[]", "master_unavailable")],
)  # fmt: skip
def test_a_master_that_does_not_answer_well_is_unavailable(server, status, body, code):
    server.status, server.body = status, body
    with pytest.raises(MasterUnavailable) as error:
        REAL_ALLOCATION(CLUSTER, "ins-k3v9x2qa")
    assert error.value.code == code


def test_no_master_is_unavailable(tree):
    with pytest.raises(MasterUnavailable, match="no flow master is active"):
        REAL_ALLOCATION(CLUSTER, "ins-k3v9x2qa")
    address = f"http://127.0.0.1:{free_port()}"
    tree.put("/sluice/master", json.dumps({"id": 1, "report": "127.0.0.1:1", "http": address, "epoch": 1}).encode())
    with pytest.raises(MasterUnavailable, match="does not answer"):
        REAL_ALLOCATION(CLUSTER, "ins-k3v9x2qa")
