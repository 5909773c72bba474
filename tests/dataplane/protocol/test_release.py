"""Long messages are let go a piece at a time: nothing is left, and no step frees much."""

import gc
import itertools
import weakref

import pytest

from dataplane.protocol.messages.discovery import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from dataplane.protocol.release import ELEMENTS_PER_STEP, abandoned, released


class Told(str):  # noqa: SLOT000 - without slots it can be watched
    """A name that can be watched."""


def watched(names):
    """Names, and how many of them are alive."""
    made = [Told(name) for name in names]
    watches = [weakref.ref(name) for name in made]
    return made, lambda: sum(watch() is not None for watch in watches)


@pytest.fixture(autouse=True)
def without_collector():
    """What is freed is freed because nobody refers to it."""
    gc.disable()
    yield
    gc.enable()


def most_in_a_step(held, alive):
    """How many of the watched are freed in one step at most; the last step pauses no more."""
    left = [alive(), *(alive() for _ in released(held)), alive()]
    return max(before - after for before, after in itertools.pairwise(left))


def topics(names, partitions=0):
    rows = tuple(MetadataResponsePartition(partition_index=index) for index in range(partitions))
    return tuple(MetadataResponseTopic(name=name, partitions=rows) for name in names)


@pytest.mark.parametrize("many", [0, 1, ELEMENTS_PER_STEP, ELEMENTS_PER_STEP + 1, 5_000])
def test_everything_goes_and_little_in_a_step(many):
    names, alive = watched(f"topic-{n}" for n in range(many))
    held = [MetadataResponse(brokers=(MetadataResponseBroker(1, "host", 9092),), topics=topics(names))]
    del names
    assert most_in_a_step(held, alive) <= ELEMENTS_PER_STEP
    assert (held, alive()) == ([], 0)


def test_arrays_within_arrays_go_in_steps_as_well():
    names, alive = watched(f"host-{n}" for n in range(3_000))
    brokers = tuple(MetadataResponseBroker(n, name, 9092) for n, name in enumerate(names))
    held = [[MetadataResponse(brokers=brokers)], [MetadataResponse(topics=topics(["one"], 4_000))]]
    del names, brokers
    for message in held:
        assert most_in_a_step(message, alive) <= ELEMENTS_PER_STEP
    assert alive() == 0


def test_the_many_partitions_of_one_topic_go_in_steps_as_well():
    names, alive = watched(f"rack-{n}" for n in range(5_000))
    rows = tuple(MetadataResponsePartition(partition_index=n, isr_nodes=(name,)) for n, name in enumerate(names))
    held = [MetadataResponse(topics=(MetadataResponseTopic(name="one", partitions=rows),))]
    del names, rows
    assert most_in_a_step(held, alive) <= ELEMENTS_PER_STEP
    assert alive() == 0


def test_what_somebody_else_refers_to_stays_whole():
    message = MetadataResponse(topics=topics([f"topic-{n}" for n in range(1_000)]))
    for _ in released([message]):
        pass
    assert [topic.name for topic in message.topics] == [f"topic-{n}" for n in range(1_000)]


@pytest.mark.parametrize("kind", [list, tuple, set, dict.fromkeys], ids=["list", "tuple", "set", "dict"])
def test_containers_go_in_steps_as_well(kind):
    names, alive = watched(f"topic-{n}" for n in range(5_000))
    held = [kind(names)]
    del names
    assert most_in_a_step(held, alive) <= ELEMENTS_PER_STEP
    assert alive() == 0


@pytest.mark.parametrize("kind", [list, set, dict.fromkeys], ids=["list", "set", "dict"])
def test_a_container_that_somebody_else_has_stays_whole(kind):
    shared = kind([f"topic-{n}" for n in range(1_000)])
    for _ in released([[shared], shared]):
        pass
    assert len(shared) == 1_000


class Looking:
    """An object of a handler, as the ones in `dataplane` are."""

    __module__ = "dataplane.of.a.test"
    __slots__ = ("names",)


def looks_at(names):
    looking = Looking()
    looking.names = [(name, {n: name}) for n, name in enumerate(names)]
    del names
    yield from within(looking)


def within(looking):
    for _ in looking.names:
        yield


def test_what_somebody_gave_up_half_way_goes_in_steps():
    names, alive = watched(f"topic-{n}" for n in range(5_000))
    steps = looks_at(names)
    del names
    for _ in range(100):
        next(steps)
    left = [alive(), *(alive() for _ in abandoned(steps)), alive()]
    assert max(before - after for before, after in itertools.pairwise(left)) <= 2 * ELEMENTS_PER_STEP
    assert left[-1] == 0
    with pytest.raises(StopIteration):
        next(steps)


def test_who_gives_up_hears_of_it_before_anything_goes():
    told = []

    def steps(names):
        try:
            yield
        finally:
            told.append(len(names))

    begun = steps(["topic"] * 1_000)
    next(begun)
    letting_go = abandoned(begun)
    assert not told
    next(letting_go)
    assert told == [1_000]
