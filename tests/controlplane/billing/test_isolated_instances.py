"""What is isolated costs nothing of what was bought, from the deletion until it is open again."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from controlplane.billing import selectors
from controlplane.billing.pricing.rating import Month, slots_of
from controlplane.core import operations
from controlplane.core.errors import SluiceError
from controlplane.core.models import Operation
from controlplane.instances import lifecycle, reconcile
from controlplane.instances.models import Instance, SpecChange
from tests.controlplane.conftest import run_to_the_end
from tests.controlplane.fakes import ManualClock

pytestmark = pytest.mark.usefixtures("grace")
HOUR = timedelta(hours=1)
OPENED = datetime(2026, 5, 4, 8, 10, tzinfo=UTC)
MAY = Month(2026, 5)


@pytest.fixture
def opened(instance):
    SpecChange.objects.unscoped("a test").update(at=OPENED)
    return instance


@pytest.fixture
def opening_by(monkeypatch):
    """Steps of operations know no clock but the system's: here they open by this one."""
    real = reconcile.open_for_use

    def replace(clock):
        monkeypatch.setattr(reconcile, "open_for_use", lambda instance, was, **_: real(instance, was, clock=clock))

    return replace


@pytest.fixture
def act(alice, opened, opening_by):
    """`act("delete", hours)`: asked for so many hours after it was opened, and done at once."""

    def done(what, hours):
        clock = ManualClock()
        clock.time = OPENED + hours * HOUR
        opening_by(clock)
        about = {"organisation": alice.organisation, "actor": "a", "instance_id": opened.id, "clock": clock}
        operation = getattr(lifecycle, f"instance_{what}")(**about)
        assert run_to_the_end(operation.id, clock).state == "succeeded"
        return clock

    return done


def hours_billed(instance, now):
    return [slot.strftime("%d %H") for slot in slots_of(selectors.periods_of(instance), MAY, now)]


def test_the_hours_between_are_not_billed(act, opened):
    act("delete", 2)  # 10:10
    act("restore", 5)  # 13:10
    act("delete", 6)  # 14:10
    billed = hours_billed(opened, OPENED + 100 * HOUR)
    assert billed == ["04 08", "04 09", "04 10", "04 13", "04 14"]


def test_an_hour_in_which_it_was_isolated_and_restored_is_billed_once(act, opened):
    act("delete", 1)
    act("restore", 1.2)
    assert hours_billed(opened, OPENED + 2 * HOUR) == ["04 08", "04 09", "04 10"]


def test_nothing_is_billed_after_it_was_destroyed(act, opened):
    clock = act("delete", 2)
    clock.time = Instance.objects.unscoped("a test").get().destroys_at
    assert lifecycle.grace_periods_end(clock=clock) == 1
    operation = Operation.objects.unscoped("a test").get(kind="instance.delete")
    assert run_to_the_end(operation.id, clock).state == "succeeded"
    assert hours_billed(opened, OPENED + 400 * HOUR) == ["04 08", "04 09", "04 10"]
    kinds = SpecChange.objects.unscoped("a test").order_by("at", "pk").values_list("kind", flat=True)
    assert list(kinds) == ["opened", "isolated", "closed"]


def test_a_resize_before_counts_as_ever(act, opened, alice):
    SpecChange.objects.unscoped("a test").create(
        organisation=alice.organisation, instance=opened, kind="resized", at=OPENED + HOUR,
        bandwidth_mib_per_s=7, storage_gib=10, partitions=60,
    )  # fmt: skip
    act("delete", 2)
    sizes = slots_of(selectors.periods_of(opened), MAY, OPENED + 9 * HOUR)
    assert [int(size.bandwidth_mb_per_s) for size in sizes.values()] == [5, 7, 7]


@pytest.mark.parametrize("seed", range(12))
def test_no_sequence_bills_what_is_shut_or_destroys_what_could_be_restored(alice, opened, brokers, seed, opening_by):
    """Requests, beat, workers that die and brokers that are away, in any order; then everything comes to its end."""
    chance, clock = random.Random(seed), ManualClock()
    clock.time = OPENED + HOUR
    opening_by(clock)
    rows, running = Instance.objects.unscoped("a test"), Operation.objects.unscoped("a test").filter(state="running")
    about = {"organisation": alice.organisation, "actor": "a", "instance_id": opened.id, "clock": clock}

    def worker():
        for operation_id in list(operations.runnable(clock=clock).values_list("pk", flat=True)):
            operations.run(operation_id, clock=clock)

    steps = {
        "delete": lambda: lifecycle.instance_delete(**about),
        "restore": lambda: lifecycle.instance_restore(**about),
        "beat": lambda: lifecycle.grace_periods_end(clock=clock),
        "reconcile": lambda: reconcile.reconcile_all(clock=clock),
        "work": worker,
        "away": lambda: brokers.paused.add(2),
        "back": lambda: (brokers.paused.clear(), brokers.apply()),
        "days": lambda: clock.advance(chance.choice([1, 3, 8]) * 86400),
    }
    for name in chance.choices(list(steps), k=60):
        clock.advance(chance.choice([1, 40, 4000]))
        before = rows.get()
        try:
            steps[name]()
        except SluiceError as error:
            assert error.code in {"instance_not_isolated", "instance_deleting", "not_found"}  # noqa: PT017
        now = rows.get()
        wanted = {"isolated": {"stopped"}, "running": {"running"}, "restoring": {"running"}}
        assert now.spec_state in wanted.get(now.state, {"running", "stopped", "deleted"})
        assert (now.destroys_at is not None) == (now.state in ("isolated", "deleting", "deleted"))
        if before.state == "isolated" and now.state == "deleting":
            assert name == "beat"
            assert before.destroys_at <= clock.now()
    steps["back"]()
    for _ in range(300):
        worker()
        reconcile.reconcile_all(clock=clock)
        if not running.exists():
            break
        clock.advance(5)
    assert not running.exists()
    state = rows.get().state
    assert state in ("running", "isolated", "deleted", "deleting"), "deleting: it gave up, and beat will begin again"
    changes = list(SpecChange.objects.unscoped("a test").order_by("pk").values_list("kind", flat=True))
    for first, second in pairwise(changes):
        assert (first, second) in {
            ("opened", "isolated"), ("isolated", "restored"), ("restored", "isolated"), ("isolated", "closed"),
            ("isolated", "isolated"),
        }  # fmt: skip
    periods = selectors.periods_of(opened)
    assert all(period.until is None or period.start <= period.until for period in periods)
    assert (periods[-1].until is None) == (state == "running")
