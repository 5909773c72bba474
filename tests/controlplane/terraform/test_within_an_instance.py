"""Topics, whitelists, users, ACLs and throttle rules, as Terraform asks for them."""

from __future__ import annotations

import json

import pytest

from tests.controlplane.terraform.between import Fault
from tests.controlplane.terraform.core import Refused

PASSWORD = "correct horse battery"
ACL = {"principal": "User:anna", "operation": "READ", "resource_type": "TOPIC", "resource_name": "orders|%/ü"}


@pytest.fixture
def within(terraform, instance):
    """Configuration of something in alice's instance: ``within(name="orders")``."""
    return lambda **config: {"instance_id": instance.id, **config}


def again(terraform, kind, made, config):
    """The same configuration after a look: what would be done."""
    return terraform.plan(kind, terraform.refresh(kind, made), **config).action


# Each of them


EACH = {
    "sluice_topic": {"name": "orders", "partitions": 3, "config": {"retention.ms": "60000"}, "tags": ["a", "b"]},
    "sluice_whitelist": {"cidrs": ["10.0.0.0/8", "192.168.0.1"]},
    "sluice_user": {"name": "anna/ö", "password": PASSWORD},
    "sluice_acl": ACL,
    "sluice_throttle_rule": {"kind": "client", "users": ["anna", "bert"], "produce_mib_per_s": "1.1"},
}


@pytest.mark.parametrize("kind", EACH)
def test_the_same_again_changes_nothing(terraform, within, kind):
    config = within(**EACH[kind])
    made = terraform.create(kind, **config)
    assert terraform.refresh(kind, made) == made
    assert again(terraform, kind, made, config) == "nothing"


@pytest.mark.parametrize("kind", EACH)
def test_import_by_id_is_what_was_made(terraform, within, kind):
    made = terraform.create(kind, **within(**EACH[kind]))
    found = terraform.imported(kind, made["id"])
    secret = {"password": None} if kind == "sluice_user" else {}
    spelt = {"cidrs": ["10.0.0.0/8", "192.168.0.1/32"]} if kind == "sluice_whitelist" else {}
    assert found == {**made, **secret, **spelt}


@pytest.mark.parametrize("kind", [kind for kind in EACH if kind != "sluice_whitelist"])
def test_what_was_deleted_outside_is_gone(terraform, within, kind, alice, instance):
    made = terraform.create(kind, **within(**EACH[kind]))
    assert terraform.destroy(kind, made) is None
    assert terraform.refresh(kind, made) is None  # and a state that did not know
    assert terraform.destroy(kind, made) is None


@pytest.mark.parametrize("kind", EACH)
def test_what_belongs_to_others_is_not_there(terraform, kind, charlie, brokers):
    wanted = {"name": "theirs", "bandwidth_mib_per_s": 5, "storage_gib": 10, "partitions": 60, "whitelist": []}
    theirs = charlie.api.post("/api/v1/instances", wanted).data["id"]
    refusals = []
    for instance_id in (theirs, "ins-22222222"):
        with pytest.raises(Refused) as refused:
            terraform.create(kind, instance_id=instance_id, **EACH[kind])
        refusals.append(str(refused.value.found).replace(instance_id, ""))
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize("text", ["", "ins-1", "ins-1/"])
@pytest.mark.parametrize("kind", ["sluice_topic", "sluice_user", "sluice_acl", "sluice_throttle_rule"])
def test_an_id_that_is_none_is_refused_with_one_that_is(terraform, kind, text):
    with pytest.raises(Refused, match="it is like ins-"):
        terraform.imported(kind, text)


@pytest.mark.parametrize("kind", EACH)
def test_what_lies_in_a_deleted_instance_goes_without_ado(terraform, within, kind, alice, instance, worker, grace):
    made = terraform.create(kind, **within(**EACH[kind]))
    alice.api.delete(f"/api/v1/instances/{instance.id}")
    worker()
    assert terraform.destroy(kind, made) is None


@pytest.mark.parametrize("kind", [kind for kind in EACH if kind != "sluice_whitelist"])
def test_an_answer_that_is_lost_makes_nothing_twice(terraform, within, kind, between):
    between.faults.append(Fault("POST", "s", "lose"))
    terraform.create(kind, **within(**EACH[kind]))
    first, second = between.changes("POST")
    assert first.key == second.key
    assert second.replayed


# Topics


