"""What a policy of the disk may say, when it acts, how far, and who loses what. Pure.

Vocabulary. The *level* is a percentage of the storage that was bought. At the level the policy acts: it shortens the
retention of topics by *steps*, each a percentage of what retention is then, to a *floor*; or it buys more storage by steps, to a
most. There is *room* again when use is ROOM_POINTS below the level: then retention is put back as it was.

A *cut* is the first offset that a shorter retention would keep, at most: brokers delete whole segments, so that somewhat more
stays. A group *loses* what it has not read and the cut leaves behind.

Strategy. A step that would delete nothing helps nobody, and would be followed by the next one five minutes later: so as many
steps are taken at once as it takes until something goes (`first_that_frees`), and no more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING

from controlplane.core.errors import FieldProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

NONE, RETENTION, EXPANSION = "none", "retention", "expansion"
POLICIES = (NONE, RETENTION, EXPANSION)
LEAST_LEVEL, MOST_LEVEL, DEFAULT_LEVEL = 50, 95, 75
LEAST_STEP, MOST_STEP, DEFAULT_STEP = 1, 50, 10
LEAST_FLOOR_MIN, MOST_FLOOR_MIN, DEFAULT_FLOOR_MIN = 1, 30 * 60, 60
ROOM_POINTS = 10
"""So many percentage points below the level there is room."""
MINUTE_MS = 60_000
MOST_STEPS_AT_ONCE = 400
FORGETS_AFTER_MS = -1
"""A retention without an end: such a topic keeps everything, since its owner said so."""
WHOLE_GIB = 1

SHORTENING, PUTTING_BACK, EXPANDING = "policies.shorten", "policies.put_back", "policies.expand"
KINDS = (SHORTENING, PUTTING_BACK, EXPANDING)
"""Of operations."""

Place = tuple[str, int]
"""A topic and the number of a partition."""


class Act(Enum):
    """What a look comes to: the kind of operation that does it."""

    SHORTEN = SHORTENING
    PUT_BACK = PUTTING_BACK
    EXPAND = EXPANDING


@dataclass(frozen=True, slots=True)
class Rule:
    """What a policy says."""

    policy: str = NONE  # one of POLICIES
    level_percent: int = DEFAULT_LEVEL
    step_percent: int = DEFAULT_STEP
    floor_minutes: int = DEFAULT_FLOOR_MIN
    spare_unread: bool = False
    max_storage_gib: float | None = None  # of EXPANSION


@dataclass(frozen=True, slots=True)
class Kept:
    """How long a topic keeps records. `own_ms`: what was set for it, None: nothing; `retention_ms`: what is in force."""

    retention_ms: int
    own_ms: int | None
    deletes: bool = True  # by age; a topic that only compacts does not

    @property
    def is_unlimited(self) -> bool:
        """Whether it keeps everything."""
        return self.retention_ms == FORGETS_AFTER_MS


@dataclass(frozen=True, slots=True)
class Extent:
    """A partition holds records from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Loss:
    """Records of a topic that a group has not read and that would go. `size_bytes` is an estimate; None: it is not known."""

    group: str
    topic: str
    records: int
    size_bytes: int | None = None


def rule_problems(rule: Rule, *, storage_gib: float, most_gib: float) -> list[FieldProblem]:
    """Everything that is wrong with a policy for an instance of this storage. Bounds hold whichever policy it is."""
    problems = [
        FieldProblem(name, f"must be at least {least} and at most {largest}")
        for name, least, largest in (
            ("level_percent", LEAST_LEVEL, MOST_LEVEL),
            ("step_percent", LEAST_STEP, MOST_STEP),
            ("floor_minutes", LEAST_FLOOR_MIN, MOST_FLOOR_MIN),
        )
        if not least <= getattr(rule, name) <= largest
    ]
    if rule.policy not in POLICIES:
        problems.append(FieldProblem("policy", f"must be one of {', '.join(POLICIES)}"))
    most = rule.max_storage_gib
    if rule.policy == EXPANSION and most is None:
        problems.append(FieldProblem("max_storage_gib", "must say up to which size storage is bought"))
    elif most is not None and not (math.isfinite(most) and 0 < most <= most_gib):
        problems.append(FieldProblem("max_storage_gib", f"must be more than 0 and at most {most_gib:g}"))
    elif rule.policy == EXPANSION and most is not None and most < storage_gib:
        problems.append(FieldProblem("max_storage_gib", f"must be at least what the instance has: {storage_gib:g} GiB"))
    return problems


def decide(
    rule: Rule, *, used_bytes: int | None, storage_bytes: int, is_shortened: bool, is_to_put_back: bool = False
) -> Act | None:
    """What is to be done. `used_bytes` None: it is not known for certain, and nothing is deleted or bought.

    `is_to_put_back`: what was shortened may be too short for the rule.
    """
    if is_shortened and (is_to_put_back or rule.policy != RETENTION):
        return Act.PUT_BACK
    if used_bytes is None:
        return None
    if is_reached(rule.level_percent, used_bytes, storage_bytes):
        return {RETENTION: Act.SHORTEN, EXPANSION: Act.EXPAND}.get(rule.policy)
    if is_shortened and has_room(rule.level_percent, used_bytes, storage_bytes):
        return Act.PUT_BACK
    return None


