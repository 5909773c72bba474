"""What is counted of users: the same table in any order, and hours of each user that add up."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.metering.models import UserMaximum
from controlplane.metering.selectors import usage_by_user
from quota.contracts.usage import LONGEST_USER, USER_COUNTERS
from tests.support.usage import user_row, users_raise

pytestmark = pytest.mark.django_db
QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
METERED = SimpleNamespace(pk="ins-aaaaaaaa")
START, END = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[str | int, ...]]:
    """What brokers wrote: counters of each boot, generation and user only grow, hours only go on."""
    written: list[tuple[str | int, ...]] = []
    keys = st.tuples(st.sampled_from(["b1", "b1.1", "b2"]), st.sampled_from(["", "*", "alice"]))
    for boot, user in draw(st.lists(keys, min_size=1, max_size=5, unique=True)):
        hour, counters = 0, [0] * len(USER_COUNTERS)
        for _ in range(draw(st.integers(1, 5))):
            hour = min(23, hour + draw(st.integers(0, 2)))
            counters = [counter + draw(st.integers(0, 10**12)) for counter in counters]
            place = {"boot": boot, "offset": len(written)}
            written.append(user_row(METERED.pk, f"2026-05-01T{hour:02}", user, *counters, **place))
    return written


def table() -> list[tuple[object, ...]]:
    names = [field.name for field in UserMaximum._meta.fields if field.name not in ("id", "updated_at_ms")]
    return sorted(UserMaximum.objects.values_list(*names))


@QUICK
@given(streams(), st.data())
def test_any_order_with_any_repetitions_ends_in_the_same_table(written, data):
    UserMaximum.objects.all().delete()
    for one in written:
        users_raise([one])
    in_order = table()
    UserMaximum.objects.all().delete()
    repeated = written + data.draw(st.lists(st.sampled_from(written), max_size=6))
    users_raise(data.draw(st.permutations(repeated)))
    assert table() == in_order


@QUICK
@given(streams(), st.lists(st.integers(0, 24), max_size=4, unique=True))
def test_hours_of_a_user_add_up_to_the_last_counters_of_all_boots_however_they_are_cut(written, cuts):
    UserMaximum.objects.all().delete()
    users_raise(written)
    last = {(boot, user): counters for _, boot, user, _, _, *counters in written}
    bounds = [START, *(datetime(2026, 5, 1, hour, tzinfo=UTC) for hour in sorted({*cuts} - {0, 24})), END]
    parts = usage_by_user(instance=METERED, bounds=bounds)
    assert len(parts) == len(bounds) - 1
    for name in {user for _, user in last}:
        for place, _ in enumerate(USER_COUNTERS):
            found = sum(part[name][place] for part in parts if name in part)
            assert found == sum(counters[place] for (_, user), counters in last.items() if user == name)


def test_the_longest_name_fits_the_column():
    name = "\N{GRINNING FACE}" * LONGEST_USER
    users_raise([user_row(METERED.pk, "2026-05-01T10", name, 1)])
    assert usage_by_user(instance=METERED, bounds=[START, END]) == [{name: (1, 0, 1)}]
