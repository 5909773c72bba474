"""How far one partition was copied, while a mirror runs, and what is told of it."""

from __future__ import annotations

from dataclasses import dataclass

from dataplane.clients.fetching import Place
from dataplane.clients.mirror.checkpoints import NOT_TOLD, Checkpoint, TopicIds
from dataplane.clients.mirror.metrics import COPYING, RESTING, STUCK, Row
from dataplane.clients.mirror.offset_map import OffsetMap


@dataclass
class Progress:
    """Of one partition."""

    next_source: int
    next_target: int
    offsets: OffsetMap
    topic_ids: TopicIds = NOT_TOLD
    is_known: bool = False  # that nothing stands behind `next_target` which is ours
    is_stuck: bool = False  # what is at an end is not what the offsets speak of: somebody has to look
    end: int = -1  # of the source, as last heard
    copied: int = 0  # in this run; what an aborted transaction had is counted again
    copied_bytes: int = 0
    rest_until: float = 0.0  # by the copier's clock
    rest_s: float = 0.0  # how long the target's last refusal has it rest; 0: it did not refuse

    def checkpoint(self, *, is_exact: bool = False) -> Checkpoint:
        """`is_exact`: it is written in one transaction with the data; it says so once nothing can be behind it from before."""
        return Checkpoint(
            self.next_source, self.next_target, self.offsets.segments, is_exact and self.is_known, self.topic_ids
        )

    def begun_anew(self, begun: Progress) -> Progress:
        """Where `begun` is, with what does not go back: totals, and why it rests."""
        begun.end = self.end
        begun.copied, begun.copied_bytes = self.copied, self.copied_bytes
        begun.rest_until, begun.rest_s = self.rest_until, self.rest_s
        return begun

    def row(self, source: str, into: Place, now_s: float) -> Row:
        """As metrics and people are told."""
        segments = self.offsets.segments
        is_resting = now_s < self.rest_until and self.rest_s > 0
        word = STUCK if self.is_stuck else RESTING if is_resting else COPYING
        return Row(
            source,
            *into,
            lag=max(0, self.end - self.next_source),
            next_source=self.next_source,
            next_target=self.next_target,
            copied=self.copied,
            copied_bytes=self.copied_bytes,
            end=self.end,
            map_segments=len(segments),
            map_slack=max((one.slack + one.dip for one in segments), default=0),
            is_waiting=int(word != COPYING),
            map_from=segments[0].source if segments else -1,
            state=word,
        )
