"""AlterPartition: only the controller writes an ISR, and only onto the state that the leader knew."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.cluster.paths import state_path
from dataplane.doors import SetData
from dataplane.protocol.errors import ErrorCode
from tests.dataplane.controller.cluster import ControlledCluster


@pytest.fixture
def cluster() -> ControlledCluster:
    made = ControlledCluster(3)
    made.create_on("t", 1, 2, 3)
    return made


def test_an_isr_shrinks_and_grows_and_the_answer_carries_the_new_partition_epoch(cluster: ControlledCluster) -> None:
    before = cluster.state("t", 0)
    error, answer = cluster.propose(1, "t", [1, 3])
    assert (error, answer.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    state = cluster.state("t", 0)
    assert (state.isr, state.leader_epoch) == ((1, 3), before.leader_epoch)
    assert (answer.isr, answer.partition_epoch, answer.leader_id) == ((1, 3), state.partition_epoch, 1)
    assert state.partition_epoch == before.partition_epoch + 1
    assert cluster.propose(1, "t", [1, 3, 2])[1].isr == (1, 3, 2)
    cluster.run(1)
    assert all(b.metadata.partition("t", 0).isr == (1, 3, 2) for b in cluster.brokers.values())  # type: ignore[union-attr]


def test_the_leader_is_not_told_again_by_leader_and_isr(cluster: ControlledCluster) -> None:
    told = len([r for r in cluster.brokers[1].requests if type(r).__name__ == "LeaderAndIsrRequest"])
    cluster.propose(1, "t", [1, 3])
    cluster.run(1)
    assert len([r for r in cluster.brokers[1].requests if type(r).__name__ == "LeaderAndIsrRequest"]) == told


@pytest.mark.parametrize(
    ("sender", "isr", "overrides", "error"),
    [
        (1, [1, 2], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        (1, [1, 2], {"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        (1, [1, 2], {"partition_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        (1, [1, 2], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        (2, [1, 2], {}, ErrorCode.INVALID_REQUEST),
        (1, [2, 3], {}, ErrorCode.INVALID_REQUEST),
        (1, [], {}, ErrorCode.INVALID_REQUEST),
        (1, [1, 1], {}, ErrorCode.INVALID_REQUEST),
        (1, [1, 2], {"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        (1, [1, 2], {"epochs": {2: 1}}, ErrorCode.INELIGIBLE_REPLICA),
        (1, [1, 2], {"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_proposal_that_cannot_be_is_refused_and_changes_nothing(
    cluster: ControlledCluster, sender: int, isr: list[int], overrides: dict[str, Any], error: ErrorCode
) -> None:
    before = cluster.state("t", 0)
    whole, answer = cluster.propose(sender, "t", isr, **overrides)
    assert (whole, answer.error_code) == (ErrorCode.NONE, error)
    assert cluster.state("t", 0) == before


def test_the_same_proposal_again_is_accepted_without_a_write(cluster: ControlledCluster) -> None:
    cluster.propose(1, "t", [1, 3])
    after = cluster.state("t", 0)
    _, answer = cluster.propose(1, "t", [1, 3], partition_epoch=after.partition_epoch - 1)
    assert (answer.error_code, answer.partition_epoch) == (ErrorCode.NONE, after.partition_epoch)
    assert cluster.state("t", 0) == after


def test_a_dead_replica_or_another_incarnation_of_it_cannot_join(cluster: ControlledCluster) -> None:
    cluster.propose(1, "t", [1, 2])
    old = cluster.epoch(3)
    cluster.kill(3)
    cluster.run(3)
    assert cluster.propose(1, "t", [1, 2, 3], epochs={3: -1})[1].error_code == ErrorCode.INELIGIBLE_REPLICA
    cluster.start(3)
    cluster.run(3)
    assert cluster.propose(1, "t", [1, 2, 3], epochs={3: old})[1].error_code == ErrorCode.INELIGIBLE_REPLICA
    assert cluster.propose(1, "t", [1, 2, 3])[1].error_code == ErrorCode.NONE


def test_a_state_that_somebody_else_wrote_is_not_overwritten(cluster: ControlledCluster) -> None:
    """Not even by the rightful controller: it learns what is there, and the leader is refused."""
    data = cluster.data(state_path("t", 0)).replace(b'"isr":[1,2,3]', b'"isr":[1,2]')
    before = cluster.state("t", 0).partition_epoch
    cluster.server.write([SetData(state_path("t", 0), data)])
    _, answer = cluster.propose(1, "t", [1, 3], partition_epoch=before)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert cluster.state("t", 0).isr == (1, 2)
    _, answer = cluster.propose(1, "t", [1])
    assert (answer.error_code, answer.isr) == (ErrorCode.NONE, (1,))


def test_two_proposals_in_one_breath_are_not_both_accepted(cluster: ControlledCluster) -> None:
    from dataplane.tasks import Task

    controller = cluster.controller().controller
    requests = []
    original = controller.alter_partition
    state = cluster.state("t", 0)

    def remember(request: Any, version: int) -> Any:
        requests.append((request, version))
        return original(request, version)

    controller.alter_partition = remember  # type: ignore[method-assign]
    cluster.propose(1, "t", [1, 2, 3])  # no change: only to have the request
    (request, version), data = requests[0], requests[0][0].topics[0].partitions[0]
    from dataclasses import replace

    def proposal(isr: tuple[int, ...]) -> Any:
        members = tuple(member for member in data.new_isr_with_epochs if member.broker_id in isr)
        partition = replace(data, new_isr_with_epochs=members, partition_epoch=state.partition_epoch)
        return replace(request, topics=(replace(request.topics[0], partitions=(partition,)),))

    answers = [Task(original(proposal(isr), version)) for isr in ((1, 2), (1, 3))]
    errors = [cluster.wait(answer).topics[0].partitions[0].error_code for answer in answers]
    assert errors == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert cluster.state("t", 0).isr == (1, 2)
    assert cluster.state("t", 0).partition_epoch == state.partition_epoch + 1
