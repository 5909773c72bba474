"""Which fetch sessions there are: a pool for each instance, so that no tenant pushes out another's.

A pool has Kafka's rules (KIP-227). Full, it gives the place of a session that was not used for two minutes; else of the
smallest one that is smaller than the new one and has lived for two minutes. Otherwise the fetch gets no session: it is
answered in full, and its client goes on without. Besides, a principal (who, from which address) has a share of the
places, and the partitions of all sessions of a pool are bounded.

A session is found only through the pool of its instance and by the principal that began it: the id of another's is as
unknown as one that was never given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dataplane.protocol.errors import ErrorCode
from dataplane.records.steps import run_through
from dataplane.replication.serving.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from random import Random

    from dataplane.config import Settings
    from dataplane.doors import Clock
    from dataplane.protocol.messages.fetch import FetchRequest
    from dataplane.records.steps import Steps

EVICTION_S = 120.0
MOST_REMEMBERED = 4_000
"""A session's partitions at most: to close it, and to remember a full request, are one go each."""
FIRST_VERSION_WITH_IDS = 13


class SessionPool:
    """The sessions of one instance, in the order of their last use."""

    def __init__(self, clock: Clock, random: Random, settings: Settings) -> None:
        self._clock, self._random = clock, random
        self._slots = settings.max_incremental_fetch_session_cache_slots
        self._slots_per_principal = settings.fetch_session_slots_per_principal
        self._max_partitions = settings.fetch_session_partitions_per_instance
        self._sessions: dict[int, FetchSession] = {}
        self._per_principal: dict[str, int] = {}
        self.partitions = 0
        self.refused = 0  # fetches that got no session, or lost theirs, for want of a place

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[FetchSession]:
        return iter(list(self._sessions.values()))

    def create(self, principal: str, size: int, *, uses_topic_ids: bool) -> FetchSession | None:
        """A session for `size` partitions, which the caller puts in and then `touch`es; None: there is no place."""
        session = self._create(principal, size, uses_topic_ids=uses_topic_ids)
        self.refused += session is None
        return session

    def _create(self, principal: str, size: int, *, uses_topic_ids: bool) -> FetchSession | None:
        now = self._clock.monotonic()
        if self._per_principal.get(principal, 0) >= self._slots_per_principal:
            own = [session for session in self._sessions.values() if session.principal == principal]
            if not self._evict(own, size, now):
                return None
        elif len(self._sessions) >= self._slots and not self._evict(self._sessions.values(), size, now):
            return None
        if self.partitions + size > self._max_partitions:
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._random.getrandbits(31)
        session = self._sessions[session_id] = FetchSession(session_id, principal, now, uses_topic_ids=uses_topic_ids)
        self._per_principal[principal] = self._per_principal.get(principal, 0) + 1
        return session

    def _evict(self, candidates: Iterable[FetchSession], size: int, now: float) -> bool:
        stalest: FetchSession | None = None
        smallest: FetchSession | None = None
        for session in candidates:
            if stalest is None:
                stalest = session
                if now - session.used_at > EVICTION_S:
                    break
            if now - session.created_at > EVICTION_S and (smallest is None or session.size < smallest.size):
                smallest = session
        if stalest is not None and now - stalest.used_at > EVICTION_S:
            self.remove(stalest)
            return True
        if smallest is not None and smallest.size < size:
            self.remove(smallest)
            return True
        return False

    def find(self, session_id: int, principal: str) -> FetchSession | None:
        """A session of this principal."""
        session = self._sessions.get(session_id)
        return session if session is not None and session.principal == principal else None

    def touch(self, session: FetchSession) -> bool:
        """It was used, and its size may have changed. False: it has become too large, and is gone."""
        self.partitions += session.size - session.counted
        session.counted = session.size
        session.used_at = self._clock.monotonic()
        del self._sessions[session.id]
        self._sessions[session.id] = session
        if session.size > MOST_REMEMBERED or self.partitions > self._max_partitions:
            self.refused += 1
            self.remove(session)
            return False
        return True

    def remove(self, session: FetchSession) -> None:
        """Forget it."""
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
            self.partitions -= session.counted
            left = self._per_principal[session.principal] - 1
            if left:
                self._per_principal[session.principal] = left
            else:
                del self._per_principal[session.principal]
        session.close()

    def resume(self, request: FetchRequest, principal: str, version: int) -> FetchSession | ErrorCode | None:
        """The session of a request with what it changes taken over, or why not; None: it has, or gets, none to resume.

        A full request (epoch 0, or -1: "the last") ends the session that it names.
        """
        return run_through(self.resume_in_steps(request, principal, version))

    def resume_in_steps(
        self, request: FetchRequest, principal: str, version: int
    ) -> Steps[FetchSession | ErrorCode | None]:
        """The same with pauses."""
        session = self.find(request.session_id, principal)
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session is not None:
                self.remove(session)
            return None
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        code = session.next_request(request, uses_topic_ids=version >= FIRST_VERSION_WITH_IDS)
        if code:
            return code
        epoch = session.epoch
        try:
            yield from session.update(request, MOST_REMEMBERED)
        finally:  # also where its client has gone meanwhile
            if not session.is_closed:
                self.touch(session)
        if session.is_closed:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if not session.size:
            self.remove(session)
            return None
        return session


class FetchSessions:
    """The pools of a broker, by instance key; "" is the internal listener."""

    def __init__(self, clock: Clock, random: Random, settings: Settings) -> None:
        self._clock, self._random, self._settings = clock, random, settings
        self._pools: dict[str, SessionPool] = {}

    def pool(self, owner: str) -> SessionPool:
        """An instance's."""
        pool = self._pools.get(owner)
        if pool is None:
            pool = self._pools[owner] = SessionPool(self._clock, self._random, self._settings)
        return pool

    def refused(self) -> dict[str, int]:
        """Fetches without a session for want of a place, by instance key, since the beginning."""
        return {owner: pool.refused for owner, pool in self._pools.items() if pool.refused}

    def drop(self, owner: str) -> None:
        """The instance is gone."""
        pool = self._pools.pop(owner, None)
        if pool is not None:
            for session in pool:
                pool.remove(session)
