"""``?dry_run=true``: what the call would do, without doing it.

Most calls are made and taken back (`rehearsed`), and the answer is what was different. A view whose outlook has more to say, a
price above all, names its methods in `dry_run_methods` and answers by itself. Every other change refuses the parameter
(accounts/permissions.py): who asks for a dry run must not find the change made.

What is rehearsed may write to the database and to the cluster's tree (`core.dry_runs` says how these are taken back), and to
nothing else: not to Kafka, and to no host of anybody's. Calls that go to brokers (groups, transactions, messages) ask them
how things are, work out what would be, and answer with `compared`.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from functools import wraps
from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from controlplane.core.dry_runs import (
    NOTHING_MOVES,
    Affected,
    Begun,
    Moving,
    Outlook,
    PlanStep,
    differences,
    flat,
    rehearsing,
    taken_back,
)
from controlplane.core.durations import usual_s
from controlplane.core.errors import Invalid, NotFound, SluiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from django.http import HttpRequest
    from rest_framework.request import Request
    from rest_framework.views import APIView

    Handler = Callable[..., Response]
    Makes = Callable[[Request], bool]
    Seen = Callable[[APIView, Request, Mapping[str, Any]], Mapping[str, Any]]
    Touches = Callable[[Request, Mapping[str, Any], Collection[str]], Iterable[Affected]]
    Moves = Callable[[Request, Mapping[str, Any]], Moving]

NAME = "dry_run"
SECRETS = frozenset({"secret", "password", "key", "secret_key", "link"})
"""Members that are shown once, where they are made. What a dry run has made is good for nothing, and is not told at all."""
DRAWN = SECRETS | {"id", "operation_id", "prefix", "secret_id", "generation", "created_at", "at", "hash"}
"""Members that would be others if the call were made, or say nothing: they are drawn, or are of the moment."""
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


class AffectedSerializer(serializers.Serializer[Any]):
    """Whom or what the call touches beside the thing itself."""

    who = serializers.CharField(help_text="of what kind they are: members, api_keys, groups, …")
    count = serializers.IntegerField()
    names = serializers.ListField(child=serializers.CharField(), help_text="50 of them at most")
    effect = serializers.CharField(help_text="what becomes of them")


class PlanStepSerializer(serializers.Serializer[Any]):
    """One thing that the call would do."""

    name = serializers.CharField(help_text="the same each time: of an operation's step that step's name")
    detail = serializers.CharField(help_text="for people")


class DryRunSerializer(serializers.Serializer[Any]):
    """What the call would do. Nothing was done."""

    dry_run = serializers.SerializerMethodField()
    plan = PlanStepSerializer(
        many=True,
        help_text="in order: the steps of the operation that the call would begin; without one, a step for each thing that "
        "changes; empty: nothing would be different",
    )
    price_change = serializers.SerializerMethodField(
        help_text="what it would cost more a month (730 hours), use not counted, as text in the currency of `price`; negative: "
        "less; null: this has no price"
    )
    bytes_to_move = serializers.IntegerField(
        source="moving.size_bytes", help_text="that brokers would copy between each other; 0 for most calls"
    )
    seconds = serializers.SerializerMethodField(
        help_text="how long it would take, as operations of this kind have taken here (a second a step where there was none), "
        "or as the throttle lets partitions move; 0: done when the call is answered"
    )
    changes = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField(allow_null=True), min_length=2, max_length=2),
        help_text="by member, dotted where it is within another: its value before and afterwards; null: none",
    )
    price = PriceChangeSerializer(allow_null=True, help_text="null: this has no price")
    problems = serializers.ListField(
        child=serializers.CharField(),
        help_text="what would be lost, or refused later; the call itself would be carried out",
    )
    affected = AffectedSerializer(many=True, help_text="empty: nobody else")

    @extend_schema_field(OpenApiTypes.BOOL)
    def get_dry_run(self, _outlook: Outlook) -> bool:
        """Always true."""
        return True

    def get_price_change(self, outlook: Outlook) -> str | None:
        """After the change less before it; what is not there costs nothing."""
        price = outlook.price
        if price is None:
            return None
        return f"{(price.per_month_after or Decimal(0)) - (price.per_month_before or Decimal(0)):f}"

    def get_seconds(self, outlook: Outlook) -> int:
        """Whole seconds."""
        return usual_s(outlook.begun) if outlook.moving.seconds is None else outlook.moving.seconds


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


def refuse_preview(is_asked_for: bool) -> None:
    """Of a call whose body has a preview of its own. Raises Invalid where both are asked for: they have other answers."""
    if is_asked_for:
        raise Invalid.field(NAME, "say it in the address or in the body, not in both")


def is_asked(request: HttpRequest) -> bool:
    """Whether a request that has not reached its view changes nothing for this reason."""
    return "true" in request.GET.getlist(NAME)


def has_one(view: object, method: str | None) -> bool:
    """Whether this method of a view can be asked what it would do."""
    return method in getattr(view, "dry_run_methods", ()) or is_rehearsed(view, method)


def is_rehearsed(view: object, method: str | None) -> bool:
    """Whether it is found out by making the change and taking it back."""
    return getattr(getattr(view, (method or "").lower(), None), "is_rehearsed", False)


def refuse_unknown(request: Request, view: object) -> None:
    """Of a change that has no dry run, or another spelling of the name. Raises Invalid: nobody shall find the change made.

    A method that there is not at all has another answer, 405.
    """
    is_there = hasattr(view, (request.method or "").lower())
    for name in request.query_params:
        if is_there and name != NAME and "".join(filter(str.isalpha, name.lower())) == "dryrun":
            raise Invalid.field(name, f"unknown parameter, did you mean `{NAME}`? Nothing was changed")
    if is_there and NAME in request.query_params and not has_one(view, request.method):
        raise Invalid.field(NAME, "this call has no dry run; nothing was changed")


def rehearsed(
    *,
    makes: bool | Makes = False,
    of: Seen | None = None,
    touches: Touches | None = None,
    touches_unseen: bool = False,
    shows_all: bool = False,
    moves: Moves | None = None,
) -> Callable[[Handler], Handler]:
    """A handler whose dry run is the call itself, taken back.

    What was different is told by `of`, before and afterwards: by default what GET says at the same address. What is not found is
    not there. `makes` (it may depend on the request): the answer of the call is what was made. `touches`: whom it concerns beside
    that, as things are now. It is told which members would be others (of one within another the outer one), and is asked once the
    call is known to be carried out, where it changes something that is shown or `touches_unseen`. `shows_all`: the call
    does nothing that `of` does not show, so that nothing is planned where nothing is different. `moves`: what brokers would copy
    between each other, as things are now; it is asked last.
    """

    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        def handle(self: APIView, request: Request, **ids: Any) -> Response:
            if not is_dry_run(request):
                return handler(self, request, **ids)
            look = of or _got
            with rehearsing():
                # Before rows are locked: what the look afterwards would ask of a cluster is known then.
                before = None if makes is True else _looked(look, self, request, ids)
                with taken_back() as rehearsal:
                    answered = handler(self, request, **ids)
                    is_new = makes if isinstance(makes, bool) else makes(request)
                    after = answered.data if is_new else _seen(look, self, request, ids)
                if is_new:
                    before = {}
                elif before is None:
                    before = _seen(look, self, request, ids)
                changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
                is_felt = bool(changed) or is_new or touches_unseen
                is_otherwise = not shows_all and (request.method == "POST" or touches_unseen)
                return compared(
                    before,
                    after,
                    affected=touches(request, ids, changed) if touches and is_felt else (),
                    begun=rehearsal.begun,
                    moving=moves(request, ids) if moves else NOTHING_MOVES,
                    otherwise=_in_its_words(handler) if is_otherwise else (),
                )

        handle.is_rehearsed = True  # type: ignore[attr-defined]
        return handle

    return decorate


def _in_its_words(handler: Handler) -> tuple[PlanStep, ...]:
    """What a call does that nothing shows afterwards, such as sending a message: by the first line of its text."""
    said = (handler.__doc__ or "").strip().partition("\n")[0]
    return (PlanStep("carry_out", said),)


def _seen(look: Seen, view: APIView, request: Request, ids: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is not found has no members."""
    with suppress(NotFound):
        return look(view, request, ids)
    return {}


