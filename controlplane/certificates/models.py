"""Authorities of instances and certificates of their routes. Private keys are sealed."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager
from controlplane.sealing.fields import SealedField


class Source(models.TextChoices):
    """Whose certificate a route shows."""

    NONE = "none"  # there is none: the row holds what it trusts of its clients
    ISSUED = "issued"  # by the instance's authority; renewed by us
    BROUGHT = "brought"  # by the tenant, who renews it


class Authority(models.Model):
    """The certificate authority of one instance, which its clients trust."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.OneToOneField("instances.Instance", models.PROTECT, related_name="+")
    certificate = models.TextField()  # PEM
    key = SealedField(owner=("instance_id",), before="sluice control plane {instance_id}/")
    not_after = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    def __str__(self) -> str:
        return f"authority of {self.instance_id}"


class RouteCertificate(models.Model):
    """What one route shows its clients, and whose certificates it takes of them."""

    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    route = models.CharField(max_length=32)
    source = models.CharField(max_length=8, choices=Source, default=Source.NONE)
    chain = models.TextField(blank=True, default="")  # PEM, the route's own first
    key = SealedField(default=b"", owner=("instance_id", "route"), before="sluice control plane {instance_id}/{route}")
    hosts = models.JSONField(default=list)  # that an issued one names
    not_after = models.DateTimeField(null=True)
    client_ca = models.TextField(blank=True, default="")  # PEM

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """One row for each route."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "route"], name="one_certificate_of_a_route")
        ]

    def __str__(self) -> str:
        return f"{self.route} of {self.instance_id} ({self.source})"
