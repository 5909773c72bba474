"""The short cut of Produce: a request for one partition whose header bytes this connection has sent before.

A client repeats the same bytes for a topic-partition in every request; only the correlation id and the records differ::

    key version | correlation id | client id, transactional id, acks, timeout, topic, partition | length | records | tags
                                 `-------------- the shape: compared, not decoded -------------'

Where the records stand is known from the declarations (`protocol.templates`). What the bytes mean was found by the slow
path once; what may have changed since is checked every time: that its permit is of the present (`permits`: whitelists,
storage full, throttle rules), then leadership. Everything that is not plain success goes the slow way, which knows how to
say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import COORDINATORS_TOPICS
from dataplane.handlers.records.conversion import FIRST_ZSTD_PRODUCED, is_early_zstd
from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from dataplane.protocol.templates import AnswerTemplate, RecordRequests, answer_template
from dataplane.requests.fastpath.permits import standing_permit
from dataplane.requests.slots import Slot
from dataplane.tenancy.access import INTERNAL_GENERATION, NO_PERMIT, Operation, Permit
from dataplane.tenancy.talkers import NOBODYS, Talk, talk_of
from dataplane.throttle.debt_queue import throttle_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.produce import ProduceRequest
    from dataplane.replication.appending import Turn
    from dataplane.replication.replica.partition import Partition
    from dataplane.requests.served import Served

MAX_SHAPES = 64
MAX_SHAPE_BYTES = 1_024
"""Apart from the records. Names that are longer are no reason to compare them with every request."""
_FIRST_VERSION = 5  # whose answer has a start offset; clients of older ones go the slow way
PRODUCE = int(ApiKey.PRODUCE)
_API = APIS[ApiKey.PRODUCE]
_RECORDS = (PartitionProduceData, "records")
_ANSWER_HOLES = (
    (PartitionProduceResponse, "error_code"),
    (PartitionProduceResponse, "base_offset"),
    (PartitionProduceResponse, "log_start_offset"),
    (ProduceResponse, "throttle_time_ms"),
)


@dataclass(slots=True)
class Shape:
    """What a run of header bytes means; `partition` is where it went last."""

    physical: str
    index: int
    acks: int
    timeout_s: float
    answer: Callable[..., bytes]  # of correlation id, error, base offset, start offset, throttle time
    version: int
    client_id: str
    partition: Partition | None = None
    permit: Permit = NO_PERMIT
    talk: Talk = NOBODYS  # where its bytes are counted


class _Answer(Slot):
    """The place of an answer, and what is called when the batch is as safe as was asked."""

    __slots__ = ("_base_offset", "_client", "_correlation_id", "_partition", "_shape", "_turn", "throttle_time_ms")

    def __init__(
        self,
        client: Served,
        shape: Shape,
        correlation_id: bytes,
        partition: Partition,
        base_offset: int,
        turn: Turn | None,
    ) -> None:
        self.parts = None
        self._turn = turn  # in which it is written
        self._client, self._shape, self._correlation_id = client, shape, correlation_id
        self._partition, self._base_offset = partition, base_offset
        self.throttle_time_ms = 0

    def __call__(self, error: ErrorCode) -> None:
        offset = -1 if error else self._base_offset
        start_offset = self._partition.log.start_offset
        answer = self._shape.answer(self._correlation_id, error, offset, start_offset, self.throttle_time_ms)
        client = self._client
        if error:
            client.answers.refused(PRODUCE, (error,))
        turn = self._turn
        if (
            turn is not None and turn.ended_s is not None
        ):  # it was written in an earlier turn, and has waited for others since
            self.waited(client.broker.doors.clock.monotonic() - turn.ended_s)
        client.answers.fill_soon(self, (answer,))


class ProduceFastPath:
    """The shapes of one connection."""

    __slots__ = ("_appending", "_client", "_registry", "_shapes")

    def __init__(self, client: Served) -> None:
        self._client = client
        replicas = client.broker.replicas
        self._registry, self._appending = replicas.registry, replicas.appending
        self._shapes = RecordRequests[Shape](_API, _RECORDS)

    def serve(self, frame: memoryview) -> bool:
        """Serve the frame if it has a known shape and nothing stands against it. False: nothing has been done."""
        found = self._shapes.find(frame)
        return found is not None and self._append(*found)

    def _append(self, shape: Shape, correlation_id: bytes, batch: memoryview) -> bool:
        client = self._client
        instance = client.session.instance
        generation = INTERNAL_GENERATION if instance is None else instance.permit.generation
        if shape.permit.generation != generation:
            permit = standing_permit(client, Operation.WRITE, shape.physical)
            if permit is None:
                return False
            shape.permit = permit
            now_s = client.broker.doors.clock.monotonic()
            shape.talk = talk_of(client.session, shape.client_id, shape.physical, now_s)
        partition = shape.partition
        if partition is None or not partition.state.is_leader:
            found = self._registry.leader(shape.physical, shape.index)
            if isinstance(found, ErrorCode):
                return False
            partition = shape.partition = found
        if partition.state.settings.rules is not None:
            return False
        if shape.version < FIRST_ZSTD_PRODUCED and is_early_zstd(batch, shape.version):
            return False
        acks = shape.acks
        appended = self._appending.append(partition, batch, acks)
        if appended.error or appended.duplicate:
            return False  # nothing was staged: the slow path finds the same and words the answer
        shape.talk.produced += len(batch)
        if acks:
            turn = self._appending.turn if acks < 0 else None  # those with acks=1 wait for nobody
            answer = _Answer(client, shape, correlation_id, partition, appended.base_offset, turn)
            client.answers.append_slot(answer)
            told_s = client.turnstile.told_s
            if told_s:
                answer.throttle_time_ms = throttle_ms(told_s)
                answer.told(told_s)
            self._appending.after_commit(partition, appended.last_offset, acks, shape.timeout_s, answer)
        else:
            client.answers.unanswered()
        return True

    def remember(self, ctx: RequestContext, request: ProduceRequest, frame: memoryview) -> None:
        """Learn the shape of a request that the slow path has decoded, if it is of the kind that is served here."""
        if len(request.topic_data) != 1 or len(request.topic_data[0].partition_data) != 1:
            return
        if request.transactional_id is not None or request.acks not in (-1, 0, 1) or ctx.version < _FIRST_VERSION:
            return
        topic = request.topic_data[0]
        data = topic.partition_data[0]
        if not isinstance(data.records, memoryview) or not len(data.records) or data.index < 0:
            return
        if topic.name in COORDINATORS_TOPICS:  # always refused
            return
        if ctx.is_on_behalf:  # the topic's owner is charged, which only the slow path knows
            return
        if len(self._shapes) >= MAX_SHAPES or len(frame) - len(data.records) > MAX_SHAPE_BYTES:
            return
        if self._shapes.find(frame) is not None:  # something else stood against it
            return
        answer = _answer(ctx, topic.name, data.index).head
        shape = Shape(
            topic.name, data.index, request.acks, request.timeout_ms / 1000, answer, ctx.version, ctx.client_id or ""
        )
        self._shapes.learn(frame, ctx.session.names, shape)


def _answer(ctx: RequestContext, topic: str, index: int) -> AnswerTemplate:
    """No errors of single records, no message."""
    row = PartitionProduceResponse(index=index)
    response = ProduceResponse(responses=(TopicProduceResponse(name=topic, partition_responses=(row,)),))
    return answer_template(_API, ctx.version, response, _ANSWER_HOLES, ctx.session.names)
