"""Removing what nobody asks for by name: the offsets of deleted topics, and what has expired.

Both look at every group of a shard, of which there may be many with many offsets. So they look in slices (`slices`), and
remove one group after the other, each batch of tombstones when the one before is committed. Meanwhile groups go on: what
has changed since it was looked at stays.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from dataplane.groups.classic.model import Group, GroupState
from dataplane.groups.offsets import TopicPartition, expired
from dataplane.groups.removal import TOMBSTONES_PER_BATCH, Paced, bury, remove_offsets
from dataplane.groups.shard import Entry, Forgetting, GroupShard
from dataplane.protocol.errors import ErrorCode
from dataplane.records.steps import Pace
from dataplane.tasks import Future, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dataplane.doors import Loop, Timer
    from dataplane.groups.consumer.model import Group as ConsumerGroup
    from dataplane.groups.settings import GroupSettings
    from dataplane.records.steps import Steps
    from dataplane.slices import Slices

GROUPS_PER_PAUSE = 50
_GROUP_US = 2
RETRY_S = 1.0
_FORGETTING, _EXPIRED = "offsets of deleted topics", "expired offsets"


class Sweeper:
    """Of all shards that this broker serves."""

    def __init__(
        self, loop: Loop, slices: Slices, settings: GroupSettings, shards: Callable[[], list[GroupShard]], log: Paced
    ) -> None:
        self._loop, self._slices, self._settings = loop, slices, settings
        self._shards, self._log = shards, log
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin to look for what has expired; the first time after one interval."""
        delay_s = self._settings.offsets_retention_check_interval_ms / 1000
        self._timer = self._loop.call_later(delay_s, self._sweep)

    def stop(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        self.start()
        for shard in self._shards():
            groups = shard.contents
            if groups.sweep is None or groups.sweep.done:
                groups.sweep = Task(self._remove_expired(shard), _EXPIRED)

    # --- deleted topics -----------------------------------------------------------------------------------------------

    def forget(self, shard: GroupShard, forgetting: Forgetting) -> None:
        """Remove the offsets of partitions that do not exist any more, however often it takes."""
        shard.contents.forgetting.append(forgetting)
        if not shard.loading:
            Task(self._forget(shard, forgetting), _FORGETTING)

    def loaded(self, shard: GroupShard) -> None:
        """What was to be forgotten while it was loading."""
        for forgetting in list(shard.contents.forgetting):
            Task(self._forget(shard, forgetting), _FORGETTING)

    async def _forget(self, shard: GroupShard, forgetting: Forgetting) -> None:
        while not shard.closed and not await self._forget_once(shard, forgetting):
            again: Future[None] = Future()
            self._loop.call_later(RETRY_S, partial(again.resolve, None))
            await again
        shard.contents.forgetting.remove(forgetting)

    async def _forget_once(self, shard: GroupShard, forgetting: Forgetting) -> bool:
        """Whether all are gone."""
        for entry, keys in await self._slices.run(_FORGETTING, who_has(shard, forgetting)):
            still = (key for key in keys if entry.offsets.has(key) and not forgetting.spares(entry, key))
            if not shard.closed and await self._removed(shard, entry, still) != ErrorCode.NONE:
                return False
        return True

    # --- expired offsets ----------------------------------------------------------------------------------------------

    async def _remove_expired(self, shard: GroupShard) -> None:
        """What the log does not take is tried again by the next sweep, if it is due then."""
        now_ms, retention_ms = self._loop.clock.now_ms(), self._settings.offsets_retention_ms
        for seen in await self._slices.run(_EXPIRED, look(shard, now_ms, retention_ms)):
            if _is_as_seen(shard, seen) and await self._expire(shard, seen) != ErrorCode.NONE:
                return

    async def _expire(self, shard: GroupShard, seen: Look) -> ErrorCode:
        """What was seen to be over, and the group where that leaves nothing."""
        few = seen
        if len(seen.gone) > TOMBSTONES_PER_BATCH:  # too many to look at at once, which has to be done to end a group
            error = await self._removed(shard, seen.entry, (key for key in seen.gone if _is_still(seen, key)))
            few = seen._replace(gone={})
            if error != ErrorCode.NONE or not _is_as_seen(shard, few):
                return error
        if not _is_left_with_nothing(few):
            return await self._removed(shard, few.entry, [key for key in few.gone if _is_still(few, key)])
        buried: Future[ErrorCode] = Future()
        bury(shard, few.entry, self._log, buried.resolve)
        return await buried

    async def _removed(self, shard: GroupShard, entry: Entry, keys: Iterable[TopicPartition]) -> ErrorCode:
        removed: Future[ErrorCode] = Future()
        remove_offsets(shard, entry, keys, self._log, removed.resolve)
        return await removed


class Look(NamedTuple):
    """What was seen of a group."""

    entry: Entry
    group: Group
    consumer: ConsumerGroup | None
    gone: dict[TopicPartition, object]


def who_has(shard: GroupShard, forgetting: Forgetting) -> Steps[list[tuple[Entry, list[TopicPartition]]]]:
    """The groups that have offsets to forget, and which."""
    found, pace = [], Pace()
    for entry in list(shard.contents.entries.values()):
        if shard.closed:
            break
        if pace.over(_GROUP_US):
            yield None
        if keys := (yield from forgetting.of(entry, pace)):
            found.append((entry, keys))
    return found


def look(shard: GroupShard, now_ms: int, retention_ms: int) -> Steps[list[Look]]:
    """The groups of which something has expired."""
    found = []
    for number, entry in enumerate(list(shard.contents.entries.values()), 1):
        if shard.closed:
            break
        group = entry.group
        consumer = entry.consumer
        kept = frozenset(() if consumer is None else consumer.subscribed())
        gone = yield from expired(group, entry.offsets, now_ms, retention_ms, kept)
        seen = Look(entry, group, consumer, gone)
        if gone or _is_left_with_nothing(seen):
            found.append(seen)
        if number % GROUPS_PER_PAUSE == 0:
            yield None
    return found


def _is_as_seen(shard: GroupShard, seen: Look) -> bool:
    entry = seen.entry
    if shard.closed or shard.contents.entries.get(seen.group.group_id) is not entry:
        return False
    return entry.group is seen.group and entry.consumer is seen.consumer


def _is_left_with_nothing(seen: Look) -> bool:
    group, offsets = seen.entry.group, seen.entry.offsets
    if group.state is not GroupState.EMPTY or group.pending or not offsets.is_settled():
        return False
    if seen.entry.consumer is not None and not seen.entry.consumer.is_empty:
        return False
    return len(seen.gone) == len(offsets.committed) and all(_is_still(seen, key) for key in seen.gone)


def _is_still(seen: Look, key: TopicPartition) -> bool:
    """Whether the offset is the one that was seen, and no other pending."""
    offsets = seen.entry.offsets
    return offsets.committed.get(key) is seen.gone[key] and not offsets.is_unstable(key)
