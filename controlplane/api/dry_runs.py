"""``?dry_run=true``: what the call would do, without doing it.

A view names its methods that can do so in `dry_run_methods`. Every other change refuses the parameter
(accounts/permissions.py): who asks for a dry run must not find the change made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from controlplane.core.errors import Invalid

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request

    from controlplane.core.dry_runs import Outlook

NAME = "dry_run"
PARAMETER = OpenApiParameter(
    NAME,
    OpenApiTypes.BOOL,
    description="true: say what the call would do, and do nothing. What the call would refuse is refused in the same way; no "
    "operation begins, and no `Idempotency-Key` is kept",
)


class PriceChangeSerializer(serializers.Serializer[Any]):
    """What it costs a month (730 hours), use not counted. Amounts as text."""

    per_month_before = serializers.DecimalField(None, None, allow_null=True, help_text="null: it is not there before")
    per_month_after = serializers.DecimalField(
        None, None, allow_null=True, help_text="null: it is not there afterwards"
    )
    currency = serializers.CharField()
    at_once = serializers.DecimalField(
        None,
        None,
        allow_null=True,
        help_text="charged in advance by the change, or paid back (negative); null: the instance is paid by the hour",
    )


class DryRunSerializer(serializers.Serializer[Any]):
    """What the call would do. Nothing was done."""

    dry_run = serializers.SerializerMethodField()
    changes = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField(allow_null=True), min_length=2, max_length=2),
        help_text="by member, dotted where it is within another: its value before and afterwards; null: none",
    )
    price = PriceChangeSerializer(allow_null=True, help_text="null: this has no price")
    problems = serializers.ListField(
        child=serializers.CharField(),
        help_text="what would be lost, or refused later; the call itself would be carried out",
    )

    @extend_schema_field(OpenApiTypes.BOOL)
    def get_dry_run(self, _outlook: Outlook) -> bool:
        """Always true."""
        return True


ANSWER = OpenApiResponse(DryRunSerializer, description="What the call would do, with `dry_run=true`.")


def done_or(name: str, done: type[serializers.Serializer[Any]]) -> PolymorphicProxySerializer:
    """Of a call that answers 200 either way: what it has done, or what it would do. `name` is the schema's."""
    return PolymorphicProxySerializer(name, serializers=[done, DryRunSerializer], resource_type_field_name=None)


def is_dry_run(request: Request) -> bool:
    """Whether only the outlook is asked for. Raises Invalid."""
    said = request.query_params.getlist(NAME)
    if set(said) - {"true", "false"}:
        raise Invalid.field(NAME, "must be true or false")
    if len(set(said)) > 1:
        raise Invalid.field(NAME, "must be said once")
    return said[:1] == ["true"]


def is_asked(request: HttpRequest) -> bool:
    """Whether a request that has not reached its view changes nothing for this reason."""
    return "true" in request.GET.getlist(NAME)


def refuse_unknown(request: Request, view: object) -> None:
    """Of a change that has no dry run. Raises Invalid. A method that there is not at all has another answer, 405."""
    is_there = hasattr(view, (request.method or "").lower())
    if is_there and NAME in request.query_params and request.method not in getattr(view, "dry_run_methods", ()):
        raise Invalid.field(NAME, "this call has no dry run; nothing was changed")


def answer(outlook: Outlook) -> Response:
    """200, where the call itself may answer another status."""
    return Response(DryRunSerializer(outlook).data)
