"""What is produced is charged to the one bucket of an instance, what is consumed to the other, and neither to both."""

from types import SimpleNamespace

import pytest

from dataplane.tenancy.instance import Instance
from dataplane.throttle.gate import Gate
from quota.agent.agent import Agent
from quota.contracts.instance import InstanceSpec, InstanceState, Limits

PRODUCE, CONSUME = 1_000, 500  # bytes a second
CLOCK = SimpleNamespace(monotonic=lambda: 0.0)


@pytest.fixture
def gate():
    return Gate(Agent(broker=1, boot="b", now=0.0), CLOCK, group_bytes_per_s=100)


@pytest.fixture
def instance(gate):
    spec = InstanceSpec(
        "ins-aaaabbbb", 1, InstanceState.RUNNING, Limits(PRODUCE, CONSUME, None, None), ("0.0.0.0/0",), ()
    )
    made = Instance(spec)
    gate.configure(made)
    made.produce_bucket.set_rate(PRODUCE, 0.0)
    made.consume_bucket.set_rate(CONSUME, 0.0)
    return made


def charged(instance):
    return {
        name: getattr(instance, f"{name}_bucket").charged_bytes
        for name in ("produce", "consume", "group")
        if getattr(instance, f"{name}_bucket").charged_bytes
    }


@pytest.mark.parametrize("direction", ["produce", "consume"])
def test_a_direction_is_charged_to_its_own_bucket(gate, instance, direction):
    getattr(gate, f"charge_{direction}")(instance, 5_000)
    assert charged(instance) == {direction: 5_000}


def test_what_groups_store_is_charged_to_neither(gate, instance):
    gate.charge_groups(instance, 5_000)
    assert charged(instance) == {"group": 5_000}


@pytest.mark.parametrize(("direction", "rate"), [("produce", PRODUCE), ("consume", CONSUME)])
def test_it_waits_as_long_as_its_own_limit_takes_to_pay(gate, instance, direction, rate):
    other = {"produce": "consume", "consume": "produce"}[direction]
    waits_s = getattr(gate, f"charge_{direction}")(instance, 5_000)
    assert waits_s == pytest.approx(5_000 / rate, rel=0.05)  # but for what was saved up
    assert getattr(gate, f"charge_{other}")(instance, 0) == 0.0


def test_what_an_answer_may_hold_is_the_consumers_limit(gate, instance):
    assert gate.fetch_bytes(instance, 2.0) == 2 * CONSUME


def test_the_internal_listener_is_never_charged(gate):
    assert gate.charge_produce(None, 10**9) == gate.charge_consume(None, 10**9) == gate.charge_groups(None, 10**9) == 0
    assert gate.fetch_bytes(None, 1.0) is None
