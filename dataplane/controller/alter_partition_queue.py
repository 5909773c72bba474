"""Leaders' proposals of new ISRs (AlterPartition): gathered, judged together, written together, answered.

While one write is under way the next proposals gather, so a broker's death that shrinks a thousand ISRs costs a few
multis.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dataplane.cluster.paths import PartitionState
from dataplane.controller.channel import Key
from dataplane.controller.context import Context, Partition, Topic
from dataplane.controller.decisions import alter_partition
from dataplane.controller.deletion import Deletions
from dataplane.controller.events import TermEndedError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.control import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    AlterPartitionResponseTopicData,
)
from dataplane.tasks import Future

_TOPIC_IDS_SINCE = 2
Change = tuple[Partition, PartitionState]


Write = Callable[[list[Change]], Awaitable[Sequence[PartitionState | None]]]
"""Writes states by compare-and-set; None in the place of one that somebody else had written in between."""


@dataclass(slots=True)
class _Proposal:
    """One request, and the verdicts so far."""

    request: AlterPartitionRequest
    version: int
    answer: Future[AlterPartitionResponse] = field(default_factory=Future)
    verdicts: dict[Key, ErrorCode] = field(default_factory=dict)


class AlterPartitionQueue:
    """Those of one term of office that are not answered."""

    def __init__(self, context: Context, deletions: Deletions, epoch: int) -> None:
        self._context = context
        self._deletions = deletions
        self._epoch = epoch
        self._waiting: list[_Proposal] = []

    def add(self, request: AlterPartitionRequest, version: int) -> tuple[bool, Future[AlterPartitionResponse]]:
        """Whether it is the first since the last decision, and its answer."""
        proposal = _Proposal(request, version)
        self._waiting.append(proposal)
        return len(self._waiting) == 1, proposal.answer

    def fail(self, error: Exception) -> None:
        """Nobody will decide on what waits."""
        waiting, self._waiting = self._waiting, []
        for proposal in waiting:
            proposal.answer.fail(error)

    async def decide(self, write: Write) -> None:
        """One event of the controller."""
        proposals, self._waiting = self._waiting, []
        changes: dict[Key, tuple[_Proposal, Change]] = {}
        for proposal in proposals:
            self._judge(proposal, changes)
        try:
            written = await write([change for _, change in changes.values()])
        except Exception as error:
            for proposal in proposals:
                proposal.answer.fail(TermEndedError(str(error)))
            raise
        for (key, (proposal, _)), state in zip(changes.items(), written, strict=True):
            proposal.verdicts[key] = ErrorCode.NONE if state is not None else ErrorCode.INVALID_UPDATE_VERSION
        for proposal in proposals:
            proposal.answer.resolve(self._answer(proposal))

    def _judge(self, proposal: _Proposal, changes: dict[Key, tuple[_Proposal, Change]]) -> None:
        if not self._is_current(proposal.request):
            return
        for partition, wanted in self._named(proposal.request):
            key = (partition.topic, partition.index)
            verdict = alter_partition.judge(
                partition,
                wanted,
                proposal.request.broker_id,
                self._context.brokers,
                self._context.shutting_down,
                self._epoch,
                self._context.enough(partition),
            )
            if isinstance(verdict, ErrorCode):
                proposal.verdicts[key] = verdict
            elif key in changes:  # made without knowing of the one before it in this round
                proposal.verdicts[key] = ErrorCode.INVALID_UPDATE_VERSION
            else:
                changes[key] = (proposal, (partition, verdict))

    def _is_current(self, request: AlterPartitionRequest) -> bool:
        broker = self._context.brokers.get(request.broker_id)
        return broker is not None and broker.epoch == request.broker_epoch

    def _named(self, request: AlterPartitionRequest) -> Iterator[tuple[Partition, AlterPartitionRequestPartitionData]]:
        for data in request.topics:
            topic = self._topic(data)
            for wanted in data.partitions:
                partition = None if topic is None else topic.partitions.get(wanted.partition_index)
                if partition is not None:
                    yield partition, wanted

    def _topic(self, data: AlterPartitionRequestTopicData) -> Topic | None:
        topic = self._context.topics.get(data.topic_name) or self._context.topic_of_id(data.topic_id)
        return None if topic is None or topic.name in self._deletions else topic

    def _answer(self, proposal: _Proposal) -> AlterPartitionResponse:
        if not self._is_current(proposal.request):
            return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        topics = tuple(
            AlterPartitionResponseTopicData(
                data.topic_name,
                data.topic_id,
                tuple(self._outcome(proposal, self._topic(data), w.partition_index) for w in data.partitions),
            )
            for data in proposal.request.topics
        )
        return AlterPartitionResponse(topics=topics)

    def _outcome(self, proposal: _Proposal, topic: Topic | None, index: int) -> AlterPartitionResponsePartitionData:
        if topic is None:
            by_id = proposal.version >= _TOPIC_IDS_SINCE
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return alter_partition.answer(index, unknown, None)
        verdict = proposal.verdicts.get((topic.name, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return alter_partition.answer(index, verdict, topic.partitions.get(index))
