"""Schemas as JSON."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from controlplane.api.serializers import StrictCharField, StrictSerializer
from controlplane.schemas.decoding import LONGEST_DEFINITION, Format, Part
from controlplane.schemas.framing import Framing

FORMATS = [each.value for each in Format]
FRAMINGS = [each.value for each in Framing]
PARTS = [each.value for each in Part]
LONGEST_MESSAGE = 500


class MessageSchemaSerializer(serializers.Serializer[Any]):
    """A schema of a topic's keys or values."""

    part = serializers.ChoiceField(choices=PARTS)
    format = serializers.ChoiceField(choices=FORMATS, source="schema.format")
    framing = serializers.ChoiceField(choices=FRAMINGS, source="schema.framing")
    message = serializers.CharField(source="schema.message", help_text="of Protobuf; empty: the first of the file")
    messages = serializers.ListField(
        child=serializers.CharField(), help_text="full names of what a schema of Protobuf has; of Avro none"
    )
    definition = serializers.CharField(source="schema.definition")
    updated_at = serializers.DateTimeField()


class MessageSchemasSerializer(serializers.Serializer[Any]):
    """Two at most."""

    items = MessageSchemaSerializer(many=True)


class MessageSchemaSetSerializer(StrictSerializer):
    """PUT of a schema."""

    format = serializers.ChoiceField(choices=FORMATS)
    framing = serializers.ChoiceField(
        choices=FRAMINGS,
        required=False,
        help_text="what serializers put before the content. none (the default); registry: the id of a schema in a registry, "
        "as Confluent's do, which is passed over",
    )
    message = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST_MESSAGE,
        help_text="of Protobuf, full name; left out: the first of the file, or with `registry` the one that each message names",
    )
    definition = StrictCharField(
        max_length=LONGEST_DEFINITION,
        trim_whitespace=False,
        help_text="the text: JSON of Avro, or one .proto file, which may import Google's well-known types",
    )
