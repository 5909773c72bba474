"""An instance that is deleted is kept for a while: isolated, restored, or destroyed, by its owner or by the clock."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from controlplane.clusters.models import PortAllocation
from controlplane.core import operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.errors import ClusterFull, ClusterUnavailable, Conflict
from controlplane.core.models import AuditEntry, Operation
from controlplane.instances import lifecycle, reconcile, services
from controlplane.instances.models import Instance
from controlplane.instances.selectors import instance_fresh
from quota.contracts.instance import INSTANCES_PATH, InstanceState

from .conftest import WANTED, run_to_the_end
from .test_instances_api import URL, problem

pytestmark = pytest.mark.usefixtures("grace")
NAME = {"name": "events"}


@pytest.fixture
def url(instance):
    return f"{URL}/{instance.id}"


@pytest.fixture
def isolated(alice, url, instance, admin):
    """Alice's, with a topic in it; deleted and closed on every broker."""
    admin.create(f"{instance.id.removeprefix('ins-')}.orders", partitions=2, replication_factor=3, config={})
    assert ended(alice.api.delete(url)).state == "succeeded"
    return url


def ended(answer, clock=None):
    assert answer.status_code == 202, answer.content
    return run_to_the_end(answer.json()["operation_id"], clock)


def shown(person, url):
    return person.api.get(url).json()


def row():
    return Instance.objects.unscoped("a test").get()


def asked(kind):
    return Operation.objects.unscoped("a test").filter(kind=kind)


def due(clock):
    """The end of the grace period."""
    clock.time = row().destroys_at
    return clock


# --- isolated ---------------------------------------------------------------------------------------------------------


def test_deleting_closes_it_and_keeps_everything(alice, url, instance, tree, admin, grace):
    before, ports = shown(alice, url), list(PortAllocation.objects.order_by("pk").values())
    admin.create(f"{instance.id.removeprefix('ins-')}.orders", partitions=2, replication_factor=3, config={})
    begun = SYSTEM_CLOCK.now()
    operation = ended(alice.api.delete(url))
    assert [step["name"] for step in operation.steps] == ["write specification", "wait for brokers"]
    assert tree.spec(instance.id).state is InstanceState.STOPPED
    after = shown(alice, url)
    assert after["state"] == "isolated"
    kept = ("name", "bootstrap", "bandwidth_mib_per_s", "storage_gib", "partitions", "config", "whitelist")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert list(PortAllocation.objects.order_by("pk").values()) == ports
    assert [name.partition(".")[2] for name in admin.topics] == ["orders"]
    assert row().destroys_at - row().isolated_at == timedelta(seconds=grace)
    assert begun <= row().isolated_at <= SYSTEM_CLOCK.now()
    assert datetime.fromisoformat(after["destroys_at"]) == row().destroys_at
    assert [each["id"] for each in alice.api.get(f"{URL}?state=isolated").json()["items"]] == [instance.id]


def test_deleting_again_answers_the_same_operation_before_and_after_its_end(alice, url):
    first = alice.api.delete(url).json()
    assert alice.api.delete(url).json() == first
    ends = row().destroys_at
    run_to_the_end(first["operation_id"])
    assert alice.api.delete(url).json() == first
    assert row().destroys_at == ends, "asking again does not prolong it"
    assert AuditEntry.objects.for_organisation(alice.organisation).filter(action="instance.delete").count() == 1


def test_nothing_of_it_can_be_changed(alice, isolated):
    for method, path, body in (
        ("patch", "", {"name": "other"}),
        ("patch", "", {"partitions": 90}),
        ("patch", "", {"deletion_protection": True}),
        ("put", "/whitelist", {"cidrs": []}),
        ("post", "/topics", {"name": "t", "partitions": 1}),
        ("delete", "/topics/orders", None),
        ("post", "/routes", {"security": "plaintext"}),
        ("post", "/users", {"name": "ann"}),
    ):
        refused = problem(getattr(alice.api, method)(isolated + path, body), 409, "instance_isolated")
        assert "restore it first" in refused["detail"]
    assert row().whitelist == WANTED["whitelist"]


