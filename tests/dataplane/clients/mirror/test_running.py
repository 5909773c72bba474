"""A whole mirror in this process, between small brokers: what it follows and copies, what it says of itself, how it ends."""

from __future__ import annotations

import json
import threading

import pytest

from dataplane.clients.messages import Message
from dataplane.clients.mirror.config import parse_config
from dataplane.clients.mirror.copying import Copier
from dataplane.clients.mirror.delivery import NoTransactionsError, SupersededError
from dataplane.clients.mirror.runner import Mirror
from dataplane.protocol.api import ApiKey
from tests.dataplane.clients.mirror.transactional_broker import TransactionalBroker
from tests.dataplane.clients.small_broker import NEWEST, SmallBroker
from tests.support.waiting import wait_for


@pytest.fixture
def ends():
    with SmallBroker({"t": 2}) as old, TransactionalBroker({}) as new:
        yield old, new


@pytest.fixture
def run():
    made: list[Mirror] = []

    def begin(old, new, on_problem=lambda: None, **mirror):
        document = {
            "target": {"name": "new", "bootstrap": "{}:{}".format(*new.address)},
            "sources": [{"name": "old", "bootstrap": "{}:{}".format(*old.address), "topics": ".*"}],
            "mirror": {"sync_s": 0.05, "checkpoint_s": 0.05, **mirror},
        }
        made.append(Mirror(parse_config(document), on_problem))
        return made[-1]

    yield begin
    for each in made:
        each.stop()


def send(old, *values, topic="t", partition=0):
    old.logs[topic, partition] += [Message(value.encode(), b"k", timestamp=5) for value in values]


def test_topics_partitions_and_configurations_are_followed(ends, run):
    old, new = ends
    old.configs["t"] = {"retention.ms": "5"}
    send(old, "a", "b")
    mirror = run(old, new)
    wait_for(lambda: new.committed("t", 0) == ["a", "b"], 20, "the messages")
    assert new.configs["t"] == {"retention.ms": "5"}
    old.make("t", 3)
    old.make("later", 1)
    old.configs["t"] = {"cleanup.policy": "compact"}
    send(old, "c", partition=2)
    send(old, "d", topic="later")
    wait_for(lambda: (new.committed("t", 2), new.committed("later", 0)) == (["c"], ["d"]), 20, "what came later")
    wait_for(lambda: new.configs["t"] == {"cleanup.policy": "compact"}, 20, "the configuration")
    assert mirror.problem is None
    rows = {(row.topic, row.partition): row for row in mirror.rows()}
    assert set(rows) == {("t", 0), ("t", 1), ("t", 2), ("later", 0)}
    assert (rows["t", 0].lag, rows["t", 0].next_source, rows["t", 0].map_from) == (0, 2, 0)


def test_its_own_topics_are_small_and_say_how_it_is(ends, run):
    old, new = ends
    send(old, "a")
    run(old, new)

    def said():
        found = [json.loads(one.message.value) for one in new.read("mirror-status", 0)]
        return [(one["source"], one["target"], one["delivery"], one["lag"], one["partitions"]) for one in found]

    wait_for(lambda: ("old", "new", "exactly_once", 0, 2) in said(), 20, "a word")
    assert new.configs["mirror-checkpoints"]["cleanup.policy"] == "compact"
    assert int(new.configs["mirror-checkpoints"]["segment.bytes"]) == 16 * 2**20
    assert new.configs["mirror-status"]["retention.ms"] == "3600000"


def test_when_it_is_stopped_what_was_copied_is_committed(ends, run):
    old, new = ends
    send(old, "a")
    mirror = run(old, new, checkpoint_s=3600, sync_s=3600)
    wait_for(lambda: new.committed("t", 0) == ["a"], 20, "the first transaction, which is at once")
    send(old, "b")
    wait_for(lambda: sum(row.copied for row in mirror.rows()) == 2, 20, "the second to begin")
    assert new.committed("t", 0) == ["a"]
    mirror.stop()
    assert new.committed("t", 0) == ["a", "b"]
    assert all(not one.places for one in new.producers.values())  # no transaction is left open


def test_of_two_of_the_same_names_the_first_ends(ends, run):
    old, new = ends
    send(old, "a")
    is_over = threading.Event()
    first = run(old, new, is_over.set)
    wait_for(lambda: new.committed("t", 0) == ["a"], 20, "the first to copy")
    second = run(old, new)

    def ended():
        send(old, "more")  # it hears of the other when it writes
        return is_over.is_set()

    wait_for(ended, 30, "the first to end")
    assert isinstance(first.problem, SupersededError)
    first.stop()
    send(old, "last")
    whole = [message.value.decode() for message in old.logs["t", 0]]
    wait_for(lambda: new.committed("t", 0) == whole, 20, "the second to copy the rest")
    assert second.problem is None


def test_one_that_is_to_copy_exactly_once_and_cannot_ends(ends, run):
    old, _ = ends
    is_over = threading.Event()
    with SmallBroker({}, {key: value for key, value in NEWEST.items() if key != ApiKey.INIT_PRODUCER_ID}) as new:
        mirror = run(old, new, is_over.set, delivery="exactly_once")
        assert is_over.wait(20)
        assert isinstance(mirror.problem, NoTransactionsError)
        mirror.stop()


def test_a_fault_of_its_own_ends_it_and_is_said(ends, run, monkeypatch):
    """Whoever supervises the process starts it again; its figures would stand still otherwise, with nothing said."""
    old, new = ends
    is_over = threading.Event()
    mirror = run(old, new, is_over.set)
    send(old, "a")
    wait_for(lambda: new.committed("t", 0) == ["a"], 20, "it to copy")

    def fault(_self):
        raise KeyError("a partition that the answer has not")

    monkeypatch.setattr(Copier, "step", fault)
    assert is_over.wait(20)
    assert "KeyError" in str(mirror.problem)
    mirror.stop()
