"""Service accounts as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.accounts.serializers import NamedSerializer
from controlplane.accounts.service_accounts import LONGEST_DESCRIPTION, ROLE_CHOICES
from controlplane.api.serializers import StrictBooleanField, StrictCharField, StrictSerializer


class ServiceAccountCreateSerializer(StrictSerializer):
    """What a new one is to be called, and what its keys may do."""

    name = StrictCharField(max_length=128)
    description = StrictCharField(max_length=LONGEST_DESCRIPTION, allow_blank=True, default="")
    role = serializers.ChoiceField(choices=ROLE_CHOICES, required=False, help_text="never owner")
    custom_role = StrictCharField(max_length=32, required=False, help_text="in place of role, the id of one's own")


class ServiceAccountChangeSerializer(StrictSerializer):
    """What is left out stays."""

    not_empty = True

    name = StrictCharField(max_length=128, required=False)
    description = StrictCharField(max_length=LONGEST_DESCRIPTION, allow_blank=True, required=False)
    role = serializers.ChoiceField(choices=ROLE_CHOICES, required=False, help_text="never owner")
    custom_role = StrictCharField(max_length=32, required=False, help_text="in place of role, the id of one's own")
    disabled = StrictBooleanField(
        required=False, help_text="true: its keys are refused from the next request on; false: they are good again"
    )


class ServiceAccountSerializer(serializers.Serializer[Any]):
    """An identity of the organisation without a person."""

    id = serializers.CharField()
    name = serializers.CharField()
    description = serializers.CharField()
    role = serializers.ChoiceField(choices=ROLE_CHOICES, help_text="viewer where there is a custom_role, which decides")
    custom_role = NamedSerializer(allow_null=True, help_text="in place of role; null: none")
    created_by = serializers.CharField(help_text="the owner who made it; it stays when they leave")
    created_at = serializers.DateTimeField()
    disabled_at = serializers.DateTimeField(allow_null=True, help_text="null: its keys are good")


class ServiceAccountPageSerializer(serializers.Serializer[Any]):
    """Service accounts of the organisation, a page at a time."""

    items = ServiceAccountSerializer(many=True)
    next = serializers.CharField(allow_null=True)
