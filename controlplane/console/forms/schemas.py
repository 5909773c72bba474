"""A schema of a topic's keys or values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms

from controlplane.console.forms.base import ConsoleForm
from controlplane.schemas.decoding import LONGEST_DEFINITION, Format
from controlplane.schemas.framing import Framing
from controlplane.schemas.serializers import LONGEST_MESSAGE

if TYPE_CHECKING:
    from controlplane.schemas.decoding import Schema

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off"}


class SchemaForm(ConsoleForm):
    """As it is kept, or as one begins."""

    format = forms.ChoiceField(
        label="Format", choices=[(Format.AVRO.value, "Avro"), (Format.PROTOBUF.value, "Protobuf")]
    )
    definition = forms.CharField(
        label="Schema",
        max_length=LONGEST_DEFINITION,
        strip=False,
        help_text="An Avro schema in JSON, or a .proto file; it may import Google's well-known types.",
        widget=forms.Textarea({"rows": 14, "class": "mono", **PLAIN}),
    )
    message = forms.CharField(
        label="Message",
        required=False,
        max_length=LONGEST_MESSAGE,
        help_text="Of a .proto file with several: the full name, like shop.Order. Empty: the first, or with a schema "
        "registry the one that each message names.",
        widget=forms.TextInput({"class": "mono", **PLAIN}),
    )
    framing = forms.ChoiceField(
        label="Framing",
        choices=[
            (Framing.NONE.value, "None"),
            (Framing.REGISTRY.value, "Schema ID in front, as Confluent's serializers write it"),
        ],
    )

    def __init__(self, data: Any = None, *, schema: Schema | None) -> None:
        known = {} if schema is None else {name: getattr(schema, name) for name in self.base_fields}
        super().__init__(data, initial=known)
