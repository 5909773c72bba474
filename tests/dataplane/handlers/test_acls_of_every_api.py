"""Every API of a tenant asks for the rights that Kafka asks for, on a connection that stays open while they change.

The handlers are those of a whole simulated broker; ACLs are what the registry would have read.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from dataplane.handlers.table import served
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages import discovery, fetch, groups, produce, topics
from quota.contracts.acls import CLUSTER_NAME, Acl, AclOperation, AclSet, PatternType, Permission
from quota.contracts.instance import Authorizer
from tests.dataplane.handlers.acl_cases import (
    ABSENT,
    CASES,
    CLUSTER,
    GROUP,
    NOT_ASKED,
    ORDERS,
    PAYMENTS,
    READERS,
    TOPIC,
    TXN,
    fetch_request,
    produce_request,
    refusal,
)
from tests.simulation.cluster import INSTANCE, SETTINGS, SimulatedCluster

Op = AclOperation
ME, HERE, ELSEWHERE = "User:ANONYMOUS", "10.0.1.1", "192.0.2.1"
TENANTS = {row.api.key: row for row in served(tenant=True)}
DESCRIBE_ALL = [(Op.DESCRIBE, kind, "*") for kind in (TOPIC, GROUP, CLUSTER, TXN)]
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def allow(*rights, host="*", who=ME):
    return [Acl(kind, PatternType.LITERAL, name, who, host, op, Permission.ALLOW) for op, kind, name in rights]


def deny(*rights):
    return [replace(acl, permission=Permission.DENY) for acl in allow(*rights, who="User:*")]


class Tenant:
    """One connection to the one broker."""

    def __init__(self):
        self.cluster = SimulatedCluster(
            seed=9,
            brokers=1,
            settings=replace(SETTINGS, offsets_topic_replication_factor=1, transaction_state_log_replication_factor=1),
        )
        self.cluster.until(self.cluster.up)
        self.broker = self.cluster.brokers[1]
        self.cluster.until(lambda: self.broker.controller.is_active)
        created = self.ask(topics.CreateTopicsRequest((topics.CreatableTopic(ORDERS, 1, 1, (), ()),), 5_000), 5)
        assert created.topics[0].error_code == 0
        physical = f"simulate.{ORDERS}"
        self.cluster.until(lambda: self.broker.replicas.registry.get(physical, 0) is not None)
        self.topic_id = self.broker.metadata.topic_id(physical)
        self.cluster.run(self.cluster.client.commit(READERS, ORDERS, 0, 0, [1]))  # the group is there
        self.ask(discovery.FindCoordinatorRequest(PAYMENTS, 1), 3)
        made = produce.InitProducerIdRequest(PAYMENTS, 60_000)
        self.cluster.until(lambda: not self.ask(made, 4).error_code)  # and so is the transactional id
        self.instance = self.broker.registry.get(INSTANCE)
        self.connections = list(self.instance.connections)

    def ask(self, request, version):
        return self.answer_of(self.begin(request, version))

    def begin(self, request, version):
        return self.cluster.client.call(1, request, version)

    def answer_of(self, asked, within_s=60):
        self.cluster.until(lambda: asked.done, within_s)
        assert asked.result() is not None, "the connection was closed"
        return asked.result()

    def rules(self, *acls, everyone=False, super_users=(), **members):
        """From now on, as a change of the spec."""
        spec = self.instance.spec
        known = spec.acls or AclSet()
        changed = replace(
            spec,
            generation=spec.generation + 1,
            acls=known.changed([acl for some in acls for acl in some]),
            authorizer=Authorizer(everyone, super_users),
            **members,
        )
        self.broker.registry.apply(changed)
        assert self.instance.spec is changed


@pytest.fixture(scope="module")
def shared():
    return Tenant()


@pytest.fixture
def tenant(shared):
    shared.rules(everyone=True, topic_whitelists={})
    return shared


def test_every_api_of_a_tenant_is_in_the_table_or_says_why_not():
    """A new one is in neither: it comes with its rights."""
    assert set(TENANTS) == {int(case.key) for case in CASES} | {int(key) for key in NOT_ASKED} | {int(ApiKey.FETCH)}


VERSIONS = [
    pytest.param(case, version, id=f"{case.name} v{version}")
    for case in CASES
    for version in range(max(case.low, TENANTS[case.key].low), TENANTS[case.key].high + 1)
]


@pytest.mark.parametrize(("case", "version"), VERSIONS)
def test_an_api_asks_for_its_right_and_sees_when_it_changes(tenant, case, version):
    beside = allow(*case.beside)

    def told(*acls, **members):
        tenant.rules(beside, *acls, **members)
        return case.refused(tenant.ask(case.request(version), version))

    assert told() == case.code, "without rights"
    assert told(allow(case.needs)) == 0, "with the right"
    assert told() == case.code, "after it was taken away"
    assert told(allow(case.needs, host=ELSEWHERE)) == case.code, "from elsewhere only"
    assert told(allow(case.needs, host="10.0.0.0/8")) == 0, "from here"
    assert told(allow(case.needs, who="User:somebody")) == case.code, "somebody else"
    assert told(allow((Op.ALL, *case.needs[1:]))) == 0, "by ALL"
    assert told(super_users=(ME,)) == 0, "a super user"
    assert (told(allow(*DESCRIBE_ALL)) == 0) == (case.needs[0] is Op.DESCRIBE), "to describe only"
    assert len(tenant.instance.connections) == len(tenant.connections), "on the connection that was open"


@pytest.mark.parametrize(("case", "version"), VERSIONS)
def test_a_rule_that_denies_stands_above_one_that_allows(tenant, case, version):
    by_the_other_right = case.what in ("of any name", "to write anything") or case.key in (
        ApiKey.LIST_GROUPS,  # whoever may describe the cluster
        ApiKey.CREATE_TOPICS,
    )
    tenant.rules(allow(*case.beside, case.needs), deny(case.needs), everyone=False)
    code = case.refused(tenant.ask(case.request(version), version))
    assert code == case.code
    if not by_the_other_right:
        tenant.rules(deny(case.needs), everyone=True)
        open_to_all = case.key is ApiKey.INIT_PRODUCER_ID and case.needs[1] is not TXN  # who may write to any topic
        assert bool(case.refused(tenant.ask(case.request(version), version))) is not open_to_all


@pytest.mark.parametrize(("case", "version"), VERSIONS)
def test_an_instance_without_rules_refuses_nobody(tenant, case, version):
    assert case.refused(tenant.ask(case.request(version), version)) == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_handler_asks_the_one_place_that_decides(tenant, case, monkeypatch):
    """Not by chance: what is permitted comes from `access.authorize` and nowhere else."""
    asked = []
    decide = type(tenant.instance.book).decide
    monkeypatch.setattr(
        type(tenant.instance.book),
        "decide",
        lambda book, who, host, *what: asked.append((who, host)) or decide(book, who, host, *what),
    )
    tenant.rules()
    tenant.ask(case.request(TENANTS[case.key].high), TENANTS[case.key].high)
    assert set(asked) == {(ME, HERE)}


# --- Fetch ------------------------------------------------------------------------------------------------------------


def fetching(tenant, version, **members):
    request = fetch_request(version, **members)
    by_id = tuple(replace(topic, topic="", topic_id=tenant.topic_id) for topic in request.topics)
    return replace(request, topics=by_id) if version >= 13 else request


@pytest.mark.parametrize("version", range(18))
def test_a_fetch_asks_to_read_by_name_and_by_id(tenant, version):
    def told(*acls):
        tenant.rules(*acls)
        return refusal(tenant.ask(fetching(tenant, version), version))

    read = (Op.READ, TOPIC, ORDERS)
    assert told() == told(allow(*DESCRIBE_ALL)) == told(allow(read), deny(read)) == NO_TOPIC
    assert told(allow(read, host=ELSEWHERE)) == NO_TOPIC
    assert told(allow(read)) == 0
    assert told() == NO_TOPIC


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_a_fetch_that_waits_is_told_at_once_that_it_may_not_read_any_more(tenant, version):
    """Kafka lets it wait for its time, here a minute."""
    read = (Op.READ, TOPIC, ORDERS)
    for _ in range(3):  # the last by the short cut, where there is one
        tenant.rules(allow(read))
        end = tenant.broker.replicas.registry.get(f"simulate.{ORDERS}", 0).log.end_offset
        row = fetch.FetchPartition(partition=0, fetch_offset=end, partition_max_bytes=1_000)
        named = (fetch.FetchTopic(ORDERS, partitions=(row,)),)
        waits = tenant.begin(
            fetching(tenant, version, topics=named, max_wait_ms=9_000, min_bytes=1, session_epoch=-1), version
        )
        tenant.cluster.network.run_for(1)
        tenant.rules(allow(read), allow((Op.WRITE, TOPIC, ORDERS)))
        tenant.cluster.network.run_for(1)
        assert not waits.done  # what changed is none of its business
        tenant.rules()
        assert refusal(tenant.answer_of(waits, 0.2)) == NO_TOPIC


def test_a_fetch_of_a_session_that_waits_is_told_so_too(tenant):
    tenant.rules(allow((Op.READ, TOPIC, ORDERS)))
    end = tenant.broker.replicas.registry.get(f"simulate.{ORDERS}", 0).log.end_offset
    row = fetch.FetchPartition(partition=0, fetch_offset=end, partition_max_bytes=1_000)
    begun = tenant.ask(fetch_request(12, topics=(fetch.FetchTopic(ORDERS, partitions=(row,)),), session_epoch=0), 12)
    assert begun.session_id
    waits = tenant.begin(
        fetch_request(12, topics=(), session_id=begun.session_id, session_epoch=1, max_wait_ms=9_000, min_bytes=1), 12
    )
    tenant.cluster.network.run_for(1)
    assert not waits.done
    tenant.rules()
    assert refusal(tenant.answer_of(waits, 0.2)) == NO_TOPIC
    tenant.rules(allow((Op.READ, TOPIC, ORDERS)))
    assert refusal(tenant.ask(fetch_request(12, topics=(), session_id=begun.session_id, session_epoch=2), 12)) == 0


def test_requests_by_the_short_cut_see_the_change(tenant):
    for request, right in ((produce_request(9), Op.WRITE), (fetching(tenant, 12), Op.READ)):
        version = 9 if right is Op.WRITE else 12
        for _ in range(3):
            tenant.rules(allow((right, TOPIC, ORDERS)))
            assert [refusal(tenant.ask(request, version)) for _ in range(3)] == [0, 0, 0]
            tenant.rules()
            assert [refusal(tenant.ask(request, version)) for _ in range(3)] == [NO_TOPIC] * 3


# --- what is hidden, as Kafka hides it --------------------------------------------------------------------------------


def test_what_may_not_be_described_is_refused_whether_it_is_there_or_not(tenant):
    tenant.rules()
    named = tuple(discovery.MetadataRequestTopic(name=name) for name in (ORDERS, ABSENT))
    answer = tenant.ask(discovery.MetadataRequest(named, allow_auto_topic_creation=False), 12)
    assert [(topic.error_code, topic.topic_id.int, topic.partitions) for topic in answer.topics] == [
        (NO_TOPIC, 0, ())
    ] * 2


def test_by_its_id_a_topic_that_may_not_be_described_has_no_name(tenant):
    tenant.rules()
    by_id = (discovery.MetadataRequestTopic(tenant.topic_id, None),)
    (topic,) = tenant.ask(discovery.MetadataRequest(by_id), 12).topics
    assert (topic.error_code, topic.name, topic.topic_id) == (NO_TOPIC, None, tenant.topic_id)
    by_id = (topics.DeleteTopicState(None, tenant.topic_id),)
    (deleted,) = tenant.ask(topics.DeleteTopicsRequest(by_id, timeout_ms=1_000), 6).responses
    assert (deleted.error_code, deleted.name, deleted.topic_id) == (NO_TOPIC, None, tenant.topic_id)
    tenant.rules(allow((Op.DESCRIBE, TOPIC, ORDERS)))
    (deleted,) = tenant.ask(topics.DeleteTopicsRequest(by_id, timeout_ms=1_000), 6).responses
    assert (deleted.error_code, deleted.name, deleted.topic_id) == (NO_TOPIC, ORDERS, tenant.topic_id)


def test_a_topic_comes_by_itself_only_for_who_may_create_it(tenant):
    request = discovery.MetadataRequest((discovery.MetadataRequestTopic(name="later"),), allow_auto_topic_creation=True)
    describe = (Op.DESCRIBE, TOPIC, "later")
    tenant.rules(allow(describe), auto_create_topics=True)
    assert tenant.ask(request, 9).topics[0].error_code == NO_TOPIC
    tenant.rules(allow(describe), auto_create_topics=False)
    assert tenant.ask(request, 9).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    tenant.rules(allow(describe, (Op.CREATE, CLUSTER, CLUSTER_NAME)), auto_create_topics=True)
    assert tenant.ask(request, 9).topics[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE
    tenant.rules(auto_create_topics=False)


def test_a_created_topic_is_described_to_who_may_see_its_configuration(tenant):
    request = topics.CreateTopicsRequest((topics.CreatableTopic("shown", 1, 1, (), ()),), 1_000, validate_only=True)
    tenant.rules(allow((Op.CREATE, TOPIC, "shown")))
    (hidden,) = tenant.ask(request, 7).topics
    assert (hidden.error_code, hidden.topic_config_error_code) == (0, NO_TOPIC)
    assert (hidden.num_partitions, hidden.replication_factor, hidden.configs) == (-1, -1, ())
    tenant.rules(allow((Op.CREATE, TOPIC, "shown"), (Op.DESCRIBE_CONFIGS, TOPIC, "shown")))
    (shown,) = tenant.ask(request, 7).topics
    assert (shown.error_code, shown.topic_config_error_code, shown.num_partitions) == (0, 0, 1)
    assert shown.configs


def test_who_may_describe_the_cluster_sees_all_groups(tenant):
    tenant.rules(allow((Op.DESCRIBE, CLUSTER, CLUSTER_NAME)))
    assert [group.group_id for group in tenant.ask(groups.ListGroupsRequest((), ()), 4).groups] == [READERS]


# --- authorized operations --------------------------------------------------------------------------------------------


def bits(*operations):
    return sum(1 << operation for operation in operations)


def test_operations_are_told_as_they_are(tenant):
    tenant.rules(
        allow((Op.READ, TOPIC, ORDERS), (Op.DELETE, GROUP, READERS), (Op.ALTER_CONFIGS, CLUSTER, CLUSTER_NAME)),
        allow((Op.ALTER, CLUSTER, CLUSTER_NAME)),
    )
    named = (discovery.MetadataRequestTopic(name=ORDERS),)
    answer = tenant.ask(discovery.MetadataRequest(named, True, True, True), 10)
    cluster = bits(Op.ALTER, Op.DESCRIBE, Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS)
    assert answer.topics[0].topic_authorized_operations == bits(Op.READ, Op.DESCRIBE)
    assert answer.cluster_authorized_operations == cluster
    asked = discovery.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert tenant.ask(asked, 1).cluster_authorized_operations == cluster
    (group,) = tenant.ask(groups.DescribeGroupsRequest((READERS,), True), 5).groups
    assert group.authorized_operations == bits(Op.DELETE, Op.DESCRIBE)
    page = discovery.DescribeTopicPartitionsRequest(
        (discovery.DescribeTopicPartitionsRequestTopicRequest(ORDERS),), cursor=None
    )
    assert tenant.ask(page, 0).topics[0].topic_authorized_operations == bits(Op.READ, Op.DESCRIBE)


def test_who_may_not_describe_the_cluster_is_told_of_no_operation_on_it(tenant):
    tenant.rules(allow((Op.CREATE, CLUSTER, CLUSTER_NAME)))
    asked = discovery.DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert tenant.ask(asked, 1).cluster_authorized_operations == 0
    assert len(tenant.ask(asked, 1).brokers) == 1
