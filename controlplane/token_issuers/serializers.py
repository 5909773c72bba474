"""Token issuers as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import StrictCharField, StrictSerializer
from controlplane.token_issuers.allowed import LONGEST_URL
from quota.contracts.token_issuers import LONGEST_TEXT, MOST_AUDIENCES


class TokenIssuerCreateSerializer(StrictSerializer):
    """Whose tokens let in, and what they have to say."""

    issuer = StrictCharField(max_length=LONGEST_TEXT, help_text='what "iss" of a token has to be, to the letter')
    jwks_url = StrictCharField(
        max_length=LONGEST_URL, help_text="https, on a host that the operators of this service have listed"
    )
    audiences = serializers.ListField(
        child=StrictCharField(max_length=LONGEST_TEXT),
        min_length=1,
        max_length=MOST_AUDIENCES,
        help_text='"aud" of a token has to be, or to hold, one of them',
    )
    principal_claim = StrictCharField(
        max_length=LONGEST_TEXT, required=False, help_text="the claim that names the principal; by default sub"
    )
    scope = StrictCharField(
        max_length=LONGEST_TEXT,
        required=False,
        allow_null=True,
        help_text="one that a token has to have; by default none",
    )


class TokenKeySerializer(serializers.Serializer[Any]):
    """A key by which tokens are verified."""

    kid = serializers.CharField(help_text="empty: it has no id")
    algorithms = serializers.ListField(child=serializers.CharField())


class TokenIssuerSerializer(serializers.Serializer[Any]):
    """A token issuer, and how fetching its keys has gone."""

    id = serializers.CharField()
    issuer = serializers.CharField()
    jwks_url = serializers.CharField()
    audiences = serializers.ListField(child=serializers.CharField())
    principal_claim = serializers.CharField()
    scope = serializers.SerializerMethodField()
    keys = TokenKeySerializer(many=True)
    keys_fetched_at = serializers.DateTimeField(help_text="when these keys were fetched")
    keys_tried_at = serializers.DateTimeField(help_text="when it was last tried")
    keys_error = serializers.SerializerMethodField(help_text="why that failed; null: it did not")
    created_at = serializers.DateTimeField()

    def get_scope(self, row: Any) -> str | None:
        return row.scope or None

    def get_keys_error(self, row: Any) -> str | None:
        return row.keys_error or None


class TokenIssuerPageSerializer(serializers.Serializer[Any]):
    """A page of token issuers."""

    items = TokenIssuerSerializer(many=True)
    next = serializers.CharField(allow_null=True)