def is_reached(level_percent: int, used_bytes: int, storage_bytes: int) -> bool:
    """Whether use is at the level or above. Whole numbers: 75 % of 4 bytes are 3."""
    return used_bytes * 100 >= level_percent * storage_bytes


def has_room(level_percent: int, used_bytes: int, storage_bytes: int) -> bool:
    """Whether there is room again."""
    return used_bytes * 100 <= (level_percent - ROOM_POINTS) * storage_bytes


def shortens(kept: Kept, floor_ms: int) -> bool:
    """Whether a step would change it."""
    return kept.deletes and not kept.is_unlimited and kept.retention_ms > floor_ms


def shortened(retention_ms: int, *, steps: int, step_percent: int, floor_ms: int) -> int:
    """After so many steps. Never below the floor, and never longer than it was."""
    found = retention_ms
    for _ in range(steps):
        if found <= floor_ms:
            break
        found = max(floor_ms, found * (100 - step_percent) // 100)
    return found


def most_steps(topics: Iterable[Kept], *, step_percent: int, floor_ms: int) -> int:
    """After so many steps all are at the floor, or MOST_STEPS_AT_ONCE."""
    longest = max((each.retention_ms for each in topics if shortens(each, floor_ms)), default=0)
    steps = 0
    while longest > floor_ms and steps < MOST_STEPS_AT_ONCE:
        longest = max(floor_ms, longest * (100 - step_percent) // 100)
        steps += 1
    return steps


def first_that_frees(most: int, frees: Callable[[int], bool]) -> int | None:
    """The least number of steps, from 1, by which something goes; None: not even `most` do. More steps never free less."""
    if most < 1 or not frees(most):
        return None
    low, high = 1, most  # `high` frees
    while low < high:
        middle = (low + high) // 2
        if frees(middle):
            high = middle
        else:
            low = middle + 1
    return high


def goes(extents: Mapping[Place, Extent], cuts: Mapping[Place, int | None]) -> dict[str, int]:
    """Records that would go at most, by topic, those of which some would. A cut of None: no record is younger, all go."""
    found: dict[str, int] = {}
    for place, extent in extents.items():
        if place in cuts and (count := _cut(extent, cuts[place]) - extent.start):
            found[place[0]] = found.get(place[0], 0) + count
    return found


def losses(
    committed: Mapping[str, Mapping[Place, int]],
    extents: Mapping[Place, Extent],
    cuts: Mapping[Place, int | None],
    sizes: Mapping[Place, int] | None = None,
) -> list[Loss]:
    """What each group would lose of each topic, the most first. `committed`: where each would read on.

    `sizes`: bytes of a copy of each partition, of which a record is taken to have its part.
    """
    records: dict[tuple[str, str], int] = {}
    bytes_of: dict[tuple[str, str], float] = {}
    unsized: set[tuple[str, str]] = set()
    for group, positions in committed.items():
        for place, offset in positions.items():
            if place not in extents or place not in cuts:
                continue
            extent, key = extents[place], (group, place[0])
            count = _cut(extent, cuts[place]) - max(extent.start, offset)
            if count <= 0:
                continue
            records[key] = records.get(key, 0) + count
            if sizes is None or place not in sizes:
                unsized.add(key)
            else:
                bytes_of[key] = bytes_of.get(key, 0) + sizes[place] * count / (extent.end - extent.start)
    found = [
        Loss(group, topic, count, None if (group, topic) in unsized else round(bytes_of[group, topic]))
        for (group, topic), count in records.items()
    ]
    return sorted(found, key=lambda each: (-each.records, each.group, each.topic))


def _cut(extent: Extent, cut: int | None) -> int:
    return extent.end if cut is None else min(max(cut, extent.start), extent.end)


def expanded(storage_gib: float, *, step_percent: int, most_gib: float) -> float | None:
    """The next size: whole GiB from one on; None: there is none up to the most."""
    if storage_gib >= most_gib:
        return None
    # A float's hundredths are not exact: 110 % of 100 is 110, and not a little more.
    raised = round(storage_gib * (100 + step_percent) / 100, 9)
    wanted = float(math.ceil(raised)) if raised >= WHOLE_GIB else math.ceil(raised * 1000) / 1000
    return min(wanted, most_gib)


def is_over_budget(*, amount: Decimal, forecast: Decimal, more_per_month: Decimal, left: float) -> bool:
    """Whether a month would cost more than its budget because of this. `left`: which part of the month is to come.

    What costs nothing more is bought also in a month that is too dear already.
    """
    return more_per_month > 0 and forecast + more_per_month * Decimal(str(left)) > amount


def duration_text(milliseconds: int) -> str:
    """``6.3 days``, ``90 min``: as a person says it."""
    for unit_ms, name in ((24 * 60 * MINUTE_MS, "days"), (60 * MINUTE_MS, "h"), (MINUTE_MS, "min")):
        if milliseconds >= 2 * unit_ms:
            return f"{round(milliseconds / unit_ms, 1):g} {name}"
    return f"{round(milliseconds / 1000, 1):g} s"
