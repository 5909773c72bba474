"""One load: read the manifest, plan, and for each step read, total, check, commit.

::

    the table's manifest ─> what Kafka says of the topic ─> plan ─┐ for each step
      ┌───────────────────────────────────────────────────────────┘
      └> the step onto local disks ─> totals ─> still the same topic? ─> one Delta commit: rows and manifest

Ends are fixed before the first record is read. A load that is killed has made the commits that it has made; what it had
read beyond them is read again by the next load, for nothing but the last manifest says where to go on.

A step is read once and kept on the executors' disks (`localCheckpoint`), for its totals and for its rows. Read twice,
it could be two different things: the topic may be compacted in between. A disk that is lost fails the load instead.
"""

from __future__ import annotations

import dataclasses
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention
from pyspark.sql.types import StructType

from controlplane.lake import columns, inference, schema_types, timestamps, topic
from controlplane.lake.checksum import Total
from controlplane.lake.errors import LakeError, RequestError, SchemaError
from controlplane.lake.manifest import Manifest, Schema
from controlplane.lake.planning import Loaded, Plan, Span, Spans, Wanted, check_still_there, offsets_of, plan
from controlplane.lake.progress import Progress, Say
from controlplane.lake.request import Request
from controlplane.lake.table import Table
from controlplane.spark.errors import first_line
from controlplane.spark.topics import Topic

BYTES_A_FILE = 64 * 2**20
OFFSETS_A_TASK = 50_000
SAMPLED = 2000
"""Offsets of the topic that a schema is inferred from."""
LARGEST_SAMPLED = 256 * 2**10


@dataclass(frozen=True, slots=True)
class Summary:
    """What one run has loaded."""

    topic_id: str
    commits: tuple[Manifest, ...]
    seconds: float
    is_whole: bool = True  # False: it was told to end before all was loaded

    @property
    def rows(self) -> int:
        return sum(commit.total.rows for commit in self.commits)

    @property
    def bytes(self) -> int:
        """Of keys and values."""
        return sum(commit.total.bytes for commit in self.commits)

    @property
    def problems(self) -> int:
        """Rows that do not fit the schema."""
        return sum(commit.problems for commit in self.commits)

    @property
    def partitions(self) -> dict[int, tuple[Span, Total]]:
        """What all commits together have loaded of each partition that has given offsets."""
        found: dict[int, tuple[Span, Total]] = {}
        for commit in self.commits:
            for partition, (span, total) in commit.partitions.items():
                if span.size:
                    before, so_far = found.get(partition, (span, Total()))
                    found[partition] = before.hull(span), so_far + total
        return found

    def lines(self) -> Iterator[str]:
        """For people."""
        if not self.commits:
            yield "nothing to load: the table has all that the topic has"
            return
        commits = "1 commit" if len(self.commits) == 1 else f"{len(self.commits)} commits"
        yield (
            f"{self.rows:,} rows, {self.bytes:,} bytes of keys and values,"
            f" {commits}, {self.seconds:.1f} s; topic id {self.topic_id}"
        )
        for commit in self.commits:
            for partition, (span, total) in sorted(commit.partitions.items()):
                if span.size:
                    yield (
                        f"  partition {partition} offsets {span.first}-{span.end} rows {total.rows}"
                        f" checksum {total.checksum:016x}"
                    )
            for gap in commit.gaps:
                yield f"  {gap.sentence} expired before they were loaded"
        if self.problems:
            yield f"  {self.problems:,} rows do not fit the schema: see the column `problem`"


