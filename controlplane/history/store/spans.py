"""Which part of a question the store answers, and the windows that are asked for.

A *span* is a time of which all rows of one length are in the store. There is one for each length, and another after each refusal:
what the store did not take stays in the database, and is answered from there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import F

from controlplane.history.models import StoredSpan
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES, floor
from controlplane.history.store.client import store_installed
from controlplane.history.together import once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from controlplane.history.resolutions import Plan, Resolution
    from controlplane.history.store.client import Store

FLOW: Mapping[Resolution, str] = {MINUTES: "minutes", HOURS: "hours"}
REQUESTS: Mapping[Resolution, str] = {MINUTES: "request minutes", HOURS: "request hours"}
"""What spans are called in the database."""


@dataclass(frozen=True, slots=True)
class Part:
    """[start, end) of a question. `store`: it answers this part; None: the database does.

    `is_here`: the database still has all of its rows as well.
    """

    start: int
    end: int
    store: Store | None = None
    is_here: bool = True


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of `range_s` that end at `first_end`, and so on every `step_s` up to `last_end`."""

    first_end: int
    last_end: int
    step_s: int
    range_s: int


def parts_of(plan: Plan, names: Mapping[Resolution, str]) -> list[Part]:
    """A question in the order of time: its parts touch each other."""
    whole = [Part(plan.start, plan.end)]
    store = None if plan.resolution is SAMPLES else store_installed()
    if store is None:
        return whole
    spans = StoredSpan.objects.filter(
        store=store.digest, name=names[plan.resolution], until__gt=plan.start, at__lt=plan.end
    ).order_by("at")
    found, done = [], plan.start
    for at, until, purged in spans.values_list("at", "until", "purged"):
        start, end = max(at, done), min(until, plan.end)
        if start >= end:
            continue
        if start > done:
            found.append(Part(done, start))
        found.append(Part(start, end, store, is_here=start >= purged))
        done = end
    if done < plan.end:
        found.append(Part(done, plan.end))
    return found


def gone_of(plan: Plan, names: Mapping[Resolution, str], answered: Iterable[Part]) -> list[tuple[int, int]]:
    """Times in which the database may have no rows any more, since some store has them, and which are in no part of `answered`.

    Also where that store is not asked: METRICS_URL may have got another address, or was taken away. In the order of time.
    """
    name = names.get(plan.resolution)
    if name is None:
        return []
    # There are a few of each name, and most installations have none.
    spans = once(
        "purged", lambda: list(StoredSpan.objects.filter(purged__gt=F("at")).values_list("name", "at", "purged"))
    )
    ours = sorted((at, to) for of, at, to in spans if of == name and at < plan.end and to > plan.start)
    parts = sorted(answered, key=lambda part: part.start)
    found = []
    for at, purged in ours:
        start, end = max(at, plan.start), min(purged, plan.end)
        for part in parts:
            if start < min(end, part.start):
                found.append((start, min(end, part.start)))
            start = max(start, part.end)
        if start < end:
            found.append((start, end))
    return found


def seconds_by_step(times: Iterable[tuple[int, int]], plan: Plan) -> dict[int, int]:
    """How much of each step is in any of these times, which may overlap."""
    found: dict[int, int] = {}
    done = plan.start
    for start, until in sorted(times):
        at, end = max(start, done), min(until, plan.end)
        while at < end:
            step = floor(at, plan.step_s)
            edge = min(step + plan.step_s, end)
            found[step] = found.get(step, 0) + edge - at
            at = edge
        done = max(done, end)
    return found


def windows_of(start: int, end: int, step_s: int) -> Iterator[Windows]:
    """Steps of [start, end): those that are whole at once, the first and the last by themselves where they are not."""
    if start % step_s:
        first = min(end, floor(start, step_s) + step_s)
        yield Windows(first, first, step_s, first - start)
        start = first
    whole = floor(end, step_s)
    if whole > start:
        yield Windows(start + step_s, whole, step_s, step_s)
        start = whole
    if end > start:
        yield Windows(end, end, step_s, end - start)
