"""A broker that stops stays on the fleet page and turns red: since when, why, and what it costs."""

from __future__ import annotations

import pytest

from controlplane.clusters.models import Broker
from controlplane.fleet.broker_state import state_of
from controlplane.health.services import health_observe

from .conftest import text_of


@pytest.fixture
def three(brokers, clock, db):
    health_observe(clock=clock)
    return brokers


def test_a_broker_that_stops_is_listed_in_red_with_since_when_and_why(at_staff, three, flow_master, clock):
    three.kill(2)
    clock.advance(60)
    health_observe(clock=clock)
    page = at_staff.get("/fleet")
    text = text_of(page)
    assert "Broker 2" in text
    assert "since 2025-03-01 00:01:00 UTC" in text
    assert "Its registration in ZooKeeper has ended" in text
    assert 'class="state failed"' in page.content.decode()


def test_it_is_listed_before_anybody_has_written_down_since_when(at_staff, three):
    three.kill(2)
    assert "Broker 2" in text_of(at_staff.get("/fleet/brokers"))


def test_what_it_costs_is_said(at_staff, three, flow_master, clock):
    three.kill(2)
    health_observe(clock=clock)
    idle = {
        "instances": 0,
        "leaders": 0,
        "produce": {"flow": 0, "allocation": 0},
        "consume": {"flow": 0, "allocation": 0},
    }
    missing = {"replicas_behind": 6, "partitions_without_leader": 1, "group_partitions_without_coordinator": 2}
    flow_master.broker_rows = [
        {"broker": 1, "reporting": True, **idle},
        {"broker": 2, "reporting": False, **idle, "missing": missing},
    ]
    text = text_of(at_staff.get("/fleet"))
    assert "6 partitions are under-replicated" in text
    assert "1 partition has no leader" in text
    assert "groups of 2 partitions of __consumer_offsets have no coordinator" in text


def test_it_was_away_from_when_it_was_first_missed_until_it_is_back(three, clock):
    three.kill(2)
    health_observe(clock=clock)
    missed = clock.now()
    clock.advance(30)
    health_observe(clock=clock)
    assert Broker.objects.get(broker_id=2).away_since == missed
    three.start(2)
    health_observe(clock=clock)
    assert Broker.objects.get(broker_id=2).away_since is None


def test_while_zookeeper_is_away_no_broker_is_said_to_have_gone(three, clock, tree, at_staff):
    tree.away = True
    health_observe(clock=clock)
    assert not Broker.objects.filter(away_since__isnull=False).exists()
    text = text_of(at_staff.get("/fleet"))
    assert "does not answer" in text
    assert "Broker 2" in text


@pytest.mark.parametrize(
    ("is_registered", "is_reporting", "has_master", "title"),
    [
        (True, True, True, "Reporting"),
        (True, False, True, "Silent"),
        (False, True, True, "Away"),
        (False, False, True, "Away"),
        (True, None, False, "Registered"),
        (False, None, False, "Away"),
        (None, True, True, "Reporting"),
        (None, None, False, "Not known"),
    ],
)
def test_why_follows_from_where_it_is_missed(is_registered, is_reporting, has_master, title):
    state = state_of(is_registered=is_registered, is_reporting=is_reporting)
    assert state.title == title
    assert bool(state.why) == (title not in ("Reporting", "Registered"))
