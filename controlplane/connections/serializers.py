"""Connections as JSON. Rates are means over the last half minute to two minutes; null is what is not known."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import QueryIntegerField, StrictSerializer
from controlplane.connections.selectors import MOST
from quota.contracts.refused import Refused

DEFAULT_LIMIT = 100
LONGEST = 1_000
"""Letters of a filter."""


class MostSerializer(StrictSerializer):
    """How many rows."""

    limit = QueryIntegerField(
        default=DEFAULT_LIMIT, min_value=1, max_value=MOST, help_text="rows that are told one by one"
    )


class ConnectionQuerySerializer(MostSerializer):
    """Which connections."""

    client_id = serializers.CharField(
        required=False,
        max_length=LONGEST,
        trim_whitespace=False,
        help_text="only those with this client id, whole",
    )
    address = serializers.CharField(required=False, max_length=LONGEST, help_text="only those from this address")
    principal = serializers.CharField(
        required=False, max_length=LONGEST, help_text="only those that have logged in as this, such as `User:ann`"
    )
    route_id = serializers.CharField(required=False, max_length=LONGEST, help_text="only those by this route")


class RefusedQuerySerializer(MostSerializer):
    """Which connections that were refused."""

    address = serializers.CharField(required=False, max_length=LONGEST, help_text="only those from this address")
    reason = serializers.ChoiceField(
        [each.value for each in Refused], required=False, help_text="only those that were refused for this"
    )
    route_id = serializers.CharField(required=False, max_length=LONGEST, help_text="only those by this route")


class TalkerQuerySerializer(MostSerializer):
    """Of which topic."""

    topic = serializers.CharField(
        required=False, max_length=249, help_text="of this topic only; of one that is not there nobody is told"
    )


class ConnectionSerializer(serializers.Serializer[Any]):
    """One connection to one broker."""

    broker = serializers.IntegerField()
    client_id = serializers.CharField(help_text="as its requests say; empty: none has said one")
    software_name = serializers.CharField(help_text="as the client calls itself (KIP-511); empty: it has not")
    software_version = serializers.CharField()
    address = serializers.CharField()
    principal = serializers.CharField(allow_null=True, help_text="null: it has not logged in yet")
    route_id = serializers.CharField()
    security = serializers.CharField(allow_null=True, help_text="of its route; null: the route is gone")
    connected_at = serializers.DateTimeField()
    in_bytes_per_s = serializers.FloatField(help_text="that the client sends; over TLS, without what encryption adds")
    out_bytes_per_s = serializers.FloatField(help_text="that it is sent")
    requests_per_s = serializers.FloatField()


class OthersSerializer(serializers.Serializer[Any]):
    """Rows that are not told one by one."""

    count = serializers.IntegerField()
    in_bytes_per_s = serializers.IntegerField()
    out_bytes_per_s = serializers.IntegerField()


class ConnectionsSerializer(serializers.Serializer[Any]):
    """The busiest connections, and what the others come to."""

    items = ConnectionSerializer(many=True)
    others = OthersSerializer()
    missing_brokers = serializers.ListField(
        child=serializers.IntegerField(), help_text="that did not answer: what they know is not in this answer"
    )


class RefusedConnectionSerializer(serializers.Serializer[Any]):
    """Connections from one address to one route that were not taken for one reason, since the brokers started."""

    address = serializers.CharField()
    route_id = serializers.CharField()
    reason = serializers.CharField(help_text=f"one of {', '.join(Refused)}, or one that is newer")
    count = serializers.IntegerField()
    last_at = serializers.DateTimeField()
    user = serializers.CharField(
        allow_null=True, help_text="that the last of them tried to log in as; null: not known, as where nobody logs in"
    )
    client_id = serializers.CharField(help_text="that the last of them said; empty: none, or not known")


class RefusedConnectionsSerializer(serializers.Serializer[Any]):
    """Who was refused, the latest first: 256 rows of each broker."""

    items = RefusedConnectionSerializer(many=True)
    other_count = serializers.IntegerField(help_text="connections of rows that made room for later ones")
    missing_brokers = serializers.ListField(
        child=serializers.IntegerField(), help_text="that did not answer: what they know is not in this answer"
    )


class TalkerSerializer(serializers.Serializer[Any]):
    """What one client moves of one topic, in bytes of records as they are stored, over all brokers."""

    client_id = serializers.CharField(help_text="empty: it does not say one")
    address = serializers.CharField()
    topic = serializers.CharField()
    produced_bytes_per_s = serializers.FloatField()
    consumed_bytes_per_s = serializers.FloatField()


class TalkerOthersSerializer(serializers.Serializer[Any]):
    """Clients that are not told one by one; of all topics, where no topic is named."""

    count = serializers.IntegerField()
    produced_bytes_per_s = serializers.IntegerField(source="in_bytes_per_s")
    consumed_bytes_per_s = serializers.IntegerField(source="out_bytes_per_s")


class TalkersSerializer(serializers.Serializer[Any]):
    """Who produces and consumes most, and what the others come to."""

    produced_bytes_per_s = serializers.FloatField(help_text="of all of them together, of the topic where one is named")
    consumed_bytes_per_s = serializers.FloatField()
    items = TalkerSerializer(many=True)
    others = TalkerOthersSerializer()
    missing_brokers = serializers.ListField(
        child=serializers.IntegerField(), help_text="that did not answer: what they know is not in this answer"
    )
