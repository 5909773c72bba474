"""Membership of consumer groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the administrators' view of groups.

What is answered is decided in `dataplane.groups`; here requests become events and results become messages.

Administrators may ask for thousands of groups: in steps, each group as it was when its turn came.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from dataplane.groups.classic.events import (
    Heartbeat,
    HeartbeatResult,
    Join,
    JoinResult,
    Leave,
    LeaveResult,
    Sync,
    SyncResult,
)
from dataplane.groups.classic.joining import MAX_PROTOCOLS
from dataplane.groups.classic.members import Member
from dataplane.groups.classic.model import Group, GroupState
from dataplane.groups.offsets import CONSUMER
from dataplane.groups.shard import Entry
from dataplane.handlers.authorized import ASKED_US, OPERATIONS_NOT_ASKED, operations
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    MemberResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from dataplane.protocol.release import released
from dataplane.records.steps import Pace, each
from dataplane.tasks import Future, resolved
from dataplane.tenancy.access import CLUSTER, Operation, of_group, why

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataplane.handlers.context import RequestContext
    from dataplane.handlers.outcome import Reply
    from dataplane.records.steps import Steps

LEAVE_AT_ONCE = 12
_TOLD_SINCE = 6
"""Of DescribeGroups: that there is no group is an error, and errors have sentences."""
_NAME_US, _RESULT_US, _GROUP_US, _MEMBER_US, _DELETION_US = 2, 3, 12, 6, 40
A = TypeVar("A")
B = TypeVar("B")

_CLASSIC = "classic"
MAX_GROUP_ID = 1_000
MAX_INSTANCE_ID = 249  # as Kafka's clients have it
LEAST_REBALANCE_MS = 1_000
"""A group that gives its members no time, or less than none, would begin its rebalance over and over."""


def _then(future: Future[A], convert: Callable[[A], B]) -> Future[B]:
    """The future of a converted value."""
    converted: Future[B] = Future()
    future.then(lambda done: converted.resolve(convert(done.result())))
    return converted


def has_no_name(ctx: RequestContext, group_id: str) -> bool:
    """Whether the client's name of the group is empty, not allowed to groups with members, or too long for any."""
    return not ctx.session.names.group_out(group_id) or is_too_long(group_id)


def is_too_long(group_id: str) -> bool:
    """Whether a group's name is longer than anybody needs: it is kept, hashed and written with every commit."""
    return len(group_id) > MAX_GROUP_ID


# --- JoinGroup --------------------------------------------------------------------------------------------------------


def handle_join_group(ctx: RequestContext, request: JoinGroupRequest) -> Future[JoinGroupResponse]:
    """Answered when the rebalance is complete, so often much later."""

    def answer(result: JoinResult) -> JoinGroupResponse:
        return _join_response(ctx, result)

    refusal = ctx.group_refusal(Operation.READ, request.group_id)
    if refusal:
        return resolved(answer(JoinResult(refusal, "")))
    if has_no_name(ctx, request.group_id):
        return resolved(answer(JoinResult(ErrorCode.INVALID_GROUP_ID, request.member_id)))
    if len(request.group_instance_id or "") > MAX_INSTANCE_ID:
        return resolved(answer(JoinResult(ErrorCode.INVALID_REQUEST, request.member_id)))
    ask = Join(
        request.member_id,
        request.protocol_type,
        tuple((p.name, p.metadata) for p in islice(request.protocols, MAX_PROTOCOLS + 1)),  # that is too many already
        request.session_timeout_ms,
        max(LEAST_REBALANCE_MS, request.rebalance_timeout_ms if ctx.version >= 1 else request.session_timeout_ms),
        request.group_instance_id,
        ctx.client_id or "",
        f"/{ctx.session.peer}",
        needs_known_id=ctx.version >= 4 and request.group_instance_id is None,
        can_skip_assignment=ctx.version >= 9,
    )
    return _then(ctx.broker.groups.join(request.group_id, ask), answer)


def _join_response(ctx: RequestContext, result: JoinResult) -> JoinGroupResponse:
    no_protocol = "" if ctx.version < 7 else None
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=no_protocol if result.protocol is None else result.protocol,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=tuple(JoinGroupResponseMember(*member) for member in result.members),
    )


# --- SyncGroup, Heartbeat, LeaveGroup ---------------------------------------------------------------------------------


def handle_sync_group(ctx: RequestContext, request: SyncGroupRequest) -> Reply:
    """The leader brings everybody's assignment; each is told its own when that is committed."""
    if ctx.is_long:
        return _sync_of_many(ctx, request)
    return _sync(ctx, request, {each.member_id: each.assignment for each in request.assignments})


def _sync_of_many(ctx: RequestContext, request: SyncGroupRequest) -> Steps[Future[SyncGroupResponse]]:
    pace, assignments = Pace(), dict[str, bytes]()
    for given in request.assignments:
        if pace.over(_NAME_US):
            yield None
        assignments[given.member_id] = given.assignment
    return _sync(ctx, request, assignments)


