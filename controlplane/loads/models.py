"""Loads that tenants have set up, and their runs."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.errors import Unavailable
from controlplane.core.scope import TenantManager
from controlplane.core.sealed import opened
from controlplane.loads.destinations import Format, Kind, bucket_uri
from controlplane.sealing.fields import SealedField


class RunState(models.TextChoices):
    """Of a run."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"


UNDER_WAY = (RunState.WAITING, RunState.RUNNING)


class Load(models.Model):
    """One topic of an instance into one table. What it has loaded stands in the table itself."""

    id = models.CharField(primary_key=True, max_length=20)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    topic = models.CharField(max_length=249)
    kind = models.CharField(max_length=8, choices=[(kind.value, kind.value) for kind in Kind])
    folder = models.CharField(max_length=500)  # the table's URI: the root may change later
    format = models.CharField(max_length=8, choices=[(each.value, each.value) for each in Format], default="delta")
    bucket = models.CharField(max_length=63, blank=True, default="")
    path = models.CharField(max_length=500, blank=True, default="")
    region = models.CharField(max_length=32, blank=True, default="")
    access_key = models.CharField(max_length=200, blank=True, default="")
    secret_key = SealedField(default=b"", owner=("id",))
    copied_version = models.BigIntegerField(null=True)  # of the table, up to which the bucket has it; null: nothing
    schema = models.TextField(default="raw")  # "raw", "inferred", or Spark's DDL or JSON; read at the first load
    every_minutes = models.PositiveIntegerField(null=True)  # null: only when somebody asks
    scheduled_at = models.DateTimeField()  # when it was given that schedule
    enabled = models.BooleanField(default=True)  # the schedule
    skip_expired = models.BooleanField(default=False)  # go on behind records that expired, and note the gap
    next_start_at = models.DateTimeField(null=True, db_index=True)
    failures = models.PositiveIntegerField(default=0)  # runs in vain since the last that succeeded
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=320)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    def __str__(self) -> str:
        return f"{self.topic} of {self.instance_id} into {self.uri}"

    @property
    def uri(self) -> str:
        """Where its tenant reads: the table, or the copy of it."""
        return self.folder if self.kind == Kind.FOLDER else bucket_uri(self.bucket, self.bucket_folder)

    @property
    def bucket_folder(self) -> str:
        """Of the copy: of this load alone, since nothing that is there already is looked at."""
        return f"{self.path}/{self.pk}"

    def secret_opened(self) -> str:
        """The key's secret. Raises Unavailable."""
        lost = Unavailable("the secret key of this load cannot be read any more: give it again")
        return opened(self, "secret_key", lost).decode()


class KeptTable(models.Model):
    """The table of a load that was deleted. It takes room until somebody has it removed, or the instance is gone."""

    id = models.CharField(primary_key=True, max_length=20)  # of the load
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    topic = models.CharField(max_length=249)
    folder = models.CharField(max_length=500)
    byte_count = models.BigIntegerField(
        null=True
    )  # of its folder; null: the runner has not counted it, or does not see it
    deleted_at = models.DateTimeField()
    deleted_by = models.CharField(max_length=320)
    removed_at = models.DateTimeField(null=True)  # when that was asked for; the row goes some hours later (kept_tables)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    def __str__(self) -> str:
        return f"table of {self.topic} of {self.instance_id}, {self.pk}"


class LoadRun(models.Model):
    """One run of a load, from the moment that it was asked for. Written by services, then by the runner alone."""

    load = models.ForeignKey(Load, models.CASCADE, related_name="+")
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, choices=RunState, default=RunState.WAITING)
    asked_by = models.CharField(max_length=320)  # empty: the schedule
    asked = models.JSONField(default=dict)  # ranges.Asked
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)  # the runner's last sign of life
    ended_at = models.DateTimeField(null=True)
    runner = models.CharField(max_length=40, blank=True, default="")  # who runs it
    stop_asked = models.BooleanField(default=False)
    says = models.TextField(blank=True, default="")  # what is done now; in the end the summary, or why not
    exit_status = models.IntegerField(null=True)
    topic_id = models.CharField(max_length=32, blank=True, default="")
    row_count = models.BigIntegerField(default=0)
    byte_count = models.BigIntegerField(default=0)  # of keys and values
    commits = models.IntegerField(default=0)
    problems = models.BigIntegerField(default=0)  # rows that do not fit the schema
    gaps = models.JSONField(default=list)  # sentences: what had expired
    partitions = models.JSONField(default=dict)  # what was loaded of each: {"0": {"first", "end", "rows", "checksum"}}

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """A load has one run at a time: a second would be overtaken, or find nothing to do."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["load"], condition=models.Q(state__in=["waiting", "running"]), name="one_run_a_load"
            )
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["state", "asked_at"], name="load_runs_by_state"),
            models.Index(fields=["ended_at"], name="load_runs_by_end"),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.load_id}, {self.state}"
