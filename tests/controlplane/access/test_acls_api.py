"""ACLs by REST: made one by one, in sets and by preset, listed and deleted by filter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.access import acls as services
from controlplane.clusters import coordination
from controlplane.core.errors import ConcurrentChange
from controlplane.core.models import AuditEntry
from quota.contracts.acls import MOST_ACLS, Acl, AclOperation, AclSet, PatternType, Permission, ResourceType
from quota.contracts.apart import acls_from_json, acls_path
from quota.contracts.instance import Authorizer
from quota.core.acls import AclBook
from tests.controlplane.test_instances_api import problem

READ = {
    "principal": "User:ann",
    "host": "10.0.0.0/8",
    "operation": "READ",
    "permission": "ALLOW",
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "pattern_type": "LITERAL",
}
ORDERS = Acl(
    ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:ann", "10.0.0.0/8", AclOperation.READ, Permission.ALLOW
)


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/acls"


def in_force(tree, instance):
    return acls_from_json(coordination.beside_read(tree, acls_path(instance.id))).items


def test_a_new_acl_is_what_brokers_read_and_tells_them(alice, instance, tree, url):
    before = len(tree.children("/sluice/changes"))
    answer = alice.api.post(url, READ)
    assert (answer.status_code, answer.json()) == (201, READ)
    assert in_force(tree, instance) == (ORDERS,)
    assert len(tree.children("/sluice/changes")) == before + 1


def test_what_is_not_said_is_as_kafka_acls_has_it(alice, url):
    short = {name: READ[name] for name in ("principal", "operation", "resource_type", "resource_name")}
    assert alice.api.post(url, short).json() == {**READ, "host": "*"}


def test_one_that_is_there_stays_and_nobody_is_told(alice, instance, tree, url):
    alice.api.post(url, READ)
    before = dict(tree.nodes)
    assert alice.api.post(url, READ).status_code == 201
    assert tree.nodes == before


def test_a_list_is_narrowed_by_each_member_and_comes_in_pages(alice, url):
    rows = [
        READ,
        {**READ, "operation": "WRITE", "principal": "User:bob"},
        {**READ, "permission": "DENY", "host": "*"},
        {**READ, "resource_name": "ord", "pattern_type": "PREFIXED"},
        {**READ, "resource_type": "GROUP", "resource_name": "billing"},
    ]
    for row in rows:
        alice.api.post(url, row)

    def listed(**asked):
        return alice.api.get(url, asked).json()["items"]

    assert len(listed()) == 5
    assert listed(principal="User:bob") == [rows[1]]
    assert listed(operation="WRITE") == [rows[1]]
    assert listed(permission="DENY") == [rows[2]]
    assert listed(host="*") == [rows[2]]
    assert listed(pattern_type="PREFIXED") == [rows[3]]
    assert listed(resource_type="GROUP") == [rows[4]]
    assert listed(resource_name="orders", pattern_type="MATCH", operation="READ", permission="ALLOW") == [
        rows[0],
        rows[3],
    ]
    assert len(listed(resource_type="ANY", pattern_type="ANY", operation="ANY", permission="ANY")) == 5
    first = alice.api.get(url, {"limit": 3}).json()
    rest = alice.api.get(url, {"limit": 3, "cursor": first["next"]}).json()
    assert first["items"] + rest["items"] == listed()
    refused = problem(alice.api.get(url, {"user": "ann"}), 400, "invalid")
    assert refused["errors"][0]["field"] == "user"


def test_a_filter_deletes_what_it_takes_and_says_what(alice, instance, tree, url):
    other = {**READ, "principal": "User:bob"}
    for row in (READ, other, {**READ, "operation": "WRITE"}):
        alice.api.post(url, row)
    gone = alice.api.delete(url, {"principal": "User:ann"}).json()["items"]
    assert [row["operation"] for row in gone] == ["READ", "WRITE"]
    assert alice.api.get(url).json()["items"] == [other]
    assert alice.api.delete(url, {"principal": "User:ann"}).json() == {"items": []}
    assert alice.api.delete(url, {"resource_type": "ANY"}).json() == {"items": [other]}
    assert in_force(tree, instance) == ()


def test_what_postgresql_takes_in_no_text_does_not_keep_a_deletion_from_being_audited(alice, instance, tree, url):
    """Kafka clients may give an ACL any name, and whoever deletes it by REST has to find himself in the audit."""
    acl = Acl(ResourceType.GROUP, PatternType.LITERAL, "a\0b", "User:\0", "*", AclOperation.READ, Permission.ALLOW)
    tree.put(acls_path(instance.id), AclSet(1, (acl,)).to_json())
    assert len(alice.api.delete(url, {"resource_type": "ANY"}).json()["items"]) == 1
    [entry] = AuditEntry.objects.for_organisation(alice.organisation).filter(action="acl.delete")
    [said] = entry.detail["acls"]
    assert (said["resource_name"], said["principal"]) == ("a\ufffdb", "User:\ufffd")


@pytest.mark.parametrize("body", [{}, None])
def test_no_filter_deletes_nothing(alice, instance, tree, url, body):
    alice.api.post(url, READ)
    problem(alice.api.delete(url, body), 400, "invalid")
    assert len(in_force(tree, instance)) == 1


def test_a_batch_is_all_or_nothing(alice, instance, tree, url):
    wrong = {**READ, "host": "10.0.0.300"}
    refused = problem(alice.api.post(f"{url}/batch", {"items": [READ, wrong]}), 400, "invalid")
    assert refused["errors"] == [
        {"field": "items.1.host", "detail": "a host is *, an address, or a CIDR such as 10.0.0.0/8"}
    ]
    assert in_force(tree, instance) == ()
    right = {**READ, "host": "10.0.0.30"}
    assert alice.api.post(f"{url}/batch", {"items": [READ, right]}).json() == {"items": [READ, right]}
    assert len(in_force(tree, instance)) == 2


def may(tree, instance, principal, operation, kind, name):
    book = AclBook(in_force(tree, instance), Authorizer(allow_everyone_if_no_acl_found=False))
    return book.decide(principal, "10.0.0.7", AclOperation[operation], ResourceType[kind], name).allowed


def test_a_producer_may_make_topics_of_a_prefix_and_write_to_them(alice, instance, tree, url):
    body = {"preset": "producer", "principal": "User:ann", "topic": "orders.", "pattern_type": "PREFIXED"}
    made = alice.api.post(f"{url}/presets", body).json()["items"]
    assert {row["operation"] for row in made} == {"WRITE", "DESCRIBE", "CREATE"}
    for operation in ("WRITE", "DESCRIBE", "CREATE"):
        assert may(tree, instance, "User:ann", operation, "TOPIC", "orders.eu")
    assert not may(tree, instance, "User:ann", "READ", "TOPIC", "orders.eu")
    assert not may(tree, instance, "User:ann", "WRITE", "TOPIC", "clicks")
    assert not may(tree, instance, "User:bob", "WRITE", "TOPIC", "orders.eu")


def test_a_consumer_may_read_a_topic_in_a_group(alice, instance, tree, url):
    body = {"preset": "consumer", "principal": "User:ann", "topic": "orders", "group": "billing"}
    assert alice.api.post(f"{url}/presets", body).status_code == 201
    assert may(tree, instance, "User:ann", "READ", "TOPIC", "orders")
    assert may(tree, instance, "User:ann", "DESCRIBE", "TOPIC", "orders")
    assert may(tree, instance, "User:ann", "READ", "GROUP", "billing")
    assert not may(tree, instance, "User:ann", "READ", "GROUP", "billing.other")
    assert not may(tree, instance, "User:ann", "WRITE", "TOPIC", "orders")


@pytest.mark.parametrize(
    "body",
    [
        {"preset": "consumer", "principal": "User:ann", "topic": "orders"},
        {"preset": "producer", "principal": "User:ann", "topic": "orders", "group": "billing"},
    ],
)
def test_a_group_is_a_consumer_s(alice, url, body):
    refused = problem(alice.api.post(f"{url}/presets", body), 400, "invalid")
    assert refused["errors"][0]["field"] == "group"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"principal": "ann"}, "principal"),
        ({"principal": "Group:ann"}, "principal"),
        ({"host": "nowhere"}, "host"),
        ({"resource_type": "CLUSTER"}, "resource_name"),
        ({"resource_type": "WEATHER"}, "resource_type"),
        ({"operation": "read"}, "operation"),
        ({"operation": 3}, "operation"),
        ({"permission": "ANY"}, "permission"),
        ({"pattern_type": "MATCH"}, "pattern_type"),
        ({"resource_name": ""}, "resource_name"),
        ({"resource_name": "n" * 256}, "resource_name"),
        ({"expires": "never"}, "expires"),
    ],
)
def test_what_cannot_be_is_refused_by_name(alice, instance, tree, url, change, field):
    refused = problem(alice.api.post(url, {**READ, **change}), 400, "invalid")
    assert [each["field"] for each in refused["errors"]] == [field]
    assert in_force(tree, instance) == ()


def test_there_are_at_most_5000(alice, instance, tree, url):
    full = AclSet().changed([replace(ORDERS, resource_name=f"t{at}") for at in range(MOST_ACLS)])
    coordination.beside_write(tree, instance.id, acls_path(instance.id), lambda _: full.to_json())
    refused = problem(alice.api.post(url, READ), 409, "too_many_acls")
    assert "5000 ACLs, not 5001" in refused["detail"]
    assert len(alice.api.delete(url, {"resource_type": "TOPIC"}).json()["items"]) == MOST_ACLS


def test_viewers_look_and_change_nothing(alice, viewer, instance, tree, url):
    alice.api.post(url, READ)
    assert viewer.api.get(url).json()["items"] == [READ]
    problem(viewer.api.post(url, {**READ, "operation": "WRITE"}), 403, "forbidden")
    problem(viewer.api.post(f"{url}/batch", {"items": [{**READ, "operation": "WRITE"}]}), 403, "forbidden")
    body = {"preset": "producer", "principal": "User:ann", "topic": "orders"}
    problem(viewer.api.post(f"{url}/presets", body), 403, "forbidden")
    problem(viewer.api.delete(url, {"resource_type": "ANY"}), 403, "forbidden")
    assert in_force(tree, instance) == (ORDERS,)


def test_each_change_is_in_the_audit_trail(alice, instance, url):
    alice.api.post(url, READ)
    alice.api.delete(url, {"principal": "User:nobody"})
    alice.api.delete(url, {"principal": "User:ann"})
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(action__startswith="acl.")
    said = {"count": 1, "acls": [ORDERS.document()]}
    assert [(entry.action, entry.detail) for entry in entries.order_by("at", "pk")] == [
        ("acl.create", said),
        ("acl.delete", said),
    ]


def test_of_two_writers_at_once_both_are_kept(alice, instance, tree, place_of):
    place = place_of(alice, instance)

    def another_writes():
        tree.before_write = lambda: None
        services.acls_create(**place, acls=[replace(ORDERS, principal="User:bob")])

    tree.before_write = another_writes
    services.acls_create(**place, acls=[ORDERS])
    assert [acl.principal for acl in in_force(tree, instance)] == ["User:ann", "User:bob"]


def test_who_is_never_the_first_is_told_to_try_again(alice, instance, tree, place_of):
    path = acls_path(instance.id)
    services.acls_create(**place_of(alice, instance), acls=[replace(ORDERS, principal="User:bob")])

    def another_writes():
        data, version = tree.nodes[path]
        tree.nodes[path] = (data, version + 1)

    tree.before_write = another_writes
    with pytest.raises(ConcurrentChange):
        services.acls_create(**place_of(alice, instance), acls=[ORDERS])


def test_acls_that_nobody_can_read_are_not_overwritten(alice, instance, tree, url):
    tree.nodes[acls_path(instance.id)] = (b"{", 0)
    problem(alice.api.get(url), 409, "access_illegible")
    problem(alice.api.post(url, READ), 409, "access_illegible")
    assert tree.nodes[acls_path(instance.id)] == (b"{", 0)


def test_a_cluster_of_an_older_release_gets_the_directory(alice, instance, tree, url):
    tree.party = None  # whose nodes are everybody's: in others, brokers have made it
    del tree.nodes["/sluice/acls"]
    assert alice.api.post(url, READ).status_code == 201
    assert in_force(tree, instance) == (ORDERS,)
