"""A leader that was deposed, and has not heard of it, ends no producer that the new leader knows better."""

from __future__ import annotations

import pytest

from dataplane.protocol.errors import ErrorCode
from dataplane.replication.verdicts import LONGEST_S
from tests.dataplane.replication.cluster import TOPIC, ReplicatedCluster


def started(size: int = 3) -> ReplicatedCluster:
    cluster = ReplicatedCluster(size)
    for index in (0, 1):  # whoever asks for the other one goes on asking
        cluster.create(tuple(range(1, size + 1)), index=index)
    cluster.run(0.5)
    return cluster


class Asked:
    """Whether the broker may give a verdict: how that ended, and when."""

    def __init__(self, cluster: ReplicatedCluster, broker_id: int = 1) -> None:
        self.codes: list[ErrorCode] = []
        self.began, self.took = cluster.network.clock.seconds, -1.0
        self._clock = cluster.network.clock
        replicas = cluster[broker_id].replicas
        cluster[broker_id].loop.post(lambda: replicas.verdicts.wait(replicas.registry.get(TOPIC, 0), self._answered))

    def _answered(self, code: ErrorCode) -> None:
        self.codes.append(code)
        self.took = self._clock.seconds - self.began


def test_a_lone_replica_knows_at_once():
    cluster = started(1)
    asked = Asked(cluster)
    cluster.run(0.0001)
    assert asked.codes == [ErrorCode.NONE]


def test_while_all_in_sync_follow_it_costs_a_few_round_trips():
    cluster = started()
    several = [Asked(cluster) for _ in range(3)]
    cluster.run(1)
    assert [asked.codes for asked in several] == [[ErrorCode.NONE]] * 3
    assert max(asked.took for asked in several) < 0.05


def test_it_costs_no_more_while_much_is_written():
    cluster = started()
    for _ in range(20):
        cluster.produce(1, "x")
        cluster.run(0.001)
    asked = Asked(cluster)
    for _ in range(20):
        cluster.produce(1, "x")
        cluster.run(0.001)
    cluster.run(0.1)
    assert asked.codes == [ErrorCode.NONE]
    assert asked.took < 0.05


def test_who_asks_while_others_wait_has_a_proof_of_its_own():
    """What has come before it was asked proves nothing to it, whatever that proves to the others."""
    cluster = started(2)
    first = Asked(cluster)
    verdicts = cluster[1].replicas.verdicts
    proof = lambda: verdicts.open.get(cluster[1].partition())  # noqa: E731
    cluster.network.run_until(lambda: proof() is not None and not proof().is_untouched())
    second = Asked(cluster)
    cluster.network.run_until(lambda: bool(first.codes))
    assert second.codes == []
    cluster.run(0.1)
    assert first.codes == second.codes == [ErrorCode.NONE]


def test_many_that_ask_cost_no_more_than_one():
    cluster = started(2)
    before = cluster[1].fetch_requests
    many = []
    for _ in range(50):
        many += [Asked(cluster) for _ in range(20)]
        cluster.run(0.0001)
        assert len(cluster[1].replicas.verdicts.open) <= 1
    cluster.run(0.2)
    assert [asked.codes for asked in many] == [[ErrorCode.NONE]] * 1_000
    assert cluster[1].fetch_requests - before < 20


@pytest.mark.parametrize("told", [(2, 3), (2,)], ids=["all others know", "only the new leader knows"])
def test_who_was_deposed_gives_none(told):
    cluster = started()
    cluster.elect(2, (1, 2, 3), told=told)
    asked = Asked(cluster)
    cluster.run(LONGEST_S / 2)
    assert asked.codes == []
    cluster.tell(told=(1,))
    assert asked.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_who_hears_from_nobody_has_the_client_ask_again():
    cluster = started()
    cluster.network.cut("b1", "b2")
    asked = Asked(cluster)
    cluster.run(0.1)
    later = Asked(cluster)
    cluster.run(2 * LONGEST_S)
    assert asked.codes == later.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert asked.took < LONGEST_S + 0.1


def test_what_was_on_its_way_when_it_was_asked_proves_nothing():
    cluster = started(2)
    cluster.network.cut("b2", "b1", both_ways=False)
    cluster.run(0.5)  # what the follower asks next does not arrive,
    cluster.create((1, 2), index=2)
    cluster.run(0.1)  # nor what it asks beside it
    cluster.elect(2, (1, 2), told=(2,))
    asked = Asked(cluster)
    cluster.run(0.01)
    cluster.network.heal("b2", "b1")
    cluster.run(LONGEST_S + 0.1)
    assert asked.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_who_has_left_the_isr_is_not_waited_for():
    cluster = started()
    cluster.kill(3)
    cluster.produce(1, "x", acks=1)
    cluster.run(5)
    assert cluster[1].partition().state.isr == (1, 2)
    asked = Asked(cluster)
    cluster.run(0.1)
    assert asked.codes == [ErrorCode.NONE]


def test_who_leaves_the_isr_meanwhile_is_waited_for_no_longer():
    cluster = started()
    cluster.network.cut("b1", "b3")
    cluster.produce(1, "x", acks=1)
    cluster.network.run_until(lambda: cluster[1].partition().state.proposed_isr is not None)
    asked = Asked(cluster)
    cluster.run(LONGEST_S / 2)
    assert cluster[1].partition().state.isr == (1, 2)
    assert asked.codes == [ErrorCode.NONE]


def test_a_partition_that_stops_answers():
    cluster = started()
    cluster.network.cut("b1", "b2")
    asked = Asked(cluster)
    cluster.run(0.01)
    cluster[1].replicas.stop()
    assert asked.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
