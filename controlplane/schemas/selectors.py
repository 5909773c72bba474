"""Schemas of a topic, within an organisation, and what reads messages by them."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from controlplane.instances.selectors import instance_get
from controlplane.kafka import topics
from controlplane.schemas.decoding import Decoder, Format, Part, Schema, Unusable
from controlplane.schemas.framing import Framing
from controlplane.schemas.models import MessageSchema
from controlplane.schemas.values import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django.db.models import QuerySet

    from controlplane.instances.models import Instance
    from controlplane.tenants.models import Organisation

_DECODERS_KEPT = 32


@dataclass(frozen=True, slots=True)
class SchemaView:
    """A schema as it is kept."""

    part: Part
    schema: Schema
    updated_at: datetime

    @property
    def messages(self) -> list[str]:
        """Names of the messages that a schema of Protobuf has; of Avro none."""
        try:
            return decoder_of(self.schema).messages
        except SchemaError:
            return []


def schema_list(*, organisation: Organisation, instance_id: str, topic: str) -> list[SchemaView]:
    """Of the keys and of the values, if they have any. Raises NotFound, ClusterUnavailable."""
    instance = instance_get(organisation=organisation, instance_id=instance_id)
    found = topics.get(instance.cluster.address, instance.id, topic)
    rows = rows_of(instance).filter(topic_id=found.id) if found.id else rows_of(instance).none()
    return [view_of(row) for row in rows.order_by("part")]


def decoders_of(instance: Instance, topic: str) -> Mapping[Part, Decoder | Unusable]:
    """By which messages of the topic are read. Costs a cluster's answer only where the topic has or had a schema."""
    rows = list(rows_of(instance).filter(name=topic))
    if not rows:
        return {}
    topic_id = topics.ids(instance.cluster.address, instance.id, [topic]).get(topic)
    return {Part(row.part): _decoder(schema_of(row)) for row in rows if row.topic_id == topic_id}


def _decoder(schema: Schema) -> Decoder | Unusable:
    try:
        return decoder_of(schema)
    except SchemaError as error:
        return Unusable(f"its schema {error}")


def rows_of(instance: Instance) -> QuerySet[MessageSchema]:
    """Of all topics that an instance has or had."""
    return MessageSchema.objects.for_organisation(instance.organisation).filter(instance=instance)


def view_of(row: MessageSchema) -> SchemaView:
    """A row as it is shown."""
    return SchemaView(Part(row.part), schema_of(row), row.updated_at)


def schema_of(row: MessageSchema) -> Schema:
    """What the row says."""
    return Schema(Format(row.format), row.definition, Framing(row.framing), row.message, b64decode(row.compiled))


@lru_cache(_DECODERS_KEPT)
def decoder_of(schema: Schema) -> Decoder:
    """Of a schema that is compiled."""
    return Decoder(schema)
