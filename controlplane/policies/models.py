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
    # Who has set it may pay in advance, so that it may buy more of what is paid so.
    pays_in_advance = models.BooleanField(default=True, db_default=True)
    revision = models.PositiveBigIntegerField(default=1)  # of what its tenant has said: operations of another one stop
    acts_next_at = models.DateTimeField(null=True)  # not before
    to_put_back = models.BooleanField(
        default=False
    )  # what was shortened may be too short for what its tenant has said since
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

    Ours is a setting of `now_ms` or of `next_ms`; another one its owner has made meanwhile, and it stays. A topic that was made
    again with the same name is another one, and has nothing of it.
    """

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    topic = models.CharField(max_length=249)
    topic_id = models.CharField(max_length=32, default="")  # the cluster's, in base64; empty: it gave none
    set_by = models.CharField(max_length=32, default="")  # the operation that shortened it last
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

    def is_ours(self, own_ms: int | None) -> bool:
        """Whether what is set for the topic was set by the policy."""
        return own_ms is not None and own_ms in (self.now_ms, self.next_ms)

    def is_of(self, topic_id: str) -> bool:
        """Whether it is about this topic; where the cluster gives no ids, the name has to do."""
        return not self.topic_id or not topic_id or self.topic_id == topic_id
