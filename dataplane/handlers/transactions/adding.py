"""AddPartitionsToTxn, AddOffsetsToTxn: partitions become part of a transaction before anything is written to them.

Clients ask for one transaction (versions to 3). Brokers ask for several (from 4 on, and only they): mostly whether partitions
are in the transaction already, before they append (KIP-890), or that they be added then, for producers that do not ask for it
themselves (its second part). One partition that cannot be added keeps out the others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dataplane.cluster.metadata import COORDINATORS_TOPICS, OFFSETS_TOPIC
from dataplane.coordination.placement import partition_of
from dataplane.handlers.awaited_topic import topic_exists
from dataplane.handlers.ownership import in_slices
from dataplane.handlers.transaction_answers import for_offsets
from dataplane.handlers.transaction_charges import charge
from dataplane.handlers.transactions.fencing import as_the_version_says, has_no_id
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from dataplane.protocol.release import released
from dataplane.records.steps import Pace, each, grouped, taken_out
from dataplane.tasks import Future, Task, gather
from dataplane.tenancy.access import CLUSTER, Operation, of_transactional_id
from dataplane.transactions.events import AddPartitions
from dataplane.transactions.model import RAISING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dataplane.handlers.context import RequestContext
    from dataplane.protocol.messages.transactions import AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
    from dataplane.records.steps import Steps
    from dataplane.transactions.model import Partition

OF_BROKERS_SINCE = 4
_TOPIC_US, _PARTITION_US, _NAME_US, _TRANSACTION_US = 10, 3, 1, 40
_TRANSACTIONS_AT_ONCE = 64
"""They wait for the log together; more than brokers ask for at once."""

Errors = dict["Partition", ErrorCode]


class _Asked(NamedTuple):
    """Partitions for one transaction, by whoever asks."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    topics: Sequence[AddPartitionsToTxnTopic]
    verify_only: bool = False


async def handle_add_partitions_to_txn(
    ctx: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """An error for each partition, once all of them are part of the transaction."""
    if ctx.version >= OF_BROKERS_SINCE:
        return await _for_brokers(ctx, request.transactions)
    asked = _Asked(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        request.v3_and_below_topics,
    )
    refusal = ctx.refusal(Operation.WRITE, of_transactional_id(asked.transactional_id))
    rows = await _added(ctx, asked, refusal)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)


async def _for_brokers(
    ctx: RequestContext, transactions: Sequence[AddPartitionsToTxnTransaction]
) -> AddPartitionsToTxnResponse:
    refusal = ctx.refusal(Operation.CLUSTER_ACTION, CLUSTER)
    if refusal:
        return AddPartitionsToTxnResponse(error_code=refusal)
    results: list[AddPartitionsToTxnResult] = []
    for first in range(0, len(transactions), _TRANSACTIONS_AT_ONCE):
        some = transactions[first : first + _TRANSACTIONS_AT_ONCE]
        rows = await gather(await in_slices(ctx, each(some, partial(_begun, ctx), _TRANSACTION_US)))
        results += (AddPartitionsToTxnResult(t.transactional_id, row) for t, row in zip(some, rows, strict=True))
    return AddPartitionsToTxnResponse(results_by_transaction=tuple(results))


