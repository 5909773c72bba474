"""Days of the quota report beside a limit."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.what_if.rules import GIB, MIB, RESOURCES, ReportedDay, days_beside, limits_of

days = st.lists(
    st.builds(
        lambda resource, p95, more, minutes: ReportedDay(resource, p95, p95 + more, minutes),
        st.sampled_from(RESOURCES), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 3),
    )
)  # fmt: skip
limits = st.fixed_dictionaries({name: st.integers(1, 2 * 10**9) for name in RESOURCES})


def test_limits_are_those_that_an_instance_of_this_size_would_have():
    found = limits_of(bandwidth_mib_per_s=Decimal("2.5"), storage_gib=Decimal(10))
    assert found == {"produce": 2.5 * MIB, "consume": 2.5 * MIB, "storage": 10 * GIB}
    assert limits_of(bandwidth_mib_per_s=None, storage_gib=None) == dict.fromkeys(RESOURCES)
    assert limits_of(bandwidth_mib_per_s=Decimal("1e-9"), storage_gib=None)["produce"] == 1


def test_a_day_at_the_limit_is_not_above_it():
    produce, consume, storage = days_beside(
        [
            ReportedDay("produce", 50, 100, 0), ReportedDay("produce", 50, 101, 2), ReportedDay("produce", 101, 300, 0),
            ReportedDay("storage", 7, 7, 0),
        ],
        {"produce": 100, "consume": 100, "storage": None},
    )  # fmt: skip
    assert (produce.reported, produce.over, produce.mostly_over, produce.throttled, produce.most) == (3, 2, 1, 1, 300)
    assert (consume.reported, consume.over, consume.mostly_over, consume.throttled, consume.most) == (0, 0, 0, 0, None)
    assert (storage.reported, storage.over, storage.mostly_over, storage.most) == (1, None, None, 7)


@settings(max_examples=100, deadline=None)
@given(days, limits, limits)
def test_a_larger_limit_never_has_more_days_above_it(known, one, other):
    larger = {name: max(one[name], other[name]) for name in RESOURCES}
    for small, large in zip(days_beside(known, one), days_beside(known, larger), strict=True):
        assert large.over <= small.over <= small.reported
        assert large.mostly_over <= large.over
        assert large.mostly_over <= small.mostly_over
