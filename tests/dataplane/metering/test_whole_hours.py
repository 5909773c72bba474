"""What a broker says of whole hours is true: of an hour that it calls complete nothing ever changes any more.

Random lives of one broker over hours: traffic, storage, topics that go and come, answers that leave late, a topic that takes
nothing for a while, clocks that are ahead and behind, kills at any moment and long absences. After each statement the hours up to
it are what they are at the end.
"""

from random import Random

import pytest

from dataplane.metering.hours import HOUR_MS
from quota.contracts.usage import HoursComplete, UsageRecord
from tests.dataplane.metering.support import World, hourly

TOPICS = [f"aaaabbbb.t{n}" for n in range(4)]
STEPS = 150


class Story:
    """One random sequence; `told` is all that was acknowledged, in order."""

    def __init__(self, seed, *, clocks=False):
        self.clocks, self.skew = clocks, 0
        self.random, self.world, self.told = Random(seed), World(), []
        self.life = self.world.boot()
        self.stored, self.retired = dict.fromkeys(TOPICS, 0), {}

    def go(self):
        for _ in range(STEPS):
            self.step()
            self.life.run(self.random.choice([0.1, 1, 7, 60, 500]))
        self.life.sink.refuses = lambda _: False
        self.life.run(2 * HOUR_MS / 1000)
        self.told += self.life.sink.all
        return self.told

    def step(self):
        random, topic = self.random, self.random.choice(TOPICS)
        what = random.choice(
            ["produce", "produce", "consume", "store", "store", "refuse", "accept", "accept", "retire", "kill"]
        )
        if what in ("produce", "consume"):
            usage = self.life.meter.topic(topic)
            (usage.produced if what == "produce" else usage.consumed)(random.randint(1, 10_000))
        elif what == "store":
            size = random.randint(0, 10_000)
            self.life.meter.topic(topic).stored(size - self.stored[topic])
            self.stored[topic] = size
        elif what == "refuse":
            share, chance = random.random(), Random(random.random())
            self.life.sink.refuses = lambda _: chance.random() < share
        elif what == "accept":
            self.life.sink.refuses = lambda _: False
        elif what == "retire":
            self.life.meter.topic(topic).stored(-self.stored[topic])
            self.stored[topic] = 0
            self.retired[topic] = self.life.meter.topic(topic)
            self.life.meter.retire(topic)
        elif what == "clock":
            hours = random.choice([-30, -3, -1, 0, 0, 0, 1, 3, 30]) if self.clocks else 0
            self.world.network.step_clock("b1", hours * HOUR_MS - self.skew)
            self.skew = hours * HOUR_MS
        elif random.random() < 0.3:
            self.told += self.life.sink.all
            self.world.kill()
            self.life.run(random.choice([0, 30, 4_000, 9_000]))
            self.life = self.world.boot()
            self.stored, self.retired = dict.fromkeys(TOPICS, 0), {}


def hours_of(records):
    """(topic, hour) -> what was used, of usage records in any order."""
    usage = [record for record in records if isinstance(record, UsageRecord)]
    return {(topic, hour): used for topic in {r.topic for r in usage} for hour, used in hourly(usage, topic).items()}


@pytest.mark.parametrize("clocks", [False, True], ids=["right clocks", "wrong clocks"])
@pytest.mark.parametrize("seed", range(12))
def test_of_an_hour_that_is_called_complete_nothing_changes_any_more(seed, clocks):
    told = Story(seed, clocks=clocks).go()
    final = hours_of(told)
    said = [(at, record.hour) for at, record in enumerate(told) if isinstance(record, HoursComplete)]
    assert len({hour for _, hour in said}) >= 3
    for at, until in said:
        then = hours_of(told[:at])
        closed = {key: used for key, used in final.items() if key[1] <= until and any(used)}
        assert {key: used for key, used in then.items() if key[1] <= until and any(used)} == closed
