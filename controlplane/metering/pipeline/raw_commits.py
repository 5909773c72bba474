"""What stands in a commit of `usage_raw` beside its rows: up to where the table has each partition of `__usage`. Pure.

It is the commit's `userMetadata`, as JSON; so it is there if the rows are there, and only then::

    {"sluice_usage_raw": 1, "line": "first",           a line of commits; another one where the last commit was not to be found
     "topic_id": "rJ0fCBpQTNqJ…",                      of `__usage`, as Kafka writes ids
     "next": {"0": 4711, "1": 4598},                   of the table after it: the first offsets that it does not have
     "gaps": [{"partition": 1, "first": 40, "end": 70}],   offsets before this commit's that were gone from the topic
     "begins": "2026-05-01T10:00:00Z",                 from this hour on the table has all that was told
     "writer": "…", "sequence": 17}                    of one start of the job; Delta's transaction is (line, sequence)

The table remembers by itself what it has, whatever becomes of Spark's checkpoint and of the database. A batch that comes again,
in the same pieces or in others, adds only what is beyond `next`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MARK, VERSION = "sluice_usage_raw", 1
FIRST_LINE = "first"
"""The same for everybody: of two jobs that make a table at once, one finds its first commit taken."""


class NewerTableError(Exception):
    """The table was written by a newer release; the text is for operators."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets [first, end) of a partition that the table will never have."""

    partition: int
    first: int
    end: int

    @property
    def sentence(self) -> str:
        """For operators."""
        return (
            f"usage_raw does not have records {self.first} to {self.end - 1} of partition {self.partition} of __usage"
        )


Spans = Mapping[int, tuple[int, int]]
"""By partition: the first offset, and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, and with it all before it."""

    line: str
    topic_id: str
    sequence: int
    writer: str
    begins: str
    following: Mapping[int, int] = field(default_factory=dict)  # the first offset that is not there, by partition
    gaps: tuple[Gap, ...] = ()

    @property
    def application(self) -> str:
        """For Delta's transaction, in which the sequence number is the version."""
        return f"sluice-usage-raw-{self.line}"

    def held(self, topic_id: str) -> Mapping[int, int]:
        """Up to where it has each partition of a topic; of another topic it has nothing."""
        return self.following if topic_id == self.topic_id else {}

    def to_json(self) -> str:
        """As `userMetadata`."""
        return json.dumps(
            {
                MARK: VERSION,
                "line": self.line,
                "topic_id": self.topic_id,
                "next": {str(partition): offset for partition, offset in sorted(self.following.items())},
                "gaps": [{"partition": gap.partition, "first": gap.first, "end": gap.end} for gap in self.gaps],
                "begins": self.begins,
                "writer": self.writer,
                "sequence": self.sequence,
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str | None) -> Commit | None:
        """None: somebody else's commit (OPTIMIZE, VACUUM). Raises NewerTableError."""
        members = _members(text)
        if members is None:
            return None
        if members[MARK] != VERSION:
            raise NewerTableError(
                f"usage_raw was written by a newer release ({members[MARK]}); this one knows {VERSION}"
            )
        return cls(
            members["line"],
            members["topic_id"],
            members["sequence"],
            members["writer"],
            members["begins"],
            {int(partition): offset for partition, offset in members["next"].items()},
            tuple(Gap(gap["partition"], gap["first"], gap["end"]) for gap in members["gaps"]),
        )


def fresh(known: Commit, topic_id: str, spans: Spans) -> dict[int, tuple[int, int]]:
    """What of a batch the table does not have yet."""
    held = known.held(topic_id)
    found = {partition: (max(first, held.get(partition, first)), end) for partition, (first, end) in spans.items()}
    return {partition: (first, end) for partition, (first, end) in sorted(found.items()) if first < end}


def commit_of(known: Commit, topic_id: str, new: Spans, *, writer: str) -> Commit:
    """The commit that adds these offsets (`fresh`)."""
    held = known.held(topic_id)
    gaps = tuple(
        Gap(partition, held[partition], first)
        for partition, (first, _) in sorted(new.items())
        if held.get(partition, first) < first
    )
    following = {**held, **{partition: end for partition, (_, end) in new.items()}}
    return Commit(known.line, topic_id, known.sequence + 1, writer, known.begins, following, gaps)


def _members(text: str | None) -> dict[str, Any] | None:
    try:
        members = json.loads(text or "")
    except ValueError:
        return None
    return members if isinstance(members, dict) and MARK in members else None