@pytest.mark.parametrize("path", ["messages", "messages/0/0"])
def test_nobody_reads_its_messages_through_the_service_either(alice, isolated, instance, admin, path):
    admin.messages.write(f"{instance.id.removeprefix('ins-')}.orders", 0, b"a message")
    problem(alice.api.get(f"{isolated}/topics/orders/{path}"), 409, "instance_isolated")
    ended(alice.api.post(f"{isolated}/restore"))
    assert alice.api.get(f"{isolated}/topics/orders/{path}").status_code == 200


def test_what_never_was_open_has_nothing_to_keep(alice, brokers):
    brokers.paused.add(1)
    made = alice.api.post(URL, WANTED).json()
    alice.api.delete(f"{URL}/{made['id']}")
    assert row().state == "deleting"
    assert asked("instance.delete").count() == 1


def test_without_a_grace_period_deleting_destroys(alice, url, no_grace, settings):
    settings.ENVIRONMENT = type(settings.ENVIRONMENT).read({"SLUICE_DELETION_GRACE_S": "0"})
    assert ended(alice.api.delete(url)).kind == "instance.delete"
    assert row().state == "deleted"


def test_a_dry_run_says_until_when_it_would_be_kept(alice, url):
    said = alice.api.delete(f"{url}?dry_run=true").json()
    assert said["changes"]["state"] == ["running", "isolated"]
    assert said["changes"]["destroys_at"][0] is None
    assert f"until {said['changes']['destroys_at'][1]} it could be restored" in said["problems"][0]
    assert said["price"]["per_month_after"] is None
    assert row().state == "running"


def test_a_dry_run_on_an_isolated_one_has_nothing_to_change(alice, isolated):
    said = alice.api.delete(f"{isolated}?dry_run=true").json()
    assert (said["changes"], said["problems"]) == ({}, ["it is isolated already"])


def test_a_broker_that_was_away_closes_it_when_it_is_back(alice, url, brokers, tree, instance):
    brokers.paused.add(2)
    assert ended(alice.api.delete(url)).state == "failed"
    assert row().state == "isolated"
    brokers.paused.clear()
    brokers.apply()
    reconcile.reconcile_all()
    generation = tree.spec(instance.id).generation
    assert {served[instance.id].generation for served in brokers.served.values()} == {generation}


@pytest.mark.parametrize("lost", ["the node", "its state"])
def test_it_is_kept_shut_when_zookeeper_loses_that(isolated, brokers, tree, instance, lost):
    path = f"{INSTANCES_PATH}/{instance.id}"
    if lost == "the node":
        del tree.nodes[path]
    else:
        data, version = tree.nodes[path]
        tree.nodes[path] = (data.replace(b'"stopped"', b'"running"'), version)
    reconcile.reconcile_all()
    assert tree.spec(instance.id).state is InstanceState.STOPPED
    assert row().state == "isolated"


def test_a_round_of_the_reconciler_asks_nothing_about_one_that_is_shut(isolated, tree, monkeypatch):
    reconcile.reconcile_all()
    monkeypatch.setattr(reconcile, "converge", lambda *_, **__: pytest.fail("it is settled"))
    reconcile.reconcile_all()


def test_it_holds_its_place(alice, isolated, instance):
    instance.cluster.capacity = 1
    instance.cluster.save()
    with pytest.raises(ClusterFull):
        services.instance_create(organisation=alice.organisation, actor="a", **WANTED)
    assert ended(alice.api.post(f"{isolated}/restore")).state == "succeeded"


# --- restored ---------------------------------------------------------------------------------------------------------