def _sync(ctx: RequestContext, request: SyncGroupRequest, assignments: dict[str, bytes]) -> Future[SyncGroupResponse]:
    def answer(result: SyncResult) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=result.error,
            protocol_type=result.protocol_type,
            protocol_name=result.protocol,
            assignment=result.assignment,
        )

    if ctx.version >= 5 and None in (request.protocol_type, request.protocol_name):
        return resolved(answer(SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)))
    refusal = ctx.group_refusal(Operation.READ, request.group_id)
    if refusal:
        return resolved(answer(SyncResult(refusal)))
    if has_no_name(ctx, request.group_id):
        return resolved(answer(SyncResult(ErrorCode.INVALID_GROUP_ID)))
    ask = Sync(
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        request.protocol_type,
        request.protocol_name,
        assignments,
    )
    return _then(ctx.broker.groups.sync(request.group_id, ask), answer)


def handle_heartbeat(ctx: RequestContext, request: HeartbeatRequest) -> Future[HeartbeatResponse]:
    """A member is alive, and learns whether it has to join again."""

    def answer(result: HeartbeatResult) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=result.error)

    refusal = ctx.group_refusal(Operation.READ, request.group_id)
    if refusal:
        return resolved(answer(HeartbeatResult(refusal)))
    if has_no_name(ctx, request.group_id):
        return resolved(answer(HeartbeatResult(ErrorCode.INVALID_GROUP_ID)))
    ask = Heartbeat(request.generation_id, request.member_id, request.group_instance_id)
    return _then(ctx.broker.groups.heartbeat(request.group_id, ask), answer)


def handle_leave_group(ctx: RequestContext, request: LeaveGroupRequest) -> Reply:
    """One member (v0-v2), or several."""
    refusal = ctx.group_refusal(Operation.READ, request.group_id)
    if ctx.is_long and not refusal and not has_no_name(ctx, request.group_id):
        return _many_leave(ctx, request)

    def answer(result: LeaveResult) -> LeaveGroupResponse:
        if ctx.version >= 3:
            members = tuple(MemberResponse(*member) for member in result.members)
            return LeaveGroupResponse(error_code=result.error, members=members)
        return LeaveGroupResponse(error_code=result.error or result.members[0][2])

    if refusal:
        return resolved(answer(LeaveResult(refusal)))
    if has_no_name(ctx, request.group_id):
        return resolved(answer(LeaveResult(ErrorCode.INVALID_GROUP_ID)))
    members: tuple[tuple[str, str | None], ...] = ((request.member_id, None),)
    if ctx.version >= 3:
        members = tuple((member.member_id, member.group_instance_id) for member in request.members)
    return _then(ctx.broker.groups.leave(request.group_id, Leave(members)), answer)


