"""Organisations own instances; people belong to organisations, in a role."""

from __future__ import annotations

from typing import ClassVar, Self

from django.conf import settings
from django.db import models

from controlplane.core.scope import TenantManager


class Role(models.TextChoices):
    """What a member may do. The table of what each role allows is in services."""

    OWNER = "owner"  # everything, and the members themselves
    OPERATOR = "operator"  # everything about instances and topics; no bills, nothing paid in advance, no members
    BILLING = "billing"  # bills, budgets and the price plan, and nothing else
    MEMBER = "member"  # everything about instances and topics, and looks at bills and members
    VIEWER = "viewer"  # looks, changes nothing


class Organisation(models.Model):
    """A tenant: what instances, keys and bills belong to.

    Its end (controlplane/organisations): in use, marked for deletion until `deletes_at`, deleted. The row stays for the bills.
    """

    id = models.CharField(primary_key=True, max_length=32)
    name = models.CharField(max_length=128)
    created_at = models.DateTimeField()
    second_factor_demanded = models.BooleanField(default=False, db_default=False)  # of every member
    deletion_asked_at = models.DateTimeField(null=True)  # since when nobody uses it; null: it is in use
    deletes_at = models.DateTimeField(null=True)  # until when an owner can take that back
    deletion_foretold_at = models.DateTimeField(null=True)  # when owners were told last that this is about to be over
    deleted_at = models.DateTimeField(null=True)  # since when nothing is left but what bills and the audit log need

    class Meta:
        """The name of one that was deleted is free again. The clock asks for those that are marked."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(deleted_at__isnull=True), name="one_organisation_of_a_name"
            ),
            models.CheckConstraint(
                condition=models.Q(deletion_asked_at__isnull=True, deletes_at__isnull=True, deleted_at__isnull=True)
                | models.Q(deletion_asked_at__isnull=False, deletes_at__isnull=False),
                name="who_is_deleted_was_marked_before",
            ),
        ]
        indexes: ClassVar[list[models.Index]] = [
            models.Index(
                fields=["deletes_at"],
                condition=models.Q(deletes_at__isnull=False, deleted_at__isnull=True),
                name="organisation_end",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_in_use(self) -> bool:
        """Whether anybody may do anything in it: it is neither marked for deletion nor deleted."""
        return self.deletion_asked_at is None


class CustomRole(models.Model):
    """A role of an organisation's own: what it opens is decided by accounts/scopes.py, and by nothing else."""

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+")
    name = models.CharField(max_length=128)
    description = models.CharField(max_length=512, default="", blank=True)
    scopes = models.JSONField()  # {scope: "look" or "change"}
    instances = models.JSONField(null=True)  # ids; null: all of the organisation, those to come too
    created_at = models.DateTimeField()

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """Names tell them apart."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "name"], name="one_custom_role_of_a_name")
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """One person in one organisation. Not behind the tenant scope: it is what the scope is decided by."""

    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role, default=Role.MEMBER)
    # In place of `role`, which is a viewer's then: whoever does not know of it takes the person for one who changes nothing.
    custom_role = models.ForeignKey(CustomRole, models.PROTECT, null=True, related_name="memberships")

    class Meta:
        """A person has one role in an organisation; nobody with a custom one is an owner."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["organisation", "user"], name="one_role_per_member"),
            models.CheckConstraint(
                condition=models.Q(custom_role__isnull=True) | models.Q(role=Role.VIEWER),
                name="member_with_a_custom_role_is_a_viewer_beside",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.organisation}"


class Invitation(models.Model):
    """A link by which one address comes into an organisation, once. The secret in it is stored as a hash."""

    id = models.CharField(primary_key=True, max_length=32)
    organisation = models.ForeignKey(Organisation, models.CASCADE, related_name="+")
    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role)
    # In place of `role`, which is a viewer's then. It is not deleted while the link may be used.
    custom_role = models.ForeignKey(CustomRole, models.PROTECT, null=True, related_name="invitations")
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)
    # The link was sent to the address and shown to nobody: whoever has it reads that address.
    is_mailed = models.BooleanField(default=False, db_default=False)
    # The inviter's: of the mail, and of the account of whoever joins by a provider.
    language = models.CharField(max_length=10, default="en", db_default="en")

    objects: ClassVar[TenantManager[Self]] = TenantManager()

    class Meta:
        """The latest link of an address is the only one that works."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(
                fields=["organisation", "email"],
                condition=models.Q(accepted_at__isnull=True, withdrawn_at__isnull=True),
                name="one_open_invitation_of_an_address",
            ),
            models.CheckConstraint(
                condition=models.Q(custom_role__isnull=True) | models.Q(role=Role.VIEWER),
                name="invited_with_a_custom_role_is_a_viewer_beside",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} into {self.organisation_id} as {self.role}"
