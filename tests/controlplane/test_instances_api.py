"""The instances part of the fixed REST table: paths, fields, statuses."""

from __future__ import annotations

import pytest

from controlplane.core.models import AuditEntry, Operation
from quota.contracts.instance import InstanceSpec

from .conftest import WANTED, run_to_the_end

URL = "/api/v1/instances"
FIELDS = {
    "id", "name", "state", "bootstrap", "bandwidth_mib_per_s", "storage_gib", "partitions", "storage_used_bytes",
    "whitelist", "created_at", "limits", "problem", "health", "config", "routes",
    "deletion_protection", "maintenance_window", "isolated_at", "destroys_at", "placement", "zones",
}  # fmt: skip


def stored(tree, instance) -> InstanceSpec:
    return tree.spec(instance.id)


def problem(answer, status: int, code: str) -> dict:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["code"]) == (status, code)
    assert {"type", "title", "status", "code", "detail", "retriable"} <= set(body)
    return body


def test_creating_answers_an_id_and_an_operation_that_leads_to_a_running_instance(alice, brokers):
    answer = alice.api.post(URL, WANTED)
    assert answer.status_code == 202
    assert set(answer.json()) == {"id", "operation_id"}
    instance_id, operation_id = answer.json()["id"], answer.json()["operation_id"]

    before = alice.api.get(f"{URL}/{instance_id}").json()
    assert (before["state"], before["bootstrap"]) == ("creating", None)
    operation = alice.api.get(f"/api/v1/operations/{operation_id}").json()
    assert (operation["state"], operation["progress"], operation["error"]) == ("running", 0, None)
    assert {"name": "allocate addresses", "state": "pending", "note": ""} in operation["steps"]

    run_to_the_end(operation_id)
    operation = alice.api.get(f"/api/v1/operations/{operation_id}").json()
    assert (operation["state"], operation["progress"], operation["error"]) == ("succeeded", 100, None)
    after = alice.api.get(f"{URL}/{instance_id}").json()
    assert set(after) == FIELDS
    assert after["state"] == "running"
    assert after["bootstrap"] == "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102"
    assert {name: after[name] for name in WANTED} == WANTED
    assert after["storage_used_bytes"] is None
    assert after["problem"] is None


def test_the_team_sees_it_too(alice, bob, instance):
    assert [row["id"] for row in bob.api.get(URL).json()["items"]] == [instance.id]


def test_storage_used_comes_from_the_master(alice, instance, flow_master):
    flow_master.answers[instance.id] = {"storage_used_bytes": 12345}
    assert alice.api.get(f"{URL}/{instance.id}").json()["storage_used_bytes"] == 12345


def test_a_list_asks_an_absent_master_once(alice, brokers, flow_master):
    for _ in range(3):
        alice.api.post(URL, WANTED)
    page = alice.api.get(URL).json()
    assert [row["storage_used_bytes"] for row in page["items"]] == [None] * 3
    assert flow_master.asked == 1


def test_patch_changes_what_was_bought(alice, instance, tree):
    answer = alice.api.patch(f"{URL}/{instance.id}", {"bandwidth_mib_per_s": 7.5, "partitions": 90})
    assert answer.status_code == 202
    assert set(answer.json()) == {"operation_id"}
    assert run_to_the_end(answer.json()["operation_id"]).state == "succeeded"
    shown = alice.api.get(f"{URL}/{instance.id}").json()
    assert (shown["bandwidth_mib_per_s"], shown["partitions"], shown["storage_gib"]) == (7.5, 90, 10)
    assert stored(tree, instance).limits.consume_bytes_per_s == 7864320


def started_of(instance, kind):
    return Operation.objects.unscoped("a test").filter(target=instance.id, kind=kind)


@pytest.mark.parametrize(
    "change",
    [
        {"bandwidth_mib_per_s": 7.5, "partitions": 90},
        {"bandwidth_mib_per_s": 7.5},
        {"name": "renamed"},
        {"config": {"audit": True}},
        {"config": {"audit": True}, "storage_gib": 20},
    ],
)
def test_a_change_that_is_asked_for_twice_is_one_operation(alice, instance, change):
    path = f"{URL}/{instance.id}"
    first = alice.api.patch(path, change).json()["operation_id"]
    again = alice.api.patch(path, change)
    assert (again.status_code, again.json()["operation_id"]) == (202, first)
    assert started_of(instance, "instance.update").count() == 1
    assert AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.update").count() == 1
    run_to_the_end(first)
    assert alice.api.patch(path, change).json()["operation_id"] != first, "nothing is at it any more"


def test_another_change_meanwhile_is_another_operation(alice, instance):
    path = f"{URL}/{instance.id}"
    asked = [{"partitions": 90}, {"partitions": 120}, {"partitions": 90}, {"config": {"audit": True}, "partitions": 90}]
    found = [alice.api.patch(path, change).json()["operation_id"] for change in asked]
    assert len(set(found)) == 4
    assert alice.api.patch(path, {"partitions": 90}).json()["operation_id"] == found[-1], "the newest brings all of it"


def test_an_instance_has_twenty_running_operations_and_can_be_deleted_all_the_same(alice, instance):
    path = f"{URL}/{instance.id}"
    for number in range(20):
        assert alice.api.patch(path, {"partitions": 61 + number}).status_code == 202
    body = problem(alice.api.patch(path, {"partitions": 99}), 409, "too_many_operations")
    assert "20 operations are running" in body["detail"]
    assert alice.api.get(path).json()["partitions"] == 80, "what is refused changes nothing"
    problem(alice.api.post(f"{path}/routes", {"security": "plaintext"}), 409, "too_many_operations")
    assert alice.api.delete(path).status_code == 202


