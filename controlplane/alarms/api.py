"""REST of alarms and their receivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.accounts.scopes import ALARMS
from controlplane.alarms import receivers, selectors, services, timeline
from controlplane.alarms.events import MARKED
from controlplane.alarms.machine import PHASES
from controlplane.alarms.rules import WATCHED
from controlplane.alarms.serializers import (
    AlarmChangeSerializer,
    AlarmCreateSerializer,
    AlarmEventPageSerializer,
    AlarmEventSerializer,
    AlarmPageSerializer,
    AlarmSerializer,
    AlarmSilenceSerializer,
    DeliveryPageSerializer,
    DeliverySerializer,
    InstanceEventPageSerializer,
    InstanceEventSerializer,
    ReceiverChangeSerializer,
    ReceiverConfirmSerializer,
    ReceiverCreateSerializer,
    ReceiverPageSerializer,
    ReceiverSecretSerializer,
    ReceiverSerializer,
)
from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.api.ranges import span_of
from controlplane.core.dry_runs import affected

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rest_framework.request import Request

    from controlplane.alarms.events import Event
    from controlplane.alarms.models import Alarm, Receiver
    from controlplane.core.dry_runs import Affected

TAGS = ["alarms"]
NOT_STORED = {"Cache-Control": "no-store"}
MEASURED = ("state", "since", "firing_since", "value", "value_of", "missing", "looked_at")
"""What is shown of an alarm that its tenant has not set."""
RECEIVERS_SORTED = {name: name for name in ("name", "kind", "created_at")}
RECEIVER_PARAMETERS = [sorting.parameter(RECEIVERS_SORTED, "created_at"), *pagination.PARAMETERS]
ALARMS_SORTED = {"name": "name", "watch": "watch", "state": "phase", "since": "since", "created_at": "created_at"}
"""Where the database has what alarms are sorted by."""
ALARM_PARAMETERS = [
    filters.text_parameter("prefix", "only alarms whose names begin so"),
    filters.choice_parameter("state", PHASES, "only alarms in this state"),
    filters.choice_parameter("watch", list(WATCHED), "only alarms that watch this"),
    filters.choice_parameter("enabled", filters.YES_NO, "only alarms that are looked at, or that are not"),
    sorting.parameter(ALARMS_SORTED, "created_at"),
    *pagination.PARAMETERS,
]
CHANGES = {"may_change": True}
"""Of a request that only those who may change something get through with."""


def _settings(alarm: Alarm) -> dict[str, Any]:
    return preconditions.without(AlarmSerializer(alarm).data, MEASURED)


def _answer(request: Request, alarm: Alarm) -> Response:
    return preconditions.answer(request, dict(AlarmSerializer(alarm).data), _settings(alarm))


class AlarmsApi(APIView):
    """/api/v1/instances/{id}/alarms."""

    @extend_schema(responses=AlarmPageSerializer, parameters=ALARM_PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """The alarms of an instance with their states and last values, in the order in which they were made by default."""
        rows = selectors.alarm_list(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            prefix=filters.text_of(request, "prefix"),
            phase=filters.choice_of(request, "state", PHASES),
            watch=filters.choice_of(request, "watch", list(WATCHED)),
            enabled=filters.yes_or_no(request, "enabled"),
        )
        page, following = sorting.rows_page(request, rows, ALARMS_SORTED)
        return Response(pagination.body(list(AlarmSerializer(page, many=True).data), following))

    @extend_schema(request=AlarmCreateSerializer, responses={201: AlarmSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str) -> Response:
        """Watch a health reason, or a figure against a threshold. Looked at every 30 s. At most 50 an instance."""
        body = AlarmCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        alarm = services.alarm_create(**caller_of(request).place(instance_id), **body.validated_data)
        return Response(AlarmSerializer(alarm).data, status=201)


class AlarmApi(APIView):
    """/api/v1/instances/{id}/alarms/{alarm_id}."""

    @extend_schema(
        responses={200: AlarmSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str, alarm_id: str) -> Response:
        """One alarm."""
        organisation = caller_of(request).organisation
        alarm = selectors.alarm_get(organisation=organisation, instance_id=instance_id, alarm_id=alarm_id)
        return _answer(request, alarm)

    @extend_schema(
        request=AlarmChangeSerializer, responses=AlarmSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, instance_id: str, alarm_id: str) -> Response:
        """Another rule. Where what is watched, the threshold, the duration or `enabled` changes, the alarm begins anew."""
        body = AlarmChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        alarm = services.alarm_update(
            **caller_of(request).place(instance_id),
            alarm_id=alarm_id,
            changes=body.validated_data,
            check=preconditions.check_of(request, _settings),
        )
        return _answer(request, alarm)

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, instance_id: str, alarm_id: str) -> Response:
        """It is looked at no more. Receivers that know it as firing are told that it is over."""
        check = preconditions.check_of(request, _settings)
        services.alarm_delete(**caller_of(request).place(instance_id), alarm_id=alarm_id, check=check)
        return Response(status=204)


class AlarmSilenceApi(APIView):
    """/api/v1/instances/{id}/alarms/{alarm_id}/silence."""

    @extend_schema(request=AlarmSilenceSerializer, responses=AlarmSerializer, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(AlarmApi))
    def post(self, request: Request, instance_id: str, alarm_id: str) -> Response:
        """Hold messages back until then; null: no longer. What is different from what was told last is told at the end."""
        body = AlarmSilenceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        alarm = services.alarm_silence(
            **caller_of(request).place(instance_id), alarm_id=alarm_id, until=body.validated_data["until"]
        )
        return Response(AlarmSerializer(alarm).data)


def _silences(request: Request, ids: Mapping[str, Any]) -> dict[str, Any]:
    """By alarm, until when its messages are held back."""
    rows = selectors.alarm_list(organisation=caller_of(request).organisation, instance_id=ids["instance_id"])
    return {alarm.pk: {"silenced_until": AlarmSerializer(alarm).data["silenced_until"]} for alarm in rows}


class AlarmsSilenceApi(APIView):
    """/api/v1/instances/{id}/silence."""

    @extend_schema(request=AlarmSilenceSerializer, responses=AlarmPageSerializer, tags=TAGS)
    @dry_runs.rehearsed(of=lambda _view, request, ids: _silences(request, ids), shows_all=True)
    def post(self, request: Request, instance_id: str) -> Response:
        """Hold back the messages of all alarms that the instance has now, until then; null: every silence ends.

        An alarm that is silenced for longer stays so, and one that is made later is not silenced. Answers all alarms, 50 at most.
        """
        body = AlarmSilenceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        rows = services.alarms_silence(**caller_of(request).place(instance_id), until=body.validated_data["until"])
        return Response(pagination.body(list(AlarmSerializer(rows, many=True).data), None))


class AlarmEventsApi(APIView):
    """/api/v1/instances/{id}/alarms/{alarm_id}/events."""

    @extend_schema(responses=AlarmEventPageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str, alarm_id: str) -> Response:
        """What happened to an alarm in the last 90 days, the newest first, with the value at that moment."""
        rows = selectors.event_list(
            organisation=caller_of(request).organisation, instance_id=instance_id, alarm_id=alarm_id
        )
        page, following = pagination.newest_page(request, rows, moment="at", key=int)
        return Response(pagination.body(list(AlarmEventSerializer(page, many=True).data), following))


class InstanceEventsApi(APIView):
    """/api/v1/instances/{id}/events."""

    @extend_schema(
        responses=InstanceEventPageSerializer,
        parameters=[
            OpenApiParameter("from", OpenApiTypes.STR, description="RFC 3339 or a date, UTC; default: 90 days ago"),
            OpenApiParameter("to", OpenApiTypes.STR, description="RFC 3339 or a date, UTC, not included; default: now"),
            OpenApiParameter(
                "kinds",
                OpenApiTypes.STR,
                description=f"names with commas between; default: all. Charts of the history have marks of {', '.join(MARKED)}",
            ),
            *pagination.PARAMETERS,
        ],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """What happened to an instance in the last 90 days, or in a range of them, the newest first."""
        start, end = span_of(request)
        wanted: dict[str, Any] = {
            "organisation": caller_of(request).organisation,
            "instance_id": instance_id,
            "start": start,
            "end": end,
            "kinds": timeline.kinds_named(request.query_params.get("kinds")),
        }

        def fetch(after: Any | None, most: int) -> list[Event]:
            place = None if after is None else timeline.place_of(*after)
            return timeline.events_get(**wanted, after=place, most=most)

        page, following = pagination.fetched_page(
            request, fetch, key=lambda event: timeline.place_text(event.place), shape=(str, str, str)
        )
        return Response(pagination.body(list(InstanceEventSerializer(page, many=True).data), following))


class ReceiversApi(APIView):
    """/api/v1/instances/{id}/receivers."""

    @extend_schema(responses=ReceiverPageSerializer, parameters=RECEIVER_PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Who can be told of an instance's alarms; never a secret."""
        caller = caller_of(request)
        rows = selectors.receiver_list(organisation=caller.organisation, instance_id=instance_id)
        page, following = sorting.rows_page(request, rows, RECEIVERS_SORTED)
        seen = ReceiverSerializer(page, many=True, context={"may_change": caller.may_change_in(ALARMS)})
        return Response(pagination.body(list(seen.data), following))

    @extend_schema(request=ReceiverCreateSerializer, responses={201: ReceiverSecretSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str) -> Response:
        """A webhook, whose secret is in the answer and never again, or an e-mail address, which gets a code. At most 10."""
        body = ReceiverCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        made, secret = receivers.receiver_create(**caller_of(request).place(instance_id), **body.validated_data)
        return Response(_with_secret(made, secret), status=201, headers=NOT_STORED)


def _alarms_of_receiver(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> Iterable[Affected]:
    """Alarms that tell it something now."""
    return affected(
        "alarms", _alarms_telling(request, ids), "no longer tell it; one that has no other receiver tells nobody"
    )


def _alarms_telling(request: Request, ids: Mapping[str, Any]) -> list[str]:
    organisation = caller_of(request).organisation
    rows = selectors.alarm_list(organisation=organisation, instance_id=ids["instance_id"])
    return sorted(alarm.id for alarm in rows if ids["receiver_id"] in alarm.receivers)


def _set_of(row: Receiver) -> dict[str, Any]:
    """What its ETag is made of. The sealed address is another one each time it is given, and says nothing of it."""
    named = {"name": row.name, "kind": row.kind, "address": row.address}
    return {**named, "sealed": preconditions.secret_etag(row, "sealed_address")}


def _alarms_untold(request: Request, ids: Mapping[str, Any], changed: Collection[str]) -> Iterable[Affected]:
    """Alarms that tell it something now, where it has to be confirmed anew."""
    if "confirmed" not in changed:
        return ()
    names = _alarms_telling(request, ids)
    return affected("alarms", names, "do not tell it until the code that the new address gets was given back")


class ReceiverApi(APIView):
    """/api/v1/instances/{id}/receivers/{receiver_id}."""

    @extend_schema(
        responses={200: ReceiverSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str, receiver_id: str) -> Response:
        """One receiver."""
        caller = caller_of(request)
        row = selectors.receiver_get(organisation=caller.organisation, instance_id=instance_id, receiver_id=receiver_id)
        shown = ReceiverSerializer(row, context={"may_change": caller.may_change_in(ALARMS)}).data
        return preconditions.answer(request, dict(shown), _set_of(row))

    @extend_schema(
        request=ReceiverChangeSerializer, responses=ReceiverSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS
    )
    @dry_runs.rehearsed(touches=_alarms_untold)
    def patch(self, request: Request, instance_id: str, receiver_id: str) -> Response:
        """Another name or address: alarms go on telling it. A webhook keeps its secret; an e-mail address is confirmed anew."""
        body = ReceiverChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = receivers.receiver_update(
            **caller_of(request).place(instance_id),
            receiver_id=receiver_id,
            changes=body.validated_data,
            check=preconditions.check_of(request, _set_of),
        )
        # Without a webhook's path: this answer is kept for whoever repeats the call.
        return preconditions.answer(request, dict(ReceiverSerializer(row).data), _set_of(row))

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed(touches=_alarms_of_receiver)
    def delete(self, request: Request, instance_id: str, receiver_id: str) -> Response:
        """No message goes there any more, those that wait included."""
        check = preconditions.check_of(request, _set_of)
        receivers.receiver_delete(**caller_of(request).place(instance_id), receiver_id=receiver_id, check=check)
        return Response(status=204)


class ReceiverConfirmApi(APIView):
    """/api/v1/instances/{id}/receivers/{receiver_id}/confirm."""

    @extend_schema(request=ReceiverConfirmSerializer, responses=ReceiverSerializer, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(ReceiverApi))
    def post(self, request: Request, instance_id: str, receiver_id: str) -> Response:
        """Give back the code that was sent to an e-mail address: from then on messages go there."""
        body = ReceiverConfirmSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        row = receivers.receiver_confirm(
            **caller_of(request).place(instance_id), receiver_id=receiver_id, **body.validated_data
        )
        # Of a webhook, which needs no code, without the path: this answer is kept for whoever repeats the call.
        return Response(ReceiverSerializer(row).data)


class ReceiverSecretApi(APIView):
    """/api/v1/instances/{id}/receivers/{receiver_id}/secret."""

    @extend_schema(request=None, responses=ReceiverSecretSerializer, tags=TAGS)
    @dry_runs.rehearsed(of=dry_runs.item(ReceiverApi))
    def post(self, request: Request, instance_id: str, receiver_id: str) -> Response:
        """Another secret for a webhook, shown this once. The one before signs as well for a day."""
        row, secret = receivers.receiver_rotate(**caller_of(request).place(instance_id), receiver_id=receiver_id)
        return Response(_with_secret(row, secret), headers=NOT_STORED)


class ReceiverTestApi(APIView):
    """/api/v1/instances/{id}/receivers/{receiver_id}/test."""

    @extend_schema(request=None, responses={202: DeliverySerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, instance_id: str, receiver_id: str) -> Response:
        """Send a test message, or to an address that is not confirmed the code once more. Not more than once in 10 s."""
        row = receivers.receiver_test(**caller_of(request).place(instance_id), receiver_id=receiver_id)
        return Response(DeliverySerializer(row).data, status=202)


class DeliveriesApi(APIView):
    """/api/v1/instances/{id}/receivers/{receiver_id}/messages."""

    @extend_schema(responses=DeliveryPageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request, instance_id: str, receiver_id: str) -> Response:
        """What became of the messages to a receiver, the newest first: attempts, and the last error."""
        rows = selectors.delivery_list(
            organisation=caller_of(request).organisation, instance_id=instance_id, receiver_id=receiver_id
        )
        page, following = pagination.newest_page(request, rows, moment="created_at", key=str)
        return Response(pagination.body(list(DeliverySerializer(page, many=True).data), following))


def _with_secret(row: Receiver, secret: str | None) -> dict[str, Any]:
    return {**ReceiverSerializer(row, context=CHANGES).data, "secret": secret}
