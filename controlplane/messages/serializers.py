"""Messages as JSON: keys, values and headers in base64, since they are any bytes; null where there is none.

What is cut or masked says so, and has its lengths all the same.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema_field
from rest_framework import serializers

from controlplane.api.serializers import StrictBooleanField, StrictCharField, StrictIntegerField, StrictSerializer
from controlplane.core.errors import Invalid
from controlplane.messages import cursors, downloads
from controlplane.messages.cursors import MOST_OFFSET
from controlplane.messages.cutting import NULL, Shown
from controlplane.messages.looking import Filter
from controlplane.messages.selectors import (
    DEFAULT_LIMIT,
    MOST,
    MOST_BYTES,
    MOST_RECORDS,
    MessagesPage,
    Start,
    Wanted,
)
from controlplane.messages.services import FIRST_TIME, MOST_HEADERS, TO_THE_END
from controlplane.messages.window import MOST_PARTITIONS
from controlplane.schemas.decoding import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.messages.cutting import ByParts

TOPIC, LAKE = "topic", "lake"
MOST_PARTITION, MOST_TIME = 2**31 - 1, 2**53
MOST_TEXT, MOST_KEY = 1_000, 10_000
MOST_DELETED = 100
"""Partitions that records are deleted of together."""
BASE64: dict[str, Any] = {"type": "string", "format": "byte", "nullable": True}


def text_of(content: bytes | None) -> str | None:
    """Base64."""
    return None if content is None else base64.b64encode(content).decode()


def _decoded(text: str) -> bytes:
    """What base64 says. Raises ValueError."""
    return base64.b64decode(text.encode(), validate=True)


def bytes_of(text: str, field: str) -> bytes:
    """What base64 says. Raises Invalid."""
    try:
        return _decoded(text)
    except ValueError as error:
        raise Invalid.field(field, "must be base64") from error


@extend_schema_field(BASE64)
class BytesField(StrictCharField):
    """Any bytes, in base64, or null. Base64 of nothing is no bytes, which is something else than null."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, allow_blank=True, trim_whitespace=False, **options)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        """The framework hands a text on that is empty, and asks nobody what it means."""
        found = super().run_validation(data)
        return b"" if isinstance(found, str) else found

    def to_internal_value(self, data: Any) -> Any:
        """The bytes."""
        text = super().to_internal_value(data)
        try:
            return _decoded(text)
        except ValueError as error:
            raise serializers.ValidationError("must be base64, or null") from error

    def to_representation(self, value: Any) -> Any:
        """Base64."""
        return text_of(value)


HEADERS: dict[str, Any] = {
    "type": "array",
    "maxItems": MOST_HEADERS,
    "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "string", "nullable": True}},
}


@extend_schema_field(HEADERS)
class HeadersField(serializers.Field):  # type: ignore[type-arg]
    """[[name, base64 or null], …], in the order of the message; a name may be there twice."""

    def to_internal_value(self, data: Any) -> list[tuple[str, bytes | None]]:
        """Names and bytes."""
        if not isinstance(data, list) or len(data) > MOST_HEADERS:
            raise serializers.ValidationError(f"must be a list of at most {MOST_HEADERS} pairs")
        return [self._header(each) for each in data]

    def to_representation(self, value: Any) -> list[list[str | None]]:
        """As it is sent."""
        return [[name, text_of(content)] for name, content in value]

    @staticmethod
    def _header(each: Any) -> tuple[str, bytes | None]:
        pair = isinstance(each, list) and len(each) == 2
        if not pair or not isinstance(each[0], str) or not isinstance(each[1], str | None) or "\0" in each[0]:
            raise serializers.ValidationError("each must be a name, and base64 or null")
        try:
            return each[0], None if each[1] is None else _decoded(each[1])
        except ValueError as error:
            raise serializers.ValidationError("each must be a name, and base64 or null") from error


class _NumberTextField(serializers.IntegerField):
    """A number in an address: digits."""

    def to_internal_value(self, data: Any) -> int:
        if not (isinstance(data, str) and data.isascii() and data.isdigit() and len(data) < 20):
            raise serializers.ValidationError("must be a whole number, 0 or more")
        return int(super().to_internal_value(data))


class MessagesAskedSerializer(StrictSerializer):
    """Which messages are wanted."""

    partition = _NumberTextField(
        min_value=0, max_value=MOST_PARTITION, required=False, help_text="left out: all of them"
    )
    offset = _NumberTextField(
        min_value=0,
        max_value=MOST_OFFSET,
        required=False,
        help_text="begin there, in `partition`, and go on to newer ones; what has expired may be in a load's table",
    )
    timestamp_ms = _NumberTextField(
        min_value=0, max_value=MOST_TIME, required=False, help_text="begin with the first message of that time or later"
    )
    start = serializers.ChoiceField(
        choices=[each.value for each in Start],
        required=False,
        help_text="where neither offset nor time is said: newest (the default; goes on to older ones), oldest, or end",
    )
    key = serializers.CharField(
        required=False,
        max_length=MOST_KEY,
        trim_whitespace=False,
        help_text="in base64: messages with exactly this key",
    )
    contains = serializers.CharField(
        required=False,
        max_length=MOST_TEXT,
        trim_whitespace=False,
        help_text="messages whose value contains this text, as UTF-8 or in the JSON that its schema makes of it",
    )
    key_contains = serializers.CharField(
        required=False,
        max_length=MOST_TEXT,
        trim_whitespace=False,
        help_text="messages whose key contains this text, as UTF-8 or in the JSON that its schema makes of it",
    )
    header = serializers.CharField(
        required=False,
        max_length=MOST_TEXT,
        trim_whitespace=False,
        help_text="messages with a header of this name; or name=text: with one of this name whose value contains the text",
    )
    limit = _NumberTextField(
        min_value=1, max_value=MOST, required=False, help_text=f"messages a page, 1 to {MOST}; default {DEFAULT_LIMIT}"
    )
    cursor = serializers.CharField(
        required=False, max_length=cursors.LONGEST, help_text="`next`, `older` or `newer` of a page before"
    )
    file = serializers.ChoiceField(
        choices=list(downloads.FILES),
        required=False,
        help_text="answer with the page as a file, whole: text where it is UTF-8, else base64, and what schemas make of it",
    )

    @staticmethod
    def wanted(members: Mapping[str, Any]) -> Wanted:
        """As `selectors.messages_page` takes it. Raises Invalid."""
        said = [name for name in ("offset", "timestamp_ms", "start") if name in members]
        if len(said) > 1:
            raise Invalid.field(said[1], f"not together with {said[0]}")
        key, cursor = members.get("key"), members.get("cursor")
        text, key_part = members.get("contains"), members.get("key_contains")
        return Wanted(
            partition=members.get("partition"),
            start=Start(members.get("start", Start.NEWEST)),
            offset=members.get("offset"),
            timestamp_ms=members.get("timestamp_ms"),
            position=None if cursor is None else cursors.position_of(cursor),
            filter=Filter(
                key=None if key is None else bytes_of(key, "key"),
                text=None if text is None else text.encode(),
                key_part=None if key_part is None else key_part.encode(),
                header=members.get("header"),
            ),
            limit=members.get("limit", DEFAULT_LIMIT),
        )


@extend_schema_field({"nullable": True, "description": "any JSON; null where there is a problem"})
class AnyJsonField(serializers.Field):  # type: ignore[type-arg]
    """JSON as it is."""

    def to_representation(self, value: Any) -> Any:
        """As it is."""
        return value


class DecodedSerializer(serializers.Serializer[Any]):
    """A key or a value by its schema."""

    value = AnyJsonField()
    problem = serializers.CharField(allow_null=True, help_text="why it could not be read by its schema; null: it could")


class DecodedPartsSerializer(serializers.Serializer[Any]):
    """What has a schema."""

    key = serializers.SerializerMethodField("key_of", help_text="null: keys have no schema, or there is none")
    value = serializers.SerializerMethodField("value_of", help_text="null: values have no schema, or there is none")

    @extend_schema_field(DecodedSerializer(allow_null=True))
    def key_of(self, found: ByParts) -> Any:
        """The key."""
        return _part_of(found, Part.KEY)

    @extend_schema_field(DecodedSerializer(allow_null=True))
    def value_of(self, found: ByParts) -> Any:
        """The value."""
        return _part_of(found, Part.VALUE)


def _part_of(found: ByParts, part: Part) -> Any:
    return DecodedSerializer(found[part]).data if part in found else None


class MessageSerializer(serializers.Serializer[Any]):
    """A message. Where its content is masked or cut, the lengths are of the whole."""

    partition = serializers.IntegerField()
    offset = serializers.IntegerField()
    timestamp_ms = serializers.IntegerField(allow_null=True, help_text="null: its producer was from before 0.10")
    key = BytesField()
    value = BytesField()
    headers = HeadersField(help_text="[[name, base64 or null], …]")
    key_bytes = serializers.SerializerMethodField(help_text="null where the key is null")
    value_bytes = serializers.SerializerMethodField(help_text="null where the value is null")
    headers_bytes = serializers.IntegerField(help_text="of names and values")
    header_count = serializers.IntegerField()
    cut = serializers.BooleanField(
        source="is_cut", help_text="key, value or headers are not whole: read it by its offset"
    )
    masked = serializers.BooleanField(source="is_masked", help_text="your role may not read what stands in messages")
    decoded = DecodedPartsSerializer(help_text="by the topic's schemas, which are set at `…/schemas/key` and `…/value`")
    source = serializers.SerializerMethodField(
        help_text="lake: it has expired in the topic, and is read from a load's table"
    )
    load = serializers.SerializerMethodField(help_text="the load whose table it is from; null: from the topic")

    @extend_schema_field(serializers.ChoiceField(choices=[TOPIC, LAKE]))
    def get_source(self, shown: Shown) -> str:
        """Where it is from."""
        return LAKE if shown.load_id else TOPIC

    def get_load(self, shown: Shown) -> str | None:
        """Its id."""
        return shown.load_id or None

    def get_key_bytes(self, shown: Shown) -> int | None:
        """Its length."""
        return None if shown.key_bytes == NULL else shown.key_bytes

    def get_value_bytes(self, shown: Shown) -> int | None:
        """Its length."""
        return None if shown.value_bytes == NULL else shown.value_bytes


class InLakeSerializer(serializers.Serializer[Any]):
    """What a load's table has of a partition, below its first offset."""

    load = serializers.CharField()
    first_offset = serializers.IntegerField()
    end_offset = serializers.IntegerField(
        help_text="a look goes on in the topic from here if it is the topic's first offset; else it ends"
    )


