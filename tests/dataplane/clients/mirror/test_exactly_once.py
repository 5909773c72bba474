"""Messages and checkpoints in one transaction: whatever fails, and whenever, each message is there once."""

from __future__ import annotations

import logging

import pytest

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.errors import BrokerError, ClientError, FencedError
from dataplane.clients.messages import Message
from dataplane.clients.mirror import transacting
from dataplane.clients.mirror.appending import PlainWriter
from dataplane.clients.mirror.checkpoints import CheckpointLog, Followed, Key
from dataplane.clients.mirror.comparing import Sides, compare
from dataplane.clients.mirror.config import parse_config
from dataplane.clients.mirror.copying import Copier
from dataplane.clients.mirror.delivery import (
    AtLeastOnce,
    ExactlyOnce,
    NoTransactionsError,
    SupersededError,
    chosen,
    transactional_id,
)
from dataplane.clients.mirror.offset_map import MOST_SEGMENTS, Segment
from dataplane.clients.mirror.putting import MARK
from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.records import compression
from tests.dataplane.clients.mirror.transactional_broker import TransactionalBroker
from tests.dataplane.clients.small_broker import NEWEST, SmallBroker

CHECKPOINTS = "mirror-checkpoints"
VALUES = list("abcdefgh")


class Life:
    """Of a mirror of one source, from its start to where a test leaves it."""

    def __init__(self, old, new, *, patience_s=5.0, **mirror):
        ends = {"name": "old", "bootstrap": "{}:{}".format(*old.address), "topics": "t"}
        target = {"name": "new", "bootstrap": "{}:{}".format(*new.address)}
        self.config = parse_config({"target": target, "sources": [ends], "mirror": mirror})
        source = self.config.sources[0]
        self.from_ = Cluster(source.settings, lambda: source.bootstrap)
        self.to = Cluster(self.config.target.settings, lambda: self.config.target.bootstrap)
        self.copier = Copier(self.config, source, self.from_, self.to)
        self.log = CheckpointLog(self.to, CHECKPOINTS, Backoff(1, 10))
        self.named = transactional_id(self.config, source)
        self.patience_s = patience_s

    def exactly_once(self):
        self.delivery = ExactlyOnce(self.copier, self.log, self.named, patience_s=self.patience_s)
        self.open()
        return self

    def open(self):
        self.delivery.open()
        self.copier.take_up({"t": Followed(2)}, self.delivery.checkpoints)

    def copy(self, rounds=3):
        """Some rounds, each with its transaction."""
        for _ in range(rounds):
            self.copier.step()
            self.delivery.commit()

    def close(self):
        self.from_.close()
        self.to.close()


@pytest.fixture
def ends():
    with SmallBroker({"t": 2}) as old, TransactionalBroker({"t": 2, CHECKPOINTS: 1}) as new:
        yield old, new


@pytest.fixture
def life(ends):
    lives = []

    def begin(**options):
        lives.append(Life(*ends, **options))
        return lives[-1]

    yield begin
    for each in lives:
        each.close()


def send(old, *values, partition=0):
    old.logs["t", partition] += [Message(value.encode(), b"k", timestamp=5) for value in values]


def test_a_transaction_ends_well_before_its_timeout_however_rare_checkpoints_are_to_be(life):
    one = life(checkpoint_s=3600)
    one.exactly_once()
    assert one.delivery.period_s <= transacting.TIMEOUT_MS / 2000
    assert AtLeastOnce(one.copier, one.log).period_s == 3600
    assert life(checkpoint_s=0.5).exactly_once().delivery.period_s == 0.5


