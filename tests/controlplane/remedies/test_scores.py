"""The noisy-neighbour score, and spells of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.remedies.scores import LEAST_KNOWN, Kind, Minute, Score, Slow, score_of, spells

QUIET = [Slow(1_000, 4_000, 100_000, 300_000, 10_000_000)] * 60
NOON = 1_740_830_400


def slow(produce=0, fetch=0, others=7_100_000):
    return Slow(produce, fetch, 400_000, others, 10_000_000)


def test_it_is_how_much_is_above_the_usual_times_what_others_had_of_the_broker():
    found = score_of(slow(fetch=38_000), QUIET)
    assert found == Score(round(100 * (1 - 4 / 38) * 0.71), Kind.FETCH, 4_000)
    assert found.score == 64


def test_of_both_kinds_the_one_that_is_further_off_counts():
    found = score_of(slow(produce=50_000, fetch=10_000), QUIET)
    assert (found.kind, found.usual_us) == (Kind.PRODUCE, 1_000)


@pytest.mark.parametrize(
    "given",
    [
        slow(fetch=7_900),  # not twice the usual
        slow(produce=2_900),  # not 2 ms more
        slow(fetch=38_000, others=0),  # the broker was idle, or all its own
        slow(),
    ],
)
def test_what_is_no_spike_or_has_no_neighbours_has_none(given):
    assert score_of(given, QUIET).score == 0


def test_what_is_usual_is_not_known_of_a_few_minutes():
    assert score_of(slow(fetch=38_000), QUIET[: LEAST_KNOWN - 1]).score == 0
    assert score_of(slow(fetch=38_000), QUIET[:LEAST_KNOWN]).score == 64
    without = [Slow(1_000, 0, 1, 1, 10_000_000)] * 60
    assert score_of(slow(fetch=38_000), without).score == 0, "nothing was fetched before"


def test_earlier_spikes_do_not_become_the_usual():
    before = QUIET[:40] + [slow(fetch=38_000)] * 20
    assert score_of(slow(fetch=38_000), before).usual_us == 4_000


@given(
    st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 3 * 10**7), st.integers(1, 2 * 10**7),
    st.lists(st.builds(Slow, *[st.integers(0, 10**6)] * 4, st.just(10**7)), max_size=70),
)  # fmt: skip
def test_it_is_always_from_0_to_100(produce, fetch, others, elapsed, before):
    assert 0 <= score_of(Slow(produce, fetch, 0, others, elapsed), before).score <= 100


def minute(number, *, broker=2, score=50, kind=Kind.FETCH, instance="ins-a"):
    return Minute(instance, broker, NOON + 60 * number, slow(produce=9_000, fetch=38_000), Score(score, kind, 4_000))


def test_minutes_in_a_row_are_one_spell_with_the_figures_of_the_worst():
    first, second = spells([minute(1, score=80), minute(0), minute(2), minute(4)])
    assert (first.started_at, first.ended_at) == (NOON + 240, NOON + 300)
    assert (second.started_at, second.ended_at, second.worst.score.score) == (NOON, NOON + 180, 80)
    assert (second.p99_us, second.others_percent, second.own_percent) == (38_000, 71, 4)


def test_other_brokers_kinds_and_instances_are_other_spells():
    alike = minute(0)
    for other in (minute(1, broker=3), minute(1, kind=Kind.PRODUCE), minute(1, instance="ins-b")):
        assert len(spells([alike, other])) == 2
