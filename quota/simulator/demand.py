"""Demand scenarios: what clients would send to each broker, in bytes/s, at a moment. Pure; randomness is handed in.

A scenario is made for a number of brokers and a limit L; its demand is a function of time. Where it changes, in
`changes`, convergence is measured.

    step        nothing, then twice the limit, evenly
    skew        twice the limit, eight tenths of it at one broker
    moving      the same, and the hot broker is another one every 20 s
    bursts      half the limit, and three times the limit for 2 s in every 10
    random      the total, and each broker's part of it, wander; between a tenth and three times the limit
    jumps       every 5 s all of that is drawn anew
    light       six tenths of the limit, unevenly: nobody should be throttled at all
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

Demand = Callable[[float], Sequence[float]]
"""Seconds -> bytes/s by broker."""

HOT = 0.8
_MOVES_EVERY_S = 20.0
_JUMPS_EVERY_S = 5.0
_WALK = 0.15


@dataclass(frozen=True, slots=True)
class Scenario:
    """A demand, how long it lasts, and the moments at which it changes."""

    name: str
    brokers: int
    seconds: float
    demand: Demand
    changes: tuple[float, ...]


def step(brokers: int, limit: int, seconds: float, random: Random) -> Scenario:
    """Nothing for 5 s, then twice the limit."""
    del random
    even = [2 * limit / brokers] * brokers
    return Scenario("step", brokers, seconds, lambda t: even if t >= 5 else [0.0] * brokers, (5.0,))


def skew(brokers: int, limit: int, seconds: float, random: Random) -> Scenario:
    """Twice the limit, most of it at one broker."""
    hot = random.randrange(brokers)
    demand = _hot_at(hot, brokers, 2.0 * limit)
    return Scenario("skew", brokers, seconds, lambda t: demand if t >= 5 else [0.0] * brokers, (5.0,))


def moving(brokers: int, limit: int, seconds: float, random: Random) -> Scenario:
    """Twice the limit, most of it at a broker that is another one every 20 s."""
    order = random.sample(range(brokers), brokers)
    demands = [_hot_at(hot, brokers, 2.0 * limit) for hot in order]
    changes = tuple(_MOVES_EVERY_S * number for number in range(1, int(seconds // _MOVES_EVERY_S)))
    return Scenario("moving", brokers, seconds, lambda t: demands[int(t // _MOVES_EVERY_S) % brokers], changes)


def bursts(brokers: int, limit: int, seconds: float, random: Random) -> Scenario:
    """Half the limit, and for 2 s in every 10 three times the limit."""
    shares = _shares(brokers, random)

    def demand(t: float) -> list[float]:
        total = 3.0 * limit if t % 10 < 2 else 0.5 * limit
        return [total * share for share in shares]

    return Scenario("bursts", brokers, seconds, demand, ())


def wander(brokers: int, limit: int, seconds: float, random: Random) -> Scenario:
    """Every second each broker's part, and the total, change by a tenth or two: a random walk."""
    weights = [random.expovariate(1.0) for _ in range(brokers)]
    total = random.uniform(0.3, 2.0)
    table = []
    for _ in range(int(seconds) + 1):
        weights = [weight * math.exp(random.gauss(0, _WALK)) for weight in weights]
        total = min(3.0, max(0.1, total * math.exp(random.gauss(0, _WALK))))
        table.append([limit * total * weight / sum(weights) for weight in weights])
    return Scenario("random", brokers, seconds, lambda t: table[int(t)], ())


def jumps(brokers: int, limit: int, seconds: float, random: Random) -> Scenario:
    """Every 5 s each broker gets another part of another total: as bad as it gets."""
    table = []
    for _ in range(int(seconds // _JUMPS_EVERY_S) + 1):
        total = limit * random.uniform(0.1, 3.0)
        table.append([total * share for share in _shares(brokers, random)])
    return Scenario("jumps", brokers, seconds, lambda t: table[int(t // _JUMPS_EVERY_S)], ())


def light(brokers: int, limit: int, seconds: float, random: Random) -> Scenario:
    """Six tenths of the limit, unevenly."""
    demand = [0.6 * limit * share for share in _shares(brokers, random)]
    return Scenario("light", brokers, seconds, lambda _: demand, ())


def recorded(rows: Sequence[Sequence[float]]) -> Scenario:
    """A recorded day: one row a second, bytes/s by broker.

    What was measured under a limit shows demand only where nobody was throttled; elsewhere it is what was let through.
    """
    return Scenario("recorded", len(rows[0]), float(len(rows)), lambda t: rows[min(int(t), len(rows) - 1)], ())


SCENARIOS: dict[str, Callable[[int, int, float, Random], Scenario]] = {
    "step": step,
    "skew": skew,
    "moving": moving,
    "bursts": bursts,
    "random": wander,
    "jumps": jumps,
    "light": light,
}


def _hot_at(hot: int, brokers: int, total: float) -> list[float]:
    if brokers == 1:
        return [total]
    rest = total * (1 - HOT) / (brokers - 1)
    return [total * HOT if broker == hot else rest for broker in range(brokers)]


def _shares(brokers: int, random: Random) -> list[float]:
    weights = [random.expovariate(1.0) for _ in range(brokers)]
    return [weight / sum(weights) for weight in weights]
