"""A round sees which groups have rebalanced since the round before; of a group and hour there is one row, which counts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from django.core.cache import cache

from controlplane.groups import rebalances as rounds
from controlplane.history.lag import rebalances, sampling
from controlplane.history.lag.rebalances import rebalances_keep, rebalances_purge
from controlplane.history.models import GroupRebalances, LagMinutes
from controlplane.kafka.group_marks import GroupMark
from tests.controlplane.fakes import FakeGroup
from tests.controlplane.groups.conftest import ALIVE, his  # noqa: F401  # a fixture

from .test_lag_sampling import hers, present  # noqa: F401  # fixtures

ONE, OTHER = "ins-00000001", "ins-00000002"


def rows():
    """Group, how often."""
    return list(GroupRebalances.objects.order_by("began_at", "group").values_list("group", "times"))


@pytest.fixture
def look(hers, present):  # noqa: F811
    """A round, a minute after the one before; what is known then."""

    def look():
        present.advance(60)
        sampling.sample(clock=present)
        return rows()

    return look


def test_a_group_that_stays_as_it_is_has_not_rebalanced(hers, look):  # noqa: F811
    hers.billing.members = [ALIVE]
    assert [look() for _ in range(3)] == [[], [], []]


def test_a_member_that_comes_goes_or_is_given_something_else_is_one(hers, look):  # noqa: F811
    hers.billing.members = [ALIVE]
    look()
    hers.billing.members = [replace(ALIVE, partitions=ALIVE.partitions[:1])]
    assert look() == [("billing", 1)]
    assert look() == [("billing", 1)]
    hers.billing.members = [ALIVE, replace(ALIVE, id="billing-2-uuid")]
    assert look() == [("billing", 2)]
    hers.billing.members = [ALIVE]
    assert look() == [("billing", 3)]


def test_one_that_changes_nothing_is_seen_where_members_say_their_generation(hers, look):  # noqa: F811
    hers.billing.members = [ALIVE]
    look()
    hers.billing.generation += 1
    assert look() == [("billing", 1)]


def test_a_group_that_somebody_joins_has_rebalanced_and_one_that_all_leave_has_not(hers, look):  # noqa: F811
    look()
    hers.billing.members = [ALIVE]
    assert look() == [("billing", 1)]
    hers.billing.members = []
    assert [look(), look()] == [[("billing", 1)]] * 2


def test_a_group_in_the_middle_of_it_is_seen_without_a_question_and_is_one_however_long_it_lasts(hers, look):  # noqa: F811
    hers.billing.members, hers.billing.is_rebalancing = [ALIVE], True
    assert [look() for _ in range(3)] == [[("billing", 1)]] * 3
    assert not hers.groups.rounds["marks"]
    hers.billing.is_rebalancing, hers.billing.generation = False, 1
    assert look() == [("billing", 1)], "what it came to is the end of the same one"
    hers.billing.generation = 2
    assert look() == [("billing", 2)]
    hers.billing.is_rebalancing = True
    assert look() == [("billing", 3)], "another one"


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_these_are_the_states_of_a_rebalance(hers, look, monkeypatch, state):  # noqa: F811
    hers.billing.members = [ALIVE]
    monkeypatch.setattr(FakeGroup, "state", state)
    assert look() == [("billing", 1)]


def test_empty_groups_are_asked_nothing(hers, look):  # noqa: F811
    look()
    assert not hers.groups.rounds["marks"]


def test_a_coordinator_that_does_not_answer_makes_no_rebalance(hers, look):  # noqa: F811
    hers.billing.members = [ALIVE]
    look()
    hers.groups.silent = {("127.0.0.1", 1)}
    assert look() == []
    hers.groups.silent = set()
    assert look() == []
    hers.groups.silent = {("127.0.0.1", 1)}
    hers.billing.generation += 1
    look()
    hers.groups.silent = set()
    assert look() == [("billing", 1)], "what happened meanwhile is seen when it answers"


def test_where_the_cache_has_forgotten_the_look_before_nothing_has_changed(hers, look):  # noqa: F811
    hers.billing.members = [ALIVE]
    look()
    cache.clear()
    hers.billing.generation += 1
    assert look() == []


def test_two_tenants_groups_of_one_name_are_two(hers, his, look):  # noqa: F811
    hers.billing.members = his.billing.members = [ALIVE]
    look()
    his.billing.generation += 1
    look()
    assert [row.instance for row in GroupRebalances.objects.all()] == [his.instance_id]


def test_more_groups_than_a_round_looks_at_take_turns_and_each_instance_has_its_part(
    hers, his, look, monkeypatch  # noqa: F811
):  # fmt: skip
    monkeypatch.setattr(rounds, "MOST_LOOKED", 2)
    his.billing.members = [ALIVE]
    for number in range(3):
        hers.groups.found[f"{hers.key}.many{number}"] = FakeGroup({}, [ALIVE])
    for _ in range(3):
        look()
    his.billing.generation += 1
    for number in range(3):
        hers.groups.found[f"{hers.key}.many{number}"].generation += 1
    assert look() == [("billing", 1), ("many0", 1)]
    look()
    assert look() == [("billing", 1), ("many0", 1), ("many1", 1), ("many2", 1)]


def test_a_group_that_was_not_asked_in_time_is_among_the_first_of_the_next_round():
    asked = []

    class Slow:
        """It comes to two of them in its seconds; of the first there is an error."""

        def marks(self, _address, names, *, within_s):
            asked.append(list(names))
            return {name: GroupMark("Stable", "a") for name in names[1:2]}

    listed, looks = {("h", 1): dict.fromkeys(["k.a", "k.b", "k.c", "k.d"], "Stable")}, {}
    for minute in range(3):
        _, looks = rounds.looked(Slow(), listed, looks, 1_000 + 60 * minute)
    assert asked == [["k.a", "k.b", "k.c", "k.d"], ["k.c", "k.d", "k.a", "k.b"], ["k.a", "k.b", "k.c", "k.d"]]


def test_rebalances_are_looked_for_behind_the_lag_and_cannot_lose_it(hers, present, monkeypatch, caplog):  # noqa: F811
    hers.billing.members = [ALIVE]

    def slow_and_broken(*_args, **_named):
        present.advance(40)
        assert LagMinutes.objects.get().late_s == 0
        raise ValueError("a mark that nobody thought of")

    monkeypatch.setattr(hers.groups, "marks", slow_and_broken)
    assert sampling.sample(clock=present) == 1
    assert "rebalances of the groups of cluster" in caplog.text


def test_looks_at_groups_that_are_gone_are_given_up():
    class Door:
        def marks(self, _address, _names, *, within_s):
            return {}

    before = {"k.gone": rounds.Look("a", 1_000), "k.here": rounds.Look("a", 1_000)}
    listed = {("h", 1): {"k.here": "Stable"}}
    _, looks = rounds.looked(Door(), listed, before, 1_000 + rounds.FORGOTTEN_S - 1)
    assert set(looks) == {"k.gone", "k.here"}
    _, looks = rounds.looked(Door(), listed, looks, 1_000 + rounds.FORGOTTEN_S)
    assert set(looks) == {"k.here"}
    _, looks = rounds.looked(Door(), {}, {"k.ahead": rounds.Look("a", 9_000)}, 1_000)
    assert looks == {}, "of a clock that was ahead"


# --- rows -------------------------------------------------------------------------------------------------------------

NOON = datetime(2026, 5, 2, 12, 0, tzinfo=UTC)


@pytest.mark.django_db
def test_of_an_hour_there_is_one_row_and_the_next_hour_has_its_own():
    for minute in (0, 1, 59, 60):
        rebalances_keep({ONE: {"a"}}, NOON + timedelta(minutes=minute))
    first, second = GroupRebalances.objects.order_by("began_at")
    assert (first.times, first.began_at, first.seen_at) == (3, NOON, NOON + timedelta(minutes=59))
    assert (second.times, second.hour) == (1, NOON + timedelta(hours=1))


@pytest.mark.django_db
def test_of_an_instance_so_many_groups_begin_a_row_in_an_hour_and_others_have_theirs(monkeypatch):
    monkeypatch.setattr(rebalances, "MOST_GROUPS", 2)
    names = {"a", "b", "c"}
    rebalances_keep({ONE: names, OTHER: {"z"}}, NOON)
    rebalances_keep({ONE: names, OTHER: {"z"}}, NOON + timedelta(minutes=1))
    assert rows() == [("a", 2), ("b", 2), ("z", 2)]
    rebalances_keep({ONE: {"c"}}, NOON + timedelta(hours=1))
    assert GroupRebalances.objects.filter(group="c").count() == 1


@pytest.mark.django_db
def test_however_many_groups_it_is_a_few_statements(django_assert_max_num_queries):
    many = {f"g{number}" for number in range(200)}
    with django_assert_max_num_queries(6):
        rebalances_keep({ONE: many}, NOON)
    with django_assert_max_num_queries(6):
        rebalances_keep({ONE: many}, NOON + timedelta(minutes=1))
    assert set(GroupRebalances.objects.values_list("times", flat=True)) == {2}


@pytest.mark.django_db
def test_they_go_after_90_days(clock):
    rebalances_keep({ONE: {"old"}}, clock.now() - timedelta(days=90, seconds=1))
    rebalances_keep({ONE: {"new"}}, clock.now() - timedelta(days=89))
    rebalances_purge(clock=clock)
    assert rows() == [("new", 1)]
