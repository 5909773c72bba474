"""A chart as the page has it: its figures as data for the script that draws them, and the texts of the table behind it.

static/console/charts.js draws with Chart.js: lines over time against axes with units, marks of what happened, and the values of
the moment that is pointed at, in all charts of a page. It is told numbers and writes them as the table does: `unit` names how.
Without it the tables stand open. Pages allow neither inline styles nor scripts; data in a script element of type JSON is neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DIGITS = 3
"""Of what is drawn: nobody sees more, and a page is a third shorter."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: how it is drawn, what it is called, and a value for each step. None: a gap.

    `words`: what is said of a step, by its number, instead of its value: that there is none may mean something.
    """

    kind: str  # a class of console.css: flow, most, limit, allocation, other
    title: str
    values: Sequence[float | None]
    words: Mapping[int, str] = field(default_factory=dict)
    is_set: bool = False  # it keeps its value until it gets another one, as limits do

    def document(self) -> dict[str, Any]:
        """For the script."""
        return {
            "kind": self.kind,
            "title": str(self.title),
            "is_set": self.is_set,
            "values": [None if value is None else round(value, DIGITS) for value in self.values],
            "words": {str(step): text for step, text in self.words.items()},
        }


@dataclass(frozen=True, slots=True)
class Mark:
    """What happened in a step: how it is drawn, what it is called beside its line, and what is said of it, each once."""

    kind: str  # a class of console.css: resized, throttling, failover, fired; of several, the most serious
    title: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn. `moments` are seconds since 1970, one for each value of each line."""

    name: str  # within the page
    title: str
    lines: Sequence[Line]
    moments: Sequence[int]
    step_s: int
    unit: str  # how values are written, by a name that charts.js knows
    levels: Sequence[float]  # of the axis of values, from 0 to the top
    value_text: Callable[[float | None], str]
    moment_text: Callable[[int], str]
    summary: str  # what a screen reader says of it
    marks: Mapping[int, Mark] = field(default_factory=dict)  # by the moment of their step

    def texts(self, step: int) -> list[str]:
        """Of one step, the value of each line."""
        return [line.words.get(step) or self.value_text(line.values[step]) for line in self.lines]

    def is_told(self, step: int) -> bool:
        """Whether anything is known of a step, or happened in it."""
        return self.moments[step] in self.marks or any(line.values[step] is not None for line in self.lines)

    def document(self) -> dict[str, Any]:
        """For the script: moments are `start` and every `step_s` from there."""
        return {
            "start": self.moments[0],
            "step_s": self.step_s,
            "count": len(self.moments),
            "unit": self.unit,
            "levels": list(self.levels),
            "lines": [line.document() for line in self.lines],
            "marks": [
                {"at": at, "kind": mark.kind, "title": mark.title, "texts": list(mark.texts)}
                for at, mark in sorted(self.marks.items())
            ],
        }