class PlaceSerializer(serializers.Serializer[Any]):
    """What a look did in one partition."""

    partition = serializers.IntegerField()
    first_offset = serializers.IntegerField(help_text="the first that the partition holds")
    end_offset = serializers.IntegerField(help_text="the next that will be written")
    from_offset = serializers.IntegerField(help_text="where the look began")
    to_offset = serializers.IntegerField(help_text="where it stopped, and the next page begins")
    lake = InLakeSerializer(allow_null=True, help_text="null: the look did not begin below `first_offset`")


class LookedSerializer(serializers.Serializer[Any]):
    """How far a look came."""

    records = serializers.IntegerField(help_text=f"looked at, {MOST_RECORDS} at most")
    bytes = serializers.IntegerField(
        help_text=f"of their keys, values and headers, {MOST_BYTES} and one message at most"
    )
    partitions = PlaceSerializer(many=True, source="places")
    unavailable = serializers.ListField(
        child=serializers.IntegerField(),
        help_text="partitions without a leader now: pages that follow have what they hold",
    )
    waiting = serializers.IntegerField(
        help_text=f"partitions that pages that follow will show: a look goes through {MOST_PARTITIONS} at most"
    )


class MessagesPageSerializer(serializers.Serializer[Any]):
    """Messages in the order in which they were looked for. A page may be short, or empty, and still have a `next`."""

    items = MessageSerializer(many=True, source="messages")
    next = serializers.SerializerMethodField(help_text="goes on in the same direction; null: there is nothing more now")
    older = serializers.SerializerMethodField(help_text="goes on before this page")
    newer = serializers.SerializerMethodField(help_text="goes on behind this page: asked again and again, a live tail")
    looked_at = LookedSerializer(source="*")
    masked = serializers.BooleanField(source="is_masked")

    def get_next(self, page: MessagesPage) -> str | None:
        """A cursor."""
        return None if page.following is None else cursors.text_of(page.following)

    def get_older(self, page: MessagesPage) -> str:
        """A cursor."""
        return cursors.text_of(page.older)

    def get_newer(self, page: MessagesPage) -> str:
        """A cursor."""
        return cursors.text_of(page.newer)