def test_restored_it_is_as_it_was(alice, instance, url, tree, admin):
    before = shown(alice, url)
    admin.create(f"{instance.id.removeprefix('ins-')}.orders", partitions=2, replication_factor=3, config={})
    ended(alice.api.delete(url))
    answer = alice.api.post(f"{url}/restore")
    assert shown(alice, url)["state"] == "restoring"
    operation = ended(answer)
    assert [step["name"] for step in operation.steps] == [
        "allocate addresses",
        "write specification",
        "wait for brokers",
        "open for use",
    ]
    after = shown(alice, url)
    assert after == before | {"health": after["health"]}
    assert (after["isolated_at"], after["destroys_at"]) == (None, None)
    spec = tree.spec(instance.id)
    assert (spec.state, spec.whitelist) == (InstanceState.RUNNING, ("127.0.0.0/8",))
    assert [each["name"] for each in alice.api.get(f"{url}/topics").json()["items"]] == ["orders"]
    entries = AuditEntry.objects.for_organisation(alice.organisation).order_by("pk")
    assert list(entries.values_list("action", flat=True))[-2:] == ["instance.delete", "instance.restore"]


def test_restoring_again_answers_the_same_operation_before_and_after_its_end(alice, isolated):
    first = alice.api.post(f"{isolated}/restore").json()
    assert alice.api.post(f"{isolated}/restore").json() == first
    run_to_the_end(first["operation_id"])
    assert alice.api.post(f"{isolated}/restore").json() == first


def test_it_can_be_deleted_and_restored_again_and_again(alice, isolated):
    seen = set()
    for _ in range(3):
        seen.add(ended(alice.api.post(f"{isolated}/restore")).id)
        assert row().state == "running"
        seen.add(ended(alice.api.delete(isolated)).id)
        assert row().state == "isolated"
    assert len(seen) == 6


def test_what_is_not_isolated_is_not_restored(alice, url, brokers):
    problem(alice.api.post(f"{url}/restore"), 409, "instance_not_isolated")
    alice.api.post(f"{url}/destroy", NAME)
    problem(alice.api.post(f"{url}/restore"), 409, "instance_deleting")


def test_a_restoration_that_gave_up_is_finished_by_the_reconciler_or_begun_again(alice, isolated, brokers):
    brokers.paused.add(2)
    first = ended(alice.api.post(f"{isolated}/restore"))
    assert (first.state, row().state) == ("failed", "restoring")
    again = alice.api.post(f"{isolated}/restore").json()["operation_id"]
    assert again != first.id
    brokers.paused.clear()
    brokers.apply()
    reconcile.reconcile_all()
    assert row().state == "running"
    assert run_to_the_end(again).state == "succeeded"


def test_a_broker_that_came_meanwhile_serves_it_once_it_is_restored(alice, isolated, instance, brokers, tree):
    brokers.start(4)
    reconcile.reconcile_all()
    assert tree.spec(instance.id).hosts == (1, 2, 3)
    ended(alice.api.post(f"{isolated}/restore"))
    assert tree.spec(instance.id).hosts == (1, 2, 3, 4)


def test_one_who_restores_before_it_is_closed_is_obeyed(alice, url, instance, tree):
    closing = alice.api.delete(url).json()["operation_id"]
    opening = alice.api.post(f"{url}/restore").json()["operation_id"]
    overtaken = run_to_the_end(closing)
    assert (overtaken.state, overtaken.error_code) == ("failed", "operation_overtaken")
    assert run_to_the_end(opening).state == "succeeded"
    assert (row().state, tree.spec(instance.id).state) == ("running", InstanceState.RUNNING)


def test_one_who_deletes_before_it_is_open_again_is_obeyed(alice, isolated, instance, tree):
    opening = alice.api.post(f"{isolated}/restore").json()["operation_id"]
    closing = alice.api.delete(isolated).json()["operation_id"]
    assert run_to_the_end(opening).error_code == "operation_overtaken"
    assert run_to_the_end(closing).state == "succeeded"
    assert (row().state, tree.spec(instance.id).state) == ("isolated", InstanceState.STOPPED)


