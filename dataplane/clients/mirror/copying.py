"""One source's partitions: what comes is appended to the same partition of the target, in order, and remembered.

Each partition has one append under way at most. What is appended with is a `Writer`: a transaction, or none.

Without transactions, after an append whose outcome is not known, and at the beginning, the partition *recovers*: what the
target has behind the place that is known is compared with what comes (`recovery`), and copying goes on after what is there.
With them this is only done behind a checkpoint that was written without; an outcome that is not known ends the transaction,
and everything is again as the last one left it: `rewind`.

Where nothing has to be compared or marked, records are not taken apart on their way (`moving`).

What the target refuses for good (a right that is missing, a message that is too large) has that partition *rest*, longer each
time, and holds up no other. A batch that is too large for the target comes in halves.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, cast

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import BrokerError, ClientError, OffsetOutOfRangeError
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME, Fetched, FetchRequest, Place, fetch_from, offset_in
from dataplane.clients.messages import Message, MessageAndOffset, codec_of, portions
from dataplane.clients.mirror.appending import PlainWriter
from dataplane.clients.mirror.checkpoints import Checkpoint, Key
from dataplane.clients.mirror.config import MirrorConfig, Source
from dataplane.clients.mirror.metrics import COPYING, RESTING, STUCK, Row
from dataplane.clients.mirror.offset_map import OffsetMap
from dataplane.clients.mirror.reading import Reading
from dataplane.clients.mirror.recovery import copied_already
from dataplane.clients.moving import MovedRecord
from dataplane.protocol.errors import ErrorCode

LOG = logging.getLogger(__name__)
MARK = "sluice-mirror"
"""The header that says through which clusters a message came, where sources are marked."""
_LARGEST_BATCH = 900_000
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_FIRST_REST_S, _LONGEST_REST_S = 2.0, 300.0
_SOURCE_REST_S = 0.5  # where the source has no leader of a partition, or says that it is another one


class Writer(Protocol):
    """How batches reach the target."""

    @property
    def is_exact(self) -> bool:
        """Whether all of it is there together with its checkpoint, or nothing."""
        ...

    @property
    def is_broken(self) -> bool:
        """Whether what was appended since the last checkpoint will not be there."""
        ...

    @property
    def room(self) -> int:
        """For so many partitions more."""
        ...

    def has(self, place: Place) -> bool:
        """Whether there is room for this one anyhow."""
        ...

    def enlist(self, places: Iterable[Place]) -> Mapping[Place, int]:
        """Those that cannot be written to, with an error code each. Raises ClientError."""
        ...

    def append(self, place: Place, messages: Sequence[Message], codec: int) -> int:
        """The offset of the first. Raises ClientError."""
        ...

    def move(self, place: Place, records: Sequence[MovedRecord], codec: int) -> int:
        """As `append`. Only asked for where `is_exact`."""
        ...


@dataclass
class Progress:
    """Of one partition."""

    next_source: int
    next_target: int
    offsets: OffsetMap
    is_known: bool = False  # that nothing stands behind `next_target` which is ours
    is_stuck: bool = False  # the source was made anew below what is copied
    end: int = -1  # of the source, as last heard
    copied: int = 0  # in this run; what an aborted transaction had is counted again
    copied_bytes: int = 0
    rest_until: float = 0.0  # by the copier's clock
    rest_s: float = 0.0

    def checkpoint(self, *, is_exact: bool = False) -> Checkpoint:
        """`is_exact`: it is written in one transaction with the data; it says so once nothing can be behind it from before."""
        return Checkpoint(self.next_source, self.next_target, self.offsets.segments, is_exact and self.is_known)


@dataclass
class Copier:
    """Of one source. Used by one thread; `progress` may be looked at by others."""

    config: MirrorConfig
    source: Source
    from_: Cluster
    to: Cluster
    writer: Writer = field(init=False)
    progress: dict[Place, Progress] = field(default_factory=dict)
    is_blind: bool = False  # a broker of the source did not answer in the last step
    is_full: bool = False  # something was left out in the last step: the transaction has no room for more partitions
    turn: int = 0  # which partition comes first: who was left out has its turn
    now_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.writer = PlainWriter(self.to)

    def rows(self) -> list[Row]:
        """How far each partition is. Any thread may ask."""
        return [self._row(place, state) for place, state in dict(self.progress).items()]

    def _row(self, place: Place, state: Progress) -> Row:
        segments = state.offsets.segments
        is_resting = self.now_s() < state.rest_until and state.rest_s > 0
        word = STUCK if state.is_stuck else RESTING if is_resting else COPYING
        return Row(
            self.source.name,
            *self._into(place),
            lag=max(0, state.end - state.next_source),
            next_source=state.next_source,
            next_target=state.next_target,
            copied=state.copied,
            copied_bytes=state.copied_bytes,
            end=state.end,
            map_segments=len(segments),
            map_slack=max((one.slack for one in segments), default=0),
            is_waiting=int(word != COPYING),
            map_from=segments[0].source if segments else -1,
            state=word,
        )

    def take_up(self, topics: Mapping[str, int], checkpoints: Mapping[Key, Checkpoint]) -> None:
        """New partitions begin at their checkpoints, or at the beginning; those of topics that are gone are given up.

        Between two transactions only, and with checkpoints that are the last ones: a topic may come back. Raises ClientError.
        """
        for place in [place for place in self.progress if place[0] not in topics]:
            del self.progress[place]
        for topic, count in topics.items():
            for partition in range(count):
                if (topic, partition) not in self.progress:
                    found = checkpoints.get(Key(self.source.name, topic, partition))
                    self.progress[topic, partition] = self._begun((topic, partition), found)

    def rewind(self, checkpoints: Mapping[Key, Checkpoint]) -> None:
        """All partitions are where their checkpoints say, whatever was appended since. Raises ClientError."""
        for place, state in list(self.progress.items()):
            begun = self._begun(place, checkpoints.get(Key(self.source.name, *place)))
            begun.end, begun.is_stuck = state.end, state.is_stuck
            begun.copied, begun.copied_bytes = state.copied, state.copied_bytes
            begun.rest_until, begun.rest_s = state.rest_until, state.rest_s
            self.progress[place] = begun

    def _begun(self, place: Place, found: Checkpoint | None) -> Progress:
        if found is not None:
            is_known = found.is_exact and self.writer.is_exact
            return Progress(found.source_offset, found.target_offset, OffsetMap(found.segments), is_known)
        source = offset_in(self.from_, place, EARLIEST_TIME)
        return Progress(source, offset_in(self.to, self._into(place), EARLIEST_TIME), OffsetMap())

    # --- a step -------------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """One round over all partitions: how many messages were copied. Raises ClientError only where the writer is broken."""
        copied = 0
        self.is_blind = False
        self.is_full = False
        for leader, places in self._by_leader().items():
            try:
                answers = self._fetched(leader, places)
            except ClientError as error:
                LOG.warning("%s: %s", self.source.name, error)
                self.is_blind = True
                continue
            arrived = [(fetched, self._arrived(fetched)) for fetched in answers]
            ready = self._enlisted([fetched.request.place for fetched, messages in arrived if messages])
            for fetched, messages in arrived:
                if messages is not None and (not messages or fetched.request.place in ready):
                    copied += self._copied(fetched, messages)
        return copied

    def _fetched(self, leader: int, places: Sequence[Place]) -> list[Fetched]:
        """Of one leader; what may be moved as it is, apart from what has to be looked into. Raises ClientError."""
        moved = [place for place in places if self._moves(self.progress[place])]
        others = [place for place in places if not self._moves(self.progress[place])]
        found: list[Fetched] = []
        for some, unless in ((moved, MARK.encode()), (others, None)):
            requests = [
                FetchRequest(*place, self.progress[place].next_source, self.config.fetch_bytes) for place in some
            ]
            if requests:
                found += fetch_from(self.from_, leader, requests, committed_only=True, raw_unless=unless)
        return found

    def _moves(self, state: Progress) -> bool:
        return self.writer.is_exact and state.is_known and not self.source.mark

    def _by_leader(self) -> dict[int, list[Place]]:
        found: dict[int, list[Place]] = defaultdict(list)
        now = self.now_s()
        rows = list(self.progress.items())
        first = self.turn % max(1, len(rows))
        for place, state in rows[first:] + rows[:first]:
            if state.is_stuck or now < state.rest_until:
                continue
            try:
                found[self.from_.leader(*place)].append(place)
            except ClientError as error:
                self._wait_for_source(place, state, error)
        return found

    def _wait_for_source(self, place: Place, state: Progress, error: ClientError) -> None:
        LOG.info("%s: %s", self.source.name, error)
        state.rest_until = self.now_s() + _SOURCE_REST_S
        self._look_again(self.from_, place[0])

    def _arrived(self, fetched: Fetched) -> Sequence[MessageAndOffset] | Sequence[MovedRecord] | None:
        """What is to be copied of it; None where there was an error."""
        place = fetched.request.place
        state = self.progress[place]
        try:
            fetched.raise_for_error()
        except OffsetOutOfRangeError:
            try:
                self._skip_what_is_gone(place, state)
            except ClientError as error:
                LOG.info("%s: %s", self.source.name, error)
            return None
        except BrokerError as error:
            self._wait_for_source(place, state, error)
            return None
        state.end = fetched.high_watermark
        if fetched.raw is not None:  # and so nothing of it is marked
            return fetched.raw
        return [one for one in fetched.entries.messages if not self._came_from_there(one.message)]

    def _enlisted(self, places: Sequence[Place]) -> set[Place]:
        """Those that can be written to now. Raises ClientError: the writer is broken."""
        there = [place for place in places if self.writer.has(self._into(place))]
        others = [place for place in places if not self.writer.has(self._into(place))]
        room = self.writer.room
        if len(others) > room:
            self.is_full = True
            self.turn += max(1, room)
        wanted = {self._into(place): place for place in (*there, *others[:room])}
        for into, code in self.writer.enlist(wanted).items():
            place = wanted.pop(into)
            self._rest(place, BrokerError(code, f"write to {into[0]}-{into[1]}"))
        return set(wanted.values())

    def _copied(self, fetched: Fetched, messages: Sequence[MessageAndOffset] | Sequence[MovedRecord]) -> int:
        place = fetched.request.place
        state = self.progress[place]
        try:
            if fetched.raw is not None:
                self._move(place, state, fetched.raw)
            else:
                self.append(place, state, cast("Sequence[MessageAndOffset]", messages))
        except ClientError as error:
            if self.writer.is_broken:
                self._rest(place, error)
                raise
            self._failed(place, state, error)
            return 0
        state.next_source = max(state.next_source, fetched.entries.next_offset)
        if messages:
            state.rest_s = 0.0
        return len(messages)

    def _failed(self, place: Place, state: Progress, error: ClientError) -> None:
        if self.writer.is_exact or not error.retriable:
            self._rest(place, error)
        else:
            LOG.info("%s: %s", self.source.name, error)
        if not self.writer.is_exact:  # whether it is there will be seen
            state.is_known = False
        self._look_again(self.to, self._into(place)[0])

    def _rest(self, place: Place, error: ClientError) -> None:
        state = self.progress[place]
        state.rest_s = min(_LONGEST_REST_S, max(_FIRST_REST_S, 2 * state.rest_s))
        state.rest_until = self.now_s() + state.rest_s
        LOG.warning("%s: %s-%d rests for %.0f s: %s", self.source.name, *place, state.rest_s, error)

    def append(self, place: Place, state: Progress, messages: Sequence[MessageAndOffset]) -> None:
        """To the target, but for what is there already. Raises ClientError: `state` says up to where it is known to be."""
        if not messages:
            return
        if not state.is_known:
            messages = self._recovered(place, state, messages)
        at = 0
        for some in portions([self._marked(one.message) for one in messages], _LARGEST_BATCH):
            self._send(place, state, messages[at : at + len(some)], some, self.writer.append)
            at += len(some)

    def _move(self, place: Place, state: Progress, records: Sequence[MovedRecord]) -> None:
        for some in portions(records, _LARGEST_BATCH):
            self._send(place, state, some, some, self.writer.move)

    def _send(
        self,
        place: Place,
        state: Progress,
        messages: Sequence[MessageAndOffset] | Sequence[MovedRecord],
        batch: Sequence[Any],
        put: Callable[[Place, Sequence[Any], int], int],
    ) -> None:
        """`batch` is what is put for `messages`: as many. What is too large comes in halves."""
        try:
            base = put(self._into(place), batch, codec_of(self.config.compression))
        except BrokerError as error:
            if error.code not in _TOO_LARGE or len(messages) == 1:
                raise
            half = len(messages) // 2
            self._send(place, state, messages[:half], batch[:half], put)
            self._send(place, state, messages[half:], batch[half:], put)
            return
        self._remember(state, messages, range(base, base + len(messages)))

    def _recovered(
        self, place: Place, state: Progress, messages: Sequence[MessageAndOffset]
    ) -> Sequence[MessageAndOffset]:
        """Those that are not there yet."""
        there = list(islice(Reading(self.to, self._into(place), state.next_target), len(messages)))
        count = copied_already([self._marked(one.message) for one in messages], [one.message for one in there])
        if count:
            LOG.info("%s: %d messages of %s-%d were there already", self.source.name, count, *place)
            self._remember(state, messages[:count], [one.offset for one in there[:count]])
        state.is_known = count < len(messages)  # else the next ones are compared as well
        return messages[count:]

    @staticmethod
    def _remember(
        state: Progress, messages: Sequence[MessageAndOffset] | Sequence[MovedRecord], places: Sequence[int]
    ) -> None:
        count = len(messages)
        if messages[-1].offset - messages[0].offset == places[-1] - places[0] == count - 1:
            state.offsets.add_run(messages[0].offset, places[0], count)
        else:
            for one, place in zip(messages, places, strict=True):
                state.offsets.add(one.offset, place)
        state.next_source = messages[-1].next_offset
        state.next_target = places[-1] + 1
        state.copied += count
        state.copied_bytes += sum(one.size for one in messages)

    def _skip_what_is_gone(self, place: Place, state: Progress) -> None:
        first, end = offset_in(self.from_, place, EARLIEST_TIME), offset_in(self.from_, place, LATEST_TIME)
        if state.next_source > end:
            LOG.error("%s: %s-%d is shorter than what was copied of it: somebody has to look", self.source.name, *place)
            state.is_stuck = True
            return
        if state.next_source >= first:  # by now it is there
            return
        gone = f"{state.next_source} to {first - 1}"
        LOG.error("%s: %s of %s-%d were deleted before they were copied", self.source.name, gone, *place)
        state.next_source = first

    @staticmethod
    def _look_again(cluster: Cluster, topic: str) -> None:
        try:
            cluster.refresh((topic,))
        except ClientError as error:
            LOG.info("%s: %s", topic, error)

    def _into(self, place: Place) -> Place:
        return self.source.prefix + place[0], place[1]

    def _marked(self, message: Message) -> Message:
        if not self.source.mark:
            return message
        headers = (*message.headers, (MARK, self.source.name.encode()))
        return Message(message.value, message.key, headers, message.timestamp)

    def _came_from_there(self, message: Message) -> bool:
        return (MARK, self.config.target.name.encode()) in message.headers
