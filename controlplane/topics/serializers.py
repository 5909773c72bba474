"""Topics as JSON. `partitions` is a number wherever it stands; each partition's leader and replicas are beside it."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import CidrsField, StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.topics.batches import MOST_TOPICS
from controlplane.topics.configs import SOURCES
from controlplane.topics.notes import LONGEST_NOTE, LONGEST_TAG, MOST_TAGS
from quota.contracts.namespace import MAX_TENANT_TOPIC_LENGTH, topic_name_problem

MOST_PARTITIONS = 3000
MOST_REPLICAS = 9
MOST_CONFIG = 100
UNSAID = "by default as the instance's `config` says"


def _config_shape(*, nullable: bool) -> dict[str, Any]:
    scalars = [{"type": kind} for kind in ("string", "number", "boolean")]
    value: dict[str, Any] = {"oneOf": scalars, **({"nullable": True} if nullable else {})}
    return {"type": "object", "additionalProperties": value, "maxProperties": MOST_CONFIG}


@extend_schema_field(
    {"type": "string", "minLength": 1, "maxLength": MAX_TENANT_TOPIC_LENGTH, "pattern": r"^[A-Za-z0-9._-]+$"}
)
class TopicNameField(StrictCharField):
    """A topic's name by Kafka's rules: letters, digits, dots, underscores and hyphens."""

    def to_internal_value(self, data: Any) -> str:
        name = super().to_internal_value(data)
        problem = topic_name_problem(name)
        if problem:
            raise serializers.ValidationError(problem)
        return name


@extend_schema_field(_config_shape(nullable=False))
class ConfigField(serializers.Field):  # type: ignore[type-arg]
    """Names and values as Kafka has them: text. Numbers and booleans are taken as their text."""

    def __init__(self, *, nullable: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._nullable = nullable  # null in a PATCH takes a member back to its default

    def to_internal_value(self, data: Any) -> dict[str, str | None]:
        if not isinstance(data, dict) or len(data) > MOST_CONFIG:
            raise serializers.ValidationError(f"must be an object of at most {MOST_CONFIG} members")
        if "" in data:
            raise serializers.ValidationError("a configuration has a name")
        return {self._text(name): self._value(name, value) for name, value in data.items()}

    def to_representation(self, value: dict[str, str]) -> dict[str, str]:
        return value

    def _value(self, name: str, value: Any) -> str | None:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str | int | float):
            return self._text(str(value))
        if value is None and self._nullable:
            return None
        raise serializers.ValidationError({name: ["must be text, a number or a boolean"]})

    def _text(self, text: str) -> str:
        if not text.isprintable() or len(text) > 1000:
            raise serializers.ValidationError("names and values must be printable and at most 1000 characters long")
        return text


@extend_schema_field(_config_shape(nullable=True))
class ConfigChangeField(ConfigField):
    """Null takes a member back to its default."""

    def __init__(self, **options: Any) -> None:
        super().__init__(nullable=True, **options)


class TopicCreateSerializer(StrictSerializer):
    """A new topic; what is left out is as the instance's config says."""

    name = TopicNameField(max_length=1000)  # the name's own rule says more clearly what is wrong
    partitions = StrictIntegerField(min_value=1, max_value=MOST_PARTITIONS, required=False, help_text=UNSAID)
    replication_factor = StrictIntegerField(min_value=1, max_value=MOST_REPLICAS, required=False, help_text=UNSAID)
    config = ConfigField(required=False)


class TopicChangeSerializer(StrictSerializer):
    """More partitions, or other configurations; null resets one."""

    not_empty = True

    partitions = StrictIntegerField(min_value=1, max_value=MOST_PARTITIONS, required=False)
    config = ConfigChangeField(required=False)