class MessageProduceSerializer(StrictSerializer):
    """One message to be written."""

    partition = StrictIntegerField(
        min_value=0,
        max_value=MOST_PARTITION,
        required=False,
        allow_null=True,
        help_text="left out: by the key, as producers in Java choose (murmur2); any where the key is null",
    )
    timestamp_ms = StrictIntegerField(
        min_value=FIRST_TIME, max_value=MOST_TIME, required=False, allow_null=True, help_text="left out: now"
    )
    key = BytesField(required=False)
    value = BytesField(help_text="null: on a compacted topic, that the key is deleted")
    headers = HeadersField(required=False)


@extend_schema_field(OpenApiTypes.OBJECT)
class OffsetsField(serializers.Field):  # type: ignore[type-arg]
    """By partition, whose number is a JSON object's member name, an offset."""

    def to_internal_value(self, data: Any) -> dict[int, int]:
        """Numbers."""
        if not isinstance(data, dict) or not 0 < len(data) <= MOST_DELETED:
            raise serializers.ValidationError(f"must be an object of 1 to {MOST_DELETED} members")
        found = {self._partition(name): self._offset(offset) for name, offset in data.items()}
        if len(found) < len(data):  # "0" and "00": which of them is meant, nobody knows
            raise serializers.ValidationError("names a partition twice")
        return found

    def to_representation(self, value: Any) -> Any:
        """As it is sent."""
        return {str(partition): offset for partition, offset in value.items()}

    @staticmethod
    def _partition(name: Any) -> int:
        if not (isinstance(name, str) and name.isascii() and name.isdigit() and len(name) <= 10):
            raise serializers.ValidationError("each member's name must be a partition's number")
        return int(name)

    @staticmethod
    def _offset(offset: Any) -> int:
        if isinstance(offset, bool) or not isinstance(offset, int) or not TO_THE_END <= offset <= MOST_OFFSET:
            raise serializers.ValidationError(f"each must be an offset, or {TO_THE_END} for all that is there")
        return offset


