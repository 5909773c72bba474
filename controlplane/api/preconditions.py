"""``ETag``, ``If-Match`` and ``If-None-Match`` (RFC 9110): of what has a generation that, of anything else what is shown of it.

Of the second kind a digest stands for all that people set; what is measured is not in it. A service compares where nobody else
can change the thing any more (`check_of` gives it the comparison), so that of two who change at once the later one is told.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from django.utils.http import parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from controlplane.core.errors import PreconditionFailed
from controlplane.sealing.fields import field_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from django.db.models import Model
    from rest_framework.request import Request

    Check = Callable[[Any], None]
    """Told the thing as it is. Raises PreconditionFailed where the caller has seen it otherwise."""

CHANGED = (
    "it is not as it was when you read it: get it again, look at what has changed, and send its new ETag in If-Match if you "
    "still want this"
)
KNOWN = OpenApiResponse(description="As `If-None-Match` says.")
"""Of 304."""
DIGITS = 32
"""Of a digest in an ETag."""
SETTINGS_ETAG = OpenApiParameter(
    "ETag",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    response=[200, 304],
    description="another one as soon as something that people set has changed; what is measured is not in it",
)
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
    description="an `ETag`: refused with 412 (`precondition_failed`) if somebody has changed it since. `*`, or without "
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


def content_etag(settings: Mapping[str, Any]) -> str:
    """Of what is shown of a thing that people set."""
    text = json.dumps(settings, cls=JSONEncoder, sort_keys=True, separators=(",", ":"))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:DIGITS]}"'


def without(document: Mapping[str, Any], measured: Collection[str]) -> dict[str, Any]:
    """What people set of what is shown."""
    return {name: value for name, value in document.items() if name not in measured}


def secret_etag(row: Model, name: str) -> str:
    """What stands for a sealed secret in `settings`: another one each time it is given, and nothing that it could be found by."""
    return hashlib.sha256(field_of(type(row), name).data_of(row)).hexdigest()


def answer(request: Request, document: Mapping[str, Any], settings: Mapping[str, Any] | None = None) -> Response:
    """Of GET: the document with its ETag, or 304. Of a change: what is there now.

    `settings`: what people set of it, if that is not all.
    """
    headers = {"ETag": content_etag(document if settings is None else settings)}
    if request.method in ("GET", "HEAD") and "If-None-Match" in request.headers and is_known(request, headers["ETag"]):
        return Response(status=304, headers=headers)
    return Response(document, headers=headers)


def check_of(request: Request, settings: Callable[[Any], Mapping[str, Any]]) -> Check | None:
    """What a service asks of a thing once nobody else can change it; None: `If-Match` names none, or any.

    `settings`: what GET makes the ETag of.
    """
    tags = _tags(request, "If-Match")
    if "If-Match" not in request.headers or "*" in tags:
        return None

    def check(thing: Any) -> None:
        if content_etag(settings(thing)) not in tags:
            raise PreconditionFailed(CHANGED)

    return check


def _tags(request: Request, header: str) -> list[str]:
    return parse_etags(request.headers.get(header, ""))
