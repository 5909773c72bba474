"""Filters of lists, asked for with ``?state=``, ``?name=``, ``?prefix=``: what cannot be asked is refused, not passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from controlplane.api.pagination import can_be_asked
from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rest_framework.request import Request
    from rest_framework.serializers import BaseSerializer


def text_parameter(name: str, description: str) -> OpenApiParameter:
    """Of the published schema, for `text_of`."""
    return OpenApiParameter(name, OpenApiTypes.STR, description=description)


def choice_parameter(name: str, choices: Sequence[str], description: str) -> OpenApiParameter:
    """Of the published schema, for `choice_of`."""
    return OpenApiParameter(name, OpenApiTypes.STR, enum=list(choices), description=description)


def query_of(request: Request, serializer: type[BaseSerializer[Any]]) -> dict[str, Any]:
    """What an address asks, by a serializer of parameters; those that it does not have are not its to judge (`parameters`).

    Raises ValidationError.
    """
    asked: Any = serializer()
    query = serializer(data={name: value for name, value in request.query_params.items() if name in asked.fields})
    query.is_valid(raise_exception=True)
    found: dict[str, Any] = query.validated_data
    return found


YES_NO = ("true", "false")


def yes_or_no(request: Request, name: str) -> bool | None:
    """`true` or `false`; None where it is not said. Raises Invalid."""
    word = choice_of(request, name, YES_NO)
    return word == "true" if word else None


def text_of(request: Request, name: str) -> str:
    """What is to be found; empty where it is not said. Raises Invalid for what no database takes."""
    text: str = request.query_params.get(name, "")
    if not can_be_asked(text):
        raise Invalid.field(name, "is no text")
    return text


def choice_of(request: Request, name: str, choices: Sequence[str]) -> str:
    """One of these words; empty where it is not said. Raises Invalid, which names them."""
    if name not in request.query_params:
        return ""
    word: str = request.query_params[name]
    if word not in choices:
        raise Invalid.field(name, f"must be one of {', '.join(choices)}")
    return word
