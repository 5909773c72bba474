"""Members and invitations as JSON."""

from __future__ import annotations

from typing import Any

from django.core.validators import EmailValidator
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.accounts.serializers import NamedSerializer
from controlplane.api.serializers import StrictCharField, StrictSerializer
from controlplane.tenants.models import Membership, Role

LONGEST_ADDRESS = 254


@extend_schema_field({"type": "string", "format": "email", "maxLength": LONGEST_ADDRESS})
class AddressField(StrictCharField):
    """An email address, in lower case before it is judged: so it is kept. One in quotes could hold a whole sentence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=LONGEST_ADDRESS, **options)

    def to_internal_value(self, data: Any) -> str:
        """Raises ValidationError."""
        text = super().to_internal_value(data).strip().lower()
        if '"' in text or len(text) > LONGEST_ADDRESS:
            raise serializers.ValidationError("Enter a valid email address.")
        EmailValidator()(text)  # what it raises is told as a validator's
        return text


class OrganisationMemberSerializer(serializers.Serializer[Membership]):
    """A person in the organisation."""

    id = serializers.IntegerField(source="pk", help_text="of the membership")
    email = serializers.EmailField(source="user.email")
    name = serializers.CharField(source="user.name", help_text="empty: the person has given none")
    role = serializers.ChoiceField(choices=Role.choices, help_text="viewer where there is a custom_role, which decides")
    custom_role = NamedSerializer(allow_null=True, help_text="in place of role; null: none")
    second_factor = serializers.SerializerMethodField(
        help_text="whether the person has one; null: only owners are told"
    )

    @extend_schema_field({"type": "boolean", "nullable": True})
    def get_second_factor(self, membership: Membership) -> bool | None:
        """As the console shows it."""
        return membership.user.second_factor_at is not None if self.context["may_manage"] else None


class OrganisationMemberPageSerializer(serializers.Serializer[Any]):
    """Members of the organisation, a page at a time."""

    items = OrganisationMemberSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class RoleSerializer(StrictSerializer):
    """What a member may do: `role`, or `custom_role`."""

    not_empty = True

    role = serializers.ChoiceField(choices=Role.choices, required=False)
    custom_role = StrictCharField(max_length=32, required=False, help_text="id of a role of the organisation's own")


class InviteSerializer(StrictSerializer):
    """Whom to invite, and as what: `role`, or `custom_role`."""

    email = AddressField()
    role = serializers.ChoiceField(choices=Role.choices, required=False)
    custom_role = StrictCharField(max_length=32, required=False, help_text="id of a role of the organisation's own")


class InvitationSerializer(serializers.Serializer[Any]):
    """A link by which one address comes into the organisation, once."""

    id = serializers.CharField()
    email = serializers.EmailField()
    role = serializers.ChoiceField(choices=Role.choices, help_text="viewer where there is a custom_role, which decides")
    custom_role = NamedSerializer(allow_null=True, help_text="in place of role; null: none")
    invited_by = serializers.EmailField(source="invited_by.email")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(help_text="from then on the link leads nowhere")
    is_mailed = serializers.BooleanField(help_text="the service has sent the link to the address")


class NewInvitationSerializer(InvitationSerializer):
    """The answer to POST."""

    link = serializers.CharField(
        allow_null=True, help_text="to be sent to the person, and shown this once; null: the service has mailed it"
    )


class InvitationPageSerializer(serializers.Serializer[Any]):
    """Invitations that are open, a page at a time; their links are never shown again."""

    items = InvitationSerializer(many=True)
    next = serializers.CharField(allow_null=True)
