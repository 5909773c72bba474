"""One source's partitions: fetched from their leaders, put into the target (`putting`), a round at a time.

Without transactions a partition recovers at the beginning, and after an append whose outcome is not known. With them it does
so only behind a checkpoint that was written without; an outcome that is not known ends the transaction, and everything is
again as the last one left it: `rewind`.

What the target refuses for good (a right that is missing, a message that is too large) has that partition *rest*, longer each
time, and holds up no other. A partition that has no leader at the source rests for a moment.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import BrokerError, ClientError, OffsetOutOfRangeError
from dataplane.clients.fetching import EARLIEST_TIME, LATEST_TIME, Fetched, FetchRequest, Place, fetch_from, offset_in
from dataplane.clients.messages import Message, MessageAndOffset
from dataplane.clients.mirror.checkpoints import Checkpoint, Followed, Key, TopicIds
from dataplane.clients.mirror.config import MirrorConfig, Source
from dataplane.clients.mirror.metrics import Row
from dataplane.clients.mirror.offset_map import OffsetMap
from dataplane.clients.mirror.progress import Progress
from dataplane.clients.mirror.putting import MARK, Putting, Writer
from dataplane.clients.moving import MovedRecord

LOG = logging.getLogger(__name__)
_FIRST_REST_S, _LONGEST_REST_S = 2.0, 300.0
_SOURCE_REST_S = 0.5  # where the source has no leader of a partition, or says that it is another one
Arrived = Sequence[MessageAndOffset] | Sequence[MovedRecord]


@dataclass
class Copier:
    """Of one source. Used by one thread; `progress` may be looked at by others."""

    config: MirrorConfig
    source: Source
    from_: Cluster
    to: Cluster
    progress: dict[Place, Progress] = field(default_factory=dict)
    is_blind: bool = False  # a broker of the source did not answer in the last step
    is_full: bool = False  # something was left out in the last step: the transaction has no room for more, or no time
    turn: int = 0  # which partition comes first: who was left out has its turn
    now_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._putting = Putting(self.config, self.source, self.to)
        self._topics: dict[str, Followed] = {}

    @property
    def writer(self) -> Writer:
        """How batches reach the target. At first: without transactions."""
        return self._putting.writer

    @writer.setter
    def writer(self, writer: Writer) -> None:
        self._putting.writer = writer

    def is_done(self, *, committed: bool) -> None:
        """Of a transaction: see `Putting`."""
        self._putting.is_done(committed=committed)

    def rows(self) -> list[Row]:
        """How far each partition is. Any thread may ask."""
        now_s = self.now_s()
        rows = dict(self.progress).items()
        return [state.row(self.source.name, self._putting.into(place), now_s) for place, state in rows]

    def take_up(self, topics: Mapping[str, Followed], checkpoints: Mapping[Key, Checkpoint]) -> None:
        """New partitions begin at their checkpoints, or at the beginning; those of topics that are gone are given up.

        Where a topic was made anew at one end, see `_begun`. Between two transactions only, and with checkpoints that are the
        last ones: a topic may come back. Raises ClientError.
        """
        self._topics = dict(topics)
        for place in [place for place in self.progress if place[0] not in topics]:
            del self.progress[place]
        for topic, followed in topics.items():
            for place in ((topic, partition) for partition in range(followed.partitions)):
                state = self.progress.get(place)
                if state is None:
                    self.progress[place] = self._begun(place, checkpoints.get(Key(self.source.name, *place)))
                elif state.topic_ids != state.topic_ids.now(followed.ids):
                    known = state.checkpoint(is_exact=self.writer.is_exact)
                    # no longer stuck, where the topic was made anew once more
                    self.progress[place] = state.begun_anew(self._begun(place, known, is_said=state.is_stuck))

    def rewind(self, checkpoints: Mapping[Key, Checkpoint]) -> None:
        """All partitions are where their checkpoints say, whatever was appended since. Raises ClientError."""
        for place, state in list(self.progress.items()):
            begun = self._begun(place, checkpoints.get(Key(self.source.name, *place)), is_said=state.is_stuck)
            begun.is_stuck |= state.is_stuck
            self.progress[place] = state.begun_anew(begun)

    def _begun(self, place: Place, found: Checkpoint | None, *, is_said: bool = False) -> Progress:
        """At the checkpoint, or at the beginning where there is none; so too where the target's topic was made anew and is empty.

        Where somebody has written to that one, or the source's was made anew, it stands still: what is behind the checkpoint does
        not follow what is before it. `is_said`: so it does already.
        """
        seen = self._topics[place[0]].ids
        ids = found.topic_ids.now(seen) if found is not None else seen
        into = self._putting.into(place)
        if found is None:
            return self._at_the_beginning(place, ids)
        is_known = found.is_exact and self.writer.is_exact
        offsets = OffsetMap(found.segments)
        state = Progress(found.source_offset, found.target_offset, offsets, ids, is_known)
        if _is_another(found.topic_ids.source, ids.source):
            if not found.segments:  # nothing was copied of that one
                return self._at_the_beginning(place, ids)
            state.is_stuck = True
            if not is_said:
                LOG.error("%s: %s-%d was made anew at the source: somebody has to look", self.source.name, *place)
        elif _is_another(found.topic_ids.target, ids.target):
            if offset_in(self.to, into, LATEST_TIME) == 0:
                LOG.warning("%s: %s-%d was made anew in the target: all is copied again", self.source.name, *into)
                return self._at_the_beginning(place, ids)
            state.is_stuck = True
            if not is_said:
                words = "%s: %s-%d was made anew in the target, and has messages: somebody has to look"
                LOG.error(words, self.source.name, *into)
        if state.is_stuck:
            state.topic_ids = found.topic_ids
        return state

    def _at_the_beginning(self, place: Place, ids: TopicIds) -> Progress:
        source = offset_in(self.from_, place, EARLIEST_TIME)
        return Progress(source, offset_in(self.to, self._putting.into(place), EARLIEST_TIME), OffsetMap(), ids)

    # --- a step -------------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """One round over all partitions: how many messages were copied. Raises ClientError only where the writer is broken."""
        copied = 0
        self.is_blind = False
        self.is_full = False
        for leader, places in self._by_leader().items():
            if self.writer.is_late:
                self.is_full = True
                break
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

    def _fetched(self, leader: int, places: Sequence[Place]) -> list[Fetched]:
        """Of one leader; what may be moved as it is, apart from what has to be looked into. Raises ClientError."""
        moved = [place for place in places if self._putting.moves(self.progress[place])]
        others = [place for place in places if not self._putting.moves(self.progress[place])]
        found: list[Fetched] = []
        for some, unless in ((moved, MARK.encode()), (others, None)):
            requests = [
                FetchRequest(*place, self.progress[place].next_source, self.config.fetch_bytes) for place in some
            ]
            if requests:
                found += fetch_from(self.from_, leader, requests, committed_only=True, raw_unless=unless)
        return found

    def _arrived(self, fetched: Fetched) -> Arrived | None:
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

    def _wait_for_source(self, place: Place, state: Progress, error: ClientError) -> None:
        LOG.info("%s: %s", self.source.name, error)
        state.rest_until = self.now_s() + _SOURCE_REST_S
        _look_again(self.from_, place[0])

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

    def _came_from_there(self, message: Message) -> bool:
        return (MARK, self.config.target.name.encode()) in message.headers

    # --- into the target ----------------------------------------------------------------------------------------------

    def _enlisted(self, places: Sequence[Place]) -> set[Place]:
        """Those that can be written to now. Raises ClientError: the writer is broken."""
        into = {place: self._putting.into(place) for place in places}
        there = [place for place in places if self.writer.has(into[place])]
        others = [place for place in places if not self.writer.has(into[place])]
        room = self.writer.room
        if len(others) > room:
            self.is_full = True
            self.turn += max(1, room)
        wanted = {into[place]: place for place in (*there, *others[:room])}
        for target, code in self.writer.enlist(wanted).items():
            self._rest(wanted.pop(target), BrokerError(code, f"write to {target[0]}-{target[1]}"))
        return set(wanted.values())

    def _copied(self, fetched: Fetched, messages: Arrived) -> int:
        place = fetched.request.place
        state = self.progress[place]
        before = state.copied
        try:
            if fetched.raw is not None:
                is_whole = self._putting.move(place, state, fetched.raw)
            else:
                is_whole = self._putting.append(place, state, cast("Sequence[MessageAndOffset]", messages))
        except ClientError as error:
            if self.writer.is_broken:
                self._rest(place, error)
                raise
            self._failed(place, state, error)
            return 0
        if not is_whole:  # the rest is fetched again after the commit
            self.is_full = True
            self.turn += 1
            return state.copied - before
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
        _look_again(self.to, self._putting.into(place)[0])

    def _rest(self, place: Place, error: ClientError) -> None:
        state = self.progress[place]
        state.rest_s = min(_LONGEST_REST_S, max(_FIRST_REST_S, 2 * state.rest_s))
        state.rest_until = self.now_s() + state.rest_s
        LOG.warning("%s: %s-%d rests for %.0f s: %s", self.source.name, *place, state.rest_s, error)


def _is_another(before: str, now: str) -> bool:
    """Of ids of topics. Where one was not told, nobody knows."""
    return bool(before) and before != now


def _look_again(cluster: Cluster, topic: str) -> None:
    try:
        cluster.refresh((topic,))
    except ClientError as error:
        LOG.info("%s: %s", topic, error)
