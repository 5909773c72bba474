"""`usage_raw`: every record of `__usage` as it was read, each exactly once, in a Delta table; what bills can be recomputed from.

The stream of each cluster has a table of its own, since its commits say how far it has come: `usage_raw` that of `default`,
`usage_raw-<name>` of others. Who recomputes reads all of them.

Columns are `transforms.RAW`; the table is in folders by `day`, that of the hour under which a record is booked. Refused records
are in it as well, whole, with the reason. A batch is appended in one commit that says up to where the table has come
(`raw_commits`), before the database hears of the batch: so the database is never ahead of the table, and a batch that is
half done is done again. What the table has already is left out, so nothing comes twice, whichever checkpoint is lost.

Two jobs at the same time, by mistake: each commit is a Delta transaction whose version is the number of the commit, so the
second of two with the same number conflicts or is passed over in silence; after each commit its own is looked for. The slower
job's batch fails, and it begins again behind the other's.

A table that is new begins with what the database knew then: the largest counters of each key, as rows of the kind `known`. They
are no records, and hours before `begins` cannot be recomputed from them; hours from then on can, although boots had begun before.

A table that an earlier release made gets columns that it lacks with the first batch; until then they are read as nothing.

Commits come every few seconds, so the table's log is kept for a week and no longer. Where it does not have a commit of a job any
more (nothing was appended for weeks, and somebody has compacted the table), the rows themselves say how far they go.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from controlplane.metering.pipeline import transforms
from controlplane.metering.pipeline.folded import largest
from controlplane.metering.pipeline.maxima import MAXIMUM_TABLE
from controlplane.metering.pipeline.progress_table import PROGRESS_TABLE
from controlplane.metering.pipeline.raw_commits import FIRST_LINE, Commit, Spans, commit_of, fresh
from controlplane.metering.pipeline.settings import DEFAULT_CLUSTER
from controlplane.metering.pipeline.tables import Database
from controlplane.spark import delta
from quota.contracts.usage import COUNTERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from controlplane.env import Environment

LOG = logging.getLogger("sluice.metering")
NAME = "usage_raw"
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
NEWEST = 20
"""Commits that are looked at first: compaction has its own among them."""
PROPERTIES = {
    # A batch is a file of some thousand rows, every few seconds: now and then Delta makes one of many.
    "delta.autoOptimize.autoCompact": "true",
    "delta.logRetentionDuration": "interval 7 days",
}
"""Of the table, when it is made."""


KNOWN_AT_ONCE = 50_000
"""Rows of what the database knows that are appended together."""
_KNOWN = (
    # With what rows know of earlier ones: these are deleted once their day is folded.
    f"SELECT instance, boot, topic, MAX(hour), MAX(broker), {', '.join(f'MAX({largest(name)})' for name in COUNTERS)}"  # noqa: S608
    f" FROM {MAXIMUM_TABLE} GROUP BY instance, boot, topic"
)


_POSITIONS = f"SELECT partition, next_offset FROM {PROGRESS_TABLE} WHERE topic_id = ?"  # noqa: S608


class OvertakenError(Exception):
    """Another job wrote to the table at the same time; the text is for operators."""


class RawTable:
    """The table below a lake's URI. Used by one thread at a time."""

    def __init__(
        self, spark: SparkSession, lake: str, environment: Environment, cluster: str = DEFAULT_CLUSTER
    ) -> None:
        self._spark, self._environment = spark, environment
        self.uri = uri_of(lake, name_of(cluster))
        self._writer = str(uuid.uuid4())
        self._known: Commit | None = None
        self._is_known = False

    def held(self, topic_id: str) -> Mapping[int, int]:
        """Up to where it has each partition of a topic, as it is now; nothing: it has none of them."""
        self._is_known = False
        known = self._newest()
        return {} if known is None else known.held(topic_id)

    def begins(self) -> str | None:
        """From which hour on it has all that was told; None: there is no table yet."""
        known = self._newest()
        return None if known is None else known.begins

    def append(self, rows: DataFrame, topic_id: str, spans: Spans, now: datetime) -> int:
        """A batch of parsed rows, as far as the table does not have them: how many offsets. Raises OvertakenError."""
        try:
            return self._append(rows, topic_id, spans, now)
        except BaseException:
            self._is_known = False  # whatever has been written, it is looked for again
            raise

    def _append(self, rows: DataFrame, topic_id: str, spans: Spans, now: datetime) -> int:
        known = self._newest() or self._began(topic_id, now)
        new = fresh(known, topic_id, spans)
        if not new:
            return 0
        commit = commit_of(known, topic_id, new, writer=self._writer)
        for gap in commit.gaps:
            LOG.error("%s", gap.sentence)
        raw = transforms.raw_rows(rows.where(_within(new)), topic_id, now)
        options = {
            "userMetadata": commit.to_json(),
            "txnAppId": commit.application,
            "txnVersion": str(commit.sequence),
        }
        try:
            self._write(raw, options)
        except (PySparkException, Py4JJavaError) as error:
            if delta.is_conflict(error):
                raise OvertakenError(f"another job wrote to {self.uri} at the same time") from error
            raise
        self._is_known = False
        stands = self._newest()
        if stands is None or (stands.writer, stands.sequence) != (commit.writer, commit.sequence):
            raise OvertakenError(f"another job wrote to {self.uri} at the same time")
        return sum(end - first for first, end in new.values())

    def _write(self, raw: DataFrame, options: Mapping[str, str]) -> None:
        properties = {} if delta.is_table(self._spark, self.uri) else PROPERTIES
        rows = raw.coalesce(1).write.format("delta").mode("append").partitionBy("day")
        rows.options(mergeSchema="true", **properties, **options).save(self.uri)

    def _began(self, topic_id: str, now: datetime) -> Commit:
        """The beginning of a table: what the database knows before the first batch. Once more, if need be: it changes no hour.

        It begins where the database is, in partitions that the batch has nothing of as well.
        """
        count, database = 0, Database(self._environment)
        try:
            for portion in _portions(database):
                self._write(transforms.known_rows(self._spark, portion, now), {})
                count += len(portion)
            positions = dict(database.read(_POSITIONS, [topic_id]))
        finally:
            database.close()
        LOG.info("%s begins, with what the database knows of %d keys", self.uri, count)
        next_hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
        return Commit(FIRST_LINE, topic_id, 0, "", f"{next_hour:%Y-%m-%dT%H}:00:00Z", positions)

    def _newest(self) -> Commit | None:
        """The last commit of a job. Raises NewerTableError."""
        if not self._is_known:
            self._known = self._read()
            self._is_known = True
        return self._known

    def _read(self) -> Commit | None:
        if not delta.is_table(self._spark, self.uri):
            return None
        for most in (NEWEST, None):
            found = map(Commit.from_json, delta.commits(self._spark, self.uri, newest=most))
            commit = next((commit for commit in found if commit is not None), None)
            if commit is not None:
                return commit
        return self._of_rows()

    def _of_rows(self) -> Commit | None:
        """What the rows say, of the topic that was read last."""
        spans = (
            self._spark.read.format("delta")
            .load(self.uri)
            .where(F.col("kind") != transforms.KNOWN)
            .groupBy("topic_id", "partition")
            .agg(
                F.max("offset").alias("last"),
                F.max("recorded_at").alias("newest"),
                F.date_format(F.min("recorded_at") + F.expr("INTERVAL 1 HOUR"), transforms.HOUR_FORMAT).alias("begins"),
            )
            .collect()
        )
        if not spans:
            return None
        topic_id = max(spans, key=lambda span: span.newest).topic_id
        following = {span.partition: span.last + 1 for span in spans if span.topic_id == topic_id}
        return Commit(str(uuid.uuid4()), topic_id, 0, "", min(span.begins for span in spans), following)


