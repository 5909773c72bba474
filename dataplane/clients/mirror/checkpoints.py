"""How far each partition was copied, kept in a compacted topic of the target.

    key    {"source":"old","topic":"orders","partition":3}
    value  {"version":1,"source_offset":120,"target_offset":95,"segments":[[20,0,95]]}

`source_offset` is the next one to copy, `target_offset` where it will be if nobody else writes there; `segments` as in
`offset_map`. A checkpoint is written after the data that it speaks of, to one partition, so the last of a key counts.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.messages import Message
from dataplane.clients.mirror.appending import append
from dataplane.clients.mirror.offset_map import Segment
from dataplane.clients.mirror.reading import everything


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
