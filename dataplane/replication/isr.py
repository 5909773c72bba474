"""Changes of an ISR: proposed by the leader, decided by the controller (KIP-497).

One AlterPartition is under way at a time; what is proposed meanwhile goes together into the next, as far as one has room: when
a broker dies, each of the others has thousands of partitions to tell of. A proposal without an
answer is asked again, word for word: the controller may have done it already, and then says so. One that is answered
neither yes nor no is asked again behind all others, and keeps none of them waiting; so is one whose answer could not be
taken, which is a bug, once a second. While a proposal is undecided the partition counts the larger ISR (`partition`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from dataplane.replication.waiting import hear
from dataplane.tasks import Future

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.doors import Loop
    from dataplane.replication.replica.partition import Partition

_log = logging.getLogger(__name__)
ALTER_PARTITION_VERSION = 3
FIRST_RETRY_S = 0.05
LAST_RETRY_S = 1.0
ANSWER_TIMEOUT_S = 30.0
MOST_TOGETHER = 250
"""Proposals in one request: about two milliseconds to make it, and as much again to take the answer."""

AlterPartition = Callable[[AlterPartitionRequest], Future[AlterPartitionResponse]]


class _Proposal(NamedTuple):
    partition: Partition
    leader_epoch: int
    isr: tuple[int, ...]

    def is_open(self) -> bool:
        """Neither decided nor overtaken by a new epoch."""
        partition = self.partition
        return partition.state.proposed_isr is self.isr and partition.state.leader_epoch == self.leader_epoch


def _nobody_hears(_partition: Partition) -> None:
    """Before the parts of a broker are wired."""


class IsrChanges:
    """The proposals of one broker."""

    def __init__(
        self,
        broker_id: int,
        loop: Loop,
        broker_epoch: Callable[[], int],
        alter_partition: AlterPartition,
    ) -> None:
        self._broker_id = broker_id
        self._loop = loop
        self._broker_epoch = broker_epoch
        self._alter_partition = alter_partition
        self._confirmed: Callable[[Partition], None] = _nobody_hears
        self._queue: list[_Proposal] = []
        self._attempt = 0  # number of the request that is under way; 0: none
        self._attempts = 0
        self._retry_s = FIRST_RETRY_S
        self._pausing = False
        self._stopped = False

    def on_confirmed(self, callback: Callable[[Partition], None]) -> None:
        """Call it when a partition's ISR has become another one. One hears of it: `progress`."""
        self._confirmed = callback

    def propose(self, partition: Partition, isr: tuple[int, ...]) -> None:
        """Ask for another ISR of a partition that has no undecided proposal."""
        partition.state.propose(isr)
        if not self._queue:
            self._loop.at_turn_end(self._send)
        self._queue.append(_Proposal(partition, partition.state.leader_epoch, isr))

    def stop(self) -> None:
        """Ask nothing more."""
        self._stopped = True

    def _send(self) -> None:
        if self._attempt or self._pausing or self._stopped:
            return
        asked: list[_Proposal] = []
        while self._queue and not asked:
            some, self._queue = self._queue[:MOST_TOGETHER], self._queue[MOST_TOGETHER:]
            asked = [proposal for proposal in some if proposal.is_open()]
        if not asked:
            return
        self._attempts += 1
        number = self._attempt = self._attempts
        timer = self._loop.call_later(ANSWER_TIMEOUT_S, lambda: self._unanswered(number, asked))

        def answered(future: Future[AlterPartitionResponse]) -> None:
            timer.cancel()
            if number == self._attempt:
                self._attempt = 0
                self._take(asked, future)

        self._alter_partition(self._request(asked)).then(answered)

    def _unanswered(self, number: int, asked: list[_Proposal]) -> None:
        if number == self._attempt:
            self._attempt = 0
            self._again_later(asked)

    def _take(self, asked: list[_Proposal], future: Future[AlterPartitionResponse]) -> None:
        if future.error is not None or future.result().error_code != ErrorCode.NONE:
            self._again_later(asked)
            return
        answers = _by_partition(future.result())
        now = self._loop.clock.monotonic()
        again: list[_Proposal] = []
        untaken: list[_Proposal] = []
        for proposal in asked:
            partition = proposal.partition
            if not proposal.is_open():
                continue
            data = answers.get((partition.topic_id, partition.index)) or answers.get((partition.topic, partition.index))
            is_undecided = data is None or _is_undecided(partition, data, now)
            if is_undecided is None:
                untaken.append(proposal)
            elif is_undecided:
                again.append(proposal)
            elif partition.state.proposed_isr is None:
                hear(self._confirmed, partition)
        if untaken:  # not sooner, however well it goes with others: it would be told of each time
            self._loop.call_later(LAST_RETRY_S, lambda: self._ask(untaken))
        if again:
            self._loop.call_later(self._retry_s, lambda: self._ask(again))
            self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)
        else:
            self._retry_s = FIRST_RETRY_S
        self._send()

    def _ask(self, proposals: list[_Proposal]) -> None:
        self._queue += proposals
        self._send()

    def _again_later(self, proposals: list[_Proposal]) -> None:
        """The request was not answered: nor would another be."""
        self._queue = proposals + self._queue
        self._pausing = True
        self._loop.call_later(self._retry_s, self._pause_over)
        self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)

    def _pause_over(self) -> None:
        self._pausing = False
        self._send()

    def _request(self, asked: list[_Proposal]) -> AlterPartitionRequest:
        topics: dict[str, list[AlterPartitionRequestPartitionData]] = {}
        ids: dict[str, UUID] = {}
        for proposal in asked:
            partition = proposal.partition
            ids[partition.topic] = partition.topic_id
            topics.setdefault(partition.topic, []).append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=proposal.leader_epoch,
                    new_isr=proposal.isr,
                    new_isr_with_epochs=tuple(self._member(partition, broker_id) for broker_id in proposal.isr),
                    partition_epoch=partition.state.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=tuple(
                AlterPartitionRequestTopicData(topic_name=name, topic_id=ids[name], partitions=tuple(partitions))
                for name, partitions in topics.items()
            ),
        )

    def _member(self, partition: Partition, broker_id: int) -> BrokerState:
        """Which life of the broker we mean (KIP-903): -1 where its fetches have not said."""
        if broker_id == self._broker_id:
            return BrokerState(broker_id=broker_id, broker_epoch=self._broker_epoch())
        remote = partition.state.remote(broker_id)
        return BrokerState(broker_id=broker_id, broker_epoch=-1 if remote is None else remote.broker_epoch)


def _is_undecided(partition: Partition, data: AlterPartitionResponsePartitionData, now: float) -> bool | None:
    """Whether the answer to a proposal is neither yes nor no; None: a bug in taking it, which leaves the others theirs."""
    try:
        return partition.state.isr_answered(data, now)
    except Exception:  # noqa: BLE001 - whatever it is, the others' answers are in the same hand
        _log.exception("the answer to a proposed ISR of %s-%d was not taken", partition.topic, partition.index)
        return None


def _by_partition(
    response: AlterPartitionResponse,
) -> dict[tuple[UUID | str, int], AlterPartitionResponsePartitionData]:
    """Answers by topic id and by name: which of them is there depends on the version."""
    found: dict[tuple[UUID | str, int], AlterPartitionResponsePartitionData] = {}
    for topic in response.topics:
        for data in topic.partitions:
            found[topic.topic_id, data.partition_index] = data
            found[topic.topic_name, data.partition_index] = data
    return found
