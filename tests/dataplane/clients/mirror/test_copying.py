"""Copying between two small brokers that fail: nothing is lost, and what is there already is not sent again."""

from __future__ import annotations

from uuid import uuid4

import pytest

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.messages import Message
from dataplane.clients.mirror import commands
from dataplane.clients.mirror.checkpoints import Checkpoint, CheckpointLog, Followed, Key, TopicIds
from dataplane.clients.mirror.comparing import Digest, Sides, compare
from dataplane.clients.mirror.config import parse_config
from dataplane.clients.mirror.copying import Copier
from dataplane.clients.mirror.offset_map import Segment
from dataplane.clients.mirror.putting import MARK
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
        self.take_up(copier, checkpoints or {})
        return copier

    def take_up(self, copier, checkpoints):
        """As the two brokers tell of the topic."""
        ids = TopicIds(*(str(broker.ids[name]) if name in broker.ids else "" for broker, name in self.ends(copier)))
        copier.take_up({"t": Followed(2, ids)}, checkpoints)

    def ends(self, copier):
        return (self.old, "t"), (self.new, copier.source.prefix + "t")

    def made_anew(self, broker, topic="t"):
        """As if by a deletion and a creation."""
        broker.ids[topic] = uuid4()
        for partition in range(broker.topics[topic]):
            broker.logs[topic, partition] = []

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
    assert second.progress["t", 0].checkpoint() == Checkpoint(5, 5, (Segment(0, 0, 5),))


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


def compared(pair, copier, topic="t"):
    """Of the first partition."""
    sides = Sides(pair.config.sources[0], pair.config.target, copier.from_, copier.to)
    return next(iter(compare(sides, {topic: 1}, pair.checkpoints(copier))))


def told(pair, copier):
    found = compared(pair, copier)
    return found.messages, found.messages_there, found.difference


def test_a_transaction_that_is_open_is_lag_and_not_waited_for_by_a_comparison(pair):
    pair.send("a", "b", "of a transaction", "behind it")
    pair.old.open_from["t", 0] = 2
    copier = pair.copier()
    run(copier)
    assert pair.there() == ["a", "b"]
    assert copier.progress["t", 0].end - copier.progress["t", 0].next_source == 2
    found = compared(pair, copier)
    shown = f"old t-0: 2 messages, equal, sha256 {found.digest[:16]}"
    assert str(found) == f"{shown}; from offset 2 of the source on a transaction is open"
    del pair.old.open_from["t", 0]
    run(copier)
    assert str(compared(pair, copier)).startswith("old t-0: 4 messages, equal, sha256 ")


def test_comparing_says_where_it_differs_and_counts_both_sides(pair):
    pair.send("a", "b", "c")
    copier = pair.copier()
    run(copier)
    assert told(pair, copier) == (3, 3, None)
    pair.send("d")
    assert told(pair, copier) == (4, 3, "the target ends before offset 3 of the source")
    run(copier)
    pair.new.logs["t", 0].append(Message(b"more"))
    assert told(pair, copier) == (4, 5, "the target has more, from offset 4 on")
    pair.new.logs["t", 0][1] = Message(b"changed", b"k", timestamp=5)
    places = "offset 1 of the source is not offset 1 of the target"
    assert told(pair, copier) == (4, 5, f"{places}: another value")


@pytest.mark.parametrize(
    ("there", "difference"),
    [
        (Message(b"a", b"l", (("h", None),), 5), "another key"),
        (Message(b"a", None, (("h", None),), 5), "another key"),
        (Message(b"", b"k", (("h", None),), 5), "another value"),
        (Message(None, b"k", (("h", None),), 5), "another value"),
        (Message(b"a", b"k", (("h", b""),), 5), "other headers"),
        (Message(b"a", b"k", (), 5), "other headers"),
        (Message(b"a", b"k", (("h", None),), 6), "time 5 there, 6 here"),
    ],
)
def test_everything_of_a_message_counts(pair, there, difference):
    pair.old.logs["t", 0].append(Message(b"a", b"k", (("h", None),), 5))
    pair.new.logs["t", 0].append(there)
    found = compared(pair, pair.copier())
    assert found.difference == f"offset 0 of the source is not offset 0 of the target: {difference}"
    assert found.digest != found.digest_there
    assert "DIFFERENT" in str(found)


def test_times_are_left_out_where_the_target_stamps_messages_itself(pair):
    pair.send("a")
    copier = pair.copier()
    run(copier)
    pair.new.logs["t", 0][0] = Message(b"a", b"k", timestamp=99)
    assert compared(pair, copier).difference is not None
    pair.new.configs["t"] = {"message.timestamp.type": "LogAppendTime"}
    found = compared(pair, copier)
    assert (found.difference, found.has_times, found.digest) == (None, False, found.digest_there)
    assert "times are not compared" in str(found)


