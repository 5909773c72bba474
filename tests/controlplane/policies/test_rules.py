"""The rules of policies: when they act, how far retention goes, who loses what."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.policies.rules import (
    EXPANSION,
    MINUTE_MS,
    MOST_STEPS_AT_ONCE,
    NONE,
    POLICIES,
    RETENTION,
    ROOM_POINTS,
    Act,
    Extent,
    Kept,
    Loss,
    Rule,
    decide,
    duration_text,
    expanded,
    first_that_frees,
    goes,
    has_room,
    is_over_budget,
    is_reached,
    losses,
    most_steps,
    rule_problems,
    shortened,
    shortens,
)

DAY_MS = 24 * 60 * MINUTE_MS
retentions = st.integers(1, 10 * 365 * DAY_MS)
steps_percent = st.integers(1, 50)
floors = st.integers(MINUTE_MS, 1800 * MINUTE_MS)


# --- what a policy may say --------------------------------------------------------------------------------------------


def problems(**members):
    return [each.field for each in rule_problems(Rule(**members), storage_gib=10, most_gib=1000)]


@pytest.mark.parametrize("policy", [NONE, RETENTION])
def test_the_defaults_are_a_policy(policy):
    assert problems(policy=policy) == []


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"policy": "magic"}, "policy"),
        ({"level_percent": 49}, "level_percent"),
        ({"level_percent": 96}, "level_percent"),
        ({"step_percent": 0}, "step_percent"),
        ({"step_percent": 51}, "step_percent"),
        ({"floor_minutes": 0}, "floor_minutes"),
        ({"floor_minutes": 1801}, "floor_minutes"),
        ({"policy": EXPANSION}, "max_storage_gib"),
        ({"policy": EXPANSION, "max_storage_gib": 9.9}, "max_storage_gib"),
        ({"policy": EXPANSION, "max_storage_gib": 1001}, "max_storage_gib"),
        ({"max_storage_gib": 0}, "max_storage_gib"),
        ({"max_storage_gib": float("nan")}, "max_storage_gib"),
        ({"max_storage_gib": float("inf")}, "max_storage_gib"),
    ],
)
def test_what_is_out_of_bounds_is_named(members, field):
    assert problems(**members) == [field]


def test_bounds_are_within():
    for level, step, floor in ((50, 1, 1), (95, 50, 1800)):
        assert problems(level_percent=level, step_percent=step, floor_minutes=floor) == []
    assert problems(policy=EXPANSION, max_storage_gib=1000) == []
    assert problems(policy=EXPANSION, max_storage_gib=10) == []


# --- when it acts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "used", "is_shortened", "act"),
    [
        (RETENTION, 74, False, None),
        (RETENTION, 75, False, Act.SHORTEN),
        (RETENTION, 75, True, Act.SHORTEN),
        (RETENTION, 66, True, None),
        (RETENTION, 65, True, Act.PUT_BACK),
        (RETENTION, 65, False, None),
        (EXPANSION, 74, False, None),
        (EXPANSION, 75, False, Act.EXPAND),
        (EXPANSION, 99, True, Act.PUT_BACK),  # first what the policy before has done
        (NONE, 100, False, None),
        (NONE, 100, True, Act.PUT_BACK),
    ],
)
def test_what_a_look_comes_to(policy, used, is_shortened, act):
    assert decide(Rule(policy), used_bytes=used, storage_bytes=100, is_shortened=is_shortened) is act


@given(policy=st.sampled_from(POLICIES), is_shortened=st.booleans())
def test_what_is_not_known_deletes_and_buys_nothing(policy, is_shortened):
    act = decide(Rule(policy), used_bytes=None, storage_bytes=100, is_shortened=is_shortened)
    assert act in (None, Act.PUT_BACK)


@given(used=st.integers(0, 2**60), storage=st.integers(1, 2**60), level=st.integers(50, 95))
def test_the_level_is_never_reached_where_there_is_room(used, storage, level):
    assert not (is_reached(level, used, storage) and has_room(level, used, storage))
    assert is_reached(level, used, storage) == (used * 100 >= level * storage)


def test_between_the_level_and_room_nothing_happens():
    between = [used for used in range(101) if not is_reached(75, used, 100) and not has_room(75, used, 100)]
    assert between == list(range(75 - ROOM_POINTS + 1, 75))


# --- how far retention goes -------------------------------------------------------------------------------------------


def test_by_hand():
    assert shortened(7 * DAY_MS, steps=1, step_percent=10, floor_ms=MINUTE_MS) == 6.3 * DAY_MS
    assert shortened(7 * DAY_MS, steps=0, step_percent=10, floor_ms=MINUTE_MS) == 7 * DAY_MS
    assert shortened(100, steps=2, step_percent=50, floor_ms=1) == 25
    assert shortened(100, steps=9, step_percent=50, floor_ms=40) == 40


@given(retention=retentions, steps=st.integers(0, 400), step=steps_percent, floor=floors)
def test_it_is_never_longer_and_never_below_the_floor(retention, steps, step, floor):
    found = shortened(retention, steps=steps, step_percent=step, floor_ms=floor)
    assert found <= retention
    assert found >= min(retention, floor)
    assert shortened(retention, steps=steps + 1, step_percent=step, floor_ms=floor) <= found


@given(kept=st.lists(st.builds(Kept, retentions, st.none(), st.booleans())), step=steps_percent, floor=floors)
def test_most_steps_bring_all_to_the_floor_and_one_fewer_does_not(kept, step, floor):
    most = most_steps(kept, step_percent=step, floor_ms=floor)
    open_ = [each.retention_ms for each in kept if shortens(each, floor)]
    at_most = [shortened(each, steps=most, step_percent=step, floor_ms=floor) for each in open_]
    if most < MOST_STEPS_AT_ONCE:
        assert set(at_most) <= {floor}
    if most:
        before = [shortened(each, steps=most - 1, step_percent=step, floor_ms=floor) for each in open_]
        assert max(before) > floor


@pytest.mark.parametrize(
    ("kept", "is_open"),
    [
        (Kept(DAY_MS, None), True),
        (Kept(DAY_MS, DAY_MS), True),
        (Kept(-1, -1), False),  # everything, since its owner said so
        (Kept(DAY_MS, None, deletes=False), False),
        (Kept(MINUTE_MS, MINUTE_MS), False),
    ],
)
def test_which_topics_are_shortened(kept, is_open):
    assert shortens(kept, MINUTE_MS) is is_open


@given(most=st.integers(0, 400), first=st.integers(1, 500))
def test_the_least_number_of_steps_that_frees_is_found_in_few_questions(most, first):
    asked = []

    def frees(steps):
        asked.append(steps)
        return steps >= first

    assert first_that_frees(most, frees) == (first if first <= most else None)
    assert len(asked) <= 10
    assert all(1 <= steps <= most for steps in asked)


# --- what goes, and who loses it --------------------------------------------------------------------------------------

ORDERS, OTHER = ("orders", 0), ("other", 0)


@pytest.mark.parametrize(
    ("cut", "records"),
    [(100, 0), (90, 0), (103, 3), (110, 10), (999, 10), (None, 10)],  # None: no record is younger
)
def test_what_goes(cut, records):
    assert goes({ORDERS: Extent(100, 110)}, {ORDERS: cut}) == ({"orders": records} if records else {})


def test_a_partition_of_which_no_leader_has_spoken_counts_for_nothing():
    assert goes({ORDERS: Extent(0, 9), OTHER: Extent(0, 9)}, {OTHER: 4}) == {"other": 4}
    assert losses({"g": {ORDERS: 0}}, {ORDERS: Extent(0, 9)}, {}) == []


@pytest.mark.parametrize(
    ("offset", "lost"),
    [(100, 5), (90, 5), (104, 1), (105, 0), (110, 0)],  # 90: what is gone already was lost before
)
def test_what_a_group_loses(offset, lost):
    found = losses({"billing": {ORDERS: offset}}, {ORDERS: Extent(100, 110)}, {ORDERS: 105})
    assert found == ([Loss("billing", "orders", lost)] if lost else [])


def test_losses_are_added_up_by_group_and_topic_the_most_first_with_their_part_of_the_bytes():
    committed = {"a": {ORDERS: 0, ("orders", 1): 5, OTHER: 0}, "b": {ORDERS: 1}, "c": {OTHER: 10}}
    extents = {ORDERS: Extent(0, 10), ("orders", 1): Extent(0, 10), OTHER: Extent(0, 10)}
    cuts = {ORDERS: 4, ("orders", 1): 6, OTHER: 2}
    sizes = {ORDERS: 1000, ("orders", 1): 200}
    assert losses(committed, extents, cuts, sizes) == [
        Loss("a", "orders", 5, 420), Loss("b", "orders", 3, 300), Loss("a", "other", 2, None),
    ]  # fmt: skip


@given(
    offset=st.integers(0, 300), start=st.integers(0, 100), held=st.integers(0, 100), cut=st.none() | st.integers(0, 300)
)
def test_nobody_loses_more_than_goes(offset, start, held, cut):
    extents, cuts = {ORDERS: Extent(start, start + held)}, {ORDERS: cut}
    gone = goes(extents, cuts).get("orders", 0)
    lost = sum(each.records for each in losses({"g": {ORDERS: offset}}, extents, cuts, {ORDERS: 1000}))
    assert 0 <= lost <= gone <= held
    if offset <= start:
        assert lost == gone


# --- how much is bought -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage", "step", "most", "size"),
    [
        (100, 10, 1000, 110),
        (100, 10, 105, 105),
        (37, 10, 1000, 41),  # whole GiB
        (0.1, 10, 1, 0.11),
        (1000, 10, 1000, None),
        (1200, 10, 1000, None),
        (10.5, 10, 10.6, 10.6),
    ],
)
def test_the_next_size(storage, step, most, size):
    assert expanded(storage, step_percent=step, most_gib=most) == size


@given(
    storage=st.floats(0.001, 10**6, allow_nan=False),
    step=st.integers(1, 50),
    most=st.floats(0.001, 10**6, allow_nan=False),
)
def test_it_grows_by_a_step_or_more_and_never_beyond_the_most(storage, step, most):
    size = expanded(storage, step_percent=step, most_gib=most)
    if size is None:
        assert storage >= most
    else:
        assert storage < size <= most
        assert size == most or size * 100 >= storage * (100 + step) * (1 - 1e-6)


@pytest.mark.parametrize(
    ("forecast", "more", "left", "is_over"),
    [
        ("900", "100", 1.0, False),
        ("900", "101", 1.0, True),
        ("900", "190", 0.5, False),
        ("1001", "1", 0.1, True),
        ("1001", "0", 0.1, False),
    ],
)
def test_a_budget_holds_what_is_bought(forecast, more, left, is_over):
    found = is_over_budget(amount=Decimal(1000), forecast=Decimal(forecast), more_per_month=Decimal(more), left=left)
    assert found is is_over


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (7 * DAY_MS, "7 days"),
        (int(6.3 * DAY_MS), "6.3 days"),
        (90 * MINUTE_MS, "90 min"),
        (3 * 60 * MINUTE_MS, "3 h"),
        (MINUTE_MS, "60 s"),
    ],
)
def test_as_a_person_says_it(milliseconds, text):
    assert duration_text(milliseconds) == text
