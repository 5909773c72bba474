"""An instance that is removed from a broker leaves none of its books behind."""

from __future__ import annotations

import pytest

from dataplane.clock import SystemClock
from dataplane.network.loop import EpollLoop
from dataplane.tenancy.gate import Gate
from dataplane.tenancy.instance import Instance
from dataplane.throttle.debt_queue import DebtQueues
from quota.agent.agent import Agent
from quota.contracts.instance import InstanceSpec, InstanceState, Limits


@pytest.fixture
def loop():
    made = EpollLoop(SystemClock())
    yield made
    made.close()


def spec(number: int) -> InstanceSpec:
    limits = Limits(1_000_000, 1_000_000, None, None, loop_ms_per_s=100)
    return InstanceSpec(f"ins-{number:08d}", 1, InstanceState.RUNNING, limits, (), ())


def test_its_account_goes_too(loop):
    gate = Gate(Agent(broker=1, boot="b", now=0.0), loop, DebtQueues(loop), group_bytes_per_s=1_000)
    instances = [Instance(spec(number)) for number in range(100)]
    for instance in instances:
        gate.configure(instance)
    assert len(loop.accounts.all()) == 101
    for instance in instances:
        gate.remove(instance)
        loop.worked_for(instance.names.key, 0.001)
        loop.when_due(instance.names.key, lambda: None)
    assert loop.accounts.all() == [loop.accounts.internal]
