"""ACLs as a tenant's AdminClient creates, lists and deletes them."""

from types import SimpleNamespace

import pytest

from dataplane.cluster.beside import write_beside
from dataplane.doors import Create, NoNodeError, SetData
from dataplane.handlers.admin import access_nodes
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.security import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from dataplane.tasks import Future
from quota.contracts.acls import MOST_ACLS, Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_path
from tests.dataplane.handlers.access import acls_in, call, call_inside, cluster_with_access, specs, told
from tests.simulation.cluster import INSTANCE

TOPIC, GROUP, CLUSTER = 2, 3, 4
ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
ALL, READ, ALTER = 2, 3, 7
DENY, ALLOW = 2, 3
EVERYTHING = DescribeAclsRequest(ANY, None, ANY, None, None, ANY, ANY)
REFUSED = ErrorCode.INVALID_REQUEST


@pytest.fixture(scope="module")
def shared():
    return cluster_with_access(seed=6)


@pytest.fixture
def cluster(shared):
    has(shared, ())
    return shared


def has(cluster, acls):
    """The brokers act by these."""
    before, path = acls_in(cluster), acls_path(INSTANCE)
    after = before.changed(acls)
    write = SetData if before.version else Create
    cluster.zookeeper.write([write(path, after.to_json())])
    told(cluster)
    cluster.until(lambda: all(spec.acls == after for spec in specs(cluster)))


def creation(name="orders", principal="User:ann", operation=READ, **members):
    said = {"resource_type": TOPIC, "resource_pattern_type": LITERAL, "host": "*", "permission_type": ALLOW, **members}
    return AclCreation(resource_name=name, principal=principal, operation=operation, **said)


def create(cluster, *creations, version=3, broker=1):
    """Error codes."""
    return [row.error_code for row in call(cluster, CreateAclsRequest(creations), version, broker).results]


