"""How far each partition was copied, kept in a compacted topic of the target.

    key    {"source":"old","topic":"orders","partition":3}
    value  {"version":1,"source_offset":120,"target_offset":95,"segments":[[20,0,95]]}

`source_offset` is the next one to copy, `target_offset` where it will be if nobody else writes there; `segments` as in
`offset_map`. A checkpoint is written after the data that it speaks of, to one partition, so the last of a key counts.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME, FetchRequest, fetch_from, offset_in
from dataplane.clients.messages import Message, MessageAndOffset
from dataplane.clients.mirror.appending import append
from dataplane.clients.mirror.offset_map import Segment


class Key(NamedTuple):
    """A partition of a source."""

    source: str
    topic: str
    partition: int


@dataclass(frozen=True)
class Checkpoint:
    """How far it is."""

    source_offset: int
    target_offset: int
    segments: tuple[Segment, ...] = field(default=())


def to_message(key: Key, checkpoint: Checkpoint) -> Message:
    """As it stands in the topic."""
    value = {
        "version": 1,
        "source_offset": checkpoint.source_offset,
        "target_offset": checkpoint.target_offset,
        "segments": checkpoint.segments,
    }
    return Message(_dump(value), _dump(key._asdict()))


def from_message(message: Message) -> tuple[Key, Checkpoint]:
    """Raises ValueError, KeyError, TypeError for what is none."""
    key, value = json.loads(message.key or b""), json.loads(message.value or b"")
    segments = tuple(Segment(*one) for one in value["segments"])
    found = Checkpoint(int(value["source_offset"]), int(value["target_offset"]), segments)
    return Key(str(key["source"]), str(key["topic"]), int(key["partition"])), found


def _dump(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


class CheckpointLog:
    """The topic. Threads may share it. Raises ClientError."""

    def __init__(self, cluster: Cluster, topic: str, backoff: Backoff) -> None:
        self._cluster, self._topic, self._backoff = cluster, topic, backoff
        self._lock = threading.Lock()

    def read(self) -> dict[Key, Checkpoint]:
        """All of it, as it is now; the last of each key."""
        found: dict[Key, Checkpoint] = {}

        def read() -> None:
            found.clear()
            for message in everything(self._cluster, self._topic, 0):
                key, checkpoint = from_message(message)
                found[key] = checkpoint

        self._backoff.run(read, lambda: self._cluster.refresh((self._topic,)))
        return found

    def write(self, checkpoints: Mapping[Key, Checkpoint]) -> None:
        """Acknowledged by all in-sync replicas. Twice is as good as once."""
        messages = [to_message(key, checkpoint) for key, checkpoint in checkpoints.items()]
        with self._lock:
            self._backoff.run(
                lambda: append(self._cluster, (self._topic, 0), messages),
                lambda: self._cluster.refresh((self._topic,)),
            )


def everything(
    cluster: Cluster, topic: str, partition: int, begin: int | None = None, at_most: int | None = None
) -> list[Message]:
    """Messages of a partition, from its beginning or from an offset, to where it ends now. Raises ClientError."""
    messages: list[Message] = []
    for one in each_message(cluster, topic, partition, begin):
        if at_most is not None and len(messages) >= at_most:
            break
        messages.append(one.message)
    return messages


def each_message(
    cluster: Cluster, topic: str, partition: int, begin: int | None = None, *, committed_only: bool = False
) -> Iterator[MessageAndOffset]:
    """The same one by one, a fetch at a time in memory. Raises ClientError."""
    leader, place = cluster.leader(topic, partition), (topic, partition)
    first, end = offset_in(cluster, place, EARLIEST_TIME), offset_in(cluster, place, LATEST_TIME)
    offset = first if begin is None else max(begin, first)
    while offset < end:
        request = FetchRequest(topic, partition, offset)
        (fetched,) = fetch_from(cluster, leader, [request], max_wait_ms=100, committed_only=committed_only)
        fetched.raise_for_error()
        yield from (one for one in fetched.entries.messages if one.offset < end)
        offset = fetched.entries.next_offset
