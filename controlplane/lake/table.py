"""The Delta table: what its log says of earlier loads, and commits that say what they hold.

A commit is data and manifest in one; either both are there or neither. Two things keep loads apart that run at the same
time, by mistake or because one was thought dead: Delta's transaction (application and version, where the version is the
manifest's sequence number) makes the second of two commits of the same number conflict or be passed over, and after each
commit its own manifest is looked for.

`userMetadata` lives in commit files only, and Delta removes those after a month by default. So a table begins with a log
that is kept for ten years; where the manifest is gone nevertheless, that is said, and offsets have to be named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from controlplane.lake.errors import LakeError, OvertakenError
from controlplane.lake.manifest import Manifest
from controlplane.lake.request import KEPT_FOR_HOURS
from controlplane.spark import delta

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEPT_LOG = "interval 3650 days"
MOST_REPLACED = 2**30
"""Bytes that replaced files may have beyond what the table itself has."""
NEWEST = 50


class Table:
    """A Delta table by its URI: `file:`, `s3a:`, `hdfs:`, or a path."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._spark = spark
        self.uri = uri

    @property
    def exists(self) -> bool:
        return delta.is_table(self._spark, self.uri)

    def manifest(self) -> Manifest | None:
        """Of the last load that is known to the log; None: there is none."""
        if not self.exists:
            return None
        return self._newest(NEWEST) or self._newest(None)

    def _newest(self, most: int | None) -> Manifest | None:
        found = map(Manifest.from_json, delta.commits(self._spark, self.uri, newest=most))
        return next((manifest for manifest in found if manifest is not None), None)

    def tidy(self) -> None:
        """Before rows are replaced: delete files that earlier loads have replaced. Raises LakeError where too many are too young.

        Or whoever loads the same again and again would fill the disk that all tables share. Young are those that a load may have
        written which is taken for dead and lives: no commit names them yet, and its own would name files that are gone.
        """
        delta.vacuum(self._spark, self.uri, hours=KEPT_FOR_HOURS)
        live, whole = delta.bytes_in_use(self._spark, self.uri)
        if whole - live > live + MOST_REPLACED:
            raise LakeError(
                f"loads of the last {KEPT_FOR_HOURS} hours have replaced {whole - live:,} bytes of the table, more than it has:"
                f" load again what is there already when {KEPT_FOR_HOURS} hours have passed"
            )

    def commit(self, rows: DataFrame, manifest: Manifest, replaced: str | None, *, widens: bool = False) -> None:
        """Rows and manifest. `replaced`: the predicate of the rows whose place they take; `widens`: there are new columns.

        Raises OvertakenError, LakeError.
        """
        writer = (
            rows.write.format("delta")
            .option("userMetadata", manifest.to_json())
            .option("txnAppId", manifest.application)
            .option("txnVersion", str(manifest.sequence))
            .option("mergeSchema", str(widens).lower())
        )
        if replaced is None:
            writer = writer.mode("append").option("delta.logRetentionDuration", KEPT_LOG)
        else:
            writer = writer.mode("overwrite").option("replaceWhere", replaced)
        try:
            writer.save(self.uri)
        except (PySparkException, Py4JJavaError) as error:
            if delta.is_conflict(error):
                raise OvertakenError(f"another program changed {self.uri} while this load wrote to it") from error
            raise
        stands = self.manifest()
        if stands is None:
            raise LakeError(f"the log of {self.uri} does not have the manifest that was just written")
        if (stands.load, stands.sequence) != (manifest.load, manifest.sequence):
            raise OvertakenError(
                f"another load wrote to {self.uri} at the same time: commit {stands.sequence} is not of this one"
            )
