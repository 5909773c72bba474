"""Schemas as tenants have given them."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager


class MessageSchema(models.Model):
    """Of the keys or the values of a topic. By the topic's id: one that is made again with the name of another begins without."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    topic_id = models.CharField(max_length=32)  # the cluster's, in base64
    name = models.CharField(max_length=249)  # the tenant's
    part = models.CharField(max_length=8)  # `decoding.Part`
    format = models.CharField(max_length=16)  # `decoding.Format`
    framing = models.CharField(max_length=16)  # `framing.Framing`
    definition = models.TextField()
    message = models.CharField(max_length=1000, blank=True, default="")  # of Protobuf, its full name
    compiled = models.TextField(blank=True, default="")  # of Protobuf, a FileDescriptorSet in base64
    updated_at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One for each topic and part; the constraint's index finds those of an instance."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "topic_id", "part"], name="one_schema_of_a_part")
        ]

    def __str__(self) -> str:
        return f"of {self.part}s of {self.name} in {self.instance_id}"
