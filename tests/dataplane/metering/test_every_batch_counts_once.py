"""Produced bytes over changes of leaders: each batch once, by the broker that took it, and only when it is committed."""

from random import Random

import pytest

from dataplane.tasks import Task
from tests.dataplane.replication.cluster import SETTINGS, TOPIC, ReplicatedCluster


class Counted:
    """A meter that only remembers."""

    def __init__(self):
        self.sizes = []
        self.records = 0
        self.bytes = 0
        self.retired = []

    def topic(self, physical, topic_id):
        return self

    def retire(self, physical):
        self.retired.append(physical)

    def produced(self, size, records):
        self.sizes.append(size)
        self.records += records

    def stored(self, change):
        self.bytes += change


class Metered(ReplicatedCluster):
    def start(self, broker_id, files=None):
        broker = super().start(broker_id, files)
        broker.replicas.meter = broker.counted = Counted()
        return broker

    def counted(self):
        return {broker_id: sum(broker.counted.sizes) for broker_id, broker in self.brokers.items()}

    def log_bytes(self, broker_id):
        return self[broker_id].partition().log.size_bytes


@pytest.fixture
def cluster():
    cluster = Metered()
    cluster.create()
    cluster.run()
    return cluster


def test_the_leader_counts_what_is_committed_and_followers_count_nothing(cluster):
    cluster.network.cut("b1", "b3")
    produced = cluster.produce(1, "a" * 100, "b")
    cluster.run(0.5)
    assert produced.code is None
    assert cluster.counted() == {1: 0, 2: 0, 3: 0}
    cluster.network.heal_all()
    cluster.run()
    assert produced.code == 0
    assert cluster.counted() == {1: cluster.log_bytes(1), 2: 0, 3: 0}
    assert [broker.counted.bytes for broker in cluster.brokers.values()] == [cluster.log_bytes(1)] * 3


def test_what_is_counted_stands_there_before_the_producer_is_told(cluster):
    seen = []

    class Codes(list):
        def append(self, code):
            seen.append(cluster.counted()[1])

    cluster.produce(1, "a").codes = Codes()
    cluster.run()
    assert seen == [cluster.log_bytes(1)]


def test_a_batch_that_the_next_leader_commits_is_counted_by_the_broker_that_took_it(cluster):
    cluster.network.cut("b1", "b3")
    cluster.produce(1, "taken by 1, committed by 2")
    cluster.run(0.3)
    assert cluster[2].partition().log.end_offset == 1
    cluster.network.heal_all()
    cluster.elect(2, (1, 2, 3))
    cluster.produce(2, "taken by 2")
    cluster.run()
    both, counted = cluster.log_bytes(2), cluster.counted()
    first = both - counted[2]
    assert counted == {1: first, 2: both - first, 3: 0}
    assert 0 < first < both


def test_a_new_leader_that_knew_less_of_the_high_watermark_counts_nothing_again(cluster):
    cluster.produce(1, "x" * 50)
    cluster.network.run_for(0.002)  # committed; followers hear of it with the next answer
    while not cluster.counted()[1]:
        cluster.network.run_for(0.0002)
    assert cluster[2].partition().state.high_watermark == 0
    cluster.elect(2, (1, 2, 3))
    cluster.run()
    assert cluster[2].partition().state.high_watermark == 1
    assert cluster.counted() == {1: cluster.log_bytes(2), 2: 0, 3: 0}


def test_a_batch_that_the_next_leader_does_not_have_never_counts(cluster):
    for other in ("b2", "b3"):
        cluster.network.cut("b1", other)
    cluster.produce(1, "lost")
    cluster.run(0.1)
    cluster.elect(2, (1, 2, 3))
    cluster.network.heal_all()
    cluster.produce(2, "kept, and longer")
    cluster.run(3)
    assert cluster[1].values() == [b"kept, and longer"]
    assert cluster.counted() == {1: 0, 2: cluster.log_bytes(1), 3: 0}


