"""A part of a question, answered by the store. Each raises StoreAway.

The instance's id comes from who looked it up in its organisation's scope, and stands in each question.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from controlplane.history.resolutions import floor
from controlplane.history.store import series
from controlplane.history.store.client import StoreAway
from controlplane.history.store.spans import windows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controlplane.history.resolutions import Plan
    from controlplane.history.store.spans import Part

Values = list[tuple["Mapping[str, str]", float]]


def flow_rows(instance: str, plan: Plan, part: Part) -> dict[int, dict[str, Any]]:
    """By the beginning of their step, as `statements.selected` has them."""
    found = _steps(plan, part, lambda range_s: series.flow_asked(instance, plan.resolution.step_s, range_s))
    rows = {at: series.flow_row(instance, at, values) for at, values in found.items()}
    return {at: row for at, row in rows.items() if row is not None}


def sample_counts(instance: str, plan: Plan, part: Part) -> dict[int, int]:
    """How many samples there were in each step."""
    found = _steps(plan, part, lambda range_s: series.samples_asked(instance, plan.resolution.step_s, range_s))
    return {at: sum(round(value) for _, value in values) for at, values in found.items()}


def request_rows(
    name: str, plan: Plan, part: Part, column: str, only: str | None = None
) -> list[tuple[int, int, str | None]]:
    """(step, windows, text) of an instance or a broker: of each step one row, in which all are added up.

    `only`: of one topic, broker or API.
    """

    def asked(range_s: int) -> str:
        return series.requests_asked(name, plan.resolution.step_s, range_s, column, only)

    found = _steps(plan, part, asked)
    return [
        (at, windows, series.text_of(column, values, only))
        for at, values in sorted(found.items())
        if (windows := series.windows_of(values))
    ]


def _steps(plan: Plan, part: Part, asked: Callable[[int], str]) -> dict[int, Values]:
    found: defaultdict[int, Values] = defaultdict(list)
    if part.store is None:
        raise StoreAway("this part is in the database")
    for windows in windows_of(part.start, part.end, plan.step_s):
        for labels, values in part.store.query(asked(windows.range_s), windows):
            for end, value in values:
                found[floor(end - 1, plan.step_s)].append((labels, value))
    return dict(found)
