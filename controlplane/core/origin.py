"""Where a request comes from: its id, the caller's address, the key it was made with. For the audit trail and the log.

It is known for as long as the request is answered; what a worker does has none. The id is in the header `X-Request-Id` of every
answer, before every line that is logged meanwhile, and in every entry of the audit trail.
"""

from __future__ import annotations

import logging
import uuid
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from controlplane.core import addresses

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

HEADER = "X-Request-Id"


@dataclass(slots=True)
class Origin:
    """Of one request; empty texts where there is none."""

    request_id: str = ""
    address: str = ""
    key: str = ""  # id of the API key or access key; empty: a session of the console
    agent: str = ""  # what the program says that it is
    sees_whole: bool = True  # False: the caller is for some instances alone, or sees no costs (sums.py)
    refusal: Exception | None = None  # what a page shows beside its form, in place of raising it


_CURRENT: ContextVar[Origin | None] = ContextVar("origin", default=None)


def current() -> Origin:
    """Of the request that is being answered."""
    return _CURRENT.get() or Origin()


def came_by(key: str) -> None:
    """The caller has shown this key, and it was right."""
    origin = _CURRENT.get()
    if origin is not None:
        origin.key = key


def was_refused(error: Exception) -> None:
    """A page shows this refusal beside its form; whoever answers the request learns of it here (console/page.py)."""
    origin = _CURRENT.get()
    if origin is not None:
        origin.refusal = error


def without_sums() -> None:
    """Whoever asks is for some instances of their organisation, or sees no costs, and is told nothing of it as a whole."""
    origin = _CURRENT.get()
    if origin is not None:
        origin.sees_whole = False


def address_of(request: HttpRequest) -> str:
    """Of the caller; behind a proxy, what the proxy saw: the last of the list, which a caller cannot write."""
    forwarded = request.headers.get("X-Forwarded-For", "") if settings.ENVIRONMENT.tls else ""
    return forwarded.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR", "")


def seen_at(request: HttpRequest) -> str:
    """The caller's address as brokers would judge it, for whoever wants to let themselves in; empty where it is none."""
    try:
        return str(addresses.address_of(address_of(request)))
    except ValueError:
        return ""


class OriginMiddleware:
    """The outermost one: what the others log has the id, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass on, and tell the id."""
        agent = request.headers.get("User-Agent", "")
        origin = Origin(str(uuid.uuid4()), address_of(request), agent=agent)
        before = _CURRENT.set(origin)
        try:
            response = self._get_response(request)
        finally:
            _CURRENT.reset(before)
        response.headers[HEADER] = origin.request_id
        return response


class WithRequestId(logging.Filter):
    """Gives every line the id of the request that it belongs to, and a space; of none, nothing."""

    def filter(self, record: logging.LogRecord) -> bool:
        request_id = current().request_id
        record.request = f"{request_id} " if request_id else ""
        return True
