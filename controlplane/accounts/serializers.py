"""API keys, access keys and the caller as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.accounts.key_rules import LONGEST_OVERLAP, MOST_INSTANCES
from controlplane.accounts.scopes import SCOPES
from controlplane.api.serializers import CidrsField, StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.tenants.models import Role

SCOPES_HELP = (
    "what it may do within the role of its owner, by kind of action; null or left out: all that its owner may. "
    "instances, topics and messages include the parts that are called after them, and topics includes groups"
)
INSTANCES_HELP = "ids of the instances that it is for; null or left out: all, those to come too"
ADDRESSES_HELP = "CIDR blocks that it may be used from; null or left out: from anywhere"

SSO_HELP = "made in a session of single sign-on: good until then, and longer once its owner signs in so again; null: not made so"


class AccessKeyCreateSerializer(StrictSerializer):
    """What a new access key is to be called, and when it ends."""

    name = StrictCharField(max_length=128)
    expires_at = serializers.DateTimeField(
        required=False,
        allow_null=True,
        help_text="left out: in 90 days; null: never. Its owner has a mail seven days before",
    )


class ApiKeyCreateSerializer(StrictSerializer):
    """What a new key is to be called, and what it is limited to."""

    name = StrictCharField(max_length=128)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(SCOPES), required=False, allow_null=True, min_length=1, help_text=SCOPES_HELP
    )
    instances = serializers.ListField(
        child=StrictCharField(max_length=32),
        required=False,
        allow_null=True,
        min_length=1,
        max_length=MOST_INSTANCES,
        help_text=INSTANCES_HELP,
    )
    addresses = CidrsField(required=False, allow_null=True, help_text=ADDRESSES_HELP)
    expires_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="null or left out: never. Its owner has a mail seven days before"
    )


class ApiKeyRotateSerializer(StrictSerializer):
    """How long both secrets are good."""

    overlap_s = StrictIntegerField(
        min_value=0,
        max_value=int(LONGEST_OVERLAP.total_seconds()),
        help_text="so long the secret of before is good as well; 0: it ends at once",
    )


class NamedSerializer(serializers.Serializer[Any]):
    """A service account or a role that is named: the id stays when the name changes."""

    id = serializers.CharField()
    name = serializers.CharField()


class ApiKeyLimitsSerializer(serializers.Serializer[Any]):
    """What a key is, and what it is limited to."""

    id = serializers.CharField()
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(SCOPES), allow_null=True, help_text=SCOPES_HELP)
    instances = serializers.ListField(child=serializers.CharField(), allow_null=True, help_text=INSTANCES_HELP)
    addresses = serializers.ListField(child=serializers.CharField(), allow_null=True, help_text=ADDRESSES_HELP)
    expires_at = serializers.DateTimeField(allow_null=True, help_text="null: never")


class ApiKeySerializer(ApiKeyLimitsSerializer):
    """A key without its secret."""

    prefix = serializers.CharField(help_text="the beginning of the key, to tell keys apart")
    owner = serializers.EmailField(
        source="user.email", default=None, allow_null=True, help_text="null: it is a service account's"
    )
    service_account = NamedSerializer(allow_null=True, help_text="null: it is a person's")
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
    last_used_address = serializers.CharField(help_text="from where it was; empty: never, or not known")
    refused_at = serializers.DateTimeField(
        allow_null=True, help_text="when it was last refused for where it came from, to the hour; null: never"
    )
    refused_address = serializers.CharField()
    previous_until = serializers.DateTimeField(
        allow_null=True, help_text="so long the secret before the last rotation is good as well; null: there is none"
    )
    sso_until = serializers.DateTimeField(allow_null=True, help_text=SSO_HELP)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewApiKeySerializer(ApiKeySerializer):
    """The answer to POST, the one time that the key is shown."""

    key = serializers.CharField(help_text="shown once")


class ApiKeyPageSerializer(serializers.Serializer[Any]):
    """An organisation's API keys, a page at a time; the keys themselves are never shown again."""

    items = ApiKeySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class AccessKeySerializer(serializers.Serializer[Any]):
    """An access key without its secret."""

    id = serializers.CharField()
    name = serializers.CharField()
    secret_id = serializers.CharField(help_text="SecretId of the SDK")
    owner = serializers.EmailField(source="user.email")
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True, help_text="from then on nothing is signed; null: never")
    last_used_at = serializers.DateTimeField(allow_null=True)
    sso_until = serializers.DateTimeField(allow_null=True, help_text=SSO_HELP)
    revoked_at = serializers.DateTimeField(allow_null=True)


class NewAccessKeySerializer(AccessKeySerializer):
    """The answer to POST, the one time that the secret is shown."""

    secret_key = serializers.CharField(help_text="SecretKey of the SDK; shown once")


class AccessKeyPageSerializer(serializers.Serializer[Any]):
    """A page of access keys."""

    items = AccessKeySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class OrganisationSerializer(serializers.Serializer[Any]):
    """The organisation that an API key acts for."""

    id = serializers.CharField()
    name = serializers.CharField()


class CallerSerializer(serializers.Serializer[Any]):
    """The person or service account behind an API key, the organisation, and the role that they act in."""

    email = serializers.EmailField(
        source="user.email", default=None, allow_null=True, help_text="null: a service account"
    )
    service_account = NamedSerializer(allow_null=True, help_text="null: a person")
    role = serializers.ChoiceField(choices=Role.choices, help_text="viewer where there is a custom_role, which decides")
    custom_role = NamedSerializer(allow_null=True, help_text="in place of role; null: none")
    organisation = OrganisationSerializer()
    key = ApiKeyLimitsSerializer()
    address = serializers.SerializerMethodField(
        help_text="at which this service sees the caller, as brokers would judge it: what a whitelist has to hold where clients "
        "come the same way; null: it does not see it"
    )

    def get_address(self, _caller: Any) -> str | None:
        """From the context: it is of the request."""
        return self.context["address"] or None