def test_messages_and_checkpoints_are_there_at_once(ends, life):
    old, new = ends
    send(old, "a", "b")
    send(old, "c", partition=1)
    one = life().exactly_once()
    assert one.copier.step() == 3
    assert (new.committed("t", 0), new.committed("t", 1)) == ([], [])
    one.delivery.commit()
    assert (new.committed("t", 0), new.committed("t", 1)) == (["a", "b"], ["c"])
    assert [message.message for message in new.read("t", 0)] == old.logs["t", 0]
    found = one.log.read().checkpoints[Key("old", "t", 0)]
    assert (found.source_offset, found.target_offset, found.is_exact) == (2, 2, True)
    send(old, "d")
    one.copy()
    assert new.committed("t", 0) == ["a", "b", "d"]
    assert one.copier.progress["t", 0].offsets.segments == (Segment(0, 0, 2), Segment(2, 3, 1))  # a marker lies between


def test_what_comes_is_moved_as_it_is(ends, life):
    """From the second fetch on: the first is compared with what is there."""
    old, new = ends
    send(old, "a")
    one = life().exactly_once()
    one.copy()
    old.logs["t", 0] += [
        Message(None, b"deleted", (), 6),
        Message(b"", b"", (("h", b"x"), ("h", None)), 7),
        Message(b"v" * 5_000, None, (), 2**41),
    ]
    old.codec = compression.GZIP
    one.copy()
    assert [message.message for message in new.read("t", 0)] == old.logs["t", 0]
    assert one.copier.progress["t", 0].copied == 4


def test_what_came_from_the_target_does_not_go_back(ends, life):
    old, new = ends
    send(old, "a")
    one = life().exactly_once()
    one.copy()
    old.logs["t", 0].append(Message(b"from there", None, ((MARK, b"new"),)))
    old.logs["t", 0].append(Message(b"from elsewhere", None, ((MARK, b"other"),)))
    send(old, "b")
    one.copy()
    assert new.committed("t", 0) == ["a", "from elsewhere", "b"]


def test_a_moved_batch_that_is_too_large_comes_in_halves(ends, life):
    old, new = ends
    send(old, "a")
    one = life().exactly_once()
    one.copy()
    send(old, *("x" * 100 + str(number) for number in range(8)))
    new.largest_batch = 600
    one.copy()
    assert one.delivery.is_open
    assert new.committed("t", 0) == ["a", *("x" * 100 + str(number) for number in range(8))]


def test_of_a_source_with_transactions_what_is_committed_is_copied():
    with TransactionalBroker({"t": 2}) as old, TransactionalBroker({"t": 2, CHECKPOINTS: 1}) as new:
        one = Life(old, new)
        producer = transacting.TransactionalProducer(one.from_, "of-a-tenant")
        producer.initialise(take_over=True)

        def produce(*values):
            producer.append(("t", 0), [Message(value.encode()) for value in values])

        produce("a", "b")
        producer.commit()
        one.exactly_once()
        one.copy()
        produce("lost")
        producer.abort()
        producer.initialise(take_over=True)
        produce("c")
        producer.commit()
        produce("still open")
        one.copy()
        assert new.committed("t", 0) == ["a", "b", "c"]
        progress = one.copier.progress["t", 0]
        assert progress.end - progress.next_source == 1
        sides = Sides(one.config.sources[0], one.config.target, one.from_, one.to)
        found = next(iter(compare(sides, {"t": 1}, one.log.read().checkpoints)))
        assert (found.messages, found.difference, found.open_from) == (3, None, 7)
        producer.commit()
        one.copy()
        assert new.committed("t", 0) == ["a", "b", "c", "still open"]
        one.close()


def test_where_nothing_comes_nothing_is_written(ends, life):
    old, new = ends
    send(old, "a")
    one = life().exactly_once()
    one.copy()
    before = new.writes
    one.copy(5)
    assert new.writes == before


def test_a_life_goes_on_where_the_last_transaction_ended(ends, life):
    old, new = ends
    send(old, "a", "b")
    first = life().exactly_once()
    first.copy()
    send(old, "c")
    first.copier.step()  # and it is killed before it has committed that
    send(old, "d")
    life().exactly_once().copy()
    assert new.committed("t", 0) == ["a", "b", "c", "d"]


def test_what_was_aborted_before_any_checkpoint_is_not_taken_for_copied(ends, life):
    old, new = ends
    send(old, "a", "b")
    life().exactly_once().copier.step()
    second = life().exactly_once()
    assert new.committed("t", 0) == []
    second.copy()
    assert new.committed("t", 0) == ["a", "b"]