def described(cluster, request=EVERYTHING, version=3, broker=1):
    """(type, name, pattern, principal, host, operation, permission) of each."""
    answer = call(cluster, request, version, broker)
    assert (answer.error_code, answer.error_message) == (0, None)
    return [
        (r.resource_type, r.resource_name, r.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for r in answer.resources
        for a in r.acls
    ]


def delete(cluster, *filters, version=3):
    """The names of what each filter took, or its error code."""
    answer = call(cluster, DeleteAclsRequest(filters), version)
    return [row.error_code or sorted(acl.resource_name for acl in row.matching_acls) for row in answer.filter_results]


def meaning(name=None, pattern=ANY, **members):
    said = {"resource_type_filter": ANY, "principal_filter": None, "host_filter": None, "operation": ANY, **members}
    return DeleteAclsFilter(resource_name_filter=name, pattern_type_filter=pattern, **{"permission_type": ANY, **said})


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_what_is_created_is_listed_and_deleted_again(cluster, version):
    assert create(cluster, creation(), creation("clicks", "User:*", ALL, permission_type=DENY), version=version) == [
        0,
        0,
    ]
    listed = [
        (TOPIC, "clicks", LITERAL, "User:*", "*", ALL, DENY),
        (TOPIC, "orders", LITERAL, "User:ann", "*", READ, ALLOW),
    ]
    everything = DescribeAclsRequest(ANY, None, ANY if version else LITERAL, None, None, ANY, ANY)
    assert described(cluster, everything, version) == listed
    only_ann = meaning(pattern=ANY if version else LITERAL, principal_filter="User:ann")
    assert delete(cluster, only_ann, version=version) == [["orders"]]
    assert described(cluster, everything, version) == listed[:1]


def test_names_stand_in_zookeeper_as_the_tenant_says_them(cluster):
    create(cluster, creation("ord", resource_pattern_type=PREFIXED), creation("readers", resource_type=GROUP))
    assert acls_in(cluster).items == (
        Acl(ResourceType.TOPIC, PatternType.PREFIXED, "ord", "User:ann", "*", AclOperation.READ, Permission.ALLOW),
        Acl(ResourceType.GROUP, PatternType.LITERAL, "readers", "User:ann", "*", AclOperation.READ, Permission.ALLOW),
    )


def test_the_broker_that_answers_acts_by_them_and_the_others_soon(cluster):
    create(cluster, creation(), broker=2)
    version = acls_in(cluster).version
    assert cluster.brokers[2].registry.get(INSTANCE).spec.acls.version == version
    cluster.until(lambda: all(spec.acls.version == version for spec in specs(cluster)), 2)
    assert len(described(cluster, broker=3)) == 1


def test_what_is_there_already_is_no_error_and_no_change(cluster):
    create(cluster, creation())
    version = acls_in(cluster).version
    assert create(cluster, creation(), creation()) == [0, 0]
    assert acls_in(cluster).version == version


def test_writers_at_the_same_time_lose_nothing(cluster):
    answers = [cluster.client.call(n, CreateAclsRequest((creation(f"t{n}"),)), 3) for n in (1, 2, 3)]
    cluster.until(lambda: all(answer.done for answer in answers), 10)
    assert [acl.resource_name for acl in acls_in(cluster).items] == ["t1", "t2", "t3"]


@pytest.mark.parametrize(
    "refused",
    [
        creation(""),
        creation("other", resource_type=CLUSTER),
        creation("*", resource_type=CLUSTER),
        creation(resource_type=ANY),
        creation(resource_type=0),
        creation(resource_type=99),
        creation(resource_pattern_type=MATCH),
        creation(resource_pattern_type=ANY),
        creation(operation=ANY),
        creation(operation=0),
        creation(permission_type=ANY),
        creation(principal="ann"),
        creation(principal="User:"),
        creation(principal="Group:staff"),
        creation(host="localhost"),
        creation("x" * 256),
    ],
)
def test_one_that_cannot_be_is_refused_and_no_obstacle_to_the_others(cluster, refused):
    assert create(cluster, creation("a"), refused, creation("b")) == [0, REFUSED, 0]
    assert len(acls_in(cluster).items) == 2


def test_refusals_have_kafkas_words(cluster):
    request = CreateAclsRequest((creation("other", resource_type=CLUSTER), creation("")))
    assert [row.error_message for row in call(cluster, request).results] == [
        "The only valid name for the CLUSTER resource is kafka-cluster",
        "Invalid empty resource name",
    ]


def test_a_filter_of_unknown_codes_is_refused(cluster):
    answer = call(cluster, DescribeAclsRequest(0, None, ANY, None, None, ANY, ANY))
    assert (answer.error_code, answer.resources) == (REFUSED, ())
    create(cluster, creation("a"))
    assert delete(cluster, meaning(operation=77), meaning("a")) == [REFUSED, ["a"]]


def test_an_acl_is_told_with_the_first_filter_that_means_it(cluster):
    create(cluster, creation("orders"), creation("ord", resource_pattern_type=PREFIXED), creation("*"), creation("x"))
    assert delete(cluster, meaning("orders", MATCH), meaning(), meaning()) == [["*", "ord", "orders"], ["x"], []]
    assert described(cluster) == []


def test_there_is_a_most(cluster):
    has(cluster, [_numbered(n) for n in range(1, MOST_ACLS)])
    answers = create(cluster, creation("t1"), creation("a"), creation("b"))
    assert answers == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert len(acls_in(cluster).items) == MOST_ACLS
    assert delete(cluster, meaning("a")) == [["a"]]


def _numbered(n):
    return Acl(ResourceType.TOPIC, PatternType.LITERAL, f"t{n}", "User:ann", "*", AclOperation.READ, Permission.ALLOW)


def test_they_take_a_bounded_number_of_bytes(cluster):
    large = [creation(f"{n:04}" + "ö" * 251, "User:" + "ü" * 255) for n in range(1_000)]
    answers = create(cluster, *large)
    taken = answers.count(0)
    assert answers == [0] * taken + [ErrorCode.POLICY_VIOLATION] * (1_000 - taken)
    assert 200 < taken < 400
    assert len(AclSet(1, acls_in(cluster).items).to_json()) <= 900_000


def test_on_the_clusters_own_listener_there_are_none(cluster):
    creations, filters = (creation(), creation("b")), (meaning(), meaning())
    found = [
        call_inside(cluster, EVERYTHING),
        *call_inside(cluster, CreateAclsRequest(creations)).results,
        *call_inside(cluster, DeleteAclsRequest(filters)).filter_results,
    ]
    assert [row.error_code for row in found] == [ErrorCode.SECURITY_DISABLED] * 5


def test_who_may_not_alter_the_cluster_changes_nothing_and_who_may_not_describe_it_sees_nothing(cluster):
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    deny = creation("kafka-cluster", "User:*", ALTER, resource_type=CLUSTER, permission_type=DENY)
    assert create(cluster, deny) == [0]
    assert create(cluster, creation(), creation("b")) == [refused] * 2
    assert delete(cluster, meaning(), meaning()) == [refused] * 2
    assert call(cluster, EVERYTHING).error_code == refused
    assert len(acls_in(cluster).items) == 1


def test_without_zookeeper_it_is_not_known_what_became_of_it(cluster, monkeypatch):
    def gone(*_):
        raise NoNodeError("nowhere")

    monkeypatch.setattr(type(cluster.brokers[1].doors.zookeeper), "multi", gone)
    assert create(cluster, creation()) == [ErrorCode.REQUEST_TIMED_OUT]
    assert delete(cluster, meaning("nothing")) == [[]]


def test_each_change_costs_one_of_the_instances_mutations(cluster):
    instance, clock = cluster.brokers[1].registry.get(INSTANCE), cluster.brokers[1].doors.loop.clock
    create(cluster, creation())
    bucket = instance.mutation_bucket
    bucket.charge(bucket.rate * 14, clock.monotonic())
    began, owed_s = clock.monotonic(), bucket.delay(clock.monotonic())
    assert owed_s > 1
    assert create(cluster, creation("a"), creation("b")) == [0, 0]
    assert clock.monotonic() - began >= owed_s
    instance.mutation_bucket = None


def denied_to_alter():
    return Acl(
        ResourceType.CLUSTER, PatternType.LITERAL, "kafka-cluster", "User:*", "*", AclOperation.ALTER, Permission.DENY
    )


@pytest.mark.parametrize(
    "request_of",
    [
        lambda: CreateAclsRequest((creation("late"),)),
        lambda: DeleteAclsRequest((meaning(),)),
    ],
)
def test_who_loses_the_right_while_he_waits_for_his_turn_changes_nothing(cluster, request_of):
    instance, clock = cluster.brokers[1].registry.get(INSTANCE), cluster.brokers[1].doors.loop.clock
    create(cluster, creation())
    instance.mutation_bucket.charge(instance.mutation_bucket.rate * 14, clock.monotonic())
    answer = cluster.client.call(1, request_of(), 3)
    has(cluster, [denied_to_alter()])
    assert not answer.done
    cluster.until(lambda: answer.done, 30)
    result = answer.result()
    rows = result.results if isinstance(result, CreateAclsResponse) else result.filter_results
    assert [row.error_code for row in rows] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert acls_in(cluster).items == (denied_to_alter(),)
    instance.mutation_bucket = None


def test_who_loses_the_right_while_zookeeper_is_asked_changes_nothing(cluster, monkeypatch):
    """What was read is put off until the broker acts by what has been written since."""
    broker, held = cluster.brokers[1], Future()
    get = broker.doors.zookeeper.get

    async def late(path):
        found = await get(path)
        if path == acls_path(INSTANCE):
            await held
        return found

    create(cluster, creation())
    monkeypatch.setattr(access_nodes, "write_beside", with_zookeeper(SimpleNamespace(get=late)))
    answer = cluster.client.call(1, CreateAclsRequest((creation("late"),)), 3)
    has(cluster, [denied_to_alter()])
    assert not answer.done
    held.resolve(None)
    cluster.until(lambda: answer.done, 30)
    assert [row.error_code for row in answer.result().results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert acls_in(cluster).items == (denied_to_alter(),)


def with_zookeeper(zookeeper):
    """`write_beside` with another door, which is never asked to write."""
    return lambda _real, instance, path, decide: write_beside(zookeeper, instance, path, decide)