class Load:
    """One run."""

    def __init__(self, spark: SparkSession, request: Request, say: Say) -> None:
        self._spark = spark
        self._request = request
        self._say = say
        self._progress = Progress(spark, say)
        self._table = Table(spark, request.destination)
        properties = request.properties.read_text() if request.properties else ""
        self._options = topic.options(spark, request.brokers, properties)
        self._topic = Topic(spark, self._options, request.topic)
        self._id = str(uuid.uuid4())
        self._is_cut = False

    def run(self) -> Summary:
        """Load all that was asked for. Raises LakeError, TopicAwayError, and Spark's errors."""
        began = time.monotonic()
        try:
            with self._progress.of("looking at table and topic"):
                known = self._table.manifest()
                planned = self._plan(known)
            if self._request.tidies and planned.replaces and self._table.exists:
                with self._progress.of("deleting files that were replaced before"):
                    self._table.tidy()
            # The first load of an empty topic makes a table without rows: there is something to read, and to copy.
            is_done = planned.is_nothing and known is not None
            commits = () if is_done else tuple(self._commits(known, planned))
            return Summary(planned.topic_id, commits, time.monotonic() - began, is_whole=not self._is_cut)
        finally:
            self._topic.close()

    def _plan(self, known: Manifest | None) -> Plan:
        request = self._request
        if known is None and not request.offsets and self._table.exists:
            raise LakeError(
                f"{request.destination} is a table whose log does not say what was loaded into it: name what to load with"
                " --offsets, which takes the place of what the table has of it"
            )
        if known is not None and known.topic != request.topic_named:
            raise RequestError(f"the table was loaded from the topic {known.topic}, not {request.topic_named}")
        now = topic.look(self._topic)
        starts = None
        if request.from_time_ms is not None:
            starts = self._topic.offsets_at(now.first, request.from_time_ms)
        wanted = Wanted(request.offsets, starts, request.skip_expired, request.new_topic, request.once)
        return plan(wanted, known.loaded if known else None, now)

    def _commits(self, known: Manifest | None, planned: Plan) -> Iterator[Manifest]:
        schema = self._schema(known, planned.spans)
        if known is None:
            nothing = Loaded(planned.topic_id, {})
            last = Manifest(self._request.topic_named, nothing, schema, table=str(uuid.uuid4()))
            planned = dataclasses.replace(planned, replaces=self._table.exists)
            widens = False
        else:
            widens = known.schema.type != schema.type
            last = dataclasses.replace(known.for_topic(planned.topic_id), schema=schema)
        steps = planned.steps(last.loaded, self._request.offsets_a_commit)
        self._say(f"{planned.size:,} offsets of {len(planned.spans)} partitions, {len(steps)} commits")
        for number, step in enumerate(steps, 1):
            name = f"commit {number} of {len(steps)}"
            with self._read(step, planned.topic_id, schema, name) as (rows, totals, problems):
                manifest = last.following(planned, step, totals, problems=problems, load=self._id, first=number == 1)
                files = max(1, -(-manifest.total.bytes // BYTES_A_FILE))
                replaced = columns.within(planned.topic_id, step) if planned.replaces and offsets_of(step) else None
                with self._progress.of(f"{name}: writing {manifest.total.rows:,} rows"):
                    self._table.commit(rows.coalesce(files), manifest, replaced, widens=widens)
            yield manifest
            last = manifest
            until = self._request.until
            if until is not None and number < len(steps) and until.exists():
                self._is_cut = True
                return

    @contextmanager
    def _read(
        self, step: Spans, topic_id: str, schema: Schema, name: str
    ) -> Iterator[tuple[DataFrame, Mapping[int, Total], int]]:
        """The rows of a step on local disks, their totals by partition, and how many have a problem."""
        offsets = offsets_of(step)
        tasks = max(self._spark.sparkContext.defaultParallelism, offsets // OFFSETS_A_TASK)
        records = topic.records(self._spark, self._options, self._request.topic, step, tasks=tasks)
        rows = columns.typed(columns.raw(records, topic_id), schema)
        with _released(self._spark):
            try:
                with self._progress.of(f"{name}: reading {offsets:,} offsets"):
                    kept = rows.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
                    totals, problems = columns.totals(kept)
            except (PySparkException, Py4JJavaError) as error:
                self._refuse_timestamps(error, step)
                raise
            finally:  # if Spark failed because records are gone, this says it in fewer words
                check_still_there(step, topic_id, topic.look(self._topic))
            yield kept, totals, problems

    def _refuse_timestamps(self, error: Exception, step: Spans) -> None:
        """Raises LakeError where Spark has failed because it cannot hold a record's timestamp."""
        said = timestamps.why(error)
        if not said and timestamps.is_too_large(error):
            found = self._topic.offsets_at(step, timestamps.LARGEST_MS + 1)
            places = [
                f"offset {at} in partition {partition}"
                for partition, at in sorted(found.items())
                if at < step[partition].end
            ]
            said = f"the timestamp of {places[0] if places else 'a record'} is more microseconds from 1970 than Spark can count"
        if said:
            raise LakeError(
                f"{said}: delete records up to this one from the topic; then --skip-expired goes on behind them"
            ) from error

    def _schema(self, known: Manifest | None, spans: Spans) -> Schema:
        """That of the table; at the first load the one that is asked for."""
        asked = self._request.schema
        if known is not None and known.schema.is_open:
            return self._wanted_schema(asked or "inferred", spans)
        if known is not None and (asked is None or (asked == "inferred" and known.schema.type is not None)):
            return known.schema
        wanted = self._wanted_schema(asked, spans)
        if known is not None:
            known.schema.check_same(wanted)
            return known.schema
        return wanted

    def _wanted_schema(self, asked: str | None, spans: Spans) -> Schema:
        if asked in (None, "raw"):
            return Schema()
        if asked == "inferred":
            return Schema("inferred", self._inferred(spans))
        try:
            text = Path(asked).read_text().strip()
            found = json.loads(text if text.startswith("{") else StructType.fromDDL(text).json())
        except (OSError, ValueError, RecursionError, PySparkException) as error:
            raise SchemaError(f"the schema cannot be read: {first_line(error)}") from error
        return Schema("given", schema_types.checked(found))

    def _inferred(self, spans: Spans) -> dict[str, Any] | None:
        """None: there is no value yet."""
        share = max(1, SAMPLED // max(1, len(spans)))
        sampled = {partition: Span(span.first, min(span.end, span.first + share)) for partition, span in spans.items()}
        records = topic.records(self._spark, self._options, self._request.topic, sampled, tasks=1)
        with self._progress.of("inferring the schema"):
            values = F.when(F.octet_length("value") <= LARGEST_SAMPLED, F.col("value")).alias("value")
            rows = records.where("value IS NOT NULL").select(values).collect()
        if not rows and offsets_of(sampled) == offsets_of(spans):
            return None
        found = inference.infer(row["value"] and bytes(row["value"]) for row in rows)
        if not found["fields"]:
            raise SchemaError(
                f"none of the {len(rows)} values looked at is a JSON object with members: --schema raw loads them"
            )
        return found


@contextmanager
def _released(spark: SparkSession) -> Iterator[None]:
    """Gives back, at the end, what a local checkpoint keeps on disks: Spark itself would wait for Java's garbage collector."""
    java: Any = spark.sparkContext._jsc  # noqa: SLF001  # getPersistentRDDs has no Python door
    before = set(java.getPersistentRDDs())
    try:
        yield
    finally:
        for number, kept in dict(java.getPersistentRDDs()).items():
            if number not in before and kept.rdd().isLocallyCheckpointed():
                kept.unpersist(False)
