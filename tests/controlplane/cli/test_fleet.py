"""Operators of the service by the command line: what their pages show, and what they decide."""

from __future__ import annotations

import pytest

from controlplane.accounts.models import User
from controlplane.clusters.models import PhysicalCluster
from controlplane.core.models import Operation
from controlplane.metering.models import Loss
from tests.controlplane.rebalancing.rows import rebalance_row


@pytest.fixture
def operator(ok, alice):
    User.objects.filter(pk=alice.user.pk).update(is_staff=True)
    return ok


def test_who_is_no_operator_is_told_so(as_alice):
    refused = as_alice("fleet", "instances")
    assert refused.status == 1
    assert "operators of the service" in refused.err


def test_everybodys_instances(operator, instance):
    assert "alice's" in operator("fleet", "instances", "--sort", "name").out
    assert operator("fleet", "instances", "--search", "nothing", "-o", "json").json["items"] == []
    assert operator("fleet", "instance", instance.id, "-o", "json").json["id"] == instance.id


def test_organisations_and_operations(operator, alice, instance):
    found = operator("fleet", "organisations", "--prefix", "alice", "-o", "json").json["items"]
    assert [each["id"] for each in found] == [alice.organisation.id]
    count = Operation.objects.unscoped("a test").count()
    assert len(operator("fleet", "operations", "-o", "json").json["items"]) == count


def test_brokers_heat_and_problems(operator, instance):
    operator("fleet", "brokers", "--sort=-leaders")
    assert operator("fleet", "heat", "--of", "instances", "-o", "json").json["of"] == "instances"
    operator("fleet", "problems")
    operator("cluster", "balance")


def test_caps_are_raised_with_a_reason(operator, alice):
    organisation = alice.organisation.id
    foretold = operator(
        "fleet", "set-caps", organisation, "--instances", 40, "--reason", "more", "--dry-run", "-o", "json"
    )
    assert foretold.json["changes"]
    said = operator("fleet", "set-caps", organisation, "--instances", 40, "--reason", "more", "-o", "json").json
    assert {each["resource"]: each["limit"] for each in said["caps"]}["instances"] == 40
    assert operator("fleet", "caps", organisation).out


def test_a_cluster_is_cordoned(operator, instance):
    said = operator("cluster", "change", "default", "--state", "cordoned", "--reason", "new disks", "-o", "json").json
    assert said["state"] == "cordoned"
    assert PhysicalCluster.objects.get(name="default").state == "cordoned"
    assert "new disks" in operator("cluster", "events", "default").out
    (event,) = operator("cluster", "events", "default", "-o", "json").json  # a list, as REST answers it
    assert event["reason"] == "new disks"
    assert "cordoned" in operator("cluster", "list").out


def test_a_cluster_that_is_not_named_in_full(as_alice, alice, instance):
    User.objects.filter(pk=alice.user.pk).update(is_staff=True)
    assert as_alice("cluster", "show", "elsewhere").status == 4
    assert as_alice("cluster", "change", "default", "--reason", "none").status == 2


def test_jobs_metering_and_rebalances(operator, instance):
    assert "quota_report" in operator("job", "list").out
    operator("job", "runs", "quota_report")
    for words in ("brokers", "months", "waivers", "losses", "reconciliations", "differences", "fold"):
        operator("metering", words)
    operator("rebalance", "list")
    rebalance = rebalance_row(PhysicalCluster.objects.get(name="default")).pk
    operator("rebalance", "events", rebalance)
    assert isinstance(operator("rebalance", "events", rebalance, "-o", "json").json, list)
    operator("cluster", "rebalancing", "default")


def test_a_loss_is_settled(operator, alice):
    loss = Loss.objects.create(
        kind="gone", partition=0, start_offset=5, end_offset=9, topic_id="t", sentence="offsets are gone", found_at_ms=0
    )
    assert operator("metering", "settle", loss.pk, "-o", "json").json["settled_by"] == "alice@example.com"
