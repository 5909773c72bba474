"""Routes as JSON. What a route may be is judged in validation.py; here are only shapes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import (
    CidrsField,
    StrictBooleanField,
    StrictCharField,
    StrictIntegerField,
    StrictSerializer,
)
from controlplane.routes.selectors import SHOWN_STATES
from controlplane.routes.validation import (
    CLIENT_CERTIFICATES,
    LONGEST_MAPPING_RULE,
    MECHANISMS,
    MOST_CONNECTIONS,
    MOST_MAPPING_RULES,
    SECURITIES,
)

OF_BROKERS = "of each broker; null: the instance's alone"


@extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
class HostsField(serializers.DictField):
    """Hosts by the ids of brokers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=StrictCharField(max_length=253), **options)


class RouteChangeSerializer(StrictSerializer):
    """PATCH: any of them. A list that is given replaces the one before."""

    not_empty = True

    security = serializers.ChoiceField(choices=SECURITIES, required=False)
    mechanisms = serializers.ListField(
        child=serializers.ChoiceField(choices=MECHANISMS),
        required=False,
        max_length=len(MECHANISMS),
        help_text="of SASL: one or more where clients log in, none elsewhere",
    )
    allow_plain_in_clear = StrictBooleanField(
        required=False, help_text="PLAIN or OAUTHBEARER on a route of sasl_plaintext is meant"
    )
    client_certificates = serializers.ChoiceField(
        choices=CLIENT_CERTIFICATES, required=False, help_text="whether clients show a certificate, where there is TLS"
    )
    principal_mapping = serializers.ListField(
        child=StrictCharField(max_length=LONGEST_MAPPING_RULE),
        required=False,
        max_length=MOST_MAPPING_RULES,
        help_text="from a certificate's subject to a principal, as Kafka's ssl.principal.mapping.rules; the first that matches",
    )
    proxy_protocol = StrictBooleanField(
        required=False, help_text="connections begin with a PROXY header, version 1 or 2"
    )
    whitelist = CidrsField(
        required=False, allow_null=True, help_text="asked beside the instance's; null: the instance's alone"
    )
    connections = StrictIntegerField(
        required=False, allow_null=True, min_value=0, max_value=MOST_CONNECTIONS, help_text=OF_BROKERS
    )
    connections_per_address = StrictIntegerField(
        required=False, allow_null=True, min_value=0, max_value=MOST_CONNECTIONS, help_text=OF_BROKERS
    )
    advertised_host = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=253,
        help_text="what clients are told to connect to; empty: as bound",
    )
    advertised_hosts = HostsField(required=False, help_text="the same by the ids of brokers, before advertised_host")
    public = StrictBooleanField(required=False, help_text="one route of an instance may be")
    closes_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="from then on it is closed, with its connections; null: it stays"
    )


class RouteCreateSerializer(RouteChangeSerializer):
    """POST. Without more than its security, a route lets in whom the instance lets in."""

    not_empty = False

    security = serializers.ChoiceField(choices=SECURITIES)


class RouteSerializer(serializers.Serializer[Any]):
    """One way into an instance: a listener on each broker."""

    id = serializers.CharField(source="key")
    security = serializers.ChoiceField(choices=SECURITIES)
    mechanisms = serializers.ListField(child=serializers.CharField())
    bootstrap = serializers.CharField(allow_null=True, help_text="host:port,…; null before addresses are allocated")
    state = serializers.ChoiceField(choices=SHOWN_STATES, source="shown_state")
    allow_plain_in_clear = serializers.BooleanField()
    client_certificates = serializers.ChoiceField(choices=CLIENT_CERTIFICATES)
    principal_mapping = serializers.ListField(child=serializers.CharField())
    proxy_protocol = serializers.BooleanField()
    whitelist = serializers.ListField(child=serializers.CharField(), allow_null=True)
    connections = serializers.IntegerField(allow_null=True)
    connections_per_address = serializers.IntegerField(allow_null=True)
    advertised_host = serializers.CharField()
    advertised_hosts = serializers.DictField(child=serializers.CharField())
    public = serializers.BooleanField()
    closes_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class RoutePageSerializer(serializers.Serializer[Any]):
    """A page of routes."""

    items = RouteSerializer(many=True)
    next = serializers.CharField(allow_null=True)


class RouteAcceptedSerializer(serializers.Serializer[Any]):
    """The route, and the operation that is at it."""

    id = serializers.CharField()
    operation_id = serializers.CharField()