# --- destroyed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["isolated", "running"])
def test_its_owner_destroys_it_at_once_by_its_name(alice, url, instance, tree, admin, first):
    admin.create(f"{instance.id.removeprefix('ins-')}.orders", partitions=2, replication_factor=3, config={})
    if first == "isolated":
        ended(alice.api.delete(url))
    operation = ended(alice.api.post(f"{url}/destroy", NAME))
    assert (operation.kind, operation.state) == ("instance.delete", "succeeded")
    assert (row().state, dict(admin.topics)) == ("deleted", {})
    assert f"{INSTANCES_PATH}/{instance.id}" not in tree.nodes
    assert not PortAllocation.objects.filter(owner=instance.id).exists()
    problem(alice.api.get(url), 404, "not_found")


def test_destroying_again_answers_the_same_operation(alice, isolated):
    first = alice.api.post(f"{isolated}/destroy", NAME).json()
    assert alice.api.post(f"{isolated}/destroy", NAME).json() == first
    assert alice.api.delete(isolated).json() == first


@pytest.mark.parametrize(
    "body", [{"name": "Events"}, {"name": ""}, {}, {"name": None}, {"name": "events", "sure": True}]
)
def test_another_name_is_no_word_that_it_is_meant(alice, isolated, body):
    problem(alice.api.post(f"{isolated}/destroy", body), 400, "invalid")
    assert row().state == "isolated"


def test_members_isolate_and_restore_and_only_owners_destroy(bob, viewer, charlie, url):
    problem(bob.api.post(f"{url}/destroy", NAME), 403, "forbidden")
    ended(bob.api.delete(url))
    problem(bob.api.post(f"{url}/destroy", NAME), 403, "forbidden")
    for path, body in (("restore", None), ("destroy", NAME)):
        problem(viewer.api.post(f"{url}/{path}", body), 403, "forbidden")
        problem(charlie.api.post(f"{url}/{path}", body), 404, "not_found")
    assert row().state == "isolated"
    assert ended(bob.api.post(f"{url}/restore")).state == "succeeded"


def test_a_protected_one_is_destroyed_by_nobody(alice, url):
    alice.api.patch(url, {"deletion_protection": True})
    problem(alice.api.post(f"{url}/destroy", NAME), 409, "deletion_protected")
    assert row().state == "running"


# --- the clock --------------------------------------------------------------------------------------------------------


def test_the_grace_period_ends_by_the_clock(alice, isolated, clock, admin, tree, instance):
    due(clock).advance(-1)
    assert lifecycle.grace_periods_end(clock=clock) == 0
    clock.advance(1)
    assert lifecycle.grace_periods_end(clock=clock) == 1
    assert lifecycle.grace_periods_end(clock=clock) == 0, "it has begun"
    operation = asked("instance.delete").get()
    assert operation.actor == "system"
    assert run_to_the_end(operation.id, clock).state == "succeeded"
    assert (row().state, dict(admin.topics)) == ("deleted", {})
    assert f"{INSTANCES_PATH}/{instance.id}" not in tree.nodes
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action="instance.destroy")
    assert entry.actor == "system"
    assert lifecycle.grace_periods_end(clock=clock) == 0


def test_what_was_restored_stays(alice, isolated, clock):
    ends = due(clock)
    ended(alice.api.post(f"{isolated}/restore"))
    ends.advance(1)
    assert lifecycle.grace_periods_end(clock=ends) == 0
    assert row().state == "running"


def test_a_destruction_that_gave_up_is_begun_again(isolated, clock, admin):
    admin.away = True
    lifecycle.grace_periods_end(clock=due(clock))
    first = asked("instance.delete").get()
    assert run_to_the_end(first.id, clock).state == "failed"
    assert lifecycle.grace_periods_end(clock=clock) == 0, "not at once"
    clock.advance(601)
    admin.away = False
    assert lifecycle.grace_periods_end(clock=clock) == 1
    second = asked("instance.delete").exclude(pk=first.pk).get()
    assert run_to_the_end(second.id, clock).state == "succeeded"
    assert row().state == "deleted"


