"""Fields and serializers that take what is meant and refuse the rest.

DRF's own coerce: "5" is a number to them, True is 1, and a member that no field knows is ignored. A misspelt limit that
is silently ignored is an instance without it, so here it is an error with the member's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

MOST_GUESSED, LONGEST_GUESSED = 20, 64
"""Unknown fields of one request that are compared with the known ones, and their letters: a body may have a hundred thousand."""


class StrictSerializer(serializers.Serializer[Any]):
    """A request body. Unknown members are refused by name."""

    not_empty: ClassVar[bool] = False  # a change of nothing is refused by its service; the published schema says so
    fixed: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Members that the thing has and this request cannot set, with what is said then."""

    def get_fields(self) -> dict[str, Any]:
        """A choice that is refused names those that there are."""
        fields = super().get_fields()
        for field in fields.values():
            choice = getattr(field, "child", field)
            if isinstance(choice, serializers.ChoiceField):
                choice.error_messages["invalid_choice"] = "must be one of " + ", ".join(map(str, choice.choices))
        return fields

    def to_internal_value(self, data: Any) -> Any:
        unknown = {}
        if isinstance(data, Mapping):
            surplus = [name for name in data if name not in self.fields]
            near = {name: meant(name, self.fields) for name in surplus[:MOST_GUESSED]}
            unknown = {name: [self.fixed.get(name) or _unknown_field(near.get(name))] for name in surplus}
        try:
            found = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if unknown and isinstance(error.detail, dict):
                raise serializers.ValidationError({**error.detail, **unknown}) from error
            raise
        if unknown:
            raise serializers.ValidationError(unknown)
        return found


def meant(name: object, known: Iterable[str]) -> str | None:
    """The field or parameter that was probably meant; None where no name is near."""
    if not isinstance(name, str) or len(name) > LONGEST_GUESSED:
        return None
    return next(iter(get_close_matches(name, list(known), n=1)), None)


def _unknown_field(near: str | None) -> str:
    return f"unknown field, did you mean `{near}`?" if near else "unknown field"


class StrictIntegerField(serializers.IntegerField):
    """A JSON number without a fraction."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            raise serializers.ValidationError("must be a whole number")
        return int(super().to_internal_value(data))


class QueryIntegerField(serializers.IntegerField):
    """A number in an address. DRF takes the digits of every script."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, str) and not data.isascii():
            self.fail("invalid")
        return int(super().to_internal_value(data))


class StrictBooleanField(serializers.BooleanField):
    """A JSON boolean."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("must be true or false")
        return data


@extend_schema_field(OpenApiTypes.NUMBER)
class NumberField(serializers.Field):  # type: ignore[type-arg]
    """A JSON number; shown without a fraction where it has none."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise serializers.ValidationError("must be a number")
        try:
            return float(data)
        except OverflowError as error:
            raise serializers.ValidationError("is too large") from error

    def to_representation(self, value: float) -> float:
        """5 for 5.0."""
        return int(value) if float(value).is_integer() else float(value)


class StrictCharField(serializers.CharField):
    """A JSON string."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("must be a string")
        if self.max_length is not None and len(data) > self.max_length:  # as it was sent: DRF counts after trimming
            self.fail("max_length", max_length=self.max_length)
        return str(super().to_internal_value(data))


@extend_schema_field({"type": "array", "items": {"type": "string"}, "maxItems": 512})
class CidrsField(serializers.ListField):
    """A list whose entries the whitelist rules judge (controlplane/core/whitelist.py), each by its place."""

    child = serializers.JSONField()

    def to_internal_value(self, data: Any) -> list[Any]:
        """Only that it is a list."""
        if not isinstance(data, list):
            raise serializers.ValidationError("must be a list of CIDR blocks; [] lets nobody in")
        return data


class ExceededSerializer(serializers.Serializer[Any]):
    """A resource of which too little is left. Amounts in its own unit; money as text."""

    resource = serializers.CharField(help_text="such as bandwidth_mib_per_s or price_per_month")
    limit = serializers.JSONField(
        allow_null=True,
        help_text="null, as is used: of the organisation as a whole, to a role or key of some instances",
    )
    used = serializers.JSONField(allow_null=True, help_text="now")
    asked = serializers.JSONField(help_text="how much more")


class UnconfirmedPriceSerializer(serializers.Serializer[Any]):
    """What a purchase costs that has to be confirmed."""

    currency = serializers.CharField()
    per_month = serializers.CharField()
    in_advance = serializers.CharField(required=False, help_text="of all months that are paid in advance")


OBSTACLE_CHOICES = [(each, each) for each in ("instances", "operations", "loads", "usage")]
"""The codes of `organisations.obstacles`, which stands above this module."""


class InTheWaySerializer(serializers.Serializer[Any]):
    """Things of one kind that keep an organisation from being deleted."""

    code = serializers.ChoiceField(
        choices=OBSTACLE_CHOICES, help_text="as /api/v1/organisations/{organisation_id}/deletion has it"
    )
    count = serializers.IntegerField(help_text="of these things")


class ProblemSerializer(serializers.Serializer[Any]):
    """An error, as RFC 9457 has them: `code` is for programs, `detail` for people; `errors` says what is wrong with a field."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="stable; the other texts are for people")
    detail = serializers.CharField()
    retriable = serializers.BooleanField()
    errors = serializers.ListField(  # type: ignore[assignment]  # the document's name for it; a serializer has one as well
        child=serializers.DictField(child=serializers.CharField()), required=False, help_text="[{field, detail}]"
    )
    exceeded = ExceededSerializer(many=True, required=False, help_text="of cluster_full and organisation_cap")
    price = UnconfirmedPriceSerializer(required=False, help_text="of price_unconfirmed")
    obstacles = InTheWaySerializer(
        many=True,
        required=False,
        help_text="of organisation_in_use; in the order of errors, where the detail of each stands at the same place",
    )
