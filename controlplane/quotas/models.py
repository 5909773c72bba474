"""Throttled intervals, as the masters' journals tell them, how far each journal has been read, and the quota report.

Neither an interval nor a day of the report has an `organisation`: the master knows instances only by name. Selectors reach them
through an instance that was looked up in its organisation's scope.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from controlplane.clusters.models import Journal

LONGEST_RULE = 600
KEY = ("instance", "rule", "direction", "started_at", "epoch")


class RecordedInterval(models.Model):
    """A `quota.contracts.throttled.ThrottledInterval`: the whole of it, and what is searched and added up."""

    instance = models.CharField(max_length=32)
    rule = models.CharField(max_length=LONGEST_RULE)  # as in the document; empty: the limit is the instance's own
    direction = models.CharField(max_length=8)
    epoch = models.BigIntegerField()
    started_at = models.CharField(max_length=24)  # "2026-11-21T09:00:03.123Z": sorts as time does
    throttled_ms = models.BigIntegerField()
    under_limit_ms = models.BigIntegerField()
    over_1_s_percent = models.FloatField()
    over_10_s_percent = models.FloatField()
    over_60_s_percent = models.FloatField()
    document = models.JSONField()

    class Meta:
        """The constraint is what the upsert leans on, the indexes what pages and the purge read by."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=KEY, name="one_row_per_interval")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["instance", "started_at"]),
            models.Index(fields=["started_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.instance}/{self.rule} {self.direction} from {self.started_at}"


class MasterJournal(Journal):
    """Of throttled intervals."""

    class Meta:
        """Masters are numbered within a cluster."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["cluster", "master"], name="journal_per_cluster_and_master")
        ]


class ReportedDay(models.Model):
    """What a row of the report has; `metering/pipeline/quota_days.py` says what each column means."""

    instance = models.CharField(max_length=32)
    day = models.CharField(max_length=10)  # "2026-11-21", UTC: sorts as time does
    resource = models.CharField(max_length=8)  # produce, consume, storage
    limit_in_force = models.BigIntegerField(null=True)  # at the day's end; null: unlimited
    p50 = models.BigIntegerField()  # bytes a second or bytes, as the three below
    p95 = models.BigIntegerField()
    p99 = models.BigIntegerField()
    most = models.BigIntegerField()
    used_permille = models.BigIntegerField(null=True)
    minutes = models.IntegerField()  # of which anything is known
    throttled_minutes = models.IntegerField()
    throttled_ms = models.BigIntegerField()
    under_limit_ms = models.BigIntegerField(null=True)
    guarantee = models.CharField(max_length=8, blank=True)
    exhausted_on = models.CharField(max_length=10, null=True)  # noqa: DJ001  # null: not in sight

    class Meta:
        """Its two tables have keys of their own."""

        abstract = True

    def __str__(self) -> str:
        return f"{self.instance} {self.resource} on {self.day}"


class QuotaDay(ReportedDay):
    """One resource of an instance on one day. A job of Spark writes it (`metering/pipeline/jobs/quota_report.py`)."""

    pk = models.CompositePrimaryKey("instance", "day", "resource")

    class Meta(ReportedDay.Meta):
        """Of an instance by its key; of all instances by day."""

        indexes: ClassVar[list[models.Index]] = [models.Index(fields=["day"])]


class QuotaDayStaged(ReportedDay):
    """A row of a run that has not published it yet."""

    pk = models.CompositePrimaryKey("run", "instance", "day", "resource")
    run = models.CharField(max_length=32)
