"""Throttle rules by REST: written into the spec that brokers read, beside those that Kafka clients write."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.clusters import coordination
from controlplane.core.models import AuditEntry
from controlplane.instances import reconcile
from controlplane.instances.plan import Settled
from controlplane.throttle_rules.serializers import ThrottleRuleSerializer
from controlplane.throttle_rules.services import bytes_per_s
from quota.contracts.instance import MIB
from quota.contracts.rules import RuleKind, ThrottleRule

from .test_instances_api import problem

TOPIC = {"kind": "topic", "topics": ["orders", "clicks"], "produce_mib_per_s": 2.5}


@pytest.fixture
def url(instance):
    return f"/api/v1/instances/{instance.id}/throttle-rules"


@pytest.fixture
def rule(alice, url):
    answer = alice.api.post(url, TOPIC)
    assert answer.status_code == 201
    return answer.json()


def in_force(tree, instance):
    return coordination.rules_read(tree, instance.id)


def test_a_new_rule_is_what_brokers_read(tree, alice, instance, url, rule):
    assert rule == {
        "id": rule["id"],
        "kind": "topic",
        "produce_mib_per_s": 2.5,
        "consume_mib_per_s": None,
        "topics": ["orders", "clicks"],
        "users": [],
        "clients": [],
        "groups": [],
    }
    [written] = in_force(tree, instance)
    assert written == ThrottleRule(rule["id"], RuleKind.TOPIC, round(2.5 * MIB), None, topics=("orders", "clicks"))
    assert alice.api.get(f"{url}/{rule['id']}").json() == rule


@pytest.mark.parametrize("rate", [0.2, 0.1, 1 / 3, 33.3, 0.000001, 99_999.999999, 100_000])
def test_a_rate_comes_back_as_it_was_given(alice, url, rate):
    rate = round(rate, 6)
    made = alice.api.post(url, {**TOPIC, "produce_mib_per_s": rate, "consume_mib_per_s": rate}).json()
    assert (made["produce_mib_per_s"], made["consume_mib_per_s"]) == (rate, rate)


@given(st.integers(1, 100_000 * 10**6))
def test_a_rate_of_up_to_six_decimals_is_shown_as_it_was_given(millionths):
    given_mib = millionths / 10**6
    assert shown_mib(bytes_per_s(given_mib)) == given_mib


@given(st.integers(1, 100_000 * MIB))
def test_every_rate_that_kafka_clients_set_is_shown_by_a_number_that_means_it(rate):
    assert bytes_per_s(shown_mib(rate)) == rate


def shown_mib(rate):
    rule = ThrottleRule("rule-000000000000", RuleKind.TOPIC, rate, None)
    return ThrottleRuleSerializer().get_produce_mib_per_s(rule)


def test_a_rule_for_groups_limits_what_they_consume(tree, alice, instance, url):
    made = alice.api.post(url, {"kind": "group", "groups": ["readers"], "consume_mib_per_s": 1}).json()
    assert (made["groups"], made["consume_mib_per_s"]) == (["readers"], 1)
    assert in_force(tree, instance)[0].groups == ("readers",)


def test_a_list_shows_also_what_kafka_clients_have_set(tree, alice, instance, url, rule):
    quota = ThrottleRule("rule-000000000000", RuleKind.CLIENT, None, MIB, clients=(None,))
    coordination.rules_write(tree, instance.id, lambda rules: (*rules, quota))
    page = alice.api.get(url).json()
    assert [row["id"] for row in page["items"]] == ["rule-000000000000", rule["id"]]
    assert page["items"][0]["clients"] == [None]
    first = alice.api.get(url, {"limit": 1}).json()
    assert alice.api.get(url, {"limit": 1, "cursor": first["next"]}).json()["items"] == [rule]


def test_a_change_replaces_what_it_names_and_leaves_the_rest(tree, alice, instance, url, rule):
    changed = alice.api.patch(f"{url}/{rule['id']}", {"consume_mib_per_s": 1, "topics": ["orders"]}).json()
    assert changed == {**rule, "consume_mib_per_s": 1, "topics": ["orders"]}
    gone = alice.api.patch(f"{url}/{rule['id']}", {"produce_mib_per_s": None}).json()
    assert gone == {**changed, "produce_mib_per_s": None}


def test_a_deleted_rule_is_gone(tree, alice, instance, url, rule):
    assert alice.api.delete(f"{url}/{rule['id']}").status_code == 204
    assert in_force(tree, instance) == ()
    problem(alice.api.get(f"{url}/{rule['id']}"), 404, "not_found")
    problem(alice.api.delete(f"{url}/{rule['id']}"), 404, "not_found")
    problem(alice.api.patch(f"{url}/{rule['id']}", {"produce_mib_per_s": 1}), 404, "not_found")


def test_every_change_is_in_the_audit_trail(alice, instance, url, rule):
    alice.api.patch(f"{url}/{rule['id']}", {"produce_mib_per_s": 1})
    alice.api.delete(f"{url}/{rule['id']}")
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(target=f"{instance.id}/{rule['id']}")
    assert [entry.action for entry in entries.order_by("at", "pk")] == [
        "throttle_rule.create",
        "throttle_rule.update",
        "throttle_rule.delete",
    ]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "topic", "topics": ["no such/name"], "produce_mib_per_s": 1},
        {"kind": "topic", "topics": [None], "produce_mib_per_s": 1},
        {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 0},
        {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": "1"},
        {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 100_001},
        {"kind": "client", "users": [7], "produce_mib_per_s": 1},
        {"kind": "weather", "topics": ["orders"], "produce_mib_per_s": 1},
        {"kind": "topic", "topics": ["orders"], "produce_mib_per_s": 1, "speed": 1},
    ],
)
def test_members_that_no_rule_can_have_are_refused(tree, alice, instance, url, body):
    problem(alice.api.post(url, body), 400, "invalid")
    assert in_force(tree, instance) == ()


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "topic", "topics": ["orders"]},
        {"kind": "topic", "produce_mib_per_s": 1},
        {"kind": "topic", "topics": ["orders"], "users": ["ann"], "produce_mib_per_s": 1},
        {"kind": "client", "produce_mib_per_s": 1},
        {"kind": "client", "users": ["ann", None], "produce_mib_per_s": 1},
        {"kind": "group", "groups": ["readers"], "produce_mib_per_s": 1},
    ],
)
def test_members_that_do_not_go_together_are_refused(tree, alice, instance, url, body):
    problem(alice.api.post(url, body), 400, "invalid_throttle_rule")
    assert in_force(tree, instance) == ()


def test_users_times_clients_are_bounded_and_the_answer_names_limit_and_use(tree, alice, instance, url):
    names = [f"n{number}" for number in range(499)]
    answer = alice.api.post(url, {"kind": "client", "users": names, "clients": names, "produce_mib_per_s": 1})
    said = problem(answer, 400, "invalid_throttle_rule")["detail"]
    assert "1000 pairs" in said
    assert "249001" in said
    assert in_force(tree, instance) == ()


def test_two_rules_cannot_name_the_same(alice, url, rule):
    again = problem(alice.api.post(url, {**TOPIC, "topics": ["clicks"]}), 400, "invalid_throttle_rule")
    assert "topic clicks has a throttle rule already" in again["detail"]


def test_a_change_of_nothing_is_refused(alice, url, rule):
    problem(alice.api.patch(f"{url}/{rule['id']}", {}), 400, "invalid")


def test_a_viewer_looks_and_changes_nothing(viewer, url, rule):
    assert viewer.api.get(url).json()["items"] == [rule]
    problem(viewer.api.post(url, TOPIC), 403, "forbidden")


def test_rules_outlive_every_change_of_the_instance(tree, alice, instance, brokers, rule):
    assert alice.api.put(f"/api/v1/instances/{instance.id}/whitelist", {"cidrs": []}).status_code == 200
    brokers.apply()
    assert [each.id for each in in_force(tree, instance)] == [rule["id"]]
    assert isinstance(reconcile.converge(instance.id), Settled)
    assert [each.id for each in in_force(tree, instance)] == [rule["id"]]


def test_rules_are_no_reason_to_publish_the_spec_again(tree, instance, brokers, rule):
    brokers.apply()
    before = coordination.spec_read(tree, instance.id)
    assert isinstance(reconcile.converge(instance.id), Settled)
    assert coordination.spec_read(tree, instance.id) == before


def test_a_writer_who_was_overtaken_writes_on_top_of_the_other(tree, instance, rule):
    mine = ThrottleRule("rule-111111111111", RuleKind.CLIENT, MIB, None, users=("ann",))
    other = replace(mine, id="rule-222222222222", users=("bob",))
    asked = []

    def decide(rules):
        asked.append(rules)
        if len(asked) == 1:
            coordination.rules_write(tree, instance.id, lambda present: (*present, other))
        return (*rules, mine)

    coordination.rules_write(tree, instance.id, decide)
    assert {each.id for each in in_force(tree, instance)} == {rule["id"], mine.id, other.id}
