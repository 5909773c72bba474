"""What is told of whole instances: when, under which hour, to the end, and before their hour is called complete."""

from __future__ import annotations

from random import Random

import pytest

from dataplane.metering.instances import Reading
from dataplane.tenancy.user_traffic import UserTraffics
from quota.contracts.usage import INSTANCE_COUNTERS, HoursComplete, InstanceRecord
from tests.dataplane.metering.support import ORDERS, SECONDS_TO_FIRST_EDGE, World
from tests.dataplane.metering.test_what_is_told_and_when import hour_after

ONE, TWO = "ins-aaaabbbb", "ins-ccccdddd"


class Served:
    """Instances of a broker, whose counters a test moves."""

    def __init__(self, *ids):
        self.counters = {name: [0] * len(INSTANCE_COUNTERS) for name in ids}
        self.read_of = []

    def ids(self):
        return list(self.counters)

    def read(self, instance_id):
        self.read_of.append(instance_id)
        counters = self.counters.get(instance_id)
        return None if counters is None else Reading(*counters)

    def users(self, instance_id):
        """None of them is counted here: see `test_users`."""

    def moves(self, instance_id, *more):
        self.counters[instance_id] = [a + b for a, b in zip(self.counters[instance_id], more, strict=True)]


def lives(*ids, **settings):
    life = World(**settings).boot()
    life.meter.instances.source = served = Served(*ids)
    return life, served


def counters_of(record):
    return tuple(getattr(record, name) for name in INSTANCE_COUNTERS)


def test_who_did_anything_is_told_each_minute_and_who_did_nothing_is_not():
    life, served = lives(ONE, TWO)
    served.moves(ONE, 100, 40, 3, 2_500, 10)
    life.run(59)
    assert life.sink.instances == []
    life.run(3)
    (record,) = life.sink.instances
    assert (record.instance, counters_of(record)) == (ONE, (100, 40, 3, 2_500, 10))
    assert (record.broker, record.boot, record.hour, record.cluster) == (1, f"{1:016x}", hour_after(0), "default")
    life.run(300)
    assert len(life.sink.instances) == 1
    served.moves(ONE, 1, 0, 0, 0, 0)
    life.run(61)
    assert [record.wire_in_bytes for record in life.sink.instances] == [100, 101]


def test_an_hour_is_complete_once_its_instances_are_told():
    life, served = lives(ONE, TWO)
    life.run(SECONDS_TO_FIRST_EDGE - 2)
    served.moves(TWO, 7, 7, 7, 7, 7)
    life.run(30)
    told = [(type(record), record.hour) for record in life.sink.all]
    at = told.index((HoursComplete, hour_after(0)))
    assert (InstanceRecord, hour_after(0)) in told[:at]
    assert (InstanceRecord, hour_after(0)) not in told[at:]


def test_while_one_is_refused_its_hour_is_not_complete():
    life, served = lives(ONE)
    life.run(30)
    life.sink.refuses = lambda record: isinstance(record, InstanceRecord)
    served.moves(ONE, 7, 7, 7, 7, 7)
    life.run(SECONDS_TO_FIRST_EDGE)
    assert [record.hour for record, _ in life.sink.complete] == [hour_after(-1)]
    life.sink.refuses = lambda _: False
    life.run(10)
    assert [record.hour for record, _ in life.sink.complete] == [hour_after(-1), hour_after(0)]


def test_one_that_goes_is_told_to_its_end_and_counts_on_when_it_comes_back():
    life, served = lives(ONE)
    served.moves(ONE, 100, 50, 4, 900, 0)
    life.run(70)
    served.moves(ONE, 11, 0, 1, 100, 0)
    life.meter.instances.gone(ONE, Reading(*served.counters.pop(ONE)), UserTraffics())
    life.run(61)
    assert counters_of(life.sink.instances[-1]) == (111, 50, 5, 1_000, 0)
    served.counters[ONE] = [5, 0, 1, 1_020, 0]  # its account of the loop has not been forgotten meanwhile
    life.run(61)
    assert counters_of(life.sink.instances[-1]) == (116, 50, 6, 1_020, 0)


def test_counters_that_have_begun_again_count_whole():
    life, served = lives(ONE)
    served.moves(ONE, 100, 50, 4, 900, 60)
    life.run(61)
    served.counters[ONE] = [3, 60, 4, 20, 70]
    life.run(61)
    assert counters_of(life.sink.instances[-1]) == (103, 60, 4, 920, 70)


