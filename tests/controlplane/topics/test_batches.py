"""The same configurations for many topics: a preview, one operation, a result for each."""

from __future__ import annotations

import pytest

from controlplane.core import operations
from controlplane.core.errors import ClusterUnavailable, Invalid
from controlplane.core.models import AuditEntry, Operation
from controlplane.core.operations import ATTEMPTS
from controlplane.instances.models import Instance, InstanceState
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.test_instances_api import problem

NAMES = ("clicks", "orders", "payments")


@pytest.fixture
def url(alice, instance):
    for name in NAMES:
        body = {"name": name, "partitions": 1, "config": {"retention.ms": "5"} if name == "orders" else {}}
        assert alice.api.post(f"/api/v1/instances/{instance.id}/topics", body).status_code == 201
    return f"/api/v1/instances/{instance.id}/topic-configs"


@pytest.fixture
def set_of(admin, instance):
    """What is set for a topic."""
    return lambda name: admin.configs[f"{instance.id.removeprefix('ins-')}.{name}"]


@pytest.fixture
def refused(admin, instance):
    """Have the cluster refuse a topic's changes."""

    def refuse(name, error=None):
        error = error or Invalid("retention.ms must be a whole number", code="invalid_config")
        admin.refusals[f"{instance.id.removeprefix('ins-')}.{name}"] = error

    return refuse


def begun(alice, url, topics=NAMES, **config):
    answer = alice.api.post(url, {"topics": list(topics), "config": config or {"retention.ms": "60000"}})
    assert answer.status_code == 202, answer.content
    return answer.json()["operation_id"]


def outcomes(operation):
    return {row["topic"]: row["outcome"] for row in operation.result["topics"]}


def test_one_operation_sets_them_all_and_says_what_it_changed(alice, url, set_of, instance):
    answer = alice.api.post(url, {"topics": list(NAMES), "config": {"retention.ms": 60000, "cleanup.policy": None}})
    assert answer.json()["instance_id"] == instance.id
    assert set_of("clicks") == {}, "nothing is done by the request itself"
    operation = run_to_the_end(answer.json()["operation_id"])
    assert (operation.state, operation.kind, operation.target) == ("succeeded", "topics.configure", instance.id)
    assert [set_of(name) for name in NAMES] == [{"retention.ms": "60000"}] * 3
    assert operation.steps[0]["note"] == "3 changed, 0 as they were, 0 failed"
    assert [row["changes"] for row in operation.result["topics"]] == [
        {"retention.ms": [None, "60000"]},
        {"retention.ms": ["5", "60000"]},
        {"retention.ms": [None, "60000"]},
    ]


def test_a_reset_takes_a_member_back(alice, url, set_of):
    operation = run_to_the_end(
        alice.api.post(url, {"topics": ["orders", "clicks"], "config": {"retention.ms": None}}).json()["operation_id"]
    )
    assert outcomes(operation) == {"orders": "changed", "clicks": "unchanged"}
    assert set_of("orders") == {}


def test_one_that_is_refused_or_not_there_says_so_and_stops_no_other(alice, url, set_of, refused):
    refused("orders")
    operation = run_to_the_end(begun(alice, url, [*NAMES, "missing"]))
    assert outcomes(operation) == {"clicks": "changed", "orders": "failed", "payments": "changed", "missing": "failed"}
    rows = {row["topic"]: row for row in operation.result["topics"]}
    assert (rows["orders"]["code"], rows["missing"]["code"]) == ("invalid_config", "topic_not_found")
    assert rows["orders"]["detail"] == "retention.ms must be a whole number"
    assert (operation.state, operation.result["failed"], operation.result["changed"]) == ("succeeded", 2, 2)
    assert set_of("orders") == {"retention.ms": "5"}


def test_where_none_can_be_changed_nothing_is_begun(alice, url, refused):
    for name in NAMES:
        refused(name)
    found = problem(
        alice.api.post(url, {"topics": list(NAMES), "config": {"retention.ms": "x"}}), 400, "invalid_config"
    )
    assert found["detail"] == "topic clicks: retention.ms must be a whole number"
    assert not Operation.objects.unscoped("a test").filter(kind="topics.configure").exists()


def test_the_services_own_topic_cannot_be_named(alice, url):
    problem(alice.api.post(url, {"topics": ["__sluice_audit"], "config": {"retention.ms": "1"}}), 400, "invalid")