async def _many_leave(ctx: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Some hundred at a time: more than a group can have, of which most are not there."""
    told: list[MemberResponse] = []
    for first in range(0, len(request.members), LEAVE_AT_ONCE):
        some = request.members[first : first + LEAVE_AT_ONCE]
        names = tuple((member.member_id, member.group_instance_id) for member in some)
        leave = partial(ctx.broker.groups.leave, request.group_id, Leave(names))
        result = await (await ctx.broker.slices.run(ctx.owner, _in_a_step(leave)))
        if result.error:
            return LeaveGroupResponse(error_code=result.error)
        steps = each(result.members, lambda member: MemberResponse(*member), _NAME_US)
        told += await ctx.broker.slices.run(ctx.owner, steps)
    return LeaveGroupResponse(members=tuple(told))


def _in_a_step(work: Callable[[], A]) -> Steps[A]:
    """In a slice of its own where this turn has had its part of long work."""
    yield None
    return work()


# --- the administrators' view -----------------------------------------------------------------------------------------


def handle_describe_groups(ctx: RequestContext, request: DescribeGroupsRequest) -> Steps[DescribeGroupsResponse]:
    """State, members and assignments. A group that does not exist, or is of the consumer protocol, is Dead.

    To clients before version 6 that is all, without an error (KIP-1043).
    """
    is_asked = request.include_authorized_operations
    pace = Pace()
    described: dict[str, DescribedGroup] = {}
    for group_id in request.groups:
        if pace.over(_NAME_US):
            yield None
        if group_id not in described:
            group = yield from _describe(ctx, group_id, pace)
            if not group.error_code:
                if is_asked and pace.over(ASKED_US):
                    yield None
                allowed = operations(ctx, of_group(group_id)) if is_asked else OPERATIONS_NOT_ASKED
                group = replace(group, authorized_operations=allowed)
            described[group_id] = group
    return DescribeGroupsResponse(groups=tuple(described.values()))


def _describe(ctx: RequestContext, group_id: str, pace: Pace) -> Steps[DescribedGroup]:
    if pace.over(_GROUP_US):
        yield None
    refusal = ctx.group_refusal(Operation.DESCRIBE, group_id)
    if refusal:
        return DescribedGroup(error_code=refusal, error_message=_sentence(ctx, why(refusal)), group_id=group_id)
    entry = ctx.broker.groups.find(group_id)
    if isinstance(entry, Entry) and entry.of_consumers() is None:
        return (yield from _described(entry.group, pace))
    if entry is None or isinstance(entry, Entry):  # one of the consumer protocol is none here
        is_told = ctx.version >= _TOLD_SINCE
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.NONE,
            error_message=_sentence(ctx, "there is no such group of the classic protocol"),
            group_id=group_id,
            group_state=GroupState.DEAD.value,
        )
    return DescribedGroup(error_code=entry, group_id=group_id)


def _sentence(ctx: RequestContext, text: str) -> str | None:
    return text if ctx.version >= _TOLD_SINCE else None


def _described(group: Group, pace: Pace) -> Steps[DescribedGroup]:
    """Only a stable group has a protocol and assignments that hold. A group is a value: it does not change meanwhile."""
    stable = group.state is GroupState.STABLE
    members = yield from each(
        group.members.values(), lambda member: _described_member(group, member, stable=stable), _MEMBER_US, pace
    )
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=tuple(members),
    )


def _described_member(group: Group, member: Member, *, stable: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.metadata(group.protocol) if stable else b"",
        group.assignment(member.member_id) if stable else b"",
    )


def handle_list_groups(ctx: RequestContext, request: ListGroupsRequest) -> Steps[ListGroupsResponse]:
    """The groups that this broker coordinates, belonging to the instance that asks, as they are when the request begins.

    As in Kafka who may describe the cluster sees all of them, and others those that they may describe.
    """
    pace = Pace()
    groups, error = ctx.broker.groups.groups()
    sees_all = ctx.may(Operation.DESCRIBE, CLUSTER)
    states = yield from _distinct(request.states_filter, pace)
    types = yield from _distinct(request.types_filter, pace)
    listed = []
    for entry in groups:
        if pace.over(_NAME_US):
            yield None
        if not ctx.owns(entry.group.group_id):
            continue
        row = _listed(entry)
        if (states and row.group_state.lower() not in states) or (types and row.group_type not in types):
            continue
        if sees_all or ctx.may(Operation.DESCRIBE, of_group(row.group_id)):
            listed.append(row)
    held = [states, types]  # as many as the request could name
    del states, types
    yield from released(held)
    return ListGroupsResponse(error_code=error, groups=tuple(listed))


def _distinct(names: Iterable[str], pace: Pace) -> Steps[set[str]]:
    """Whatever is written large or small."""
    distinct: set[str] = set()
    for name in names:
        if pace.over(_NAME_US):
            yield None
        distinct.add(name.lower())
    return distinct


def _listed(entry: Entry) -> ListedGroup:
    group = entry.group
    consumer = entry.of_consumers()
    if consumer is None:
        return ListedGroup(group.group_id, group.protocol_type or "", group.state.value, _CLASSIC)
    return ListedGroup(group.group_id, CONSUMER, consumer.state().value, CONSUMER)


async def handle_delete_groups(ctx: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Groups without members, with their offsets. Answered when that is committed."""
    deletions, pending = await ctx.broker.slices.run(ctx.owner, _deletions(ctx, request))
    while pending:
        deletion = pending.pop()
        if not deletion.done:
            await _over(deletion)
        del deletion
    return DeleteGroupsResponse(results=await ctx.broker.slices.run(ctx.owner, _deleted(deletions)))


def _deletions(
    ctx: RequestContext, request: DeleteGroupsRequest
) -> Steps[tuple[list[tuple[str, Future[ErrorCode]]], list[Future[ErrorCode]]]]:
    """Begin one for each group, in the order in which they are named first; and those that were not over at once."""
    pace = Pace()
    seen: set[str] = set()
    deletions: list[tuple[str, Future[ErrorCode]]] = []
    pending: list[Future[ErrorCode]] = []
    for group_id in request.groups_names:
        if group_id in seen:
            if pace.over(_NAME_US):
                yield None
            continue
        if pace.over(_DELETION_US):
            yield None
        seen.add(group_id)
        deletion = _delete(ctx, group_id)
        deletions.append((group_id, deletion))
        if not deletion.done:
            pending.append(deletion)
    return deletions, pending


def _over(deletion: Future[ErrorCode]) -> Future[None]:
    """Resolved when it is, also by an error: the others are waited for, too."""
    over: Future[None] = Future()
    deletion.then(lambda _: over.resolve(None))
    return over


def _deleted(deletions: list[tuple[str, Future[ErrorCode]]]) -> Steps[tuple[DeletableGroupResult, ...]]:
    """What came of them, in order; each is let go with its row. Raises the first error in that order."""
    pace = Pace()
    results: list[DeletableGroupResult] = []
    deletions.reverse()
    while deletions:
        if pace.over(_RESULT_US):
            yield None
        group_id, deletion = deletions.pop()
        try:
            results.append(DeletableGroupResult(group_id, deletion.result()))
        finally:
            del deletion  # an error would have it, in this frame: as in `Future.result`
    return tuple(results)


def _delete(ctx: RequestContext, group_id: str) -> Future[ErrorCode]:
    refusal = ctx.group_refusal(Operation.DELETE, group_id)
    return resolved(refusal) if refusal else ctx.broker.groups.delete_group(group_id)
