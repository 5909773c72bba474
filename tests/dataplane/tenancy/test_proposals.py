"""A proposal is judged on what really happens, cuts nobody off, and says who would be: through a broker, frame by frame."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.doors import Create, Delete, SetData
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from dataplane.protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from dataplane.records.batch import Record, build_batch
from quota.contracts import proposals
from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.proposals import Cut, Findings, Proposal, Seen, findings_path, proposal_path
from tests.dataplane.requests.logins import Cluster
from tests.simulation.cluster import INSTANCE, TENANT_PORT

HERE, THERE = "10.0.1.9", "10.0.2.9"
DAY_MS = 86_400_000
DENY_BOB = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:bob", "*", AclOperation.WRITE, Permission.DENY)
OPEN = replace(DENY_BOB, principal="User:*", operation=AclOperation.ALL, permission=Permission.ALLOW)
"""Beside the first, or it would close the topic to all others: there is an ACL then, and none allows them."""
ANONYMOUS = "User:ANONYMOUS"


class Proposed(Cluster):
    """`logins`' cluster, whose instance can get a proposal."""

    def __init__(self):
        super().__init__()
        self.serial = 0
        self.server = self.simulated.zookeeper
        self.server.write([Create(proposals.PROPOSALS_PATH)])
        end = self.connect()
        assert end.plain().error_code == 0
        topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
        assert end.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000), 7).topics[0].error_code == 0
        end.connection.close()
        self.network.run_for(2)

    def changed(self, *operations):
        self.serial += 1
        change = Create(f"/sluice/changes/change-9{self.serial:09}", f'{{"instance":"{INSTANCE}"}}'.encode())
        self.server.write([*operations, change])
        self.network.run_for(0.5)

    def propose(self, lasts_ms=DAY_MS, name="prp-one", **members):
        now_ms = self.broker.doors.clock.now_ms()
        self.changed(Create(proposal_path(INSTANCE), Proposal(name, now_ms, now_ms + lasts_ms, **members).to_json()))

    def discard(self):
        path = proposal_path(INSTANCE)
        children = [Delete(f"{path}/{name}") for name in self.server.tree.children(path)]
        self.changed(*children, Delete(path))

    def findings(self, wait_s=4.5):
        """What the broker has written."""
        self.network.run_for(wait_s)
        node = self.server.tree.find(findings_path(INSTANCE, 1))
        return None if node is None else Findings.from_json(node.data)

    def cuts(self, wait_s=4.5):
        return {cut: seen.count for cut, seen in self.findings(wait_s).cuts.items()}

    def bob(self, source=HERE):
        end = self.connect(source=source)
        assert end.plain("bob", "brush").error_code == 0
        return end

    def clear(self, source=HERE):
        """By the route in the clear."""
        return self.connect(TENANT_PORT, source)


@pytest.fixture
def cluster():
    return Proposed()


def produce(end, topic="orders"):
    batch = bytes(build_batch([Record(b"k", b"v")], now_ms=1))
    data = TopicProduceData(topic, (PartitionProduceData(0, batch),))
    answer = end.call(ProduceRequest(acks=1, timeout_ms=1000, topic_data=(data,)), 9)
    return answer.responses[0].partition_responses[0].error_code


def fetch(end, topic="orders"):
    row = FetchTopic(topic=topic, partitions=(FetchPartition(partition=0),))
    answer = end.call(FetchRequest(max_wait_ms=0, min_bytes=1, topics=(row,)), 11)
    return answer.responses[0].partitions[0].error_code


def test_a_whitelist_is_judged_on_connections_that_are_open_and_that_come_and_cuts_none(cluster):
    held, strange = cluster.clear(HERE), cluster.clear(THERE)
    cluster.propose(whitelist=(f"{HERE}/32",))
    late = cluster.clear(THERE)
    findings = cluster.findings()
    cut = Cut(ANONYMOUS, THERE, "default", "CONNECT", "")
    assert {each: seen.count for each, seen in findings.cuts.items()} == {cut: 2}
    assert findings.connections == 3
    assert held.works()
    assert strange.works()
    assert late.works()


