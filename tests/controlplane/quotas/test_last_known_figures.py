"""Both masters are stopped: what they said last, how old it is, and what brokers do meanwhile."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from controlplane.clusters.services import cluster_ensure
from controlplane.core.errors import MasterUnavailable
from controlplane.quotas import figures
from controlplane.quotas.selectors import flows_get
from tests.controlplane.console.test_instance_pages import MIB, flowing


@pytest.fixture
def kept(instance, flow_master, clock):
    """The master has spoken, was heard, and is gone."""
    flow_master.answers[instance.id] = flowing()
    figures.figures_keep(clock=clock)
    flow_master.answers.clear()
    return clock


def test_while_a_master_answers_its_own_figures_count(instance, flow_master, clock):
    flow_master.answers[instance.id] = flowing()
    found = figures.figures_get([instance], flows_get, clock=clock)
    assert (found.away, found.at) == (None, None)
    assert found.documents[instance.id]["storage_used_bytes"] == 3 * 2**30


def test_without_one_the_last_known_figures_are_told_with_their_age(instance, kept):
    heard = kept.now()
    kept.advance(125)
    found = figures.figures_get([instance], flows_get, clock=kept)
    assert isinstance(found.away, MasterUnavailable)
    assert (found.at, found.age_s) == (heard, 125)
    assert found.documents[instance.id]["storage_used_bytes"] == 3 * 2**30
    assert found.documents[instance.id]["produce"]["flow"] == 4 * MIB


def test_brokers_keep_what_they_hold_until_their_leases_end_and_then_stand_on_their_initial_shares(instance, kept):
    def share():
        found = figures.figures_get([instance], flows_get, clock=kept)
        (broker,) = found.documents[instance.id]["produce"]["brokers"]
        return broker["allocation"], found.documents[instance.id]["produce"]["branch"], found.meanwhile

    kept.advance(5)
    assert share()[:2] == (5 * MIB, "headroom")
    assert "until their leases end" in share()[2]
    kept.advance(10)
    assert share()[:2] == (MIB, "initial")
    assert "initial share" in share()[2]


def test_where_nothing_was_ever_heard_there_is_nothing_to_tell(instance, clock):
    found = figures.figures_get([instance], flows_get, clock=clock)
    assert found.away is not None
    assert (found.documents, found.at, found.meanwhile) == ({}, None, "")


def test_an_instance_that_the_master_does_not_know_yet_is_not_told_of_from_before(instance, kept, flow_master):
    def unknown(_cluster, _instances):
        raise MasterUnavailable("no broker has reported on this instance yet", code="allocation_unknown")

    found = figures.figures_get([instance], unknown, clock=kept)
    assert (found.documents, found.at) == ({}, None)


def test_a_cache_that_is_away_costs_the_figures_and_nothing_else(instance, kept, monkeypatch):
    def away(*_arguments, **_options):
        raise ConnectionError("redis is away")

    monkeypatch.setattr(figures, "cache", SimpleNamespace(get_many=away, set_many=away))
    assert figures.figures_get([instance], flows_get, clock=kept).documents == {}
    figures.figures_keep(clock=kept)


def test_figures_of_brokers_are_kept_too(flow_master, clock, db):
    cluster = cluster_ensure()
    flow_master.broker_rows = [{"broker": 1, "reporting": True, "leaders": 3}]
    figures.figures_keep(clock=clock)
    flow_master.broker_rows = []
    rows, at = figures.brokers_last(cluster.address)
    assert (rows[1]["leaders"], at) == (3, clock.now())


def test_they_are_forgotten_after_a_day(instance, kept):
    kept.advance(timedelta(days=1).total_seconds() + 1)
    assert figures.figures_get([instance], flows_get, clock=kept).documents == {}