def _looked(look: Seen, view: APIView, request: Request, ids: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The same; None: something was refused, which the call itself is to say in its own words."""
    with suppress(SluiceError, APIException):
        return _seen(look, view, request, ids)
    return None


def compared(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    problems: Iterable[str] = (),
    affected: Iterable[Affected] = (),
    begun: Iterable[Begun] = (),
    moving: Moving = NOTHING_MOVES,
    otherwise: tuple[PlanStep, ...] = (),
) -> Response:
    """The answer of a dry run: what is different in two documents that GET would answer. Empty: it is not there."""
    found = differences(flat(before), flat(after))
    told = {name: values for name, values in found.items() if not _is_untold(name)}
    return answer(Outlook(told, None, tuple(problems), tuple(affected), tuple(begun), moving, otherwise))


def _is_untold(name: str) -> bool:
    """Secrets are not told wherever they stand."""
    return name in DRAWN or name.rpartition(".")[2] in SECRETS


def item(view: Callable[[], APIView], *names: str) -> Seen:
    """What GET says of another view, at the ids of these names (none: all of the call's)."""

    def look(_self: APIView, request: Request, ids: Mapping[str, Any]) -> Mapping[str, Any]:
        return _got(view(), request, {name: ids[name] for name in names or ids})

    return look


def _got(view: APIView, request: Request, ids: Mapping[str, Any]) -> Mapping[str, Any]:
    document: Mapping[str, Any] = view.get(request, **ids).data  # type: ignore[attr-defined]
    return document


def answer(outlook: Outlook) -> Response:
    """200, where the call itself may answer another status."""
    return Response(DryRunSerializer(outlook).data)