def test_who_logs_in_is_named_and_who_does_not_is_nobody(cluster):
    cluster.propose(whitelist=())
    cluster.connect()  # and says nothing
    cluster.bob()
    assert cluster.cuts() == {Cut("User:bob", HERE, "sasl", "CONNECT", ""): 1}


def test_a_routes_whitelist_is_about_its_own_connections(cluster):
    cluster.propose(route_whitelists={"sasl": ()})
    cluster.clear()
    cluster.bob()
    findings = cluster.findings()
    assert list(findings.cuts) == [Cut("User:bob", HERE, "sasl", "CONNECT", "")]
    assert findings.connections == 2


def test_acls_are_judged_request_by_request_by_the_short_cut_too(cluster):
    end = cluster.bob()
    for _ in range(3):
        assert produce(end) == 0  # the short cut has been learned
    cluster.propose(acls_added=(DENY_BOB, OPEN), whitelist=("0.0.0.0/0",))
    for _ in range(5):
        assert produce(end) == 0
    assert cluster.cuts() == {Cut("User:bob", HERE, "sasl", "WRITE", "TOPIC:orders"): 5}
    other = cluster.connect()
    assert other.plain().error_code == 0
    assert produce(other) == 0
    found = cluster.findings()
    assert [cut.principal for cut in found.cuts] == ["User:bob"]


def test_one_that_would_cut_nobody_says_how_much_it_has_judged(cluster):
    end = cluster.connect()
    assert end.plain().error_code == 0
    cluster.propose(acls_added=(DENY_BOB, OPEN))
    for _ in range(4):
        assert produce(end) == 0
    findings = cluster.findings()
    assert findings.cuts == {}
    assert findings.connections == 1
    assert findings.requests >= 1
    before = findings.requests
    for _ in range(50):
        assert produce(end) == 0
    assert cluster.findings().requests == before  # what a connection repeats is judged once


def test_refusing_what_has_no_acl_lists_everything_that_is_asked_for(cluster):
    end = cluster.clear()
    cluster.propose(allow_everyone=False)
    assert produce(end) == 0
    assert fetch(end) == 0
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    assert end.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000), 7).topics[0].error_code == 0
    assert end.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4).error_code == 0
    of_an_id = InitProducerIdRequest(transactional_id="payments", transaction_timeout_ms=0)
    assert end.call(of_an_id, 4).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert end.call(MetadataRequest(topics=(MetadataRequestTopic(name="orders"),)), 9).topics[0].error_code == 0
    asked = {(cut.operation, cut.resource) for cut in cluster.findings().cuts}
    assert asked >= {
        ("WRITE", "TOPIC:orders"),
        ("READ", "TOPIC:orders"),
        ("CREATE", "TOPIC:new"),
        ("IDEMPOTENT_WRITE", "CLUSTER:kafka-cluster"),
        ("WRITE", "TRANSACTIONAL_ID:payments"),
        ("DESCRIBE", "TOPIC:orders"),
    }
    assert all(cut.principal == ANONYMOUS for cut in cluster.findings().cuts)


def test_it_is_judged_beside_the_acls_in_force_at_each_moment(cluster):
    cluster.spec = replace(cluster.spec, generation=3, acls=AclSet(1, (OPEN,)))
    cluster.apply(cluster.spec)
    end = cluster.bob()
    cluster.propose(acls_removed=(OPEN,), allow_everyone=False)
    assert produce(end) == 0
    assert [cut.operation for cut in cluster.findings().cuts] == ["WRITE"]


