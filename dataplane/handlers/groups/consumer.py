"""Groups of the consumer protocol (KIP-848): ConsumerGroupHeartbeat, and ConsumerGroupDescribe for administrators.

What is answered is decided in `dataplane.groups`; here requests become events and results become messages. A member that names a
topic which it may not see is refused as a whole, as in Kafka; a group that has such a topic is not described.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.groups.consumer.embedded import MAX_OWNED, MAX_TOPICS
from dataplane.groups.consumer.events import Heartbeat, HeartbeatResult
from dataplane.groups.consumer.model import AWAY_EPOCH, LEAVING_EPOCH
from dataplane.groups.consumer.target import assignor_of
from dataplane.handlers.authorized import ASKED_US, OPERATIONS_NOT_ASKED, operations
from dataplane.handlers.groups.membership import MAX_INSTANCE_ID, has_no_name, is_too_long
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeAssignment,
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeMember,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeTopicPartitions,
    ConsumerGroupHeartbeatAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from dataplane.records.steps import Pace, each
from dataplane.tenancy.access import Operation, of_group, of_topic, why

if TYPE_CHECKING:
    from uuid import UUID

    from dataplane.groups.consumer.model import Assignment, Group, Member
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps

_OWN_ID_SINCE = 1
_AT_ONCE = 64
_NAME_US, _GROUP_US, _PARTITION_US, _MEMBER_US = 4, 12, 1, 10
_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1  # by the protocol that it speaks


# --- ConsumerGroupHeartbeat -------------------------------------------------------------------------------------------


async def handle_consumer_group_heartbeat(
    ctx: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Answered when what it changes is committed."""
    refusal = ctx.group_refusal(Operation.READ, request.group_id)
    if refusal:
        return _refused(refusal, why(refusal))
    sentence = _what_is_wrong(ctx, request)
    if sentence is not None:
        return _refused(ErrorCode.INVALID_REQUEST, sentence)
    if is_too_long(request.group_id):
        return _refused(ErrorCode.INVALID_GROUP_ID, "the group's name is too long")
    if request.server_assignor is not None and request.server_assignor not in _assignors(ctx):
        supported = ", ".join(_assignors(ctx))
        return _refused(ErrorCode.UNSUPPORTED_ASSIGNOR, f"the assignor is not supported; these are: {supported}")
    refusal = await _topics_refused(ctx, request.subscribed_topic_names or ())
    if refusal:
        return _refused(refusal, why(refusal))
    ask = _event(ctx, request)
    result = await ctx.broker.groups.consumers.heartbeat(
        request.group_id, ask, lambda topic: ctx.may(Operation.DESCRIBE, of_topic(topic)), ctx.owner
    )
    return _told(ctx, ask, result)


def _assignors(ctx: RequestContext) -> tuple[str, ...]:
    return ctx.broker.groups.settings.consumer.assignors


def _refused(error: ErrorCode, message: str | None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)


def _what_is_wrong(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest) -> str | None:
    """In the request itself, as a sentence; None: nothing."""
    if has_no_name(ctx, request.group_id) and not is_too_long(request.group_id):
        return "the group needs a name"
    return _wrong_member(ctx, request) or _wrong_size(request) or _wrong_epoch(request)


def _wrong_member(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest) -> str | None:
    if not request.member_id and (ctx.version >= _OWN_ID_SINCE or request.member_epoch != 0):
        return "a member needs an id"
    for name, said in (("instance id", request.instance_id), ("rack", request.rack_id)):
        if said == "":
            return f"the {name} is empty"
    return None


