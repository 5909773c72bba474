"""A provider of an organisation, and which of its subjects is which member."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models

from controlplane.core.scope import TenantManager
from controlplane.sealing.fields import SealedField


class SsoProvider(models.Model):
    """Who signs members of one organisation in. It counts for nothing until `is_on`."""

    organisation = models.OneToOneField("tenants.Organisation", models.CASCADE, related_name="+", primary_key=True)
    issuer = models.CharField(max_length=255)
    client_id = models.CharField(max_length=255)
    client_secret = SealedField(owner=("organisation_id",), before="sluice sso {organisation_id}")
    label = models.CharField(max_length=128)
    is_on = models.BooleanField(default=False)
    is_required = models.BooleanField(default=False)
    required_at = models.DateTimeField(
        null=True
    )  # since when: a second factor of then is an owner's way in; null: it is not
    tested_at = models.DateTimeField(
        null=True
    )  # when a member was last signed in by it as a test; null: as it is now, never
    created_at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    def __str__(self) -> str:
        return f"{self.issuer} of {self.organisation_id}"


class SsoLink(models.Model):
    """A member, as the provider names them. It ends with the membership."""

    organisation = models.ForeignKey("tenants.Organisation", models.CASCADE, related_name="+")
    membership = models.OneToOneField("tenants.Membership", models.CASCADE, related_name="+")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """A subject is one member of the organisation."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "issuer", "subject"], name="one_member_of_a_subject")
        ]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"
