"""``ETag``, ``If-Match`` and ``If-None-Match`` (RFC 9110) of what has a generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.http import parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

if TYPE_CHECKING:
    from collections.abc import Collection

    from rest_framework.request import Request

ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    response=[200, 304],
    description="another one as soon as name, sizes, config, whitelists, routes or state have changed; what is measured (use, "
    "health) is not in it",
)
IF_NONE_MATCH = OpenApiParameter(
    "If-None-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="an `ETag`: answered 304 without a body while it is the present one",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="an `ETag`: refused with 412 (`precondition_failed`) if somebody has changed the instance since. `*`, or without "
    "the header: whatever it is now",
)


def etag_of(generation: int, state: str, *, usual: str) -> str:
    """``"7"``, or ``"7-creating"`` where the state is not the usual one: it changes without the generation."""
    return f'"{generation}"' if state == usual else f'"{generation}-{state}"'


def is_known(request: Request, etag: str) -> bool:
    """Whether the caller has what this ETag stands for. Proxies that compress make it a weak one."""
    return any(each in ("*", etag) for each in (tag.removeprefix("W/") for tag in _tags(request, "If-None-Match")))


def generations_of(request: Request) -> Collection[int] | None:
    """What `If-Match` lets the thing be at; None: anything. What is no ETag of ours, or weak, is nothing that it can be at."""
    if "If-Match" not in request.headers:
        return None
    tags = _tags(request, "If-Match")
    if "*" in tags:
        return None
    numbers = (tag.strip('"').partition("-")[0] for tag in tags)
    return frozenset(int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 20)


def _tags(request: Request, header: str) -> list[str]:
    return parse_etags(request.headers.get(header, ""))
