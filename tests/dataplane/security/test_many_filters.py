"""Thousands of filters are answered as one after the other would be, at the cost of their sum."""

from hypothesis import given
from hypothesis import strategies as st

from dataplane.security.many_filters import by_first_filter, matching
from quota.contracts.acls import Acl, AclOperation, PatternType, Permission, ResourceType
from quota.core.acl_filters import MATCH, AclFilter
from quota.steps import run_through

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
NAMES = st.text("ab*\U0010ffff", min_size=1, max_size=3) | st.just("MATCH")
PRINCIPALS, HOSTS = st.sampled_from(["User:a", "MATCH"]), st.sampled_from(["*", "10.0.0.1"])
OPERATIONS, PERMISSIONS = st.sampled_from([AclOperation.READ, AclOperation.ALL]), st.sampled_from(Permission)
ACLS = st.builds(
    Acl,
    st.sampled_from([TOPIC, GROUP]),
    st.sampled_from(PatternType),
    NAMES,
    PRINCIPALS,
    HOSTS,
    OPERATIONS,
    PERMISSIONS,
)
FILTERS = st.builds(
    AclFilter,
    st.sampled_from([None, TOPIC, GROUP, ResourceType.USER]),
    st.sampled_from([None, MATCH, *PatternType]),
    st.none() | NAMES,
    st.none() | PRINCIPALS,
    st.none() | HOSTS,
    st.none() | OPERATIONS,
    st.none() | PERMISSIONS,
)


@given(st.lists(FILTERS, max_size=30), st.lists(ACLS, max_size=30, unique=True))
def test_each_acl_is_told_with_the_first_filter_that_means_it(filters, acls):
    expected = {}
    for one in acls:
        place = next((place for place, asked in enumerate(filters) if asked.takes(one)), None)
        if place is not None:
            expected.setdefault(place, []).append(one)
    assert run_through(by_first_filter(dict(enumerate(filters)), acls)) == expected


@given(FILTERS, st.lists(ACLS, max_size=80))
def test_describing_asks_each(asked, acls):
    assert run_through(matching(asked, acls)) == [one for one in acls if asked.takes(one)]


def test_twenty_thousand_filters_against_five_thousand_acls_are_not_a_product():
    """A product would be a hundred million comparisons; here a pause comes after at most some hundred, a few thousand times."""
    read, allow = AclOperation.READ, Permission.ALLOW
    patterns = [PatternType.LITERAL, PatternType.PREFIXED]
    acls = [Acl(TOPIC, patterns[n % 2], f"t{n:05}", f"User:{n % 7}", "*", read, allow) for n in range(5_000)]
    filters = [
        AclFilter(None if n % 2 else TOPIC, MATCH, f"t{n:05}x", f"User:{n % 11}" if n % 3 else None)
        for n in range(20_000)
    ]
    steps, pauses = by_first_filter(dict(enumerate(filters)), acls), 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found = stop.value
            break
        pauses += 1
    assert 1_000 < pauses < 10_000
    assert sum(map(len, found.values())) > 100
