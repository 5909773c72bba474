"""A follower that is elected knows what its leader knew: which transactions are open, and which were aborted."""

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.records.control import Marker
from dataplane.storage.checkpoints.transactions import UNKNOWN, AbortedTransaction
from dataplane.storage.log import aborting
from tests.dataplane.replication.cluster import ReplicatedCluster

ABORTED = [AbortedTransaction(8, 1, 2, 0)]


@pytest.fixture
def cluster():
    """Producer 7 has been writing since offset 0, what 8 wrote is aborted."""
    made = ReplicatedCluster()
    made.create()
    made.run()
    made.produce(1, "open", producer=(7, 0, 0), transactional=True)
    made.run(0.5)
    made.produce(1, "aborted", producer=(8, 0, 0), transactional=True)
    made.run(0.5)
    assert made.mark(1, Marker.ABORT, producer=8) is not None
    made.run()
    return made


def known(broker):
    partition = broker.partition()
    state = partition.state
    return state.high_watermark, partition.stable_end(), aborting.aborted_between(partition.log, 0, 100)


def test_all_replicas_know_it(cluster):
    assert [known(cluster[n]) for n in (1, 2, 3)] == [(3, 0, ABORTED)] * 3


def test_a_follower_that_is_elected_goes_on_with_it(cluster):
    cluster.elect(2, (2, 3))
    cluster.run()
    assert known(cluster[2]) == (3, 0, ABORTED)
    assert cluster[2].partition().log.transactions.open == {7: 0}
    done = cluster.mark(2, Marker.COMMIT, producer=7)
    cluster.run()
    assert done.codes == [ErrorCode.NONE]
    assert known(cluster[2]) == (4, 4, ABORTED)


def test_a_marker_counts_when_it_is_committed(cluster):
    cluster.kill(2)
    cluster.kill(3)
    done = cluster.mark(1, Marker.COMMIT, producer=7)
    cluster.run(0.2)
    assert done.codes == []
    assert known(cluster[1]) == (3, 0, ABORTED)


def test_a_marker_that_is_cut_leaves_the_transaction_open(cluster):
    for other in ("b2", "b3"):
        cluster.network.cut("b1", other)
    cluster.mark(1, Marker.ABORT, producer=7)
    cluster.run(0.01)
    old = cluster[1].partition()
    assert old.log.end_offset == 4
    assert old.log.last_aborted == 3
    cluster.elect(2, (2, 3))
    cluster.run(0.1)
    cluster.mark(2, Marker.COMMIT, producer=7)
    cluster.network.heal_all()
    cluster.run(40)
    assert [known(cluster[n]) for n in (1, 2, 3)] == [(4, 4, ABORTED)] * 3


def test_a_broker_that_starts_again_looks_when_it_is_asked(cluster):
    for n in (1, 2, 3):
        cluster.kill(n)
    broker = cluster.start(2)
    cluster.elect(2, (2,), told=(2,))
    partition = broker.partition()
    assert known(broker)[1:] == (0, ABORTED)
    cluster.mark(2, Marker.COMMIT, producer=7)
    cluster.run()
    assert partition.state.last_stable_offset == partition.state.high_watermark == 4


def test_nothing_is_looked_up_for_a_log_of_which_nobody_asks():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,))
    cluster.produce(1, "v", producer=(7, 0, 0))
    cluster.run()
    cluster[1].logs.close()
    cluster.kill(1)
    cluster.start(1)
    cluster.tell()
    cluster.run(0.1)
    partition = cluster[1].partition()
    assert partition.state.last_stable_offset == UNKNOWN
    assert partition.stable_end() == partition.state.last_stable_offset == 1
    assert partition.log.producer_state.known is None


def test_what_brokers_write_themselves_is_nobodys_produce():
    cluster = ReplicatedCluster(size=1)
    cluster.create((1,))
    cluster.produce(1, "v", producer=(7, 0, 0), transactional=True)
    cluster.run()
    counts = cluster[1].partition().counts
    before = counts.committed
    cluster.mark(1, Marker.ABORT, producer=7)
    cluster.run()
    assert counts.committed == before > 0
    cluster.produce(1, "w")
    cluster.run()
    assert counts.committed > before
