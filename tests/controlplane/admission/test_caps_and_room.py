"""Operators set caps and room by REST, on record; tenants see their caps and how to have them raised."""

from __future__ import annotations

import pytest

from controlplane.admission.models import ClusterRoom
from controlplane.core.models import AuditEntry
from tests.controlplane.conftest import WANTED
from tests.controlplane.test_instances_api import URL, problem

CAPS, CAPACITY = "/api/v1/caps", "/api/v1/capacity"


def of(person):
    return f"/api/v1/organisations/{person.organisation.id}/caps"


def cap(document, resource):
    (found,) = [each for each in document["caps"] if each["resource"] == resource]
    return found


def test_a_tenant_sees_caps_and_use_and_how_to_have_more(alice, viewer, instance, installed):
    installed(operators_contact="support@example.com")
    shown = viewer.api.get(CAPS).json()
    assert [each["resource"] for each in shown["caps"]] == [
        "instances", "bandwidth_mib_per_s", "storage_gib", "partitions", "price_per_month",
    ]  # fmt: skip
    assert cap(shown, "bandwidth_mib_per_s") == {
        "resource": "bandwidth_mib_per_s", "unit": "MiB/s", "limit": 400, "used": 5, "default": 400,
    }  # fmt: skip
    assert cap(shown, "price_per_month") == {
        "resource": "price_per_month", "unit": "CNY", "limit": "30000.00", "used": "1160.70", "default": "30000.00",
    }  # fmt: skip
    assert shown["how_to_raise"].startswith(
        "To have a cap raised, write to support@example.com: name your organisation"
    )
    assert shown["price_confirmed_above"] == "5000.00"


def test_an_operator_raises_a_cap_and_it_is_on_record(alice, operator, instance, installed):
    installed(caps={"instances": 1})
    problem(alice.api.post(URL, WANTED), 409, "organisation_cap")
    answer = operator.api.patch(of(alice), {"instances": 2, "reason": "ticket 7"})
    assert answer.status_code == 200, answer.content
    assert cap(answer.json(), "instances")["limit"] == 2
    assert alice.api.post(URL, WANTED).status_code == 202
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="organisation.caps")
    assert (entry.actor, entry.target) == (operator.user.email, alice.organisation.id)
    assert entry.detail == {"caps": {"instances": {"from": 1, "to": 2}}, "reason": "ticket 7"}
    assert cap(operator.api.get(CAPS).json(), "instances")["limit"] == 1  # an organisation's own


def test_null_is_the_default_again(alice, operator):
    operator.api.patch(of(alice), {"storage_gib": 7.5, "price_per_month": 100.25, "reason": "x"})
    shown = operator.api.get(of(alice)).json()
    assert (cap(shown, "storage_gib")["limit"], cap(shown, "price_per_month")["limit"]) == (7.5, "100.25")
    operator.api.patch(of(alice), {"storage_gib": None, "reason": "x"})
    shown = alice.api.get(CAPS).json()
    assert (cap(shown, "storage_gib")["limit"], cap(shown, "price_per_month")["limit"]) == (4000, "100.25")


@pytest.mark.parametrize(
    "body",
    [{"reason": "x"}, {"instances": 2}, {"instances": 2, "reason": "  "}, {"instances": -1, "reason": "x"},
     {"instances": "2", "reason": "x"}, {"instances": 1e13, "reason": "x"}, {"topics": 2, "reason": "x"}],
    ids=str,
)  # fmt: skip
def test_what_is_no_cap_is_refused(alice, operator, body):
    problem(operator.api.patch(of(alice), body), 400, "invalid")
    assert not AuditEntry.objects.for_organisation(alice.organisation).filter(action="organisation.caps").exists()


def test_tenants_do_not_raise_their_own(alice, charlie):
    problem(alice.api.patch(of(alice), {"instances": 2, "reason": "x"}), 403, "forbidden")
    problem(alice.api.patch(of(charlie), {"instances": 2, "reason": "x"}), 404, "not_found")
    for call in (alice.api.get, alice.api.put):
        problem(call(CAPACITY), 403, "forbidden")


def test_an_operator_sets_what_a_broker_has_and_the_last_word_counts(alice, operator, instance):
    for per_broker in (100, 4):
        body = {"resource": "bandwidth_mib_per_s", "per_broker": per_broker, "overcommit": 1, "reason": "measured"}
        assert operator.api.put(CAPACITY, body).status_code == 200
    shown = operator.api.get(CAPACITY).json()
    assert (shown["cluster"], shown["brokers"]) == ("default", 3)
    assert shown["resources"][1] == {
        "resource": "bandwidth_mib_per_s", "unit": "MiB/s", "per_broker": 4.0, "overcommit": 1.0,
        "capacity": 12, "sold": 5,
    }  # fmt: skip
    assert shown["resources"][0]["per_broker"] is None
    assert {each["resource"] for each in shown["resources"]} >= {"connections", "broker_time_ms_per_s"}
    problem(alice.api.patch(f"{URL}/{instance.id}", {"bandwidth_mib_per_s": 13}), 409, "cluster_full")
    assert [(row.per_broker, row.actor, row.reason) for row in ClusterRoom.objects.order_by("pk")] == [
        (100, operator.user.email, "measured"), (4, operator.user.email, "measured"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [{"resource": "instances"}, {"resource": "luck"}, {"per_broker": -1}, {"overcommit": 0}, {"overcommit": 10_001},
     {"reason": " "}],
    ids=str,
)  # fmt: skip
def test_what_is_no_room_is_refused(operator, wrong):
    body = {"resource": "storage_gib", "per_broker": 100, "overcommit": 1, "reason": "x"}
    problem(operator.api.put(CAPACITY, body | wrong), 400, "invalid")
    assert not ClusterRoom.objects.exists()


def test_the_limit_an_operator_gives_an_instance_counts_as_what_is_sold(operator, instance):
    operator.api.put(f"/api/v1/instances/{instance.id}/limits", {"broker_time_ms_per_s": 1000})
    assert operator.api.get(CAPACITY).json()["resources"][-1]["sold"] == 1000
