"""Single sign-on as JSON. The secret is taken, and never shown."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.accounts.identity.links import address_of
from controlplane.api.serializers import StrictBooleanField, StrictCharField, StrictSerializer
from controlplane.sso.selectors import owners_without
from controlplane.sso.services import LONGEST, LONGEST_LABEL, LONGEST_SECRET


class SsoSetSerializer(StrictSerializer):
    """A provider, and as whom this service is known there."""

    label = StrictCharField(max_length=LONGEST_LABEL, help_text="as members know it")
    issuer = StrictCharField(
        max_length=LONGEST,
        help_text="its address, to the letter as it names itself, on a host that the operators of this service have listed",
    )
    client_id = StrictCharField(max_length=LONGEST)
    client_secret = StrictCharField(
        max_length=LONGEST_SECRET,
        required=False,
        trim_whitespace=False,
        help_text="never shown again; left out: the one of before",
    )


class SsoChangeSerializer(StrictSerializer):
    """What is left out stays as it is."""

    not_empty = True

    in_force = StrictBooleanField(
        required=False,
        help_text="members sign in by it. It has to be tested before: an owner connects their own account",
    )
    required = StrictBooleanField(
        required=False,
        help_text="members get into the console by it alone, but for owners whose second factor was there before",
    )


class SsoSerializer(serializers.Serializer[Any]):
    """A provider of the organisation, in force or not."""

    label = serializers.CharField()
    issuer = serializers.CharField()
    client_id = serializers.CharField()
    in_force = serializers.BooleanField(source="is_on")
    required = serializers.BooleanField(source="is_required")
    owners_without = serializers.SerializerMethodField(
        help_text="owners who get in without the provider, by a second factor that was there when it was made a rule; while it "
        "is not required, those who would if it were now"
    )
    tested_at = serializers.DateTimeField(
        allow_null=True, help_text="when an owner last connected their own account; null: not since it was set"
    )
    created_at = serializers.DateTimeField()
    redirect_uri = serializers.SerializerMethodField(help_text="where it sends people back to: it has to know this")
    sign_in_url = serializers.SerializerMethodField(help_text="where members sign in by it")

    def get_owners_without(self, row: Any) -> list[str]:
        return owners_without(row)

    def get_redirect_uri(self, row: Any) -> str:
        return address_of("console:sso_back", row.organisation_id)

    def get_sign_in_url(self, row: Any) -> str:
        return f"{address_of('console:sign_in_sso')}?organisation={row.organisation_id}"
