"""The assignors: who gets what, how even it is, how little moves."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from dataplane.groups import settings
from dataplane.groups.consumer.assignors import ASSIGNORS, assign_range, assign_uniform
from dataplane.groups.consumer.assignors.subscription import Subscriber

T, U, V = (UUID(int=n) for n in (1, 2, 3))


def members(had=None, **topics):
    had = had or {}
    return {name: Subscriber(frozenset(some), had.get(name, {})) for name, some in topics.items()}


def counts(assigned):
    return [sum(map(len, partitions.values())) for partitions in assigned.values()]


def test_the_settings_name_what_there_is():
    assert sorted(ASSIGNORS) == sorted(settings.ASSIGNORS)


def test_uniform_gives_each_as_many():
    assert assign_uniform(members(a=[T], b=[T]), {T: 5}) == {"a": {T: (0, 1, 2)}, "b": {T: (3, 4)}}


def test_uniform_leaves_everybody_what_it_can():
    had = {"a": {T: (0, 1, 2)}, "b": {T: (3, 4, 5)}}
    assert assign_uniform(members(had, a=[T], b=[T], c=[T]), {T: 6}) == {
        "a": {T: (0, 1)},
        "b": {T: (3, 4)},
        "c": {T: (2, 5)},
    }


def test_who_has_the_most_keeps_the_larger_share():
    had = {"a": {T: (0,)}, "b": {T: (1, 2)}}
    assert assign_uniform(members(had, a=[T], b=[T]), {T: 3}) == {"a": {T: (0,)}, "b": {T: (1, 2)}}


def test_what_does_not_exist_any_more_is_not_kept():
    had = {"a": {T: (0, 7), U: (0,)}}
    assert assign_uniform(members(had, a=[T, U]), {T: 2}) == {"a": {T: (0, 1)}}


def test_uniform_evens_out_where_subscriptions_differ():
    assigned = assign_uniform(members(a=[T, U], b=[T]), {T: 4, U: 2})
    assert sorted(counts(assigned)) == [3, 3]
    assert assigned["a"][U] == (0, 1)


def test_uniform_cannot_give_what_nobody_else_subscribes_to():
    assert counts(assign_uniform(members(a=[U], b=[T]), {T: 1, U: 6})) == [6, 1]


def test_range_gives_neighbours_and_the_same_numbers_of_each_topic():
    assigned = assign_range(members(a=[T, U], b=[T, U]), {T: 3, U: 3})
    assert assigned == {"a": {T: (0, 1), U: (0, 1)}, "b": {T: (2,), U: (2,)}}


def test_range_leaves_everybody_what_it_can():
    had = {"a": {T: (0, 1, 2, 3)}}
    assert assign_range(members(had, a=[T], b=[T]), {T: 4}) == {"a": {T: (0, 1)}, "b": {T: (2, 3)}}


@st.composite
def _groups(draw):
    sizes = draw(st.dictionaries(st.sampled_from([T, U, V]), st.integers(1, 9), min_size=1))
    topics = st.frozensets(st.sampled_from(sorted(sizes)))
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
    had = st.dictionaries(st.sampled_from([T, U, V]), st.frozensets(st.integers(0, 9)).map(lambda s: tuple(sorted(s))))
    return {name: Subscriber(draw(topics), draw(had)) for name in sorted(names)}, sizes


@given(_groups(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_goes_to_one_who_subscribes_to_it(group, name):
    subscribers, sizes = group
    assigned = ASSIGNORS[name](subscribers, sizes)
    places = [(topic, p) for some in assigned.values() for topic, partitions in some.items() for p in partitions]
    wanted = {topic for subscriber in subscribers.values() for topic in subscriber.topics}
    assert sorted(places) == sorted((topic, p) for topic in wanted for p in range(sizes[topic]))
    assert all(set(assigned[name]) <= subscribers[name].topics for name in subscribers)


@given(_groups())
def test_uniform_leaves_nothing_that_would_be_more_even_elsewhere(group):
    subscribers, sizes = group
    assigned = assign_uniform(subscribers, sizes)
    load = dict(zip(assigned, counts(assigned), strict=True))
    for member, some in assigned.items():
        for topic in some:
            others = [name for name, subscriber in subscribers.items() if topic in subscriber.topics]
            assert all(load[name] >= load[member] - 1 for name in others)


@given(_groups(), st.sampled_from(sorted(ASSIGNORS)))
def test_nothing_moves_when_nothing_has_changed(group, name):
    subscribers, sizes = group
    assigned = ASSIGNORS[name](subscribers, sizes)
    again = {name: Subscriber(subscriber.topics, assigned[name]) for name, subscriber in subscribers.items()}
    assert ASSIGNORS[name](again, sizes) == assigned
