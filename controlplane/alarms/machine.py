"""What one look makes of an alarm. Pure.

::

                 holds                 held for its duration
       ok  ──────────────> pending ───────────────────────────> firing
        ^                     │                                   │
        │   does not hold     │           does not hold           │
        └─────────────────────┴───────────────────────────────────┘
       any of them ── no value for 90 s ──> no data ── a value ──> as it says

A rule without a duration fires at the first look at which it holds. *No data* is a state of its own: it takes back a pending
alarm, of whose time nobody can say that the condition held, and it never resolves a firing one: `firing_since` outlives it, and
the next value decides. A look or two without a value change nothing: a master that is replaced is away for seconds. Where nobody
has looked for as long, a pending alarm begins anew, too: of that time nobody can say anything either.

What receivers are told stands beside what is: they are told when what they were told last differs from what is, and again after
the repeat interval while it fires. A *silence* holds that back and changes no state; when it ends, what differs is told. So an
alarm that fired and was resolved in a silence is never told, and one that still fires is.

That there are no values is told where the rule wants it (`tells_no_data`), and is then one more thing that receivers may have
been told last: with the next value they are told how the alarm is, firing or over. While the condition holds, but not for long
enough yet, it is neither: they are told when it fires, or when it does not hold any more.

A look that is not later than the one before is for nothing: two workers may look at once, and the slower one comes too late.
Where the clock was ahead and is set right, moments that are still to come are taken to be now (`set_back`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

NO_DATA_AFTER = timedelta(seconds=90)


class Phase(StrEnum):
    """How an alarm is."""

    OK = "ok"
    PENDING = "pending"  # the condition holds, not for long enough yet
    FIRING = "firing"
    NO_DATA = "no_data"  # there has been no value for a while


PHASES = [phase.value for phase in Phase]


class EventKind(StrEnum):
    """What happens to an alarm."""

    PENDING = "pending"
    CLEARED = "cleared"  # the condition ended before its time was over
    FIRED = "fired"
    RESOLVED = "resolved"
    NO_DATA = "no_data"
    DATA = "data"  # there are values again, and it is as it was before, or ok
    TOLD = "told"  # nothing changed: receivers were told again, or after a silence


EVENT_KINDS = [kind.value for kind in EventKind]


class Telling(StrEnum):
    """What receivers are told."""

    FIRING = "firing"
    RESOLVED = "resolved"
    NO_DATA = "no_data"


@dataclass(frozen=True, slots=True)
class Condition:
    """An alarm between two looks. `since` is of the phase; `told_at` of the last message that it fires, or has no data.

    `told`: that it fires; `told_no_data`: and since then, or instead, that there are no values.
    """

    since: datetime
    seen_at: datetime  # the last value, or the beginning
    looked_at: datetime | None = None
    phase: Phase = Phase.OK
    firing_since: datetime | None = None
    told: bool = False
    told_at: datetime | None = None
    told_no_data: bool = False

    @property
    def last_told(self) -> Telling:
        """What receivers know. Who was never told anything knows as much as one who was told that it is over."""
        if self.told_no_data:
            return Telling.NO_DATA
        return Telling.FIRING if self.told else Telling.RESOLVED


@dataclass(frozen=True, slots=True)
class Look:
    """`holds`: None is no value."""

    at: datetime
    holds: bool | None
    is_silenced: bool = False


@dataclass(frozen=True, slots=True)
class Happened:
    """One event; `tells`: with a message."""

    kind: EventKind
    tells: Telling | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What has become of an alarm, and what happened on the way: nothing, a change, a message, or both."""

    condition: Condition
    happened: tuple[Happened, ...] = ()


def looked(
    before: Condition, look: Look, *, duration_s: int, repeat_s: int | None, tells_no_data: bool = False
) -> Step:
    """One look at an alarm."""
    if before.looked_at is not None and look.at <= before.looked_at:
        return Step(before)
    after, kind = _changed(before, look, timedelta(seconds=duration_s))
    after = replace(after, looked_at=look.at, seen_at=before.seen_at if look.holds is None else look.at)
    return _told(after, kind, look, repeat_s, tells_no_data=tells_no_data)


