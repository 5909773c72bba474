"""The text that is looked for, how well a name fits it, and the best of many. Pure.

Every word of the text has to be in a name, whatever the case. What fits better comes first:

0  EXACT   the name is the text
1  PREFIX  the name begins with the text
2  WORD    each word of the text begins a word of the name: `reader` in `orders-reader`
3  WITHIN  each word is somewhere in it
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")
Named_co = TypeVar("Named_co", covariant=True)

LONGEST = 100
"""Characters of a text."""
MOST_WORDS = 12
"""Of a text: each is asked of the database in some twenty ways, for every kind. Fifty letters made half a megabyte of SQL."""
EXACT, PREFIX, WORD, WITHIN = range(4)
FIELD = "q"


@dataclass(frozen=True)
class Wanted:
    """A text, in small letters, and its words, MOST_WORDS at most. No words: everything fits."""

    whole: str
    words: tuple[str, ...]
    begins: tuple[re.Pattern[str], ...] = field(compare=False)  # where each word begins one

    @classmethod
    def of(cls, text: str) -> Wanted:
        """Of any text; words behind the MOST_WORDS first ones are cut off."""
        words = _words(text)[:MOST_WORDS]
        begins = tuple(re.compile(rf"(?<![^\W_]){re.escape(word)}") for word in words)
        return cls(" ".join(text.lower().split()), words, begins)

    def fits(self, text: str) -> bool:
        """Whether each word is in it."""
        lower = text.lower()
        return all(word in lower for word in self.words)

    def rank(self, name: str) -> int | None:
        """How well a name fits; None: not at all."""
        lower = name.lower()
        if lower.startswith(self.whole):
            return EXACT if lower == self.whole else PREFIX
        if not all(word in lower for word in self.words):
            return None
        return WORD if all(begin.search(lower) for begin in self.begins) else WITHIN


def _words(text: str) -> tuple[str, ...]:
    """In small letters, each once."""
    return tuple(dict.fromkeys(text.lower().split()))


def asked(text: str) -> Wanted:
    """What somebody typed. Raises Invalid beside `q`: for nothing, for too much, and for what no name has."""
    if len(text) > LONGEST:
        raise Invalid.field(FIELD, f"must have at most {LONGEST} characters")
    if len(_words(text)) > MOST_WORDS:
        raise Invalid.field(FIELD, f"must have at most {MOST_WORDS} words")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text):
        raise Invalid.field(FIELD, "must contain no control characters")
    if not text.strip():
        raise Invalid.field(FIELD, "must not be empty")
    return Wanted.of(text)


class Names(Protocol[Named_co]):
    """Very many things in order, each with a name; what fits is handed out as it is found. Texts are in small letters."""

    def called(self, lower: str, /) -> Iterator[Named_co]:
        """Those of exactly this name."""

    def beginning(self, lower: str, /) -> Iterator[Named_co]:
        """Those whose name begins with it."""

    def holding(self, lower: str, /) -> Iterator[Named_co]:
        """Those in whose name it is."""

    def matching(self, pattern: re.Pattern[str], /) -> Iterator[Named_co]:
        """Those in whose name the pattern is found, in small letters."""


class Best(Generic[Item]):
    """The best `most` of many, and one more where there is one; among equals whatever came first."""

    def __init__(self, wanted: Wanted, most: int) -> None:
        self._wanted = wanted
        self._enough = most + 1
        self._by_rank: tuple[list[Item], ...] = ([], [], [], [])

    def add(self, item: Item, *names: str) -> None:
        """Take it if one of its names fits. The best of them counts."""
        ranks = [rank for rank in map(self._wanted.rank, names) if rank is not None]
        if ranks:
            self.put(item, min(ranks))

    def put(self, item: Item, rank: int) -> None:
        """Take it with this rank."""
        if len(self._by_rank[rank]) < self._enough:
            self._by_rank[rank].append(item)

    def is_full_at(self, rank: int) -> bool:
        """Whether nothing of this rank, or of a worse one, can be among them any more."""
        return sum(len(self._by_rank[better]) for better in range(rank + 1)) >= self._enough

    def look(self, names: Names[Item], name_of: Callable[[Item], str]) -> None:
        """Of very many by one name each: rank after rank, and only until there are enough of it."""
        wanted = self._wanted
        self._look(EXACT, names.called(wanted.whole), name_of)
        self._look(PREFIX, names.beginning(wanted.whole), name_of)
        if self.is_full_at(PREFIX):
            return
        rare, begin = max(
            zip(wanted.words, wanted.begins, strict=True), key=lambda each: len(each[0]), default=("", None)
        )
        if begin is not None and any(True for _ in names.holding(rare)):  # a pattern costs ten times as much
            self._look(WORD, names.matching(begin), name_of)
            self._look(WITHIN, names.holding(rare), name_of)

    def _look(self, rank: int, items: Iterable[Item], name_of: Callable[[Item], str]) -> None:
        if self.is_full_at(rank):
            return
        for item in items:
            if self._wanted.rank(name_of(item)) == rank:
                self.put(item, rank)
                if self.is_full_at(rank):
                    return

    @property
    def found(self) -> list[Item]:
        """At most one more than was asked for."""
        return [item for items in self._by_rank for item in items][: self._enough]
