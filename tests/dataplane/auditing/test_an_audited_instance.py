"""What happens at an audited instance stands in its `__sluice_audit`, which its clients read and cannot change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane import admission
from dataplane.auditing.auditing import MOST_OF_A_REQUEST, PORTION
from dataplane.config import Settings
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from dataplane.protocol.messages.discovery import MetadataRequest, MetadataRequestTopic
from dataplane.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from dataplane.protocol.messages.produce import InitProducerIdRequest
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from dataplane.records.batch import Record, build_batch, read_records, split_batches
from dataplane.storage.log import reading
from dataplane.tenancy.session import Session
from quota.contracts.acls import Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.audit import AuditKind, AuditRecord
from quota.contracts.instance import Authorizer, Limits, TopicDefaults
from quota.contracts.namespace import AUDIT_TOPIC, InstanceNames, instance_key
from tests.dataplane.requests.logins import ISSUER, TOKEN_PORT, Cluster
from tests.simulation.cluster import INSTANCE

NAMES = InstanceNames(instance_key(INSTANCE))
PHYSICAL = NAMES.topic_in(AUDIT_TOPIC)


class Audited(Cluster):
    """The cluster of logins, whose instance is audited."""

    def __init__(self, **limits):
        super().__init__(**limits)
        self.spec = replace(self.spec, generation=3, audit=True)
        self.apply(self.spec)

    def again(self, **members):
        self.spec = replace(self.spec, generation=self.spec.generation + 1, **members)
        self.apply(self.spec)

    def records(self, wait_s=5.0):
        """All that have been written."""
        self.network.run_for(wait_s)
        partition = self.broker.replicas.registry.get(PHYSICAL, 0)
        if partition is None:
            return []
        found = reading.read(partition.log, 0, 2**20, partition.log.end_offset, at_least_one=True)
        batches = [] if found is None else split_batches(found.read())
        return [AuditRecord.from_value(one.value) for _, batch in batches for one in read_records(batch)]


@pytest.fixture
def cluster():
    return Audited()


def kinds(records):
    return [(str(one.kind), one.outcome) for one in records]


def test_connections_logins_and_requests_are_records(cluster):
    end = cluster.connect()
    assert end.plain().error_code == 0
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    assert end.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000), 7).topics[0].error_code == 0
    end.call(DeleteTopicsRequest(topic_names=("nothing",), timeout_ms=5_000), 5)
    records = cluster.records()
    assert kinds(records) == [
        ("connection", "accepted"),
        ("authentication", "success"),
        ("request", "NONE"),
        ("request", "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    login, created = records[1], records[2]
    assert (login.principal, login.source, login.route) == ("User:alice", "10.0.1.9", "sasl")
    assert (created.api, created.resource, created.client_id) == ("CREATE_TOPICS", "TOPIC:orders", "client")


def test_of_a_request_that_names_very_many_things_the_first_are_told_and_the_others_counted(cluster):
    end = cluster.connect()
    assert end.plain().error_code == 0
    names = tuple(f"nothing-{number}" for number in range(1_000))
    end.call(DeleteTopicsRequest(topic_names=names, timeout_ms=5_000), 5)
    end.call(DeleteTopicsRequest(topic_names=("last",), timeout_ms=5_000), 5)
    deletions = [one for one in cluster.records() if one.api == "DELETE_TOPICS"]
    assert len(deletions) == MOST_OF_A_REQUEST + 1
    assert (deletions[-1].resource, deletions[-1].left_out) == ("TOPIC:last", 1_000 - MOST_OF_A_REQUEST)


def test_who_is_not_let_in_and_who_fails_to_log_in_are_records_without_secrets(cluster):
    cluster.connect().plain("alice", "a wrong password")
    cluster.again(whitelist=("192.0.2.0/24",))
    cluster.connect()
    records = cluster.records()
    assert kinds(records) == [("connection", "accepted"), ("authentication", "failure"), ("connection", "refused")]
    assert records[2].reason == "no whitelist holds the address"
    assert not any(b"wrong" in one.value() for one in records)


def test_a_login_says_by_which_mechanism_and_a_token_why_it_was_refused(cluster):
    assert cluster.connect().plain().error_code == 0
    assert cluster.connect(TOKEN_PORT).token(ISSUER.token("carol", cluster.now_s)).error_code == 0
    refused = cluster.connect(TOKEN_PORT)
    refused.token(ISSUER.token("carol", cluster.now_s, aud="other"))
    refused.say(b"\x01")
    told = [one for one in cluster.records() if str(one.kind) == "authentication"]
    assert [(one.outcome, one.principal, one.mechanism, one.reason) for one in told] == [
        ("success", "User:alice", "PLAIN", None),
        ("success", "User:carol", "OAUTHBEARER", None),
        ("failure", "User:carol", "OAUTHBEARER", "the token: it is for another audience"),
    ]


@pytest.mark.parametrize("problem", [None, "no rule makes a principal of the client's certificate"])
def test_who_a_certificate_says_it_is_is_a_record(cluster, problem, monkeypatch):
    def identify(session, _route, _certificate):
        session.principal = "User:CN=carol" if problem is None else session.principal
        return problem

    monkeypatch.setattr(admission, "identify", identify)
    instance = cluster.broker.registry.get(INSTANCE)
    session = Session(instance, "default", instance.names, "10.0.1.9", authenticated=True)
    clear = cluster.broker.admission._identified
    assert clear(session, instance.route("default"), b"a certificate") == problem
    assert clear(session, instance.route("sasl"), b"a certificate") == problem  # there a login says who it is
    assert clear(session, instance.route("default"), None) == problem
    (record,) = cluster.records()
    assert (str(record.kind), record.reason) == ("authentication", problem)
    assert (record.outcome, record.principal) == (
        ("success", "User:CN=carol") if problem is None else ("failure", "User:ANONYMOUS")
    )


def denying(cluster):
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:bob", "*", AclOperation.READ, Permission.DENY)
    cluster.again(acls=AclSet(1, (acl,)), authorizer=Authorizer(allow_everyone_if_no_acl_found=True))


def fetch(topic):
    return FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=(FetchTopic(topic=topic, partitions=(FetchPartition(partition=0),)),)
    )


def test_denials_are_told_once_with_the_rule_that_decided_and_then_counted(cluster):
    denying(cluster)
    end = cluster.connect()
    assert end.plain("bob", "brush").error_code == 0
    for _ in range(7):
        answer = end.call(fetch("orders"), 11)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    denials = [one for one in cluster.records() if one.kind == "denial"]
    assert [(one.count, one.operation, one.resource, one.principal) for one in denials] == [
        (1, "READ", "TOPIC:orders", "User:bob")
    ]
    assert denials[0].reason == "an ACL denies READ on TOPIC orders to User:bob from everywhere"
    denials = [one for one in cluster.records(wait_s=70) if one.kind == "denial"]
    assert [one.count for one in denials] == [1, 6]


def test_a_transactional_id_that_is_denied_is_told_as_the_tenant_calls_it(cluster):
    acl = Acl(
        ResourceType.TRANSACTIONAL_ID,
        PatternType.LITERAL,
        "payments",
        "User:bob",
        "*",
        AclOperation.WRITE,
        Permission.DENY,
    )
    cluster.again(acls=AclSet(1, (acl,)), authorizer=Authorizer(allow_everyone_if_no_acl_found=True))
    end = cluster.connect()
    assert end.plain("bob", "brush").error_code == 0
    answer = end.call(InitProducerIdRequest("payments", 60_000), 4)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    (denial,) = [one for one in cluster.records() if one.kind == "denial"]
    assert (denial.operation, denial.resource) == ("WRITE", "TRANSACTIONAL_ID:payments")
    assert denial.reason == "an ACL denies WRITE on TRANSACTIONAL_ID payments to User:bob from everywhere"


def test_its_clients_see_it_and_cannot_change_it(cluster):
    end = cluster.connect()
    assert end.plain().error_code == 0
    assert cluster.records()
    answer = end.call(MetadataRequest(topics=None), 9)
    assert [topic.name for topic in answer.topics] == [AUDIT_TOPIC]
    found = end.call(fetch(AUDIT_TOPIC), 11).responses[0].partitions[0]
    assert found.error_code == 0
    assert found.high_watermark > 0
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    deleted = end.call(DeleteTopicsRequest(topic_names=(AUDIT_TOPIC,), timeout_ms=5_000), 5)
    assert deleted.responses[0].error_code == refused
    more = CreatePartitionsTopic(name=AUDIT_TOPIC, count=2)
    grown = end.call(CreatePartitionsRequest(topics=(more,), timeout_ms=5_000), 3)
    assert grown.results[0].error_code == refused
    setting = IncrementalAlterConfigsRequestAlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=2, resource_name=AUDIT_TOPIC, configs=(setting,)
    )
    altered = end.call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    assert altered.responses[0].error_code == refused
    created = end.call(CreateTopicsRequest(topics=(CreatableTopic(AUDIT_TOPIC, 1, 1),), timeout_ms=5_000), 7)
    assert created.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_who_may_not_read_it_is_told_of_the_acl_and_not_that_it_is_the_services(cluster):
    end = cluster.connect()
    assert end.plain("bob", "brush").error_code == 0
    assert cluster.records()
    acl = Acl(ResourceType.TOPIC, PatternType.LITERAL, AUDIT_TOPIC, "User:bob", "*", AclOperation.READ, Permission.DENY)
    cluster.again(acls=AclSet(1, (acl,)), authorizer=Authorizer(allow_everyone_if_no_acl_found=True))
    answer = end.call(fetch(AUDIT_TOPIC), 11)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    end.call(DeleteTopicsRequest(topic_names=(AUDIT_TOPIC,), timeout_ms=5_000), 5)
    denials = [one for one in cluster.records() if one.kind == "denial"]
    assert [(one.operation, one.reason) for one in denials][:2] == [
        ("READ", "an ACL denies READ on TOPIC __sluice_audit to User:bob from everywhere"),
        ("DELETE", "the topic is the service's to change"),
    ]


def test_it_counts_to_no_limit_and_no_bill():
    cluster = Audited()
    cluster.again(limits=Limits(None, None, None, partitions=1, topics=1))
    end = cluster.connect()
    assert end.plain().error_code == 0
    assert cluster.records()
    topic = CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
    assert end.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5_000), 7).topics[0].error_code == 0
    cluster.network.run_for(2)
    broker, key = cluster.broker, NAMES.key
    assert broker.replicas.accounting.leaders_by_instance() == {key: 1}
    assert broker.metadata.leaders_of(key) == 1
    assert broker.replicas.accounting.storage_by_instance().get(key, 0) == 0
    assert broker.meter.topic(PHYSICAL) is None


def test_an_instance_that_is_not_audited_has_nothing_and_costs_nothing():
    cluster = Cluster()
    end = cluster.connect()
    assert end.plain().error_code == 0
    end.call(MetadataRequest(topics=(MetadataRequestTopic(name="x"),)), 9)
    cluster.network.run_for(5)
    assert not cluster.broker.metadata.has_topic(PHYSICAL)
    assert cluster.broker.auditing._trails == {}
    assert cluster.broker.auditing._timer is None


def test_when_nothing_happens_any_more_nothing_is_kept(cluster):
    cluster.connect()
    assert cluster.records(wait_s=70)
    assert cluster.broker.auditing._trails == {}
    assert cluster.broker.auditing._timer is None


def test_what_cannot_be_written_yet_is_written_later(cluster):
    write, refusals = cluster.broker.auditing._sink.write, []

    async def not_yet(physical, records):
        refusals.append(len(records))
        return len(refusals) > 3 and await write(physical, records)

    cluster.broker.auditing._sink.write = not_yet
    cluster.connect()
    assert kinds(cluster.records(wait_s=10)) == [("connection", "accepted")]


def test_records_that_are_as_large_as_clients_can_make_them_fit_into_one_request():
    """A request that the topic does not take would be tried again for ever, and nothing behind it written."""
    chosen = dict.fromkeys(("principal", "client_id", "resource", "reason"), "\U0001f600" * 300)
    largest = AuditRecord(
        2**42,
        2**31 - 1,
        AuditKind.DENIAL,
        max((code.name for code in ErrorCode), key=len),
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "default",
        api="INCREMENTAL_ALTER_CONFIGS",
        operation="DESCRIBE_CONFIGS",
        mechanism="SCRAM-SHA-512",
        count=2**31,
        left_out=2**31,
        **chosen,
    )
    batch = build_batch([Record(None, largest.value())] * PORTION, now_ms=0)
    assert len(batch) < Settings().message_max_bytes


def test_what_an_instance_says_of_large_messages_is_not_about_its_audit(cluster):
    cluster.again(topic_defaults=TopicDefaults(max_message_bytes=1_024))
    for _ in range(20):
        assert cluster.connect().plain().error_code == 0
    assert kinds(cluster.records()).count(("authentication", "success")) == 20
