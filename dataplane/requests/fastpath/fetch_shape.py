"""What a request for one partition means, learned from one that was decoded: all that `fetch` needs to answer the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dataplane.protocol.api import APIS, ApiKey
from dataplane.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    FetchResponsePartitionData,
)
from dataplane.protocol.templates import AnswerTemplate, answer_template
from dataplane.tenancy.access import NO_PERMIT, Permit
from dataplane.tenancy.talkers import NOBODYS, Talk

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.fetch import FetchRequest
    from dataplane.replication.replica.partition import Partition

DECLINED, ANSWERED, NOTHING_YET = range(3)
"""What becomes of a request that has a known shape."""
_READ_UNCOMMITTED = 0
_FIRST_WITH_IDS = 13
_API = APIS[ApiKey.FETCH]
_HOLES = (
    (FetchResponse, "throttle_time_ms"),
    (FetchResponsePartitionData, "high_watermark"),
    (FetchResponsePartitionData, "last_stable_offset"),
    (FetchResponsePartitionData, "log_start_offset"),
    (FetchResponsePartitionData, "records"),
)


@dataclass(slots=True)
class Shape:
    """What a request means; `partition` is where it went last."""

    physical: str
    topic_id: UUID | None
    index: int
    leader_epoch: int
    max_bytes: int
    min_bytes: int  # 0 where it does not wait
    wait_s: float
    head: Callable[..., bytes]  # (correlation id, throttle time, high watermark, last stable and start offset, bytes)
    tail: bytes  # of the answer, behind the records
    stable_only: bool  # it reads committed transactions only
    client_id: str
    partition: Partition | None = None
    permit: Permit = NO_PERMIT
    talk: Talk = NOBODYS  # where its bytes are counted


def shape_of(ctx: RequestContext, request: FetchRequest) -> Shape | None:
    """None for a topic that is not there, or is another's."""
    topic = request.topics[0]
    wanted = topic.partitions[0]
    physical, topic_id = topic.topic, None
    if ctx.version >= _FIRST_WITH_IDS:
        topic_id = topic.topic_id
        found = ctx.broker.replicas.registry.topic_of_id(topic_id)
        if found is None or not ctx.owns(found):
            return None
        physical = found
    waits = request.max_wait_ms > 0 and request.min_bytes > 0
    limit = min(wanted.partition_max_bytes, request.max_bytes, ctx.broker.config.settings.fetch_max_bytes)
    head, tail = _answer(ctx, request, physical)
    return Shape(
        physical,
        topic_id,
        wanted.partition,
        wanted.current_leader_epoch,
        max(limit, 0),
        min(request.min_bytes, request.max_bytes) if waits else 0,
        request.max_wait_ms / 1000,
        head,
        tail,
        request.isolation_level != _READ_UNCOMMITTED,
        ctx.client_id or "",
    )


def _answer(ctx: RequestContext, request: FetchRequest, physical: str) -> AnswerTemplate:
    """No error, no preferred replica; no aborted transactions, null for a client that reads what is uncommitted."""
    topic = request.topics[0]
    row = FetchResponsePartitionData(
        partition_index=topic.partitions[0].partition,
        aborted_transactions=() if request.isolation_level else None,
        records=b"",
    )
    response = FetchResponse(
        session_id=request.session_id,
        responses=(FetchableTopicResponse(topic=physical, topic_id=topic.topic_id, partitions=(row,)),),
    )
    return answer_template(_API, ctx.version, response, _HOLES, ctx.session.names)
