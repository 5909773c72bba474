"""The topics part of the fixed REST table, over a cluster in memory."""

from __future__ import annotations

import pytest

from controlplane.core.errors import Unsupported
from controlplane.core.models import AuditEntry
from quota.contracts.namespace import AUDIT_TOPIC

from .test_instances_api import problem, stored


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/topics"


@pytest.fixture
def orders(alice, url):
    answer = alice.api.post(
        url, {"name": "orders", "partitions": 2, "replication_factor": 3, "config": {"retention.ms": 5}}
    )
    assert answer.status_code == 201
    return answer.json()


def test_a_new_topic_is_shown_with_its_partitions(alice, url, orders, admin, instance):
    assert orders == {
        "name": "orders",
        "partitions": 2,
        "replication_factor": 3,
        "whitelist": None,
        "note": "",
        "tags": [],
        "config": {"retention.ms": "5"},
        "partition_details": [
            {"partition": 0, "leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3]},
            {"partition": 1, "leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3]},
        ],
    }
    assert alice.api.get(f"{url}/orders").json() == orders
    assert list(admin.topics) == [instance.id.removeprefix("ins-") + ".orders"]


def test_a_list_holds_the_instances_own_topics_by_name(alice, url, orders, admin):
    alice.api.post(url, {"name": "clicks", "partitions": 1})
    admin.create("zzzzzzzz.secret", partitions=1, replication_factor=1, config={})
    admin.create("__consumer_offsets", partitions=1, replication_factor=1, config={})
    page = alice.api.get(url).json()
    assert [row["name"] for row in page["items"]] == ["clicks", "orders"]
    assert page["next"] is None
    first = alice.api.get(url, {"limit": 1}).json()
    assert [row["name"] for row in alice.api.get(url, {"limit": 1, "cursor": first["next"]}).json()["items"]] == [
        "orders"
    ]


def test_a_topic_that_exists_is_a_conflict(alice, url, orders):
    assert "orders" in problem(alice.api.post(url, {"name": "orders", "partitions": 1}), 409, "topic_exists")["detail"]


@pytest.mark.parametrize("name", ["", "a b", "..", "__x", "x" * 231, "ä", "a/b"])
def test_a_name_that_cannot_be_is_refused(alice, url, name):
    body = problem(alice.api.post(url, {"name": name, "partitions": 1}), 400, "invalid")
    assert body["errors"][0]["field"] == "name"


@pytest.mark.parametrize(
    "change",
    [{"partitions": 0}, {"partitions": "3"}, {"replication_factor": 0}, {"config": []}, {"config": {"a": None}},
     {"config": {"a": {}}}, {"replicas": 3}],
)  # fmt: skip
def test_a_bad_member_is_named(alice, url, change):
    body = problem(alice.api.post(url, {"name": "t", "partitions": 1, **change}), 400, "invalid")
    assert body["errors"][0]["field"].partition(".")[0] == next(iter(change))


def test_what_the_cluster_refuses_keeps_its_code(alice, url):
    answer = alice.api.post(url, {"name": "t", "partitions": 1, "replication_factor": 4})
    problem(answer, 400, "invalid_replication_factor")


def test_partitions_are_limited_with_replicas_counted(alice, url, orders):
    body = problem(
        alice.api.post(url, {"name": "big", "partitions": 19, "replication_factor": 3}), 409, "limit_reached"
    )
    assert "60 partitions" in body["detail"]
    assert alice.api.post(url, {"name": "fits", "partitions": 18, "replication_factor": 3}).status_code == 201


def test_partitions_grow_and_never_shrink(alice, url, orders):
    answer = alice.api.patch(f"{url}/orders", {"partitions": 5})
    assert (answer.status_code, answer.json()["partitions"]) == (200, 5)
    problem(alice.api.patch(f"{url}/orders", {"partitions": 4}), 400, "invalid")
    problem(alice.api.patch(f"{url}/orders", {"partitions": 21}), 409, "limit_reached")
    problem(alice.api.patch(f"{url}/orders", {}), 400, "invalid")


def test_config_is_set_and_taken_back(alice, url, orders):
    answer = alice.api.patch(f"{url}/orders", {"config": {"retention.ms": None, "cleanup.policy": "compact"}})
    assert answer.json()["config"] == {"cleanup.policy": "compact"}


@pytest.mark.parametrize("dry_run", ["", "?dry_run=true"])
def test_a_configuration_without_a_name_is_refused(alice, url, orders, dry_run):
    """librdkafka would raise what nobody expects."""
    problem(alice.api.patch(f"{url}/orders{dry_run}", {"config": {"": "1"}}), 400, "invalid")


def test_what_the_cluster_cannot_do_yet_is_said_so(alice, url, orders, admin, monkeypatch):
    def unsupported(*_arguments):
        raise Unsupported("this cluster's release does not support it")

    monkeypatch.setattr(admin, "grow", unsupported)
    problem(alice.api.patch(f"{url}/orders", {"partitions": 9}), 501, "unsupported")


def test_a_deleted_topic_is_gone_with_its_whitelist(alice, url, orders, instance, tree):
    alice.api.put(f"{url}/orders/whitelist", {"cidrs": []})
    assert alice.api.delete(f"{url}/orders").status_code == 204
    problem(alice.api.get(f"{url}/orders"), 404, "topic_not_found")
    problem(alice.api.delete(f"{url}/orders"), 404, "topic_not_found")
    assert stored(tree, instance).topic_whitelists == {}


def test_the_services_own_topic_is_not_changed(alice, url):
    name = f"{url}/{AUDIT_TOPIC}"
    problem(alice.api.delete(name), 409, "topic_reserved")
    problem(alice.api.patch(name, {"partitions": 3}), 409, "topic_reserved")


def test_a_topic_whitelist_is_in_the_spec_when_it_answers(alice, url, orders, instance, tree):
    answer = alice.api.put(f"{url}/orders/whitelist", {"cidrs": ["10.1.2.3"]})
    assert (answer.status_code, answer.json()["whitelist"]) == (200, ["10.1.2.3/32"])
    assert stored(tree, instance).topic_whitelists == {"orders": ("10.1.2.3/32",)}
    assert alice.api.put(f"{url}/orders/whitelist", {"cidrs": []}).json()["whitelist"] == []
    assert stored(tree, instance).topic_whitelists == {"orders": ()}
    assert alice.api.put(f"{url}/orders/whitelist", {"cidrs": None}).json()["whitelist"] is None
    assert stored(tree, instance).topic_whitelists == {}


def test_a_whitelist_needs_its_topic(alice, url, instance, tree):
    problem(alice.api.put(f"{url}/nothing/whitelist", {"cidrs": []}), 404, "topic_not_found")
    assert stored(tree, instance).topic_whitelists == {}


@pytest.mark.parametrize("name", ["%00", "a%20b", "__consumer_offsets", "..%2e", "x" * 300])
def test_a_name_no_topic_can_have_is_not_found(alice, url, name):
    assert alice.api.get(f"{url}/{name}").status_code == 404


def test_a_cluster_that_is_away_is_a_retriable_503(alice, url, admin):
    admin.away = True
    assert problem(alice.api.get(url), 503, "cluster_unavailable")["retriable"] is True
    problem(alice.api.post(url, {"name": "t", "partitions": 1}), 503, "cluster_unavailable")


def test_an_instance_that_does_not_run_takes_no_topics(alice, url, instance):
    alice.api.delete(f"/api/v1/instances/{instance.id}")
    problem(alice.api.post(url, {"name": "t", "partitions": 1}), 409, "instance_not_running")


def test_changes_are_in_the_audit_trail(alice, url, orders, instance):
    alice.api.delete(f"{url}/orders")
    rows = AuditEntry.objects.for_organisation(alice.organisation).filter(target=f"{instance.id}/orders").order_by("id")
    assert [row.action for row in rows] == ["topic.create", "topic.delete"]
