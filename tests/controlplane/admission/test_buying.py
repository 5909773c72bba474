"""Buying more than there is room for, or than the organisation may have: refused by REST, before anything is written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.admission import selectors
from controlplane.clusters.models import Broker
from controlplane.clusters.services import cluster_ensure
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances import services
from controlplane.instances.models import Instance
from tests.controlplane.conftest import WANTED, run_to_the_end
from tests.controlplane.test_instances_api import URL, problem

DEAR = {**WANTED, "bandwidth_mib_per_s": 240, "storage_gib": 1000, "partitions": 1700}


def written():
    return tuple(rows.unscoped("a test").count() for rows in (Instance.objects, Operation.objects, AuditEntry.objects))


def test_an_account_does_not_buy_ninety_thousand(alice):
    before = written()
    asked = {**WANTED, "bandwidth_mib_per_s": 90_000, "confirm_price": True}
    refused = problem(alice.api.post(URL, asked), 409, "organisation_cap")
    assert refused["exceeded"][0] == {
        "resource": "bandwidth_mib_per_s", "limit": 400, "used": 0, "asked": 90_000,
    }  # fmt: skip
    assert (
        "bandwidth: the organisation may have 400 MiB/s (in use: 0 MiB/s; asked for: 90,000 MiB/s more)"
        in (refused["detail"])
    )
    assert (
        f"To have a cap raised, ask the operators of this service: name your organisation ({alice.organisation.id})"
        in (refused["detail"])
    )
    assert "bandwidth_mib_per_s" in [each["field"] for each in refused["errors"]]
    assert written() == before


def test_nor_five_hundred_instances(alice, brokers):
    answers = [alice.api.post(URL, {**WANTED, "name": f"n{number}"}).status_code for number in range(22)]
    assert answers == [202] * 20 + [409] * 2


@pytest.mark.parametrize(
    ("cap", "most", "asked"),
    [("instances", 1, {}), ("bandwidth_mib_per_s", 9, {}), ("storage_gib", 19.5, {}), ("partitions", 100, {}),
     ("price_per_month", 2000, {})],
)  # fmt: skip
def test_each_cap_is_over_all_instances_together(alice, instance, installed, cap, most, asked):
    installed(caps={cap: most})
    refused = problem(alice.api.post(URL, WANTED), 409, "organisation_cap")
    assert [each["resource"] for each in refused["exceeded"]] == [cap]


def test_all_that_is_exceeded_is_said_at_once(alice, instance, installed):
    installed(caps={"instances": 1, "storage_gib": 10})
    refused = problem(alice.api.post(URL, WANTED), 409, "organisation_cap")
    assert [each["resource"] for each in refused["exceeded"]] == ["instances", "storage_gib"]


def test_anothers_instances_count_for_the_cluster_and_not_for_the_organisation(alice, charlie, instance, installed):
    installed(caps={"instances": 1})
    assert charlie.api.post(URL, WANTED).status_code == 202
    installed(room={"bandwidth_mib_per_s": (4, 1)}, caps={"instances": 20})
    refused = problem(charlie.api.post(URL, WANTED), 409, "cluster_full")
    assert refused["exceeded"] == [{"resource": "bandwidth_mib_per_s", "limit": 12, "used": 10, "asked": 5}]
    assert refused["retriable"] is False


@pytest.mark.parametrize(
    ("resource", "most"),
    [("bandwidth_mib_per_s", 3), ("storage_gib", 6), ("partitions", 39), ("connections", 1999),
     ("broker_time_ms_per_s", 399)],
)  # fmt: skip
def test_each_resource_of_the_cluster_can_be_the_one_that_is_full(alice, instance, installed, resource, most):
    installed(room={resource: (most, 1)})
    refused = problem(alice.api.post(URL, WANTED), 409, "cluster_full")
    assert [each["resource"] for each in refused["exceeded"]] == [resource]
    installed(room={resource: (most + 1, 1)})
    assert alice.api.post(URL, WANTED).status_code == 202


def test_overcommit_sells_more_than_there_is(alice, instance, installed):
    installed(room={"bandwidth_mib_per_s": (2, 2)})
    assert alice.api.post(URL, WANTED).status_code == 202


def test_growing_is_admitted_as_what_is_new(alice, instance, installed):
    installed(room={"storage_gib": (5, 1)})
    path = f"{URL}/{instance.id}"
    refused = problem(alice.api.patch(path, {"storage_gib": 16}), 409, "cluster_full")
    assert refused["exceeded"] == [{"resource": "storage_gib", "limit": 15, "used": 10, "asked": 6}]
    assert alice.api.patch(path, {"storage_gib": 15}).status_code == 202
    installed(caps={"bandwidth_mib_per_s": 8})
    problem(alice.api.patch(path, {"bandwidth_mib_per_s": 9}), 409, "organisation_cap")
    instance.refresh_from_db()
    assert (instance.storage_gib, instance.bandwidth_mib_per_s) == (15, 5)


def test_who_has_more_than_he_may_can_shrink_and_rename_and_not_grow(alice, instance, installed):
    installed(caps={"bandwidth_mib_per_s": 2, "instances": 0}, room={"storage_gib": (1, 1)})
    path = f"{URL}/{instance.id}"
    for change in (
        {"name": "other"},
        {"bandwidth_mib_per_s": 4},
        {"storage_gib": 9},
        {"config": {"default_partitions": 2}},
    ):
        assert alice.api.patch(path, change).status_code == 202
    problem(alice.api.patch(path, {"bandwidth_mib_per_s": 4.5}), 409, "organisation_cap")


def test_a_deleted_instance_makes_room_when_it_is_gone_and_not_before(alice, instance, installed):
    installed(caps={"instances": 1})
    operation_id = alice.api.delete(f"{URL}/{instance.id}").json()["operation_id"]
    problem(alice.api.post(URL, WANTED), 409, "organisation_cap")
    assert run_to_the_end(operation_id).state == "succeeded"
    assert alice.api.post(URL, WANTED).status_code == 202


def test_one_that_failed_still_counts(alice, brokers, installed):
    installed(caps={"instances": 1})
    made, _ = services.instance_create(organisation=alice.organisation, actor="a", **WANTED)
    Instance.objects.unscoped("a test").filter(pk=made.pk).update(state="failed")
    problem(alice.api.post(URL, WANTED), 409, "organisation_cap")


def test_a_change_of_one_that_is_being_deleted_is_told_that(alice, instance, installed):
    alice.api.delete(f"{URL}/{instance.id}")
    installed(caps={"bandwidth_mib_per_s": 5})
    problem(alice.api.patch(f"{URL}/{instance.id}", {"bandwidth_mib_per_s": 50}), 409, "instance_deleting")


def test_a_broker_that_restarts_changes_nothing_and_one_that_is_gone_for_good_does(instance):
    cluster = cluster_ensure()
    assert selectors.hosts_of(cluster) == 3
    first = Broker.objects.filter(broker_id=1)
    first.update(away_since=SYSTEM_CLOCK.now() - timedelta(minutes=59))
    assert selectors.hosts_of(cluster) == 3
    first.update(away_since=SYSTEM_CLOCK.now() - timedelta(minutes=61))
    assert selectors.hosts_of(cluster) == 2


def test_before_brokers_are_known_the_cluster_is_one(db):
    assert selectors.hosts_of(cluster_ensure()) == 1


class TestPrice:
    def test_what_is_dear_is_asked_for_twice(self, alice, brokers):
        before = written()
        refused = problem(alice.api.post(URL, DEAR), 409, "price_unconfirmed")
        assert refused["price"] == {"currency": "CNY", "per_month": "7789.10"}
        assert "costs CNY 7,789.10 a month, which is more than 5,000.00" in refused["detail"]
        assert "confirm_price" in refused["detail"]
        assert written() == before
        assert problem(alice.api.post(URL, {**DEAR, "confirm_price": False}), 409, "price_unconfirmed")
        assert alice.api.post(URL, {**DEAR, "confirm_price": True}).status_code == 202

    def test_at_the_threshold_nothing_is_asked(self, alice, installed):
        installed(
            price_confirmed_above=selectors.counted(DEAR, selectors.plan_counted(alice.organisation))["price_per_month"]
        )
        assert alice.api.post(URL, DEAR).status_code == 202

    def test_growing_into_it_is_asked_and_what_gets_no_dearer_is_not(self, alice, instance):
        path = f"{URL}/{instance.id}"
        sizes = {name: DEAR[name] for name in ("bandwidth_mib_per_s", "storage_gib", "partitions")}
        problem(alice.api.patch(path, sizes), 409, "price_unconfirmed")
        assert alice.api.patch(path, {**sizes, "confirm_price": True}).status_code == 202
        assert alice.api.patch(path, {"name": "dear"}).status_code == 202
        assert alice.api.patch(path, {"partitions": 1699}).status_code == 202
        problem(alice.api.patch(path, {"storage_gib": 1100}), 409, "price_unconfirmed")

    def test_what_cannot_be_had_is_not_asked_for_its_price(self, alice, installed):
        installed(caps={"instances": 0})
        problem(alice.api.post(URL, DEAR), 409, "organisation_cap")

    def test_confirming_alone_is_no_change(self, alice, instance):
        problem(alice.api.patch(f"{URL}/{instance.id}", {"confirm_price": True}), 400, "invalid")

    @pytest.mark.parametrize("value", ["yes", 1, None])
    def test_it_is_a_boolean(self, alice, value):
        problem(alice.api.post(URL, {**WANTED, "confirm_price": value}), 400, "invalid")
