"""The policy of each instance's disk, and what topics had before retention was shortened."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager
from controlplane.policies.rules import (
    DEFAULT_FLOOR_MIN,
    DEFAULT_LEVEL,
    DEFAULT_STEP,
    NONE,
    Kept,
    Rule,
)


class DiskPolicy(models.Model):
    """Of one instance. One that never had a policy has no row."""

    instance = models.OneToOneField("instances.Instance", models.PROTECT, primary_key=True, related_name="+")
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    policy = models.CharField(max_length=16, default=NONE)  # of rules.POLICIES
    level_percent = models.PositiveIntegerField(default=DEFAULT_LEVEL)
    step_percent = models.PositiveIntegerField(default=DEFAULT_STEP)
    floor_minutes = models.PositiveIntegerField(default=DEFAULT_FLOOR_MIN)
    spare_unread = models.BooleanField(default=False)
    max_storage_gib = models.FloatField(null=True)
    confirm_price = models.BooleanField(default=False)  # what it may come to cost is known
    revision = models.PositiveBigIntegerField(default=1)  # of what its tenant has said: operations of another one stop
    acts_next_at = models.DateTimeField(null=True)  # not before
    expanded_by = models.CharField(max_length=32, blank=True, default="")  # the operation that bought last
    problem = models.TextField(blank=True, default="")  # why it could not act last; empty: it could, or need not
    problem_at = models.DateTimeField(null=True)  # since when it is this one
    told_at = models.DateTimeField(null=True)  # when owners were written to last

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    def __str__(self) -> str:
        return f"{self.policy} of {self.instance_id}"

    @property
    def rule(self) -> Rule:
        """What it says."""
        return Rule(
            self.policy,
            self.level_percent,
            self.step_percent,
            self.floor_minutes,
            self.spare_unread,
            self.max_storage_gib,
        )


class ShortenedTopic(models.Model):
    """A topic whose retention was shortened. Written before the cluster is asked, so that what it had is never lost.

    Ours is a setting of `now_ms` or of `next_ms`; another one its owner has made meanwhile, and it stays.
    """

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    topic = models.CharField(max_length=249)
    own_ms = models.BigIntegerField(null=True)  # what its owner had set; null: nothing, it had the cluster's default
    before_ms = models.BigIntegerField()  # what was in force
    now_ms = models.BigIntegerField(null=True)  # what was set last; null: nothing yet
    next_ms = models.BigIntegerField(null=True)  # what is being set; null: nothing
    since = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Once for each topic."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "topic"], name="topic_shortened_once")
        ]

    def __str__(self) -> str:
        return f"{self.topic} of {self.instance_id}"

    def is_ours(self, kept: Kept) -> bool:
        """Whether what is set for the topic was set by the policy."""
        return kept.own_ms is not None and kept.own_ms in (self.now_ms, self.next_ms)
