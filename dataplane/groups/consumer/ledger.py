"""What records make of a group: `apply`, which is all that changes the durable side of one, in service and at load.

A `Ledger` is a group that is being changed: it copies each mapping once, however many records there are. It lives only within
`apply` and within the handling of an event, where it shows the group as it would be with what is proposed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dataplane.groups.consumer.model import Group, Matched, Member, Topic
from dataplane.groups.consumer.records import Kind, assignment_in, classic_in, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from dataplane.groups.consumer.model import Assignment, Place
    from dataplane.groups.consumer.records import Record


def apply(group: Group, records: Iterable[Record]) -> Group:
    """The group after these records."""
    ledger = Ledger(group)
    for record in records:
        ledger.apply(record)
    return ledger.group()


class Ledger:
    """See the file's text."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._copied: dict[str, dict[Any, Any]] = {}
        self._own_topics: dict[UUID, dict[int, str]] = {}  # of the owners, those that are copied

    def group(self) -> Group:
        """As it is by now. What was asked for before does not change any more."""
        if self._copied:
            changes: dict[str, Any] = {**self._copied}
            self._group, self._copied, self._own_topics = replace(self._group, **changes), {}, {}
        return self._group

    @property
    def members(self) -> dict[str, Member]:
        """Not to be changed."""
        members: dict[str, Member] = self._mapping("members")
        return members

    def _mapping(self, name: str) -> Any:
        return self._copied[name] if name in self._copied else getattr(self._group, name)

    def _copy(self, name: str) -> dict[Any, Any]:
        if name not in self._copied:
            self._copied[name] = dict(getattr(self._group, name))
        return self._copied[name]

    def target(self, member_id: str) -> Assignment:
        """What a member shall have."""
        target: Assignment = self._mapping("targets").get(member_id, {})
        return target

    @property
    def target_epoch(self) -> int:
        """For which epoch of the group that is."""
        return self._group.target_epoch

    def owner(self, place: Place) -> str | None:
        """Which member has a partition, or has not said yet that it has given it up."""
        topic_id, partition = place
        owner: str | None = self._mapping("owners").get(topic_id, {}).get(partition)
        return owner

    def apply(self, record: Record) -> None:
        """One more record."""
        _APPLY[record.kind](self, record.name, record.value)

    # --- of the group -------------------------------------------------------------------------------------------------

    def take_epoch(self, _name: str, value: Any) -> None:
        """The group's epoch."""
        self._group = replace(self._group, epoch=0 if value is None else value.epoch)

    def take_target_epoch(self, _name: str, value: Any) -> None:
        """For which epoch the targets are."""
        self._group = replace(self._group, target_epoch=0 if value is None else value.assignment_epoch)

    def take_topics(self, _name: str, value: Any) -> None:
        """The topics that are subscribed to."""
        rows = () if value is None else value.topics
        self._copied["topics"] = {row.topic_name: Topic(row.topic_id, row.num_partitions) for row in rows}

    def take_pattern(self, name: str, value: Any) -> None:
        """What a regular expression matches."""
        matched = self._copy("matched")
        if value is None:
            matched.pop(name, None)
        else:
            matched[name] = Matched(value.topics, value.timestamp)

    def take_classic(self, name: str, value: Any) -> None:
        """It is not of this group."""

    # --- of a member --------------------------------------------------------------------------------------------------

    def take_target(self, name: str, value: Any) -> None:
        """What a member shall have."""
        targets = self._copy("targets")
        if value is None:
            targets.pop(name, None)
        else:
            targets[name] = assignment_in(value.topic_partitions)

    def take_member(self, name: str, value: Any) -> None:
        """What a member says of itself."""
        before = self.members.get(name)
        if value is None:
            self._forget(before)
            return
        member = replace(
            before or Member(name),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=value.subscribed_topic_names,
            pattern=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=classic_in(value.classic_member_metadata),
        )
        self._copy("members")[name] = member
        self._count(before, -1)
        self._count(member, 1)

    def take_current(self, name: str, value: Any) -> None:
        """How far a member is."""
        member = self.members.get(name)
        if member is None:
            if value is None:
                return
            member = Member(name)  # compaction may have left its other record behind this one
        self._release(member)
        if value is None:
            member = replace(Member(name), **_said(member))
        else:
            member = replace(
                member,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=state_of(value.state),
                assigned=assignment_in(value.assigned_partitions),
                revoking=assignment_in(value.partitions_pending_revocation),
            )
        self._copy("members")[name] = member
        for assignment in (member.assigned, member.revoking):
            for topic_id, partitions in assignment.items():
                self._owners_of(topic_id).update(dict.fromkeys(partitions, name))

    def _forget(self, member: Member | None) -> None:
        if member is not None:
            self._release(member)
            self._count(member, -1)
            del self._copy("members")[member.member_id]

    def _release(self, member: Member) -> None:
        for assignment in (member.assigned, member.revoking):
            for topic_id, partitions in assignment.items():
                owners = self._owners_of(topic_id)
                for partition in partitions:
                    if owners.get(partition) == member.member_id:
                        del owners[partition]
                if not owners:
                    del self._copied["owners"][topic_id], self._own_topics[topic_id]

    def _owners_of(self, topic_id: UUID) -> dict[int, str]:
        if topic_id not in self._own_topics:
            owners = self._copy("owners")
            owners[topic_id] = self._own_topics[topic_id] = dict(owners.get(topic_id, {}))
        return self._own_topics[topic_id]

    def _count(self, member: Member | None, change: int) -> None:
        """Who subscribes to what, and offers what."""
        if member is None:
            return
        names = self._copy("names")
        for topic in member.topics:
            _add(names, topic, change)
        if member.pattern:
            _add(self._copy("patterns"), member.pattern, change)
        if member.classic is not None:
            _add(self._copy("offers"), member.classic.offers, change)


def _said(member: Member) -> dict[str, Any]:
    """What a member said of itself."""
    names = (
        "instance_id",
        "rack_id",
        "client_id",
        "client_host",
        "topics",
        "pattern",
        "rebalance_timeout_ms",
        "assignor",
        "classic",
    )
    return {name: getattr(member, name) for name in names}


def _add(counts: dict[Any, int], name: str | tuple[str, ...], change: int) -> None:
    count = counts.get(name, 0) + change
    if count > 0:
        counts[name] = count
    else:
        counts.pop(name, None)


_APPLY: dict[Kind, Callable[[Ledger, str, Any], None]] = {
    Kind.CLASSIC: Ledger.take_classic,
    Kind.EPOCH: Ledger.take_epoch,
    Kind.TOPICS: Ledger.take_topics,
    Kind.MEMBER: Ledger.take_member,
    Kind.TARGET_EPOCH: Ledger.take_target_epoch,
    Kind.TARGET: Ledger.take_target,
    Kind.CURRENT: Ledger.take_current,
    Kind.PATTERN: Ledger.take_pattern,
}
