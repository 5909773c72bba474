"""Users as a tenant's AdminClient makes, lists and removes them."""

import pytest

from dataplane.doors import Create, SetData
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.security import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_path, users_path
from tests.dataplane.handlers.access import acls_in, call, call_inside, cluster_with_access, specs, told, users_in
from tests.simulation.cluster import INSTANCE

SHA_256, SHA_512 = 1, 2


@pytest.fixture(scope="module")
def shared():
    return cluster_with_access(seed=7)


@pytest.fixture
def cluster(shared):
    before = users_in(shared)
    if before.items:
        after = before.changed(())
        shared.zookeeper.write([SetData(users_path(INSTANCE), after.to_json())])
        told(shared)
        shared.until(lambda: all(spec.users == after for spec in specs(shared)))
    return shared


def upsertion(name="ann", mechanism=SHA_256, iterations=4096):
    return ScramCredentialUpsertion(name, mechanism, iterations, b"salt", bytes(64 if mechanism == SHA_512 else 32))


def alter(cluster, *upsertions, deletions=(), broker=1):
    """(user, error code) in the answer's order."""
    answer = call(cluster, AlterUserScramCredentialsRequest(tuple(deletions), upsertions), 0, broker)
    return [(row.user, row.error_code) for row in answer.results]


def describe(cluster, *names, broker=1):
    """(user, error code, {mechanism: iterations}) in the answer's order; without names of everybody."""
    asked = tuple(UserName(name) for name in names) or None
    answer = call(cluster, DescribeUserScramCredentialsRequest(asked), 0, broker)
    assert (answer.error_code, answer.error_message) == (0, None)
    return [
        (row.user, row.error_code, {info.mechanism: info.iterations for info in row.credential_infos})
        for row in answer.results
    ]


def test_users_are_made_listed_and_removed(cluster):
    assert alter(cluster, upsertion("bob", SHA_512), upsertion("ann", iterations=8192)) == [("bob", 0), ("ann", 0)]
    assert describe(cluster) == [("ann", 0, {SHA_256: 8192}), ("bob", 0, {SHA_512: 4096})]
    assert describe(cluster, "bob") == [("bob", 0, {SHA_512: 4096})]
    assert alter(cluster, deletions=[ScramCredentialDeletion("bob", SHA_512)]) == [("bob", 0)]
    assert [user for user, *_ in describe(cluster)] == ["ann"]


def test_the_broker_that_answers_knows_them_and_the_others_soon(cluster):
    alter(cluster, upsertion(), broker=3)
    assert describe(cluster, broker=3) == [("ann", 0, {SHA_256: 4096})]
    version = users_in(cluster).version
    cluster.until(lambda: all(spec.users.version == version for spec in specs(cluster)), 2)


def test_nothing_secret_is_told(cluster):
    alter(cluster, upsertion())
    answer = call(cluster, DescribeUserScramCredentialsRequest(None), 0)
    assert "salt" not in repr(answer)


def test_who_is_asked_for_and_is_not_there_or_twice(cluster):
    alter(cluster, upsertion())
    assert describe(cluster, "ann", "nobody", "twice", "twice", "") == [
        ("ann", 0, {SHA_256: 4096}),
        ("nobody", ErrorCode.RESOURCE_NOT_FOUND, {}),
        ("twice", ErrorCode.DUPLICATE_RESOURCE, {}),
        ("", ErrorCode.RESOURCE_NOT_FOUND, {}),
    ]


def test_one_that_is_refused_is_no_obstacle_to_the_others(cluster):
    deleted = [ScramCredentialDeletion("nobody", SHA_256)]
    found = alter(cluster, upsertion(iterations=1), upsertion("bob"), deletions=deleted)
    assert found == [
        ("nobody", ErrorCode.RESOURCE_NOT_FOUND),
        ("ann", ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ("bob", ErrorCode.NONE),
    ]
    assert [user.name for user in users_in(cluster).items] == ["bob"]


def test_writers_at_the_same_time_lose_nothing(cluster):
    requests = [AlterUserScramCredentialsRequest((), (upsertion(f"u{broker}"),)) for broker in (1, 2, 3)]
    answers = [cluster.client.call(broker, request, 0) for broker, request in enumerate(requests, 1)]
    cluster.until(lambda: all(answer.done for answer in answers), 10)
    assert [user.name for user in users_in(cluster).items] == ["u1", "u2", "u3"]


def test_on_the_clusters_own_listener_there_are_none(cluster):
    described = call_inside(cluster, DescribeUserScramCredentialsRequest(None), 0)
    altered = call_inside(cluster, AlterUserScramCredentialsRequest((), (upsertion(),)), 0)
    codes = [described.error_code, *(row.error_code for row in altered.results)]
    assert codes == [ErrorCode.SECURITY_DISABLED] * 2


def test_who_loses_the_right_while_he_waits_for_his_turn_changes_nothing(cluster):
    broker = cluster.brokers[1]
    instance, clock = broker.registry.get(INSTANCE), broker.doors.loop.clock
    alter(cluster, upsertion("ann"))
    instance.mutation_bucket.charge(instance.mutation_bucket.rate * 14, clock.monotonic())
    answer = cluster.client.call(1, AlterUserScramCredentialsRequest((), (upsertion("late"),)), 0)
    denied = Acl(
        ResourceType.CLUSTER, PatternType.LITERAL, "kafka-cluster", "User:*", "*", AclOperation.ALTER, Permission.DENY
    )
    before = acls_in(cluster)
    puts_in_force(cluster, before.changed((denied,)))
    assert not answer.done
    cluster.until(lambda: answer.done, 30)
    assert [row.error_code for row in answer.result().results] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert [user.name for user in users_in(cluster).items] == ["ann"]
    instance.mutation_bucket = None
    puts_in_force(cluster, acls_in(cluster).changed(()))


def puts_in_force(cluster, acls):
    path = acls_path(INSTANCE)
    write = Create if cluster.zookeeper.tree.find(path) is None else SetData
    cluster.zookeeper.write([write(path, acls.to_json())])
    told(cluster)
    cluster.until(lambda: all(spec.acls == acls for spec in specs(cluster)))
