"""The end of groups and offsets: on request, when a topic is deleted, when their time is over.

Every removal is a tombstone in the log first; what it names is forgotten when the tombstone is committed. While a
group's own tombstone is on its way the group is DEAD, so that nobody joins what is about to vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dataplane.groups.commits import told
from dataplane.groups.model import GroupState
from dataplane.groups.offsets import CONSUMER, TopicPartition, expired, subscribed_topics
from dataplane.groups.records import KeyValue, write_group, write_offset
from dataplane.groups.shard import Entry, Shard
from dataplane.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from dataplane.doors import Loop, Timer
    from dataplane.groups.settings import GroupSettings

Append = Callable[[Shard, list[KeyValue], Callable[[ErrorCode], None]], None]

TOMBSTONES_PER_BATCH = 500
"""Tombstones need not be committed together, and one batch has a largest size."""


def delete_group(shard: Shard, group_id: str, append: Append, done: Callable[[ErrorCode], None]) -> None:
    """Remove a group that has no members, with its offsets."""
    entry = shard.entries.get(group_id)
    if entry is None or entry.group.state is GroupState.DEAD:
        done(ErrorCode.GROUP_ID_NOT_FOUND)
    elif entry.group.state is not GroupState.EMPTY:
        done(ErrorCode.NON_EMPTY_GROUP)
    else:
        _bury(shard, entry, append, done)


def delete_offsets(
    shard: Shard,
    group_id: str,
    keys: list[TopicPartition],
    append: Append,
    done: Callable[[ErrorCode, dict[TopicPartition, ErrorCode]], None],
) -> None:
    """Remove some offsets, but not of topics that a living consumer group reads."""
    entry = shard.entries.get(group_id)
    if entry is None or entry.group.state is GroupState.DEAD:
        done(ErrorCode.GROUP_ID_NOT_FOUND, {})
        return
    in_use: frozenset[str] | None = frozenset()
    if entry.group.state is not GroupState.EMPTY:
        if entry.group.protocol_type != CONSUMER:
            done(ErrorCode.NON_EMPTY_GROUP, {})
            return
        in_use = subscribed_topics(entry.group)
    refused = {k: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC for k in keys if in_use is None or k[0] in in_use}
    gone = [key for key in keys if key not in refused]
    _remove(shard, entry, gone, append, lambda e: done(ErrorCode.NONE, {**refused, **dict.fromkeys(gone, told(e))}))


def forget_partitions(shards: Sequence[Shard], deleted: list[TopicPartition], append: Append) -> None:
    """The offsets of partitions that do not exist any more."""
    for shard in shards:
        for entry in list(shard.entries.values()):
            known = entry.offsets.all_keys()
            gone = [key for key in deleted if key in known] if known else []
            if gone:
                _remove(shard, entry, gone, append, _ignore)


def _ignore(error: ErrorCode) -> None:
    """A removal that nobody waits for and that failed is tried again by the next sweep, if it is due then."""
    del error


def _remove(
    shard: Shard, entry: Entry, keys: list[TopicPartition], append: Append, done: Callable[[ErrorCode], None]
) -> None:
    group_id = entry.group.group_id

    def removed(error: ErrorCode) -> None:
        shard.drop_blank(group_id)
        done(error)

    _append_in_batches(shard, [write_offset(group_id, *key, None) for key in keys], append, removed)


def _bury(shard: Shard, entry: Entry, append: Append, done: Callable[[ErrorCode], None]) -> None:
    group = entry.group
    entry.group = replace(group, state=GroupState.DEAD, pending=())
    entry.timers.cancel_all()
    tombstones = [write_offset(group.group_id, *key, None) for key in entry.offsets.all_keys()]
    tombstones.append(write_group(group.group_id, None))

    def buried(error: ErrorCode) -> None:
        if error != ErrorCode.NONE:
            entry.group = replace(entry.group, state=GroupState.EMPTY)
        elif shard.entries.get(group.group_id) is entry:
            shard.forget(group.group_id)
        done(told(error))

    _append_in_batches(shard, tombstones, append, buried)


def _append_in_batches(
    shard: Shard, tombstones: list[KeyValue], append: Append, done: Callable[[ErrorCode], None]
) -> None:
    """Each batch counts as soon as it is committed; `done` with the first error, or after the last one."""
    if not tombstones:
        done(ErrorCode.NONE)
        return
    batch, rest = tombstones[:TOMBSTONES_PER_BATCH], tombstones[TOMBSTONES_PER_BATCH:]

    def committed(error: ErrorCode) -> None:
        if error != ErrorCode.NONE:
            done(error)
            return
        shard.apply_all(batch)
        _append_in_batches(shard, rest, append, done)

    append(shard, batch, committed)


class Sweeper:
    """Looks for expired offsets every so often, one shard per turn of the loop."""

    def __init__(self, loop: Loop, settings: GroupSettings, shards: Callable[[], list[Shard]], append: Append) -> None:
        self._loop = loop
        self._settings = settings
        self._shards = shards
        self._append = append
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin; the first sweep comes after one interval."""
        delay_s = self._settings.offsets_retention_check_interval_ms / 1000
        self._timer = self._loop.call_later(delay_s, self._sweep)

    def stop(self) -> None:
        """End."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        self.start()
        self._sweep_next(self._shards())

    def _sweep_next(self, shards: list[Shard]) -> None:
        if not shards or self._timer is None:
            return
        sweep(shards[0], self._settings, self._loop.clock.now_ms(), self._append)
        self._loop.call_soon(lambda: self._sweep_next(shards[1:]))


def sweep(shard: Shard, settings: GroupSettings, now_ms: int, append: Append) -> None:
    """Remove what has expired, and groups of which nothing is left."""
    if shard.closed:
        return
    for entry in list(shard.entries.values()):
        gone = expired(entry.group, entry.offsets, now_ms, settings.offsets_retention_ms)
        nothing_left = len(gone) == len(entry.offsets.committed) and not entry.offsets.pending
        if entry.group.state is GroupState.EMPTY and not entry.group.pending and nothing_left:
            _bury(shard, entry, append, _ignore)
        elif gone:
            _remove(shard, entry, gone, append, _ignore)