def test_one_that_cannot_be_looked_after_holds_up_no_other(alice, isolated, brokers, clock, monkeypatch):
    other, creation = services.instance_create(organisation=alice.organisation, actor="a", **WANTED | {"name": "b"})
    run_to_the_end(creation.id)
    ill = Instance.objects.unscoped("a test").get(state="isolated")
    lifecycle.instance_delete(organisation=alice.organisation, actor="a", instance_id=other.id)
    clock.time = instance_fresh(other.id).destroys_at
    destroy = lifecycle._destroy

    def fails(instance, *rest):
        if instance.pk == ill.pk:
            raise ValueError("not foreseen")
        return destroy(instance, *rest)

    monkeypatch.setattr(lifecycle, "_destroy", fails)
    assert lifecycle.grace_periods_end(clock=clock) == 1
    assert [instance_fresh(each).state for each in (ill.pk, other.pk)] == ["isolated", "deleting"]


def test_a_round_begins_with_so_many_and_the_next_one_with_the_rest(isolated, clock, monkeypatch):
    monkeypatch.setattr(lifecycle, "AT_ONCE", 0)
    assert lifecycle.grace_periods_end(clock=due(clock)) == 0
    monkeypatch.undo()
    assert lifecycle.grace_periods_end(clock=clock) == 1


# --- killed -----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """SIGKILL."""


WAYS = {
    "isolate": lambda alice, url: alice.api.delete(url),
    "restore": lambda alice, url: alice.api.post(f"{url}/restore"),
    "destroy": lambda alice, url: alice.api.post(f"{url}/destroy", NAME),
}
ENDS = {"isolate": "isolated", "restore": "running", "destroy": "deleted"}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("writes", range(8))
def test_a_worker_killed_between_any_two_writes_is_succeeded_by_another(
    alice, url, clock, settings, monkeypatch, way, moment, writes
):
    """Each write of the operation's row is such a moment: the step was taken, or its note was just written."""
    if way != "isolate":
        ended(alice.api.delete(url))
    operation_id = WAYS[way](alice, url).json()["operation_id"]
    save, left = operations._save, [writes]

    def dies(operation, changes):
        if left[0] == 0 and moment == "before":
            raise Killed
        saved = save(operation, changes)
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        return saved

    clock.time = Operation.objects.unscoped("a test").get(pk=operation_id).runnable_at
    monkeypatch.setattr(operations, "_save", dies)
    with suppress(Killed):  # some have fewer writes
        operations.run(operation_id, clock=clock)
    monkeypatch.setattr(operations, "_save", save)
    clock.advance(settings.ENVIRONMENT.lease_s + 1)
    assert run_to_the_end(operation_id, clock).state == "succeeded"
    assert row().state == ENDS[way]


@pytest.mark.parametrize("way", ["isolate", "restore"])
def test_without_zookeeper_it_is_tried_again(alice, url, tree, clock, way):
    if way == "restore":
        ended(alice.api.delete(url))
    operation_id = WAYS[way](alice, url).json()["operation_id"]
    clock.time = Operation.objects.unscoped("a test").get(pk=operation_id).runnable_at
    tree.away = True
    operations.run(operation_id, clock=clock)
    tree.away = False
    assert run_to_the_end(operation_id, clock).state == "succeeded"
    assert row().state == ENDS[way]


def test_a_request_that_fails_leaves_nothing_changed(alice, url, monkeypatch):
    monkeypatch.setattr(lifecycle, "_started", lambda *_: (_ for _ in ()).throw(ClusterUnavailable("no")))
    assert alice.api.delete(url).status_code == 503
    assert (row().state, row().spec_state, row().destroys_at) == ("running", "running", None)


def test_who_is_told_that_it_is_gone_is_not_told_of_a_race(alice, url, monkeypatch):
    """The row was found, and destroyed before it could be locked."""
    Instance.objects.unscoped("a test").update(state="deleted")
    monkeypatch.setattr(services, "instance_get", lambda **_: row())
    problem(alice.api.post(f"{url}/restore"), 404, "not_found")


def test_routes_are_not_opened_while_it_is_isolated(alice, isolated, instance):
    with pytest.raises(Conflict, match="restore it first"):
        services.instance_row_change(alice.organisation, instance.id, lambda _instance: {})
