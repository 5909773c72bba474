"""Instances come up, change and go away step by step, whatever brokers, ports and workers do meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from controlplane.clusters import coordination
from controlplane.clusters.models import PortAllocation
from controlplane.clusters.zookeeper import Put
from controlplane.core import operations
from controlplane.core.errors import CapacityExhausted, ClusterUnavailable, Conflict, Invalid
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances import lifecycle, reconcile, services
from controlplane.instances.models import Instance
from controlplane.instances.plan import Settled
from controlplane.instances.selectors import bootstrap_of, instance_fresh, routes_wanted
from quota.contracts.instance import CHANGES_PATH, GIB, INSTANCES_PATH, MIB, InstanceSpec

from .conftest import WANTED, run_to_the_end


def create(alice, **other):
    return services.instance_create(organisation=alice.organisation, actor="alice@example.com", **{**WANTED, **other})


def stored(tree, instance) -> InstanceSpec:
    return tree.spec(instance.id)


def ports(instance) -> dict[int, int]:
    return {row.broker.broker_id: row.port for row in PortAllocation.objects.filter(owner=instance.id)}


def test_a_new_instance_comes_up_in_visible_steps(alice, brokers, tree):
    instance, operation = create(alice)
    assert instance.state == "creating"
    done = run_to_the_end(operation.id)
    assert [(step["name"], step["state"]) for step in done.steps] == [
        ("allocate addresses", "succeeded"),
        ("write specification", "succeeded"),
        ("wait for brokers", "succeeded"),
        ("open for use", "succeeded"),
    ]
    assert instance_fresh(instance.id).state == "running"
    spec = stored(tree, instance)
    assert spec.limits.produce_bytes_per_s == spec.limits.consume_bytes_per_s == 5 * MIB
    assert (spec.limits.storage_bytes, spec.limits.partitions) == (10 * GIB, 60)
    assert spec.whitelist == ("127.0.0.0/8",)
    assert (
        {b: e.bind[1] for b, e in spec.routes[0].endpoints.items()} == ports(instance) == {1: 20100, 2: 20101, 3: 20102}
    )


def test_every_write_leaves_a_change_that_names_the_instance(instance, tree):
    changes = [json.loads(tree.nodes[f"{CHANGES_PATH}/{name}"][0]) for name in tree.children(CHANGES_PATH)]
    assert changes == [{"instance": instance.id}]


def test_two_instances_never_share_a_port(alice, instance, brokers):
    other, operation = create(alice)
    run_to_the_end(operation.id)
    assert not set(ports(instance).values()) & set(ports(other).values())


def test_it_waits_for_the_last_live_broker_and_names_it(alice, brokers, clock):
    brokers.paused.add(2)
    instance, operation = create(alice)
    clock.time = operation.runnable_at
    operations.run(operation.id, clock=clock)
    operation.refresh_from_db()
    assert operation.state == "running"
    assert operation.steps[2] == {"name": "wait for brokers", "state": "running", "note": "broker 2 has not seen it"}
    assert instance_fresh(instance.id).state == "creating"
    brokers.paused.clear()
    brokers.apply()
    assert run_to_the_end(operation.id, clock).state == "succeeded"


def test_a_dead_broker_is_not_waited_for_but_keeps_its_address(alice, instance, brokers):
    brokers.kill(3)
    other, operation = create(alice)
    assert run_to_the_end(operation.id).state == "succeeded"
    assert sorted(ports(other)) == [1, 2, 3]


def test_a_port_that_is_taken_is_replaced_by_another(alice, brokers, tree):
    brokers.taken_ports.update({20101, 20103})
    instance, operation = create(alice)
    assert run_to_the_end(operation.id).state == "succeeded"
    assert ports(instance) == {1: 20100, 2: 20104, 3: 20102}
    assert stored(tree, instance).generation == 3
    assert sorted(PortAllocation.objects.filter(state="blocked").values_list("port", flat=True)) == [20101, 20103]


def test_a_problem_without_a_port_fails_the_creation_with_the_brokers_words(alice, brokers, monkeypatch):
    monkeypatch.setattr(brokers, "_problem", lambda _broker, _spec: "no file descriptors left")
    instance, operation = create(alice)
    done = run_to_the_end(operation.id)
    assert done.state == "failed"
    assert "broker 1: no file descriptors left" in done.error
    assert instance_fresh(instance.id).state == "failed"
    monkeypatch.undo()


def test_a_failed_instance_runs_after_all_once_brokers_serve_it(alice, brokers, monkeypatch, tree):
    brokers.paused.update({1, 2, 3})
    instance, operation = create(alice)
    assert run_to_the_end(operation.id).state == "failed"
    brokers.paused.clear()
    brokers.apply()
    reconcile.reconcile_all()
    assert instance_fresh(instance.id).state == "running"


def test_no_broker_at_all_is_retried_and_said(alice, tree, clock):
    _, operation = create(alice)
    clock.time = operation.runnable_at
    operations.run(operation.id, clock=clock)
    operation.refresh_from_db()
    assert (operation.state, operation.attempts) == ("running", 1)
    assert "no broker has registered yet" in operation.steps[0]["note"]


class Killed(BaseException):
    """SIGKILL."""


@pytest.mark.parametrize("writes_before_death", [0, 1, 2])
def test_a_worker_killed_while_writing_leaves_nothing_that_its_successor_does_not_finish(
    alice, brokers, tree, clock, settings, writes_before_death
):
    instance, operation = create(alice)
    clock.time = operation.runnable_at
    brokers.taken_ports.add(20100)  # so that there is a second and third write to die in
    left = [writes_before_death]

    def die():
        if left[0] == 0:
            tree.before_write = lambda: None
            raise Killed
        left[0] -= 1

    tree.before_write = die
    if writes_before_death < 2:
        with pytest.raises(Killed):
            operations.run(operation.id, clock=clock)
        clock.advance(settings.ENVIRONMENT.lease_s + 1)
    done = run_to_the_end(operation.id, clock)
    assert done.state == "succeeded"
    assert len(ports(instance)) == 3
    assert stored(tree, instance).generation == instance_fresh(instance.id).generation


def test_an_operators_limits_of_a_spec_of_version_1_stay_when_the_tenant_changes_what_he_bought(
    alice, instance, tree, brokers
):
    published, version = coordination.spec_read(tree, instance.id)
    limits = replace(published.limits, topics=7, requests_per_s=500)
    written = replace(published, limits=limits, generation=published.generation + 1)
    tree.write([Put(f"{INSTANCES_PATH}/{instance.id}", written.to_json(), version)])
    _, operation = services.instance_update(
        organisation=alice.organisation, actor="alice", instance_id=instance.id, changes={"partitions": 90}
    )
    assert run_to_the_end(operation.id).state == "succeeded"
    assert stored(tree, instance).limits == replace(limits, partitions=90)
    brokers.apply()
    assert isinstance(reconcile.converge(instance.id), Settled)


def test_a_change_reaches_the_brokers(alice, instance, tree):
    _, operation = services.instance_update(
        organisation=alice.organisation,
        actor="alice",
        instance_id=instance.id,
        changes={"bandwidth_mib_per_s": 20, "name": "renamed"},
    )
    assert run_to_the_end(operation.id).state == "succeeded"
    assert stored(tree, instance).limits.produce_bytes_per_s == 20 * MIB
    assert instance_fresh(instance.id).name == "renamed"


@pytest.mark.parametrize(
    "bad",
    [{"bandwidth_mib_per_s": 0}, {"bandwidth_mib_per_s": -1}, {"storage_gib": 0}, {"storage_gib": float("inf")},
     {"partitions": 0}, {"partitions": 1.5}, {"partitions": True}, {"name": " "}, {"name": "a\nb"}, {"name": "x" * 129},
     {"whitelist": ["nonsense"]}],
)  # fmt: skip
def test_what_cannot_be_bought_is_refused_before_anything_is_written(alice, bad):
    with pytest.raises(Invalid) as refusal:
        create(alice, **bad)
    assert refusal.value.errors[0].field.startswith(next(iter(bad)))
    assert not Instance.objects.unscoped("a test").exists()
    assert not Operation.objects.unscoped("a test").exists()


def test_a_full_cluster_says_so(alice, instance):
    instance.cluster.capacity = 1
    instance.cluster.save()
    with pytest.raises(CapacityExhausted):
        create(alice)


def test_a_whitelist_is_in_zookeeper_when_the_call_returns(alice, instance, tree):
    services.instance_whitelist_set(
        organisation=alice.organisation, actor="alice", instance_id=instance.id, cidrs=["10.0.0.0/8"]
    )
    assert stored(tree, instance).whitelist == ("10.0.0.0/8",)
    assert stored(tree, instance).generation == instance.generation + 1


def test_a_whitelist_that_zookeeper_did_not_take_is_published_by_the_reconciler(alice, instance, tree):
    tree.away = True
    with pytest.raises(ClusterUnavailable, match="is stored"):
        services.instance_whitelist_set(
            organisation=alice.organisation, actor="alice", instance_id=instance.id, cidrs=[]
        )
    tree.away = False
    assert stored(tree, instance).whitelist == ("127.0.0.0/8",)
    reconcile.reconcile_all()
    assert stored(tree, instance).whitelist == ()


def test_writers_that_race_lose_nothing_of_each_other(alice, instance, monkeypatch):
    """The second writer comes in between the first one's reading and writing."""
    read = services.instance_get
    reads = []

    def read_and_be_overtaken(**arguments):
        row = read(**arguments)
        reads.append(row)
        if len(reads) == 2:  # behind the lock on the row, which SQLite does not have
            services.instance_topic_whitelist_set(
                organisation=alice.organisation, actor="bob", instance_id=instance.id, topic="b", cidrs=["10.0.0.2"]
            )
        return row

    monkeypatch.setattr(services, "instance_get", read_and_be_overtaken)
    services.instance_topic_whitelist_set(
        organisation=alice.organisation, actor="alice", instance_id=instance.id, topic="a", cidrs=["10.0.0.1"]
    )
    assert instance_fresh(instance.id).topic_whitelists == {"a": ["10.0.0.1/32"], "b": ["10.0.0.2/32"]}


