"""The members of a group, in order of joining: a value, with what each request asks of all of them counted along.

Whether a rebalance has anybody left to wait for, who holds an instance id, which protocols everybody has: to look through all
members for it at every join would cost a group of a thousand more than the join itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dataplane.groups.classic.sharing import SharedMap

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterable, Iterator, ValuesView

Protocols = tuple[tuple[str, bytes], ...]
"""(name, metadata) of the assignment strategies that a member offers, its favourite first."""


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer in a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: int | None = None  # token of a JoinGroup that is parked
    awaiting_sync: int | None = None  # token of a SyncGroup that is parked
    is_new: bool = False  # it has never had an answer, so it cannot heartbeat yet
    needs_sync: bool = False  # of this generation
    offers: tuple[str, ...] = field(init=False)  # the protocols' names: every join looks at those of all members

    def __post_init__(self) -> None:
        object.__setattr__(self, "offers", tuple(name for name, _ in self.protocols))

    def metadata(self, protocol: str | None) -> bytes:
        """What the member said for a protocol; nothing if it does not offer it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    @property
    def waits(self) -> bool:
        """A request of this member is parked here: that is sign of life enough."""
        return self.awaiting_join is not None or self.awaiting_sync is not None


Offers = dict[tuple[str, ...], int]
"""How many members offer protocols of these names. Copied, never changed."""
Holders = SharedMap[tuple[str, ...]]
"""The members of each instance id: one, as it should be."""


class Members(Mapping[str, Member]):
    """By member id. A change makes another one.

    `waiting` of them have joined a rebalance, `unsynced` have not asked for their assignment yet.
    """

    __slots__ = ("_by_id", "_holders", "_offers", "unsynced", "waiting")

    def __init__(
        self, by_id: SharedMap[Member], holders: Holders, offers: Offers, *, waiting: int = 0, unsynced: int = 0
    ) -> None:
        self._by_id, self._holders, self._offers = by_id, holders, offers
        self.waiting, self.unsynced = waiting, unsynced

    @staticmethod
    def of(members: Iterable[Member]) -> Members:
        """These, in order."""
        by_id = {member.member_id: member for member in members}
        holders: dict[str, tuple[str, ...]] = {}
        offers: Offers = {}
        for member in by_id.values():
            offers[member.offers] = offers.get(member.offers, 0) + 1
            if member.instance_id is not None:
                holders[member.instance_id] = (*holders.get(member.instance_id, ()), member.member_id)
        return Members(
            SharedMap.of(by_id.items()),
            SharedMap.of(holders.items()),
            offers,
            waiting=sum(member.awaiting_join is not None for member in by_id.values()),
            unsynced=sum(member.needs_sync for member in by_id.values()),
        )

    # --- reading ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._by_id

    def __getitem__(self, member_id: str) -> Member:
        return self._by_id[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_id)

    def values(self) -> ValuesView[Member]:
        """In order of joining."""
        return self._by_id.values()

    def items(self) -> ItemsView[str, Member]:
        """In order of joining."""
        return self._by_id.items()

    def first(self) -> str | None:
        """Who of those that are there joined first."""
        return self._by_id.first()

    def holder(self, instance_id: str) -> Member | None:
        """Who holds an instance id now."""
        holders = self._holders.get(instance_id)
        return None if holders is None else self._by_id[holders[0]]

    def common_protocols(self) -> frozenset[str]:
        """The names of those that every member offers. Mostly all say the same."""
        offers = iter(self._offers)
        common = frozenset(next(offers, ()))
        return common.intersection(*offers)

    # --- making another one -------------------------------------------------------------------------------------------

    def put(self, member: Member) -> Members:
        """With a member, who goes last if new."""
        return self._other(self._by_id.put(member.member_id, member), self._by_id.get(member.member_id), member)

    def put_in_place_of(self, old: Member, member: Member) -> Members:
        """With a member where another one stood."""
        return self._other(self._by_id.put_in_place_of(old.member_id, member.member_id, member), old, member)

    def without(self, member_id: str) -> Members:
        """Without a member, who has to be there."""
        return self._other(self._by_id.without(member_id), self._by_id[member_id], None)

    def _other(self, by_id: SharedMap[Member], old: Member | None, new: Member | None) -> Members:
        offers, holders = self._offers, self._holders
        if old is None or new is None or old.offers != new.offers:
            offers = _recounted(offers, old, new)
        if old is None or new is None or (old.member_id, old.instance_id) != (new.member_id, new.instance_id):
            holders = _held(holders, old, new)
        waiting, unsynced = self.waiting, self.unsynced
        if old is not None:
            waiting -= old.awaiting_join is not None
            unsynced -= old.needs_sync
        if new is not None:
            waiting += new.awaiting_join is not None
            unsynced += new.needs_sync
        return Members(by_id, holders, offers, waiting=waiting, unsynced=unsynced)


def _recounted(offers: Offers, old: Member | None, new: Member | None) -> Offers:
    counts = offers.copy()
    if old is not None:
        counts[old.offers] -= 1
        if not counts[old.offers]:
            del counts[old.offers]
    if new is not None:
        counts[new.offers] = counts.get(new.offers, 0) + 1
    return counts


def _held(holders: Holders, old: Member | None, new: Member | None) -> Holders:
    if old is not None and old.instance_id is not None:
        left = tuple(member_id for member_id in holders[old.instance_id] if member_id != old.member_id)
        holders = holders.put(old.instance_id, left) if left else holders.without(old.instance_id)
    if new is not None and new.instance_id is not None:
        holders = holders.put(new.instance_id, (*holders.get(new.instance_id, ()), new.member_id))
    return holders


NOBODY = Members.of(())
