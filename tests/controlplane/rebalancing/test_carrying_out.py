"""A proposal is carried out: a few partitions at a time, under a throttle, paused, cancelled, and rolled back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.clusters.models import Broker
from controlplane.core.errors import Conflict, Forbidden
from controlplane.core.models import Operation
from controlplane.instances.models import Instance
from controlplane.instances.windows import DAYS, begins_next, is_open
from controlplane.kafka.placing import Ongoing, Refusal
from controlplane.rebalancing import carrying_out, kept, services, upkeep
from controlplane.rebalancing.models import MoveState, Rebalance, RebalanceEvent, RebalanceMove, RebalanceState
from controlplane.rebalancing.selectors import balance_of, progress_of
from tests.controlplane.fakes import FakePlacement

from .conftest import MIB, begun, proposed, replicas_in, work

DRAIN = {"draining": [1], "goals": ["replicas", "leaders"]}


def states(row):
    return [move.state for move in row.moves.order_by("number")]


def finished(row, admin, clock, most=60):
    for _ in range(most):
        if (row := work(row, clock)).state in ("done", "cancelled", "failed"):
            return row
        admin.placement.copy()
    raise AssertionError(f"still {row.state}: {states(row)}")


def test_a_broker_is_drained_and_nothing_is_left_of_the_throttle(admin, cluster, clock, place):
    topic = place(admin, [1, 2, 3], [2, 3, 1], [3, 1, 2])
    row = finished(begun(cluster, clock, **DRAIN), admin, clock)
    assert (row.state, row.problem) == ("done", "")
    assert not any(1 in replicas for replicas in replicas_in(admin, topic))
    assert all(each.leader == each.replicas[0] for each in admin.topics[topic].partitions)
    assert (admin.placement.rate, admin.placement.named, row.throttle_in_force) == (None, {}, None)
    assert set(states(row)) == {"done"}


def test_leaders_move_without_a_throttle_and_without_a_copy(admin, cluster, clock, place):
    topic = place(admin, *[[1, 2, 3]] * 6)
    heard = []
    admin.placement.after_call = heard.append
    row = finished(begun(cluster, clock, goals=["leaders"], leaders_only=True), admin, clock)
    assert row.state == "done"
    assert sorted(each.leader for each in admin.topics[topic].partitions) == [1, 1, 2, 2, 3, 3]
    assert not {"throttle", "throttled"} & set(heard)


def test_no_more_partitions_are_under_way_than_asked_for(admin, cluster, clock, place):
    place(admin, *[[1, 2, 3]] * 7)
    row = finished(begun(cluster, clock, **DRAIN, at_once=2), admin, clock)
    assert (row.state, admin.placement.most_at_once) == ("done", 2)


def test_the_throttle_names_who_sends_and_who_copies_and_can_be_changed_meanwhile(admin, cluster, clock, place):
    topic = place(admin, [1, 2])
    row = work(begun(cluster, clock, draining=[1], goals=[], throttle_bytes_per_s=MIB), clock)
    (target,) = {4, 3} & set(row.moves.get().added)
    assert admin.placement.named == {topic: ("0:1,0:2", f"0:{target}")}
    assert admin.placement.rate == MIB
    services.rebalance_pace(rebalance_id=row.id, actor="olga", throttle_bytes_per_s=2 * MIB, clock=clock)
    work(row, clock)
    assert admin.placement.rate == 2 * MIB


def test_progress_counts_bytes_that_are_there(admin, cluster, clock, place):
    place(admin, [1, 2], size=1000)
    row = work(begun(cluster, clock, draining=[1], goals=[]), clock)
    admin.placement.copy(0.3)
    progress = progress_of(work(row, clock))
    assert (progress.copied_bytes, progress.bytes_to_copy, progress.percent, progress.under_way) == (300, 1000, 30, 1)


def test_paused_nothing_new_begins_and_what_is_under_way_goes_on(admin, cluster, clock, place):
    place(admin, *[[1, 2, 3]] * 4)
    row = work(begun(cluster, clock, **DRAIN, at_once=1), clock)
    services.rebalance_pause(rebalance_id=row.id, actor="olga", clock=clock)
    admin.placement.copy()
    row = work(row, clock, rounds=3)
    assert (sorted(states(row)), row.state) == (["done", "waiting", "waiting", "waiting"], "paused")
    services.rebalance_resume(rebalance_id=row.id, actor="olga", clock=clock)
    assert finished(row, admin, clock).state == "done"


def test_cancelled_what_is_under_way_comes_back_and_what_is_done_stays(admin, cluster, clock, place):
    topic = place(admin, *[[1, 2, 3]] * 3)
    row = work(begun(cluster, clock, **DRAIN, at_once=1), clock)
    admin.placement.copy()
    row = work(row, clock)
    services.rebalance_cancel(rebalance_id=row.id, actor="olga", clock=clock)
    row = work(row, clock, rounds=4)
    assert (row.state, sorted(states(row))) == ("cancelled", ["cancelled", "cancelled", "done"])
    assert sorted(replicas_in(admin, topic))[:2] == [(1, 2, 3)] * 2
    assert (admin.placement.ongoing, admin.placement.rate, admin.placement.named) == ({}, None, {})


@pytest.mark.parametrize("ended", ["done", "cancelled"])
def test_a_worker_that_dies_with_its_last_word_unsaid_changes_nothing(admin, cluster, clock, place, ended):
    place(admin, [1, 2, 3])
    row = work(begun(cluster, clock, **DRAIN), clock)
    if ended == "cancelled":
        services.rebalance_cancel(rebalance_id=row.id, actor="olga", clock=clock)
    row = finished(row, admin, clock)
    assert row.state == ended
    carrying_out.take_throttle_away(row.operation)
    row.refresh_from_db()
    assert row.state == ended


def test_rolled_back_everything_is_where_it_was(admin, cluster, clock, place):
    topic = place(admin, [1, 2, 3], [2, 3, 1], [3, 1, 2])
    before = replicas_in(admin, topic)
    row = finished(begun(cluster, clock, **DRAIN), admin, clock)
    assert replicas_in(admin, topic) != before
    back = services.rebalance_roll_back(rebalance_id=row.id, actor="olga", clock=clock)
    assert (back.state, back.summary["bytes_to_copy"]) == ("proposed", row.summary["bytes_to_copy"])
    back = services.rebalance_carry_out(rebalance_id=back.id, actor="olga", clock=clock)
    assert finished(back, admin, clock).state == "done"
    assert replicas_in(admin, topic) == before


def test_the_way_back_of_a_part_foretells_no_loads(admin, cluster, clock, place):
    place(admin, [1, 2, 3], [2, 3, 1], [3, 1, 2])
    row = finished(begun(cluster, clock, **DRAIN), admin, clock)
    RebalanceMove.objects.filter(pk=row.moves.first().pk).update(state=MoveState.CANCELLED)
    assert progress_of(row).percent < 100
    back = services.rebalance_roll_back(rebalance_id=row.id, actor="olga", clock=clock)
    assert (back.summary["brokers"], back.summary["tenants"], back.summary["scores"]) == ([], [], {})
    assert "only a part of it was moved" in back.summary["notes"][0]


def test_a_cluster_that_is_away_is_waited_for(admin, cluster, clock, place):
    place(admin, [1, 2])
    row = work(begun(cluster, clock, draining=[1], goals=[]), clock)
    admin.away = True
    row = work(row, clock, rounds=30)
    assert row.state == "running"
    admin.away = False
    clock.advance(10)
    assert finished(row, admin, clock).state == "done"


def test_what_has_changed_since_the_plan_is_left_as_it_is(admin, cluster, clock, place):
    topic = place(admin, [1, 2], [1, 3])
    row = begun(cluster, clock, draining=[1], goals=[])
    place(admin, [2, 3], [1, 3])
    row = finished(row, admin, clock)
    assert (sorted(states(row)), row.state) == (["done", "skipped"], "done")
    assert row.problem == "1 of 2 moves could not be made: each says why. Propose again for what is left"
    assert replicas_in(admin, topic)[0] == (2, 3)


def test_what_the_controller_refuses_is_said_and_the_rest_goes_on(admin, cluster, clock, place):
    topic = place(admin, [1, 2], [1, 3])
    admin.placement.refused[topic, 0] = Refusal(39, "a replica is assigned to a broker that is not alive")
    row = finished(begun(cluster, clock, draining=[1], goals=[]), admin, clock)
    assert sorted(states(row)) == ["done", "failed"]
    assert row.moves.get(state="failed").problem == "a replica is assigned to a broker that is not alive"


def test_what_somebody_else_moves_is_given_up(admin, cluster, clock, place):
    topic = place(admin, [1, 2])
    row = work(begun(cluster, clock, draining=[1], goals=[]), clock)
    admin.placement.ongoing[topic, 0] = Ongoing((9, 1, 2), (9,), (1, 2))
    row = work(row, clock, rounds=2)
    assert row.moves.get().problem == "somebody else moves it"


class TestWhoMay:
    def test_one_at_a_time_in_a_cluster(self, admin, cluster, clock, place):
        place(admin, [1, 2])
        first, second = (proposed(cluster, clock, draining=[1], goals=[]) for _ in range(2))
        services.rebalance_carry_out(rebalance_id=first.id, actor="olga", clock=clock)
        with pytest.raises(Conflict, match="one at a time"):
            services.rebalance_carry_out(rebalance_id=second.id, actor="olga", clock=clock)

    def test_asked_twice_it_begins_once(self, admin, cluster, clock, place):
        place(admin, [1, 2])
        row = begun(cluster, clock, draining=[1], goals=[])
        again = services.rebalance_carry_out(rebalance_id=row.id, actor="olga", clock=clock)
        assert again.operation_id == row.operation_id
        assert Operation.objects.unscoped("a test").filter(kind="rebalance.carry_out").count() == 1

    def test_a_second_person_has_to_approve_where_the_installation_says_so(
        self, admin, cluster, clock, place, settings
    ):
        settings.ENVIRONMENT = replace(settings.ENVIRONMENT, rebalance_approval=True)
        place(admin, [1, 2])
        row = proposed(cluster, clock, draining=[1], goals=[])
        with pytest.raises(Conflict, match="has to approve it first"):
            services.rebalance_carry_out(rebalance_id=row.id, actor="oscar@example.com", clock=clock)
        with pytest.raises(Forbidden):
            services.rebalance_approve(rebalance_id=row.id, actor="olga@example.com", clock=clock)
        services.rebalance_approve(rebalance_id=row.id, actor="oscar@example.com", clock=clock)
        row = services.rebalance_carry_out(rebalance_id=row.id, actor="olga@example.com", clock=clock)
        assert (row.state, row.approved_by) == ("running", "oscar@example.com")
        assert [event.action for event in RebalanceEvent.objects.order_by("pk")] == ["propose", "approve", "carry_out"]

    def test_a_proposal_expires(self, admin, cluster, clock, place):
        place(admin, [1, 2])
        row = proposed(cluster, clock, draining=[1], goals=[])
        clock.advance(services.EXPIRES_AFTER.total_seconds() + 1)
        with pytest.raises(Conflict, match="expired"):
            services.rebalance_carry_out(rebalance_id=row.id, actor="olga", clock=clock)
        upkeep.keep_up(clock=clock)
        row.refresh_from_db()
        assert row.state == RebalanceState.EXPIRED

    def test_a_tenant_is_not_shown_operations_of_the_service(self, admin, cluster, clock, place, alice):
        place(admin, [1, 2])
        row = begun(cluster, clock, draining=[1], goals=[])
        assert row.operation_id not in alice.api.get("/api/v1/operations").content.decode()
        assert alice.api.get(f"/api/v1/operations/{row.operation_id}").status_code == 404


def test_a_throttle_that_a_failure_left_is_taken_back(admin, cluster, clock, place):
    place(admin, [1, 2])
    row = work(begun(cluster, clock, draining=[1], goals=[]), clock)
    Rebalance.objects.filter(pk=row.pk).update(state=RebalanceState.FAILED)
    assert admin.placement.rate
    upkeep.keep_up(clock=clock)
    assert (admin.placement.rate, admin.placement.named) == (None, {})


class Killed(BaseException):
    """A SIGKILL: nothing of the worker's own code runs afterwards."""


