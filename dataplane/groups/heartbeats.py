"""ConsumerGroupHeartbeat at the coordinator: for which group it is, and what its regular expression matches; then it is an event.

A regular expression is matched when a member comes with a new one, and again with the first heartbeat after the instance's topics
have changed, on behalf of the member whose heartbeat it is: what that one may not see, it does not match. It goes in slices, in
the instance's own time.

A member that joins a group of the classic protocol makes it one of the consumer protocol (`machine`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dataplane.groups.classic.model import GroupState
from dataplane.groups.consumer import patterns
from dataplane.groups.consumer.events import Heartbeat, HeartbeatResult
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future, resolved

if TYPE_CHECKING:
    from dataplane.coordination.runtime import Runtime
    from dataplane.doors import Loop
    from dataplane.groups.consumer.model import Matched
    from dataplane.groups.shard import Entry, Groups, GroupShard
    from dataplane.groups.topics import Topics

Sees = Callable[[str], bool]
"""Whether a member may know of a topic, by its physical name."""


class ConsumerHeartbeats:
    """See the file's text."""

    def __init__(
        self,
        loop: Loop,
        runtime: Runtime[Groups, Entry],
        topics: Topics,
        shard_of: Callable[[str], GroupShard | ErrorCode],
        is_one_too_many: Callable[[GroupShard, str], bool],
    ) -> None:
        self._loop, self._runtime, self._topics = loop, runtime, topics
        self._shard_of, self._is_one_too_many = shard_of, is_one_too_many

    def heartbeat(self, group_id: str, ask: Heartbeat, sees: Sees, owner: str) -> Future[HeartbeatResult]:
        """Answered when what it changes is committed. `owner`: in whose time a regular expression is matched."""
        entry = self._entry(group_id, ask)
        if isinstance(entry, HeartbeatResult):
            return resolved(entry)
        pattern = _pattern(entry, ask)
        if not pattern:
            return self._ask(group_id, ask)
        names = self._topics.beside(group_id)
        known = entry is not None and entry.consumer is not None and pattern in entry.consumer.matched
        if known and entry is not None and entry.matched_with.get(pattern) is names:
            return self._ask(group_id, ask)
        compiled = patterns.compiled(pattern)
        if compiled is None:
            message = "the regular expression is none that RE2 understands, or too large"
            return resolved(HeartbeatResult(ErrorCode.INVALID_REGULAR_EXPRESSION, message=message))
        steps = patterns.matching(compiled, names, sees, self._loop.clock.now_ms())
        answer: Future[HeartbeatResult] = Future()
        self._runtime.slices.run(owner, steps).then(partial(self._matched, group_id, ask, pattern, names, answer))
        return answer

    def _matched(
        self,
        group_id: str,
        ask: Heartbeat,
        pattern: str,
        names: Sequence[str],
        answer: Future[HeartbeatResult],
        matched: Future[Matched],
    ) -> None:
        entry = self._entry(group_id, ask)  # as it is by now
        if isinstance(entry, HeartbeatResult):
            answer.resolve(entry)
            return
        asked = self._ask(group_id, replace(ask, matched=matched.result()))
        asked.then(partial(self._answered, group_id, ask, pattern, names, answer))

    def _answered(
        self,
        group_id: str,
        ask: Heartbeat,
        pattern: str,
        names: Sequence[str],
        answer: Future[HeartbeatResult],
        asked: Future[HeartbeatResult],
    ) -> None:
        """What it matches is the group's only where the heartbeat was good; else the next one looks again."""
        result, entry = asked.result(), self._entry(group_id, ask)
        if result.error == ErrorCode.NONE and not isinstance(entry, HeartbeatResult) and entry is not None:
            patterns_now = () if entry.consumer is None else entry.consumer.patterns
            still = {p: seen for p, seen in entry.matched_with.items() if p in patterns_now}
            entry.matched_with = {**still, pattern: names}
        answer.resolve(result)

    def _ask(self, group_id: str, ask: Heartbeat) -> Future[HeartbeatResult]:
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return resolved(HeartbeatResult(shard))
        return self._runtime.ask(shard, group_id, lambda token: replace(ask, token=token), HeartbeatResult)

    def _entry(self, group_id: str, ask: Heartbeat) -> Entry | HeartbeatResult | None:
        """The group as it is, or why it is not one for this request. None: it is going to be made."""
        shard = self._shard_of(group_id)
        if isinstance(shard, ErrorCode):
            return HeartbeatResult(shard)
        entry = shard.contents.entries.get(group_id)
        if entry is not None and entry.group.state is GroupState.DEAD:
            return HeartbeatResult(ErrorCode.COORDINATOR_NOT_AVAILABLE, message="the group is being deleted")
        if not ask.joins and entry is None:
            return HeartbeatResult(
                ErrorCode.GROUP_ID_NOT_FOUND, message="there is no such group of the consumer protocol"
            )
        if ask.joins and self._is_one_too_many(shard, group_id):
            return HeartbeatResult(ErrorCode.GROUP_MAX_SIZE_REACHED, message="there are as many groups as there may be")
        return entry


def _pattern(entry: Entry | None, ask: Heartbeat) -> str | None:
    """By which the member subscribes when this request is over."""
    if ask.leaves or ask.pattern is not None:
        return None if ask.leaves else ask.pattern
    member = None if entry is None or entry.consumer is None else entry.consumer.members.get(ask.member_id)
    return None if member is None else member.pattern
