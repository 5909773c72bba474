"""How well a name fits a text, and the best of many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import Invalid
from controlplane.kafka.many_names import ManyNames
from controlplane.search.matching import EXACT, LONGEST, MOST_WORDS, PREFIX, WITHIN, WORD, Best, Wanted, asked


@pytest.mark.parametrize(
    ("text", "name", "rank"),
    [
        ("orders", "orders", EXACT),
        ("ORDERS", "Orders", EXACT),
        ("ord", "orders", PREFIX),
        ("arch", "orders.archive", WORD),
        ("arch ord", "orders.archive", WORD),
        ("rchi", "orders.archive", WITHIN),
        ("ord rchi", "orders.archive", WITHIN),
        ("2", "orders-2", WORD),
        ("rders", "preorders", WITHIN),
        ("x", "orders", None),
        ("ord x", "orders", None),
        (".*", "orders", None),
        ("%", "orders", None),
        ("_", "a_b", WITHIN),
        ("订单", "我的订单", WITHIN),
    ],
)
def test_what_fits_better_has_a_smaller_rank(text, name, rank):
    assert Wanted.of(text).rank(name) == rank


@given(st.text(max_size=20), st.text(max_size=40))
def test_a_rank_is_there_where_every_word_is(text, name):
    wanted = Wanted.of(text)
    assert (wanted.rank(name) is None) == (not wanted.fits(name) and not name.lower().startswith(wanted.whole))


def test_the_best_come_first_and_one_more_tells_that_there_are_others():
    best = Best(Wanted.of("ord"), 2)
    for name in ("record", "new-orders", "ordinary", "ord"):
        best.add(name, name)
    assert best.found == ["ord", "ordinary", "new-orders"]


NAMES = ["ord", "ORD", "orders", "my-ord", "record", "x-ord.y", "ord.ord", "bbbbbbbb", "y.aaaaaaaa.ord"]
INSTANCES = ("ins-aaaaaaaa", "ins-ord1bbbb", "ins-cccccord")


@given(
    st.lists(st.lists(st.sampled_from(NAMES), unique=True), min_size=3, max_size=3),
    st.sampled_from(["ord", "Ord", "o", "r d", "ord y", "ord.", ".ord", "bb", "aaaaaaaa.ord", "cord", "x", "2"]),
    st.integers(1, 12),
)
def test_of_very_many_topics_the_same_are_found(names, text, most):
    by_instance = dict(zip(INSTANCES, names, strict=True))
    one, other = Best(Wanted.of(text), most), Best(Wanted.of(text), most)
    keyed = {pk: [f"{pk.removeprefix('ins-')}.{name}" for name in there] for pk, there in by_instance.items()}
    one.look(ManyNames(keyed), lambda found: found[1])
    for pk, there in by_instance.items():
        for name in there:
            other.add((pk, name), name)
    assert one.found == other.found


def test_without_words_very_many_topics_are_the_first_ones():
    best = Best(Wanted.of(" "), 1)
    best.look(ManyNames({"ins-aaaaaaaa": ["aaaaaaaa.one", "aaaaaaaa.three", "aaaaaaaa.two"]}), lambda found: found[1])
    assert [name for _, name in best.found] == ["one", "three"]


def test_nobody_looks_further_than_there_is_need():
    class Endless:
        def called(self, lower):
            return iter(())

        def beginning(self, lower):
            while True:
                yield f"{lower}-more"

        def matching(self, pattern):
            yield pytest.fail("there were enough before")

        holding = matching

    best = Best(Wanted.of("ord"), 3)
    best.look(Endless(), str)
    assert best.found == ["ord-more"] * 4


@pytest.mark.parametrize("text", ["", "   ", "x" * (LONGEST + 1), "a\x00b", "a\nb", "a\x1b[0m", "\ud800"])
def test_what_no_name_has_is_refused(text):
    with pytest.raises(Invalid) as refusal:
        asked(text)
    assert [each.field for each in refusal.value.errors] == ["q"]


def test_so_many_words_are_looked_for_and_what_has_more_is_refused_or_cut_off():
    words = [f"w{number}" for number in range(MOST_WORDS + 1)]
    with pytest.raises(Invalid) as refusal:
        asked(" ".join(words))
    assert [(each.field, each.detail) for each in refusal.value.errors] == [("q", "must have at most 12 words")]
    assert asked(" ".join(words[1:])).words == tuple(words[1:])
    assert asked("w " * 40).words == ("w",), "the same word again costs nothing"
    assert Wanted.of(" ".join(words)).words == tuple(words[:-1]), "the palette, while somebody types"


def test_spaces_around_and_between_make_no_difference():
    assert asked("  Arch   ord ") == Wanted.of("arch ord")
    assert asked("x" * LONGEST).whole == "x" * LONGEST
