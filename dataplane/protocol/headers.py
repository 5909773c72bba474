"""Whole frames: what stands in front of a request or an answer, and the body behind it.

    request    size:int32  api_key:int16 api_version:int16 correlation_id:int32 [client_id:nullable string] [tags]  body
    answer     size:int32  correlation_id:int32 [tags]                                                             body

Which parts in brackets are there depends on API and version (`Api.request_header_version`). A *frame* here is what
follows the size, as the loop hands it over; what the `encode_` functions return begins with the size.

Reading is as tolerant as Kafka: key, version and correlation id have the same places in every version there will be, so
they are known even where the rest is not. ApiVersions depends on it: a client opens with the highest version it knows,
and must get an answer that it can read (KIP-511).
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Any, NamedTuple

from dataplane.protocol.api import APIS, Api, ApiKey
from dataplane.protocol.codec import cut, decode, decoder, decoder_in_steps, encoder, encoder_in_steps
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.discovery import ApiVersionsResponse
from dataplane.protocol.primitives import Buffer, DecodeError, Splice, Splices, size_of, skip_tagged_fields
from quota.contracts.namespace import ClusterNames, Names

SIZE_BYTES = 4
"""Of the size in front of a frame."""
PART_BYTES = 256 * 2**10
"""Of a long answer, about."""
_FIXED = struct.Struct(">hhi")
_ANSWER = struct.Struct(">ii")
_SIZE = struct.Struct(">i")
_LENGTH = struct.Struct(">h")
_PHYSICAL = ClusterNames()
_VERSIONS = [(api, version) for api in APIS.values() for version in range(api.versions.low, api.versions.high + 1)]
_REQUEST_HEADERS = {(int(api.key), version): api.request_header_version(version) for api, version in _VERSIONS}
_TAGGED_ANSWERS = {(api.response, version) for api, version in _VERSIONS if api.response_header_version(version)}
"""The two rules of `Api`, asked once for every version instead of once for every frame."""


def key_of(frame: memoryview) -> int:
    """The API key of a request, of which there are less than 128; -1 where the frame is too short for one."""
    return frame[1] if len(frame) > 1 else -1


class RequestHeader(NamedTuple):
    """What a request says of itself. The body begins at `position`, where key and version are ones that we know."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    position: int

    @property
    def api(self) -> Api | None:
        """The declarations, where we have the key and this version of it: only then can the body be decoded."""
        api = APIS.get(self.api_key)
        return api if api is not None and self.api_version in api.versions else None


def parse_request_header(frame: memoryview) -> RequestHeader:
    """The header of a request frame.

    Of a key or version that we do not know, the client id is None where it cannot be read, and tags are not looked at.
    Raises DecodeError for a frame that is too short, or, of a known version, for a broken client id or tags.
    """
    if len(frame) < _FIXED.size:
        raise DecodeError(f"a request of {len(frame)} bytes has no room for a header")
    key, version, correlation_id = _FIXED.unpack_from(frame)
    header_version = _REQUEST_HEADERS.get((key, version))
    if header_version is None:
        try:
            client_id, position = _client_id(frame, _FIXED.size)
        except DecodeError:
            client_id, position = None, _FIXED.size
        return RequestHeader(key, version, correlation_id, client_id, position)
    if header_version == 0:
        return RequestHeader(key, version, correlation_id, None, _FIXED.size)
    client_id, position = _client_id(frame, _FIXED.size)
    if header_version == 2:
        # Nearly every client sends no tags: one zero byte.
        empty = position < len(frame) and frame[position] == 0
        position = position + 1 if empty else skip_tagged_fields(frame, position)
    return RequestHeader(key, version, correlation_id, client_id, position)


def _client_id(frame: Buffer, position: int) -> tuple[str | None, int]:
    """A string with a 16-bit length, even in flexible headers: a broker must read it before it knows the version."""
    body = position + 2
    if body > len(frame):
        raise DecodeError("a client id ends after the frame")
    (length,) = _LENGTH.unpack_from(frame, position)
    if length == -1:
        return None, body
    if length < 0 or body + length > len(frame):
        raise DecodeError(f"a client id of {length} bytes in {len(frame) - body}")
    try:
        return bytes(frame[body : body + length]).decode(), body + length
    except UnicodeDecodeError as error:
        raise DecodeError(f"client id: {error}") from None


def begin_answer(api: Api, version: int) -> bytearray:
    """What stands before the body of an answer: eight bytes for size and correlation id, and the header's tags."""
    out = bytearray(_ANSWER.size)
    if (api.response, version) in _TAGGED_ANSWERS:
        out.append(0)  # no tags
    return out


def prefixed(data: bytes) -> bytes:
    """With its length before it, as everything on a connection has."""
    return _SIZE.pack(len(data)) + data


