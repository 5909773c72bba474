"""One schema as it was given, and what stands in a message by it. Pure but for Protobuf's compiler."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from controlplane.schemas import compiler
from controlplane.schemas.avro_values import AvroDecoder
from controlplane.schemas.framing import Framing, unframed
from controlplane.schemas.protobuf_values import ProtobufDecoder
from controlplane.schemas.values import Allowance, Decoded, Json, SchemaError, UndecodableError

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_DEFINITION = 64 * 1024
"""Characters."""
LARGEST_BYTES = 256 * 1024
"""Of a key or value that is decoded."""


class Format(StrEnum):
    """What a schema is written in."""

    AVRO = "avro"
    PROTOBUF = "protobuf"


class Part(StrEnum):
    """What of a message it is about."""

    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Schema:
    """As a tenant gives it. `message`: full name, of Protobuf; empty: the first, or what the content says."""

    format: Format
    definition: str
    framing: Framing = Framing.NONE
    message: str = ""
    compiled: bytes = b""  # of Protobuf; empty: not yet

    @classmethod
    def of(cls, members: Mapping[str, str]) -> Schema:
        """Of a request's members or a form's; `framing` and `message` may be missing."""
        framing = Framing(members.get("framing", Framing.NONE))
        return cls(Format(members["format"]), members["definition"], framing, members.get("message", ""))

    def compile(self) -> Schema:
        """Checked, and with what decoding needs. May take a second. Raises SchemaError."""
        if not self.definition.strip():
            raise SchemaError("must not be empty")
        if len(self.definition) > LONGEST_DEFINITION:
            raise SchemaError(f"must have at most {LONGEST_DEFINITION} characters")
        compiled = compiler.compiled(self.format.value, self.definition)
        found = Schema(self.format, self.definition, self.framing, self.message, compiled)
        Decoder(found)
        return found


class Decoder:
    """Of a schema that is compiled."""

    def __init__(self, schema: Schema) -> None:
        """Raises SchemaError."""
        self._framing = schema.framing
        self._chooses = bool(schema.message)
        self._avro = AvroDecoder(schema.definition) if schema.format is Format.AVRO else None
        self._protobuf = None if self._avro else ProtobufDecoder(schema.compiled, schema.message)

    @property
    def messages(self) -> list[str]:
        """Names of the messages that a schema of Protobuf has; of Avro none."""
        return self._protobuf.messages if self._protobuf else []

    def decode(self, content: bytes | None, allowance: Allowance) -> Decoded | None:
        """What it says, or why it cannot be read; None where there is nothing."""
        if content is None:
            return None
        try:
            if len(content) > LARGEST_BYTES:
                raise UndecodableError(f"it is larger than {LARGEST_BYTES // 1024} KiB")
            allowance.read(len(content))
            own = allowance.of_one()
            before = own.left
            try:
                return Decoded(self._decoded(content, own))
            finally:
                allowance.left -= before - own.left
        except UndecodableError as error:
            return Decoded(problem=str(error))

    def _decoded(self, content: bytes, allowance: Allowance) -> Json:
        if self._framing is Framing.NONE:
            path: tuple[int, ...] | None = None
        else:
            content, _, path = unframed(content, with_path=self._protobuf is not None)
        if self._avro is not None:
            return self._avro.decode(content, allowance)
        assert self._protobuf is not None
        return self._protobuf.decode(content, allowance, None if self._chooses else path)


@dataclass(frozen=True, slots=True)
class Unusable:
    """In the place of a decoder, where a schema that was taken once is taken no more."""

    reason: str

    def decode(self, content: bytes | None, _allowance: Allowance) -> Decoded | None:
        """Why it cannot be read."""
        return None if content is None else Decoded(problem=self.reason)
