"""Retention keeps a transaction whole as long as it is open: what a reader gets of it once it is committed has its beginning.

Before each test two plain records are on the broker, then the beginning of a transaction, then records of others; a segment holds
one record each. Retention would leave the last segment only.
"""

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.control import Marker
from dataplane.storage.checkpoints.transactions import UNKNOWN
from dataplane.storage.log import producing
from tests.dataplane.fetching.reading_transactions import CommittedReader
from tests.dataplane.fetching.support import Door
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster

BEGINS_AT, END = 2, 6
BY_SIZE = {"retention_bytes": "1", "retention_ms": "-1"}
BY_TIME = {"retention_ms": "1000"}


def with_an_open_transaction(size=1, **config):
    made = ReplicatedCluster(size)
    made.create(tuple(range(1, size + 1)), segment_bytes="100", **config)
    made.run(0.5)
    for number in range(END):
        how = {"producer": (7, 0, 0), "transactional": True} if number == BEGINS_AT else {}
        made.produce(1, f"record {number} {'x' * 30}", **how)
        made.run(0.5)
    assert len(made[1].partition().log.segments) == END
    made.run(5)  # what goes by time is old by now
    return made


def starts(cluster):
    """Where the partition begins on each broker, after retention was applied on all."""
    for broker in cluster.brokers.values():
        broker.replicas.housekeeping.apply_retention()
    return [broker.partition().log.start_offset for broker in cluster.brokers.values()]


@pytest.mark.parametrize("config", [BY_SIZE, BY_TIME])
def test_it_goes_up_to_where_the_transaction_begins_and_on_when_it_has_ended(config):
    cluster = with_an_open_transaction(**config)
    assert starts(cluster) == [BEGINS_AT]
    done = cluster.mark(1, Marker.COMMIT, producer=7)
    cluster.run(5)
    assert done.codes == [ErrorCode.NONE]
    assert starts(cluster) == [END + (config is BY_TIME)]


@pytest.mark.parametrize("config", [BY_SIZE, BY_TIME])
def test_followers_keep_it_as_well(config):
    cluster = with_an_open_transaction(3, **config)
    assert starts(cluster) == [BEGINS_AT] * 3
    cluster.elect(2, (2, 3), told=(2, 3))
    cluster.run()
    assert starts(cluster)[1:] == [BEGINS_AT] * 2


def test_a_reader_of_what_is_committed_gets_all_of_it():
    cluster = with_an_open_transaction(**BY_SIZE)
    starts(cluster)
    cluster.produce(1, f"the end {'x' * 30}", producer=(7, 0, 1), transactional=True)
    cluster.run()
    cluster.mark(1, Marker.COMMIT, producer=7)
    cluster.run()
    values = CommittedReader(Door(cluster), offset=BEGINS_AT).read_all()
    assert [value[:8] for value in values] == [b"record 2", b"record 3", b"record 4", b"record 5", b"the end "]


def test_the_rounds_of_the_clock_keep_it_as_well():
    cluster = with_an_open_transaction(**BY_SIZE)
    cluster.run(cluster.settings.log_retention_check_interval_ms / 1000 + 10)
    assert cluster[1].partition().log.start_offset == BEGINS_AT


def restarted(**config):
    """Nobody has asked yet what is open."""
    cluster = with_an_open_transaction(**config)
    cluster[1].logs.close()
    cluster.kill(1)
    cluster.start(1)
    cluster.tell()
    cluster.run(0.1)
    assert cluster[1].partition().state.last_stable_offset == UNKNOWN
    return cluster


def test_after_a_restart_it_is_looked_up_where_something_would_go():
    assert starts(restarted(**BY_SIZE)) == [BEGINS_AT]


def test_after_a_restart_nothing_is_looked_up_where_nothing_would_go(monkeypatch):
    cluster = restarted(retention_bytes="-1", retention_ms="-1")
    monkeypatch.setattr(producing, "learn_transactions", lambda _: pytest.fail("a log is read for nothing"))
    assert starts(cluster) == [0]


def test_where_it_cannot_be_looked_up_nothing_goes_and_other_partitions_have_their_turn(monkeypatch):
    cluster = restarted(**BY_SIZE)
    cluster.create((1,), index=1)
    for _ in range(3):
        cluster.produce(1, "x" * 50, index=1)
        cluster.run()

    def unreadable(log):
        assert (log.topic, log.partition) == (TOPIC, 0)
        raise OSError("the disk")

    monkeypatch.setattr(producing, "learn_transactions", unreadable)
    assert starts(cluster) == [0]
    assert cluster[1].partition(1).log.start_offset == 2
