"""When clients had to wait, as spells: what the timeline and the charts say of throttling, instead of an interval a minute.

The flight recorder tells intervals of a minute at most (quota.md). Intervals of an instance and a direction between which less
than GAP_S passes are one spell. A spell is over once that has passed since its last interval and the next would have been told:
until then nobody can say that it has ended. An interval that comes late makes a spell longer, or joins two.

Joining may be repeated, and done by two workers at once: it changes nothing. It goes on where it was, and looks at the last
AGAIN_S before that again. Intervals that are told later than that, because a journal could not be read, are on the page Quota and
in no spell, as they are in no minute of the history.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.alarms.models import ThrottledMark, ThrottledSpell
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.history.selectors import TOLD_WITHIN_S
from controlplane.quotas.history import LONGEST_MS, waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GAP_S = 60
OVER_AFTER = timedelta(seconds=GAP_S + 2 * TOLD_WITHIN_S)
AGAIN_S = 300
KEPT_S = 7 * 86_400
"""So long intervals are kept."""
PORTION_S = 3600
PORTIONS_AT_ONCE = 24
WRITTEN_AT_ONCE = 500
MARK = 1
MS = 1000

Span = tuple[int, int]
"""Its beginning and its end, in ms since 1970."""


def spells_join(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Make spells of the intervals that have come. Beat has it done every 30 s."""
    now_s = int(clock.now().timestamp())
    for _ in range(PORTIONS_AT_ONCE):
        if not _portion(now_s):
            break


def joined(spans: Iterable[Span], gap_ms: int = GAP_S * MS) -> list[Span]:
    """Those between which no more than the gap passes as one, in their order. Pure."""
    found: list[Span] = []
    for began, until in sorted(spans):
        if found and began - found[-1][1] <= gap_ms:
            found[-1] = found[-1][0], max(found[-1][1], until)
        else:
            found.append((began, until))
    return found


def _portion(now_s: int) -> bool:
    """Whether there may be more. A mark of a clock that was ahead is set back."""
    mark, _ = ThrottledMark.objects.get_or_create(pk=MARK, defaults={"at": now_s - KEPT_S})
    start = min(mark.at, now_s) - AGAIN_S
    end = min(start + AGAIN_S + PORTION_S, now_s)
    with transaction.atomic():
        # Whoever is second waits here for the first, and finds another mark, or what the first has written.
        if not ThrottledMark.objects.filter(pk=mark.pk, at=mark.at).update(at=end):
            return False
        _join(start, end)
    return end < now_s


def _join(start_s: int, end_s: int) -> None:
    spans: defaultdict[tuple[str, str], list[Span]] = defaultdict(list)
    for wait in waits(start_ms=start_s * MS, end_ms=end_s * MS):
        spans[wait.instance, wait.direction].append((wait.started_at_ms, wait.ended_at_ms))
    if not spans:
        return
    oldest = _moment(start_s * MS - LONGEST_MS - GAP_S * MS)
    rows: defaultdict[tuple[str, str], list[ThrottledSpell]] = defaultdict(list)
    for row in ThrottledSpell.objects.filter(until_at__gte=oldest).order_by("began_at"):
        rows[row.instance, row.direction].append(row)
    new: list[ThrottledSpell] = []
    changed: list[ThrottledSpell] = []
    gone: list[int] = []
    for key, some in spans.items():
        _compared(key, joined([*some, *map(_span, rows[key])]), rows[key], new=new, changed=changed, gone=gone)
    for part in portions(gone, WRITTEN_AT_ONCE):  # before the others: one of these may begin as they do now
        ThrottledSpell.objects.filter(pk__in=part).delete()
    ThrottledSpell.objects.bulk_update(changed, ["began_at", "until_at"], batch_size=WRITTEN_AT_ONCE)
    ThrottledSpell.objects.bulk_create(new, batch_size=WRITTEN_AT_ONCE, ignore_conflicts=True)


def _compared(
    key: tuple[str, str],
    wanted: Sequence[Span],
    rows: Sequence[ThrottledSpell],
    *,
    new: list[ThrottledSpell],
    changed: list[ThrottledSpell],
    gone: list[int],
) -> None:
    """What is to be written so that there is a row for each span: the first row in it becomes it, others in it go."""
    for began, until in wanted:
        there = [row for row in rows if began <= _span(row)[0] <= until]
        gone += [row.pk for row in there[1:]]
        if not there:
            new.append(
                ThrottledSpell(instance=key[0], direction=key[1], began_at=_moment(began), until_at=_moment(until))
            )
        elif _span(there[0]) != (began, until):
            there[0].began_at, there[0].until_at = _moment(began), _moment(until)
            changed.append(there[0])


def _span(row: ThrottledSpell) -> Span:
    return _ms(row.began_at), _ms(row.until_at)


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * MS)


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / MS, UTC)