@pytest.mark.parametrize("is_mute", [False, True], ids=["not done", "done and not answered"])
@pytest.mark.parametrize("dies_at", range(1, 16))
def test_killed_at_any_write_it_loses_nothing_and_repeats_nothing(ends, life, dies_at, is_mute):
    """A mirror that dies then, and another after it: the target does nothing more for the first."""
    old, new = ends
    new.dies_at, new.is_mute = dies_at, is_mute
    one = life(patience_s=0.0)
    try:
        one.exactly_once()
        for value in VALUES:
            send(old, value)
            send(old, value + value, partition=1)
            one.copy(1)
    except ClientError:
        pass
    else:
        raise AssertionError("it was not killed")
    new.dies_at = None
    for value in VALUES[len(old.logs["t", 0]) :]:
        send(old, value)
        send(old, value + value, partition=1)
    life().exactly_once().copy()
    assert new.committed("t", 0) == VALUES
    assert new.committed("t", 1) == [value + value for value in VALUES]


@pytest.mark.parametrize("dies_at", range(4, 16))
def test_interrupted_at_any_write_it_goes_on_by_itself(ends, life, dies_at):
    """The target is away for a while, and the mirror lives on."""
    old, new = ends
    one = life(patience_s=0.3).exactly_once()
    new.dies_at, new.is_mute = dies_at, True
    for value in VALUES:
        send(old, value)
        try:
            one.copy(1)
        except ClientError:
            new.dies_at = None
            assert not one.delivery.is_open
            one.open()
    for state in one.copier.progress.values():
        state.rest_until = 0.0  # of the one that was in doubt
    one.copy()
    assert new.committed("t", 0) == VALUES


@pytest.mark.parametrize("key", [ApiKey.PRODUCE, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.END_TXN])
def test_a_lost_answer_is_asked_for_again_and_breaks_nothing(ends, life, key):
    old, new = ends
    send(old, "a", "b")
    one = life().exactly_once()
    new.lost_answers.append(key)
    one.copy(1)
    assert one.delivery.is_open
    send(old, "c")
    one.copy(1)
    assert new.committed("t", 0) == ["a", "b", "c"]
    assert new.lost_answers == []


def test_a_second_mirror_of_the_same_names_ends_the_first(ends, life):
    old, new = ends
    send(old, "a")
    first, second = life().exactly_once(), life()
    first.copier.step()
    second.exactly_once()
    with pytest.raises(FencedError):
        first.delivery.commit()
    assert not first.delivery.is_open
    with pytest.raises(SupersededError, match=r"sluice-mirror\.new\.old"):
        first.delivery.open()
    second.copy()
    assert new.committed("t", 0) == ["a"]


def test_what_a_new_leader_of_the_checkpoints_does_not_show_yet_is_waited_for(ends, life):
    """It has all of it, and does not know yet that the others do. What it shows would be copied again, or another run's."""
    old, new = ends
    send(old, "a", "b")
    one = life().exactly_once()
    one.copier.step()
    one.delivery.commit()
    send(old, "c")
    one.copier.step()
    new.time_out(one.named)
    with pytest.raises(FencedError):
        one.delivery.commit()
    new.behind[CHECKPOINTS, 0] = [3]  # the commit above, and what it stands behind
    one.open()
    one.copy()
    assert new.committed("t", 0) == ["a", "b", "c"]
    again = life()
    new.behind[CHECKPOINTS, 0] = [2]
    again.exactly_once()
    assert new.behind[CHECKPOINTS, 0] == []


def test_one_that_is_fenced_before_it_has_said_that_it_runs_ends(ends, life):
    _, new = ends
    one = life()
    one.delivery = ExactlyOnce(one.copier, one.log, one.named)
    begin = one.delivery._begin

    def fenced_first():
        new.time_out(one.named)
        begin()

    one.delivery._begin = fenced_first
    with pytest.raises(SupersededError):
        one.delivery.open()


