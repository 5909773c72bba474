"""How far each partition was copied, kept in a compacted topic of the target.

    key    {"source":"old","topic":"orders","partition":3}
    value  {"version":2,"source_offset":120,"target_offset":95,"segments":[[20,0,95,0]],"exact":true,
            "topic_ids":["0a3c…","97b1…"]}

`source_offset` is the next one to copy, `target_offset` where it will be if nobody else writes there; `segments` as in
`offset_map`. `exact` says that it was written in one transaction with the data that it speaks of. Else it was written after
that. `topic_ids` are those of the topic at the source and in the target, "" where a side does not tell: with another one the
topic was made anew, and what the offsets speak of is gone. Checkpoints from before do not have them.

    key    {"source":"old","run":true}
    value  {"version":2,"run":"8f3c…"}

says which run of a mirror writes this source's checkpoints by transactions: each run begins with it, so that one that is
fenced can tell whether another has begun, or only its own transaction took too long.

All of it is in one partition, so the last of a key counts.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from dataplane.clients.cluster import Backoff, Cluster
from dataplane.clients.errors import BrokerError, ClientError
from dataplane.clients.fetching import Place
from dataplane.clients.messages import Message, portions
from dataplane.clients.mirror.appending import append
from dataplane.clients.mirror.offset_map import Segment
from dataplane.clients.mirror.reading import Reading
from dataplane.protocol.errors import ErrorCode

LARGEST_BATCH = 500_000


class Key(NamedTuple):
    """A partition of a source."""

    source: str
    topic: str
    partition: int


class TopicIds(NamedTuple):
    """Of one topic at both ends; "" is not known."""

    source: str = ""
    target: str = ""

    def now(self, seen: TopicIds) -> TopicIds:
        """With what was seen since, as far as it is known."""
        return TopicIds(seen.source or self.source, seen.target or self.target)


NOT_TOLD = TopicIds()


class Followed(NamedTuple):
    """A topic of the source that is copied, as both ends have it now."""

    partitions: int
    ids: TopicIds = NOT_TOLD


@dataclass(frozen=True)
class Checkpoint:
    """How far it is."""

    source_offset: int
    target_offset: int
    segments: tuple[Segment, ...] = field(default=())
    is_exact: bool = False
    topic_ids: TopicIds = NOT_TOLD


class Run(NamedTuple):
    """Of a mirror; `run` is nobody else's."""

    source: str
    run: str


@dataclass(frozen=True)
class Known:
    """What the topic says."""

    checkpoints: dict[Key, Checkpoint]
    runs: dict[str, str]  # by source


def to_message(key: Key, checkpoint: Checkpoint) -> Message:
    """As it stands in the topic."""
    value = {
        "version": 2,
        "source_offset": checkpoint.source_offset,
        "target_offset": checkpoint.target_offset,
        "segments": [one if one.dip else one[:4] for one in checkpoint.segments],
        "exact": checkpoint.is_exact,
        "topic_ids": checkpoint.topic_ids,
    }
    return Message(_dump(value), _dump(key._asdict()))


def run_to_message(run: Run) -> Message:
    """As it stands in the topic."""
    return Message(_dump({"version": 2, "run": run.run}), _dump({"source": run.source, "run": True}))


def from_message(message: Message) -> tuple[Key, Checkpoint] | Run:
    """Raises ValueError, KeyError, TypeError for what is none."""
    key, value = json.loads(message.key or b""), json.loads(message.value or b"")
    if "run" in key:
        return Run(str(key["source"]), str(value["run"]))
    segments = tuple(Segment(*one) for one in value["segments"])
    is_exact = bool(value.get("exact", False))
    ids = TopicIds(*(str(one) for one in value.get("topic_ids", ())))
    found = Checkpoint(int(value["source_offset"]), int(value["target_offset"]), segments, is_exact, ids)
    return Key(str(key["source"]), str(key["topic"]), int(key["partition"])), found


def _dump(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


class CheckpointLog:
    """The topic. Threads may share it. Raises ClientError."""

    def __init__(self, cluster: Cluster, topic: str, backoff: Backoff) -> None:
        self._cluster, self._topic, self._backoff = cluster, topic, backoff
        self._lock = threading.Lock()

    @property
    def place(self) -> Place:
        return self._topic, 0

    def is_there(self) -> bool:
        """Whether there is such a topic. Raises ClientError where nobody answers."""
        try:
            self._cluster.topic(self._topic)
        except BrokerError as error:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return False
            raise
        return True

    def read(self, *, is_whole: bool = True, beyond: int = -1) -> Known:
        """As it is now. `is_whole`: waits for transactions that are open there, which are another source's, and short.

        `beyond`: an offset that it had an acknowledged message at. A leader that has only just become one may not show yet what
        it has: that is waited for.
        """
        found: Known = self._backoff.run(
            lambda: self._read(is_whole, beyond), lambda: self._cluster.refresh((self._topic,))
        )
        return found

    def _read(self, is_whole: bool, beyond: int) -> Known:
        found = Known({}, {})
        reading = Reading(self._cluster, self.place)
        for one in reading:
            try:
                known = from_message(one.message)
            except (ValueError, KeyError, TypeError) as error:
                raise ClientError(f"{self._topic} has no checkpoint at offset {one.offset}: {error!r}") from error
            if isinstance(known, Run):
                found.runs[known.source] = known.run
            else:
                found.checkpoints[known[0]] = known[1]
        if reading.end <= beyond:
            raise BrokerError(ErrorCode.OFFSET_NOT_AVAILABLE, f"{self._topic} ends at {reading.end} for its leader")
        if is_whole and reading.open_from is not None:
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, f"{self._topic} from {reading.open_from} on")
        return found

    def write(self, checkpoints: Mapping[Key, Checkpoint]) -> None:
        """Acknowledged by all in-sync replicas. Twice is as good as once."""
        messages = [to_message(key, checkpoint) for key, checkpoint in checkpoints.items()]
        with self._lock:
            for some in portions(messages, LARGEST_BATCH):
                self._backoff.run(
                    partial(append, self._cluster, self.place, some),
                    lambda: self._cluster.refresh((self._topic,)),
                )