def test_a_late_writer_does_not_put_an_older_generation_over_a_newer_one(instance, tree):
    old = stored(tree, instance)
    newer = replace(old, generation=old.generation + 5, whitelist=("10.0.0.0/8",))
    tree.put(f"/sluice/instances/{instance.id}", newer.to_json())
    reconcile.publish(tree, instance.id)
    assert stored(tree, instance) == newer


def test_the_database_outranks_a_zookeeper_that_holds_something_else(instance, tree):
    strange = replace(stored(tree, instance), generation=40, whitelist=("0.0.0.0/0",))
    tree.put(f"/sluice/instances/{instance.id}", strange.to_json())
    reconcile.reconcile_all()
    assert stored(tree, instance).whitelist == ("127.0.0.0/8",)
    assert stored(tree, instance).generation == 41


@pytest.mark.parametrize("damage", ["lost", "not json"])
def test_a_spec_that_zookeeper_lost_is_written_again(instance, tree, damage):
    before = stored(tree, instance)
    path = f"/sluice/instances/{instance.id}"
    if damage == "lost":
        del tree.nodes[path]
    else:
        tree.nodes[path] = (b"{", 7)
    tree.after_write = lambda: None
    reconcile.reconcile_all()
    assert stored(tree, instance) == before


def test_a_broker_that_joins_later_gets_its_address(instance, brokers, tree):
    brokers.start(4)
    reconcile.reconcile_all()
    assert sorted(stored(tree, instance).routes[0].endpoints) == [1, 2, 3, 4]
    assert brokers.served[4][instance.id].problem is None


