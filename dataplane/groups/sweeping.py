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
from dataplane.groups.removal import Paced, bury, remove_offsets
from dataplane.groups.shard import Entry, Forgetting, GroupShard
from dataplane.protocol.errors import ErrorCode
from dataplane.tasks import Future, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.doors import Loop, Timer
    from dataplane.groups.consumer.model import Group as ConsumerGroup
    from dataplane.groups.settings import GroupSettings
    from dataplane.records.steps import Steps
    from dataplane.slices import Slices

GROUPS_PER_PAUSE = 50
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
        for entry in await self._slices.run(_FORGETTING, who_has(shard, forgetting)):
            keys = [key for key in forgetting.of(entry) if not forgetting.spares(entry, key)]
            if shard.closed or not keys:
                continue
            still = (key for key in keys if not forgetting.spares(entry, key))
            removed: Future[ErrorCode] = Future()
            remove_offsets(shard, entry, still, self._log, removed.resolve)
            if await removed != ErrorCode.NONE:
                return False
        return True

    # --- expired offsets ----------------------------------------------------------------------------------------------

    async def _remove_expired(self, shard: GroupShard) -> None:
        """What the log does not take is tried again by the next sweep, if it is due then."""
        now_ms, retention_ms = self._loop.clock.now_ms(), self._settings.offsets_retention_ms
        for seen in await self._slices.run(_EXPIRED, look(shard, now_ms, retention_ms)):
            entry = seen.entry
            if (
                shard.closed
                or shard.contents.entries.get(seen.group.group_id) is not entry
                or entry.group is not seen.group
                or entry.consumer is not seen.consumer
            ):
                continue
            removed: Future[ErrorCode] = Future()
            if _is_left_with_nothing(seen):
                bury(shard, entry, self._log, removed.resolve)
            elif gone := [key for key in seen.gone if _is_still(seen, key)]:
                remove_offsets(shard, entry, gone, self._log, removed.resolve)
            else:
                continue
            if await removed != ErrorCode.NONE:
                return


class Look(NamedTuple):
    """What was seen of a group."""

    entry: Entry
    group: Group
    consumer: ConsumerGroup | None
    gone: dict[TopicPartition, object]


def who_has(shard: GroupShard, forgetting: Forgetting) -> Steps[list[Entry]]:
    """The groups that have offsets to forget."""
    found = []
    for number, entry in enumerate(list(shard.contents.entries.values()), 1):
        if shard.closed:
            break
        if forgetting.of(entry):
            found.append(entry)
            yield None
        elif number % GROUPS_PER_PAUSE == 0:
            yield None
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
