"""A mapping that is never changed: each change makes another one, which shares nearly all of it with the one before.

A group of a thousand members is made anew with every request of one of them. So its members stand in buckets by the hash of
their names, the more buckets the more members; a change copies one bucket and the list of buckets, which for a thousand are
some 80 references in place of a thousand. Who reads an earlier one reads what it was.

The order is that in which keys came, as of a dict. Each value has its place beside it, and each bucket is in order; all of
them are brought into it when somebody first asks for all: who goes through all of them does work for each anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Collection, ItemsView, Iterable, Iterator, ValuesView

V = TypeVar("V")
T = TypeVar("T")
Buckets = tuple[dict[str, tuple[int, V]], ...]
"""A power of two of them; of each key its place and its value."""

_FULL = 4
"""So many times as many entries as there are buckets may stand in each, before there are twice as many."""


class SharedMap(Mapping[str, V], Generic[V]):
    """See the file's text."""

    __slots__ = ("_buckets", "_following", "_in_order", "_size")

    def __init__(
        self, buckets: Buckets[V] = ({},), size: int = 0, following: int = 0, in_order: dict[str, V] | None = None
    ) -> None:
        self._buckets = buckets
        self._size = size
        self._following = following  # the place of the next new key
        self._in_order = in_order  # None: nobody has asked yet

    @staticmethod
    def of(items: Iterable[tuple[str, V]]) -> SharedMap[V]:
        """With these keys and values."""
        in_order = dict(items)
        places = ((key, (place, value)) for place, (key, value) in enumerate(in_order.items()))
        return SharedMap(_spread(places, len(in_order)), len(in_order), len(in_order), in_order)

    # --- reading ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._size

    def __contains__(self, key: object) -> bool:
        return key in self._buckets[hash(key) & (len(self._buckets) - 1)]

    def __getitem__(self, key: str) -> V:
        return self._buckets[hash(key) & (len(self._buckets) - 1)][key][1]

    @overload
    def get(self, key: str) -> V | None: ...
    @overload
    def get(self, key: str, default: V | T) -> V | T: ...
    def get(self, key: str, default: V | T | None = None) -> V | T | None:
        """As of a dict."""
        found = self._buckets[hash(key) & (len(self._buckets) - 1)].get(key)
        return default if found is None else found[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ordered())

    def values(self) -> ValuesView[V]:
        """In the order in which their keys came."""
        return self._ordered().values()

    def items(self) -> ItemsView[str, V]:
        """In the order in which the keys came."""
        return self._ordered().items()

    def first(self) -> str | None:
        """The key that came first of those that are there."""
        heads = (next(iter(bucket.items())) for bucket in self._buckets if bucket)
        found = min(heads, key=_place, default=None)
        return None if found is None else found[0]

    def _ordered(self) -> dict[str, V]:
        if self._in_order is None:
            self._in_order = {key: value for key, (_, value) in _in_order(self._buckets)}
        return self._in_order

    # --- making another one -------------------------------------------------------------------------------------------

    def put(self, key: str, value: V) -> SharedMap[V]:
        """With this value of a key, which goes last where it is new."""
        known = self._buckets[hash(key) & (len(self._buckets) - 1)].get(key)
        if known is not None:
            return SharedMap(_with(self._buckets, key, (known[0], value)), self._size, self._following)
        buckets, size = _with(self._buckets, key, (self._following, value)), self._size + 1
        if size > _FULL * len(buckets) ** 2:
            buckets = _spread(_in_order(buckets), size)
        return SharedMap(buckets, size, self._following + 1)

    def without(self, key: str) -> SharedMap[V]:
        """Without a key, which has to be there."""
        return SharedMap(_without(self._buckets, key), self._size - 1, self._following)

    def without_all(self, keys: Collection[str]) -> SharedMap[V]:
        """Without these, as far as they are there. All are looked at."""
        if not any(key in self for key in keys):
            return self
        return SharedMap.of((key, value) for key, value in self.items() if key not in keys)

    def put_in_place_of(self, old: str, key: str, value: V) -> SharedMap[V]:
        """With a new key where the old one stood. All are looked at: this is seldom."""
        place = self._buckets[hash(old) & (len(self._buckets) - 1)][old][0]
        buckets = _with(_without(self._buckets, old), key, (place, value))
        return SharedMap(_spread(_in_order(buckets), self._size), self._size, self._following)


def _with(buckets: Buckets[V], key: str, entry: tuple[int, V]) -> Buckets[V]:
    at = hash(key) & (len(buckets) - 1)
    return (*buckets[:at], {**buckets[at], key: entry}, *buckets[at + 1 :])


def _without(buckets: Buckets[V], key: str) -> Buckets[V]:
    at = hash(key) & (len(buckets) - 1)
    bucket = buckets[at].copy()
    del bucket[key]
    return (*buckets[:at], bucket, *buckets[at + 1 :])


def _in_order(buckets: Buckets[V]) -> list[tuple[str, tuple[int, V]]]:
    return sorted((entry for bucket in buckets for entry in bucket.items()), key=_place)


def _place(entry: tuple[str, tuple[int, V]]) -> int:
    return entry[1][0]


def _spread(entries: Iterable[tuple[str, tuple[int, V]]], size: int) -> Buckets[V]:
    """Into as many buckets as so many entries need."""
    count = 1
    while size > _FULL * count**2:
        count *= 2
    buckets: Buckets[V] = tuple({} for _ in range(count))
    for key, entry in entries:
        buckets[hash(key) & (count - 1)][key] = entry
    return buckets
