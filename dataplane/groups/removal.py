"""The end of groups and offsets: on request, and (`sweeping`) when a topic is deleted or their time is over.

Every removal is a tombstone in the log first; what it names is forgotten when the tombstone is committed. While a
group's own tombstone is on its way the group is DEAD, so that nobody joins what is about to vanish.

What is removed is what was appended before the tombstone, in transactions as well: an offset that an open transaction has
committed gets a tombstone like any other, or the transaction's end would bring it back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from dataplane.coordination.effects import KeyValue
from dataplane.groups.classic.model import NONE_PENDING, GroupState
from dataplane.groups.commits import told
from dataplane.groups.consumer.records import end_of_group
from dataplane.groups.consumer.records import write as write_consumer
from dataplane.groups.offsets import CONSUMER, TopicPartition, subscribed_topics
from dataplane.groups.records import write_group, write_offset
from dataplane.groups.shard import Entry, GroupShard
from dataplane.protocol.errors import ErrorCode

Append = Callable[[GroupShard, list[KeyValue], Callable[[ErrorCode], None]], int]


class Paced(NamedTuple):
    """How tombstones come into the log: a batch is appended, and when it is committed the next one in a later turn."""

    append: Append
    later: Callable[[Callable[[], None]], None]


TOMBSTONES_PER_BATCH = 100
"""Tombstones need not be committed together. To write so many, and to apply them, takes about a millisecond."""


def delete_group(shard: GroupShard, group_id: str, log: Paced, done: Callable[[ErrorCode], None]) -> None:
    """Remove a group that has no members, with its offsets."""
    entry = shard.contents.entries.get(group_id)
    if entry is None or is_dead(entry):
        done(ErrorCode.GROUP_ID_NOT_FOUND)
    elif not is_empty(entry):
        done(ErrorCode.NON_EMPTY_GROUP)
    else:
        bury(shard, entry, log, done)


def is_dead(entry: Entry) -> bool:
    """Its tombstones are on their way."""
    return entry.group.state is GroupState.DEAD or (entry.consumer is not None and entry.consumer.dying)


def is_empty(entry: Entry) -> bool:
    """It has no members, of whichever protocol."""
    return entry.group.state is GroupState.EMPTY and (entry.consumer is None or entry.consumer.is_empty)


def delete_offsets(
    shard: GroupShard,
    group_id: str,
    keys: list[TopicPartition],
    log: Paced,
    done: Callable[[ErrorCode, dict[TopicPartition, ErrorCode]], None],
) -> None:
    """Remove some offsets, but not of topics that a living consumer group reads."""
    entry = shard.contents.entries.get(group_id)
    if entry is None or is_dead(entry):
        done(ErrorCode.GROUP_ID_NOT_FOUND, {})
        return
    in_use: frozenset[str] | None = frozenset(() if entry.consumer is None else entry.consumer.subscribed())
    if entry.group.state is not GroupState.EMPTY:
        if entry.group.protocol_type != CONSUMER:
            done(ErrorCode.NON_EMPTY_GROUP, {})
            return
        in_use = subscribed_topics(entry.group)
    refused = {k: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC for k in keys if in_use is None or k[0] in in_use}
    gone = [key for key in keys if key not in refused]
    remove_offsets(shard, entry, gone, log, lambda e: done(ErrorCode.NONE, {**refused, **dict.fromkeys(gone, told(e))}))


def remove_offsets(
    shard: GroupShard, entry: Entry, keys: Iterable[TopicPartition], log: Paced, done: Callable[[ErrorCode], None]
) -> None:
    """Remove some offsets of a group. `keys` are asked for one batch after the other."""
    group_id = entry.group.group_id

    def removed(error: ErrorCode) -> None:
        shard.contents.drop_blank(group_id)
        done(error)

    _append_in_batches(shard, (write_offset(group_id, *key, None) for key in keys), log, removed)


def bury(shard: GroupShard, entry: Entry, log: Paced, done: Callable[[ErrorCode], None]) -> None:
    """Remove a group that is empty, with all its offsets."""
    group = entry.group
    entry.group = replace(group, state=GroupState.DEAD, pending=NONE_PENDING)
    entry.timers.cancel_all()
    offsets = (write_offset(group.group_id, *key, None) for key in entry.offsets.all_keys())
    tombstones = chain(offsets, _end_consumer(entry), (write_group(group.group_id, None) for _ in range(1)))

    def buried(error: ErrorCode) -> None:
        if error != ErrorCode.NONE:
            entry.group = replace(entry.group, state=GroupState.EMPTY)
            _revive_consumer(entry)
        elif shard.contents.entries.get(group.group_id) is entry:
            shard.contents.forget(group.group_id)
        done(told(error))

    _append_in_batches(shard, tombstones, log, buried)


def end_consumer(shard: GroupShard, entry: Entry, log: Paced, done: Callable[[ErrorCode], None]) -> None:
    """What an empty group of the consumer protocol is, without its offsets: it becomes one of the classic protocol."""

    def ended(error: ErrorCode) -> None:
        if error != ErrorCode.NONE:
            _revive_consumer(entry)
        shard.contents.drop_blank(entry.group.group_id)
        done(told(error))

    _append_in_batches(shard, _end_consumer(entry), log, ended)


def _end_consumer(entry: Entry) -> Iterator[KeyValue]:
    if entry.consumer is None:
        return iter(())
    group = entry.consumer
    entry.consumer = replace(group, dying=True)
    return (write_consumer(group.group_id, record) for record in end_of_group(group))


def _revive_consumer(entry: Entry) -> None:
    if entry.consumer is not None:
        entry.consumer = replace(entry.consumer, dying=False)


def _append_in_batches(
    shard: GroupShard, tombstones: Iterator[KeyValue], log: Paced, done: Callable[[ErrorCode], None]
) -> None:
    """Each batch counts as soon as it is committed; `done` with the first error, or after the last one."""
    batch = list(islice(tombstones, TOMBSTONES_PER_BATCH))
    if not batch:
        done(ErrorCode.NONE)
        return

    def committed(error: ErrorCode) -> None:
        if error != ErrorCode.NONE:
            done(error)
            return
        shard.contents.apply_all(batch, position)
        if len(batch) < TOMBSTONES_PER_BATCH:
            done(ErrorCode.NONE)
        else:  # where no follower is waited for, all of them would be committed within this turn
            log.later(lambda: _append_in_batches(shard, tombstones, log, done))

    position = log.append(shard, batch, committed)
