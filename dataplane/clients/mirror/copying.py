"""One source's partitions: what comes is appended to the same partition of the target, in order, and remembered.

Each partition has one append under way at most. After one whose outcome is not known, and at the beginning, the partition
*recovers*: what the target has behind the place that is known is compared with what comes (`recovery`), and copying goes on
after what is there.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import BrokerError, ClientError, OffsetOutOfRangeError
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME, Fetched, FetchRequest, Place, fetch_from, offset_in
from dataplane.clients.messages import Message, MessageAndOffset, codec_of, portions
from dataplane.clients.mirror.appending import append
from dataplane.clients.mirror.checkpoints import Checkpoint, Key
from dataplane.clients.mirror.config import MirrorConfig, Source
from dataplane.clients.mirror.offset_map import OffsetMap
from dataplane.clients.mirror.reading import everything
from dataplane.clients.mirror.recovery import copied_already

LOG = logging.getLogger(__name__)
MARK = "sluice-mirror"
"""The header that says through which clusters a message came, where sources are marked."""
_LARGEST_BATCH = 900_000


@dataclass
class Progress:
    """Of one partition."""

    next_source: int
    next_target: int
    offsets: OffsetMap
    is_known: bool = False  # that nothing stands behind `next_target` which is ours
    is_stuck: bool = False  # the source was made anew below what is copied
    end: int = -1  # of the source, as last heard
    copied: int = 0
    copied_bytes: int = 0

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.next_source, self.next_target, self.offsets.segments)


@dataclass
class Copier:
    """Of one source. Used by one thread; `progress` may be looked at by others."""

    config: MirrorConfig
    source: Source
    from_: Cluster
    to: Cluster
    progress: dict[Place, Progress] = field(default_factory=dict)

    def take_up(self, topics: Mapping[str, int], checkpoints: Mapping[Key, Checkpoint]) -> None:
        """Partitions that are new to this run begin at their checkpoints, or at the beginning. Raises ClientError."""
        for topic, count in topics.items():
            for partition in range(count):
                if (topic, partition) not in self.progress:
                    found = checkpoints.get(Key(self.source.name, topic, partition))
                    self.progress[topic, partition] = self._begun((topic, partition), found)

    def _begun(self, place: Place, found: Checkpoint | None) -> Progress:
        if found is not None:
            return Progress(found.source_offset, found.target_offset, OffsetMap(found.segments))
        source = offset_in(self.from_, place, EARLIEST_TIME)
        return Progress(source, offset_in(self.to, self._into(place), EARLIEST_TIME), OffsetMap())

    def step(self) -> int:
        """One round over all partitions: how many messages were copied. Raises ClientError where a source does not answer."""
        copied = 0
        for leader, places in self._by_leader().items():
            requests = [
                FetchRequest(*place, self.progress[place].next_source, self.config.fetch_bytes) for place in places
            ]
            for fetched in fetch_from(self.from_, leader, requests, committed_only=True):
                copied += self._copied(fetched)
        return copied

    def _by_leader(self) -> dict[int, list[Place]]:
        found: dict[int, list[Place]] = defaultdict(list)
        for place, state in self.progress.items():
            if state.is_stuck:
                continue
            try:
                found[self.from_.leader(*place)].append(place)
            except BrokerError as error:
                LOG.info("%s: %s", self.source.name, error)
        return found

    def _copied(self, fetched: Fetched) -> int:
        place = fetched.request.place
        state = self.progress[place]
        try:
            fetched.raise_for_error()
        except OffsetOutOfRangeError:
            self._skip_what_is_gone(place, state)
            return 0
        except BrokerError as error:
            LOG.info("%s: %s", self.source.name, error)
            self.from_.refresh((place[0],))
            return 0
        state.end = fetched.high_watermark
        messages = [one for one in fetched.entries.messages if not self._came_from_there(one.message)]
        try:
            self.append(place, state, messages)
        except ClientError as error:  # whether it is there will be seen
            state.is_known = False
            LOG.info("%s: %s", self.source.name, error)
            self._look_again(place)
            return 0
        state.next_source = max(state.next_source, fetched.entries.next_offset)
        return len(messages)

    def append(self, place: Place, state: Progress, messages: Sequence[MessageAndOffset]) -> None:
        """To the target, but for what is there already. Raises ClientError: `state` says up to where it is known to be."""
        if not messages:
            return
        if not state.is_known:
            messages = self._recovered(place, state, messages)
        at = 0
        for some in portions([self._marked(one.message) for one in messages], _LARGEST_BATCH):
            base = append(self.to, self._into(place), some, codec_of(self.config.compression))
            self._remember(state, messages[at : at + len(some)], base)
            at += len(some)

    def _recovered(
        self, place: Place, state: Progress, messages: Sequence[MessageAndOffset]
    ) -> Sequence[MessageAndOffset]:
        """Those that are not there yet."""
        into = self._into(place)
        there = everything(self.to, *into, begin=state.next_target, at_most=len(messages))
        count = copied_already([self._marked(one.message) for one in messages], there)
        if count:
            LOG.info("%s: %d messages of %s-%d were there already", self.source.name, count, *place)
            self._remember(state, messages[:count], state.next_target)
        state.is_known = count < len(messages)  # else the next ones are compared as well
        return messages[count:]

    @staticmethod
    def _remember(state: Progress, messages: Sequence[MessageAndOffset], base: int) -> None:
        for at, one in enumerate(messages):
            state.offsets.add(one.offset, base + at)
        state.next_source = messages[-1].next_offset
        state.next_target = base + len(messages)
        state.copied += len(messages)
        state.copied_bytes += sum(one.message.size for one in messages)

    def _skip_what_is_gone(self, place: Place, state: Progress) -> None:
        first, end = offset_in(self.from_, place, EARLIEST_TIME), offset_in(self.from_, place, LATEST_TIME)
        if state.next_source > end:
            LOG.error("%s: %s-%d is shorter than what was copied of it: somebody has to look", self.source.name, *place)
            state.is_stuck = True
            return
        gone = f"{state.next_source} to {first - 1}"
        LOG.error("%s: %s of %s-%d were deleted before they were copied", self.source.name, gone, *place)
        state.next_source = first

    def _look_again(self, place: Place) -> None:
        try:
            self.to.refresh((self._into(place)[0],))
        except ClientError as error:
            LOG.info("target: %s", error)

    def _into(self, place: Place) -> Place:
        return self.source.prefix + place[0], place[1]

    def _marked(self, message: Message) -> Message:
        if not self.source.mark:
            return message
        headers = (*message.headers, (MARK, self.source.name.encode()))
        return Message(message.value, message.key, headers, message.timestamp)

    def _came_from_there(self, message: Message) -> bool:
        return (MARK, self.config.target.name.encode()) in message.headers
