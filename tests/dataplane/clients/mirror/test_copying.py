"""Copying between two small brokers that fail: nothing is lost, and what is there already is not sent again."""

from __future__ import annotations

import pytest

from dataplane.clients.cluster import Cluster
from dataplane.clients.messages import Message
from dataplane.clients.mirror.checkpoints import Checkpoint, Key
from dataplane.clients.mirror.comparing import compare
from dataplane.clients.mirror.config import parse_config
from dataplane.clients.mirror.copying import MARK, Copier
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.clients.small_broker import SmallBroker


class Pair:
    """A source and a target, and copiers between them as often as one is started."""

    def __init__(self, old, new):
        self.old, self.new = old, new
        self.clusters: list[Cluster] = []

    def copier(self, checkpoints=None, **source):
        document = {
            "target": {"name": "new", "bootstrap": "{}:{}".format(*self.new.address)},
            "sources": [{"name": "old", "bootstrap": "{}:{}".format(*self.old.address), "topics": ".*", **source}],
        }
        self.config = parse_config(document)
        from_, to = (
            Cluster(end.settings, lambda it=end: it.bootstrap) for end in (self.config.sources[0], self.config.target)
        )
        self.clusters += [from_, to]
        copier = Copier(self.config, self.config.sources[0], from_, to)
        copier.take_up({"t": 2}, checkpoints or {})
        return copier

    def send(self, *values, partition=0):
        self.old.logs["t", partition] += [Message(value.encode(), b"k", timestamp=5) for value in values]

    def there(self, partition=0, topic="t"):
        return [message.value.decode() for message in self.new.logs[topic, partition]]

    def checkpoints(self, copier):
        return {Key("old", *place): one.checkpoint() for place, one in copier.progress.items()}


@pytest.fixture
def pair():
    with SmallBroker({"t": 2}) as old, SmallBroker({"t": 3, "old.t": 2}) as new:
        made = Pair(old, new)
        yield made
        for cluster in made.clusters:
            cluster.close()


def run(copier, rounds=6):
    return sum(copier.step() for _ in range(rounds))


def test_all_is_copied_as_it_is(pair):
    pair.send("a", "b")
    pair.send("c", partition=1)
    pair.old.logs["t", 1].append(Message(None, None, (("h", b"x"),), 7))
    copier = pair.copier()
    assert run(copier) == 4
    assert pair.new.logs["t", 0] == pair.old.logs["t", 0]
    assert pair.new.logs["t", 1] == pair.old.logs["t", 1]
    pair.send("d")
    assert run(copier) == 1
    assert pair.there() == ["a", "b", "d"]


def test_a_prefix_tells_sources_apart(pair):
    pair.send("a")
    run(pair.copier(prefix="old."))
    assert pair.there(topic="old.t") == ["a"]
    assert pair.there() == []


@pytest.mark.parametrize("kind", ["lost_answers", "hang_ups"])
def test_an_append_without_an_answer_is_looked_for_and_not_repeated(pair, kind):
    pair.send("a", "b")
    copier = pair.copier()
    run(copier)
    getattr(pair.new, kind).append(ApiKey.PRODUCE)
    pair.send("c", "d")
    run(copier)
    assert pair.there() == ["a", "b", "c", "d"]


def test_refused_appends_come_again_in_order(pair):
    pair.new.refusals[ApiKey.PRODUCE] = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    pair.send("a", "b", "c")
    run(pair.copier())
    assert pair.there() == ["a", "b", "c"]


def test_a_restart_goes_on_behind_the_checkpoint_and_finds_what_came_after_it(pair):
    pair.send("a", "b")
    first = pair.copier()
    run(first)
    checkpoints = pair.checkpoints(first)
    pair.send("c", "d")
    run(first)  # and it dies before it says so
    pair.send("e")
    second = pair.copier(checkpoints)
    run(second)
    assert pair.there() == ["a", "b", "c", "d", "e"]
    assert second.progress["t", 0].checkpoint() == Checkpoint(5, 5, ((0, 0, 5),))


def test_a_restart_without_any_checkpoint_finds_all_of_it(pair):
    pair.send(*"abcdef")
    run(pair.copier())
    run(pair.copier())
    assert pair.there() == list("abcdef")


def test_where_somebody_else_writes_too_nothing_is_lost(pair):
    pair.send("a", "b")
    first = pair.copier()
    checkpoints = pair.checkpoints(first)
    pair.new.logs["t", 0].append(Message(b"theirs"))
    run(first)
    run(pair.copier(checkpoints))
    assert [value for value in pair.there() if value != "theirs"] == ["a", "b", "a", "b"]  # at least once


def test_a_source_that_has_lost_its_beginning_goes_on_with_what_it_has(pair):
    pair.send("a", "b", "c")
    pair.old.first_offset = 2
    copier = pair.copier({Key("old", "t", 0): Checkpoint(1, 0)})
    pair.new.logs["t", 0].clear()
    run(copier)
    assert pair.there() == ["c"]


def test_a_source_that_was_made_anew_is_not_copied_over_what_is_there(pair):
    pair.send("other")
    copier = pair.copier({Key("old", "t", 0): Checkpoint(9, 0)})
    run(copier)
    assert pair.there() == []
    assert copier.progress["t", 0].is_stuck
    pair.send("x", partition=1)
    run(copier)
    assert pair.there(1) == ["x"]


def test_marked_messages_do_not_come_back(pair):
    pair.send("a")
    pair.old.logs["t", 0].append(Message(b"from there", None, ((MARK, b"new"),)))
    pair.send("b")
    copier = pair.copier(mark=True)
    run(copier)
    assert pair.there() == ["a", "b"]
    assert pair.new.logs["t", 0][0].headers == ((MARK, b"old"),)
    assert copier.progress["t", 0].next_source == 3


def test_a_transaction_that_is_open_is_lag_and_not_waited_for_by_a_comparison(pair):
    pair.send("a", "b", "of a transaction", "behind it")
    pair.old.open_from["t", 0] = 2
    copier = pair.copier()
    run(copier)
    assert pair.there() == ["a", "b"]
    assert copier.progress["t", 0].end - copier.progress["t", 0].next_source == 2
    (found,) = compare(pair.config.sources[0], copier.from_, copier.to, {"t": 1}, pair.checkpoints(copier))
    assert str(found) == "old t-0: 2 messages, equal; from offset 2 of the source on a transaction is open"
    del pair.old.open_from["t", 0]
    run(copier)
    (found,) = compare(pair.config.sources[0], copier.from_, copier.to, {"t": 1}, pair.checkpoints(copier))
    assert str(found) == "old t-0: 4 messages, equal"


def test_comparing_says_where_it_differs(pair):
    pair.send("a", "b", "c")
    copier = pair.copier()
    run(copier)

    def compared():
        found = compare(pair.config.sources[0], copier.from_, copier.to, {"t": 1}, pair.checkpoints(copier))
        return [(one.messages, one.difference) for one in found]

    assert compared() == [(3, None)]
    pair.send("d")
    assert compared() == [(3, "the target ends before offset 3 of the source")]
    run(copier)
    pair.new.logs["t", 0].append(Message(b"more"))
    assert compared() == [(4, "the target has more, from offset 4 on")]
    pair.new.logs["t", 0][1] = Message(b"changed")
    assert compared() == [(1, "offset 1 of the source is not offset 1 of the target")]