class RecordsDeleteSerializer(StrictSerializer):
    """Up to where records are deleted."""

    before = OffsetsField(
        help_text=f'{{"0": 1200}}: of partition 0 what lies before offset 1200; {TO_THE_END}: everything'
    )
    dry_run = StrictBooleanField(required=False, help_text="only say how many records would go")


class DeletionSerializer(serializers.Serializer[Any]):
    """One partition."""

    partition = serializers.IntegerField()
    first_offset = serializers.IntegerField(help_text="before the deletion")
    before_offset = serializers.IntegerField(help_text="the first that is left")
    records = serializers.IntegerField(help_text="offsets that go; on a compacted topic they hold fewer records")


class RecordsDeletedSerializer(serializers.Serializer[Any]):
    """What was deleted, or with dry_run would be."""

    partitions = DeletionSerializer(many=True)


_ITEM = {
    "partition": 2,
    "offset": 1233,
    "timestamp_ms": 1793000000000,
    "key": "b3JkZXItMTc=",
    "value": "eyJzdGF0ZSI6ICJwYWlkIn0=",
    "headers": [["source", "c2hvcA=="]],
    "key_bytes": 8,
    "value_bytes": 17,
    "headers_bytes": 10,
    "header_count": 1,
    "cut": False,
    "masked": False,
    "decoded": {"key": None, "value": None},
    "source": "topic",
    "load": None,
}
MESSAGES_EXAMPLE = OpenApiExample(
    "The newest message with a key, after one look",
    response_only=True,
    value={
        "items": [_ITEM],
        "next": "WyJvbGRlciIsW1syLDIwMF1dXQ",
        "older": "WyJvbGRlciIsW1syLDIwMF1dXQ",
        "newer": "WyJuZXdlciIsW1syLDEyMzRdXV0",
        "looked_at": {
            "records": 1034,
            "bytes": 8_390_112,
            "partitions": [
                {
                    "partition": 2,
                    "first_offset": 0,
                    "end_offset": 1234,
                    "from_offset": 1234,
                    "to_offset": 200,
                    "lake": None,
                }
            ],
            "unavailable": [],
            "waiting": 0,
        },
        "masked": False,
    },
)
