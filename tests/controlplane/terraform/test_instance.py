"""`sluice_instance` from purchase to deletion, as Terraform asks for it."""

from __future__ import annotations

import json

import pytest

from controlplane.core.models import Operation
from controlplane.instances.models import Instance
from tests.controlplane.terraform.between import Fault
from tests.controlplane.terraform.core import Refused, packed, unpacked
from tests.support.waiting import wait_for

NAME = "sluice_instance"
WANTED = {"name": "orders", "bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60, "whitelist": ["10.0.0.0/8"]}


@pytest.fixture
def made(terraform, brokers):
    return terraform.create(NAME, **WANTED)


def rows():
    return Instance.objects.unscoped("a test").all()


def test_creating_waits_until_the_instance_is_open(made, terraform):
    (row,) = rows()
    assert row.state == "running"
    assert made["id"] == row.id
    assert made["bootstrap"]
    assert made["created_at"]
    assert made["config"]["default_partitions"] >= 1
    told = f"instance.create of {row.id}: "  # progress, with TF_LOG=info
    wait_for(lambda: [line for line in terraform.log if told in json.loads(line)["@message"]], 30, "its log")


def test_the_same_again_changes_nothing(made, terraform):
    assert terraform.refresh(NAME, made) == made
    assert terraform.plan(NAME, made, **WANTED).action == "nothing"


def test_another_spelling_of_the_whitelist_is_no_change(made, terraform, between):
    before = len(between.changes())
    changed = terraform.change(NAME, made, **{**WANTED, "whitelist": ["10.0.0.0/8", "192.168.1.7"]})
    assert changed["whitelist"] == ["10.0.0.0/8", "192.168.1.7"]  # the service says 192.168.1.7/32
    assert [each.method for each in between.changes()[before:]] == ["PUT"]
    assert terraform.refresh(NAME, changed) == changed


def test_numbers_with_a_fraction_come_back_as_they_are_written(terraform, brokers):
    wanted = {**WANTED, "bandwidth_mib_per_s": "5.1"}  # so does Terraform write it
    made = terraform.create(NAME, **wanted)
    assert made["bandwidth_mib_per_s"] == "5.1"
    assert terraform.plan(NAME, terraform.refresh(NAME, made), **wanted).action == "nothing"


def test_sizes_name_config_window_and_protection_change_in_place(made, terraform, between):
    before = len(between.changes())
    window = {"day": "sunday", "hour_utc": 3, "length_hours": 4}
    config = {"default_partitions": 5, "super_users": ["User:admin"]}
    wanted = {**WANTED, "name": "orders-2", "bandwidth_mib_per_s": 8, "maintenance_window": window, "config": config}
    changed = terraform.change(NAME, made, **wanted, deletion_protection=True)
    (patch,) = between.changes()[before:]
    assert json.loads(patch.body) == {
        "name": "orders-2",
        "bandwidth_mib_per_s": 8,
        "maintenance_window": window,
        "config": config,
        "deletion_protection": True,
    }
    assert changed["id"] == made["id"]
    without = terraform.change(NAME, changed, **{**wanted, "maintenance_window": None}, deletion_protection=True)
    assert terraform.refresh(NAME, without) == without
    assert without["maintenance_window"] is None


def test_what_was_changed_in_the_console_is_seen_and_put_right(made, terraform, alice, worker):
    alice.api.patch(f"/api/v1/instances/{made['id']}", {"storage_gib": 30})
    worker()
    seen = terraform.refresh(NAME, made)
    assert seen["storage_gib"] == 30
    assert terraform.change(NAME, seen, **WANTED)["storage_gib"] == 10


def test_what_is_not_written_is_left_to_whoever_changes_it(made, terraform, alice, worker):
    alice.api.patch(f"/api/v1/instances/{made['id']}", {"deletion_protection": True, "config": {"audit": True}})
    worker()
    assert terraform.plan(NAME, terraform.refresh(NAME, made), **WANTED).action == "nothing"


def test_one_that_was_deleted_outside_is_gone(made, terraform, alice, worker):
    alice.api.delete(f"/api/v1/instances/{made['id']}")
    worker()
    assert terraform.refresh(NAME, made) is None
    assert terraform.destroy(NAME, made) is None


def test_one_that_can_still_be_restored_is_gone_too(made, terraform, alice, worker, grace):
    alice.api.delete(f"/api/v1/instances/{made['id']}")
    worker()
    answer = terraform.call("ReadResource", type_name=NAME, current_state=packed(made))
    assert "restore" in answer.diagnostics[0].detail
    assert answer.new_state.msgpack == b"\xc0"


def test_import_by_id_is_what_was_made(made, terraform):
    assert terraform.imported(NAME, made["id"]) == made


def test_strangers_instances_cannot_be_imported(terraform, charlie, brokers):
    theirs = charlie.api.post("/api/v1/instances", WANTED).data["id"]
    assert terraform.imported(NAME, theirs) is None
    assert terraform.imported(NAME, "ins-doesnotexist"[:12]) is None


def test_another_place_is_another_instance(made, terraform):
    plan = terraform.plan(NAME, made, **WANTED, placement={"zones": ["north"]})
    assert (plan.action, plan.replaces) == ("replace", ["placement"])


def test_a_protected_instance_is_not_destroyed_and_the_sentence_says_what_to_write(made, terraform):
    protected = terraform.change(NAME, made, **WANTED, deletion_protection=True)
    with pytest.raises(Refused) as refused:
        terraform.destroy(NAME, protected)
    ((attribute, _, detail),) = refused.value.found
    assert attribute == "deletion_protection"
    assert "deletion_protection = false" in detail
    assert refused.value.state == protected
    assert rows().get().state == "running"
    free = terraform.change(NAME, protected, **WANTED, deletion_protection=False)
    assert terraform.destroy(NAME, free) is None
    assert rows().get().state == "deleted"


@pytest.mark.parametrize(
    ("wrong", "attribute"),
    [
        ({"bandwidth_mib_per_s": -1}, "bandwidth_mib_per_s"),
        ({"name": ""}, "name"),
        ({"whitelist": ["10.0.0.1/8"]}, "whitelist"),
        ({"config": {"default_partitions": 0}}, "config.default_partitions"),
        ({"maintenance_window": {"day": "someday", "hour_utc": 3, "length_hours": 4}}, "maintenance_window.day"),
        ({"storage_gib": 10**6}, "storage_gib"),
    ],
)
def test_a_refusal_is_shown_at_the_attribute_that_it_is_about(terraform, brokers, wrong, attribute):
    with pytest.raises(Refused) as refused:
        terraform.create(NAME, **{**WANTED, **wrong})
    assert attribute in refused.value.attributes
    assert refused.value.state is None
    assert not rows().exists()


def test_an_answer_that_is_lost_makes_no_second_instance(terraform, brokers, between):
    between.faults.append(Fault("POST", "/instances", "lose", times=2))
    made = terraform.create(NAME, **WANTED)
    posts = between.changes("POST")
    assert len(posts) == 3
    assert len({each.key for each in posts}) == 1
    assert posts[-1].replayed
    assert rows().get().id == made["id"]


@pytest.mark.parametrize("status", ["429", "503", "502"])
def test_what_asks_to_wait_is_waited_for(terraform, brokers, between, status):
    between.faults += [Fault("POST", "/instances", status, times=2), Fault("GET", "", status, times=2)]
    terraform.create(NAME, **WANTED)
    assert rows().count() == 1


def test_an_operation_that_fails_leaves_the_id_with_terraform(terraform, brokers, worker, between):
    worker.works = False
    plan = terraform.plan(NAME, **WANTED)
    begun = terraform.begun("ApplyResourceChange", type_name=NAME, **_of(plan))
    wait_for(
        lambda: any("/operations/" in each.path for each in between.asked), 30, "the provider to look at the operation"
    )
    with between.lock:
        Operation.objects.unscoped("a test").update(state="failed", error="no room", error_code="cluster_full")
    (answer,) = terraform.ended(begun)
    assert "no room" in answer.diagnostics[0].detail
    assert unpacked(answer.new_state)["id"] == rows().get().id


def test_waiting_ends_with_its_time_and_says_what_goes_on(terraform, brokers, worker):
    worker.works = False
    with pytest.raises(Refused) as refused:
        terraform.create(NAME, **WANTED, timeouts={"create": "1s"})
    ((_, summary, detail),) = refused.value.found
    assert summary == "The operation is still running"
    assert "timeouts" in detail
    assert refused.value.state["id"] == rows().get().id


def test_ctrl_c_ends_the_waiting_and_not_the_operation(own_terraform, brokers, worker, between):
    worker.works = False
    begun = own_terraform.begun("ApplyResourceChange", type_name=NAME, **_of(own_terraform.plan(NAME, **WANTED)))
    wait_for(
        lambda: any("/operations/" in each.path for each in between.asked), 30, "the provider to look at the operation"
    )
    own_terraform.begun("StopProvider").result()
    (answer,) = own_terraform.ended(begun)
    assert answer.diagnostics[0].summary == "Interrupted"
    assert "sluice operation wait" in answer.diagnostics[0].detail
    assert Operation.objects.unscoped("a test").get().state == "running"
    assert unpacked(answer.new_state)["id"] == rows().get().id


def test_many_at_once(terraform, brokers, between):
    names = [f"orders-{number}" for number in range(6)]
    plans = [terraform.plan(NAME, **{**WANTED, "name": name}) for name in names]
    made = terraform.apply(*plans)
    assert [each["name"] for each in made] == names
    assert len({each["id"] for each in made}) == len(names)
    assert between.most_at_once > 1


def _of(plan):
    return {
        "prior_state": packed(plan.prior),
        "planned_state": packed(plan.state),
        "config": packed(plan.config),
        "planned_private": plan.private,
    }
