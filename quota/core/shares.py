"""How a limit is divided between its senders, while it does not suffice for all: max-min, by credit.

While a bucket owes, each sender earns credit at an equal part of its rate, and keeps at most half a second of it. A
request that its sender's credit covers passes although the bucket owes: so a sender that asks for less than an equal part
does not wait for those that ask for more, or no longer than it takes to earn the credit. All others wait until the bucket
owes nothing, and then the sender that has used least of its part is first. What a sender has used beyond its credit is a
debt of its own.

Together they earn no more than the rate, and what they have kept is half a second of it: so much, and no more, can pass
beyond the limit at once, however many senders are made up. A sender is a client id and an address; those beyond `MOST`
share places.

Pure: moments are arguments, in seconds.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from typing import Protocol

CREDIT_S = 0.5
"""So many seconds of an equal part may be kept."""
OWED_S = 30.0
"""And so many be owed."""
MOST = 64
"""Senders with a place of their own: all are looked at whenever one is served."""
QUIET_S = 1.0
"""Who has asked for nothing for so long has no part any more."""

Sender = tuple[str, str]
"""Client id and address."""
EVERYBODY: Sender = ("", "")
"""Who asks where nobody has a share of his own: those who wait are served in the order in which they came."""


class Request(Protocol):
    """What waits for its turn. `size` is what it will take from the bucket."""

    size: int


class Share:
    """What one sender has of a bucket. `line` is where the requests of the sender wait, whoever keeps them."""

    __slots__ = ("at", "credit", "earns", "line", "seen")

    def __init__(self, now: float, *, earns: bool) -> None:
        self.earns = earns  # not where one share stands for everybody: it would be the bucket once more
        self.credit = 0.0
        self.at = now  # when credit was counted
        self.seen = now
        self.line: deque[Request] = deque()


class Shares:
    """Of one bucket, while it does not suffice."""

    __slots__ = ("_shares",)

    def __init__(self) -> None:
        self._shares: dict[Sender, Share] = {}

    def __len__(self) -> int:
        return len(self._shares)

    def __iter__(self) -> Iterator[Share]:
        return iter(self._shares.values())

    def of(self, sender: Sender, now: float) -> Share:
        """The share of a sender that asks for something now."""
        share = self._shares.get(sender)
        if share is None:
            if len(self._shares) >= MOST:
                sender = ("", str(zlib.crc32("\0".join(sender).encode()) % MOST))
                share = self._shares.get(sender)
            if share is None:
                share = self._shares[sender] = Share(now, earns=sender != EVERYBODY)
        share.seen = now
        return share

    def earned(self, share: Share, rate: float, now: float) -> float:
        """The credit that a share has now, at this rate of the whole bucket."""
        part = rate / len(self._shares)
        share.credit = min(share.credit + (now - share.at) * part, part * CREDIT_S)
        share.at = now
        return share.credit

    def use(self, share: Share, size: float, rate: float, now: float) -> float:
        """Something of this size has passed; the seconds until the share has earned as much again."""
        part = rate / len(self._shares)
        self.earned(share, rate, now)
        share.credit = max(share.credit - size, -part * OWED_S)
        return max(0.0, size - share.credit) / part

    def covered(self, rate: float, now: float) -> tuple[Share | None, float]:
        """One whose credit covers the first of its requests that wait; else the seconds until there is one."""
        part = rate / max(len(self._shares), 1)
        soonest_s = float("inf")
        for share in self._shares.values():
            if not share.line or not share.earns:
                continue
            size = max(share.line[0].size, 1)
            missing = size - self.earned(share, rate, now)
            if missing <= 0:
                return share, 0.0
            if size <= part * CREDIT_S:
                soonest_s = min(soonest_s, missing / part)
        return None, soonest_s

    def first(self, rate: float, now: float) -> Share | None:
        """Of those that have somebody waiting, the one that has used least of its part."""
        waiting = [share for share in self._shares.values() if share.line]
        return max(waiting, key=lambda share: self.earned(share, rate, now), default=None)

    def forget_quiet(self, now: float) -> None:
        """Those that ask for nothing any more."""
        for sender, share in list(self._shares.items()):
            if now - share.seen > QUIET_S and not share.line:
                del self._shares[sender]