def test_of_two_batches_written_together_only_the_one_that_was_copied_counts():
    from dataclasses import replace

    cluster = Metered(settings=replace(SETTINGS, replica_fetch_max_bytes=300))
    cluster.create()
    cluster.run()
    cluster.network.cut("b1", "b3")
    cluster.produce(1, "a" * 100)
    cluster.produce(1, "b" * 200)
    while cluster[2].partition().log.end_offset == 0:
        cluster.network.run_for(0.0001)
    assert cluster[1].partition().log.end_offset == 2
    assert cluster[2].partition().log.end_offset == 1
    cluster.network.cut("b1", "b2")
    cluster.elect(2, (1, 2, 3))
    cluster.run(0.1)
    cluster.network.heal_all()
    cluster.run(15)
    assert cluster[1].values() == [b"a" * 100]
    assert cluster.counted() == {1: cluster.log_bytes(1), 2: 0, 3: 0}


def test_a_leader_that_comes_back_counts_what_was_open_when_it_was_deposed(cluster):
    cluster.network.cut("b1", "b3")
    cluster.network.cut("b2", "b3")
    cluster.produce(1, "open for long")
    cluster.run(0.2)
    cluster.elect(2, (1, 2, 3))
    cluster.produce(2, "taken by 2")
    cluster.run(0.2)
    cluster.elect(1, (1, 2, 3))
    cluster.run(0.2)
    assert cluster.counted() == {1: 0, 2: 0, 3: 0}
    cluster.network.heal_all()
    cluster.run(15)
    counted = cluster.counted()
    assert sum(counted.values()) == cluster.log_bytes(3)
    assert 0 < counted[2] < counted[1]


def test_a_killed_leader_takes_with_it_only_what_was_not_committed(cluster):
    cluster.produce(1, "committed")
    cluster.run()
    committed = cluster.log_bytes(1)
    cluster.network.cut("b1", "b3")
    cluster.produce(1, "in flight")
    cluster.run(0.2)
    cluster.kill(1)
    cluster.forget(1)
    cluster.elect(2, (2, 3), told=(2, 3))
    cluster.network.heal_all()
    cluster.produce(2, "after")
    cluster.run(3)
    counted = cluster.counted()
    assert counted[1] == committed
    assert 0 < counted[2] < cluster.log_bytes(2) - committed
    assert cluster[2].committed_values() == [b"committed", b"in flight", b"after"]


def test_settling_waits_until_the_next_leader_says_what_is_committed(cluster):
    cluster.network.cut("b1", "b3")
    cluster.network.cut("b2", "b3")
    cluster.produce(1, "open")
    cluster.run(0.2)
    cluster.elect(2, (1, 2, 3))
    settling = Task(cluster[1].replicas.settle(2.0))
    cluster.run(0.5)
    assert not settling.done
    cluster.elect(2, (1, 2))
    cluster.run(0.5)
    assert settling.done
    assert cluster.counted()[1] == cluster.log_bytes(1)


def test_settling_gives_up_in_time_and_with_nothing_open_does_not_wait(cluster):
    assert Task(cluster[1].replicas.settle(2.0)).done
    cluster.network.cut("b1", "b3")
    cluster.produce(1, "open")
    cluster.run(0.1)
    settling = Task(cluster[1].replicas.settle(1.0))
    cluster.run(0.9)
    assert not settling.done
    cluster.run(0.2)
    assert settling.done


# In the last five, batches that their taker had to cut came back from a replica that still had them.
@pytest.mark.parametrize("seed", [*range(12), 267, 322, 364, 373, 482])
def test_whatever_happens_to_leaders_and_links_all_counted_bytes_are_the_log(seed):
    random = Random(seed)
    cluster = Metered(seed=seed)
    cluster.create()
    cluster.run()
    for _ in range(60):
        action = random.choice(["produce"] * 6 + ["cut", "heal", "elect"])
        leader = cluster.controller.states[TOPIC, 0].leader
        if action == "produce":
            for _ in range(random.randint(1, 4)):
                cluster.produce(leader, *["v" * random.randint(1, 200)] * random.randint(1, 3))
        elif action == "cut":
            cluster.network.cut(*random.sample(["b1", "b2", "b3"], 2))
        elif action == "heal":
            cluster.network.heal_all()
        else:
            isr = cluster.controller.states[TOPIC, 0].isr
            cluster.elect(random.choice(isr), isr)
        cluster.network.run_for(random.choice([0.0005, 0.003, 0.05, 0.5]))
    cluster.network.heal_all()
    cluster.run(10)
    ends = {broker.partition().state.high_watermark for broker in cluster.brokers.values()}
    assert len(ends) == 1
    assert sum(cluster.counted().values()) == cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)
    assert cluster.log_bytes(1) > 5_000
    assert {sum(broker.counted.records for broker in cluster.brokers.values())} == ends
