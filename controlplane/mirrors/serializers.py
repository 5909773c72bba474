"""Mirrors as JSON. Offsets are of the moment at which the mirror said so."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.mirrors.records import DELIVERIES, STATES


class MirroredPartitionSerializer(serializers.Serializer[Any]):
    """A partition that is copied."""

    topic = serializers.CharField(help_text="of this instance")
    partition = serializers.IntegerField()
    state = serializers.CharField(help_text=f"{', '.join(STATES)}; why, says the mirror's log")
    lag = serializers.IntegerField(help_text="messages that are not copied yet")
    source_end = serializers.IntegerField(help_text="the next offset that the source will write; -1: not heard yet")
    source_offset = serializers.IntegerField(help_text="the next offset to copy")
    target_offset = serializers.IntegerField(help_text="where it will be in this instance")
    map_from = serializers.IntegerField(
        allow_null=True,
        help_text="the first offset of the source that the map of offsets knows; null: nothing was copied yet",
    )
    map_segments = serializers.IntegerField(help_text="pieces of the map of offsets")
    map_slack = serializers.IntegerField(
        help_text="how many messages a group that is far behind reads twice when it moves, at most"
    )


class MirrorSerializer(serializers.Serializer[Any]):
    """A mirror."""

    source = serializers.CharField(source="said.source", help_text="as its file calls the cluster that it copies")
    target = serializers.CharField(source="said.target", help_text="as its file calls this instance")
    delivery = serializers.CharField(source="said.delivery", help_text=", ".join(DELIVERIES))
    at = serializers.DateTimeField(help_text="when it said so, by its own clock")
    age_s = serializers.FloatField()
    silent = serializers.BooleanField(source="is_silent", help_text="it should have said more since: it may not run")
    lag = serializers.IntegerField(source="said.lag", help_text="messages, of all partitions")
    messages_per_s = serializers.FloatField(source="said.messages_per_s")
    bytes_per_s = serializers.FloatField(source="said.bytes_per_s", help_text="of messages, uncompressed")
    partitions = serializers.IntegerField(source="said.partitions")
    furthest_behind = MirroredPartitionSerializer(
        many=True, source="said.rows", help_text="partitions with the largest lag, 200 at most"
    )


class MirrorsSerializer(serializers.Serializer[Any]):
    """All mirrors that have said something of late."""

    items = MirrorSerializer(many=True)