def test_delete_takes_it_away(alice, instance, tree):
    answer = alice.api.delete(f"{URL}/{instance.id}")
    assert answer.status_code == 202
    assert alice.api.get(f"{URL}/{instance.id}").json()["state"] == "deleting"
    run_to_the_end(answer.json()["operation_id"])
    problem(alice.api.get(f"{URL}/{instance.id}"), 404, "not_found")
    assert alice.api.get(URL).json() == {"items": [], "next": None}
    assert alice.api.get(f"/api/v1/operations/{answer.json()['operation_id']}").json()["state"] == "succeeded"


def test_put_whitelist_is_in_force_when_it_answers(alice, instance, tree):
    answer = alice.api.put(f"{URL}/{instance.id}/whitelist", {"cidrs": ["10.0.0.0/8", "192.0.2.7"]})
    assert answer.status_code == 200
    assert answer.json()["whitelist"] == ["10.0.0.0/8", "192.0.2.7/32"]
    assert stored(tree, instance).whitelist == ("10.0.0.0/8", "192.0.2.7/32")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cidrs": ["10.0.0.1/8"]}, "cidrs.0"),
        ({"cidrs": "10.0.0.0/8"}, "cidrs"),
        ({"cidrs": None}, "cidrs"),
        ({}, "cidrs"),
        ({"cidrs": [], "cidr": []}, "cidr"),
    ],
)
def test_a_bad_whitelist_names_the_field_and_changes_nothing(alice, instance, tree, body, field):
    body = problem(alice.api.put(f"{URL}/{instance.id}/whitelist", body), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == [field]
    assert stored(tree, instance).whitelist == ("127.0.0.0/8",)


@pytest.mark.parametrize(
    "change",
    [{"bandwidth_mib_per_s": 0}, {"bandwidth_mib_per_s": "5"}, {"bandwidth_mib_per_s": True}, {"storage_gib": -1},
     {"storage_gib": 10**400}, {"partitions": 0}, {"partitions": 2.5}, {"partitions": 10**30}, {"name": ""},
     {"name": 5}, {"name": "\x00"}, {"whitelist": ["x"]}, {"bandwidth": 5}, {"whitelist": None}],
)  # fmt: skip
def test_a_bad_member_is_named(alice, change):
    body = problem(alice.api.post(URL, {**WANTED, **change}), 400, "invalid")
    assert body["errors"][0]["field"].partition(".")[0] == next(iter(change))
    assert alice.api.get(URL).json()["items"] == []


@pytest.mark.parametrize("missing", sorted(WANTED))
def test_every_member_is_required(alice, missing):
    body = problem(alice.api.post(URL, {k: v for k, v in WANTED.items() if k != missing}), 400, "invalid")
    assert [error["field"] for error in body["errors"]] == [missing]


def test_a_patch_of_nothing_is_refused(alice, instance):
    problem(alice.api.patch(f"{URL}/{instance.id}", {}), 400, "invalid")


def test_lists_come_in_pages(alice, brokers):
    made = [alice.api.post(URL, {**WANTED, "name": f"n{number}"}).json()["id"] for number in range(5)]
    seen, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = alice.api.get(URL, {"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [row["id"] for row in page["items"]]
        cursor, pages = page["next"], pages + 1
    assert (seen, pages) == (made, 3)


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "x"}, {"limit": "201"}, {"cursor": "x"}, {"cursor": "W10"}]
)
def test_a_page_that_does_not_exist_is_refused(alice, query):
    body = problem(alice.api.get(URL, query), 400, "invalid")
    assert body["errors"][0]["field"] == next(iter(query))


def test_zookeeper_away_is_a_retriable_503(alice, instance, tree):
    tree.away = True
    answer = alice.api.put(f"{URL}/{instance.id}/whitelist", {"cidrs": []})
    assert problem(answer, 503, "cluster_unavailable")["retriable"] is True
    assert answer["Retry-After"]


def test_allocation_shows_the_masters_figures(alice, instance, flow_master):
    direction = {
        "limit": 5242880,
        "branch": "initial",
        "brokers": [{"broker": 1, "leaders": 2, "initial_share": 10, "flow": 3, "allocation": 10}],
    }
    flow_master.answers[instance.id] = {
        "instance": instance.id, "produce": direction, "consume": direction, "storage_used_bytes": 7, "connections": 2,
        "storage_full": False, "partitions_without_leader": 1, "partitions_under_replicated": 2,
        "broker_time": {"limit": 600.0, "branch": "initial", "brokers": [{"broker": 1, "flow": 2.5, "allocation": None}]},
        "transactions": {"open": 3, "open_limit": 250, "ids": 40, "ids_limit": None},
    }  # fmt: skip
    answer = alice.api.get(f"{URL}/{instance.id}/allocation")
    assert answer.status_code == 200
    assert answer.json() == {
        name: told for name, told in flow_master.answers[instance.id].items() if name != "instance"
    }


def test_an_older_master_says_nothing_of_transactions(alice, instance, flow_master):
    direction = {"limit": None, "branch": "unlimited", "brokers": []}
    flow_master.answers[instance.id] = {
        "produce": direction, "consume": direction, "storage_used_bytes": 7, "connections": 2, "storage_full": False,
    }  # fmt: skip
    assert alice.api.get(f"{URL}/{instance.id}/allocation").json()["transactions"] is None


def test_allocation_without_a_master_is_a_retriable_503(alice, instance):
    body = problem(alice.api.get(f"{URL}/{instance.id}/allocation"), 503, "master_unavailable")
    assert body["retriable"] is True
