"""What came of one partition, put into the same partition of the target, in order, and remembered.

Each partition has one append under way at most. What is appended with is a `Writer`: a transaction, or none.

Where a partition is not known to have nothing of ours behind what we know, it *recovers* first: what the target has there is
compared with what comes (`recovery`), and copying goes on after what is there.

Where nothing has to be compared or marked, records are not taken apart on their way (`moving`). A batch that is too large for
the target comes in halves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from dataplane.clients.cluster import Cluster
from dataplane.clients.errors import BrokerError
from dataplane.clients.fetching import Place
from dataplane.clients.messages import Message, MessageAndOffset, codec_of, portions
from dataplane.clients.mirror.appending import PlainWriter
from dataplane.clients.mirror.config import MirrorConfig, Source
from dataplane.clients.mirror.progress import Progress
from dataplane.clients.mirror.reading import Reading
from dataplane.clients.mirror.recovery import copied_already
from dataplane.clients.moving import MovedRecord
from dataplane.protocol.errors import ErrorCode

LOG = logging.getLogger(__name__)
MARK = "sluice-mirror"
"""The header that says through which clusters a message came, where sources are marked."""
LARGEST_BATCH = 900_000
_SMALLEST_BATCH = 16_384
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


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

    @property
    def is_late(self) -> bool:
        """Whether nothing more is to be put before what was put is committed."""
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
class Putting:
    """Of one source. Used by one thread."""

    config: MirrorConfig
    source: Source
    to: Cluster
    writer: Writer = field(init=False)
    largest_batch: int = LARGEST_BATCH  # bytes; less after a transaction that came to nothing

    def __post_init__(self) -> None:
        self.writer = PlainWriter(self.to)

    def into(self, place: Place) -> Place:
        """Where a partition of the source is in the target."""
        return self.source.prefix + place[0], place[1]

    def moves(self, state: Progress) -> bool:
        """Whether what comes of a partition need not be taken apart."""
        return self.writer.is_exact and state.is_known and not self.source.mark

    def move(self, place: Place, state: Progress, records: Sequence[MovedRecord]) -> bool:
        """Whether all of it was put, or the writer is late. Raises ClientError: `state` says up to where it is known to be."""
        for some in portions(records, self.largest_batch):
            if self.writer.is_late:
                return False
            self._send(place, state, some, some, self.writer.move)
        return True

    def is_done(self, *, committed: bool) -> None:
        """Of a transaction. After one that came to nothing batches are half as large, so that the same is not tried for ever."""
        if committed:
            self.largest_batch = min(LARGEST_BATCH, 2 * self.largest_batch)
        else:
            self.largest_batch = max(_SMALLEST_BATCH, self.largest_batch // 2)

    def append(self, place: Place, state: Progress, messages: Sequence[MessageAndOffset]) -> bool:
        """As `move`, but for what is there already."""
        if not messages:
            return True
        if not state.is_known:
            messages = self._recovered(place, state, messages)
        at = 0
        for some in portions([self._marked(one.message) for one in messages], self.largest_batch):
            if self.writer.is_late:
                return False
            self._send(place, state, messages[at : at + len(some)], some, self.writer.append)
            at += len(some)
        return True

    def _send(
        self,
        place: Place,
        state: Progress,
        messages: Sequence[MessageAndOffset | MovedRecord],
        batch: Sequence[Any],
        put: Callable[[Place, Sequence[Any], int], int],
    ) -> None:
        """`batch` is what is put for `messages`: as many."""
        try:
            base = put(self.into(place), batch, codec_of(self.config.compression))
        except BrokerError as error:
            if error.code not in _TOO_LARGE or len(messages) == 1:
                raise
            half = len(messages) // 2
            self._send(place, state, messages[:half], batch[:half], put)
            self._send(place, state, messages[half:], batch[half:], put)
            return
        _remember(state, messages, range(base, base + len(messages)))

    def _recovered(
        self, place: Place, state: Progress, messages: Sequence[MessageAndOffset]
    ) -> Sequence[MessageAndOffset]:
        """Those that are not there yet."""
        there = list(islice(Reading(self.to, self.into(place), state.next_target), len(messages)))
        count = copied_already([self._marked(one.message) for one in messages], [one.message for one in there])
        if count:
            LOG.info("%s: %d messages of %s-%d were there already", self.source.name, count, *place)
            _remember(state, messages[:count], [one.offset for one in there[:count]])
        state.is_known = count < len(messages)  # else the next ones are compared as well
        return messages[count:]

    def _marked(self, message: Message) -> Message:
        if not self.source.mark:
            return message
        headers = (*message.headers, (MARK, self.source.name.encode()))
        return Message(message.value, message.key, headers, message.timestamp)


def _remember(state: Progress, messages: Sequence[MessageAndOffset | MovedRecord], places: Sequence[int]) -> None:
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