def carried_out(admin, cluster, clock, *, killed_at=None, when="before"):
    """To the end, with a worker that dies at one call of the door; how many calls there were, and what came of it."""
    calls = 0

    def hear(_name):
        nonlocal calls
        calls += 1
        if calls == killed_at:
            raise Killed

    row = begun(cluster, clock, draining=[1], goals=["leaders"], at_once=2)
    setattr(admin.placement, f"{when}_call", hear)
    for _ in range(60):
        clock.advance(60)  # beyond the lease of a worker that died
        try:
            row = work(row, clock)
        except Killed:
            continue
        if row.state == "done":
            break
        admin.placement.copy()
    setattr(admin.placement, f"{when}_call", lambda _name: None)
    return calls, row


TOPIC = [[1, 2, 3], [2, 3, 1], [1, 3, 2], [3, 1, 2]]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_killed_at_any_call_of_the_cluster_is_made_good_by_the_next(admin, cluster, clock, place, when):
    topic = place(admin, *TOPIC)
    calls, row = carried_out(admin, cluster, clock, when=when)
    expected = replicas_in(admin, topic)
    assert row.state == "done"
    assert calls > 12
    for number in range(1, calls + 1):
        place(admin, *TOPIC)
        _, row = carried_out(admin, cluster, clock, killed_at=number, when=when)
        assert (row.state, row.problem, set(states(row))) == ("done", "", {MoveState.DONE}), number
        assert replicas_in(admin, topic) == expected, number
        assert (admin.placement.rate, admin.placement.named, admin.placement.ongoing) == (None, {}, {}), number


