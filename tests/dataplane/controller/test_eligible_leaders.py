"""Who may be elected beside the ISR (KIP-966), as a table of cases, and over every state that three brokers can reach."""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import dataclass, field

import pytest

from dataplane.cluster.paths import NO_LEADER, PartitionState
from dataplane.controller.decisions import elections

REPLICAS = (1, 2, 3)
EPOCHS = {1: 31, 2: 32, 3: 33}
ENOUGH = 2


def state_of(leader, isr, eligible=(), last=NO_LEADER):
    epochs = {member: EPOCHS[member] for member in (*isr, *eligible)}
    return PartitionState(leader, 5, isr, 1, 9, eligible=eligible, last_leader=last, broker_epochs=epochs)


CASES = {  # leader, ISR, eligible, last leader | alive, lost | what becomes of it, in the same order
    "who leaves a large ISR is not eligible": ((1, (1, 2, 3), (), -1), (1, 2), (), (1, (1, 2), (), -1)),
    "who leaves one that is too small then is": ((1, (1, 2), (), -1), (1,), (), (1, (1,), (2,), -1)),
    "also both at once": ((1, (1, 2, 3), (), -1), (1,), (), (1, (1,), (2, 3), -1)),
    "but not with lost logs": ((1, (1, 2, 3), (), -1), (1, 3), (3,), (1, (1,), (2,), -1)),
    "an eligible one leads when the ISR is dead": ((1, (1,), (2,), -1), (2, 3), (), (2, (2,), (1,), -1)),
    "or has lost its logs": ((1, (1,), (2,), -1), (1, 2, 3), (1,), (2, (2,), (), -1)),
    "nobody else does while one may return": ((1, (1,), (2,), -1), (1, 3), (1,), (NO_LEADER, (), (2,), 1)),
    "and then he leads": ((NO_LEADER, (), (2,), 1), (1, 2, 3), (), (2, (2,), (), -1)),
    "the ISR comes first": ((NO_LEADER, (3,), (1,), 3), (1, 3), (), (3, (3,), (1,), -1)),
    "all have lost something: who led last": ((2, (1, 2, 3), (), -1), (1, 2, 3), (1, 2, 3), (2, (2,), (), -1)),
    "who is waited for": ((2, (1, 2, 3), (), -1), (1, 3), (1, 2, 3), (NO_LEADER, (), (), 2)),
    "and remembered": ((NO_LEADER, (), (), 2), (1, 2), (), (2, (2,), (), -1)),
    "unless he is no replica any more": ((NO_LEADER, (), (), 4), (3,), (), (3, (3,), (), -1)),
}


@pytest.mark.parametrize("case", CASES)
def test_who_leads_and_who_may(case):
    before, alive, lost, after = CASES[case]
    found = elections.after_change(state_of(*before), REPLICAS, {b: 60 + b for b in alive}, 7, lost=lost, enough=ENOUGH)
    assert found is not None
    assert (found.leader, found.isr, found.eligible, found.last_leader) == after
    assert (found.leader_epoch, found.controller_epoch, found.partition_epoch) == (6, 7, 9)


def test_unclean_election_takes_who_is_alive_and_makes_the_rest_void():
    state = state_of(NO_LEADER, (1,), (2,), 1)
    found = elections.after_change(state, REPLICAS, {3: 63}, 7, enough=ENOUGH, unclean=True)
    assert (found.leader, found.isr, found.eligible, found.broker_epochs) == (3, (3,), (), {3: 63})


def test_a_smaller_minimum_makes_the_isr_large_enough_again():
    state = state_of(1, (1,), (2,))
    assert elections.after_change(state, REPLICAS, EPOCHS, 7, enough=ENOUGH) is None
    assert elections.after_change(state, REPLICAS, EPOCHS, 7, enough=1).eligible == ()


def test_a_proposed_isr_that_is_large_enough_ends_all_eligibility_and_a_smaller_one_begins_it():
    alone = elections.with_isr(state_of(1, (1, 2)), (1,), EPOCHS, 7, ENOUGH)
    assert (alone.isr, alone.eligible) == ((1,), (2,))
    joined = elections.with_isr(alone, (1, 3), EPOCHS, 7, ENOUGH)
    assert (joined.isr, joined.eligible) == ((1, 3), ())
    assert (alone.leader_epoch, joined.leader_epoch) == (5, 5)


def test_a_life_is_noted_when_it_joins_and_not_replaced_by_a_later_one_that_nobody_has_looked_at():
    joined = elections.with_isr(state_of(1, (1, 2)), (1, 2, 3), {1: 31, 2: 95, 3: 96}, 7, ENOUGH)
    assert joined.broker_epochs == {1: 31, 2: 32, 3: 96}