def encode_frame(
    api: Api, version: int, correlation_id: int, message: Any, names: Names = _PHYSICAL
) -> list[Buffer | Splice]:
    """An answer: size, header and body, with the splices in their places (a fetch: bytes, file range, bytes, …).

    Raises ValueError for a version that the API does not have, ForeignNameError for a name of somebody else.
    """
    out = begin_answer(api, version)
    splices: Splices = []
    encoder(api.response, version)(message, out, names, splices)
    _ANSWER.pack_into(out, 0, _size_after(out, splices), correlation_id)
    return cut(out, splices)


def encode_frame_in_steps(
    api: Api, version: int, correlation_id: int, message: Any, names: Names = _PHYSICAL
) -> Generator[None, None, list[Buffer | Splice]]:
    """The same with pauses: `records.steps`. A long answer is in parts: memory that grew with it would be copied, to its end."""
    out = begin_answer(api, version)
    splices: Splices = []
    parts: list[Buffer | Splice] = []
    for _ in encoder_in_steps(api.response, version)(message, out, names, splices):
        if len(out) >= PART_BYTES:
            parts += cut(out, splices)
            out.clear()
            splices.clear()
        yield None
    if not parts and not splices:
        head = out
        parts = [head]
    else:
        parts += cut(out, splices) if out or splices else []
        head = bytearray(parts[0])  # type: ignore[arg-type]  # an answer begins with bytes
        parts[0] = head
    _ANSWER.pack_into(head, 0, sum(map(size_of, parts)) - SIZE_BYTES, correlation_id)
    return parts


def _size_after(out: bytearray, splices: Splices) -> int:
    """What the size in front of an answer says."""
    return len(out) - _SIZE.size + sum(size_of(splice) for _, splice in splices)


def encode_request(
    api: Api, version: int, correlation_id: int, client_id: str | None, message: Any, *, names: Names = _PHYSICAL
) -> bytes:
    """A request, size included. Raises ValueError for a version that the API does not have, and for splices."""
    out = _begin_request(api, version, correlation_id, client_id)
    splices: Splices = []
    encoder(api.request, version)(message, out, names, splices)
    return _ended_request(out, splices)


def encode_request_in_steps(
    api: Api, version: int, correlation_id: int, client_id: str | None, message: Any
) -> Generator[None, None, bytes]:
    """The same with pauses, of one broker to another."""
    out = _begin_request(api, version, correlation_id, client_id)
    splices: Splices = []
    yield from encoder_in_steps(api.request, version)(message, out, _PHYSICAL, splices)
    return _ended_request(out, splices)


def _begin_request(api: Api, version: int, correlation_id: int, client_id: str | None) -> bytearray:
    out = bytearray(_SIZE.size)
    out += _FIXED.pack(api.key, version, correlation_id)
    header_version = api.request_header_version(version)
    if header_version:
        text = None if client_id is None else client_id.encode()
        out += _LENGTH.pack(-1 if text is None else len(text))
        out += text or b""
    if header_version == 2:
        out.append(0)  # no tags
    return out


def _ended_request(out: bytearray, splices: Splices) -> bytes:
    if splices:
        raise ValueError("a request holds all its bytes itself")
    _SIZE.pack_into(out, 0, len(out) - _SIZE.size)
    return bytes(out)


def decode_request(header: RequestHeader, frame: Buffer, names: Names = _PHYSICAL) -> Any:
    """The body of a request. Raises DecodeError, also where key or version are not ours."""
    api = header.api
    if api is None:
        raise DecodeError(f"no version {header.api_version} of API key {header.api_key}")
    return decoder(api.request, header.api_version)(frame, header.position, names)[0]


def decode_response(api: Api, version: int, frame: Buffer, names: Names = _PHYSICAL) -> tuple[int, Any]:
    """``(correlation id, answer)`` of a frame that answers a request of this API and version. Raises DecodeError.

    An ApiVersions answer that says UNSUPPORTED_VERSION is read in layout 0, whatever we asked: that is how a broker
    that knows only older versions says which ones (KIP-511).
    """
    correlation_id = correlation_id_of(frame)
    position = _body_of_answer(api, version, frame)
    if api.key == ApiKey.API_VERSIONS and frame[position : position + 2] == _LENGTH.pack(ErrorCode.UNSUPPORTED_VERSION):
        return correlation_id, decode(ApiVersionsResponse, 0, frame, position, names)
    return correlation_id, decoder(api.response, version)(frame, position, names)[0]


def decode_response_in_steps(api: Api, version: int, frame: Buffer) -> Generator[None, None, Any]:
    """The answer of one broker to another, with pauses. Not of ApiVersions."""
    decoding = decoder_in_steps(api.response, version)
    return (yield from decoding(frame, _body_of_answer(api, version, frame), _PHYSICAL))[0]


def correlation_id_of(answer: Buffer) -> int:
    """Of a frame that answers a request. Raises DecodeError."""
    if len(answer) < _SIZE.size:
        raise DecodeError(f"an answer of {len(answer)} bytes has no room for a header")
    return _SIZE.unpack_from(answer)[0]  # type: ignore[no-any-return]


def _body_of_answer(api: Api, version: int, frame: Buffer) -> int:
    """Where it begins."""
    return skip_tagged_fields(frame, _SIZE.size) if api.response_header_version(version) else _SIZE.size
