"""The request rate of an instance, on one of its connections (KIP-219).

Every request of a tenant counts, but those with which a connection introduces itself. One that comes while the instance
owes for earlier ones, on whatever connection, is parked in the line of them all; one that makes the debt is served, and
its answer says how long the next would have to wait.

A group must not fall apart because its instance is busy: heartbeats count and are never parked, and whatever else a
member's connection asks is parked for half of the shortest session timeout at most, since a heartbeat may stand behind it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dataplane.doors import Connection
from dataplane.handlers.context import BrokerRooms, Session
from dataplane.network.throttling import Throttled
from dataplane.protocol.api import ApiKey
from dataplane.throttle.gate import throttle_ms
from dataplane.throttle.lines import NOTHING_S, waits_s
from quota.contracts.rules import REQUEST
from quota.core.bucket import TokenBucket

_INTRODUCTIONS = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
_OF_MEMBERS = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT)


class Counted(Throttled):
    """Counts requests, where the instance has a limit of them."""

    __slots__ = ("_is_members", "_told")

    def __init__(self, broker: BrokerRooms, connection: Connection, session: Session) -> None:
        super().__init__(broker, connection, session)
        self._is_members = False  # a member of a group speaks on it
        self._told = 0.0  # the moment until which its last request asked it to wait

    def _counts_later(self, bucket: TokenBucket, frame: memoryview) -> bool:
        """Count a request that has just come; True: it is parked instead, and will be counted at its time."""
        key = int.from_bytes(frame[:2])
        if self._is_again or key in _INTRODUCTIONS:
            return False
        self._is_members = self._is_members or key in _OF_MEMBERS
        now = self.broker.doors.clock.monotonic()
        if key != ApiKey.HEARTBEAT and waits_s(bucket, self._told, now) > NOTHING_S:
            self._park_in_line(bucket, frame)
            return True
        self._told = now + bucket.charge(REQUEST, now)
        return False

    def _park_in_line(self, bucket: TokenBucket, frame: memoryview) -> None:
        waiting = [self._keep(frame)]

        def serve() -> None:
            if waiting:  # its turn and the end of patience both come
                now = self.broker.doors.clock.monotonic()
                self._told = now + bucket.charge(REQUEST, now)
                self._resume(waiting.pop())

        self.broker.lines.join(bucket, self._told, serve)
        if self._is_members:
            patience_s = self.broker.config.settings.group_min_session_timeout_ms / 1000 / 2
            self.broker.doors.loop.call_later(patience_s, serve)

    def _with_wait(self, bucket: TokenBucket, key: int, reply: Any) -> Any:
        """An answer that goes out now, saying what has to be waited for because of requests if it is longer."""
        if key in _INTRODUCTIONS:
            return reply
        wait_ms = throttle_ms(waits_s(bucket, self._told, self.broker.doors.clock.monotonic()))
        if wait_ms <= getattr(reply, "throttle_time_ms", wait_ms):
            return reply
        return replace(reply, throttle_time_ms=wait_ms)