def test_partitions_grow_in_place_and_settings_go_back_to_their_default(terraform, within, between):
    made = terraform.create("sluice_topic", **within(name="orders", config={"retention.ms": "1", "segment.ms": "5"}))
    before = len(between.changes())
    wanted = within(name="orders", partitions=9, config={"retention.ms": "2"})
    changed = terraform.change("sluice_topic", made, **wanted)
    (patch,) = between.changes()[before:]
    assert json.loads(patch.body) == {"partitions": 9, "config": {"retention.ms": "2", "segment.ms": None}}
    assert again(terraform, "sluice_topic", changed, wanted) == "nothing"


@pytest.mark.parametrize(
    ("other", "replaces"),
    [({"partitions": 2}, "partitions"), ({"name": "bills"}, "name"), ({"replication_factor": 1}, "replication_factor")],
)
def test_what_cannot_change_is_another_topic(terraform, within, other, replaces):
    config = {"name": "orders", "partitions": 3, "replication_factor": 3}
    made = terraform.create("sluice_topic", **within(**config))
    plan = terraform.plan("sluice_topic", made, **within(**{**config, **other}))
    assert (plan.action, plan.replaces) == ("replace", [replaces])


def test_a_topic_has_its_whitelist_and_note_from_its_birth(terraform, within, alice, instance):
    wanted = within(name="orders", whitelist=["10.0.0.1"], note="of customers", tags=["x"])
    made = terraform.create("sluice_topic", **wanted)
    there = alice.api.get(f"/api/v1/instances/{instance.id}/topics/orders").data
    assert (there["whitelist"], there["note"], there["tags"]) == (["10.0.0.1/32"], "of customers", ["x"])
    assert again(terraform, "sluice_topic", made, wanted) == "nothing"


def test_a_topic_that_is_only_half_made_is_known_to_terraform(terraform, within):
    with pytest.raises(Refused) as refused:
        terraform.create("sluice_topic", **within(name="orders", whitelist=["nonsense"]))
    assert refused.value.state["name"] == "orders"
    assert terraform.destroy("sluice_topic", refused.value.state) is None


def test_a_setting_that_there_is_not_is_shown_at_the_topic(terraform, within):
    with pytest.raises(Refused) as refused:
        terraform.create("sluice_topic", **within(name="or ders"))
    assert refused.value.attributes == ["name"]


# Whitelists


def test_a_topics_whitelist_ends_with_its_resource(terraform, within, alice, instance):
    terraform.create("sluice_topic", **within(name="orders"))
    made = terraform.create("sluice_whitelist", **within(topic="orders", cidrs=["10.0.0.0/8"]))
    address = f"/api/v1/instances/{instance.id}/topics/orders"
    assert alice.api.get(address).data["whitelist"] == ["10.0.0.0/8"]
    terraform.destroy("sluice_whitelist", made)
    assert alice.api.get(address).data["whitelist"] is None
    assert terraform.refresh("sluice_whitelist", made) is None


def test_without_the_resource_nobody_may_connect(terraform, within, alice, instance):
    made = terraform.create("sluice_whitelist", **within(cidrs=["10.0.0.0/8"]))
    terraform.destroy("sluice_whitelist", made)
    assert alice.api.get(f"/api/v1/instances/{instance.id}").data["whitelist"] == []


# Users


def test_a_write_only_password_is_in_no_plan_no_state_and_no_log(terraform, within, between):
    config = within(name="anna", password_wo=PASSWORD, password_wo_version=1)
    plan = terraform.plan("sluice_user", **config)
    made = terraform.apply(plan)
    assert PASSWORD not in str(plan.state) + str(made) + str(plan.private) + "".join(terraform.log)
    assert json.loads(between.changes("POST")[0].body)["password"] == PASSWORD
    assert again(terraform, "sluice_user", made, config) == "nothing"


def test_another_version_sends_the_password_again(terraform, within, between):
    made = terraform.create("sluice_user", **within(name="anna", password_wo=PASSWORD, password_wo_version=1))
    other = within(name="anna", password_wo=f"{PASSWORD} 2", password_wo_version=2, keep_previous_s=60)
    terraform.change("sluice_user", made, **other)
    assert json.loads(between.changes("PUT")[-1].body) == {"password": f"{PASSWORD} 2", "keep_previous_s": 60}


def test_passwords_are_sensitive(terraform):
    attributes = terraform.attributes("sluice_user")
    assert all(attributes[name].sensitive for name in ("password", "password_wo"))
    assert attributes["password_wo"].write_only
    provider = {each.name: each for each in terraform.schema.provider.block.attributes}
    assert provider["api_key"].sensitive


