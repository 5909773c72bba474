"""Requests are UTF-8, whatever charset their Content-Type names.

Django reads the query string in the charset of the body: with `charset=utf-16` no parameter of an address would be known by
its name, and a dry run would be carried out. Of a codec that is none of text, such as `hex`, every request would end in an
error of ours. So of a Content-Type only the type reaches Django, and of a form in parts the boundary.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

BOUNDARY = re.compile(r';\s*boundary\s*=\s*("[^"]*"|[^\s;"]+)', re.IGNORECASE)


def without_charset(content_type: str) -> str:
    """The type, and the boundary of what comes in parts."""
    kind = content_type.partition(";")[0].strip()
    boundary = BOUNDARY.search(content_type) if kind.lower().startswith("multipart/") else None
    return f"{kind}; boundary={boundary[1]}" if boundary else kind


def wsgi_in_utf8(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The application, which no charset reaches."""

    def in_utf8(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if "CONTENT_TYPE" in environ:
            environ["CONTENT_TYPE"] = without_charset(environ["CONTENT_TYPE"])
        return application(environ, start_response)

    return in_utf8


def asgi_in_utf8(application: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The same of ASGI."""

    async def in_utf8(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        headers = [
            (name, without_charset(value.decode("latin-1")).encode("latin-1") if name == b"content-type" else value)
            for name, value in scope.get("headers", ())
        ]
        await application({**scope, "headers": headers}, receive, send)

    return in_utf8