def test_one_whose_transaction_took_too_long_goes_on(ends, life):
    old, new = ends
    send(old, "a", "b")
    one = life().exactly_once()
    one.copier.step()
    new.time_out(one.named)
    with pytest.raises(FencedError):
        one.delivery.commit()
    one.open()
    one.copy()
    assert new.committed("t", 0) == ["a", "b"]


def test_checkpoints_that_were_written_without_transactions_are_gone_on_from(ends, life):
    old, new = ends
    send(old, "a", "b")
    before = life()
    before.delivery = AtLeastOnce(before.copier, before.log)
    before.open()
    before.copy()
    send(old, "c", "d")
    before.copier.step()  # and it dies before it says so
    send(old, "e")
    after = life().exactly_once()
    after.copy()
    assert new.committed("t", 0) == ["a", "b", "c", "d", "e"]
    assert after.log.read().checkpoints[Key("old", "t", 0)].is_exact


def test_what_was_not_looked_at_yet_is_not_called_exact(ends, life):
    """A checkpoint of before, behind which there may be something: it is so until messages come that can be compared."""
    old, new = ends
    send(old, "a", "b")
    before = life()
    before.delivery = AtLeastOnce(before.copier, before.log)
    before.open()
    before.copy()
    send(old, "c")
    before.copier.step()  # and it dies before it says so
    old.without_leader.add(("t", 0))
    send(old, "x", partition=1)
    life().exactly_once().copy()
    old.without_leader.clear()
    life().exactly_once().copy()
    assert new.committed("t", 0) == ["a", "b", "c"]
    assert new.committed("t", 1) == ["x"]


def test_what_was_copied_in_many_transactions_compares_equal(ends, life):
    old, _ = ends
    one = life().exactly_once()
    for number in range(2 * MOST_SEGMENTS):
        send(old, str(number))
        one.copy(1)
    sides = Sides(one.config.sources[0], one.config.target, one.from_, one.to)

    def compared():
        return next(iter(compare(sides, {"t": 1}, one.log.read().checkpoints)))

    found = compared()
    assert (found.messages, found.messages_there, found.difference) == (2 * MOST_SEGMENTS, 2 * MOST_SEGMENTS, None)
    old.first_offset = 100  # the source has deleted what came first
    found = compared()
    assert found.difference is None
    assert found.messages == found.messages_there == 2 * MOST_SEGMENTS - 100


def test_and_the_other_way_round(ends, life):
    old, new = ends
    send(old, "a", "b")
    before = life().exactly_once()
    before.copy()
    send(old, "c")
    before.copier.step()
    before.delivery.close()
    after = life()
    after.delivery = AtLeastOnce(after.copier, after.log)
    after.open()
    after.copy()
    assert new.committed("t", 0) == ["a", "b", "c"]


def test_a_partition_that_cannot_be_written_to_rests_and_holds_up_no_other(ends, life):
    old, new = ends
    send(old, "a")
    send(old, "b", partition=1)
    new.unwritable["t", 0] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    one = life().exactly_once()
    now = 100.0
    one.copier.now_s = lambda: now
    one.copy()
    assert one.delivery.is_open
    assert (new.committed("t", 0), new.committed("t", 1)) == ([], ["b"])
    new.unwritable.clear()
    one.copy()
    assert new.committed("t", 0) == []
    now = 103.0
    one.copy()
    assert new.committed("t", 0) == ["a"]


def test_a_message_that_is_too_large_is_refused_and_breaks_no_transaction(ends, life):
    old, new = ends
    send(old, "small", "x" * 1000, "after it")
    send(old, "b", partition=1)
    one = life().exactly_once()
    new.largest_batch = 600
    one.copy()
    assert one.delivery.is_open
    assert (new.committed("t", 0), new.committed("t", 1)) == (["small"], ["b"])


