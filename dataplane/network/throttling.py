"""Throttling of one connection (KIP-219): the answer goes out at once and says how long; this side goes on reading.

The first further request of the throttled kind is parked until the debt is paid (`throttle.lines`), and from then on
nothing is read; so heartbeats and commits that were sent before it are never held. What the instance owes then because
of other connections is waited for as well, and a new connection begins with it: or whoever connects anew for every
request would have no limit.
"""

from __future__ import annotations

from typing import Any

from dataplane.doors import Connection
from dataplane.handlers.context import BrokerRooms, Session
from dataplane.handlers.offsets import stored_bytes
from dataplane.network.answers import Answers
from dataplane.protocol.api import ApiKey
from dataplane.protocol.headers import RequestHeader
from dataplane.throttle.lines import NOTHING_S, owed_s, waits_s
from dataplane.throttle.rules import InstanceRules
from quota.core.bucket import TokenBucket

PRODUCE, FETCH = int(ApiKey.PRODUCE), int(ApiKey.FETCH)
_COMMIT = int(ApiKey.OFFSET_COMMIT)
STORED_BY_GROUPS = (_COMMIT, int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP))


class Throttled(Answers):
    """Parks requests whose time has not come."""

    __slots__ = ("_is_again", "_muted_until")

    def __init__(self, broker: BrokerRooms, connection: Connection, session: Session) -> None:
        super().__init__(broker, connection, session)
        self._muted_until: dict[int, float] = {}
        self._is_again = False  # the request that is being served was parked

    def frame(self, frame: memoryview) -> None:
        """One request, that has just come or whose time has."""
        raise NotImplementedError

    def mute_produce(self, delay_s: float) -> None:
        """Park the next produce request until `delay_s` from now."""
        self._mute(PRODUCE, delay_s)

    def mute_fetch(self, delay_s: float) -> None:
        """Park the next fetch until `delay_s` from now."""
        self._mute(FETCH, delay_s)

    def _mute(self, key: int, delay_s: float) -> None:
        until = self.broker.doors.clock.monotonic() + delay_s
        self._muted_until[key] = max(until, self._muted_until.get(key, 0.0))

    def begin_in_debt(self) -> None:
        """A new connection of an instance waits for what the instance owes already."""
        now = self.broker.doors.clock.monotonic()
        for key in (PRODUCE, FETCH, *STORED_BY_GROUPS):
            bucket = self._bucket(key)
            if bucket is not None and (left_s := owed_s(bucket, now)) > NOTHING_S:
                self._mute(key, left_s)

    def _bucket(self, key: int) -> TokenBucket | None:
        """What requests of this kind are charged to."""
        instance = self.session.instance
        if instance is None:
            return None
        if key == PRODUCE:
            return instance.produce_bucket
        return instance.consume_bucket if key == FETCH else instance.group_bucket

    def _charge_groups(self, header: RequestHeader, request: Any, size: int) -> None:
        if header.api_key == _COMMIT:
            size += stored_bytes(request, header.api_version)
        delay_s = self.broker.gate.charge_groups(self.session.instance, size)
        if delay_s:
            self._mute(header.api_key, delay_s)

    def _parks(self, frame: memoryview) -> bool:
        """Whether this request is of a kind that has to wait; then it will be served at its time."""
        key = frame[0] << 8 | frame[1]
        told = self._muted_until.pop(key, None)
        bucket = None if told is None else self._bucket(key)
        if told is None or bucket is None or waits_s(bucket, told, self.broker.doors.clock.monotonic()) <= NOTHING_S:
            return False
        self._park(frame, bucket, told)
        return True

    def _debt_of_rules(self, rules: InstanceRules, header: RequestHeader, request: Any) -> TokenBucket | None:
        """What this request has to wait for by the throttle rules that concern it."""
        session, client_id = self.session, header.client_id
        if header.api_key == PRODUCE:
            return rules.produce_debt(session, client_id, (topic.name for topic in request.topic_data))
        return rules.fetch_debt(session, client_id) if header.api_key == FETCH else None

    def _park(self, frame: memoryview, bucket: TokenBucket, told: float = 0.0) -> None:
        """Serve this request when the bucket owes nothing, and read nothing until then."""
        kept = self._keep(frame)
        self.broker.lines.join(bucket, told, lambda: self._resume(kept))

    def _keep(self, frame: memoryview) -> memoryview:
        self._is_parked = True
        self._connection.pause_reading()
        return memoryview(bytearray(frame))  # the frame's own memory ends with this turn; a batch is changed in place

    def _resume(self, kept: memoryview) -> None:
        self._is_parked = False
        if not self._closed:
            self._is_again = True
            self.frame(kept)
            self._is_again = False
            self._read_on()
