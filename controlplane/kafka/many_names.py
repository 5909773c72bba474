"""Topics of very many instances in one text: a word is found in a hundred thousand names at the speed of memory. Pure."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

from quota.contracts.namespace import KEY_LENGTH

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence


class ManyNames:
    """Names of topics by instance, in the order in which they are given; each question hands them out as it finds them.

    Nothing is done for a name that nobody takes, so that whoever has enough stops asking.
    """

    def __init__(self, physical: Mapping[str, Sequence[str]]) -> None:
        """`physical`: the cluster's names by id of the instance: its key, a point, the name. Kafka's names are ASCII."""
        blocks = ["".join([f"{name[KEY_LENGTH + 1 :]}\n" for name in names]) for names in physical.values()]
        self._instances = list(physical)
        self._begins = list(accumulate(map(len, blocks), initial=1))
        self._text = "\n" + "".join(blocks)
        self._lower = self._text.lower()

    def called(self, lower: str) -> Iterator[tuple[str, str]]:
        """Instance and name of those of this name, whatever the case. What is looked for is in small letters everywhere here."""
        return self._lines(f"\n{lower}\n", 1)

    def beginning(self, lower: str) -> Iterator[tuple[str, str]]:
        """Of those that begin with it."""
        return self._lines(f"\n{lower}", 1)

    def holding(self, lower: str) -> Iterator[tuple[str, str]]:
        """Of those in which it is: a letter at least."""
        return self._lines(lower, 0)

    def matching(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
        """Of those in which the pattern is found, in small letters."""
        end = 0
        for hit in pattern.finditer(self._lower):
            if hit.start() >= end:
                end = self._text.index("\n", hit.start())
                yield self._line(hit.start(), end)

    def _lines(self, part: str, ahead: int) -> Iterator[tuple[str, str]]:
        """Each line once that has it. `ahead`: how many letters of the part stand on the line before."""
        at = self._lower.find(part)
        while at >= 0:
            end = self._text.find("\n", at + ahead)
            if end < 0:
                return  # what begins behind the last one is none
            yield self._line(at + ahead, end)
            at = self._lower.find(part, end)

    def _line(self, at: int, end: int) -> tuple[str, str]:
        """The line with a place in it, and the next end of a line."""
        begin = self._text.rfind("\n", 0, at) + 1
        return self._instances[bisect_right(self._begins, begin) - 1], self._text[begin:end]