def test_more_partitions_than_a_transaction_takes_are_copied_in_several(ends, life, monkeypatch):
    monkeypatch.setattr(transacting, "MOST_PARTITIONS", 1)
    old, new = ends
    one = life().exactly_once()
    for value in VALUES:
        send(old, value)
        send(old, value + value, partition=1)
        one.copier.step()
        assert one.copier.is_full
        one.delivery.commit()
        one.copy(1)
        assert not one.copier.is_full
    assert (len(new.committed("t", 0)), len(new.committed("t", 1))) == (8, 8)


def test_at_a_slow_target_a_round_ends_in_time_and_commits_what_it_has(ends, life):
    old, new = ends
    one = life().exactly_once()
    one.copier._putting.largest_batch = 250
    producer = one.copier.writer
    append = producer.append

    def slow(place, messages, codec=0):
        producer._began_at -= transacting.TIMEOUT_MS / 3000 if place[0] == "t" else 0  # so long the last one took
        return append(place, messages, codec)

    producer.append = slow
    values = ["x" * 100 + str(number) for number in range(8)]
    send(old, *values)
    producer.enlist([("t", 0)])
    one.copier.step()
    assert one.copier.is_full
    one.delivery.commit()
    some = new.committed("t", 0)
    assert 0 < len(some) < 8
    assert some == values[: len(some)]
    producer.append = append
    one.copy()
    assert new.committed("t", 0) == values


def test_a_late_transaction_in_which_nothing_was_put_is_ended_all_the_same(ends, life):
    old, new = ends
    one = life().exactly_once()
    one.copy()  # there are checkpoints, and nothing about them changes
    one.copier.writer.enlist([("t", 0)])
    one.copier.writer._began_at -= transacting.TIMEOUT_MS / 1000
    send(old, "a")
    one.copy()
    assert new.committed("t", 0) == ["a"]


def test_after_a_transaction_that_came_to_nothing_batches_are_half_as_large(ends, life):
    old, new = ends
    one = life().exactly_once()
    whole = one.copier._putting.largest_batch
    send(old, "a")
    one.copier.step()
    one.copier.writer.give_up()
    one.open()
    assert one.copier._putting.largest_batch == whole // 2
    one.copy()
    assert new.committed("t", 0) == ["a"]
    assert one.copier._putting.largest_batch == whole


def test_a_broken_producer_does_nothing_until_it_has_begun_anew(ends, life):
    one = life().exactly_once()
    producer = one.copier.writer
    producer.is_broken = True
    for do in (producer.commit, lambda: producer.enlist([("t", 0)]), lambda: producer.append(("t", 0), [Message(b"")])):
        with pytest.raises(BrokerError):
            do()
    producer.initialise(take_over=False)
    assert producer.append(("t", 0), [Message(b"x")]) == 0


# --- which of the two -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delivery", "kind", "writer"),
    [
        ("auto", ExactlyOnce, transacting.TransactionalProducer),
        ("exactly_once", ExactlyOnce, transacting.TransactionalProducer),
        ("at_least_once", AtLeastOnce, PlainWriter),
    ],
)
def test_a_target_with_transactions_gets_each_message_once_unless_it_is_set_otherwise(
    life, delivery, kind, writer, caplog
):
    one = life(delivery=delivery)
    with caplog.at_level(logging.INFO):
        assert type(chosen(one.config, one.copier, one.log)) is kind
    assert type(one.copier.writer) is writer
    assert delivery.replace("auto", "exactly_once").replace("_", " ") in caplog.text


def test_a_target_without_them_gets_each_at_least_once_and_that_is_said(ends, caplog):
    old, _ = ends
    versions = {key: value for key, value in NEWEST.items() if key != ApiKey.INIT_PRODUCER_ID}
    with SmallBroker({"t": 2}, versions) as new:
        for delivery in ("auto", "exactly_once"):
            one = Life(old, new, delivery=delivery)
            if delivery == "auto":
                assert type(chosen(one.config, one.copier, one.log)) is AtLeastOnce
            else:
                with pytest.raises(NoTransactionsError):
                    chosen(one.config, one.copier, one.log)
            one.close()
    assert "at least once, for the target has no transactions" in caplog.text
