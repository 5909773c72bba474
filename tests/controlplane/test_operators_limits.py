"""Limits that no plan sells: broker time and transactions by default, others where an operator says so. Tenants see them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.accounts.models import User
from controlplane.core.models import AuditEntry
from controlplane.instances.spec import loop_ms_default, transactions_default

from .conftest import run_to_the_end
from .test_instances_api import problem

DEFAULTS = {
    "topics": None,
    "requests_per_s": None,
    "broker_time_ms_per_s": 600,
    "open_transactions": 250,
    "transactional_ids": 10_000,
    "transaction_timeout_ms": 900_000,
}


@pytest.fixture
def operator(charlie):
    """An operator of the service, who is in another organisation."""
    User.objects.filter(pk=charlie.user.pk).update(is_staff=True)
    return charlie


def in_force(tree, instance):
    limits = tree.spec(instance.id).limits
    return {
        "topics": limits.topics,
        "requests_per_s": limits.requests_per_s,
        "broker_time_ms_per_s": limits.loop_ms_per_s,
        "open_transactions": limits.open_transactions,
        "transactional_ids": limits.transactional_ids,
        "transaction_timeout_ms": limits.transaction_timeout_ms,
    }


def shown(person, instance):
    return person.api.get(f"/api/v1/instances/{instance.id}").json()["limits"]


@pytest.mark.parametrize(
    ("bandwidth", "brokers", "ms"),
    [
        (1, 3, 300),
        (2.5, 3, 300),
        (5, 3, 600),
        (20, 3, 2400),
        (22.5, 3, 2700),
        (1000, 3, 2700),
        (1000, 1, 900),
        (5, 0, 600),
    ],
)
def test_broker_time_goes_with_the_bandwidth_between_a_floor_and_what_the_brokers_have(bandwidth, brokers, ms):
    assert loop_ms_default(bandwidth, brokers) == ms


@given(st.floats(0.001, 100_000), st.floats(0.001, 100_000), st.integers(0, 100))
def test_who_buys_more_never_gets_less_broker_time(one, other, brokers):
    less, more = sorted((one, other))
    assert 300 <= loop_ms_default(less, brokers) <= loop_ms_default(more, brokers) <= loop_ms_default(more, brokers + 1)


@pytest.mark.parametrize(
    ("bandwidth", "is_open", "ids"),
    [(0.5, 200, 10_000), (4, 200, 10_000), (5, 250, 10_000), (10, 500, 20_000), (1000, 10_000, 100_000)],
)
def test_transactions_go_with_the_bandwidth_between_a_floor_and_a_ceiling(bandwidth, is_open, ids):
    assert transactions_default(bandwidth) == {
        "open_transactions": is_open,
        "transactional_ids": ids,
        "transaction_timeout_ms": 900_000,
    }


@given(st.floats(0.001, 100_000), st.floats(0.001, 100_000))
def test_who_buys_more_never_gets_fewer_transactions(one, other):
    less, more = map(transactions_default, sorted((one, other)))
    assert all(less[name] <= more[name] for name in less)


def test_every_instance_has_limits_of_broker_time_and_transactions_and_its_tenant_sees_them(tree, alice, instance):
    assert in_force(tree, instance) == shown(alice, instance) == DEFAULTS


def test_they_grow_with_the_bandwidth(tree, alice, instance):
    answer = alice.api.patch(f"/api/v1/instances/{instance.id}", {"bandwidth_mib_per_s": 10})
    run_to_the_end(answer.json()["operation_id"])
    assert (
        in_force(tree, instance)
        == shown(alice, instance)
        == {
            **DEFAULTS,
            "broker_time_ms_per_s": 1200,
            "open_transactions": 500,
            "transactional_ids": 20_000,
        }
    )


@pytest.mark.parametrize(
    ("body", "limits"),
    [
        ({"topics": 7}, {**DEFAULTS, "topics": 7}),
        ({"requests_per_s": 0}, {**DEFAULTS, "requests_per_s": 0}),
        ({"broker_time_ms_per_s": None}, {**DEFAULTS, "broker_time_ms_per_s": None}),
        ({"open_transactions": 0}, {**DEFAULTS, "open_transactions": 0}),
        ({"transactional_ids": None}, {**DEFAULTS, "transactional_ids": None}),
        ({"transaction_timeout_ms": 60_000}, {**DEFAULTS, "transaction_timeout_ms": 60_000}),
        ({"broker_time_ms_per_s": 50, "topics": None}, {**DEFAULTS, "broker_time_ms_per_s": 50}),
        ({}, DEFAULTS),
    ],
)
def test_an_operator_sets_them_and_what_is_not_named_has_its_default(tree, alice, operator, instance, body, limits):
    url = f"/api/v1/instances/{instance.id}/limits"
    run_to_the_end(operator.api.put(url, {"topics": 1, "requests_per_s": 1}).json()["operation_id"])
    answer = operator.api.put(url, body)
    assert answer.status_code == 202
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    assert in_force(tree, instance) == shown(alice, instance) == limits
    entry = AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.limits").latest("at")
    before = {"topics": 1, "requests_per_s": 1}
    changed = {
        name: {"from": before.get(name, "default"), "to": body.get(name, "default")} for name in {**before, **body}
    }
    assert (entry.actor, entry.detail) == ("charlie@example.com", changed)


def test_the_operator_may_follow_what_was_begun_and_nobody_else_of_the_organisation(tree, bob, operator, instance):
    begun = operator.api.put(f"/api/v1/instances/{instance.id}/limits", {"topics": 7}).json()["operation_id"]
    url = f"/api/v1/operations/{begun}"
    assert operator.api.get(url).json() == bob.api.get(url).json()
    User.objects.filter(pk=operator.user.pk).update(is_staff=False)
    problem(operator.api.get(url), 404, "not_found")
    problem(bob.api.get("/api/v1/operations/op-000000000000"), 404, "not_found")


def test_members_see_that_an_operator_did_it_and_not_which_one(tree, alice, operator, instance):
    begun = operator.api.put(f"/api/v1/instances/{instance.id}/limits", {"topics": 7}).json()["operation_id"]
    run_to_the_end(begun)
    events = alice.api.get(f"/api/v1/instances/{instance.id}/events")
    assert [each["actor"] for each in events.json()["items"] if each["object"] == begun] == ["operator"] * 2
    operation = alice.api.get(f"/api/v1/operations/{begun}")
    assert operation.json()["actor"] == "operator"
    for answer in (events, operation, alice.api.get("/api/v1/operations")):
        assert b"charlie" not in answer.content


def test_a_list_of_operations_is_the_organisations_own_for_operators_too(tree, operator, instance):
    operator.api.put(f"/api/v1/instances/{instance.id}/limits", {"topics": 7})
    assert operator.api.get("/api/v1/operations").json()["items"] == []


def test_a_tenant_may_not_and_a_stranger_finds_nothing(tree, alice, charlie, instance):
    url = f"/api/v1/instances/{instance.id}/limits"
    problem(alice.api.put(url, {"topics": 1000}), 403, "forbidden")
    problem(charlie.api.put(url, {"topics": 1000}), 404, "not_found")
    assert in_force(tree, instance) == DEFAULTS


@pytest.mark.parametrize(
    "body",
    [
        *({"topics": -1}, {"topics": 1.5}, {"topics": "7"}, {"loop_ms_per_s": 7}, {"topics": True}),
        *({"open_transactions": -1}, {"transactional_ids": "7"}, {"transaction_timeout_ms": 1.5}),
    ],
)
def test_what_is_no_limit_is_refused(tree, operator, instance, body):
    problem(operator.api.put(f"/api/v1/instances/{instance.id}/limits", body), 400, "invalid")
    assert in_force(tree, instance) == DEFAULTS