def test_partitions_that_one_side_has_alone_are_differences_when_they_have_messages(pair):
    pair.send("a")
    pair.send("b", partition=1)
    copier = pair.copier()
    run(copier)
    sides = Sides(pair.config.sources[0], pair.config.target, copier.from_, copier.to)

    def differences(topics):
        return [one.difference for one in compare(sides, topics, pair.checkpoints(copier))]

    assert differences({"t": 2}) == [None, None, None]  # the target has a third one, which is empty
    pair.new.logs["t", 2].append(Message(b"x"))
    assert differences({"t": 2}) == [None, None, "the target has more, from offset 0 on"]
    pair.new.topics["t"] = 1
    copier.to.refresh(None)
    assert differences({"t": 2}) == [None, "the target has no such partition"]


def test_a_target_that_has_lost_its_beginning_is_not_called_equal(pair):
    pair.send("a", "b", "c", "d")
    copier = pair.copier()
    run(copier)
    pair.new.first_offset = 3
    found = compared(pair, copier)
    assert (found.messages, found.difference) == (1, None)
    assert str(found).startswith(
        "old t-0: NOT ALL COMPARED: not compared from 0 to 2: the target begins at 3; behind it 1"
    )
    pair.new.first_offset = 4  # all of it
    assert str(compared(pair, copier).left_out) == "not compared from 0 to 3: the target begins at 4"
    pair.old.first_offset = 4  # and the source has no more: there is nothing that could be missing
    assert compared(pair, copier).left_out is None


def status_of_a_comparison(pair, tmp_path, topics="t"):
    """What the command line exits with."""
    path = tmp_path / "mirror.toml"
    old, new = ("{}:{}".format(*end.address) for end in (pair.old, pair.new))
    path.write_text(
        f'[target]\nname = "new"\nbootstrap = "{new}"\n[[sources]]\nname = "old"\nbootstrap = "{old}"\ntopics = "{topics}"\n'
    )
    return commands.main([str(path), "compare"])


def test_a_comparison_of_nothing_or_of_a_part_has_an_exit_status_of_its_own(pair, tmp_path, capsys):
    assert status_of_a_comparison(pair, tmp_path, "none") == commands.NOT_COMPARED
    assert "old: NOTHING COMPARED: the source has no topic that is copied" in capsys.readouterr().out
    assert status_of_a_comparison(pair, tmp_path) == commands.NOT_COMPARED  # both are empty
    assert "old: NOTHING COMPARED: there is no message to compare in 1 topics" in capsys.readouterr().out
    pair.send("a", "b")
    copier = pair.copier()
    run(copier)
    pair.new.make("mirror-checkpoints", 1)
    CheckpointLog(copier.to, "mirror-checkpoints", Backoff(1, 10)).write(pair.checkpoints(copier))
    assert status_of_a_comparison(pair, tmp_path) == 0
    pair.new.logs["t", 0].append(Message(b"more"))
    assert status_of_a_comparison(pair, tmp_path) == commands.DIFFERENT


def test_a_comparison_of_a_part_is_no_success(pair, tmp_path, monkeypatch):
    pair.send("a", "b")
    copier = pair.copier()
    run(copier)
    known = pair.checkpoints(copier)
    monkeypatch.setattr(commands, "_checkpoints", lambda *_: known)
    assert status_of_a_comparison(pair, tmp_path) == 0
    pair.new.first_offset = 1
    assert status_of_a_comparison(pair, tmp_path) == commands.NOT_COMPARED


def test_with_marks_both_ways_each_side_is_compared_for_what_was_copied(pair):
    pair.send("a")
    pair.old.logs["t", 0].append(Message(b"from there", None, ((MARK, b"new"),), 5))
    pair.new.logs["t", 0].append(Message(b"from there", None, (), 5))
    copier = pair.copier(mark=True)
    run(copier)
    assert told(pair, copier) == (1, 1, None)


def test_a_digest_tells_fields_apart_that_have_the_same_bytes():
    def digest(*messages):
        made = Digest()
        for message in messages:
            made.add(message)
        return made.text

    some = [
        (Message(b"ab", b"c"),),
        (Message(b"b", b"ca"),),
        (Message(b"", b"cab"),),
        (Message(None, b"cab"),),
        (Message(b"ab", b"c", (("h", b""),)),),
        (Message(b"ab", b"c", (("h", None),)),),
        (Message(b"ab", b"c"), Message(b"ab", b"c")),
        (),
    ]
    assert len({digest(*messages) for messages in some}) == len(some)
    assert digest(Message(b"ab", b"c", (("h", b"v"),), 5)) == digest(Message(b"ab", b"c", (("h", b"v"),), 5))


def test_a_batch_that_is_too_large_for_the_target_comes_in_halves(pair):
    pair.send(*("x" * 100 + str(number) for number in range(8)))
    pair.new.largest_batch = 400
    run(pair.copier(), rounds=1)
    assert pair.new.logs["t", 0] == pair.old.logs["t", 0]
    assert pair.new.count(ApiKey.PRODUCE) > 4