def test_who_was_eligible_and_joins_after_a_restart_is_in_sync_by_its_present_life():
    """By its former one, the next controller would take it for restarted since, and depose it for nothing."""
    joined = elections.with_isr(state_of(1, (1,), (2, 3)), (1, 2), {1: 31, 2: 95, 3: 33}, 7, ENOUGH)
    assert joined.broker_epochs == {1: 31, 2: 95}


# --- every state that three brokers can reach, while only one at a time lacks what it had ------------------------------


@dataclass
class Model:
    """What the controller decides about brokers that die, are cut from power, return, copy, lag and commit.

    Of a log only this counts: whether it holds all that was ever committed.
    """

    state: PartitionState = field(default_factory=lambda: elections.first_state(REPLICAS, EPOCHS, 1))
    alive: dict[int, int] = field(default_factory=lambda: dict(EPOCHS))
    whole_since: dict[int, int] = field(default_factory=lambda: dict(EPOCHS))
    complete: dict[int, bool] = field(default_factory=lambda: dict.fromkeys(REPLICAS, True))
    suffering: int | None = None  # its power was cut, and it is not in sync again
    now: int = 100

    def after(self, step, broker):
        """What a step leads to; None where it cannot be taken."""
        model = Model(self.state, *map(copy, (self.alive, self.whole_since, self.complete)), self.suffering, self.now)
        return model if getattr(model, step)(broker) else None

    def lost(self):
        epochs = self.state.broker_epochs
        return [b for b in self.alive if b in epochs and self.whole_since[b] > epochs[b]]

    def elect(self):
        found = elections.after_change(self.state, REPLICAS, self.alive, 1, lost=self.lost(), enough=ENOUGH)
        self.state = found or self.state
        return True

    def kill(self, broker):
        return self.alive.pop(broker, None) is not None and self.elect()

    def cut_power(self, broker):
        if self.suffering not in (None, broker):
            return False
        self.suffering = broker
        self.complete[broker] = False
        self.whole_since[broker] = 2**60  # until it registers
        self.alive.pop(broker, None)
        return self.elect()

    def start(self, broker):
        if broker in self.alive:
            return False
        self.now += 1
        self.alive[broker] = self.now
        self.whole_since[broker] = min(self.whole_since[broker], self.now)
        return self.elect()

    def join(self, broker):
        if not self.leads() or broker not in self.alive or broker in self.state.isr:
            return False
        self.complete[broker] = self.complete[self.state.leader]
        self.state = elections.with_isr(self.state, (*self.state.isr, broker), self.alive, 1, ENOUGH)
        self.suffering = None if broker == self.suffering else self.suffering
        return True

    def lag(self, broker):
        if not self.leads() or broker not in self.state.isr or broker == self.state.leader:
            return False
        rest = tuple(member for member in self.state.isr if member != broker)
        self.state = elections.with_isr(self.state, rest, self.alive, 1, ENOUGH)
        return True

    def commit(self, _broker):
        if not self.leads() or len(self.state.isr) < ENOUGH or self.state.eligible:
            return False
        self.complete = {broker: broker in self.state.isr for broker in REPLICAS}
        return True

    def leads(self):
        return self.state.leader in self.alive

    def key(self):
        state = self.state
        flags = tuple((b in self.alive, b in self.lost(), self.complete[b]) for b in REPLICAS)
        away = tuple(self.whole_since[b] > state.broker_epochs.get(b, 0) for b in REPLICAS)
        return state.leader, state.isr, state.eligible, state.last_leader, flags, away, self.suffering

    def check(self):
        state = self.state
        if state.leader != NO_LEADER:
            assert state.leader in state.isr
            assert self.complete[state.leader], "a leader lacks what was committed"
            assert not (state.eligible and len(state.isr) >= ENOUGH)
        elif len(self.alive) == len(REPLICAS):
            pytest.fail("all are alive, and nobody leads")
        assert not any(member in state.isr for member in state.eligible)
        assert sorted(state.broker_epochs) == sorted((*state.isr, *state.eligible))


STEPS = ("kill", "cut_power", "start", "join", "lag", "commit")


def test_in_every_state_the_leader_has_all_that_is_committed_and_with_all_alive_there_is_one():
    first = Model()
    seen = {first.key(): ()}
    waiting = deque([first])
    while waiting:
        model = waiting.popleft()
        for step in STEPS:
            for broker in REPLICAS:
                after = model.after(step, broker)
                if after is None or after.key() in seen:
                    continue
                way = seen[after.key()] = (*seen[model.key()], (step, broker))
                try:
                    after.check()
                except AssertionError as error:
                    raise AssertionError(f"{error} after {way}: {after.state}") from error
                waiting.append(after)
    assert len(seen) > 300
