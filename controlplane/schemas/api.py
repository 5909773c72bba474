"""REST of schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs
from controlplane.schemas import selectors, services
from controlplane.schemas.decoding import Part, Schema
from controlplane.schemas.serializers import (
    MessageSchemaSerializer,
    MessageSchemaSetSerializer,
    MessageSchemasSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

TAGS = ["messages"]


class MessageSchemasApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/schemas."""

    @extend_schema(responses=MessageSchemasSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, topic: str) -> Response:
        """The schemas by which keys and values of the topic's messages are shown as JSON, if it has any."""
        organisation = caller_of(request).organisation
        found = selectors.schema_list(organisation=organisation, instance_id=instance_id, topic=topic)
        return Response(MessageSchemasSerializer({"items": found}).data)


class MessageSchemaApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/schemas/{part}."""

    dry_run_methods: ClassVar = ("PUT", "DELETE")

    @extend_schema(
        request=MessageSchemaSetSerializer,
        responses=dry_runs.done_or("MessageSchemaSet", MessageSchemaSerializer),
        tags=TAGS,
    )
    def put(self, request: Request, instance_id: str, topic: str, part: str) -> Response:
        """Give the keys or the values a schema, in Avro or Protobuf: messages are shown as JSON by it from now on.

        It is kept here and asked of no registry; nothing that clients do changes, and what does not fit it is shown as bytes. A
        topic that is deleted takes its schemas with it.
        """
        body = MessageSchemaSetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = {"topic": topic, "part": Part(part), "schema": Schema.of(body.validated_data)}
        caller = caller_of(request)
        if dry_runs.is_dry_run(request):
            outlook = services.schema_set_check(organisation=caller.organisation, instance_id=instance_id, **asked)
            return dry_runs.answer(outlook)
        view = services.schema_set(**caller.place(instance_id), **asked)
        return Response(MessageSchemaSerializer(view).data)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, topic: str, part: str) -> Response:
        """Keys or values are shown as bytes again."""
        caller, asked = caller_of(request), {"topic": topic, "part": Part(part)}
        if dry_runs.is_dry_run(request):
            outlook = services.schema_delete_check(organisation=caller.organisation, instance_id=instance_id, **asked)
            return dry_runs.answer(outlook)
        services.schema_delete(**caller.place(instance_id), **asked)
        return Response(status=204)