def reset(before: Condition, at: datetime, *, is_silenced: bool) -> Step:
    """The rule is another one now, or none: what was firing by the one before is over."""
    kind = {Phase.OK: None, Phase.PENDING: EventKind.CLEARED, Phase.NO_DATA: EventKind.DATA}.get(before.phase)
    if before.firing_since is not None:
        kind = EventKind.RESOLVED
    since = before.since if before.phase is Phase.OK else at
    after = replace(before, phase=Phase.OK, since=since, firing_since=None, seen_at=at)
    return _told(after, kind, Look(at, None, is_silenced), None)


def set_back(before: Condition, at: datetime) -> Condition:
    """The same, of which nothing is later than `at`; the next look counts, whenever it is."""
    return replace(
        before,
        since=min(before.since, at),
        seen_at=min(before.seen_at, at),
        looked_at=None,
        firing_since=before.firing_since and min(before.firing_since, at),
        told_at=before.told_at and min(before.told_at, at),
    )


def _changed(before: Condition, look: Look, duration: timedelta) -> tuple[Condition, EventKind | None]:
    if look.holds is None:
        if before.phase is Phase.NO_DATA or look.at - before.seen_at < NO_DATA_AFTER:
            return before, None
        return replace(before, phase=Phase.NO_DATA, since=look.at), EventKind.NO_DATA
    if look.holds:
        return _holding(before, look.at, duration)
    if before.firing_since is not None:
        return replace(before, phase=Phase.OK, since=look.at, firing_since=None), EventKind.RESOLVED
    if before.phase is Phase.OK:
        return before, None
    kind = EventKind.CLEARED if before.phase is Phase.PENDING else EventKind.DATA
    return replace(before, phase=Phase.OK, since=look.at), kind


def _holding(before: Condition, at: datetime, duration: timedelta) -> tuple[Condition, EventKind | None]:
    if before.phase is Phase.FIRING:
        return before, None
    if before.firing_since is not None:
        return replace(before, phase=Phase.FIRING, since=before.firing_since), EventKind.DATA
    is_unseen = before.looked_at is not None and at - before.looked_at > NO_DATA_AFTER
    is_pending = before.phase is Phase.PENDING and not is_unseen
    began = before.since if is_pending else at
    if at - began >= duration:
        return replace(before, phase=Phase.FIRING, since=at, firing_since=at), EventKind.FIRED
    if is_pending:
        return before, None
    return replace(before, phase=Phase.PENDING, since=at), EventKind.PENDING


def _told(
    after: Condition, kind: EventKind | None, look: Look, repeat_s: int | None, *, tells_no_data: bool = False
) -> Step:
    """With what receivers are told, if anything."""
    tells = None if look.is_silenced else _telling(after, look.at, repeat_s, tells_no_data=tells_no_data)
    if tells is Telling.FIRING:
        after = replace(after, told=True, told_at=look.at, told_no_data=False)
    elif tells is Telling.RESOLVED:
        after = replace(after, told=False, told_at=None, told_no_data=False)
    elif tells is Telling.NO_DATA:
        after = replace(after, told_at=look.at, told_no_data=True)
    own = {
        Telling.FIRING: EventKind.FIRED,
        Telling.RESOLVED: EventKind.RESOLVED,
        Telling.NO_DATA: EventKind.NO_DATA,
    }
    if tells is not None and kind is own[tells]:
        return Step(after, (Happened(kind, tells),))
    happened = () if kind is None else (Happened(kind),)
    return Step(after, happened if tells is None else (*happened, Happened(EventKind.TOLD, tells)))


def _telling(after: Condition, at: datetime, repeat_s: int | None, *, tells_no_data: bool) -> Telling | None:
    is_due = repeat_s is not None and after.told_at is not None and at - after.told_at >= timedelta(seconds=repeat_s)
    if after.phase is Phase.NO_DATA and (tells_no_data or after.told_no_data):
        if not tells_no_data:
            return None  # the rule was another one when it was told: the next value says more
        return Telling.NO_DATA if is_due or not after.told_no_data else None
    if after.phase is Phase.PENDING and after.told_no_data:
        return None  # it holds: to say that it is over would be wrong, and it does not fire yet
    is_firing = after.firing_since is not None
    if after.told_no_data or is_firing != after.told:
        return Telling.FIRING if is_firing else Telling.RESOLVED
    return Telling.FIRING if is_firing and is_due else None