def test_what_is_refused_for_good_rests_and_holds_up_nothing_else(pair):
    pair.send("x" * 1000, "after it")
    pair.send("b", partition=1)
    pair.new.largest_batch = 500
    copier = pair.copier()
    now = 100.0
    copier.now_s = lambda: now
    run(copier)
    assert (pair.there(), pair.there(1)) == ([], ["b"])
    tried = pair.new.count(ApiKey.PRODUCE)
    run(copier)
    assert pair.new.count(ApiKey.PRODUCE) == tried
    pair.new.largest_batch = 2000
    now = 103.0
    run(copier)
    assert pair.there() == ["x" * 1000, "after it"]


def test_a_topic_that_is_gone_is_given_up_and_goes_on_when_it_is_back(pair):
    pair.send("a", "b")
    copier = pair.copier()
    run(copier)
    checkpoints = pair.checkpoints(copier)
    copier.take_up({}, checkpoints)
    assert copier.progress == {}
    copier.take_up({"t": Followed(1)}, checkpoints)
    pair.send("c")
    run(copier)
    assert pair.there() == ["a", "b", "c"]


# --- a topic that was made anew ---------------------------------------------------------------------------------------


@pytest.fixture
def copied(pair):
    """Both sides tell ids, and two messages are copied."""
    pair.made_anew(pair.old)
    pair.made_anew(pair.new)
    pair.send("a", "b")
    copier = pair.copier()
    run(copier)
    return copier


@pytest.mark.parametrize("restarts", [False, True])
def test_a_longer_topic_of_the_same_name_at_the_source_is_not_taken_for_the_one_before(pair, copied, restarts, caplog):
    checkpoints = pair.checkpoints(copied)
    pair.made_anew(pair.old)
    pair.send("v", "w", "x", "y")
    if restarts:
        copied = pair.copier(checkpoints)
    else:
        pair.take_up(copied, checkpoints)
    run(copied)
    assert pair.there() == ["a", "b"], "x and y do not follow a and b"
    assert copied.progress["t", 0].is_stuck
    assert "old: t-0 was made anew at the source" in caplog.text
    assert pair.checkpoints(copied)[Key("old", "t", 0)] == checkpoints[Key("old", "t", 0)], "the next run sees it too"
    pair.send("c", partition=1)
    run(copied)
    assert pair.there(1) == ["c"], "of this one nothing was copied before"


@pytest.mark.parametrize("restarts", [False, True])
def test_all_is_copied_again_into_a_topic_that_was_made_anew_in_the_target(pair, copied, restarts):
    checkpoints = pair.checkpoints(copied)
    pair.made_anew(pair.new)
    pair.send("c")
    if restarts:
        copied = pair.copier(checkpoints)
    else:
        pair.take_up(copied, checkpoints)
    run(copied)
    assert pair.there() == ["a", "b", "c"]
    after = copied.progress["t", 0].checkpoint()
    assert after == Checkpoint(3, 3, (Segment(0, 0, 3),), topic_ids=after.topic_ids)
    assert after.topic_ids.target == str(pair.new.ids["t"])


def test_what_somebody_has_written_to_a_topic_that_was_made_anew_in_the_target_is_not_mixed_with_ours(
    pair, copied, caplog
):
    pair.made_anew(pair.new)
    pair.new.logs["t", 0].append(Message(b"theirs"))
    pair.send("c")
    checkpoints = pair.checkpoints(copied)
    pair.take_up(copied, checkpoints)
    pair.take_up(copied, checkpoints)
    run(copied)
    assert pair.there() == ["theirs"]
    assert caplog.text.count("t-0 was made anew in the target, and has messages") == 1
    pair.made_anew(pair.new)
    pair.take_up(copied, checkpoints)
    run(copied)
    assert pair.there() == ["a", "b", "c"], "it was deleted there once more"


def test_checkpoints_that_were_written_without_ids_get_them(pair):
    pair.send("a", "b")
    first = pair.copier()
    run(first)
    checkpoints = pair.checkpoints(first)
    pair.old.ids["t"], pair.new.ids["t"] = uuid4(), uuid4()
    second = pair.copier(checkpoints)
    pair.send("c")
    run(second)
    assert pair.there() == ["a", "b", "c"]
    assert pair.checkpoints(second)[Key("old", "t", 0)].topic_ids == TopicIds(
        str(pair.old.ids["t"]), str(pair.new.ids["t"])
    )
    del pair.new.ids["t"]  # a broker from before 2.8 answers
    third = pair.copier(pair.checkpoints(second))
    assert third.progress["t", 0].topic_ids == second.progress["t", 0].topic_ids, "what was known stays so"


def test_a_source_that_does_not_answer_is_said(pair):
    pair.send("a")
    copier = pair.copier()
    pair.old.hang_ups.append(ApiKey.FETCH)
    assert (copier.step(), copier.is_blind) == (0, True)
    assert (copier.step(), copier.is_blind) == (1, False)
