"""The contract of the audit trail by REST, and that changes tell what was before as well as what is since."""

from __future__ import annotations

import csv
import io
import json

import pytest

from controlplane.accounts.models import User
from controlplane.core.errors import ClusterUnavailable
from controlplane.core.models import AuditEntry
from controlplane.kafka import topics
from tests.controlplane.console.conftest import at_alice, text_of  # noqa: F401  # fixtures
from tests.controlplane.test_audit_trail import record

URL = "/api/v1/audit"


def told(person, action):
    """The newest entry of an action, by REST."""
    return person.api.get(URL, {"action": action}).json()["items"][0]


def both(person, action):
    entry = told(person, action)
    return entry["before"], entry["after"]


@pytest.fixture
def path(instance):
    return f"/api/v1/instances/{instance.id}"


def test_an_entry_has_the_members_of_the_contract_beside_those_of_before(alice, instance, path):
    alice.api.put(f"{path}/whitelist", {"cidrs": ["10.0.0.0/8"]}, REMOTE_ADDR="10.9.9.9")
    entry = told(alice, "instance.whitelist")
    assert {name: entry[name] for name in ("actor", "action", "object", "before", "after", "source")} == {
        "actor": "alice@example.com",
        "action": "instance.whitelist",
        "object": instance.id,
        "before": {"cidrs": ["127.0.0.0/8"]},
        "after": {"cidrs": ["10.0.0.0/8"]},
        "source": "10.9.9.9",
    }
    assert (entry["time"], entry["object"], entry["source"]) == (entry["at"], entry["target"], entry["address"])
    assert entry["request_id"]
    assert entry["detail"] == {"cidrs": {"from": ["127.0.0.0/8"], "to": ["10.0.0.0/8"]}}, "as ever"


def test_the_file_the_page_and_the_list_say_the_same(alice, at_alice):  # noqa: F811
    record(alice, "topic.delete", detail={"partitions": 3, "config": {"retention.ms": "=1"}})
    record(alice, "topic.update", detail={"partitions": {"from": 3, "to": 6}})
    rows = {row["action"]: row for row in csv.DictReader(io.StringIO(alice.api.get(f"{URL}.csv").getvalue().decode()))}
    assert (rows["topic.update"]["before"], rows["topic.update"]["after"]) == ("partitions: 3", "partitions: 6")
    deleted = rows["topic.delete"]
    assert (deleted["before"], deleted["after"]) == ("partitions: 3; config.retention.ms: =1", "")
    assert json.loads(deleted["detail"]) == {"partitions": 3, "config": {"retention.ms": "=1"}}
    page = text_of(at_alice.get("audit"))
    assert "partitions 3 → 6" in page
    assert "What was there before: partitions 3" in page


def test_a_throttle_rule_tells_each_limit_that_was_taken_or_given(alice, path):
    wanted = {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 2, "consume_mib_per_s": 1}
    made = alice.api.post(f"{path}/throttle-rules", wanted)
    assert made.status_code == 201, made.content
    rule = f"{path}/throttle-rules/{made.json()['id']}"
    assert both(alice, "throttle_rule.create")[0] is None
    alice.api.patch(rule, {"produce_mib_per_s": 1, "topics": ["orders", "clicks"]})
    assert both(alice, "throttle_rule.update") == (
        {"produce_bytes_per_s": 2 * 2**20, "topics": ["orders"]},
        {"produce_bytes_per_s": 2**20, "topics": ["orders", "clicks"]},
    )
    alice.api.delete(rule)
    before, after = both(alice, "throttle_rule.delete")
    assert (before["produce_bytes_per_s"], after) == (2**20, None)


def test_a_topic_that_is_deleted_says_what_it_was(alice, path):
    alice.api.post(f"{path}/topics", {"name": "orders", "partitions": 2, "config": {"retention.ms": "1000"}})
    alice.api.put(f"{path}/topics/orders/whitelist", {"cidrs": ["10.0.0.0/8"]})
    alice.api.delete(f"{path}/topics/orders")
    assert both(alice, "topic.delete") == (
        {
            "partitions": 2,
            "replication_factor": 3,
            "config": {"retention.ms": "1000"},
            "whitelist": ["10.0.0.0/8"],
        },
        None,
    )


def test_many_topics_at_once_say_what_each_had(alice, path):
    for name, retention in (("orders", "1000"), ("clicks", "2000")):
        alice.api.post(f"{path}/topics", {"name": name, "partitions": 1, "config": {"retention.ms": retention}})
    answer = alice.api.post(
        f"{path}/topic-configs", {"topics": ["orders", "clicks"], "config": {"retention.ms": "2000"}}
    )
    assert answer.status_code == 202, answer.content
    assert both(alice, "topics.configure") == (
        {"changes": {"orders": {"retention.ms": "1000"}}},
        {"changes": {"orders": {"retention.ms": "2000"}}},
    )


def test_limits_that_operators_set_say_what_they_were(alice, charlie, path):
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    charlie.api.put(f"{path}/limits", {"topics": 10})
    assert both(alice, "instance.limits") == ({"topics": "default"}, {"topics": 10})
    charlie.api.put(f"{path}/limits", {"topics": None, "requests_per_s": 500})
    assert both(alice, "instance.limits") == (
        {"topics": 10, "requests_per_s": "default"},
        {"topics": None, "requests_per_s": 500},
    )


