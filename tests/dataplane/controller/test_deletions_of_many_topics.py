"""A controller that is to delete many topics begins with one in each turn of the loop: each may have very many partitions."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

from dataplane.controller.deletion import Deletions
from dataplane.controller.removal import Removal
from dataplane.controller.state import DoomedReplica
from dataplane.tasks import Task, resolved


def test_there_is_a_turn_between_any_two():
    happened: list[str] = []
    topics = {name: SimpleNamespace(name=name) for name in ("a", "b", "c")}

    def pause():
        happened.append("pause")
        return resolved(None)

    def begin(topic):
        happened.append(topic.name)
        return resolved(None)

    deletions = SimpleNamespace(begin=begin, removed=lambda _: False)
    removal = Removal(SimpleNamespace(topics=topics), None, deletions, None, pause)
    assert Task(removal.begin(topics)).done
    assert happened == ["a", "pause", "b", "pause", "c", "pause"]


class Channels:
    """They count what is done in each step."""

    def __init__(self):
        self.told, self.in_each_step = [], []
        self.are_open = True

    async def forget(self, partitions):
        self.told.append(len(partitions))

    async def in_steps(self, steps):
        for _ in steps:
            self.in_each_step.append(len(self.told) - sum(self.in_each_step))

    def delete(self, broker, partition):
        if self.are_open:
            self.told.append((partition, broker))
        return self.are_open


def test_of_one_topic_of_very_many_partitions_some_are_told_at_a_time_and_metadata_before_all():
    channels = Channels()
    partitions = {index: SimpleNamespace(index=index, replicas=(1, 2, 3)) for index in range(2_000)}
    deletions = Deletions(None, channels)
    assert Task(deletions.begin(SimpleNamespace(name="large", partitions=partitions))).done
    assert channels.told[0] == 2_000
    assert len(channels.told) == 1 + 6_000
    assert max(channels.in_each_step) <= 100
    assert not deletions.removed("large")
    deletions.stopped(1, [("large", index) for index in partitions], [])
    deletions.stopped(2, [("large", index) for index in partitions], [])
    assert deletions.stopped(3, [("large", index) for index in partitions], []) == ["large"]


def test_a_broker_that_comes_back_is_told_of_all_that_it_has_to_remove_some_at_a_time():
    channels = Channels()
    channels.are_open = False
    deletions = Deletions(None, channels)
    for name in ("one", "two"):
        partitions = {index: SimpleNamespace(index=index, replicas=(1, 2, 3)) for index in range(2_000)}
        assert Task(deletions.begin(SimpleNamespace(name=name, partitions=partitions))).done
    assert deletions.blocked("one")
    channels.are_open, channels.told, channels.in_each_step = True, [], []
    Task(deletions.broker_back())
    assert len(channels.told) == 12_000
    assert 0 < max(channels.in_each_step) <= 100
    assert not deletions.blocked("one")


def test_what_a_broker_that_died_was_told_is_taken_back_some_at_a_time_and_it_is_told_again():
    channels = Channels()
    deletions = Deletions(None, channels)
    for name in ("one", "two"):
        partitions = {index: SimpleNamespace(index=index, replicas=(1, 2, 3)) for index in range(1_000)}
        assert Task(deletions.begin(SimpleNamespace(name=name, partitions=partitions))).done
    noted = [0]

    def note():
        doomed = [key for replicas in deletions._replicas.values() for key in replicas if is_doomed(replicas[key])]
        noted.append(len(doomed))

    async def in_steps(steps):
        for _ in steps:
            note()
        note()

    real, channels.in_steps = channels.in_steps, in_steps
    assert Task(deletions.broker_lost(2)).done
    assert noted[-1] == 2_000
    assert max(after - before for before, after in pairwise(noted)) <= 100
    assert deletions.blocked("one")
    channels.in_steps, channels.told, channels.in_each_step = real, [], []
    assert Task(deletions.broker_back()).done
    assert [broker for _, broker in channels.told] == [2] * 2_000


def test_what_failed_before_anything_was_noted_is_begun_again():
    channels = Channels()
    deletions = Deletions(None, channels)
    topic = SimpleNamespace(name="orders", partitions={0: SimpleNamespace(index=0, replicas=(1, 2))})
    forget = channels.forget

    async def fail(_partitions):
        raise ConnectionError

    channels.forget = fail
    assert isinstance(Task(deletions.begin(topic)).error, ConnectionError)
    assert "orders" in deletions, "nobody gets it meanwhile"
    channels.forget = forget
    assert Task(deletions.begin(topic)).done
    told = list(channels.told)
    assert len(told) == 1 + 2
    assert Task(deletions.begin(topic)).done
    assert channels.told == told, "once it has begun nobody is told again"


def is_doomed(where):
    return where is DoomedReplica.DOOMED
