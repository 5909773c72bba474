"""TxnOffsetCommit: a group's offsets, committed as a part of a producer's transaction.

Written where OffsetCommit writes them, and visible when the transaction is committed. As with the records of a transaction
the partition, here the group's of ``__consumer_offsets``, has to be in the transaction first (AddOffsetsToTxn), which is
asked of the transaction's coordinator before the first append (KIP-890); from version 5 on it is added to it then. From
version 3 on a client says as which member of the group it has read what it has made of the records; an older generation is
refused (KIP-447).

Producer ids are the cluster's, and the partition keeps the groups of many instances. Where the log has the producer's open
transaction, its coordinator is not asked whose it is: groups know, and refuse another instance's (`Groups.is_anothers`) as the
coordinator would.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dataplane.cluster.metadata import OFFSETS_TOPIC
from dataplane.coordination.effects import Producer
from dataplane.groups.commits import Commit, Offset, told_producer
from dataplane.handlers.groups.membership import has_no_name
from dataplane.handlers.groups.rows import in_portions, partition_problem, told
from dataplane.handlers.transaction_answers import for_offsets
from dataplane.handlers.transaction_charges import charge
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from dataplane.tenancy.access import Operation, of_transactional_id

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.handlers.groups.rows import Errors, Rows

_ADDS_SINCE = 5
_KNOWS_LOADING_SINCE = 2
"""Clients of older versions could end over COORDINATOR_LOAD_IN_PROGRESS (Kafka's KAFKA-7296)."""


async def handle_txn_offset_commit(ctx: RequestContext, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    """Answered when every in-sync replica has it."""
    errors = await in_portions(ctx, request.topics, partial(_commit, ctx, request))
    topics = await told(ctx, request, errors, TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition)
    return TxnOffsetCommitResponse(topics=topics)


async def _commit(ctx: RequestContext, request: TxnOffsetCommitRequest, rows: Rows) -> Errors:
    """One portion."""
    refusal = ctx.refusal(Operation.WRITE, of_transactional_id(request.transactional_id))
    refusal = refusal or ctx.group_refusal(Operation.READ, request.group_id)
    if refusal:
        return dict.fromkeys(rows, refusal)
    errors = {key: partition_problem(ctx, Operation.READ, *key) for key in rows}
    valid = [key for key, error in errors.items() if error == ErrorCode.NONE]
    if valid:
        problem = await _problem(ctx, request)
        if problem == ErrorCode.NONE:
            errors.update(await _append(ctx, request, {key: rows[key] for key in valid}))
        else:
            errors.update(dict.fromkeys(valid, _for_version(ctx.version, problem)))
    return errors


async def _problem(ctx: RequestContext, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Why nothing of this transaction may be committed for the group here."""
    if has_no_name(ctx, request.group_id):
        return ErrorCode.INVALID_GROUP_ID
    if request.producer_id < 0 or request.producer_epoch < 0:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    groups = ctx.broker.groups
    found = groups.find(request.group_id)
    if isinstance(found, ErrorCode):
        return found
    partition = (OFFSETS_TOPIC, groups.partition_of(request.group_id))
    adds, verifier = ctx.version >= _ADDS_SINCE, ctx.broker.verifier
    who = (request.transactional_id, request.producer_id, request.producer_epoch)
    verified = (verifier.add if adds else verifier.verify)(*who, [partition])
    if adds and verified is not None:
        charge(ctx, request.transactional_id, added=1)
    return ErrorCode.NONE if verified is None else for_offsets(ctx, told_producer((await verified)[partition]))


async def _append(ctx: RequestContext, request: TxnOffsetCommitRequest, rows: Rows) -> Errors:
    ask = Commit(
        {
            key: Offset(p.committed_offset, p.committed_leader_epoch, p.committed_metadata or "")
            for key, p in rows.items()
        },
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        producer=Producer(request.producer_id, request.producer_epoch),
    )
    errors = await ctx.broker.groups.commit(request.group_id, ask)
    return {key: for_offsets(ctx, _for_version(ctx.version, error)) for key, error in errors.items()}


def _for_version(version: int, error: ErrorCode) -> ErrorCode:
    is_unknown = version < _KNOWS_LOADING_SINCE and error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if is_unknown else error