def _wrong_size(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if max(len(request.instance_id or ""), len(request.rack_id or ""), len(request.member_id)) > MAX_INSTANCE_ID:
        return "an id or the rack is too long"
    if len(request.subscribed_topic_names or ()) > MAX_TOPICS:
        return f"a member subscribes to {MAX_TOPICS} topics at most; a regular expression may match more"
    owned = request.topic_partitions or ()
    if len(owned) > MAX_OWNED or sum(len(row.partitions) for row in owned) > MAX_OWNED:
        return f"a member owns {MAX_OWNED} partitions at most"
    return None


def _wrong_epoch(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.member_epoch < AWAY_EPOCH:
        return "there is no such epoch of a member"
    if request.member_epoch == AWAY_EPOCH and request.instance_id is None:
        return "only a member with an instance id leaves for a while"
    if request.member_epoch != 0:
        return None
    if request.rebalance_timeout_ms < 0:
        return "who joins says its rebalance timeout"
    if request.topic_partitions is None or request.topic_partitions:
        return "who joins owns no partitions, and says so"
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "who joins says to what it subscribes"
    return None


async def _topics_refused(ctx: RequestContext, names: tuple[str, ...]) -> ErrorCode:
    if len(names) <= _AT_ONCE:
        refusals = [ctx.topic_refusal(Operation.DESCRIBE, name) for name in names]
    else:
        steps = each(names, lambda name: ctx.topic_refusal(Operation.DESCRIBE, name), _NAME_US)
        refusals = await ctx.broker.slices.run(ctx.owner, steps)
    return next((refusal for refusal in refusals if refusal), ErrorCode.NONE)


def _event(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Heartbeat:
    owned: Assignment | None = None
    if request.topic_partitions is not None:
        owned = {row.topic_id: tuple(sorted(set(row.partitions))) for row in request.topic_partitions}
    return Heartbeat(
        request.member_id or ctx.broker.groups.new_consumer_id(),
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        request.subscribed_topic_names,
        request.subscribed_topic_regex,
        request.server_assignor,
        owned,
        ctx.client_id or "",
        f"/{ctx.session.peer}",
    )


def _told(ctx: RequestContext, ask: Heartbeat, result: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    if result.error != ErrorCode.NONE:
        return _refused(result.error, result.message)
    assignment = None
    if result.assignment is not None:
        rows = (ConsumerGroupHeartbeatTopicPartitions(*row) for row in result.assignment.items())
        assignment = ConsumerGroupHeartbeatAssignment(tuple(rows))
    interval_ms = 0 if ask.epoch <= LEAVING_EPOCH else ctx.broker.groups.settings.consumer.heartbeat_interval_ms
    return ConsumerGroupHeartbeatResponse(
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


# --- ConsumerGroupDescribe --------------------------------------------------------------------------------------------


def handle_consumer_group_describe(
    ctx: RequestContext, request: ConsumerGroupDescribeRequest
) -> Steps[ConsumerGroupDescribeResponse]:
    """State, epochs, members with what they have and shall have. Each group as it was when its turn came."""
    pace = Pace()
    described: dict[str, ConsumerGroupDescribeGroup] = {}
    for group_id in request.group_ids:
        if pace.over(_GROUP_US):
            yield None
        if group_id in described:
            continue
        group = yield from _describe(ctx, group_id, pace)
        if not group.error_code and request.include_authorized_operations:
            if pace.over(ASKED_US):
                yield None
            group = replace(group, authorized_operations=operations(ctx, of_group(group_id)))
        described[group_id] = group
    return ConsumerGroupDescribeResponse(groups=tuple(described.values()))


def _describe(ctx: RequestContext, group_id: str, pace: Pace) -> Steps[ConsumerGroupDescribeGroup]:
    refusal = ctx.group_refusal(Operation.DESCRIBE, group_id)
    if refusal:
        return _not_described(group_id, refusal, why(refusal))
    entry = ctx.broker.groups.find(group_id)
    if isinstance(entry, ErrorCode):
        return _not_described(group_id, entry, None)
    consumer = None if entry is None else entry.of_consumers()
    if consumer is None:
        message = "there is no such group of the consumer protocol"
        return _not_described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message)
    return (yield from _described(ctx, consumer, pace))


def _not_described(group_id: str, error: ErrorCode, message: str | None) -> ConsumerGroupDescribeGroup:
    return ConsumerGroupDescribeGroup(error_code=error, error_message=message, group_id=group_id)


def _described(ctx: RequestContext, group: Group, pace: Pace) -> Steps[ConsumerGroupDescribeGroup]:
    """A group is a value: it does not change meanwhile."""

    def may_see(topic: str) -> bool:
        return ctx.may(Operation.DESCRIBE, of_topic(topic))

    names = {topic.topic_id: name for name, topic in group.topics.items()}
    seen = yield from each(group.subscribed(), may_see, _NAME_US, pace)
    if not all(seen):
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return _not_described(group.group_id, error, "the group has topics that the client may not see")
    members = []
    for member in group.members.values():
        partitions = sum(map(len, member.assigned.values())) + len(member.topics)
        if pace.over(_MEMBER_US + _PARTITION_US * partitions):
            yield None
        members.append(_described_member(group, member, names))
    return ConsumerGroupDescribeGroup(
        group_id=group.group_id,
        group_state=group.state().value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=assignor_of(group, _assignors(ctx)),
        members=tuple(members),
        authorized_operations=OPERATIONS_NOT_ASKED,
    )


def _described_member(group: Group, member: Member, names: dict[UUID, str]) -> ConsumerGroupDescribeMember:
    return ConsumerGroupDescribeMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topics,
        subscribed_topic_regex=member.pattern,
        assignment=_assignment(member.assigned, names),
        target_assignment=_assignment(group.targets.get(member.member_id, {}), names),
        member_type=_CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(assignment: Assignment, names: dict[UUID, str]) -> ConsumerGroupDescribeAssignment:
    """Topics that were deleted are left out: they have no name."""
    rows = (
        ConsumerGroupDescribeTopicPartitions(topic_id, names[topic_id], partitions)
        for topic_id, partitions in assignment.items()
        if topic_id in names
    )
    return ConsumerGroupDescribeAssignment(tuple(rows))
