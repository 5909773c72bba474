"""The members of a group as a value: like a dict that is copied with every change, and what is counted is what is there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.groups.classic.members import Member, Members
from dataplane.groups.classic.sharing import SharedMap

KEYS = [f"k{n}" for n in range(40)]
CHANGES = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(KEYS), st.integers(0, 9)),
    st.tuples(st.just("put"), st.sampled_from(KEYS), st.integers(0, 9)),
    st.tuples(st.just("without"), st.sampled_from(KEYS)),
    st.tuples(st.just("without all"), st.sets(st.sampled_from(KEYS), max_size=5)),
    st.tuples(st.just("in place of"), st.sampled_from(KEYS), st.sampled_from(KEYS), st.integers(0, 9)),
)


def changed(shared, known, kind, key, *more):
    """The mapping and the dict after a change; those that cannot be made change nothing."""
    if kind == "put":
        return shared.put(key, more[0]), {**known, key: more[0]}
    if kind == "without" and key in known:
        return shared.without(key), {k: v for k, v in known.items() if k != key}
    if kind == "without all":
        return shared.without_all(key), {k: v for k, v in known.items() if k not in key}
    if kind == "in place of" and key in known and more[0] not in known:
        renamed = {more[0] if k == key else k: more[1] if k == key else v for k, v in known.items()}
        return shared.put_in_place_of(key, *more), renamed
    return shared, known


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 9))), st.lists(CHANGES, max_size=80))
def test_it_is_a_dict_that_is_copied_with_every_change(first, changes):
    versions = [(SharedMap.of(first), dict(first))]
    for change in changes:
        versions.append(changed(*versions[-1], *change))
    for shared, known in versions:  # the earlier ones as well
        assert list(shared.items()) == list(known.items())
        assert (list(shared), list(shared.values()), len(shared)) == (list(known), list(known.values()), len(known))
        assert (shared == known, shared.first()) == (True, next(iter(known), None))
        assert all((key in shared, shared.get(key)) == (key in known, known.get(key)) for key in KEYS)


def test_what_is_not_there_is_not_taken_out():
    shared = SharedMap.of([("a", 1)])
    for change in (lambda: shared.without("b"), lambda: shared["b"], lambda: shared.put_in_place_of("b", "c", 1)):
        with pytest.raises(KeyError):
            change()
    assert shared.get("b", 7) == 7


def test_of_many_a_change_copies_few():
    shared = SharedMap.of((f"k{n}", n) for n in range(1_000))
    buckets = shared.put("k500", 0)._buckets
    copied = [bucket for bucket, before in zip(buckets, shared._buckets, strict=True) if bucket is not before]
    assert len(copied) == 1
    assert len(copied[0]) + len(buckets) < 150
    grown = SharedMap()
    for n in range(1_000):
        grown = grown.put(f"k{n}", n)
    assert len(grown._buckets) == len(shared._buckets)
    assert grown == shared


# --- what is counted --------------------------------------------------------------------------------------------------

OFFERS = [(("range", b""),), (("range", b""), ("sticky", b"")), (("sticky", b""), ("range", b"")), (("sticky", b""),)]
NAMES = st.sampled_from([f"m{n}" for n in range(12)])
A_MEMBER = st.builds(
    lambda name, instance, protocols, patience: Member(name, instance, "c", "h", patience, 1, protocols),
    NAMES,
    st.sampled_from([None, None, "A", "B"]),
    st.sampled_from(OFFERS),
    st.sampled_from([10, 20, 30]),
)


def counted(members):
    """As one who looks at all of them."""
    offers = [[name for name, _ in member.protocols] for member in members.values()]
    common = frozenset.intersection(*map(frozenset, offers)) if offers else frozenset()
    favourites = [next(name for name in names if name in common) for names in offers if common]
    return (
        common,
        [(name, favourites.count(name)) for name in (offers[0] if offers else ()) if name in common],
        max((member.rebalance_timeout_ms for member in members.values()), default=0),
        {m.instance_id for m in members.values()} - {None},
    )


def said(members):
    holders = {name: members.holder(name) for name in ("A", "B", "C")}
    assert all(holder is None or holder.instance_id == name for name, holder in holders.items())
    assert all(holder is None or members[holder.member_id] is holder for holder in holders.values())
    held = {name for name, holder in holders.items() if holder is not None}
    return members.common_protocols(), list(members.votes().items()), members.most_patient_ms(), held


@given(st.lists(A_MEMBER), st.lists(st.one_of(A_MEMBER, NAMES, st.tuples(NAMES, A_MEMBER)), max_size=40))
def test_what_is_counted_along_is_what_is_there(first, changes):
    members = Members.of(first)
    for change in changes:
        if isinstance(change, Member):
            members = members.put(change)
        elif isinstance(change, str):
            members = members.without(change) if change in members else members
        elif change[0] in members and change[1].member_id not in members:
            members = members.put_in_place_of(members[change[0]], change[1])
        assert said(members) == counted(members)
        assert said(Members.of(members.values())) == counted(members)
        few = members.without_all({"m1", "m2"})
        assert list(few.items()) == [(name, m) for name, m in members.items() if name not in ("m1", "m2")]
        assert said(few) == counted(few)


def test_who_came_with_an_instance_id_first_holds_it():
    first, second = (Member(name, "A", "c", "h", 1, 1, OFFERS[0]) for name in ("m1", "m2"))
    members = Members.of([first]).put(second)
    assert members.holder("A") is first
    assert members.without("m1").holder("A") is second
    assert members.without("m1").without("m2").holder("A") is None
