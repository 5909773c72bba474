"""Which round kills what: each kind on each database, and the same again by the same seed."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.killed.plan import DATABASES, FAULTS, KINDS, OF_A_CLUSTER, SQLITE, planned


@pytest.mark.parametrize("seed", range(20))
def test_thirty_rounds_have_every_kind_on_both_databases_twice_or_more(seed):
    count = Counter((fault.kind, each.database) for each in planned(30, seed) for fault in each.faults)
    assert min(count[kind, database] for kind in KINDS for database in DATABASES) >= 2
    assert count.total() == 30 * FAULTS


def test_executors_and_workers_are_killed_where_there_are_some_and_the_job_runs_in_both_ways():
    rounds = planned(30, 1)
    for each in rounds:
        assert each.on_a_cluster or OF_A_CLUSTER.isdisjoint(fault.kind for fault in each.faults)
    assert {each.on_a_cluster for each in rounds} == {True, False}


def test_a_seed_is_a_plan_and_another_one_another():
    assert planned(30, 1) == planned(30, 1) != planned(30, 2)
    assert planned(30, 1)[:6] == planned(6, 1), "fewer rounds are the first of more"


def test_only_what_is_asked_for():
    rounds = planned(4, 1, ("leader", "worker"), (SQLITE,))
    assert {fault.kind for each in rounds for fault in each.faults} == {"leader", "worker"}
    assert {each.database for each in rounds} == {SQLITE}
    assert [each.number for each in rounds] == [1, 2, 3, 4]
