"""API keys, access keys and the caller as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import StrictCharField, StrictSerializer
from controlplane.tenants.models import Role


class ApiKeyCreateSerializer(StrictSerializer):
    """What a new key is to be called."""

    name = StrictCharField(max_length=128)


class ApiKeySerializer(serializers.Serializer[Any]):
    """A key without its secret."""

    id = serializers.CharField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="the beginning of the key, to tell keys apart")
    owner = serializers.EmailField(source="user.email")
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True)
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
    last_used_at = serializers.DateTimeField(allow_null=True)
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
    """The person and the organisation behind an API key, and the role that they act in."""

    email = serializers.EmailField(source="user.email")
    role = serializers.ChoiceField(choices=Role.choices)
    organisation = OrganisationSerializer()
