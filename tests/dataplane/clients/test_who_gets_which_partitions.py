"""The rebalance algorithm: every partition one owner, the same whoever works it out, as evenly as the strategy promises."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.clients.connector.rebalance import (
    DOCUMENTED,
    RANGE,
    STRATEGIES,
    assigned,
    changes,
    documented,
    kafka_range,
)

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
PARTITIONS = st.dictionaries(st.sampled_from(["t", "u"]), st.integers(0, 30).map(range), min_size=1)
MEMBERS = st.dictionaries(NAMES, st.dictionaries(st.sampled_from(["t", "u"]), st.integers(1, 12)), min_size=1)
SHARES = st.sampled_from(list(STRATEGIES.values()))


def sizes(share, partitions, threads):
    return [after - first for first, after in (share(partitions, threads, i) for i in range(threads))]


@pytest.mark.parametrize(
    ("partitions", "threads", "by_documents", "by_kafka"),
    [
        (5, 4, [2, 2, 1, 0], [2, 1, 1, 1]),
        (4, 2, [2, 2], [2, 2]),
        (1, 3, [1, 0, 0], [1, 0, 0]),
        (7, 3, [3, 3, 1], [3, 2, 2]),
        (0, 2, [0, 0], [0, 0]),
    ],
)
def test_shares_by_hand(partitions, threads, by_documents, by_kafka):
    assert sizes(documented, partitions, threads) == by_documents
    assert sizes(kafka_range, partitions, threads) == by_kafka


@given(PARTITIONS, MEMBERS, SHARES)
def test_every_partition_that_somebody_reads_has_one_owner_who_reads_it(partitions, members, share):
    owners = assigned(partitions, members, share)
    read = {topic for topics in members.values() for topic in topics}
    assert set(owners) == {(topic, p) for topic in partitions if topic in read for p in partitions[topic]}
    for (topic, _), thread in owners.items():
        member, _, number = thread.rpartition("-")
        assert int(number) < members[member][topic]


@settings(max_examples=40)
@given(PARTITIONS, MEMBERS, SHARES, st.randoms(use_true_random=False))
def test_it_is_the_same_in_whatever_order_things_are_seen(partitions, members, share, chance):
    def shuffled(items):
        items = list(items)
        chance.shuffle(items)
        return items

    other_members = {member: dict(shuffled(topics.items())) for member, topics in shuffled(members.items())}
    other_partitions = {topic: shuffled(some) for topic, some in shuffled(partitions.items())}
    assert assigned(other_partitions, other_members, share) == assigned(partitions, members, share)


@given(st.integers(0, 200), st.integers(1, 40))
def test_kafkas_are_within_one_of_each_other(partitions, threads):
    found = sizes(kafka_range, partitions, threads)
    assert sum(found) == partitions
    assert max(found) - min(found) <= 1


@given(st.integers(0, 200), st.integers(1, 40))
def test_the_documents_are_full_ones_then_a_rest_then_none(partitions, threads):
    found = sizes(documented, partitions, threads)
    most = -(-partitions // threads)
    assert sum(found) == partitions
    assert found == sorted(found, reverse=True)
    assert len([size for size in found if size not in (0, most)]) <= 1


@given(PARTITIONS, MEMBERS, SHARES)
def test_each_thread_gets_partitions_that_stand_beside_each_other(partitions, members, share):
    by_thread: dict[tuple[str, str], list[int]] = {}
    for (topic, partition), thread in assigned(partitions, members, share).items():
        by_thread.setdefault((topic, thread), []).append(partition)
    assert all(sorted(some) == list(range(min(some), max(some) + 1)) for some in by_thread.values())


def test_threads_are_sorted_as_text_as_kafka_does():
    owners = assigned({"t": range(11)}, {"m": {"t": 11}}, kafka_range)
    assert [owners["t", p] for p in range(3)] == ["m-0", "m-1", "m-10"]


OWNERS = st.dictionaries(st.tuples(st.just("t"), st.integers(0, 8)), st.sampled_from(["m-0", "m-1"]))


@given(OWNERS, OWNERS)
def test_changes_lead_from_what_is_held_to_what_is_wanted_and_touch_nothing_else(held, wanted):
    release, claim = changes(held, wanted)
    after = {place: thread for place, thread in held.items() if place not in release}
    assert set(after).isdisjoint(place for place, _ in claim)  # a node that is there cannot be claimed
    assert {**after, **dict(claim)} == wanted
    assert not {place for place in held if wanted.get(place) == held[place]} & {*release, *dict(claim)}


@given(PARTITIONS, MEMBERS, MEMBERS, SHARES)
def test_members_that_follow_one_after_the_other_never_hold_the_same(partitions, before, after, share):
    """Each releases, then claims what is free; so often that all have had their turn twice, nothing is left over."""
    nodes: dict[tuple[str, int], str] = dict(assigned(partitions, before, share))
    wanted = assigned(partitions, after, share)
    for member in [*sorted({*before, *after}), *sorted({*before, *after})]:
        mine = {place: thread for place, thread in nodes.items() if thread.startswith(f"{member}-")}
        plan = changes(mine, {p: t for p, t in wanted.items() if t.startswith(f"{member}-")})
        for place in plan.release:
            del nodes[place]
        for place, thread in plan.claim:
            nodes.setdefault(place, thread)
    assert nodes == wanted


def test_both_strategies_have_a_name():
    assert STRATEGIES[DOCUMENTED] is documented
    assert STRATEGIES[RANGE] is kafka_range