def test_changes_of_leaders_are_not_held_up_by_what_is_copied(admin, cluster, clock, place):
    topic = place(admin, *[[1, 2, 3]] * 6)
    row = begun(cluster, clock, draining=[3], goals=["leaders"], at_once=1)
    leaders = row.moves.filter(copies=False).count()
    work(row, clock, rounds=3)
    assert row.moves.filter(copies=True, state="moving").count() == 1
    assert row.moves.filter(copies=False, state="done").count() == leaders
    assert len(admin.placement.ongoing) == 1
    assert finished(row, admin, clock).state == "done"
    assert not any(3 in replicas for replicas in replicas_in(admin, topic))


def test_a_plan_that_gives_up_late_does_not_fail_what_is_carried_out(admin, cluster, clock, place):
    place(admin, [1, 2])
    row = proposed(cluster, clock, draining=[1], goals=[])
    planning = row.operation
    services.rebalance_carry_out(rebalance_id=row.id, actor="olga", clock=clock)
    carrying_out.mark_failed(planning)  # its worker died before it could say that it was done, and the cluster was away
    row.refresh_from_db()
    assert row.state == RebalanceState.RUNNING


def test_a_topic_whose_replicas_fill_more_than_a_setting_is_throttled_as_a_whole(admin, cluster, clock, place):
    topic = place(admin, *[[1, 2, 3]] * 3000)
    work(begun(cluster, clock, draining=[1], goals=[]), clock)
    assert admin.placement.named[topic][0] == "*"
    assert all(len(names) < 2**15 for names in admin.placement.named[topic])


