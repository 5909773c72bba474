"""An organisation, who owns it and its end, as JSON."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.core.text import LONGEST_NAME
from controlplane.organisations.deletion import STATES, state_of
from controlplane.organisations.obstacles import CODES
from controlplane.organisations.ownership import STEP_DOWN_CHOICES
from controlplane.tenants.models import Organisation

LARGEST_ID = 2**63 - 1
STATE_CHOICES = [(each, each) for each in STATES]
OBSTACLE_CHOICES = [(each, each) for each in CODES]


class OrganisationDetailSerializer(serializers.Serializer[Organisation]):
    """An organisation."""

    id = serializers.CharField()
    name = serializers.CharField()
    created_at = serializers.DateTimeField()
    second_factor_demanded = serializers.BooleanField(help_text="of every member")
    state = serializers.SerializerMethodField(
        help_text="deleting: nobody uses it until deletes_at, and an owner can take that back in the console"
    )
    deletes_at = serializers.DateTimeField(allow_null=True, help_text="null: it is in use")

    @extend_schema_field(serializers.ChoiceField(choices=STATE_CHOICES))
    def get_state(self, organisation: Organisation) -> str:
        """What it has come to."""
        return state_of(organisation)


class OrganisationRenameSerializer(StrictSerializer):
    """What it is to be called."""

    not_empty = True

    name = StrictCharField(
        max_length=LONGEST_NAME, required=False, help_text="printable; no other organisation is called so"
    )


class OwnershipTransferSerializer(StrictSerializer):
    """Who is to be an owner, and what the caller is then."""

    member_id = StrictIntegerField(
        min_value=0, max_value=LARGEST_ID, help_text="id of the membership, as /api/v1/members has it"
    )
    step_down_to = serializers.ChoiceField(
        choices=STEP_DOWN_CHOICES, required=False, help_text="left out: the caller stays an owner"
    )
    custom_role = StrictCharField(
        max_length=32, required=False, help_text="in place of step_down_to: id of a role of the organisation's own"
    )


class OrganisationDeletionSerializer(StrictSerializer):
    """A word that it is meant."""

    name = StrictCharField(max_length=LONGEST_NAME, help_text="of the organisation, whole")


class ObstacleSerializer(serializers.Serializer[Any]):
    """Something that keeps the organisation from being deleted."""

    code = serializers.ChoiceField(choices=OBSTACLE_CHOICES)
    detail = serializers.CharField(help_text="what it is, with names")
    count = serializers.IntegerField(help_text="of these things")


class ObstaclesSerializer(serializers.Serializer[Any]):
    """Everything that does; none: it can be deleted now."""

    items = ObstacleSerializer(many=True)
