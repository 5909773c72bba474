"""Which hours are final: every broker has told all that it counted under them, or an operator does not wait for it.

A broker counts by itself, and tells it later: one that died in an hour tells what stood in its counters when it is back, be it
after a week. So to have read all of `__usage` says nothing about brokers that are away. Each says which hours it has told in full
(quota/contracts/usage.py, `HoursComplete`; pipeline/statements.py); an hour is final once all have that ever registered, and for
every boot of theirs that has told usage of it.

An operator waives a broker that will not come back, or that has lost what it counted, by name. The waiver holds for the hours
that had passed, and for later ones as long as the broker stays away: not for an absence that begins later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from django.db import transaction

from controlplane.clusters.models import Broker
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.metering.models import Boot as BootRow
from controlplane.metering.models import BrokerWaiver
from controlplane.metering.models import Statement as Row
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from controlplane.metering.pipeline.statements import Boot, Statement, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HOUR = timedelta(hours=1)
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class BrokerHours:
    """What is known of one broker, from what has been read for certain. Moments are ends of hours: all before them is told."""

    broker: int
    told_to: datetime | None  # None: it has not said
    says_to: datetime | None  # the same, with what will be certain once all has been read that was written before
    said_at: datetime | None
    gap_at: datetime | None  # since when it does not see what it had counted before
    gap_boot: str
    away_since: datetime | None
    waived: BrokerWaiver | None  # the last one
    lost_boots: tuple[str, ...] = ()  # whose counters it does not see
    open_boots: tuple[str, ...] = ()  # that have told usage of hours which are not told in full
    cluster: str = DEFAULT_CLUSTER

    def owes(self, until: datetime) -> bool:
        """Whether usage before `until` waits for it."""
        return (self.told_to or _NEVER) < until and not self._is_waived(until)

    def _is_waived(self, until: datetime) -> bool:
        waived = self.waived
        return waived is not None and (self.is_let_go or end_of(waived.hour) >= until)

    @property
    def is_let_go(self) -> bool:
        """Whether it has been away without a break since it was waived: one that came back and left again owes anew."""
        return self.waived is not None and self.away_since is not None and self.away_since <= self.waived.at

    @property
    def final_to(self) -> datetime:
        """Up to when usage does not wait for it."""
        waived = self.waived
        if waived is None:
            return self.told_to or _NEVER
        return datetime.max.replace(tzinfo=UTC) if self.is_let_go else max(self.told_to or _NEVER, end_of(waived.hour))

    def waits(self, now: datetime) -> bool:
        """Whether hours wait for it that ended more than an hour ago, and not for metering alone."""
        until = _down(now) - _HOUR
        return (self.says_to or _NEVER) < until and self.owes(until)

    @property
    def sentence(self) -> str:
        """What it has told, for operators."""
        text = (
            "has not said yet which hours it has told"
            if self.told_to is None
            else f"has told all up to {_text(self.told_to)}"
        )
        if self.gap_at is not None:
            boots = f" (boot {', '.join(self.lost_boots)})" if self.lost_boots else ""
            text += f", and since {_text(self.gap_at)} it does not see what it had counted before{boots}: is a disk missing?"
        elif self.says_to != self.told_to:
            text += ", and more that counts once metering has read what was written before it"
        elif self.away_since is not None:
            text += f", and has been away since {_text(self.away_since)}"
        return f"broker {self.broker} {text}"

    def waiting(self, until: datetime) -> Waiting | None:
        """What usage before `until` waits for of this broker; None: for nothing."""
        if not self.owes(until):
            return None
        return Waiting(self.broker, self.told_to, until, self.boots, self.sentence)

    @property
    def boots(self) -> tuple[str, ...]:
        """Those that hours which are not told in full are about, as far as they are known."""
        return self.lost_boots or self.open_boots


@dataclass(frozen=True, slots=True)
class Waiting:
    """A broker whose word is missing, and of which hours and boots it is."""

    broker: int
    start: datetime | None  # hours from here on; None: it has never given its word
    end: datetime
    boots: tuple[str, ...]  # those it has to account for, as far as they are known
    sentence: str

    @property
    def hours(self) -> int | None:
        """How many; None: not known where they begin."""
        return None if self.start is None else int((self.end - self.start) / _HOUR)


def broker_hours(read_to: datetime | None, cluster: str = DEFAULT_CLUSTER) -> list[BrokerHours]:
    """Of every broker of a cluster that ever registered or spoke, by id.

    `read_to`: all that was written to its `__usage` before has been read.
    """
    said, boots = _statements(cluster), _boots(cluster)
    judged = set(BrokerWaiver.objects.exclude(boot="").values_list("boot", flat=True))
    waived = {row.broker: row for row in BrokerWaiver.objects.filter(cluster=cluster).order_by("pk")}
    away = dict(Broker.objects.filter(cluster__name=cluster).values_list("broker_id", "away_since"))
    found = []
    for broker in sorted({*away, *said, *boots}):
        of_broker, counted = said.get(broker, []), boots.get(broker, [])
        certain = told(
            [each for each in of_broker if read_to is not None and _moment(each.said_at_ms) <= read_to], judged, counted
        )
        uncertain = told(of_broker, judged, counted)
        gap = uncertain.gap  # said at once
        last = () if certain.last is None else (certain.last.boot,)
        told_to = end_of(certain.hour) if certain.hour else None
        unheard = (boot.boot for boot in counted if told_to is None or end_of(boot.last_hour) > told_to)
        found.append(
            BrokerHours(
                broker,
                told_to,
                end_of(uncertain.hour) if uncertain.hour else None,
                _moment(certain.last.said_at_ms) if certain.last else None,
                _moment(gap.said_at_ms) if gap else None,
                gap.boot if gap else "",
                away.get(broker),
                waived.get(broker),
                uncertain.lost,
                tuple(dict.fromkeys((*last, *unheard))),
                cluster,
            )
        )
    return found


def _statements(cluster: str) -> dict[int, list[Statement]]:
    found = Row.objects.filter(cluster=cluster).order_by("broker", "pk")
    rows = found.values_list("pk", "broker", "hour", "boot", "after", "said_at_ms")
    all_of_them = (Statement(*row[:4], tuple(filter(None, row[4].split(","))), row[5]) for row in rows)
    return {broker: list(some) for broker, some in groupby(all_of_them, key=lambda each: each.broker)}


def _boots(cluster: str) -> dict[int, list[Boot]]:
    """Those of a cluster that no statement accounts for that was dropped."""
    rows = BootRow.objects.filter(cluster=cluster, is_told=False).order_by("broker", "first_at_ms", "boot")
    found = (Boot(*row) for row in rows.values_list("broker", "boot", "first_hour", "last_hour", "first_at_ms"))
    return {broker: list(some) for broker, some in groupby(found, key=lambda boot: boot.broker)}


def waiting_for(brokers: Iterable[BrokerHours], *, until: datetime) -> list[Waiting]:
    """Whom usage before a moment waits for, with the hours and boots that it is about; empty: it is final."""
    found = (broker.waiting(_up(until)) for broker in brokers)
    return [each for each in found if each is not None]


def why_not_final(brokers: Sequence[BrokerHours], *, until: datetime) -> str:
    """Whom usage before a moment waits for, in a sentence for operators; empty: it is final."""
    if not brokers:
        return "no broker has registered yet"
    owing = [broker for broker in brokers if broker.owes(_up(until))]
    if not owing:
        return ""
    others = f", and {len(owing) - 1} more" if len(owing) > 1 else ""
    return f"{owing[0].sentence}; it must come to {_text(_up(until))}{others}"


def has_waived(brokers: Iterable[BrokerHours], *, until: datetime) -> bool:
    """Whether usage before a moment is final only because somebody is not waited for."""
    return any((broker.told_to or _NEVER) < _up(until) for broker in brokers)


def waivers_applied(brokers: Iterable[BrokerHours], *, until: datetime) -> list[BrokerWaiver]:
    """The waivers without which usage before a moment would wait for these brokers."""
    late = (broker for broker in brokers if (broker.told_to or _NEVER) < _up(until) and not broker.owes(_up(until)))
    return [broker.waived for broker in late if broker.waived is not None]


def final_to(brokers: Iterable[BrokerHours], *, read_to: datetime | None) -> datetime | None:
    """The end of the last hour that is final; None: no hour is known to be."""
    if read_to is None:
        return None
    found = min((broker.final_to for broker in brokers), default=_NEVER)
    return None if found == _NEVER else min(_down(read_to), found)


@transaction.atomic
def broker_waive(
    *,
    broker: int,
    reason: str,
    actor: str,
    read_to: datetime | None,
    cluster: str = DEFAULT_CLUSTER,
    clock: Clock = SYSTEM_CLOCK,
) -> BrokerWaiver:
    """Usage waits no longer for this broker, as it is now. Raises NotFound, Invalid, Conflict."""
    if not reason.strip():
        raise Invalid.field("reason", "must say why")
    known = {row.broker: row for row in broker_hours(read_to, cluster)}
    if broker not in known:
        raise NotFound(f"there is no broker {broker}")
    now, about = clock.now(), known[broker]
    if not about.waits(now):
        raise Conflict(f"usage does not wait for broker {broker}", code="nothing_waits")
    return BrokerWaiver.objects.create(
        cluster=cluster, broker=broker, hour=_hour_text(_down(now) - _HOUR), boot=about.gap_boot, reason=reason.strip(),
        waited_for=about.sentence, at=now, by=actor,
    )  # fmt: skip


def end_of(hour: str) -> datetime:
    """Of an hour as records write it. One that no calendar has is as late as can be."""
    try:
        return datetime.fromisoformat(hour) + _HOUR
    except (ValueError, OverflowError):
        return datetime.max.replace(tzinfo=UTC)


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _down(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def _up(moment: datetime) -> datetime:
    floor = _down(moment)
    return floor if floor == moment else floor + _HOUR


def _hour_text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:00:00Z")


def _text(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
