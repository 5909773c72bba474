"""Spreading leaders by REST: a dry run, the operation, and who may ask for it when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from controlplane.clusters.models import Broker
from controlplane.core import operations
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.models import AuditEntry, Operation
from controlplane.core.operations import Finished, NotYet
from controlplane.kafka.client import Layout, Partition
from controlplane.kafka.placing import Ongoing, Refusal
from controlplane.rebalancing.models import MoveState, Rebalance, RebalanceMove, RebalanceState
from controlplane.remedies import leaders
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.rebalancing.rows import rebalance_row
from tests.controlplane.test_instances_api import problem

MIB = 2**20


@pytest.fixture
def topic(instance, admin, flow_master):
    """Three partitions on brokers 1 to 3, all led by broker 1, which carries all there is."""
    physical = f"{instance.id.removeprefix('ins-')}.orders"
    parts = tuple(Partition(number, 1, (1, 2, 3), (1, 2, 3)) for number in range(3))
    admin.topics[physical] = Layout(physical, parts)
    flow_master.answers[instance.id] = {
        "produce": {"brokers": [{"broker": 1, "leaders": 3, "flow": 9 * MIB}]},
        "consume": {"brokers": [{"broker": 1, "leaders": 3, "flow": 3 * MIB}]},
    }
    return physical


def spread(person, instance, query=""):
    return person.api.post(f"/api/v1/instances/{instance.id}/leaders/spread{query}")


def led_by(admin, physical):
    return [each.leader for each in admin.topics[physical].partitions]


def test_a_dry_run_says_who_would_lead_what_and_what_each_broker_would_carry(alice, instance, topic, admin):
    answer = spread(alice, instance, "?dry_run=true")
    assert answer.status_code == 200, answer.content
    changes = answer.json()["changes"]
    assert changes["leaders.orders.0"] == [1, 2]
    assert changes["leaders.orders.1"] == [1, 3]
    assert "leaders.orders.2" not in changes
    assert changes["brokers.1.produce_bytes_per_s"] == [9 * MIB, 3 * MIB]
    assert changes["brokers.2.produce_bytes_per_s"] == [0, 3 * MIB]
    assert changes["brokers.3.consume_bytes_per_s"] == [0, MIB]
    assert changes["brokers.1.leaders"] == [3, 1]
    assert led_by(admin, topic) == [1, 1, 1]
    assert not Operation.objects.for_organisation(alice.organisation).filter(kind=leaders.KIND).exists()


def test_the_operation_has_them_led_so_and_copies_nothing(alice, instance, topic, admin):
    answer = spread(alice, instance)
    assert answer.status_code == 202, answer.content
    operation = run_to_the_end(answer.json()["operation_id"])
    assert operation.state == "succeeded", operation.error
    assert led_by(admin, topic) == [2, 3, 1]
    assert admin.placement.most_at_once == 0
    assert operation.result == {"moved": 2, "skipped": {}}
    entry = AuditEntry.objects.for_organisation(alice.organisation).get(action=leaders.KIND)
    assert (entry.target, entry.actor) == (instance.id, "alice@example.com")
    assert entry.detail == {"partitions": 2, "leads": ["orders/0: 1 → 2", "orders/1: 1 → 3"]}


def test_it_is_asked_for_once_in_five_minutes(alice, instance, topic, admin):
    run_to_the_end(spread(alice, instance).json()["operation_id"])
    admin.topics[topic] = Layout(topic, tuple(Partition(number, 1, (1, 2, 3), (1, 2, 3)) for number in range(3)))
    for query in ("", "?dry_run=true"):
        refused = spread(alice, instance, query)
        problem(refused, 429, "too_many_requests")
        assert 290 <= int(refused.headers["Retry-After"]) <= 300
    rows = Operation.objects.for_organisation(alice.organisation).filter(kind=leaders.KIND)
    rows.update(created_at=SYSTEM_CLOCK.now() - timedelta(minutes=5))
    assert spread(alice, instance).status_code == 202


def test_of_two_at_once_one_is_begun(alice, instance, topic, monkeypatch):
    """The second has planned before the first has begun."""
    plan, inside = leaders.leaders_plan, []

    def planned(**asked):
        found = plan(**asked)
        if not inside:
            inside.append(True)
            assert spread(alice, instance).status_code == 202
        return found

    monkeypatch.setattr(leaders, "leaders_plan", planned)
    problem(spread(alice, instance), 429, "too_many_requests")
    assert Operation.objects.for_organisation(alice.organisation).filter(kind=leaders.KIND).count() == 1


def test_where_nothing_would_be_better_nothing_is_begun(alice, instance, topic, admin):
    admin.topics[topic] = Layout(topic, tuple(Partition(n, n + 1, (n + 1, 1), (n + 1, 1)) for n in range(3)))
    problem(spread(alice, instance), 409, "nothing_to_spread")
    problem(spread(alice, instance, "?dry_run=true"), 409, "nothing_to_spread")


@pytest.mark.parametrize("aside", ["draining", "demoted", "cordoned"])
def test_a_broker_that_operators_have_set_aside_is_given_no_lead(alice, instance, topic, aside):
    row = rebalance_row(instance.cluster)
    wishes = {"draining": [], "cordoned": [], "demoted": [], "instances": [], "leaders_only": False, aside: [2]}
    Rebalance.objects.filter(pk=row.pk).update(begun_at=SYSTEM_CLOCK.now(), state=RebalanceState.DONE, wishes=wishes)
    RebalanceMove.objects.filter(rebalance=row).delete()
    changes = spread(alice, instance, "?dry_run=true").json()["changes"]
    assert {after for name, (_, after) in changes.items() if name.startswith("leaders.")} == {3}


def test_a_broker_that_is_away_is_given_no_lead(alice, instance, topic):
    Broker.objects.filter(broker_id=3).update(away_since=SYSTEM_CLOCK.now())
    changes = spread(alice, instance, "?dry_run=true").json()["changes"]
    assert {after for name, (_, after) in changes.items() if name.startswith("leaders.")} == {2}


def moving(instance, physical, state=RebalanceState.RUNNING):
    row = rebalance_row(instance.cluster)
    Rebalance.objects.filter(pk=row.pk).update(begun_at=SYSTEM_CLOCK.now(), state=state)
    RebalanceMove.objects.filter(rebalance=row).delete()
    return RebalanceMove.objects.create(
        rebalance=row, number=0, topic=physical, partition=0, instance=instance.id, before=[1, 2, 3], after=[2, 3, 1],
        size_bytes=0, copies=False, bytes_to_copy=0, state=MoveState.WAITING,
    )  # fmt: skip


def test_while_operators_move_its_partitions_nobody_else_does(alice, instance, topic):
    move = moving(instance, topic)
    problem(spread(alice, instance), 409, "rebalance_under_way")
    RebalanceMove.objects.filter(pk=move.pk).update(state=MoveState.DONE)
    assert spread(alice, instance, "?dry_run=true").status_code == 200


def test_a_rebalance_that_began_since_goes_first(alice, instance, topic, admin):
    begun = spread(alice, instance).json()["operation_id"]
    moving(instance, topic)
    operation = run_to_the_end(begun)
    assert operation.state == "succeeded"
    assert led_by(admin, topic) == [1, 1, 1]
    assert set(operation.result["skipped"]) == {"orders/0", "orders/1"}


def test_what_has_changed_since_or_is_refused_is_left_as_it_is_and_named(alice, instance, topic, admin):
    begun = spread(alice, instance).json()["operation_id"]
    _first, second, third = admin.topics[topic].partitions
    admin.topics[topic] = Layout(topic, (Partition(0, 1, (1, 2, 3), (1, 3)), second, third))
    admin.placement.refused = {(topic, 1): Refusal(1, "not now")}
    operation = run_to_the_end(begun)
    assert (operation.state, operation.result["moved"]) == ("succeeded", 0)
    assert operation.result["skipped"] == {
        "orders/0": "broker 2 is not in sync",
        "orders/1": "the cluster has refused it",
    }
    assert led_by(admin, topic) == [1, 1, 1]


@pytest.mark.parametrize("why", ["drained", "away"])
def test_a_broker_that_was_set_aside_or_went_away_since_is_given_no_lead(alice, instance, topic, admin, why):
    begun = spread(alice, instance).json()["operation_id"]
    if why == "away":
        Broker.objects.filter(broker_id=2).update(away_since=SYSTEM_CLOCK.now())
    else:
        row = rebalance_row(instance.cluster)
        wishes = {"draining": [2], "cordoned": [], "demoted": [], "instances": [], "leaders_only": False}
        Rebalance.objects.filter(pk=row.pk).update(
            begun_at=SYSTEM_CLOCK.now(), state=RebalanceState.DONE, wishes=wishes
        )
        RebalanceMove.objects.filter(rebalance=row).delete()
    operation = run_to_the_end(begun)
    assert operation.result == {"moved": 1, "skipped": {"orders/0": "broker 2 is given no lead"}}
    assert led_by(admin, topic) == [1, 3, 1]


def test_of_many_operations_on_a_cluster_those_asked_for_first_run(alice, instance, topic, admin, monkeypatch):
    monkeypatch.setattr(leaders, "MOST_AT_ONCE", 1)
    begun = spread(alice, instance).json()["operation_id"]
    mine = Operation.objects.for_organisation(alice.organisation).get(pk=begun)
    other = operations.start(
        organisation=alice.organisation, kind=leaders.KIND, target=instance.id, arguments=mine.arguments
    )
    outcome = leaders.lead(other)
    assert isinstance(outcome, NotYet)
    assert led_by(admin, topic) == [1, 1, 1]
    run_to_the_end(begun)
    assert isinstance(leaders.lead(other), Finished), "it is the first now, and finds all done"


def test_leads_are_asked_for_some_at_a_time(alice, instance, topic, admin, monkeypatch):
    monkeypatch.setattr(leaders, "MOST_LEADS", 1)
    begun = spread(alice, instance).json()["operation_id"]
    operation = Operation.objects.for_organisation(alice.organisation).get(pk=begun)
    assert isinstance(leaders.lead(operation), NotYet)
    assert led_by(admin, topic) == [2, 1, 1]
    assert isinstance(leaders.lead(operation), NotYet)
    assert led_by(admin, topic) == [2, 3, 1]
    assert leaders.lead(operation).result == {"moved": 2, "skipped": {}}


def test_what_is_being_copied_is_not_put_in_another_order(alice, instance, topic, admin):
    begun = spread(alice, instance).json()["operation_id"]
    admin.placement.ongoing = {(topic, 0): Ongoing((1, 2, 3, 4), (4,), (3,))}
    operation = run_to_the_end(begun)
    assert operation.result == {"moved": 1, "skipped": {"orders/0": "its replicas are being moved"}}


def test_a_worker_that_dies_in_the_middle_is_followed_by_one_that_ends_it(alice, instance, topic, admin):
    begun = spread(alice, instance).json()["operation_id"]
    died = []

    def die(name):
        if name == "elect" and not died:
            died.append(name)
            raise RuntimeError("the worker is gone")

    admin.placement.before_call = die
    assert run_to_the_end(begun).state == "succeeded"
    assert died
    assert led_by(admin, topic) == [2, 3, 1]


def test_viewers_may_not_and_strangers_do_not_find_it(viewer, charlie, instance, topic):
    for query in ("", "?dry_run=true"):
        problem(spread(viewer, instance, query), 403, "forbidden")
        theirs = spread(charlie, instance, query)
        nothing = charlie.api.post(f"/api/v1/instances/ins-00000000/leaders/spread{query}")
        assert theirs.status_code == nothing.status_code == 404
        assert theirs.content.replace(instance.id.encode(), b"ins-00000000") == nothing.content


def test_other_instances_topics_stay_where_they_are(alice, instance, topic, admin):
    admin.topics["zzzzzzzz.orders"] = admin.topics[topic]
    run_to_the_end(spread(alice, instance).json()["operation_id"])
    assert led_by(admin, "zzzzzzzz.orders") == [1, 1, 1]


def test_a_cluster_that_is_away_is_503(alice, instance, topic, admin):
    admin.away = True
    problem(spread(alice, instance), 503, "cluster_unavailable")