def test_a_terraform_that_would_keep_it_is_told_so(terraform, within):
    terraform.write_only = False
    with pytest.raises(Refused) as refused:
        terraform.validate("sluice_user", **within(name="anna", password_wo=PASSWORD, password_wo_version=1))
    assert refused.value.attributes == ["password_wo"]
    assert PASSWORD not in str(refused.value.found)


@pytest.mark.parametrize(
    ("config", "attribute"),
    [
        ({}, "password"),
        ({"password": PASSWORD, "password_wo": PASSWORD, "password_wo_version": 1}, "password"),
        ({"password_wo": PASSWORD}, "password_wo_version"),
        ({"password": PASSWORD, "mechanisms": ["PLAIN"]}, "mechanisms"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anybody_is_asked(terraform, within, between, config, attribute):
    before = len(between.asked)
    with pytest.raises(Refused) as refused:
        terraform.validate("sluice_user", **within(name="anna", **config))
    assert refused.value.attributes == [attribute]
    assert len(between.asked) == before


@pytest.mark.parametrize(
    ("config", "attribute"), [({"password": "short"}, "password"), ({"name": "", "password": PASSWORD}, "name")]
)
def test_a_users_refusals_are_shown_at_their_attribute(terraform, within, config, attribute):
    with pytest.raises(Refused) as refused:
        terraform.create("sluice_user", **within(**{"name": "anna", **config}))
    assert refused.value.attributes == [attribute]


def test_a_name_that_is_taken_is_shown_at_the_name(terraform, within):
    terraform.create("sluice_user", **within(name="anna", password=PASSWORD))
    with pytest.raises(Refused) as refused:
        terraform.create("sluice_user", **within(name="anna", password=PASSWORD))
    assert refused.value.attributes == ["name"]


# ACLs and rules


@pytest.mark.parametrize("name", ["principal", "operation", "resource_type", "resource_name", "host", "permission"])
def test_another_rule_is_another_acl(terraform, within, name):
    made = terraform.create("sluice_acl", **within(**ACL))
    other = {"operation": "WRITE", "resource_type": "GROUP", "permission": "DENY", "host": "10.0.0.1"}.get(
        name, "User:x"
    )
    plan = terraform.plan("sluice_acl", made, **within(**{**ACL, name: other}))
    assert (plan.action, plan.replaces) == ("replace", [name])


def test_deleting_an_acl_takes_no_other(terraform, within, alice, instance):
    star = terraform.create("sluice_acl", **within(**{**ACL, "principal": "User:*", "resource_name": "*"}))
    one = terraform.create("sluice_acl", **within(**ACL))
    terraform.destroy("sluice_acl", star)
    assert [each["principal"] for each in alice.api.get(f"/api/v1/instances/{instance.id}/acls").data["items"]] == [
        "User:anna"
    ]
    assert terraform.refresh("sluice_acl", one) == one


def test_a_rules_limits_and_names_change_in_place(terraform, within, between):
    made = terraform.create("sluice_throttle_rule", **within(kind="client", users=["anna"], produce_mib_per_s=2))
    wanted = within(kind="client", users=["anna"], clients=["*"], consume_mib_per_s=3)
    changed = terraform.change("sluice_throttle_rule", made, **wanted)
    assert json.loads(between.changes("PATCH")[-1].body) == {
        "produce_mib_per_s": None,
        "consume_mib_per_s": 3,
        "clients": [None],
    }
    assert again(terraform, "sluice_throttle_rule", changed, wanted) == "nothing"


def test_a_rule_of_another_kind_is_another_rule(terraform, within):
    made = terraform.create("sluice_throttle_rule", **within(kind="topic", topics=["orders"], produce_mib_per_s=1))
    plan = terraform.plan("sluice_throttle_rule", made, **within(kind="group", groups=["g"], consume_mib_per_s=1))
    assert plan.replaces == ["kind"]


# Data sources


def test_an_instance_is_found_by_its_name_and_by_its_id(terraform, instance):
    by_name = terraform.lookup("sluice_instance", name=instance.name)
    assert by_name == terraform.lookup("sluice_instance", id=instance.id)
    assert (by_name["id"], by_name["state"]) == (instance.id, "running")


@pytest.mark.parametrize("config", [{}, {"id": "ins-22222222"}, {"name": "nobody's"}, {"id": "x", "name": "x"}])
def test_one_that_is_not_there_is_said_at_what_was_asked_by(terraform, instance, config):
    with pytest.raises(Refused) as refused:
        terraform.lookup("sluice_instance", **config)
    assert refused.value.attributes == [next(iter(config), "id")]


def test_zones_are_listed(terraform):
    assert terraform.lookup("sluice_zones") == {"names": [], "taking_new": []}
