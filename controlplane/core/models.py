"""Rows of the core: long operations, the audit trail, the end of its chain, what is not told again; the pulse of workers.

An operation's steps are stored with it, so that what was promised at its start is what is shown at its end, even when
the code has changed in between.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self

from django.db import models
from django.utils.functional import cached_property

from controlplane.core.audit_sides import Sides, sides
from controlplane.core.scope import TenantManager


class OperationState(models.TextChoices):
    """What has become of it."""

    RUNNING = "running"  # waiting for a worker, in one's hands, or between two attempts
    SUCCEEDED = "succeeded"  # every step done
    FAILED = "failed"  # a step gave up; `error` says why


class StepState(models.TextChoices):
    """One step of an operation."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Operation(models.Model):
    """Work that outlives a request. `version` counts every write: a worker whose version is old has lost its claim."""

    id = models.CharField(primary_key=True, max_length=32)
    # null: of the service itself, which no tenant is shown
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, null=True, related_name="+")
    kind = models.CharField(max_length=64)
    target = models.CharField(max_length=64, db_index=True)  # id of what it works on
    arguments = models.JSONField(default=dict)
    actor = models.CharField(
        max_length=254, default="", blank=True
    )  # an email, "system" or "operator"; empty: of an older release
    state = models.CharField(max_length=16, choices=OperationState, default=OperationState.RUNNING)
    steps = models.JSONField(default=list)  # [{"name", "state", "note"}]
    step = models.PositiveSmallIntegerField(default=0)  # index into steps
    attempts = models.PositiveSmallIntegerField(default=0)  # failed ones of the present step
    step_began_at = models.DateTimeField(null=True)
    version = models.PositiveIntegerField(default=0)
    runnable_at = models.DateTimeField()  # not before
    lease_until = models.DateTimeField(null=True)  # a worker's claim; null: nobody's
    error = models.TextField(default="", blank=True)
    error_code = models.CharField(max_length=64, default="", blank=True)
    result = models.JSONField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Beat asks every two seconds for what is runnable; a search looks through the newest."""

        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["state", "runnable_at"]),
            models.Index(fields=["organisation", "-created_at"], name="operations_newest_first"),
            models.Index(fields=["-created_at"], name="operations_of_all_by_moment"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.kind} of {self.target})"

    @property
    def progress(self) -> int:
        """Percent of the steps that are done."""
        steps: list[dict[str, Any]] = self.steps
        done = sum(step["state"] == StepState.SUCCEEDED for step in steps)
        return 100 * done // len(steps) if steps else 100


class AuditEntry(models.Model):
    """Who did what to which thing. Written in the transaction of the change itself; chained after it, and never changed.

    `audit_sealing` gives it its place in the chain of its organisation, once.
    """

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    actor = models.CharField(max_length=254)  # an email, or "system"
    action = models.CharField(max_length=64)  # such as "instance.create"
    target = models.CharField(max_length=320)
    detail = models.JSONField(default=dict)
    at = models.DateTimeField(db_index=True)
    # Of the request; empty: a worker did it, or an older release wrote the entry.
    request_id = models.CharField(max_length=36, default="", blank=True)
    address = models.CharField(max_length=64, default="", blank=True)
    key = models.CharField(max_length=32, default="", blank=True)  # id of the API key or access key
    number = models.BigIntegerField(null=True)  # in the chain of the organisation, from 1; null: not chained yet
    hash = models.CharField(max_length=64, default="", db_default="", blank=True)  # audit_chain.py; empty: the same

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """An organisation reads its own, the newest first; no number is given twice, and those without one are looked for."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "number"], name="one_audit_entry_of_a_number")
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(fields=["organisation", "-id"], name="audit_newest_first"),
            models.Index(
                fields=["organisation", "id"], condition=models.Q(number__isnull=True), name="audit_not_chained"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor} {self.action} {self.target}"

    def save(self, *args: Any, **options: Any) -> None:
        """Once. Raises TypeError."""
        if not self._state.adding:
            raise TypeError("an entry of the audit trail is never changed")
        super().save(*args, **options)

    def delete(self, *args: Any, **options: Any) -> NoReturn:
        """Never. Raises TypeError."""
        del args, options
        raise TypeError("an entry of the audit trail is never deleted")

    @cached_property
    def sides(self) -> Sides:
        """What was before, and is after, as far as `detail` says."""
        return sides(self.action, self.detail)


class AuditChain(models.Model):
    """Where the chain of an organisation's audit trail ends. Whoever adds to it holds this row."""

    organisation = models.OneToOneField("tenants.Organisation", models.PROTECT, primary_key=True, related_name="+")
    number = models.BigIntegerField()  # of the last entry; 0: there is none
    hash = models.CharField(max_length=64)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    def __str__(self) -> str:
        return f"{self.organisation_id} to {self.number}"


class AuditFold(models.Model):
    """What was written to an organisation's audit trail within the hour, and is not to be written again (audit_folds.py)."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)  # of all that makes two alike
    action = models.CharField(max_length=64)
    whose = models.CharField(max_length=64)  # digest of the actor and the key
    at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One row of what is alike."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "digest"], name="one_audit_fold_of_a_kind")
        ]

    def __str__(self) -> str:
        return f"{self.organisation_id} {self.action} since {self.at:%Y-%m-%d %H:%M:%S}"


class WorkerPulse(models.Model):
    """When a worker was heard last (`pulse`): one row."""

    id = models.PositiveSmallIntegerField(primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"a worker was heard at {self.seen_at:%Y-%m-%d %H:%M:%S}"
