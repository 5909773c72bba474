"""Throttled intervals come over from every master's journal, once, whatever happens on the way."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from controlplane.clusters.models import PhysicalCluster
from controlplane.quotas import services
from controlplane.quotas.models import MasterJournal, RecordedInterval

from .conftest import NINE, document, interval

pytestmark = pytest.mark.django_db


@pytest.fixture
def active(tree):
    """Make a master the active one."""

    def active(number):
        node = {"id": number, "report": "127.0.0.1:1", "http": f"http://master-{number}:1", "epoch": number}
        tree.put("/sluice/master", json.dumps(node).encode())

    return active


@pytest.fixture
def journals(flow_master):
    flow_master.journals = {"http://master-1:1": [], "http://master-2:1": []}
    return flow_master.journals


def recorded():
    return [row.document["ended_at_ms"] - NINE for row in RecordedInterval.objects.order_by("started_at", "epoch")]


def test_what_is_in_the_journal_is_in_the_database_once_however_often_one_looks(active, journals):
    active(1)
    journals["http://master-1:1"] += [document(interval()), document(interval(start=NINE + 60_000))]
    services.throttling_pull()
    services.throttling_pull()
    assert recorded() == [20_000, 80_000]
    row = RecordedInterval.objects.first()
    assert (row.started_at, row.rule, row.throttled_ms) == ("2025-11-21T09:00:00.000Z", "", 12_000)
    assert (row.over_1_s_percent, row.over_10_s_percent, row.over_60_s_percent) == (17.0, 3.1, 0.4)


def test_masters_of_a_retired_cluster_are_not_asked(active, journals):
    active(1)
    services.throttling_pull()
    journals["http://master-1:1"].append(document(interval()))
    PhysicalCluster.objects.update(state="retired")
    services.throttling_pull()
    assert recorded() == []


def test_the_last_line_of_an_interval_counts_within_a_page_and_over_pages(active, journals):
    active(1)
    journals["http://master-1:1"] += [document(interval(seconds=10)), document(interval(seconds=20))]
    services.throttling_pull()
    assert recorded() == [20_000]
    journals["http://master-1:1"].append(document(interval(seconds=30, throttled_ms=25_000)))
    services.throttling_pull()
    assert recorded() == [30_000]
    assert RecordedInterval.objects.get().throttled_ms == 25_000


def test_rules_directions_and_masterships_have_rows_of_their_own(active, journals):
    active(1)
    others = [interval(rule="rule-1"), interval(direction="consume"), interval(epoch=4)]
    journals["http://master-1:1"] += [document(each) for each in (interval(), *others)]
    services.throttling_pull()
    assert RecordedInterval.objects.count() == 4


def test_clients_with_the_longest_names_have_rows_of_their_own_that_a_database_can_index(active, journals):
    active(1)
    names = [f"rule-1/{'%F0%9F%8C%8A' * 255}/{number}" for number in range(2)]
    journals["http://master-1:1"] += [document(interval(rule=name)) for name in names]
    services.throttling_pull()
    rows = RecordedInterval.objects.all()
    assert {row.document["rule"] for row in rows} == set(names)
    assert {len(row.rule) for row in rows} == {600}


def test_a_master_that_was_replaced_is_asked_for_what_it_wrote_last(active, journals):
    active(1)
    services.throttling_pull()
    journals["http://master-1:1"].append(document(interval()))
    journals["http://master-2:1"].append(document(interval(start=NINE + 60_000, epoch=4)))
    active(2)
    services.throttling_pull()
    assert recorded() == [20_000, 80_000]


def test_a_master_that_is_away_holds_up_nothing_and_is_asked_again(active, journals):
    for number in (1, 2):
        active(number)
        services.throttling_pull()
    for number in (1, 2):
        journals[f"http://master-{number}:1"].append(document(interval(epoch=number)))
    away = journals.pop("http://master-1:1")
    services.throttling_pull()
    assert RecordedInterval.objects.get().epoch == 2
    journals["http://master-1:1"] = away
    services.throttling_pull()
    assert RecordedInterval.objects.count() == 2


def test_of_two_workers_that_read_the_same_page_one_writes_it(active, journals):
    active(1)
    services.throttling_pull()
    journals["http://master-1:1"].append(document(interval(seconds=10)))
    stale = MasterJournal.objects.get()
    services.throttling_pull()
    journals["http://master-1:1"][0] = document(interval(seconds=5))
    assert not services._page_taken(stale)
    assert recorded() == [10_000]


def test_a_line_that_nobody_can_read_is_left_out(active, journals):
    active(1)
    journals["http://master-1:1"] += [{"version": 99}, {}, document(interval())]
    services.throttling_pull()
    assert recorded() == [20_000]


def test_without_zookeeper_known_masters_are_asked_all_the_same(active, journals, tree):
    active(1)
    services.throttling_pull()
    journals["http://master-1:1"].append(document(interval()))
    tree.away = True
    services.throttling_pull()
    assert recorded() == [20_000]


def test_after_a_week_intervals_and_masters_are_forgotten(active, journals, record, clock):
    active(1)
    services.throttling_pull(clock=clock)
    record(interval(start=int(clock.now().timestamp() * 1000)))
    clock.advance(timedelta(days=7).total_seconds() - 1)
    services.throttling_purge(clock=clock)
    assert (RecordedInterval.objects.count(), MasterJournal.objects.count()) == (1, 1)
    clock.advance(2)
    services.throttling_purge(clock=clock)
    assert (RecordedInterval.objects.count(), MasterJournal.objects.count()) == (0, 0)


def test_what_the_database_does_not_take_is_left_out_and_the_rest_is_kept(active, journals):
    active(1)
    lines = [interval(start=NINE + 60_000 * number) for number in range(5)]
    lines[2] = interval(start=NINE + 120_000, throttled_ms=2**70)
    journals["http://master-1:1"] += [document(line) for line in lines]
    services.throttling_pull()
    assert recorded() == [20_000, 80_000, 200_000, 260_000]
    assert "1 of its intervals" in MasterJournal.objects.get().problem
    journals["http://master-1:1"].append(document(interval(start=NINE + 300_000)))
    services.throttling_pull()
    assert len(recorded()) == 5
    assert MasterJournal.objects.get().problem == ""


def test_a_journal_that_cannot_be_read_is_no_obstacle_to_the_next(active, journals, monkeypatch):
    for number in (1, 2):
        active(number)
        services.throttling_pull()
    for number in (1, 2):
        journals[f"http://master-{number}:1"].append(document(interval(epoch=number)))
    taken = services._page_taken

    def broken(journal):
        if journal.master == 1:
            raise KeyError("intervals")
        return taken(journal)

    with monkeypatch.context() as patched:
        patched.setattr(services, "_page_taken", broken)
        services.throttling_pull()
    assert RecordedInterval.objects.get().epoch == 2
    assert "cannot be read" in MasterJournal.objects.get(master=1).problem
    services.throttling_pull()
    assert RecordedInterval.objects.count() == 2
    assert MasterJournal.objects.get(master=1).problem == ""
