"""Long operations: claimed once, resumed after a death, retried with patience, failed with a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from controlplane.core import operations
from controlplane.core.errors import ClusterUnavailable, Conflict, LimitReached
from controlplane.core.models import Operation
from controlplane.core.operations import Finished, NotYet, OperationKind, Step

if TYPE_CHECKING:
    from .conftest import Person
    from .fakes import ManualClock

KIND = "test.kind"


class Killed(BaseException):
    """A SIGKILL in the middle of a step: nothing of the worker's own code runs afterwards."""


class World:
    """What the steps of the test's operation work on."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.failed: list[str] = []
        self.outcomes: dict[str, list] = {}

    def step(self, name: str):
        def run(operation: Operation) -> Finished | NotYet:
            self.log.append(name)
            outcomes = self.outcomes.get(name)
            outcome = outcomes.pop(0) if outcomes else Finished(result={name: "done"})
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        return run


@pytest.fixture
def world() -> World:
    world = World()
    steps = tuple(Step(name, world.step(name), patience_s=20) for name in ("one", "two", "three"))
    operations.register(OperationKind(KIND, steps, failed=lambda operation: world.failed.append(operation.id)))
    yield world
    del operations._KINDS[KIND]


@pytest.fixture
def operation(alice: Person, world: World, clock: ManualClock) -> Operation:
    return operations.start(organisation=alice.organisation, kind=KIND, target="t", clock=clock)


def states(operation: Operation) -> list[str]:
    operation.refresh_from_db()
    return [step["state"] for step in operation.steps]


def test_steps_run_in_order_and_each_is_shown_as_done(operation, world, clock):
    assert states(operation) == ["pending", "pending", "pending"]
    assert operations.run(operation.id, clock=clock)
    assert world.log == ["one", "two", "three"]
    assert states(operation) == ["succeeded"] * 3
    assert operation.state == "succeeded"
    assert operation.progress == 100
    assert operation.result == {"one": "done", "two": "done", "three": "done"}
    assert operation.lease_until is None


def test_a_finished_operation_cannot_be_claimed_again(operation, world, clock):
    operations.run(operation.id, clock=clock)
    assert not operations.run(operation.id, clock=clock)
    assert world.log == ["one", "two", "three"]


def test_a_killed_workers_operation_resumes_at_its_step_when_the_lease_expires(operation, world, clock, settings):
    world.outcomes["two"] = [Killed()]
    with pytest.raises(Killed):
        operations.run(operation.id, clock=clock)
    assert states(operation) == ["succeeded", "running", "pending"]
    assert operation.id not in operations.runnable(clock=clock).values_list("pk", flat=True)
    assert not operations.run(operation.id, clock=clock), "the dead worker's lease still holds"

    clock.advance(settings.ENVIRONMENT.lease_s + 1)
    assert operation.id in operations.runnable(clock=clock).values_list("pk", flat=True)
    assert operations.run(operation.id, clock=clock)
    assert world.log == ["one", "two", "two", "three"], "the step that was half done is repeated, those before are not"
    assert states(operation) == ["succeeded"] * 3


def test_a_worker_that_lost_its_lease_writes_nothing_more(operation, world, clock, settings):
    def paused_too_long(operation_row: Operation) -> Finished:
        """The worker sleeps through its lease; meanwhile another one does the work."""
        world.log.append("paused")
        operations.register(kind)
        clock.advance(settings.ENVIRONMENT.lease_s + 1)
        assert operations.run(operation_row.id, clock=clock)
        return Finished(result={"one": "by the paused worker"})

    kind = operations._KINDS[KIND]
    operations.register(OperationKind(KIND, (Step("one", paused_too_long), *kind.steps[1:])))
    operations.run(operation.id, clock=clock)
    operation.refresh_from_db()
    assert world.log == ["paused", "one", "two", "three"]
    assert operation.result["one"] == "done"


def test_of_two_workers_that_read_the_same_row_one_claims_it(operation, world, clock):
    first = Operation.objects.unscoped("a test").get(pk=operation.id)
    second = Operation.objects.unscoped("a test").get(pk=operation.id)
    assert operations._claim(first, clock)
    assert not operations._claim(second, clock)


def test_a_retriable_error_is_tried_again_with_growing_pauses(operation, world, clock):
    world.outcomes["one"] = [ClusterUnavailable("away"), ClusterUnavailable("away")]
    pauses = []
    for _ in range(2):
        operations.run(operation.id, clock=clock)
        operation.refresh_from_db()
        assert operation.state == "running"
        pauses.append((operation.runnable_at - clock.now()).total_seconds())
        assert not operations.run(operation.id, clock=clock), "not before its time"
        clock.time = operation.runnable_at
    operations.run(operation.id, clock=clock)
    operation.refresh_from_db()
    assert operation.state == "succeeded"
    assert pauses == [1.0, 2.0]


def test_an_error_that_stays_fails_the_operation_with_its_sentence(operation, world, clock):
    world.outcomes["two"] = [ClusterUnavailable("ZooKeeper does not answer")] * 100
    for _ in range(operations.ATTEMPTS):
        operations.run(operation.id, clock=clock)
        clock.advance(60)
    assert states(operation) == ["succeeded", "failed", "pending"]
    assert (operation.state, operation.error) == ("failed", "ZooKeeper does not answer")
    assert operation.error_code == "cluster_unavailable"
    assert world.failed == [operation.id]
    assert world.log.count("two") == operations.ATTEMPTS


def test_an_error_that_is_not_retriable_fails_it_at_once(operation, world, clock):
    world.outcomes["one"] = [Conflict("the instance is being deleted")]
    operations.run(operation.id, clock=clock)
    operation.refresh_from_db()
    assert operation.state == "failed"
    assert world.log == ["one"]


def test_the_text_of_an_unforeseen_error_stays_in_the_log(operation, world, clock):
    world.outcomes["one"] = [RuntimeError("k3v9x2qa.orders of someone else")] * 100
    for _ in range(operations.ATTEMPTS):
        operations.run(operation.id, clock=clock)
        clock.advance(60)
    operation.refresh_from_db()
    assert operation.state == "failed"
    assert "orders" not in str(operation.steps) + operation.error


def test_not_yet_is_waited_for_within_its_patience_and_says_what_for(operation, world, clock):
    world.outcomes["two"] = [NotYet("broker 2 is behind", after_s=3)] * 100
    for _ in range(12):
        operations.run(operation.id, clock=clock)
        clock.advance(3)
    operation.refresh_from_db()
    assert operation.state == "failed"
    assert operation.error == "gave up after 20 s: broker 2 is behind"


def test_a_short_wait_keeps_the_lease(operation, world, clock):
    world.outcomes["one"] = [NotYet("soon", after_s=0.5), NotYet("soon", after_s=0.5)]
    operations.run(operation.id, clock=clock)
    assert clock.slept == [0.5, 0.5]
    assert states(operation) == ["succeeded"] * 3


def running(organisation, target: str, number: int, clock: ManualClock) -> list[Operation]:
    return [operations.start(organisation=organisation, kind=KIND, target=target, clock=clock) for _ in range(number)]


def test_a_target_has_twenty_running_operations_at_most(alice, charlie, world, clock):
    first, *_ = running(alice.organisation, "t", operations.MOST_RUNNING, clock)
    with pytest.raises(LimitReached, match="20 operations are running on t") as refused:
        operations.start(organisation=alice.organisation, kind=KIND, target="t", clock=clock)
    assert refused.value.code == "too_many_operations"
    operations.run(first.id, clock=clock)
    assert operations.start(organisation=alice.organisation, kind=KIND, target="t", clock=clock).state == "running"


def test_other_targets_and_what_is_not_counted_are_let_through(alice, charlie, world, clock):
    running(alice.organisation, "t", operations.MOST_RUNNING, clock)
    others = [
        operations.start(organisation=alice.organisation, kind=KIND, target="u", clock=clock),
        operations.start(organisation=charlie.organisation, kind=KIND, target="t", clock=clock),
        operations.start(organisation=alice.organisation, kind=KIND, target="t", counted=False, clock=clock),
    ]
    others += [
        operations.start(organisation=None, kind=KIND, target="t", clock=clock)
        for _ in range(operations.MOST_RUNNING + 1)
    ]
    assert {operation.state for operation in others} == {"running"}


def test_redis_being_away_does_not_fail_the_request(monkeypatch, operation):
    from controlplane.core import tasks

    monkeypatch.undo()  # the real wake, which the fixture of this folder replaces
    calls = []

    def refuse(**options):
        calls.append(options)
        raise ConnectionError("no Redis")

    monkeypatch.setattr(tasks.operation_run, "apply_async", refuse)
    operations.wake([operation.id, "op-2"])
    assert len(calls) == 1, "one failure says enough"
