"""What stands in a commit of the table beside its data: which offsets, how many rows, their checksums. Pure.

It is the `userMetadata` of the commit, as JSON; so it is there if the data is there, and only then. `DESCRIBE HISTORY`
shows it. ::

    {"sluice_lake": 1,
     "topic": "orders", "topic_id": "rJ0fCBpQTNqJ…",           as Kafka writes ids
     "load": "…", "mode": "append" | "replace",                of one run of the program, which may make several commits
     "partitions": {"0": {"first": 0, "end": 40, "rows": 38, "bytes": 9120, "checksum": "00ab…"}},     of this commit
     "problems": 0,                                            rows of this commit that do not fit the schema
     "gaps": [{"partition": 0, "first": 0, "end": 7}],         expired before this commit, and passed over
     "loaded": {"0": [0, 40], "1": [0, 12]},                   of the table after it: the next load goes on at 40 and 12
     "earlier": [{"topic_id": "…", "loaded": {…}}],            of topics of the same name before this one
     "schema": {"kind": "raw" | "inferred" | "given", "type": {…}},       Spark's JSON of the column `data`; null: none (yet)
     "table": "…", "sequence": 3}                              Delta's transaction: application and version

`checksum` says what `checksum.py` says. Rows may be fewer than offsets: markers of transactions and compaction take some.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from controlplane.lake.checksum import Total
from controlplane.lake.errors import LakeError, SchemaError
from controlplane.lake.planning import Gap, Loaded, Plan, Span, Spans
from controlplane.lake.schema_types import checked

VERSION = 1
MARK = "sluice_lake"


@dataclass(frozen=True, slots=True)
class Schema:
    """How values become the column `data`: not at all, or as this type. The same for the life of the table.

    One that is `open` is to be inferred, and the topic has not had a value yet: the first load that finds some settles it.
    """

    kind: str = "raw"
    type: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Whoever it came from, Spark is handed nothing but types that are known. Raises SchemaError."""
        if self.type is not None:
            object.__setattr__(self, "type", checked(self.type))

    @property
    def is_open(self) -> bool:
        """Whether the type is still to be found."""
        return self.kind == "inferred" and self.type is None

    def check_same(self, other: Schema) -> None:
        """Raises SchemaError where a load asks for another one than the table has."""
        if other.type != self.type:
            raise SchemaError(
                f"the table has the schema {json.dumps(self.type)} ({self.kind}), and another one is asked for: leave --schema"
                " out, or load into another table"
            )


@dataclass(frozen=True, slots=True)
class Manifest:
    """One commit."""

    topic: str
    loaded: Loaded
    schema: Schema
    table: str  # drawn when the table is first loaded
    sequence: int = 0  # 0: before the first commit
    load: str = ""
    replaces: bool = False
    partitions: Mapping[int, tuple[Span, Total]] = field(default_factory=dict)
    problems: int = 0
    gaps: tuple[Gap, ...] = ()
    earlier: tuple[Loaded, ...] = ()

    @property
    def topic_id(self) -> str:
        return self.loaded.topic_id

    @property
    def application(self) -> str:
        """For Delta's transaction, in which the sequence number is the version."""
        return f"sluice-lake-{self.table}"

    @property
    def total(self) -> Total:
        """Of this commit. Its checksum is the sum over partitions."""
        return sum((total for _, total in self.partitions.values()), Total())

    def for_topic(self, topic_id: str) -> Manifest:
        """As the next commit finds it; of a topic that was made again, the table has nothing yet."""
        if topic_id == self.topic_id:
            return self
        return replace(self, loaded=Loaded(topic_id, {}), earlier=(*self.earlier, self.loaded))

    def following(
        self, plan: Plan, step: Spans, totals: Mapping[int, Total], *, problems: int, load: str, first: bool
    ) -> Manifest:
        """The commit of a step. `first` of its load: gaps are noted there."""
        gaps = plan.gaps if first else ()
        return replace(
            self,
            load=load,
            replaces=plan.replaces,
            sequence=self.sequence + 1,
            partitions={partition: (span, totals.get(partition, Total())) for partition, span in step.items()},
            problems=problems,
            gaps=gaps,
            loaded=self.loaded.after(gaps, step),
        )

    def to_json(self) -> str:
        return json.dumps(
            {
                MARK: VERSION, "topic": self.topic, "topic_id": self.topic_id, "load": self.load,
                "mode": "replace" if self.replaces else "append",
                "partitions": {str(at): _part(span, total) for at, (span, total) in sorted(self.partitions.items())},
                "problems": self.problems,
                "gaps": [{"partition": gap.partition, "first": gap.span.first, "end": gap.span.end} for gap in self.gaps],
                "loaded": _pairs(self.loaded),
                "earlier": [{"topic_id": each.topic_id, "loaded": _pairs(each)} for each in self.earlier],
                "schema": {"kind": self.schema.kind, "type": self.schema.type},
                "table": self.table, "sequence": self.sequence,
            },
            separators=(",", ":"),
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str | None) -> Manifest | None:
        """None: somebody else's commit (OPTIMIZE, a user's own). Raises LakeError for one of a newer program."""
        members = _members(text)
        if members is None:
            return None
        if members[MARK] != VERSION:
            raise LakeError(
                f"the table was loaded by a newer release (manifest {members[MARK]}); this one knows {VERSION}"
            )
        return cls(
            topic=members["topic"],
            loaded=_loaded(members),
            schema=Schema(members["schema"]["kind"], members["schema"]["type"]),
            table=members["table"],
            sequence=members["sequence"],
            load=members["load"],
            replaces=members["mode"] == "replace",
            partitions={
                int(at): (
                    Span(part["first"], part["end"]),
                    Total(part["rows"], part["bytes"], int(part["checksum"], 16)),
                )
                for at, part in members["partitions"].items()
            },
            problems=members["problems"],
            gaps=tuple(Gap(gap["partition"], Span(gap["first"], gap["end"])) for gap in members["gaps"]),
            earlier=tuple(_loaded(each) for each in members["earlier"]),
        )


def _members(text: str | None) -> dict[str, Any] | None:
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and MARK in found else None


def _part(span: Span, total: Total) -> dict[str, Any]:
    return {
        "first": span.first, "end": span.end, "rows": total.rows, "bytes": total.bytes, "checksum": f"{total.checksum:016x}",
    }  # fmt: skip


def _pairs(loaded: Loaded) -> dict[str, list[int]]:
    return {str(partition): [span.first, span.end] for partition, span in sorted(loaded.spans.items())}


def _loaded(members: Mapping[str, Any]) -> Loaded:
    spans = {int(partition): Span(*pair) for partition, pair in members["loaded"].items()}
    return Loaded(members["topic_id"], spans)
