"""What is billed of elastic bandwidth comes from the masters' journals, each byte once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.clusters import master
from controlplane.clusters.journals import PAGES_AT_ONCE
from controlplane.clusters.models import PhysicalCluster
from controlplane.core.errors import MasterUnavailable
from controlplane.instances.models import Instance
from controlplane.metering import elastic, selectors
from controlplane.metering.models import ElasticJournal, ElasticMinute
from controlplane.metering.selectors import why_incomplete
from tests.controlplane.fakes import ManualClock

NINE = datetime(2026, 5, 3, 9, tzinfo=UTC)


class Masters:
    """Journals by address, whose lines are pages of two."""

    def __init__(self, monkeypatch):
        self.journals = {}
        monkeypatch.setattr(master, "elastic", self.elastic)

    def elastic(self, http, position):
        if http not in self.journals:
            raise MasterUnavailable("the flow master does not answer")
        lines = self.journals[http][position : position + 2]
        return lines, position + len(lines)


@pytest.fixture
def masters(monkeypatch):
    return Masters(monkeypatch)


@pytest.fixture
def journal(instance):
    made = {}

    def make(number=1):
        made[number] = ElasticJournal.objects.create(
            cluster=instance.cluster, master=number, http=f"http://127.0.0.1:{number}", active_at=NINE
        )
        return made[number].http

    return make


def use(instance, used, *, minute=0, direction="produce", epoch=3):
    minute_ms = int((NINE + timedelta(minutes=minute)).timestamp() * 1000)
    return {
        "version": 1, "instance": instance.id, "direction": direction, "epoch": epoch, "minute_ms": minute_ms, "bytes": used,
    }  # fmt: skip


def hours(instance):
    start = NINE.replace(day=1, hour=0)
    return elastic.elastic_hours(instance=instance, start=start, end=start + timedelta(days=31))


def test_lines_become_hours(instance, masters, journal):
    masters.journals[journal()] = [
        use(instance, 5), use(instance, 7, direction="consume"), use(instance, 11, minute=59), use(instance, 2, minute=60),
    ]  # fmt: skip
    elastic.elastic_pull()
    assert hours(instance) == {NINE: (16, 7), NINE + timedelta(hours=1): (2, 0)}


def test_of_a_minute_the_most_counts_and_masters_of_two_epochs_add_up(instance, masters, journal):
    masters.journals[journal(1)] = [use(instance, 5), use(instance, 9), use(instance, 7)]
    masters.journals[journal(2)] = [use(instance, 100, epoch=4)]
    elastic.elastic_pull()
    assert hours(instance) == {NINE: (109, 0)}


def test_pulled_again_or_from_a_journal_that_begins_anew_nothing_is_counted_twice(instance, masters, journal):
    masters.journals[journal()] = [use(instance, 5), use(instance, 9)]
    for _ in range(3):
        elastic.elastic_pull()
    ElasticJournal.objects.update(position=0)
    elastic.elastic_pull()
    assert hours(instance) == {NINE: (9, 0)}
    assert ElasticJournal.objects.get().position == 2


def test_of_two_workers_one_takes_a_page(instance, masters, journal, monkeypatch):
    http = journal()
    masters.journals[http] = [use(instance, 5)]
    row = ElasticJournal.objects.get()
    assert elastic._page_taken(row)
    row.position = 0  # the other one has read it before
    assert not elastic._page_taken(row)


def test_a_master_that_is_away_and_a_line_that_is_none_keep_nobody_from_being_read(instance, masters, journal):
    journal(1)
    masters.journals[journal(2)] = [
        {"version": 9}, use(instance, -5), use(instance, 2**70), {**use(instance, 5), "instance": "x\0"}, use(instance, 5),
    ]  # fmt: skip
    elastic.elastic_pull()
    assert hours(instance) == {NINE: (5, 0)}


def unread(clock):
    return [(each.master, each.problem) for each in elastic.journals_unread(clock.now())]


def test_operators_are_told_of_a_master_that_does_not_answer_for_long(instance, masters, journal):
    """What it has counted is on no bill: first nobody is told, since masters start again."""
    clock = ManualClock()
    clock.time = NINE
    masters.journals[journal(1)], gone = [], journal(2)
    for minutes, told in ((0, []), (14, []), (16, [(2, "")])):
        clock.time = NINE + timedelta(minutes=minutes)
        elastic.elastic_pull(clock=clock)
        assert unread(clock) == told, minutes
    masters.journals[gone] = [use(instance, 5)]
    elastic.elastic_pull(clock=clock)
    assert unread(clock) == []
    assert {each.read_at for each in ElasticJournal.objects.all()} == {clock.time}


def test_a_journal_that_cannot_be_read_says_so_until_it_can(masters, journal, monkeypatch):
    clock = ManualClock()
    clock.time = NINE
    masters.journals[journal()] = []
    elastic.elastic_pull(clock=clock)
    with monkeypatch.context() as broken:
        broken.setattr(master, "elastic", lambda http, position: 1 / 0)
        elastic.elastic_pull(clock=clock)
    assert unread(clock) == [(1, "it cannot be read: ZeroDivisionError: division by zero")]
    elastic.elastic_pull(clock=clock)
    assert unread(clock) == []


def test_a_journal_with_more_than_is_read_at_once_is_not_read_to_its_end(instance, masters, journal):
    clock = ManualClock()
    clock.time = NINE
    http = journal()
    masters.journals[http] = [use(instance, 1)] * (2 * PAGES_AT_ONCE + 1)
    elastic.elastic_pull(clock=clock)
    assert ElasticJournal.objects.get().read_at is None
    elastic.elastic_pull(clock=clock)
    assert ElasticJournal.objects.get().read_at == NINE


def test_nobody_is_told_of_a_retired_cluster(masters, journal):
    journal()
    clock = ManualClock()
    clock.time = NINE + timedelta(days=1)
    assert len(unread(clock)) == 1
    PhysicalCluster.objects.update(state="retired")
    assert unread(clock) == []


@pytest.fixture
def everything_else_is_told(monkeypatch):
    monkeypatch.setattr(selectors, "complete_to", lambda cluster: NINE + timedelta(days=400))
    monkeypatch.setattr(selectors.finality, "why_not_final", lambda brokers, until: "")


@pytest.mark.usefixtures("everything_else_is_told")
@pytest.mark.parametrize("bought", [True, False])
def test_usage_is_complete_when_journals_of_masters_that_were_active_are_read(instance, masters, journal, bought):
    """A standby that is away has counted nothing, and where nobody has elastic bandwidth nothing is counted."""
    if bought:
        Instance.objects.unscoped("a test").update(elastic_mib_per_s=8)
    clock = ManualClock()
    clock.time = NINE
    masters.journals[journal(1)] = []
    gone = journal(2)
    masters.journals[gone] = []
    elastic.elastic_pull(clock=clock)
    del masters.journals[gone]
    clock.time = NINE + timedelta(days=2)
    elastic.elastic_pull(clock=clock)
    assert why_incomplete(until=clock.time) == "", "it was not active since"
    ElasticJournal.objects.filter(master=2).update(active_at=NINE + timedelta(hours=3))
    sentence = "the elastic bandwidth that master 2 has counted since 2026-05-03 09:00 UTC was not read"
    assert why_incomplete(until=clock.time) == (sentence if bought else "")
    assert why_incomplete(until=NINE) == "", "what is older was"
    masters.journals[gone] = [use(instance, 5, minute=60)]
    elastic.elastic_pull(clock=clock)
    assert why_incomplete(until=clock.time) == ""


@pytest.mark.usefixtures("everything_else_is_told", "masters")
def test_a_journal_that_was_never_read_keeps_usage_from_being_complete(instance, journal):
    Instance.objects.unscoped("a test").update(elastic_mib_per_s=8)
    journal(2)
    assert why_incomplete(until=NINE) == "the elastic bandwidth that master 2 has counted was never read"


def test_masters_of_a_retired_cluster_are_not_asked(instance, masters, journal):
    """Its addresses may be others' by now, who would be told the service's credential."""
    masters.journals[journal()] = [use(instance, 5)]
    PhysicalCluster.objects.update(state="retired")
    elastic.elastic_pull()
    assert hours(instance) == {}


def test_another_instances_bytes_are_not_this_ones(instance, masters, journal):
    masters.journals[journal()] = [{**use(instance, 5), "instance": "ins-00000000"}]
    elastic.elastic_pull()
    assert hours(instance) == {}


def test_what_is_older_than_is_kept_goes(instance, masters, journal):
    masters.journals[journal()] = [use(instance, 5), use(instance, 6, minute=24 * 60)]
    elastic.elastic_pull()
    clock = ManualClock()
    clock.time = NINE + elastic.KEPT + timedelta(minutes=1)
    elastic.elastic_purge(clock=clock)
    assert [row.bytes for row in ElasticMinute.objects.all()] == [6]
    assert not ElasticJournal.objects.exists()
