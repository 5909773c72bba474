"""Just enough HTTP/1.1 to serve a read API: GET only, one request a connection, bounded in size and time.

What is answered is a coroutine function from a path and the Authorization header to a response, passed in. Who is told 503 may
ask again in a second.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

MAX_HEAD_BYTES = 16 * 1024
TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: status, media type and body."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"

    def to_bytes(self) -> bytes:
        retry = "Retry-After: 1\r\n" if self.status is HTTPStatus.SERVICE_UNAVAILABLE else ""
        retry += "WWW-Authenticate: Bearer\r\n" if self.status is HTTPStatus.UNAUTHORIZED else ""
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\n"
            f"Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n"
            f"{retry}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        return head.encode("ascii") + self.body


Answer = Callable[[str, str], Awaitable[Response]]


def json_response(document: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A document as a response."""
    return Response(status, json.dumps(document, separators=(",", ":")).encode() + b"\n")


def problem(status: HTTPStatus, message: str) -> Response:
    """An error as a response."""
    return json_response({"error": message}, status)


async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Read one request, answer it, close."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            response = await _respond(await reader.readuntil(b"\r\n\r\n"), answer)
            writer.write(response.to_bytes())
            await writer.drain()
            writer.close()
            await writer.wait_closed()
    except asyncio.LimitOverrunError:
        writer.write(problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too large").to_bytes())
        writer.close()
    except (TimeoutError, asyncio.IncompleteReadError, OSError):
        writer.transport.abort()


async def _respond(head: bytes, answer: Answer) -> Response:
    first, *fields = head.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return problem(HTTPStatus.BAD_REQUEST, "not an HTTP/1.1 request")
    method, target, _ = parts
    if method != "GET":
        return problem(HTTPStatus.METHOD_NOT_ALLOWED, "this API is read with GET")
    try:
        path = unquote(urlsplit(target).path)
    except ValueError:
        return problem(HTTPStatus.BAD_REQUEST, "not a path")
    return await answer(path, _authorization(fields))


def _authorization(fields: Sequence[str]) -> str:
    """The header's value; empty where there is none, or several."""
    found = [value for name, _, value in (field.partition(":") for field in fields) if name.lower() == "authorization"]
    return found[0].strip() if len(found) == 1 else ""
