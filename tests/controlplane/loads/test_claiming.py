"""Whose turn it is, and what becomes of a run whose runner goes, fails, or is told to stop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.instances.models import Instance, InstanceState
from controlplane.loads import claiming
from controlplane.loads.models import Load, LoadRun, RunState
from controlplane.loads.ranges import Asked
from controlplane.loads.services import run_ask

from .rows import load_row

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def ask(load, *, at=NOW):
    return run_ask(load, asked_by="alice", asked=Asked(), now=at)


def run_of(pk):
    return LoadRun.objects.unscoped("a test").get(pk=pk)


def load_of(pk):
    return Load.objects.unscoped("a test").get(pk=pk)


def end(run, state, *, at=NOW, runner="one", says="so"):
    return claiming.end(run, runner, at, state=state, members={"says": says})


@pytest.fixture
def load(instance):
    return load_row(instance, every_minutes=30, scheduled_at=NOW, next_start_at=NOW)


# --- due ----------------------------------------------------------------------------------------------------------------


def test_what_is_due_waits_once_and_the_next_is_due_by_the_schedule(load):
    assert claiming.ask_due(NOW + 10 * MINUTE) == 1
    assert claiming.ask_due(NOW + 10 * MINUTE) == 0
    assert load_of(load.pk).next_start_at == NOW + 30 * MINUTE
    run = LoadRun.objects.unscoped("a test").get()
    assert (run.asked_by, run.state) == ("", RunState.WAITING)


def test_what_is_under_way_when_it_is_due_is_not_asked_for_twice(load):
    ask(load)
    assert claiming.ask_due(NOW) == 0
    assert load_of(load.pk).next_start_at == NOW + 30 * MINUTE


def test_a_load_that_is_switched_off_or_of_an_instance_that_does_not_run_is_not_due(load):
    Instance.objects.unscoped("a test").update(state=InstanceState.ISOLATED)
    assert claiming.ask_due(NOW) == 0
    Instance.objects.unscoped("a test").update(state=InstanceState.RUNNING)
    Load.objects.unscoped("a test").update(enabled=False)
    assert claiming.ask_due(NOW) == 0


# --- whose turn ---------------------------------------------------------------------------------------------------------


def test_a_run_is_taken_once(load):
    ask(load)
    taken = claiming.claim("one", NOW)
    assert (taken.state, taken.runner, taken.load_id) == (RunState.RUNNING, "one", load.pk)
    assert claiming.claim("two", NOW) is None


def test_a_tenant_with_many_loads_holds_up_nobody(instance, alice, charlie):
    others = Instance.objects.unscoped("a test").get(pk=instance.pk)
    others.pk, others.organisation, others.name = "ins-charlie0", charlie.organisation, "charlie's"
    others.save(force_insert=True)
    for number in range(5):
        ask(load_row(instance, f"load-{number:012}"), at=NOW - MINUTE)
    last = load_row(others, "load-charlie0000")
    ask(last)
    first = claiming.claim("one", NOW)
    assert first.organisation_id == alice.organisation.pk
    assert claiming.claim("one", NOW).load_id == last.pk, "who has none under way comes before who has one"
    end(first, RunState.SUCCEEDED)
    assert claiming.claim("one", NOW).organisation_id == alice.organisation.pk


# --- life and end -------------------------------------------------------------------------------------------------------


def test_a_run_goes_on_until_somebody_asks_to_stop_it(load):
    ask(load)
    run = claiming.claim("one", NOW)
    assert claiming.beat(run, "one", NOW + MINUTE, "commit 1 of 2") is None
    assert (run_of(run.pk).says, run_of(run.pk).seen_at) == ("commit 1 of 2", NOW + MINUTE)
    LoadRun.objects.unscoped("a test").update(stop_asked=True)
    assert claiming.beat(run, "one", NOW + MINUTE, "commit 2 of 2") == claiming.STOPPED


def test_of_an_instance_that_is_isolated_nothing_more_is_read(load):
    ask(load)
    run = claiming.claim("one", NOW)
    Instance.objects.unscoped("a test").update(state=InstanceState.ISOLATED)
    assert claiming.beat(run, "one", NOW, "commit 1 of 2") == "stopped: the instance is isolated, not running"


def test_a_run_gives_way_to_other_organisations_only(instance, load, charlie):
    ask(load)
    run = claiming.claim("one", NOW)
    ask(load_row(instance, "load-000000000002"))
    assert not claiming.others_wait(run)
    others = Instance.objects.unscoped("a test").get(pk=instance.pk)
    others.pk, others.organisation, others.name = "ins-charlie0", charlie.organisation, "charlie's"
    others.save(force_insert=True)
    ask(load_row(others, "load-charlie0000"))
    assert claiming.others_wait(run)
    claiming.again(run, "one", copied_version=7, at=NOW + MINUTE)
    assert (run_of(run.pk).state, run_of(run.pk).asked_at) == (RunState.WAITING, NOW + MINUTE)
    assert load_of(load.pk).copied_version == 7


def test_a_run_whose_runner_is_gone_has_failed_and_is_nobody_s_any_more(load):
    ask(load)
    run = claiming.claim("one", NOW)
    claiming.bury(NOW + MINUTE)
    assert run_of(run.pk).state == RunState.RUNNING
    late = NOW + 2 * MINUTE
    claiming.bury(late)
    buried = run_of(run.pk)
    assert (buried.state, buried.says) == (RunState.FAILED, claiming.DIED)
    assert claiming.beat(run, "one", late, "still here") == claiming.DIED, (
        "it may have stood still: it has to end its program"
    )
    assert not end(run, RunState.SUCCEEDED, at=late)
    assert run_of(run.pk).state == RunState.FAILED


def test_a_runner_that_has_to_go_leaves_its_run_to_the_next(load):
    ask(load)
    run = claiming.claim("one", NOW)
    claiming.again(run, "one")
    again = claiming.claim("two", NOW + MINUTE)
    assert (again.pk, again.runner, again.started_at) == (run.pk, "two", NOW + MINUTE)
    claiming.again(again, "one")
    assert run_of(run.pk).runner == "two", "it is another's"


def test_in_vain_it_is_tried_again_sooner_and_a_success_forgets_it(load):
    now = NOW
    for failures in range(1, 6):
        assert claiming.ask_due(now) == 1
        assert end(claiming.claim("one", now), RunState.FAILED, at=now)
        assert load_of(load.pk).failures == failures
        following = load_of(load.pk).next_start_at
        assert following == min(now + 2 ** (failures - 1) * MINUTE, NOW + 30 * MINUTE), failures
        now = following
    assert claiming.ask_due(now) == 1
    assert end(claiming.claim("one", now), RunState.SUCCEEDED, at=now)
    assert (load_of(load.pk).failures, load_of(load.pk).next_start_at) == (0, NOW + 60 * MINUTE)


def test_one_that_was_stopped_is_not_tried_again_before_it_is_due(load):
    claiming.ask_due(NOW)
    end(claiming.claim("one", NOW), RunState.STOPPED)
    assert (load_of(load.pk).failures, load_of(load.pk).next_start_at) == (0, NOW + 30 * MINUTE)


def test_a_load_without_a_schedule_is_not_tried_again_by_itself(instance):
    load = load_row(instance)
    ask(load)
    end(claiming.claim("one", NOW), RunState.FAILED)
    assert (load_of(load.pk).failures, load_of(load.pk).next_start_at) == (1, None)


def test_tables_of_an_instance_go_when_it_is_gone_and_nothing_writes_them_any_more(load):
    ids = [load.instance_id, "ins-unheard0"]
    assert claiming.gone_of(ids) == set()
    ask(load)
    run = claiming.claim("one", NOW)
    Instance.objects.unscoped("a test").update(state=InstanceState.DELETED)
    assert claiming.gone_of(ids) == set()
    end(run, RunState.STOPPED)
    assert claiming.gone_of(ids) == {load.instance_id}


def test_loads_of_an_instance_that_is_gone_go_with_their_keys(load):
    ask(load)
    Instance.objects.unscoped("a test").update(state=InstanceState.DELETED)
    claiming.forget_gone()
    assert not Load.objects.unscoped("a test").exists()
    assert not LoadRun.objects.unscoped("a test").exists()
