"""Who may commit offsets of a group of the consumer protocol, or ask for them as a member: whoever is in its current epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.groups.consumer.model import Group, Member


def commit_problem(
    group: Group, member_id: str, epoch: int, instance_id: str | None, *, knows_epochs: bool, in_transaction: bool
) -> ErrorCode:
    """Why a commit is refused. A simple consumer (epoch -1) may commit while the group has no members.

    `knows_epochs`: the request is of a version (9) whose sender knows what a stale epoch is. A producer that commits in its
    transaction may say nothing of a member; it is fenced by its own epoch then. A member's stale epoch is an illegal generation
    to it: TxnOffsetCommit does not know the other error, and a producer takes that for the end (as Kafka).
    """
    if group.dying:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if epoch < 0 and group.is_empty:
        return ErrorCode.NONE
    if in_transaction and epoch < 0 and not member_id and instance_id is None:
        return ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not knows_epochs and not in_transaction and member.classic is None:
        return ErrorCode.UNSUPPORTED_VERSION
    problem = _problem_of(member, epoch)
    is_stale = problem == ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.ILLEGAL_GENERATION if is_stale and in_transaction else problem


def _problem_of(member: Member, epoch: int) -> ErrorCode:
    """Each is told in its own protocol that it has to hear what is new first."""
    if epoch == member.epoch:
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION


def fetch_problem(group: Group, member_id: str | None, epoch: int) -> ErrorCode:
    """Why a member is not told offsets. Who says neither its id nor an epoch is no member, and is told."""
    if member_id is None and epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return _problem_of(member, epoch)