def test_who_is_refused_already_is_not_listed(cluster):
    cluster.spec = replace(cluster.spec, generation=3, acls=AclSet(1, (DENY_BOB,)))
    cluster.apply(cluster.spec)
    end = cluster.bob()
    cluster.propose(allow_everyone=False)
    assert produce(end) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not [cut for cut in cluster.findings().cuts if cut.operation == "WRITE"]


def test_when_it_is_discarded_nobody_judges_any_more_and_nothing_is_left(cluster):
    end = cluster.bob()
    cluster.propose(acls_added=(DENY_BOB,))
    assert produce(end) == 0
    assert cluster.cuts()
    cluster.discard()
    assert produce(end) == 0
    assert cluster.findings(5) is None
    assert cluster.server.tree.find(proposal_path(INSTANCE)) is None
    registry = cluster.broker.registry
    assert registry.get(INSTANCE).shadow is None
    assert registry._shadows._timer is None


def test_when_its_time_is_over_nobody_judges_any_more(cluster):
    cluster.propose(whitelist=(), lasts_ms=10_000)
    cluster.clear()
    assert len(cluster.cuts()) == 1
    cluster.network.run_for(10)
    cluster.clear(THERE)
    assert len(cluster.cuts()) == 1
    assert cluster.broker.registry.get(INSTANCE).shadow is None


@pytest.mark.parametrize("data", [b"", b'{"version": 2}', b"null"])
def test_one_that_cannot_be_read_is_none_and_disturbs_nothing(cluster, data):
    cluster.changed(Create(proposal_path(INSTANCE), data))
    end = cluster.clear()
    assert produce(end) == 0
    assert cluster.findings() is None


def test_another_one_in_its_place_begins_anew(cluster):
    cluster.propose(whitelist=())
    cluster.clear()
    assert cluster.cuts()
    now_ms = cluster.broker.doors.clock.now_ms()
    other = Proposal("prp-two", now_ms, now_ms + DAY_MS, whitelist=("0.0.0.0/0",))
    cluster.changed(SetData(proposal_path(INSTANCE), other.to_json()))
    findings = cluster.findings()
    assert (findings.proposal, findings.cuts, findings.connections) == ("prp-two", {}, 1)


def test_a_broker_goes_on_from_what_it_has_written(cluster):
    """As after it has started again."""
    cut = Cut("User:eve", THERE, "sasl", "READ", "TOPIC:orders")
    before = Findings("prp-one", 5, 7, 9, 0, {cut: Seen(3, 6, 9)})
    data = b"".join(_bytes(before.to_json()))
    now_ms = cluster.broker.doors.clock.now_ms()
    proposal = Proposal("prp-one", now_ms, now_ms + DAY_MS, whitelist=())
    cluster.changed(Create(proposal_path(INSTANCE), proposal.to_json()), Create(findings_path(INSTANCE, 1), data))
    cluster.clear()
    findings = cluster.findings()
    assert findings.since_ms == 5
    assert findings.connections == 8
    assert {each.principal: seen.count for each, seen in findings.cuts.items()} == {"User:eve": 3, ANONYMOUS: 1}


def _bytes(steps):
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            yield stop.value
            return


def test_those_beyond_the_bound_are_counted(cluster, monkeypatch):
    monkeypatch.setattr("dataplane.tenancy.shadow.MOST_FINDINGS", 2)
    cluster.propose(whitelist=())
    for number in range(4):
        cluster.clear(f"10.0.3.{number + 1}")
    findings = cluster.findings()
    assert (len(findings.cuts), findings.left_out) == (2, 2)


def test_while_nothing_happens_nothing_is_written(cluster):
    cluster.propose(whitelist=())
    assert cluster.findings() is not None
    version = cluster.server.tree.find(findings_path(INSTANCE, 1)).version
    cluster.network.run_for(20)
    assert cluster.server.tree.find(findings_path(INSTANCE, 1)).version == version


def test_without_a_proposal_no_timer_runs(cluster):
    assert produce(cluster.clear()) == 0
    assert cluster.broker.registry._shadows._timer is None
