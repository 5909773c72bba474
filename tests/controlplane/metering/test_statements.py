"""What brokers say of whole hours, in order: what counts, what is a gap, and what may be dropped."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.pipeline.statements import Boot, Statement, Told, superseded, told


def said(*rows):
    """(boot, hour[, boots before it]) in order; said at 10, 20, …"""
    return [
        Statement(number, 1, f"h{hour:02}", boot, tuple(after), 10 * (number + 1))
        for number, (boot, hour, *after) in enumerate(rows)
    ]


def counted(boot, first_hour, at=5):
    """A boot that has told usage from an hour on, first written at a moment."""
    return Boot(1, boot, f"h{first_hour:02}", "h99", at)


def test_a_boot_goes_on_and_the_next_follows_it():
    found = told(said(("a", 1), ("a", 2), ("b", 2, "a"), ("b", 3, "a")))
    assert (found.hour, found.last.boot, found.gap) == ("h03", "b", None)


def test_who_follows_nobody_that_spoke_is_a_gap_and_so_is_who_follows_that_one_alone():
    found = told(said(("a", 1), ("x", 5), ("x", 6), ("y", 7, "x")))
    assert (found.hour, found.last.boot, found.gap.hour, found.lost) == ("h01", "a", "h05", ("a",))


def test_a_gap_is_closed_by_who_has_told_both_or_by_a_judgement():
    rows = [("a", 1), ("x", 5), ("b", 6, "a", "x")]
    assert told(said(*rows)).hour == "h06"
    assert (told(said(*rows)).gap, told(said(*rows)).lost) == (None, ())
    assert told(said(("a", 1), ("x", 5), ("y", 7, "x")), judged={"x"}).hour == "h07"


def test_a_boot_whose_words_did_not_count_has_to_be_named_as_well():
    """Disks that come and go: what `x` counted lies on one that `b` does not see."""
    assert told(said(("a", 1), ("x", 5), ("b", 6, "a"))).hour == "h01"
    assert told(said(("a", 1), ("x", 5), ("b", 6, "a"), ("b", 7, "a", "x"))).hour == "h07"


def test_nothing_said_is_nothing_told():
    assert told([]) == Told()
    assert superseded([], 100) == (Told(), [])


class TestBootsThatNeverSpoke:
    def test_a_boot_that_told_usage_and_is_named_by_nobody_is_a_gap(self):
        """It counted on a disk that the next boot does not see, and died before it could speak."""
        found = told(said(("a", 1), ("b", 4, "a")), boots=[counted("n", 2, at=15)])
        assert (found.hour, found.gap.boot, found.lost) == ("h01", "b", ("n",))

    def test_it_is_none_once_somebody_names_it(self):
        found = told(said(("a", 1), ("b", 4, "a"), ("b", 5, "a", "n")), boots=[counted("n", 2, at=15)])
        assert (found.hour, found.gap) == ("h05", None)

    def test_the_first_boot_of_a_broker_is_no_exception(self):
        found = told(said(("b", 4)), boots=[counted("n", 2)])
        assert (found.hour, found.last, found.lost) == ("", None, ("n",))

    def test_hours_before_it_are_none_of_its_business(self):
        assert told(said(("a", 1), ("b", 1, "a")), boots=[counted("n", 2, at=15)]).hour == "h01"

    def test_one_that_began_after_the_word_was_given_takes_nothing_back(self):
        assert told(said(("a", 1), ("a", 4)), boots=[counted("n", 2, at=21)]).hour == "h04"

    def test_boots_that_spoke_are_accounted_for_by_those_that_followed_them(self):
        boots = [counted("a", 0), counted("b", 2, at=15), counted("c", 3, at=25)]
        found = told(said(("a", 1), ("b", 2, "a"), ("c", 5, "b")), boots=boots)
        assert (found.hour, found.accounted) == ("h05", {"a", "b", "c"})

    def test_an_operators_judgement_is_of_all_that_came_before(self):
        statements = said(("a", 1), ("b", 4, "a"), ("c", 6, "b"))
        assert told(statements, boots=[counted("n", 2, at=15)]).hour == "h01"
        assert told(statements, judged={"b"}, boots=[counted("n", 2, at=15)]).hour == "h06"
        assert told(statements, judged={"b"}, boots=[counted("n", 2, at=25)]).lost == ("n",), "what came later is not"


def test_a_boot_that_speaks_later_was_accounted_for_all_the_same_when_others_spoke():
    """By a judgement, which is dropped; what it says then counts for nothing, and takes nothing back."""
    statements, boots = said(("c", 0), ("a", 0, "c"), ("b", 0)), [counted("b", 0, at=0)]
    certain, ids = superseded(statements, 30, {"c"}, boots)
    assert (certain.hour, certain.gap.boot, certain.accounted, ids) == ("h00", "b", {"a", "b", "c"}, [0])
    assert told(statements[1:], {"c"}, []) == certain._replace(accounted=frozenset("ac"))


BOOTS = "abcd"
ROWS = st.lists(
    st.tuples(st.sampled_from(BOOTS), st.integers(0, 20), st.lists(st.sampled_from(BOOTS), max_size=2)), max_size=12
)
COUNTED = st.lists(
    st.builds(counted, st.sampled_from(f"{BOOTS}mn"), st.integers(0, 20), st.integers(0, 130)),
    max_size=4,
    unique_by=lambda each: each.boot,
)


@given(ROWS, COUNTED, st.integers(0, 130), st.sets(st.sampled_from(BOOTS)))
def test_what_is_dropped_changes_nothing_that_is_known_then_or_later(rows, boots, read_to_ms, judged):
    statements = said(*((boot, hour, *after) for boot, hour, after in rows))
    certain, ids = superseded(statements, read_to_ms, judged, boots)
    kept = [
        each._replace(hour=certain.hour) if certain.last is not None and each.id == certain.last.id else each
        for each in statements
        if each.id not in ids
    ]
    left = [each for each in boots if certain.last is None or each.boot not in certain.accounted]
    for later in range(read_to_ms, 140, 5):
        before = told((each for each in statements if each.said_at_ms <= later), judged, boots)
        after = told((each for each in kept if each.said_at_ms <= later), judged, left)
        assert (after.hour, after.gap) == (before.hour, before.gap)
        assert set(after.lost) == set(before.lost)


@given(ROWS, COUNTED, st.sets(st.sampled_from(BOOTS)))
def test_to_know_of_more_boots_never_makes_more_hours_final(rows, boots, judged):
    statements = said(*((boot, hour, *after) for boot, hour, after in rows))
    assert told(statements, judged, boots).hour <= told(statements, judged).hour