def _portions(database: Database) -> Iterator[Sequence[tuple[object, ...]]]:
    """What the database knows of every key."""
    rows = database.read(_KNOWN)
    while portion := list(islice(rows, KNOWN_AT_ONCE)):
        yield portion


def name_of(cluster: str) -> str:
    """The table of a cluster's stream."""
    return NAME if cluster == DEFAULT_CLUSTER else f"{NAME}-{cluster}"


def uri_of(lake: str, name: str) -> str:
    """A table of the lake. Delta takes no relative path."""
    return f"{lake if _SCHEME.match(lake) else Path(lake).resolve()}/{name}"


def _within(spans: Spans) -> str:
    """The rows of these offsets, in SQL."""
    return " OR ".join(
        f"(source_partition = {partition} AND source_offset >= {first} AND source_offset < {end})"
        for partition, (first, end) in sorted(spans.items())
    )


def read(spark: SparkSession, lake: str, clusters: Sequence[str] = (DEFAULT_CLUSTER,)) -> DataFrame:
    """All rows of the tables of these clusters. Raises Spark's errors where one is missing."""
    tables = (spark.read.format("delta").load(uri_of(lake, name_of(cluster))) for cluster in clusters)
    return reduce(DataFrame.unionByName, map(_all_columns, tables))


def _all_columns(rows: DataFrame) -> DataFrame:
    """Also of a table that no batch of this release has come to yet."""
    lacks = (name for name in (transforms.USER_NAME,) if name not in rows.columns)
    return rows.withColumns({name: F.lit(None).cast("string") for name in lacks}).select(*transforms.RAW)