def test_what_nobody_leads_is_not_moved_since_nobody_could_copy_it(admin, cluster, clock, place):
    topic = place(admin, [1], [1, 2])
    layout = admin.topics[topic]
    lost = replace(layout.partitions[0], leader=None)
    admin.topics[topic] = replace(layout, partitions=(lost, *layout.partitions[1:]))
    row = proposed(cluster, clock, draining=[1], goals=[])
    assert [move.partition for move in row.moves.all()] == [1]
    assert row.summary["stuck_count"] == 1


def test_what_is_not_called_back_goes_on_at_the_rate_that_is_asked_for_meanwhile(admin, cluster, clock, place):
    topic = place(admin, [1, 2])
    row = work(begun(cluster, clock, draining=[1], goals=[], throttle_bytes_per_s=MIB), clock)
    admin.placement.refused[topic, 0] = Refusal(39, "no replica that would be left can lead")
    services.rebalance_cancel(rebalance_id=row.id, actor="olga", clock=clock)
    services.rebalance_pace(rebalance_id=row.id, actor="olga", throttle_bytes_per_s=2 * MIB, clock=clock)
    assert work(row, clock).state == "cancelling"
    assert admin.placement.rate == 2 * MIB


def test_a_throttle_that_was_left_waits_while_another_rebalance_is_about_to_set_its_own(admin, cluster, clock, place):
    place(admin, [1, 2])
    failed = work(begun(cluster, clock, draining=[1], goals=[]), clock)
    Rebalance.objects.filter(pk=failed.pk).update(state=RebalanceState.FAILED)
    begun(cluster, clock, draining=[1], goals=[])
    upkeep.keep_up(clock=clock)
    assert admin.placement.rate is not None


def test_a_plan_says_that_it_cannot_regard_racks_that_some_brokers_do_not_name(admin, cluster, clock, place):
    place(admin, [1, 2])
    Broker.objects.filter(cluster=cluster).update(rack="a")
    Broker.objects.filter(cluster=cluster, broker_id=4).update(rack="")
    row = proposed(cluster, clock, draining=[1], goals=[])
    assert "racks are not regarded: brokers 4 do not name theirs" in row.summary["notes"]


