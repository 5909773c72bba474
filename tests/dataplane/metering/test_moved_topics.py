"""What topics moved between two looks: each byte once, whatever becomes of the topic, and without a look at those that rest."""

from __future__ import annotations

import uuid

import pytest

from dataplane.metering import moved as module
from tests.dataplane.metering.support import EVENTS, ORDERS, World

FIRST, SECOND = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.fixture
def life():
    return World().boot()


def taken(life, most=100):
    """By topic; all of one instance."""
    found = life.meter.moved.take(most)
    assert len({each.instance for each in found}) <= 1
    return {each.topic: (each.produced, each.consumed) for each in found}


def test_what_moved_is_told_once_and_of_nobody_else(life):
    orders, _ = life.meter.topic(ORDERS), life.meter.topic(EVENTS)
    orders.produced(100)
    orders.consumed(7)
    assert taken(life) == {"orders": (100, 7)}
    assert taken(life) == {}
    orders.produced(5)
    assert taken(life) == {"orders": (5, 0)}


def test_records_that_were_produced_are_told_once_with_their_bytes(life):
    orders = life.meter.topic(ORDERS)
    orders.produced(100, 3)
    orders.produced(50, 1)
    assert [each.records for each in life.meter.moved.take(100)] == [4]
    life.run(15)
    orders.produced(5, 2)
    assert [each.records for each in life.meter.moved.take(100)] == [2]


def test_it_is_told_on_when_records_have_been_made_meanwhile(life):
    orders = life.meter.topic(ORDERS)
    orders.produced(100)
    life.run(15)  # a record is told, and acknowledged
    orders.produced(5)
    assert taken(life) == {"orders": (105, 0)}
    life.run(15)
    assert taken(life) == {}
    assert len(life.meter.moved) == 0, "nothing has changed since its last record"
    orders.consumed(3)
    assert taken(life) == {"orders": (0, 3)}


def test_topics_that_rest_cost_nothing(life):
    for number in range(1000):
        life.meter.topic(f"aaaabbbb.t{number}")
    life.meter.topic("aaaabbbb.t5").produced(1)
    assert len(life.meter.moved) == 1


def test_of_many_so_many_are_taken_at_once_and_each_comes_once(life):
    for number in range(10):
        life.meter.topic(f"aaaabbbb.t{number}").produced(number + 1)
    found = [taken(life, 4) for _ in range(3)]
    assert [len(each) for each in found] == [4, 4, 2]
    assert sum(row[0] for each in found for row in each.values()) == 55


def test_a_topic_that_is_deleted_is_told_to_its_end(life):
    orders = life.meter.topic(ORDERS)
    orders.produced(100)
    life.meter.retire(ORDERS)
    life.run(30)
    assert orders.has_left
    assert taken(life) == {"orders": (100, 0)}
    assert len(life.meter.moved) == 0


def test_a_topic_made_again_counts_on_under_its_name(life):
    orders = life.meter.topic(ORDERS, FIRST)
    orders.produced(100)
    assert taken(life) == {"orders": (100, 0)}
    orders.produced(10)
    again = life.meter.topic(ORDERS, SECOND)
    assert (again is orders, again.produced_bytes) == (True, 0)
    again.produced(3)
    assert taken(life) == {"orders": (13, 0)}


def test_what_leaves_late_of_a_deleted_topic_counts_once(life):
    orders = life.meter.topic(ORDERS, FIRST)
    orders.consumed(100)
    life.meter.retire(ORDERS)
    life.run(30)
    successor = life.meter.topic(ORDERS, SECOND)
    assert successor is not orders
    orders.consumed(8)  # an answer was still on its way
    found = life.meter.moved.take(100)
    assert sum(each.consumed for each in found) == 108
    assert taken(life) == {}


def test_a_restart_begins_at_nothing():
    world = World()
    first = world.boot()
    first.meter.topic(ORDERS).produced(100)
    world.kill()
    second = world.boot()
    second.meter.topic(ORDERS).produced(3)
    assert taken(second) == {"orders": (3, 0)}


def test_while_somebody_asks_topics_that_are_gone_are_told_to_their_end(life, monkeypatch):
    monkeypatch.setattr(module, "ALWAYS_KEPT", 2)
    taken(life)
    for number in range(20):
        life.meter.topic(f"aaaabbbb.t{number}").produced(number + 1)
        life.meter.retire(f"aaaabbbb.t{number}")
    life.run(30)
    assert sum(produced for produced, _ in taken(life).values()) == 210
    assert len(life.meter.moved) == 0


def test_while_nobody_asks_topics_that_are_gone_are_forgotten(life, monkeypatch):
    monkeypatch.setattr(module, "ALWAYS_KEPT", 2)
    for number in range(20):
        life.meter.topic(f"aaaabbbb.t{number}").produced(1)
        life.meter.retire(f"aaaabbbb.t{number}")
        life.run(30)
    assert len(life.meter.moved) <= 3