def test_a_route_says_what_it_was(alice, path):
    made = alice.api.post(f"{path}/routes", {"security": "plaintext", "whitelist": ["10.0.0.0/8"]})
    assert made.status_code == 202, made.content
    before, after = both(alice, "route.create")
    assert (before, after["whitelist"], after["public"]) == (None, ["10.0.0.0/8"], False)
    key = AuditEntry.objects.for_organisation(alice.organisation).get(action="route.create").target.partition("/")[2]
    alice.api.patch(f"{path}/routes/{key}", {"whitelist": None})
    changed = both(alice, "route")
    assert changed == ({"whitelist": ["10.0.0.0/8"]}, {"whitelist": None})


def test_the_end_of_an_instance_says_what_it_was(alice, instance, path):
    alice.api.delete(path)
    before, after = both(alice, "instance.delete")
    assert (before, after) == ({"state": "running"}, {"state": "deleting"})
    assert told(alice, "instance.delete")["detail"]["name"] == instance.name


def test_a_key_that_is_revoked_says_whose_it_was_and_no_secret(alice):
    made = alice.api.post("/api/v1/api-keys", {"name": "ci", "scopes": ["read"]}).json()
    alice.api.delete(f"/api/v1/api-keys/{made['id']}")
    before, after = both(alice, "api_key.revoke")
    assert (before, after) == ({"name": "ci", "scopes": ["read"], "owner": "alice@example.com"}, None)
    secret = made["key"]
    assert secret not in alice.api.get(URL).content.decode()


def test_a_budget_an_alarm_and_a_service_account_say_what_they_were(alice, path):
    made = alice.api.post("/api/v1/budgets", {"name": "all", "amount": "100", "actual_percents": [50]}).json()
    alice.api.patch(f"/api/v1/budgets/{made['id']}", {"amount": "200"})
    assert both(alice, "budget.update") == ({"amount": "100.00"}, {"amount": "200.00"})
    alice.api.delete(f"/api/v1/budgets/{made['id']}")
    assert both(alice, "budget.delete")[0]["actual_percents"] == [50]

    account = alice.api.post("/api/v1/service-accounts", {"name": "ci", "role": "viewer"}).json()
    alice.api.patch(f"/api/v1/service-accounts/{account['id']}", {"disabled": True})
    assert both(alice, "service_account.disable") == ({"disabled": False}, {"disabled": True})
    alice.api.delete(f"/api/v1/service-accounts/{account['id']}")
    before, after = both(alice, "service_account.delete")
    assert (before["name"], before["role"], after) == ("ci", "viewer", None)


# --- a change that is made by halves ----------------------------------------------------------------------------------


@pytest.fixture
def orders(alice, path):
    alice.api.post(f"{path}/topics", {"name": "orders", "partitions": 2, "config": {"retention.ms": "1000"}})
    return f"{path}/topics/orders"


def test_growth_that_would_be_refused_is_found_out_before_anything_is_set(alice, orders, monkeypatch):
    def refuse(*_args, **_options):
        raise ClusterUnavailable("no")

    monkeypatch.setattr(topics, "grow_check", refuse)
    assert alice.api.patch(orders, {"partitions": 4, "config": {"retention.ms": "9"}}).status_code == 503
    assert alice.api.get(orders).json()["config"] == {"retention.ms": "1000"}
    assert alice.api.get(URL, {"action": "topic.update"}).json()["items"] == []


def test_what_was_done_before_growth_failed_is_on_record_and_said(alice, orders, monkeypatch):
    def fail(*_args, **_options):
        raise ClusterUnavailable("the cluster does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(topics, "grow", fail)
        answer = alice.api.patch(orders, {"partitions": 4, "config": {"retention.ms": "9"}})
    said = answer.json()
    assert (answer.status_code, said["code"], said["done"]) == (503, "cluster_unavailable", ["config"])
    assert said["detail"] == "the configuration was set; partitions were not added: the cluster does not answer"
    entry = told(alice, "topic.update")
    assert (entry["before"], entry["after"]) == (
        {"config": {"retention.ms": "1000"}},
        {"config": {"retention.ms": "9"}},
    )
    assert entry["detail"]["not_done"] == {
        "partitions": 4,
        "code": "cluster_unavailable",
        "reason": "the cluster does not answer",
    }
    again = alice.api.patch(orders, {"partitions": 4, "config": {"retention.ms": "9"}})
    assert again.status_code == 200, "the whole of it may be asked for again"
    assert told(alice, "topic.update")["detail"] == {"config": {}, "partitions": {"from": 2, "to": 4}}


def test_growth_alone_that_fails_changes_nothing_and_says_nothing_else(alice, orders, monkeypatch):
    def fail(*_args, **_options):
        raise ClusterUnavailable("no")

    monkeypatch.setattr(topics, "grow", fail)
    said = alice.api.patch(orders, {"partitions": 4}).json()
    assert said["detail"] == "no"
    assert "done" not in said
    assert alice.api.get(URL, {"action": "topic.update"}).json()["items"] == []
