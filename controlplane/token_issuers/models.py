"""Token issuers of instances, with the keys that were fetched last."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager


class TokenIssuer(models.Model):
    """Who signs tokens for the clients of one instance, and where the keys are published."""

    id = models.CharField(primary_key=True, max_length=20)
    organisation = models.ForeignKey("tenants.Organisation", models.PROTECT, related_name="+")
    instance = models.ForeignKey("instances.Instance", models.PROTECT, related_name="+")
    issuer = models.CharField(max_length=255)
    jwks_url = models.CharField(max_length=500)
    audiences = models.JSONField()
    principal_claim = models.CharField(max_length=255)
    scope = models.CharField(max_length=255, blank=True, default="")  # empty: none is wanted
    keys = models.JSONField(default=list)  # as in the contract; the last good ones
    keys_fetched_at = models.DateTimeField()  # those
    keys_tried_at = models.DateTimeField()  # the last time, however it went
    keys_error = models.TextField(blank=True, default="")  # of the last time; empty: it went well
    next_fetch_at = models.DateTimeField(db_index=True)
    created_at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """An instance trusts an issuer once."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["instance", "issuer"], name="one_trust_in_an_issuer")
        ]

    def __str__(self) -> str:
        return f"{self.issuer} for {self.instance_id}"