class TopicNoteSerializer(StrictSerializer):
    """PATCH of what is written about a topic; what is left out stays."""

    not_empty = True

    note = StrictCharField(
        required=False,
        allow_blank=True,
        max_length=LONGEST_NOTE,
        trim_whitespace=False,
        help_text="may have lines; empty: none",
    )
    tags = serializers.ListField(
        child=StrictCharField(min_length=1, max_length=LONGEST_TAG, trim_whitespace=False),
        required=False,
        max_length=MOST_TAGS,
        help_text="all of them; no comma in one, and no space around it; [] is none",
    )


class TopicConfigsChangeSerializer(StrictSerializer):
    """The same configurations for many topics."""

    topics = serializers.ListField(child=TopicNameField(max_length=1000), min_length=1, max_length=MOST_TOPICS)
    config = ConfigChangeField(help_text="null takes a member back to its default; at least one")


class TopicConfigsAcceptedSerializer(serializers.Serializer[Any]):
    """The operation; its `result` has `changed`, `unchanged` and `failed`, and for each of `topics` what became of it."""

    instance_id = serializers.CharField()
    operation_id = serializers.CharField()


class TopicWhitelistSerializer(StrictSerializer):
    """PUT of a topic's whitelist."""

    cidrs = CidrsField(allow_null=True, help_text="[] lets nobody use it; null: everyone who may connect")


class PartitionSerializer(serializers.Serializer[Any]):
    """A partition: its leader, its replicas, and which of them are in sync."""

    partition = serializers.IntegerField()
    leader = serializers.IntegerField(allow_null=True, help_text="broker id; null while there is none")
    replicas = serializers.ListField(child=serializers.IntegerField())
    isr = serializers.ListField(child=serializers.IntegerField(), help_text="in-sync replicas")


class TopicSummarySerializer(serializers.Serializer[Any]):
    """A topic as every answer has it."""

    name = serializers.CharField(source="topic.name")
    partitions = serializers.IntegerField(source="topic.partitions")
    replication_factor = serializers.IntegerField(source="topic.replication_factor")
    whitelist = serializers.ListField(child=serializers.CharField(), allow_null=True, help_text="null: as the instance")
    note = serializers.CharField(source="note.text", help_text="what people wrote about it; empty: nothing")
    tags = serializers.ListField(source="note.tags", child=serializers.CharField())


class TopicListedSerializer(TopicSummarySerializer):
    """A topic in a list, which may have been sorted by size."""

    stored_bytes = serializers.IntegerField(
        allow_null=True,
        help_text="all replicas together; null: not asked for (only a list that is sorted by it has it), or not known",
    )


class TopicSerializer(TopicSummarySerializer):
    """A topic as the cluster has it, with its whitelist."""

    config = ConfigField(help_text="what was set for this topic")
    partition_details = PartitionSerializer(source="topic.layout", many=True)


class TopicConfigSerializer(serializers.Serializer[Any]):
    """One configuration of a topic, set or not."""

    name = serializers.CharField()
    value = serializers.CharField(allow_null=True, help_text="in force")
    source = serializers.ChoiceField(  # type: ignore[assignment]  # the document's name for it; a field has one as well
        choices=[(each, each) for each in SOURCES],
        help_text="topic: it was set for this topic; instance: the instance's default; broker: whoever runs the brokers has "
        "set it; default: Kafka's",
    )
    default = serializers.CharField(allow_null=True, help_text="in force where the topic says nothing; null: not known")
    default_source = serializers.ChoiceField(choices=[(each, each) for each in SOURCES])
    read_only = serializers.BooleanField(  # type: ignore[assignment]  # likewise
        source="is_read_only", help_text="no other value is taken"
    )
    documentation = serializers.CharField(help_text="what it does")


class TopicConfigsSerializer(serializers.Serializer[Any]):
    """Every configuration of a topic, by name."""

    items = TopicConfigSerializer(many=True)


class TopicPageSerializer(serializers.Serializer[Any]):
    """An instance's topics, a page at a time."""

    items = TopicListedSerializer(many=True)
    next = serializers.CharField(allow_null=True)