def test_a_broker_that_does_not_answer_takes_nothing_though_nobody_has_missed_it_yet(
    admin, cluster, clock, place, monkeypatch
):
    place(admin, [1, 2])
    answers = FakePlacement.disks
    monkeypatch.setattr(
        FakePlacement, "disks", lambda door, brokers, places=None: answers(door, set(brokers) - {3, 4}, places)
    )
    row = proposed(cluster, clock, draining=[1], goals=[])
    assert [move.after for move in row.moves.all()] == [[2, 1]], "only the leader changes"
    assert row.summary["stuck_count"] == 1
    assert (
        "brokers that do not answer get no replicas, and what is on their disks is not known: 3, 4"
        in row.summary["notes"]
    )


def test_of_one_that_has_failed_nothing_is_begun_any_more(admin, cluster, clock, place):
    topic = place(admin, [1, 2])
    row = begun(cluster, clock, draining=[1], goals=[])
    Rebalance.objects.filter(pk=row.pk).update(state=RebalanceState.FAILED)
    row = work(row, clock)
    assert (row.state, replicas_in(admin, topic), admin.placement.rate) == ("failed", [(1, 2)], None)


def test_while_one_worker_looks_at_a_cluster_another_does_not(admin, cluster, clock, place, monkeypatch):
    place(admin, [1, 2])
    looks = []

    def look_within_a_look(seen):
        looks.append(seen)
        if len(looks) == 1:
            kept.look(clock=clock)
        return balance_of(seen)

    monkeypatch.setattr(kept, "balance_of", look_within_a_look)
    kept.look(clock=clock)
    assert looks == [cluster]
    kept.look(clock=clock)
    assert looks == [cluster, cluster]
    assert kept.seen_last(cluster) is not None


@pytest.mark.parametrize("state", ["done", "cancelled"])
def test_what_is_called_back_is_judged_when_metadata_say_where_it_is(admin, cluster, clock, place, state):
    topic = place(admin, [1, 2])
    row = work(begun(cluster, clock, draining=[1], goals=[]), clock)
    (after,) = (tuple(move.after) for move in row.moves.all())
    services.rebalance_cancel(rebalance_id=row.id, actor="olga", clock=clock)
    admin.placement.ongoing.clear()  # the controller has ended it, and metadata still show all of its replicas
    row = work(row, clock)
    assert (states(row), row.state) == (["moving"], "cancelling")
    admin.placement._put((topic, 0), replicas=after if state == "done" else (1, 2), leader=2)
    assert states(finished(row, admin, clock)) == [state]


# --- in maintenance windows -------------------------------------------------------------------------------------------


def window_from(clock, **later):
    """Of two hours, whose first begins so much later."""
    begins = clock.now().replace(minute=0, second=0) + timedelta(**later)
    return {"day": DAYS[begins.weekday()], "hour_utc": begins.hour, "length_hours": 2}


@pytest.fixture
def windowed(instance, clock, monkeypatch):
    """Alice's instance has a window that opens in a day or so."""
    monkeypatch.setattr(carrying_out, "SYSTEM_CLOCK", clock)
    window = window_from(clock, days=1)
    Instance.objects.unscoped("a test").filter(pk=instance.pk).update(maintenance_window=window)
    return window


def test_partitions_wait_for_their_instances_window(admin, cluster, clock, place, windowed):
    topic = place(admin, [1, 2, 3], [2, 3, 1])
    row = work(begun(cluster, clock, **DRAIN, in_windows=True), clock, rounds=3)
    assert set(states(row)) == {"waiting"}
    operation = row.operation
    assert (
        f"2 wait for maintenance windows, the next at {begins_next(windowed, clock.now()):%Y-%m-%d %H:%M} UTC"
        in (operation.steps[0]["note"])
    )
    assert operation.runnable_at - clock.now() > timedelta(seconds=20), "a week of rounds is not made every 2 s"
    clock.time = begins_next(windowed, clock.now())
    row = finished(row, admin, clock)
    assert row.state == "done"
    assert not any(1 in replicas for replicas in replicas_in(admin, topic))


def test_those_of_an_instance_without_one_do_not_wait(admin, cluster, clock, place):
    place(admin, [1, 2, 3])
    assert finished(begun(cluster, clock, **DRAIN, in_windows=True), admin, clock).state == "done"


def test_where_it_is_not_asked_for_nothing_waits(admin, cluster, clock, place, windowed):
    place(admin, [1, 2, 3])
    assert finished(begun(cluster, clock, **DRAIN), admin, clock).state == "done"


