"""What an instance may have of transactions, by its specification: judged by a coordinator, for all of the instance.

    open transactions     a transaction that would be one too many does not begin: POLICY_VIOLATION, upon which the client aborts
    transactional ids     one that would be new is not made: POLICY_VIOLATION
    longest time-out      a producer that asks for more gets no epoch: INVALID_TRANSACTION_TIMEOUT, as of the brokers' own

An instance's ids are on all brokers. Each knows what it has itself at this moment (`counts`), and what the others had a second
or two ago, from the flow master; without a master it knows of no others. When a partition of ids has moved, to this broker or
between two others, what it brings counts with both for as long as reports take: meanwhile only what is here counts, so that
nobody is refused for what is counted twice. What was let in stays, though a limit is lowered: only what is new is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from dataplane.doors import Clock
    from dataplane.transactions.counts import Counts

SETTLES_S = 5.0
"""Reports come every second, and a broker that is silent counts nothing after two."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Of one instance. None: no limit; 0: nothing. The last two are what other brokers have of it."""

    open_transactions: int | None = None
    transactional_ids: int | None = None
    timeout_ms: int | None = None
    open_elsewhere: int = 0
    ids_elsewhere: int = 0


UNLIMITED = Allowed()
Allow = Callable[[str], Allowed]
"""By instance key."""


def unlimited(_key: str) -> Allowed:
    """Where no instance has a limit."""
    return UNLIMITED


class Limits:
    """See the file's text."""

    def __init__(self, counts: Counts, allow: Allow, clock: Clock) -> None:
        self._counts, self._allow, self._clock = counts, allow, clock
        self._settled_at = float("-inf")

    def moved(self) -> None:
        """A partition of transactional ids has another leader: what the others have is not known for a while."""
        self._settled_at = self._clock.monotonic() + SETTLES_S

    def may_begin(self, transactional_id: str) -> bool:
        """Whether its instance may have one more transaction open."""
        key = _key_of(transactional_id)
        if key is None:
            return True
        allowed = self._allow(key)
        return self._has_room(allowed.open_transactions, self._counts.of(key).is_open, allowed.open_elsewhere)

    def may_add(self, key: str) -> bool:
        """Whether an instance may have one more transactional id."""
        allowed = self._allow(key)
        return self._has_room(allowed.transactional_ids, self._counts.of(key).ids, allowed.ids_elsewhere)

    def longest_ms(self, transactional_id: str, otherwise: int) -> int:
        """For how long a transaction of its instance may be open at most; `otherwise` is the broker's own limit."""
        key = _key_of(transactional_id)
        limit = None if key is None else self._allow(key).timeout_ms
        return otherwise if limit is None else min(limit, otherwise)

    def _has_room(self, limit: int | None, here: int, elsewhere: int) -> bool:
        if limit is None:
            return True
        return here + (elsewhere if self._clock.monotonic() >= self._settled_at else 0) < limit


def _key_of(transactional_id: str) -> str | None:
    owner = split_physical(transactional_id)
    return None if owner is None else owner[0]
