"""DescribeTransactions, ListTransactions (KIP-664): what this broker coordinates, as operators of an instance see it.

A tenant sees transactional ids of its own instance only, and of their partitions those of its own topics: the partition of
``__consumer_offsets`` that a transaction may have is the cluster's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.groups.consumer import patterns
from dataplane.handlers.transactions.fencing import has_no_id
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTopicData,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ListTransactionsResponseTransactionState,
)
from dataplane.records.steps import Pace
from dataplane.tenancy.access import Operation, of_topic, of_transactional_id
from dataplane.transactions.model import Transaction, TransactionState

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps

_ID_US, _NAME_US, _PARTITION_US, _TOPIC_US = 12, 2, 1, 10
_STATES = {state.value: state for state in TransactionState}


def handle_describe_transactions(
    ctx: RequestContext, request: DescribeTransactionsRequest
) -> Steps[DescribeTransactionsResponse]:
    """Each id once, as it is when its turn comes, in the order of the request."""
    pace = Pace()
    described: dict[str, DescribeTransactionsResponseTransactionState] = {}
    for transactional_id in request.transactional_ids:
        if pace.over(_NAME_US):
            yield None
        if transactional_id not in described:
            if pace.over(_ID_US):
                yield None
            described[transactional_id] = yield from _described(ctx, transactional_id, pace)
    return DescribeTransactionsResponse(transaction_states=tuple(described.values()))


def _described(
    ctx: RequestContext, transactional_id: str, pace: Pace
) -> Steps[DescribeTransactionsResponseTransactionState]:
    found: Transaction | ErrorCode = ctx.refusal(Operation.DESCRIBE, of_transactional_id(transactional_id))
    if not found:
        is_none = has_no_id(ctx, transactional_id)
        found = ErrorCode.INVALID_REQUEST if is_none else ctx.broker.transactions.find(transactional_id)
    if isinstance(found, ErrorCode):
        return DescribeTransactionsResponseTransactionState(error_code=found, transactional_id=transactional_id)
    return DescribeTransactionsResponseTransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state.value,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=(yield from _topics(ctx, found, pace)),
    )


def _topics(
    ctx: RequestContext, transaction: Transaction, pace: Pace
) -> Steps[tuple[DescribeTransactionsResponseTopicData, ...]]:
    """In order of adding. A transaction is a value: it does not change meanwhile."""
    seen: dict[str, list[int] | None] = {}
    for topic, index in transaction.partitions:
        if pace.over(_PARTITION_US if topic in seen else _TOPIC_US):
            yield None
        if topic not in seen:
            seen[topic] = [] if ctx.owns(topic) and ctx.may(Operation.DESCRIBE, of_topic(topic)) else None
        indexes = seen[topic]
        if indexes is not None:
            indexes.append(index)
    return tuple(
        DescribeTransactionsResponseTopicData(topic, tuple(indexes))
        for topic, indexes in seen.items()
        if indexes is not None
    )


def handle_list_transactions(ctx: RequestContext, request: ListTransactionsRequest) -> Steps[ListTransactionsResponse]:
    """The transactional ids that this broker coordinates, of the instance that asks, each as it is when its turn comes.

    The filters are Kafka's: states by their exact names, and those that are none are told; how long ago the transaction began; a
    regular expression (KIP-1152), which is matched with the names that whoever asks knows.
    """
    pace = Pace()
    instance = ctx.session.instance
    transactions, error = ctx.broker.transactions.transactions(None if instance is None else instance.names.key)
    if error:
        return ListTransactionsResponse(error_code=error)
    pattern = patterns.compiled(request.transactional_id_pattern) if request.transactional_id_pattern else None
    if request.transactional_id_pattern and pattern is None:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    states: dict[TransactionState, None] = {}
    unknown: dict[str, None] = {}
    for name in request.state_filters:
        if pace.over(_NAME_US):
            yield None
        if name in _STATES:
            states[_STATES[name]] = None
        else:
            unknown[name] = None
    producers: dict[int, None] = {}
    for producer_id in request.producer_id_filters:
        if pace.over(_NAME_US):
            yield None
        producers[producer_id] = None
    began_before_ms = (
        ctx.broker.doors.clock.now_ms() - request.duration_filter if request.duration_filter >= 0 else None
    )
    listed = []
    for transaction in transactions:
        if pace.over(_NAME_US):
            yield None
        if (
            not ctx.owns(transaction.transactional_id)
            or (producers and transaction.producer_id not in producers)
            or (request.state_filters and transaction.state not in states)
            or (began_before_ms is not None and transaction.started_ms >= began_before_ms)
        ):
            continue
        if pattern is not None:
            name = ctx.session.names.transactional_id_out(transaction.transactional_id)
            if pace.over(patterns.cost_us(pattern, name)):
                yield None
            if not pattern.fullmatch(name):
                continue
        if pace.over(_TOPIC_US):
            yield None
        if ctx.may(Operation.DESCRIBE, of_transactional_id(transaction.transactional_id)):
            listed.append(_listed(transaction))
    return ListTransactionsResponse(unknown_state_filters=tuple(unknown), transaction_states=tuple(listed))


def _listed(transaction: Transaction) -> ListTransactionsResponseTransactionState:
    return ListTransactionsResponseTransactionState(
        transaction.transactional_id, transaction.producer_id, transaction.state.value
    )
