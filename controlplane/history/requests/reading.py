"""Counts of requests by step, from the longest rows that fit: those of a day are exact sums as well.

Where nothing was asked there are no rows. Whether that was so, or is not known, the mark and the gaps of the instance's cluster
say.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from controlplane.history.models import RequestDay, RequestGap, RequestMark, RequestSample, RequestTotal, RolledUp
from controlplane.history.requests.sampling import LEVELS, mark_name
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES, floor
from controlplane.history.store.client import StoreAway
from controlplane.history.store.reading import request_rows
from controlplane.history.store.spans import FLOW, REQUESTS, gone_of, parts_of, seconds_by_step
from controlplane.history.together import once
from controlplane.instances.models import Instance
from quota.contracts.requests import WINDOW_S, RequestCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from controlplane.history.models import RequestRow
    from controlplane.history.resolutions import Plan
    from controlplane.history.store.spans import Part

LOG = logging.getLogger(__name__)
NOTHING = RequestCounts()
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counted:
    """By the beginning of a step, those in which anything was asked. Steps up to `known_to` are known."""

    known_to: int = 0
    counts: Mapping[int, RequestCounts] = field(default_factory=dict)
    windows: Mapping[int, int] = field(default_factory=dict)  # in which anything was asked
    missing: Mapping[int, int] = field(default_factory=dict)  # seconds of which nothing is known
    unsampled: Mapping[int, int] = field(default_factory=dict)  # seconds of which nobody can tell the samples any more
    plan: Plan | None = None  # whose steps they are
    is_complete: bool = True  # False: the metrics store does not answer, and what only it has is not known

    def seconds(self, at: int, step_s: int, samples: int) -> int:
        """Of how much of a step anything is known, `samples` of it having been sampled; 0: of nothing.

        Where samples are in a store that does not answer, requests say that the step is known, if there were any.
        """
        if at >= self.known_to:
            return 0
        most = min(step_s, self.known_to - at) - self.missing.get(at, 0)
        windows = self.windows.get(at, 0)
        return max(0, min(most, WINDOW_S * max(samples, windows) + (self.unsampled.get(at, 0) if windows else 0)))

    def of(self, at: int) -> RequestCounts:
        """Of one step."""
        return self.counts.get(at, NOTHING)


def counted(instance: Instance, plan: Plan) -> Counted:
    """Of the steps of a plan. The caller has the instance from a selector within its organisation."""
    return _counted(instance, plan, RequestCounts.add_text)


def carried(instance: Instance, plan: Plan) -> Counted:
    """The same, of which only the bytes that were carried are read: of two weeks of minutes in a tenth of the time."""
    return _counted(instance, plan, RequestCounts.add_carried, only="")  # they are of no API


def _counted(
    instance: Instance, plan: Plan, add: Callable[[RequestCounts, str], None], *, only: str | None = None
) -> Counted:
    found, rows = texts_of(instance.pk, instance.cluster_id, plan, "counts", only=only)
    counts: dict[int, RequestCounts] = {}
    for step, text in rows:
        add(counts.setdefault(step, RequestCounts()), text or "{}")
    return replace(found, counts=counts)


def texts_of(
    name: str, cluster_id: int, plan: Plan, column: str, *, only: str | None = None
) -> tuple[Counted, list[tuple[int, str | None]]]:
    """Of an instance, or a broker, in the steps of a plan: what is known of them, and one column of its rows by their step."""
    return read_of(name, cluster_id, plan, column, lambda text: text, only=only)


def read_of(
    name: str,
    cluster_id: int,
    plan: Plan,
    column: str,
    read: Callable[[str | None], T],
    *,
    only: str | None = None,
) -> tuple[Counted, list[tuple[int, T]]]:
    """The same, of which what `read` makes of each text is kept alone: they may be thousands, of many kilobytes.

    `only`: the one topic, broker or API that is needed. A text from the metrics store has no other; one from here may have all.
    """
    mark = once(mark_name(cluster_id), lambda: RequestMark.objects.filter(pk=mark_name(cluster_id)).first())
    if mark is None:
        return Counted(plan=plan), []
    of_rows = plan  # requests have rows of hours also where figures of so late a time are in minutes
    if plan.resolution is not SAMPLES:
        of_rows = replace(plan, resolution=HOURS if plan.step_s % HOURS.step_s == 0 else MINUTES)
    parts = parts_of(of_rows, REQUESTS)
    texts: list[tuple[int, T]] = []
    windows: dict[int, int] = {}
    is_complete = True

    def keep(rows: Iterable[tuple[int, int, str | None]]) -> None:
        for step, count, text in rows:
            texts.append((step, read(text)))
            windows[step] = windows.get(step, 0) + count

    answered: list[Part] = []
    is_away = False
    for part in parts:
        if part.store is not None:
            try:
                keep(request_rows(name, of_rows, part, column, only))
                answered.append(part)
            except StoreAway as error:
                LOG.warning("the metrics store does not answer: %s", error)
                is_away = True
                is_complete = is_complete and part.is_here
    model: type[RequestRow] = RequestSample
    if plan.resolution is not SAMPLES:
        levels = LEVELS[:-1] if answered else LEVELS  # a day may begin in the store and end here
        model = next(model for model, step_s in reversed(levels) if plan.step_s % step_s == 0)
    gone = [] if model is RequestDay else gone_of(of_rows, REQUESTS, answered)  # of days all rows are here
    unsampled = gone_of(plan, FLOW, [] if is_away else [part for part in parts_of(plan, FLOW) if part.store])
    for part in parts:
        if part not in answered:
            keep(_rows_here(model, name, plan, part, column, gone))
    known_to = mark.taken + WINDOW_S if model is RequestSample else min(mark.rolled, _rolled_up_to(plan, mark.rolled))
    found = Counted(
        known_to,
        windows=windows,
        missing=seconds_by_step([*_gaps(mark.pk, plan), *gone], plan),
        unsampled=seconds_by_step(unsampled, plan),
        plan=plan,
        is_complete=is_complete and not gone and not unsampled,
    )
    return found, texts


def _rows_here(
    model: type[RequestRow], name: str, plan: Plan, part: Part, column: str, gone: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int, str | None]]:
    """Without those that are about to be removed: their time counts as not known."""
    rows = model._default_manager.filter(instance=name, at__gte=part.start, at__lt=part.end)  # noqa: SLF001
    for start, end in gone:
        if start < part.end and end > part.start:
            rows = rows.exclude(at__gte=start, at__lt=end)
    for at, count, text in rows.values_list("at", "windows", column).iterator():
        yield floor(at, plan.step_s), count, text


def _rolled_up_to(plan: Plan, nothing: int) -> int:
    """Up to when samples have been made longer; `nothing` where there never were any.

    Requests are made so a moment sooner: without its samples a minute would be taken for the seconds in which anything was asked.
    """
    step_s = plan.resolution.step_s
    until = once(step_s, lambda: RolledUp.objects.filter(pk=step_s).values_list("until", flat=True).first())
    return nothing if until is None else until


def _gaps(name: str, plan: Plan) -> list[tuple[int, int]]:
    gaps = RequestGap.objects.filter(name=name, until__gt=plan.start, at__lt=plan.end)
    return list(gaps.values_list("at", "until"))


def known_ends(names: Sequence[str], now_s: int, seconds: int, fresh_s: int) -> dict[str, int]:
    """Of those of these instances of which the last so many seconds are known, and ended not more than `fresh_s` ago: when."""
    marks = dict(RequestMark.objects.values_list("pk", "taken"))
    recent = RequestGap.objects.filter(until__gt=now_s - fresh_s - seconds)
    gaps = dict(recent.order_by("until").values_list("name", "until"))  # the last of each cluster
    known: dict[str, int] = {}
    rows = Instance.objects.unscoped("which cluster an instance is on").filter(pk__in=names)
    for name, cluster in rows.values_list("pk", "cluster"):
        end = marks.get(mark_name(cluster), 0) + WINDOW_S
        if now_s - fresh_s <= end <= now_s and gaps.get(mark_name(cluster), 0) <= end - seconds:
            known[name] = end
    return known


def texts_lately(
    names: Sequence[str], column: str, now_s: int, seconds: int, fresh_s: int
) -> dict[str, list[str | None]]:
    """Of these instances what a column of their windows has of the last so many seconds, if they are known.

    They ended not more than `fresh_s` ago. Where nothing happened there is no text; an instance that is not known of is left
    out.
    """
    ends = known_ends(names, now_s, seconds, fresh_s) if names else {}
    found: dict[str, list[str | None]] = {name: [] for name in ends}
    if not ends:
        return found
    rows = RequestSample.objects.filter(
        instance__in=list(ends), at__gte=min(ends.values()) - seconds, at__lt=max(ends.values())
    )
    for name, at, text in rows.values_list("instance", "at", column):
        if ends[name] - seconds <= at < ends[name]:
            found[name].append(text)
    return found


def lately(names: Sequence[str], now_s: int, seconds: int, fresh_s: int) -> dict[str, RequestCounts]:
    """Of these instances: the last so many seconds, if they are known and ended not more than `fresh_s` ago."""
    found: dict[str, RequestCounts] = {}
    for name, texts in texts_lately(names, "counts", now_s, seconds, fresh_s).items():
        counts = found[name] = RequestCounts()
        for text in filter(None, texts):
            counts.add_text(text)
    return found


def totals_of(instance: str) -> RequestCounts | None:
    """All that was ever counted; it only grows. None: nothing was.

    Without what was carried while brokers of an earlier release have part in it: sums that stand still would look like no flow.
    """
    total = RequestTotal.objects.filter(pk=instance).first()
    since = 0 if total is None else total.until
    texts = list(
        RequestSample.objects.filter(instance=instance, at__gte=since).order_by("at").values_list("counts", flat=True)
    )
    if total is None and not texts:
        return None
    found = RequestCounts()
    for text in ([] if total is None else [total.counts]) + texts:
        found.add_text(text)
    if texts and not RequestCounts.joined(texts[-1:]).carried_windows:
        found.carried_windows = 0
    return found
