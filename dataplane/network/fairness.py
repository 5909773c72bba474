"""Addresses share what an account has: places, and turns.

Whoever opens connections without end does so from some address. So that it keeps nobody out but itself, a place is taken from
the address that has most of them, and of those that wait the next is the oldest of the address whose turn it is. Both cost the
same however many there are. (Who comes from very many addresses is for the whitelist.)

Pure: what is placed or waits is anything that can be a key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Places(Generic[T]):
    """Who has one, by address, in the order in which they came."""

    __slots__ = ("_by_address", "_having", "_most", "_total")

    def __init__(self) -> None:
        self._by_address: dict[str, dict[T, None]] = {}
        self._having: dict[int, dict[str, None]] = {}  # addresses by how many they have
        self._most = 0  # that an address has
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def of(self, address: str) -> int:
        """How many it has."""
        return len(self._by_address.get(address, ()))

    def came(self, address: str, one: T) -> None:
        here = self._by_address.setdefault(address, {})
        here[one] = None
        self._total += 1
        self._count(address, len(here) - 1, len(here))

    def went(self, address: str, one: T) -> None:
        """Harmless twice."""
        here = self._by_address.get(address)
        if here is None or one not in here:
            return
        del here[one]
        self._total -= 1
        self._count(address, len(here) + 1, len(here))
        if not here:
            del self._by_address[address]

    def _count(self, address: str, before: int, now: int) -> None:
        if before:
            del self._having[before][address]
            if not self._having[before]:
                del self._having[before]
        if now:
            self._having.setdefault(now, {})[address] = None
        if now > self._most or self._most not in self._having:
            self._most = now

    def fullest(self, address: str) -> Iterable[T]:
        """Those of the address that has most, the oldest first; none if this one has as many as any."""
        if self._most <= self.of(address):
            return ()
        return self._by_address[next(iter(self._having[self._most]))]


class Turns(Generic[T]):
    """Who waits. Addresses take turns; of each the oldest comes first."""

    __slots__ = ("_by_address",)

    def __init__(self) -> None:
        self._by_address: dict[str, dict[T, None]] = {}  # whose turn it is comes first

    def __bool__(self) -> bool:
        return bool(self._by_address)

    def add(self, address: str, one: T) -> None:
        self._by_address.setdefault(address, {})[one] = None

    def next(self) -> T:
        """Take the next. There has to be one."""
        address = next(iter(self._by_address))
        here = self._by_address.pop(address)
        one = next(iter(here))
        del here[one]
        if here:
            self._by_address[address] = here
        return one

    def discard(self, address: str, one: T) -> None:
        """It waits no longer. Harmless if it does not."""
        here = self._by_address.get(address)
        if here is not None and one in here:
            del here[one]
            if not here:
                del self._by_address[address]
