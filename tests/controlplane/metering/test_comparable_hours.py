"""Which hours can be compared and of which clusters: whatever is left out is named, and days wait for what may come back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.metering.pipeline.comparable import (
    Looked,
    Part,
    Range,
    Used,
    day_range,
    days_due,
    hour_of,
    parts,
    since_ms,
)

ONE, TWO, THREE = "default", "second", "third"
MAY = Range("2026-05-01T00:00:00Z", "2026-05-05T00:00:00Z")
BEFORE = "2026-04-02T03:00:00Z"


def hour(number: int) -> str:
    """Of May, the first being 0."""
    return f"{datetime(2026, 5, 1, tzinfo=UTC) + timedelta(hours=number):%Y-%m-%dT%H}:00:00Z"


def day(number: int) -> date:
    return date(2026, 5, number)


def using(used: dict[str, set[str]]) -> Used:
    return lambda cluster, hours: any(hours.start <= each < hours.end for each in used.get(cluster, ()))


def part(start: int, end: int, *read: str, gone: tuple[str, ...] = (), later: tuple[str, ...] = ()) -> Part:
    return Part(Range(hour_of(day(start)), hour_of(day(end))), read, gone, later)


def of_may(tables: dict[str, str | None], used: dict[str, set[str]], *retired: str) -> list[Part]:
    return parts(MAY, tables, using(used), retired)


class TestParts:
    def test_all_that_is_there_is_compared_together(self):
        assert of_may({ONE: BEFORE, TWO: BEFORE}, {}) == [part(1, 5, ONE, TWO)]

    def test_a_cluster_without_a_table_is_named_and_keeps_nobody_from_being_compared(self):
        assert of_may({ONE: BEFORE, TWO: None}, {TWO: {hour(30)}}) == [part(1, 5, ONE, gone=(TWO,))]
        assert of_may({ONE: BEFORE, TWO: None}, {}) == [part(1, 5, ONE, gone=(TWO,))]

    def test_one_that_is_retired_is_missed_only_where_it_has_usage(self):
        assert of_may({ONE: BEFORE, TWO: None}, {TWO: {"2026-04-30T23:00:00Z"}}, TWO) == [part(1, 5, ONE)]
        assert of_may({ONE: BEFORE, TWO: None}, {TWO: {hour(0)}}, TWO) == [part(1, 5, ONE, gone=(TWO,))]

    def test_one_whose_table_begins_later_is_compared_from_the_next_day_on(self):
        found = of_may({ONE: BEFORE, TWO: hour(34)}, {TWO: {hour(7), hour(40)}})
        assert found == [part(1, 3, ONE, later=(TWO,)), part(3, 5, ONE, TWO)]

    def test_hours_that_are_no_whole_days_are_cut_at_the_hour(self):
        hours = Range(hour(20), hour(50))
        assert parts(hours, {ONE: hour(34)}, using({ONE: {hour(21)}}), ()) == [
            Part(Range(hour(20), hour(34)), (), (), (ONE,)), Part(Range(hour(34), hour(50)), (ONE,)),
        ]  # fmt: skip

    def test_a_new_cluster_lacks_nothing_of_the_hours_before_it(self):
        assert of_may({ONE: BEFORE, TWO: hour(34)}, {ONE: {hour(3)}, TWO: {hour(35)}}) == [part(1, 5, ONE, TWO)]

    def test_before_all_tables_nothing_can_be_compared_and_every_cluster_is_named(self):
        found = of_may({ONE: hour(34), TWO: hour(60), THREE: None}, {TWO: {hour(1), hour(50)}}, THREE)
        assert found == [
            part(1, 3, gone=(THREE,), later=(ONE, TWO)),
            part(3, 4, ONE, later=(TWO,)),
            part(4, 5, ONE, TWO),
        ]

    def test_where_no_table_is_there_it_is_the_same(self):
        assert of_may({ONE: None, TWO: None}, {}, TWO) == [part(1, 5, gone=(ONE, TWO))]


HOURS = st.integers(0, 95).map(hour)
RANGES = st.tuples(st.integers(0, 95), st.integers(1, 96)).filter(lambda pair: pair[0] < pair[1])


@given(
    st.one_of(RANGES, st.sampled_from([(0, 24), (0, 96), (24, 72)])),
    st.dictionaries(st.sampled_from([ONE, TWO, THREE]), st.none() | st.just(BEFORE) | HOURS, min_size=1),
    st.dictionaries(st.sampled_from([ONE, TWO, THREE]), st.sets(HOURS)),
    st.sets(st.sampled_from([TWO, THREE])),
)
def test_every_hour_of_a_cluster_is_compared_or_the_cluster_is_named(bounds, tables, used, retired):
    hours = Range(hour(bounds[0]), hour(bounds[1]))
    found = parts(hours, tables, using(used), retired)
    assert [found[0].hours.start, *(each.hours.end for each in found)] == [
        *(each.hours.start for each in found), hours.end,
    ], "in order, without a gap"  # fmt: skip
    for each in found:
        assert each.hours.start < each.hours.end
        assert not hours.days or each.hours.days, "days stay whole"
        for cluster, begins in tables.items():
            told = {one for one in used.get(cluster, ()) if each.hours.start <= one < each.hours.end}
            if cluster in each.read:
                assert begins is not None
                assert all(one >= begins for one in told), "its table has all of them"
                assert cluster not in (*each.gone, *each.begins_later)
            elif told or (begins is None and cluster not in retired) or not each.read:
                assert cluster in (each.gone if begins is None else each.begins_later)
            else:
                assert cluster not in (*each.gone, *each.begins_later), "nothing of it is missed"


def looked(start: int, end: int, *gone: str, at_ms: int = 0) -> Looked:
    return Looked(hour_of(day(start)), hour_of(day(end)), at_ms, gone)


USED = using({TWO: {hour(30)}})
"""On the 2nd."""


class TestDue:
    @pytest.mark.parametrize(
        ("looks", "expected"),
        [
            ([], [4]),
            ([looked(1, 5)], []),
            ([looked(1, 2)], [2, 3, 4]),
            ([looked(1, 5, TWO)], [2]),  # of the other days it has no usage
            ([looked(1, 5, THREE)], []),
            ([looked(1, 5, TWO), looked(2, 3)], []),  # it has come back
            ([looked(2, 3, TWO)], [2, 3, 4]),  # the first look of all
            ([looked(2, 3, TWO), looked(2, 3, TWO, THREE)], [2, 3, 4]),
        ],
    )
    def test_a_day_is_settled_when_no_cluster_with_usage_was_gone(self, looks, expected):
        assert days_due(day(4), looks, USED) == [day(number) for number in expected]

    def test_two_weeks_later_it_is_waited_for_no_longer(self):
        due = days_due(day(16), [looked(1, 3, TWO), looked(3, 17)], USED)
        assert due == []
        assert days_due(day(15), [looked(1, 3, TWO), looked(3, 17)], USED) == [day(2)]

    def test_nothing_is_due_before_a_day_was_read_to_its_end(self):
        assert days_due(None, [looked(1, 2)], USED) == []

    @given(
        st.lists(st.tuples(st.integers(1, 19), st.integers(1, 4), st.sets(st.sampled_from([TWO, THREE]))), min_size=1),
        st.dictionaries(st.sampled_from([TWO, THREE]), st.sets(st.integers(0, 24 * 20).map(hour))),
    )
    def test_a_day_after_the_first_look_is_due_until_every_cluster_that_used_it_was_looked_at(self, made, hours_used):
        used = using(hours_used)
        looks = [looked(start, start + length, *sorted(gone)) for start, length, gone in made]
        due, last = days_due(day(20), looks, used), day(20)
        begins = min(date.fromisoformat(look.start[:10]) for look in looks)
        for number in range(7, 21):
            whole = [
                look for look in looks if look.start <= hour_of(day(number)) and look.end >= day_range(day(number)).end
            ]
            is_settled = any(not any(used(each, day_range(day(number))) for each in look.gone) for look in whole)
            if day(number) in due:
                assert not is_settled
            elif day(number) > begins + timedelta(days=4):
                assert is_settled, (day(number), last)


def test_late_usage_of_a_cluster_is_looked_for_since_its_table_was_there_last():
    looks = [looked(1, 2, at_ms=5), looked(2, 3, TWO, at_ms=9)]
    assert (since_ms(looks, ONE), since_ms(looks, TWO), since_ms([], ONE)) == (9, 5, None)
    assert since_ms([looked(1, 2, TWO)], TWO) is None


def test_a_look_may_have_missed_what_was_written_after_its_hours_and_one_at_named_hours_missed_what_was_late():
    read_to_ms = int(datetime.fromisoformat(hour_of(day(2))).timestamp() * 1000) + 600_000
    looks = [looked(1, 2, at_ms=10**15)]
    assert since_ms(looks, ONE) == read_to_ms
    named = replace(looked(1, 4, at_ms=10**15), with_late=False)
    assert since_ms([*looks, named], ONE) == read_to_ms
