"""What brokers say of whole hours, in order: what counts, what is a gap, and what may be dropped."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.pipeline.statements import Statement, superseded, told


def said(*rows):
    """(boot, hour[, boots before it]) in order; said at 10, 20, …"""
    return [
        Statement(number, 1, f"h{hour:02}", boot, tuple(after), 10 * (number + 1))
        for number, (boot, hour, *after) in enumerate(rows)
    ]


def test_a_boot_goes_on_and_the_next_follows_it():
    found = told(said(("a", 1), ("a", 2), ("b", 2, "a"), ("b", 3, "a")))
    assert (found.hour, found.last.boot, found.gap) == ("h03", "b", None)


def test_who_follows_nobody_that_spoke_is_a_gap_and_so_is_who_follows_that_one_alone():
    found = told(said(("a", 1), ("x", 5), ("x", 6), ("y", 7, "x")))
    assert (found.hour, found.last.boot, found.gap.hour) == ("h01", "a", "h05")


def test_a_gap_is_closed_by_who_has_told_both_or_by_a_judgement():
    rows = [("a", 1), ("x", 5), ("b", 6, "a", "x")]
    assert told(said(*rows)).hour == "h06"
    assert told(said(*rows)).gap is None
    assert told(said(("a", 1), ("x", 5), ("y", 7, "x")), judged={"x"}).hour == "h07"


def test_nothing_said_is_nothing_told():
    assert told([]) == (None, "", None)
    assert superseded([], 100) == ((None, "", None), [])


BOOTS = "abcd"
ROWS = st.lists(
    st.tuples(st.sampled_from(BOOTS), st.integers(0, 20), st.lists(st.sampled_from(BOOTS), max_size=2)), max_size=12
)


@given(ROWS, st.integers(0, 130), st.sets(st.sampled_from(BOOTS)))
def test_what_is_dropped_changes_nothing_that_is_known_then_or_later(rows, read_to_ms, judged):
    statements = said(*((boot, hour, *after) for boot, hour, after in rows))
    certain, ids = superseded(statements, read_to_ms, judged)
    kept = [
        each._replace(hour=certain.hour) if certain.last is not None and each.id == certain.last.id else each
        for each in statements
        if each.id not in ids
    ]
    for later in range(read_to_ms, 140, 5):
        before = told((each for each in statements if each.said_at_ms <= later), judged)
        after = told((each for each in kept if each.said_at_ms <= later), judged)
        assert (after.hour, after.gap) == (before.hour, before.gap)