def test_deleting_closes_listeners_first_and_leaves_nothing(alice, instance, brokers, tree, admin):
    key = instance.id.removeprefix("ins-")
    admin.create(f"{key}.orders", partitions=2, replication_factor=3, config={})
    admin.create("otherkey.orders", partitions=2, replication_factor=3, config={})
    seen = []
    delete = admin.delete
    admin.delete = lambda names: (seen.append(stored(tree, instance).state.value), delete(names))
    operation = lifecycle.instance_delete(organisation=alice.organisation, actor="alice", instance_id=instance.id)
    assert instance_fresh(instance.id).state == "deleting"
    done = run_to_the_end(operation.id)
    assert done.state == "succeeded"
    assert [step["name"] for step in done.steps] == [
        "close listeners",
        "delete topics",
        "retire specification",
        "remove specification",
        "free addresses",
    ]
    assert seen[0] == "stopped"
    assert list(admin.topics) == ["otherkey.orders"]
    assert f"/sluice/instances/{instance.id}" not in tree.nodes
    assert ports(instance) == {}
    assert instance_fresh(instance.id).state == "deleted"
    reconcile.reconcile_all()
    assert f"/sluice/instances/{instance.id}" not in tree.nodes


def test_deleting_twice_is_the_same_operation(alice, instance):
    arguments = {"organisation": alice.organisation, "actor": "alice", "instance_id": instance.id}
    assert lifecycle.instance_delete(**arguments).id == lifecycle.instance_delete(**arguments).id


def test_an_instance_that_is_still_coming_up_can_be_deleted(alice, brokers, tree, clock):
    brokers.paused.add(1)
    instance, creation = create(alice)
    clock.time = creation.runnable_at
    operations.run(creation.id, clock=clock)
    deletion = lifecycle.instance_delete(organisation=alice.organisation, actor="alice", instance_id=instance.id)
    brokers.paused.clear()
    brokers.apply()
    assert run_to_the_end(creation.id, clock).error == "the instance is being deleted"
    assert run_to_the_end(deletion.id, clock).state == "succeeded"
    assert instance_fresh(instance.id).state == "deleted"


def test_an_instance_that_goes_cannot_be_changed(alice, instance):
    lifecycle.instance_delete(organisation=alice.organisation, actor="alice", instance_id=instance.id)
    with pytest.raises(Conflict, match="being deleted"):
        services.instance_whitelist_set(
            organisation=alice.organisation, actor="alice", instance_id=instance.id, cidrs=[]
        )


def test_bootstrap_names_every_broker(instance):
    from controlplane.clusters.selectors import ports_of

    assert (
        bootstrap_of(routes_wanted(instance.id), ports_of(instance.id))
        == "127.0.0.1:20100,127.0.0.1:20101,127.0.0.1:20102"
    )


def test_what_people_do_is_in_the_audit_trail(alice, instance):
    entries = AuditEntry.objects.for_organisation(alice.organisation).filter(target=instance.id)
    assert [(entry.actor, entry.action) for entry in entries] == [("alice@example.com", "instance.create")]
    assert entries[0].detail["whitelist"] == ["127.0.0.0/8"]
