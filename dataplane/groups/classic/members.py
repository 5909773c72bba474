"""The members of a group, in order of joining: a value, with what each request asks of all of them counted along.

Who holds an instance id, which protocols everybody has, who is the most patient: to look through all members for it at every
join would cost a group of a thousand more than the join itself.

A member is what it said of itself. What a rebalance makes of it (whether it waits, what it was assigned) is the group's
(`model`): with a new generation that changes for all members at once, and no member is made anew for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from dataplane.groups.classic.sharing import SharedMap

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, ValuesView

T = TypeVar("T")
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
    since: int = 0  # its first generation: until then it has had no answer, and cannot heartbeat
    offers: tuple[str, ...] = field(init=False)  # the protocols' names: every join looks at those of all members

    def __post_init__(self) -> None:
        object.__setattr__(self, "offers", tuple(name for name, _ in self.protocols))

    def metadata(self, protocol: str | None) -> bytes:
        """What the member said for a protocol; nothing if it does not offer it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


Counts = dict[T, int]
"""How many members have each. Copied, never changed."""
Offers = Counts[tuple[str, ...]]
"""By the names of the protocols that they offer."""
Holders = SharedMap[tuple[str, ...]]
"""The members of each instance id: one, as it should be."""


class Members(Mapping[str, Member]):
    """By member id. A change makes another one."""

    __slots__ = ("_by_id", "_holders", "_offers", "_patience")

    def __init__(self, by_id: SharedMap[Member], holders: Holders, offers: Offers, patience: Counts[int]) -> None:
        self._by_id, self._holders, self._offers = by_id, holders, offers
        self._patience = patience  # rebalance time-outs

    @staticmethod
    def of(members: Iterable[Member]) -> Members:
        """These, in order."""
        by_id = {member.member_id: member for member in members}
        holders: dict[str, tuple[str, ...]] = {}
        for member in by_id.values():
            if member.instance_id is not None:
                holders[member.instance_id] = (*holders.get(member.instance_id, ()), member.member_id)
        return Members(
            SharedMap.of(by_id.items()),
            SharedMap.of(holders.items()),
            dict(Counter(member.offers for member in by_id.values())),
            dict(Counter(member.rebalance_timeout_ms for member in by_id.values())),
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

    def votes(self) -> dict[str, int]:
        """Each member's is for the first of its protocols that everybody has. In the order of who joined first."""
        common = self.common_protocols()
        first = self.first()
        votes = {name: 0 for name in self[first].offers if name in common} if first is not None else {}
        for offers, count in self._offers.items() if votes else ():
            votes[next(name for name in offers if name in votes)] += count
        return votes

    def most_patient_ms(self) -> int:
        """The longest rebalance time-out."""
        return max(self._patience, default=0)

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

    def without_all(self, member_ids: Collection[str]) -> Members:
        """Without several, in one go."""
        return Members.of(member for member_id, member in self.items() if member_id not in member_ids)

    def _other(self, by_id: SharedMap[Member], old: Member | None, new: Member | None) -> Members:
        offers, holders = self._offers, self._holders
        if old is None or new is None or old.offers != new.offers:
            offers = _recounted(offers, old, new, lambda member: member.offers)
        if old is None or new is None or (old.member_id, old.instance_id) != (new.member_id, new.instance_id):
            holders = _held(holders, old, new)
        patience = self._patience
        if old is None or new is None or old.rebalance_timeout_ms != new.rebalance_timeout_ms:
            patience = _recounted(patience, old, new, lambda member: member.rebalance_timeout_ms)
        return Members(by_id, holders, offers, patience)


def _recounted(counts: Counts[T], old: Member | None, new: Member | None, what: Callable[[Member], T]) -> Counts[T]:
    """With one fewer of what the old member has, and one more of what the new one has."""
    counts = counts.copy()
    if old is not None:
        counts[what(old)] -= 1
        if not counts[what(old)]:
            del counts[what(old)]
    if new is not None:
        counts[what(new)] = counts.get(what(new), 0) + 1
    return counts


def _held(holders: Holders, old: Member | None, new: Member | None) -> Holders:
    if old is not None and old.instance_id is not None:
        left = tuple(member_id for member_id in holders[old.instance_id] if member_id != old.member_id)
        holders = holders.put(old.instance_id, left) if left else holders.without(old.instance_id)
    if new is not None and new.instance_id is not None:
        holders = holders.put(new.instance_id, (*holders.get(new.instance_id, ()), new.member_id))
    return holders


NOBODY = Members.of(())