def test_very_many_are_looked_at_in_portions():
    life, served = lives(*(f"ins-{number:08d}" for number in range(2_000)))
    looked = []
    original = life.meter._walk_instances
    life.meter._walk_instances = lambda full: (
        served.read_of.clear(),
        original(full),
        looked.append(len(served.read_of)),
    )
    life.run(65)
    assert sum(looked) == 2_000
    assert max(looked) <= 64


def test_a_clock_that_was_ahead_makes_no_hour_complete_too_early_nor_loses_anything():
    world = World()
    life = world.boot()
    life.meter.instances.source = served = Served(ONE)
    served.moves(ONE, 100, 0, 0, 0, 0)
    life.run(61)
    world.network.step_clock("b1", 30 * 86_400_000)
    served.moves(ONE, 20, 0, 0, 0, 0)
    life.run(61)
    world.network.step_clock("b1", -30 * 86_400_000)
    served.moves(ONE, 3, 0, 0, 0, 0)
    life.run(61)
    assert {record.hour for record in life.sink.instances} == {hour_after(0)}
    assert max(record.wire_in_bytes for record in life.sink.instances) == 123


def test_an_orderly_stop_tells_what_was_moved_last():
    from dataplane.tasks import Task

    life, served = lives(ONE)
    served.moves(ONE, 9, 9, 9, 9, 9)
    stopping = Task(life.meter.stop(1.0))
    life.run(0.1)
    assert stopping.done
    assert [counters_of(record) for record in life.sink.instances] == [(9,) * 5]


def hours_of(records):
    """(instance, hour) -> what was used in it, as the contract has it read."""
    found = {}
    boots = {(record.boot, record.instance) for record in records if isinstance(record, InstanceRecord)}
    for boot, instance in boots:
        largest = {}
        for record in records:
            if isinstance(record, InstanceRecord) and (record.boot, record.instance) == (boot, instance):
                before = largest.get(record.hour, (0,) * 5)
                largest[record.hour] = tuple(map(max, before, counters_of(record)))
        before = (0,) * 5
        for hour in sorted(largest):
            grown = tuple(max(0, now - then) for then, now in zip(before, largest[hour], strict=True))
            found[instance, hour] = tuple(map(sum, zip(found.get((instance, hour), (0,) * 5), grown, strict=True)))
            before = tuple(map(max, before, largest[hour]))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_of_an_hour_that_is_called_complete_nothing_changes_any_more_and_nothing_is_doubled(seed):
    random, world, told = Random(seed), World(), []
    life = world.boot()
    life.meter.instances.source = served = Served(ONE, TWO)
    moved = {ONE: 0, TWO: 0}

    def largest(name):
        return sum(
            max(
                (r.wire_in_bytes for r in told if isinstance(r, InstanceRecord) and (r.boot, r.instance) == key),
                default=0,
            )
            for key in {(r.boot, r.instance) for r in told if isinstance(r, InstanceRecord) and r.instance == name}
        )

    for _ in range(120):
        what = random.choice(["move", "move", "move", "refuse", "accept", "accept", "go", "kill"])
        name = random.choice([ONE, TWO])
        if what == "move" and name in served.counters:
            size = random.randint(1, 10_000)
            served.moves(name, size, 0, 1, 0, 0)
            moved[name] += size
        elif what == "refuse":
            share, chance = random.random(), Random(random.random())
            life.sink.refuses = lambda _, share=share, chance=chance: chance.random() < share
        elif what == "accept":
            life.sink.refuses = lambda _: False
        elif what == "go" and name in served.counters:
            life.meter.instances.gone(name, Reading(*served.counters.pop(name)), UserTraffics())
        elif what == "go":
            served.counters[name] = [0] * 5
        elif what == "kill" and random.random() < 0.3:
            told += life.sink.all
            world.kill()
            life.run(random.choice([0, 4_000]))
            life = world.boot()
            life.meter.instances.source = served = Served(ONE, TWO)
        life.run(random.choice([1, 7, 60, 500]))
    life.sink.refuses = lambda _: False
    life.meter.topic(ORDERS).produced(1)
    life.run(2 * 3_600)
    told += life.sink.all
    final = hours_of(told)
    for at, record in enumerate(told):
        if isinstance(record, HoursComplete):
            then = {key: used for key, used in hours_of(told[:at]).items() if key[1] <= record.hour and any(used)}
            assert then == {key: used for key, used in final.items() if key[1] <= record.hour and any(used)}
    for name in (ONE, TWO):
        assert largest(name) <= moved[name], "nothing is doubled"
        assert sum(used[0] for (instance, _), used in final.items() if instance == name) == largest(name)
