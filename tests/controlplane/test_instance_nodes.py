"""An instance in ZooKeeper: whitelists and rules in nodes of their own, sizes that are refused in time, one that is ill."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from controlplane.clusters import coordination
from controlplane.core.errors import ClusterUnavailable
from controlplane.instances import lifecycle, reconcile, services
from controlplane.instances.models import Instance
from controlplane.instances.plan import Settled
from controlplane.instances.selectors import instance_fresh
from quota.contracts.apart import LARGEST_WHITELISTS, rules_path, spec_path, whitelists_path
from quota.contracts.instance import MIB, InstanceState
from quota.contracts.rules import LARGEST_RULES, RuleKind, RuleSet, ThrottleRule

from .conftest import WANTED, run_to_the_end
from .test_instances_api import problem

RULE = ThrottleRule("rule-1", RuleKind.TOPIC, MIB, None, topics=("orders",))
LONG = [f"2001:db8:ffff:ffff:ffff:ffff:ffff:{number:x}/128" for number in range(0x1000, 0x1200)]
SLIGHTLY_TOO_MANY = {f"topic-{number}": LONG for number in range(45)}


def row(instance):
    return Instance.objects.unscoped("test").filter(pk=instance.pk)


def whole(tree, instance, **other):
    """What a release before this one has left there: one document of version 1."""
    spec = replace(tree.spec(instance.id), **other)
    del tree.nodes[whitelists_path(instance.id)]
    tree.put(spec_path(instance.id), spec.to_json())
    return spec


@pytest.fixture
def three(alice, brokers):
    """Instances that run, in the order in which the reconciler looks after them."""
    made = [
        services.instance_create(organisation=alice.organisation, actor="alice", **{**WANTED, "name": name})
        for name in ("first", "second", "third")
    ]
    for _, operation in made:
        run_to_the_end(operation.id)
    order = list(Instance.objects.unscoped("test").values_list("pk", flat=True))
    return sorted((instance for instance, _ in made), key=lambda instance: order.index(instance.pk))


# --- nodes --------------------------------------------------------------------------------------------------------------


def test_whitelists_stand_beside_the_specification(tree, instance):
    head = json.loads(tree.nodes[spec_path(instance.id)][0])
    assert (head["version"], head["whitelists"], "whitelist" in head) == (2, head["generation"], False)
    assert json.loads(tree.nodes[whitelists_path(instance.id)][0])["whitelist"] == ["127.0.0.0/8"]
    assert rules_path(instance.id) not in tree.nodes


def test_a_deleted_instance_leaves_none_of_its_nodes(alice, tree, instance):
    coordination.rules_write(tree, instance.id, lambda rules: (*rules, RULE))
    assert rules_path(instance.id) in tree.nodes
    operation = lifecycle.instance_delete(organisation=alice.organisation, actor="alice", instance_id=instance.id)
    assert run_to_the_end(operation.id).state == "succeeded"
    assert [path for path in tree.nodes if instance.id in path] == []


def test_a_specification_of_version_1_is_written_anew_and_keeps_its_rules(tree, instance, brokers):
    before = whole(tree, instance, rules=RuleSet(4, (RULE,)))
    assert coordination.rules_read(tree, instance.id) == (RULE,)
    reconcile.reconcile_all()
    spec = tree.spec(instance.id)
    assert spec == replace(before, generation=before.generation + 1)
    assert spec.whitelists_of == spec.generation
    assert isinstance(reconcile.converge(instance.id), Settled)
    assert coordination.rules_read(tree, instance.id) == (RULE,)


def test_rules_of_a_specification_of_version_1_are_changed_within_it(tree, instance):
    whole(tree, instance, rules=RuleSet(4, (RULE,)))
    coordination.rules_write(tree, instance.id, lambda _rules: ())
    assert tree.spec(instance.id).rules == RuleSet(5, ())
    assert rules_path(instance.id) not in tree.nodes


def test_limits_that_an_operator_set_in_zookeeper_become_the_databases(tree, instance):
    limits = replace(tree.spec(instance.id).limits, topics=7, requests_per_s=500, loop_ms_per_s=None)
    whole(tree, instance, limits=limits)
    reconcile.reconcile_all()
    assert instance_fresh(instance.id).operators_limits == {"topics": 7, "requests_per_s": 500}
    assert tree.spec(instance.id).limits == replace(limits, loop_ms_per_s=600)
    row(instance).update(operators_limits={"topics": 9})
    reconcile.publish(tree, instance.id)  # from now on the database says it
    assert instance_fresh(instance.id).operators_limits == {"topics": 9}


@pytest.mark.parametrize("damage", [None, b"{", b'{"version":1,"generation":0,"whitelist":[],"topics":{}}'])
def test_whitelists_that_zookeeper_lost_are_written_again(tree, instance, brokers, damage):
    before = tree.spec(instance.id)
    if damage is None:
        del tree.nodes[whitelists_path(instance.id)]
    else:
        tree.nodes[whitelists_path(instance.id)] = (damage, 7)
    reconcile.reconcile_all()
    assert tree.spec(instance.id) == before


def test_rules_that_are_not_legible_do_not_keep_a_whitelist_from_its_brokers(alice, tree, instance):
    tree.put(rules_path(instance.id), b"{")
    tree.after_write = lambda: None
    services.instance_whitelist_set(
        organisation=alice.organisation, actor="alice", instance_id=instance.id, cidrs=["10.0.0.0/8"]
    )
    assert json.loads(tree.nodes[whitelists_path(instance.id)][0])["whitelist"] == ["10.0.0.0/8"]


# --- sizes --------------------------------------------------------------------------------------------------------------


def test_whitelists_larger_than_a_node_are_refused_before_anything_is_stored(alice, tree, instance):
    topics = {f"topic-{number}": LONG for number in range(34)}
    row(instance).update(topic_whitelists=topics)
    assert alice.api.post(f"/api/v1/instances/{instance.id}/topics", {"name": "orders"}).status_code == 201
    url = f"/api/v1/instances/{instance.id}/topics/orders/whitelist"
    assert alice.api.put(url, {"cidrs": LONG}).status_code == 200
    before, nodes = instance_fresh(instance.id), dict(tree.nodes)
    for number in range(50):
        said = alice.api.put(url, {"cidrs": [*LONG[: 500 - number], f"10.0.0.{number}"]})
        if said.status_code != 200:
            break
        row(instance).update(topic_whitelists={**instance_fresh(instance.id).topic_whitelists, f"more-{number}": LONG})
        before, nodes = instance_fresh(instance.id), dict(tree.nodes)
    detail = problem(said, 400, "too_large")["detail"]
    assert f"may take {LARGEST_WHITELISTS} bytes" in detail
    assert instance_fresh(instance.id).generation == before.generation
    assert instance_fresh(instance.id).topic_whitelists == before.topic_whitelists
    assert tree.nodes == nodes


def test_rules_larger_than_a_node_are_refused(alice, tree, instance):
    url = f"/api/v1/instances/{instance.id}/throttle-rules"
    for number in range(3):
        names = [f"{number}-{place}-" + "\U0001f600" * 240 for place in range(100)]
        body = {"kind": "group", "groups": names, "consume_mib_per_s": 1}
        said = alice.api.post(url, body)
    assert said.status_code == 201
    body["groups"] = ["x" + name for name in names]
    detail = problem(alice.api.post(url, body), 400, "invalid_throttle_rule")["detail"]
    assert f"may take {LARGEST_RULES} bytes" in detail
    assert len(coordination.rules_read(tree, instance.id)) == 3


# --- one that is ill ----------------------------------------------------------------------------------------------------


def poison(tree, instance):
    """A row that a release before this one has let in."""
    row(instance).update(topic_whitelists=SLIGHTLY_TOO_MANY, generation=instance_fresh(instance.id).generation + 1)


def refuse(error, monkeypatch, instance):
    """What goes wrong with this one and no other."""
    converge = reconcile.converge

    def picky(instance_id, **options):
        if instance_id == instance.id:
            raise error
        return converge(instance_id, **options)

    monkeypatch.setattr(reconcile, "converge", picky)


def test_one_that_cannot_be_written_does_not_stop_the_others_and_says_why(alice, tree, three):
    first, ill, last = three
    poison(tree, ill)
    for instance in (first, last):
        del tree.nodes[spec_path(instance.id)]
    reconcile.reconcile_all()
    assert tree.spec(first.id).state is InstanceState.RUNNING
    assert tree.spec(last.id).state is InstanceState.RUNNING
    shown = {item["id"]: item["problem"] for item in alice.api.get("/api/v1/instances").json()["items"]}
    assert (shown[first.id], shown[last.id]) == (None, None)
    assert f"may take {LARGEST_WHITELISTS} bytes" in shown[ill.id]
    row(ill).update(topic_whitelists={})
    reconcile.reconcile_all()
    assert alice.api.get(f"/api/v1/instances/{ill.id}").json()["problem"] is None
    assert tree.spec(ill.id).generation == instance_fresh(ill.id).generation


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("a bug"), reconcile.UNFORESEEN),
        (ClusterUnavailable("no answer to this write"), "no answer to this write"),
    ],
)
def test_whatever_goes_wrong_with_one_the_others_are_looked_after(alice, tree, three, monkeypatch, error, said):
    first, ill, last = three
    refuse(error, monkeypatch, ill)
    for missing in (ill, last):
        del tree.nodes[spec_path(missing.id)]
    reconcile.reconcile_all()
    assert tree.spec(last.id).state is InstanceState.RUNNING
    assert instance_fresh(ill.id).problem == said
    assert instance_fresh(first.id).problem == instance_fresh(last.id).problem == ""


def test_without_zookeeper_nobody_is_tried_and_nobody_is_said_to_be_ill(tree, three, monkeypatch):
    tried = []
    converge = reconcile.converge
    monkeypatch.setattr(reconcile, "converge", lambda name, **options: (tried.append(name), converge(name, **options)))
    tree.away = True
    reconcile.reconcile_all()
    assert tried == []
    assert {instance_fresh(instance.id).problem for instance in three} == {""}


def test_one_that_cannot_be_written_can_still_be_deleted(alice, tree, three):
    _, ill, _ = three
    poison(tree, ill)
    operation = lifecycle.instance_delete(organisation=alice.organisation, actor="alice", instance_id=ill.id)
    assert run_to_the_end(operation.id).state == "succeeded"
    assert [path for path in tree.nodes if ill.id in path] == []
