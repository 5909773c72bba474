"""A live group goes from one protocol to the other (KIP-848, `group.consumer.migration.policy`), as values and records.

upgrade    A member of the consumer protocol joins a group whose members speak the classic one. Its generation becomes the
           group's epoch and every member's, what its leader assigned last becomes what members have and shall have. With
           the new member there is a new epoch, so the others are told to join again, and come to their targets.
downgrade  The last member of the consumer protocol is gone. The group's epoch becomes the generation, what members have
           becomes what they were assigned, and everybody is told to join again: from then on a leader assigns. As the
           record names no leader, a successor knows that this has still to come (`classic.events.JoinAgain`).

Either is one batch of records: the end of what was, and all of what is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.groups.classic.members import Member as ClassicMember
from dataplane.groups.classic.members import Members
from dataplane.groups.classic.model import Group as ClassicGroup
from dataplane.groups.classic.model import GroupState, durable_value
from dataplane.groups.consumer import records
from dataplane.groups.consumer.embedded import (
    PROTOCOL_TYPE,
    STREAMS,
    prefix_of,
    read_assignment,
    read_subscription,
    that_exist,
    write_assignment,
)
from dataplane.groups.consumer.model import Classic, Group, Member, MemberState, places
from dataplane.groups.consumer.reconciliation import together
from dataplane.groups.consumer.records import Kind, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dataplane.groups.consumer.embedded import Subscription
    from dataplane.groups.consumer.model import Assignment, Place, Topic
    from dataplane.groups.settings import ConsumerRules

    FindTopic = Callable[[str], Topic | None]

ENDED = Record(Kind.CLASSIC)
"""The tombstone of the group of the classic protocol."""


# --- upgrade ----------------------------------------------------------------------------------------------------------


def upgrade_problem(group: ClassicGroup, rules: ConsumerRules) -> str | None:
    """Why a group with members may not become one of the consumer protocol, as a sentence."""
    if not rules.upgrades:
        return "the group is of the classic protocol, and groups with members do not change theirs here"
    if group.protocol_type != PROTOCOL_TYPE:
        return "the members of the group are no consumers"
    if len(group.members) > rules.max_changing:
        return f"groups of more than {rules.max_changing} members do not change their protocol here while they have members"
    if len(group.members) >= rules.max_size:
        return "the group has as many members as one of the consumer protocol may have"
    return None


def taken_over(group: ClassicGroup, find_topic: FindTopic) -> tuple[Record, ...] | None:
    """The records with which a group of the classic protocol is one of the consumer protocol.

    None: what its members say to each other is not understood.
    """
    understood: dict[str, tuple[Subscription, Assignment]] = {}
    taken: set[Place] = set()
    subscriptions: dict[bytes, Subscription | None] = {}  # most members say the same
    prefix = prefix_of(group.group_id)
    for member in group.members.values():
        metadata = member.protocols[0][1]
        if metadata not in subscriptions:
            subscriptions[metadata] = read_subscription(metadata, prefix)
        said = subscriptions[metadata]
        has = None if said is None else _has(group, member, said, find_topic)
        if said is None or has is None or STREAMS in member.offers:
            return None
        understood[member.member_id] = said, _not_yet(has, taken)
    members = {}
    for member_id, (said, has) in understood.items():  # what anybody was assigned is that one's first
        revoking = _not_yet(that_exist(said.owned, find_topic), taken)
        members[member_id] = _as_consumer(group, group.members[member_id], said, has, revoking)
    return (ENDED, *_all_of(group.generation, members))


def _has(group: ClassicGroup, member: ClassicMember, said: Subscription, find_topic: FindTopic) -> Assignment | None:
    """What a member was assigned last.

    It may be reading more: what it said it owned as it joined, until it has asked for its assignment and joined again
    without it. In a group that has settled that is nothing; else it is being revoked.

    Where two rebalances came one upon the other that is not known any more; then it is what the member said as it joined.
    """
    if group.assignments or group.state is GroupState.STABLE:
        return read_assignment(group.assignment(member.member_id), prefix_of(group.group_id), find_topic)
    return that_exist(said.owned, find_topic)


def _not_yet(has: Assignment, taken: set[Place]) -> Assignment:
    """Of one member's partitions those that no other has: a leader may have assigned one twice; it is the first one's then."""
    free = {topic: tuple(p for p in some if (topic, p) not in taken) for topic, some in has.items()}
    free = {topic: some for topic, some in free.items() if some}
    taken.update(places(free))
    return free


def _as_consumer(
    group: ClassicGroup, member: ClassicMember, said: Subscription, has: Assignment, revoking: Assignment
) -> Member:
    return Member(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=said.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=said.topics,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=Classic(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        state=MemberState.UNREVOKED if revoking else MemberState.STABLE,
        assigned=has,
        revoking=revoking,
    )


def _all_of(epoch: int, members: Mapping[str, Member]) -> tuple[Record, ...]:
    said = tuple(records.member_record(member) for member in members.values())
    targets = tuple(records.target_record(member.member_id, member.assigned) for member in members.values())
    current = tuple(records.current_record(member) for member in members.values())
    return (*said, records.epoch_record(epoch), *targets, records.target_epoch_record(epoch), *current)


# --- downgrade --------------------------------------------------------------------------------------------------------


def is_left_to_classic(group: Group, rules: ConsumerRules) -> bool:
    """Whether all members speak the classic protocol, and may have the group to themselves."""
    if not rules.downgrades or not 0 < len(group.members) <= min(rules.max_classic_size, rules.max_changing):
        return False
    if group.outgrown and len(group.members) >= group.outgrown:
        return False
    return all(member.classic is not None for member in group.members.values())


def handed_over(group: Group, now_ms: int) -> tuple[tuple[Record, ...], Members]:
    """The records with which such a group is one of the classic protocol, and its members with all that they offer.

    (Kafka has members assigned their targets; what of that others have not given up yet would have two owners for a while.)
    """
    prefix = prefix_of(group.group_id)
    members, assignments = [], {}
    for member in group.members.values():
        assert member.classic is not None
        members.append(_as_classic(member, member.classic))
        has = together(member.assigned, member.revoking)
        assignments[member.member_id] = write_assignment(has, group.topics, prefix, member.classic.protocols[0][1])
    after = Members.of(members)
    votes = after.votes()
    value = durable_value(
        ClassicGroup(
            group.group_id,
            generation=group.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol=max(votes, key=lambda name: votes[name], default=None),
            members=after,
            assignments=assignments,
            state_since_ms=now_ms,
        )
    )
    ends = tuple(record for member_id in group.members for record in records.end_of_member(member_id))
    return (*ends, *records.end_of_group(group), Record(Kind.CLASSIC, value=value)), after


def _as_classic(member: Member, classic: Classic) -> ClassicMember:
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        classic.session_timeout_ms,
        classic.protocols,
    )
