"""What people write about topics: the one thing about a topic that no broker knows."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager


class TopicNote(models.Model):
    """A note and tags on a topic. By the topic's id: one that is made again with the name of another begins without."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    topic_id = models.CharField(max_length=32)  # the cluster's, in base64
    name = models.CharField(max_length=249)  # the tenant's; to find what is left of topics that are gone
    text = models.TextField(blank=True, default="")
    tags = models.JSONField(default=list)  # sorted
    updated_at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One for each topic; the constraint's index finds those of an instance."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "topic_id"], name="one_note_of_a_topic")
        ]

    def __str__(self) -> str:
        return f"of {self.name} in {self.instance_id}"
