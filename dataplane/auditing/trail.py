"""Records of one instance that wait to be written: not too many, not too often, and what is alike told together.

What a client causes at will must cost the broker and the topic little. So a record takes a token (`PER_S`, `AT_ONCE` at
once), at most `MOST_WAITING` wait, and what finds no place is counted: the next record that does says how many. Of denials that
are alike the first is a record, and those that follow within the minute are one more when it is over; `MOST_KINDS` are
remembered, others are records of their own. A record of a denial is made only if there is a place for it: a request may be
refused twenty thousand things, and each would cost more than to refuse it.

Pure: times are given by the caller, in monotonic seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import replace

from quota.contracts.audit import AuditRecord
from quota.core.bucket import TokenBucket

PER_S, AT_ONCE = 20, 200
MOST_WAITING = 500
MOST_KINDS = 500
TOGETHER_S = 60.0


class Trail:
    """Of one instance on one broker."""

    __slots__ = ("_alike", "_at_once", "_bucket", "_left_out", "_minute_began", "_waiting")

    def __init__(self, now: float, *, per_s: int = PER_S, at_once: int = AT_ONCE) -> None:
        self._bucket = TokenBucket(per_s, now)
        self._at_once = at_once
        self._waiting: deque[AuditRecord] = deque()
        self._left_out = 0
        self._alike: dict[Hashable, tuple[AuditRecord, int]] = {}  # the first, and how many have followed
        self._minute_began = now

    def add(self, record: AuditRecord, now: float) -> None:
        """One more; it may have to be left out."""
        if self._is_full(now):
            self._left_out += record.count
            return
        self._bucket.charge(1, now)
        if self._left_out:
            record, self._left_out = replace(record, left_out=self._left_out), 0
        self._waiting.append(record)

    def _is_full(self, now: float) -> bool:
        return len(self._waiting) >= MOST_WAITING or self._bucket.debt_bytes(now) >= self._at_once

    def leave_out(self, count: int) -> None:
        """So many more are not worth a record each."""
        self._left_out += count

    def add_denial(self, alike: Hashable, make: Callable[[], AuditRecord], now: float) -> None:
        """One more denial, told with others that have an equal `alike`. `make` is called if it is to be a record."""
        self.turn(now)
        known = self._alike.get(alike)
        if known is not None:
            self._alike[alike] = (known[0], known[1] + 1)
        elif self._is_full(now):
            self._left_out += 1
        else:
            record = make()
            if len(self._alike) < MOST_KINDS:
                self._alike[alike] = (record, 0)
            self.add(record, now)

    def turn(self, now: float) -> None:
        """When a minute is over, what followed in it is told."""
        if now - self._minute_began < TOGETHER_S:
            return
        known, self._alike, self._minute_began = self._alike, {}, now
        for record, followed in known.values():
            if followed:
                self.add(replace(record, count=followed), now)

    def take(self, most: int) -> list[AuditRecord]:
        """The oldest that wait; they wait no longer."""
        return [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]

    def put_back(self, records: list[AuditRecord]) -> None:
        """They could not be written yet; as many as there is room for, the others are left out."""
        room = MOST_WAITING - len(self._waiting)
        kept = records[-room:] if room > 0 else []
        self._left_out += sum(record.count + record.left_out for record in records[: len(records) - len(kept)])
        self._waiting.extendleft(reversed(kept))

    @property
    def waits(self) -> bool:
        """Whether there is anything to write."""
        return bool(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is remembered: it can go."""
        return not (self._waiting or self._alike or self._left_out)
