"""Calls that may be repeated. Neither a key nor a request is kept, only what tells whether another one is the same."""

from __future__ import annotations

from typing import ClassVar, Self

from django.conf import settings
from django.db import models

from controlplane.core.scope import TenantManager


class RepeatableCall(models.Model):
    """One key of one caller: a claim while the call is under way, and then its answer."""

    organisation = models.ForeignKey("tenants.Organisation", models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+")
    service_account = models.ForeignKey("accounts.ServiceAccount", models.CASCADE, null=True, related_name="+")
    key = models.CharField(max_length=64)  # SHA-256 of it
    request = models.CharField(max_length=64)  # SHA-256 of method, address and body
    role = models.CharField(max_length=64, default="")  # what the caller was then; empty: not kept yet
    status = models.PositiveSmallIntegerField(null=True)  # of the answer; null: under way, or its server died
    body = models.TextField(default="")
    etag = models.CharField(max_length=128, default="", db_default="")  # empty: the answer had none
    is_kept = models.BooleanField(default=True)  # the body; a secret is not
    created_at = models.DateTimeField(db_index=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """The constraint is what makes one of several that come at once the first."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "user", "key"], name="one_call_per_key"),
            models.UniqueConstraint(
                fields=["organisation", "service_account", "key"], name="one_call_per_key_of_a_service_account"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.key[:8]} of {self.user_id or self.service_account_id}: {self.status or 'under way'}"