def test_a_worker_that_died_in_the_middle_is_followed_by_one_that_says_the_same(alice, url, set_of):
    """What was changed by the first attempt is not "as it was" to the second."""
    operation_id = begun(alice, url)
    for name in NAMES[:2]:
        set_of(name)["retention.ms"] = "60000"
    operation = run_to_the_end(operation_id)
    assert outcomes(operation) == dict.fromkeys(NAMES, "changed")


def test_asked_again_it_changes_nothing(alice, url):
    run_to_the_end(begun(alice, url))
    operation = run_to_the_end(begun(alice, url))
    assert outcomes(operation) == dict.fromkeys(NAMES, "unchanged")


def test_the_same_call_is_the_same_operation(alice, url):
    body = {"topics": ["orders"], "config": {"retention.ms": "1"}}
    first, second = (alice.api.post(url, body, HTTP_IDEMPOTENCY_KEY="once").json() for _ in range(2))
    assert first == second


def test_a_cluster_that_is_away_for_a_while_is_tried_again(alice, url, refused, admin):
    operation_id = begun(alice, url)
    refused("payments", ClusterUnavailable("the brokers do not answer in time"))
    operations.run(operation_id)
    operation = Operation.objects.unscoped("a test").get(pk=operation_id)
    assert (operation.state, operation.attempts) == ("running", 1)
    admin.refusals.clear()
    operation.runnable_at = operation.created_at
    operation.save()
    assert outcomes(run_to_the_end(operation_id)) == dict.fromkeys(NAMES, "changed")


def test_one_that_stays_away_is_the_result_of_the_last_attempt(alice, url, refused):
    operation_id = begun(alice, url)
    refused("payments", ClusterUnavailable("the brokers do not answer in time"))
    operation = run_to_the_end(operation_id)
    assert operation.attempts == ATTEMPTS - 1
    assert operation.state == "succeeded"
    assert outcomes(operation) == {"clicks": "changed", "orders": "changed", "payments": "failed"}


def test_an_instance_that_is_gone_meanwhile_ends_it(alice, url, instance, set_of):
    operation_id = begun(alice, url)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(state=InstanceState.ISOLATED)
    operation = run_to_the_end(operation_id)
    assert (operation.state, operation.error_code) == ("failed", "instance_not_running")
    assert set_of("clicks") == {}


def test_a_dry_run_says_what_would_change_for_each_and_who_would_be_refused(alice, url, refused, set_of):
    refused("payments")
    answer = alice.api.post(f"{url}?dry_run=true", {"topics": [*NAMES], "config": {"retention.ms": "60000"}})
    assert answer.status_code == 200
    assert answer.json()["changes"] == {
        "clicks.retention.ms": [None, "60000"],
        "orders.retention.ms": ["5", "60000"],
    }
    assert answer.json()["problems"] == ["payments: retention.ms must be a whole number"]
    assert not Operation.objects.unscoped("a test").filter(kind="topics.configure").exists()
    assert set_of("clicks") == {}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"topics": [], "config": {"retention.ms": "1"}}, "topics"),
        ({"topics": [f"t{number}" for number in range(201)], "config": {"retention.ms": "1"}}, "topics"),
        ({"topics": ["a b"], "config": {"retention.ms": "1"}}, "topics.0"),
        ({"topics": ["orders"], "config": {}}, "config"),
        ({"topics": ["orders"]}, "config"),
        ({"topics": ["orders"], "config": {"retention.ms": []}}, "config.retention.ms"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused(alice, url, body, field):
    found = problem(alice.api.post(url, body), 400, "invalid")
    assert [each["field"] for each in found["errors"]] == [field]


def test_a_topic_that_is_named_twice_is_changed_once(alice, url):
    assert len(run_to_the_end(begun(alice, url, ["orders", "orders"])).result["topics"]) == 1


def test_it_is_in_the_audit_trail_with_the_operation(alice, url, instance):
    operation_id = begun(alice, url, ["orders"])
    (entry,) = AuditEntry.objects.for_organisation(alice.organisation).filter(action="topics.configure")
    assert (entry.actor, entry.target) == ("alice@example.com", instance.id)
    assert entry.detail == {
        "topics": ["orders"],
        "config": {"retention.ms": "60000"},
        "operation_id": operation_id,
        "changes": {"orders": {"retention.ms": {"from": "5", "to": "60000"}}},
    }


def test_a_viewer_changes_none_and_a_stranger_finds_nothing(viewer, charlie, url):
    body = {"topics": ["orders"], "config": {"retention.ms": "1"}}
    problem(viewer.api.post(url, body), 403, "forbidden")
    problem(charlie.api.post(url, body), 404, "not_found")