def test_what_is_under_way_when_the_window_closes_is_finished_and_nothing_new_begins(
    admin, cluster, clock, place, windowed
):
    place(admin, *[[1, 2, 3]] * 3)
    row = begun(cluster, clock, **DRAIN, at_once=1, in_windows=True)
    clock.time = begins_next(windowed, clock.now())
    row = work(row, clock)
    waiting = states(row).count("waiting")
    assert "moving" in states(row)
    assert waiting > 0
    clock.advance(2 * 3600)
    admin.placement.copy()
    row = work(row, clock, rounds=3)
    assert set(states(row)) == {"done", "waiting"}
    assert states(row).count("waiting") == waiting


def test_cancelled_it_does_not_wait_for_the_window(admin, cluster, clock, place, windowed):
    place(admin, [1, 2, 3])
    row = work(begun(cluster, clock, **DRAIN, in_windows=True), clock)
    services.rebalance_cancel(rebalance_id=row.id, actor="olga", clock=clock)
    clock.advance(60)
    assert finished(row, admin, clock).state == "cancelled"


def changing_places(admin, cluster, clock, place, instance):
    """A rebalance of two moves: alice's (a window, closed) from broker 1 to 4, and the cluster's own topic's from 2 to 1."""
    mine = place(admin, [1, 3])
    own = place(admin, [2, 3], topic="own")
    row = begun(cluster, clock, **DRAIN, in_windows=True)
    row.moves.all().delete()
    moves = [(own, "", [2, 3], [1, 3]), (mine, instance.id, [1, 3], [4, 3])]
    for number, (topic, of, before, after) in enumerate(moves):
        RebalanceMove.objects.create(
            rebalance=row,
            number=number,
            topic=topic,
            partition=0,
            instance=of,
            before=before,
            after=after,
            size_bytes=MIB,
            copies=True,
            bytes_to_copy=MIB,
        )
    return row


def test_nothing_is_copied_to_where_a_held_move_has_yet_to_leave(admin, cluster, clock, place, windowed, instance):
    row = work(changing_places(admin, cluster, clock, place, instance), clock, rounds=3)
    assert states(row) == ["waiting", "waiting"], "broker 1 may have room for one of them alone"
    assert "2 wait for maintenance windows" in row.operation.steps[0]["note"]
    clock.time = begins_next(windowed, clock.now())
    assert states(finished(row, admin, clock)) == ["done", "done"]


def test_while_all_waits_for_windows_the_throttle_is_not_in_force(admin, cluster, clock, place, windowed):
    place(admin, *[[1, 2, 3]] * 3)
    heard = []
    admin.placement.after_call = heard.append
    row = work(begun(cluster, clock, **DRAIN, at_once=1, in_windows=True), clock, rounds=3)
    assert not {"throttle", "throttled"} & set(heard)
    clock.time = begins_next(windowed, clock.now())
    row = work(row, clock)
    assert admin.placement.rate == row.throttle_bytes_per_s
    clock.advance(2 * 3600)
    admin.placement.copy()
    row = work(row, clock, rounds=3)
    assert "waiting" in states(row)
    assert (admin.placement.rate, admin.placement.named, row.throttle_in_force) == (None, {}, None)
    clock.time = begins_next(windowed, clock.now())
    row = work(row, clock)
    assert admin.placement.rate == row.throttle_bytes_per_s
    assert admin.placement.named, "put back at the next move"
    assert finished(row, admin, clock).state == "done"


def test_what_windows_did_not_suffice_for_is_skipped_before_patience_is_over(admin, cluster, clock, place, windowed):
    place(admin, *[[1, 2, 3]] * 3)
    row = begun(cluster, clock, **DRAIN, at_once=1, in_windows=True)
    row = work(row, clock)
    clock.time = begins_next(windowed, clock.now())
    row = work(row, clock)
    clock.advance(2 * 3600)
    admin.placement.copy()
    row = work(row, clock, rounds=2)
    waiting = states(row).count("waiting")
    assert waiting
    clock.advance(29 * 24 * 3600)
    assert not is_open(windowed, clock.now())
    row = finished(row, admin, clock)
    assert (row.state, states(row).count("skipped"), "waiting" in states(row)) == ("done", waiting, False)
    assert f"{waiting} of {len(states(row))} moves could not be made" in row.problem
    assert "did not suffice" in row.moves.filter(state="skipped").first().problem
    assert (admin.placement.rate, admin.placement.named) == (None, {})