def _begun(
    ctx: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> Task[tuple[AddPartitionsToTxnTopicResult, ...]]:
    asked = _Asked(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.topics,
        transaction.verify_only,
    )
    return Task(_added(ctx, asked, ErrorCode.NONE), "add partitions")


async def _added(ctx: RequestContext, asked: _Asked, refusal: ErrorCode) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    slices = ctx.broker.slices
    errors, is_in_order = await slices.run(ctx.owner, _looked_at(ctx, asked, refusal))
    if is_in_order:
        errors = await _by_coordinator(ctx, asked, list(errors))
    rows = await slices.run(ctx.owner, _rows(asked.topics, errors))
    held: list[Any] = [errors]
    del errors
    await slices.run(ctx.owner, released(held))
    return rows


def _looked_at(ctx: RequestContext, asked: _Asked, refusal: ErrorCode) -> Steps[tuple[Errors, bool]]:
    """What is wrong with each partition before the coordinator is asked, each as it is when its turn comes; whether nothing is.

    Where something is wrong with one, nothing is tried with those that are in order. A partition that is to be verified exists:
    its leader asks, and a coordinator may hear of it later.
    """
    pace = Pace()
    errors: Errors = {}
    is_in_order = True
    for topic in asked.topics:
        if pace.over(_TOPIC_US):
            yield None
        topic_error = refusal or _topic_refusal(ctx, topic.name)
        for index in topic.partitions:
            if pace.over(_PARTITION_US):
                yield None
            is_known = asked.verify_only or ctx.broker.metadata.partition(topic.name, index) is not None
            error = topic_error or (ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            errors[topic.name, index] = error
            is_in_order = is_in_order and not error
    others = ErrorCode.OPERATION_NOT_ATTEMPTED
    if is_in_order and len(errors) > ctx.broker.transactions.settings.max_partitions and not asked.verify_only:
        is_in_order, others = False, ErrorCode.POLICY_VIOLATION
    for partition, error in () if is_in_order else errors.items():
        if pace.over(_NAME_US):
            yield None
        errors[partition] = error or others
    return errors, is_in_order


def _topic_refusal(ctx: RequestContext, topic: str) -> ErrorCode:
    """Of what a client asks for: nobody produces to coordinators' topics. Brokers ask for what a client has asked them for."""
    if ctx.version >= OF_BROKERS_SINCE:
        return ErrorCode.NONE
    if topic in COORDINATORS_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ctx.topic_refusal(Operation.WRITE, topic)


async def _by_coordinator(ctx: RequestContext, asked: _Asked, partitions: list[Partition]) -> Errors:
    if has_no_id(ctx, asked.transactional_id):
        return dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
    coordinator, who = ctx.broker.transactions, (asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        return coordinator.verify(asked.transactional_id, *who, partitions)
    if not partitions:
        return {}
    charge(ctx, asked.transactional_id, added=len(partitions))
    ask = AddPartitions(*who, tuple(partitions))
    if ctx.version >= OF_BROKERS_SINCE:
        ask = replace(ask, version=RAISING, is_of_group=all(topic == OFFSETS_TOPIC for topic, _ in partitions))
    error = await coordinator.add_partitions(asked.transactional_id, ask)
    return dict.fromkeys(partitions, as_the_version_says(ctx, error))


def _rows(
    topics: Sequence[AddPartitionsToTxnTopic], errors: Errors
) -> Steps[tuple[AddPartitionsToTxnTopicResult, ...]]:
    """In the order in which topics are named first, each partition once."""
    pace = Pace()
    by_topic: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for topic in topics:
        if pace.over(_NAME_US):
            yield None
        by_topic.setdefault(topic.name, [])
    for (name, index), error in errors.items():
        if pace.over(_PARTITION_US):
            yield None
        by_topic[name].append(AddPartitionsToTxnPartitionResult(index, error))
    return (yield from grouped(taken_out(by_topic), AddPartitionsToTxnTopicResult, _PARTITION_US, pace))


# --- offsets ----------------------------------------------------------------------------------------------------------


async def handle_add_offsets_to_txn(ctx: RequestContext, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """The partition that keeps a group's offsets becomes part of the transaction."""
    named = request.transactional_id
    refusal = ctx.refusal(Operation.WRITE, of_transactional_id(named))
    refusal = refusal or ctx.group_refusal(Operation.READ, request.group_id)
    if refusal:
        return AddOffsetsToTxnResponse(error_code=refusal)
    if has_no_id(ctx, named):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_REQUEST)
    metadata = ctx.broker.metadata
    if not metadata.partitions(OFFSETS_TOPIC):
        await topic_exists(ctx, OFFSETS_TOPIC)
    partitions = len(metadata.partitions(OFFSETS_TOPIC))
    if not partitions:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = (OFFSETS_TOPIC, partition_of(request.group_id, partitions))
    charge(ctx, named, added=1)
    ask = AddPartitions(request.producer_id, request.producer_epoch, (partition,), is_of_group=True)
    added: Future[ErrorCode] = ctx.broker.transactions.add_partitions(named, ask)
    return AddOffsetsToTxnResponse(error_code=for_offsets(ctx, as_the_version_says(ctx, await added)))
