"""Hours of minutes, and forgetting.

roll up  an hour is made once, some time after it is over: nothing of a minute comes later. Its sums are those of its minutes, so
         that an average over hours is the one over all minutes. An hour in which a group had read everything makes the row of the
         hour before longer, if that was one, too.
purge    rows that nobody can ask for any more, minutes only when they are in hours; and groups of which there is no row left.
"""

from __future__ import annotations

from django.db import connection, transaction
from django.db.models import Exists, Min, OuterRef

from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.portions import portions
from controlplane.history.forgetting import PORTIONS_AT_ONCE, forget
from controlplane.history.lag import samples
from controlplane.history.lag.rows import MS, NOTHING_LEFT, RUN_S
from controlplane.history.models import LagGroup, LagHours, LagMark, LagMinutes, LagSample
from controlplane.history.resolutions import HOURS, MINUTES, SAMPLES, floor

SETTLED_S = 180
"""After an hour's end: whoever has its last minute has written it."""
HOURS_AT_ONCE = 48
GROUPS_AT_ONCE = 1000
HOURS_MARK = "hours"


def roll_up(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Make the hours that are over."""
    end = floor(int(clock.now().timestamp()) - SETTLED_S, HOURS.step_s)
    for _ in range(HOURS_AT_ONCE):
        mark = _mark(end)
        if mark.at >= end:
            return
        at = _next(mark.at, end)
        with transaction.atomic():
            ours = LagMark.objects.filter(pk=mark.pk, at=mark.at).update(at=min(at + HOURS.step_s, end))
            if ours and at < end:
                _hour_made(at)


def _mark(end: int) -> LagMark:
    """The first time, the hour of the oldest row. What a clock that was ahead has made is made again."""
    found = LagMark.objects.filter(pk=HOURS_MARK).first()
    if found is None:
        oldest = LagMinutes.objects.filter(at__lt=end).aggregate(least=Min("at"))["least"]
        begins = end if oldest is None else floor(oldest, HOURS.step_s)
        found, _ = LagMark.objects.get_or_create(pk=HOURS_MARK, defaults={"at": begins})
    if found.at > end:
        LagMark.objects.filter(pk=found.pk, at=found.at).update(at=end)
        found.at = end
    return found


def _next(at: int, end: int) -> int:
    """The first hour from then on of which there are minutes: where there are none, an hour that was made before stays."""
    oldest = LagMinutes.objects.filter(at__gte=at, at__lt=end).aggregate(least=Min("at"))["least"]
    return end if oldest is None else floor(oldest, HOURS.step_s)


def _hour_made(at: int) -> None:
    # Of a clock that was ahead there may be an hour that was not over, alone or at the end of a run.
    LagHours.objects.filter(at=at).delete()
    runs = LagHours.objects.filter(at__gte=floor(at, RUN_S[HOURS]), at__lt=at, until__gte=at)
    runs.update(until=at - HOURS.step_s)
    with connection.cursor() as cursor:
        cursor.execute(_HOUR, [at, at, at, at + HOURS.step_s])
    if at == floor(at, RUN_S[HOURS]):
        return
    nothing = {"messages_max": 0, "seconds_max": 0.0, "size_max": 0}
    same = {name: OuterRef(name) for name in ("group", "samples", "sized", "moved", "consumed_sum", "produced_sum")}
    now = LagHours.objects.filter(at=at, **same, **nothing)
    before = LagHours.objects.filter(until=at - HOURS.step_s, at__gte=floor(at, RUN_S[HOURS]), **nothing).filter(
        Exists(now)
    )
    longer = list(before.values_list("group", flat=True))
    for part in portions(longer, GROUPS_AT_ONCE):
        LagHours.objects.filter(group__in=part, at=at).delete()
        LagHours.objects.filter(group__in=part, until=at - HOURS.step_s).update(until=at)


def _statement() -> str:
    """The minutes of an hour, as a row of each group. An age grows evenly within a run, so its first and last are its average."""
    table, minutes = LagHours._meta.db_table, LagMinutes._meta.db_table  # noqa: SLF001  # Django's documented API, despite its name
    count = f"((until - at) / {MINUTES.step_s} + 1)"
    first, last = (_age(moment) for moment in ("at", "until"))
    return (
        f'INSERT INTO {table} ("group", at, until, samples, dated, messages_sum, messages_max, seconds_sum, seconds_max, '  # noqa: S608  # our own names
        f"sized, size_sum, size_max, moved, consumed_sum, produced_sum) "
        f'SELECT "group", %s, %s, SUM({count}), SUM(CASE WHEN oldest_ms IS NULL THEN 0 ELSE {count} END), '
        f"SUM(messages * {count}), MAX(messages), "
        f"COALESCE(SUM({count} * ({first} + {last}) / 2.0), 0), MAX({last}), "
        f"SUM(CASE WHEN size IS NULL THEN 0 ELSE {count} END), SUM(size * {count}), MAX(size), "
        f"SUM(CASE WHEN consumed IS NULL THEN 0 ELSE {count} END), "
        f"COALESCE(SUM(consumed * {count}), 0), COALESCE(SUM(produced * {count}), 0) "  # 0: hours of nothing are one row
        f'FROM {minutes} WHERE at >= %s AND at < %s GROUP BY "group" ON CONFLICT DO NOTHING'
    )


def _age(moment: str) -> str:
    """In seconds; null where it is not known."""
    return f"CASE WHEN oldest_ms = {NOTHING_LEFT} THEN 0.0 ELSE {moment} + late_s - oldest_ms / {MS}.0 END"


_HOUR = _statement()


def purge(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Remove what is older than anybody may ask for."""
    now_s = int(clock.now().timestamp())
    mark = LagMark.objects.filter(pk=HOURS_MARK).first()
    rolled_s = mark.at if mark is not None else 0
    for model, limit, portion_s in (
        (LagSample, floor(SAMPLES.oldest(now_s), samples.RUN_S), MINUTES.step_s),
        (LagMinutes, min(floor(MINUTES.oldest(now_s), RUN_S[MINUTES]), rolled_s), HOURS.step_s),
        (LagHours, floor(HOURS.oldest(now_s), RUN_S[HOURS]), RUN_S[HOURS]),
    ):
        forget(model, limit, portion_s)
    _groups_purged()


def _groups_purged() -> None:
    rows = [Exists(model.objects.filter(group=OuterRef("pk"))) for model in (LagMinutes, LagHours)]
    gone = LagGroup.objects.filter(~rows[0], ~rows[1])
    for _ in range(PORTIONS_AT_ONCE):
        some = list(gone.values_list("pk", flat=True)[:GROUPS_AT_ONCE])
        if not some or not gone.filter(pk__in=some).delete()[0]:  # a row may have come meanwhile
            break
