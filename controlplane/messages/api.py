"""REST of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.accounts.scopes import TOPICS
from controlplane.api import dry_runs, filters
from controlplane.messages import cursors, cutting, downloads, outlook, selectors, services
from controlplane.messages.serializers import (
    MESSAGES_EXAMPLE,
    MessageProduceSerializer,
    MessagesAskedSerializer,
    MessageSerializer,
    MessagesPageSerializer,
    RecordsDeletedSerializer,
    RecordsDeleteSerializer,
)

if TYPE_CHECKING:
    from django.http import HttpResponse
    from rest_framework.request import Request

    from controlplane.messages.selectors import MessagesPage

TAGS = ["messages"]
COUNT = "Message-Count"
"""The header that says how many messages a file holds: in CSV lines do not."""
_FILE = OpenApiResponse(OpenApiTypes.STR, description="of `file`: the page's messages, whole")
_OF_FILES = [
    OpenApiParameter(
        COUNT,
        OpenApiTypes.INT,
        OpenApiParameter.HEADER,
        response=[200],
        description="of a `file`: how many messages are in it",
    ),
    OpenApiParameter(
        "Link",
        OpenApiTypes.STR,
        OpenApiParameter.HEADER,
        response=[200],
        description='of a `file`: where the next one is, as `<address>; rel="next"`; left out: there is nothing more now',
    ),
]
_ROW = (
    (
        '{"partition": 0, "offset": 7, "timestamp_ms": 1783300000000, "key": "o-7", "key_encoding": "utf-8", '
        '"key_decoded": null, "value": "paid", "value_encoding": "utf-8", "value_decoded": null, "headers": [], '
        '"cut": false, "source": "topic"}\n'
    ),
    f"{','.join(downloads.COLUMNS)}\n0,7,1783300000000,o-7,utf-8,,paid,utf-8,,,False,topic\n",
)
_FILE_EXAMPLES = [
    OpenApiExample("A file", row, response_only=True, media_type=kind)
    for kind, row in zip(("application/x-ndjson", "text/csv"), _ROW, strict=True)
]


class MessagesApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/messages."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(
        responses={
            (200, "application/json"): MessagesPageSerializer,
            (200, "application/x-ndjson"): _FILE,
            (200, "text/csv"): _FILE,
        },
        parameters=[MessagesAskedSerializer, *_OF_FILES],
        examples=[MESSAGES_EXAMPLE, *_FILE_EXAMPLES],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str, topic: str) -> Response | HttpResponse:
        """Messages of a partition or of all, from the newest, the oldest, an offset or a time, by key or text.

        One call looks at a bounded number of records: with a filter a page may hold few messages or none and still have a
        `next`, which goes on where this one has stopped. A page holds 1 MiB of keys, values and headers; what is larger is
        cut, and can be read whole by its offset. What is read counts as consumed by the instance. Viewers are shown where
        messages are and how large, and nothing of what stands in them.

        With `file` the page is JSON lines or CSV, and nothing in it is cut: it ends after 8 MiB of what was looked at, with a
        message that may be larger than what is left of them. `Link` leads to the next one.

        A look that begins at an offset below the first one of its partition is answered from the table of a load of this topic,
        if one has it, and goes on in the topic where the table reaches it. That counts as consumed by nobody. A table that cannot
        be read now is 503, `lake_unavailable`.
        """
        asked = filters.query_of(request, MessagesAskedSerializer)
        caller = caller_of(request)
        page = selectors.messages_page(
            organisation=caller.organisation,
            instance_id=instance_id,
            topic=topic,
            wanted=MessagesAskedSerializer.wanted(asked),
            may_read=caller.may_read_messages,
            or_lake=True,
            whole="file" in asked,
        )
        return (
            _file(request, page, topic, asked["file"])
            if "file" in asked
            else Response(MessagesPageSerializer(page).data)
        )

    @extend_schema(
        request=MessageProduceSerializer, responses={200: dry_runs.ANSWER, 201: MessageSerializer}, tags=TAGS
    )
    def post(self, request: Request, instance_id: str, topic: str) -> Response:
        """Write one message, acknowledged by all in-sync replicas. It counts as produced by the instance.

        A 503 does not say whether it was written. A dry run sends nothing: it says where the message would stand if nobody else
        wrote first, and how large it is, and is refused where the topic's configuration, its replicas or full storage refuse the
        message. Which partition would be chosen, where none is named, is not foretold.
        """
        body = MessageProduceSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        if dry_runs.is_dry_run(request):
            found = outlook.producing(
                organisation=caller.organisation, instance_id=instance_id, topic=topic, **body.validated_data
            )
            return dry_runs.compared({}, found.document, problems=found.problems)
        written = services.message_produce(**caller.place(instance_id), topic=topic, **body.validated_data)
        return Response(MessageSerializer(cutting.whole(written)).data, status=201)


def _file(request: Request, page: MessagesPage, topic: str, form: str) -> HttpResponse:
    answer = downloads.file_of(page.messages, topic, form)
    answer[COUNT] = str(len(page.messages))
    if page.following is not None:
        query = request.query_params.copy()
        query["cursor"] = cursors.text_of(page.following)
        answer["Link"] = f'<{request.path}?{query.urlencode()}>; rel="next"'
    return answer


class MessageApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/messages/{partition}/{offset}."""

    @extend_schema(responses=MessageSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, topic: str, partition: int, offset: int) -> Response:
        """One message, whole; of one that has expired what a load's table has."""
        caller = caller_of(request)
        shown = selectors.message_get(
            organisation=caller.organisation,
            instance_id=instance_id,
            topic=topic,
            partition=partition,
            offset=offset,
            may_read=caller.may_read_messages,
            or_lake=True,
        )
        return Response(MessageSerializer(shown).data)


class RecordsDeletionApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/delete-records."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(
        request=RecordsDeleteSerializer,
        responses=dry_runs.done_or("RecordsDeletion", RecordsDeletedSerializer),
        tags=TAGS,
    )
    def post(self, request: Request, instance_id: str, topic: str) -> Response:
        """Delete the records before an offset of each partition named, for good. For owners.

        `dry_run` of the body only says how many records would go; `dry_run` of the address says what would be left as well, in
        records and bytes, and which groups have not read what would go.
        """
        body = RecordsDeleteSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        if dry_runs.is_dry_run(request):
            dry_runs.refuse_preview(body.validated_data.get("dry_run", False))
            told = outlook.deleting(
                organisation=caller.organisation,
                instance_id=instance_id,
                topic=topic,
                before=body.validated_data["before"],
                is_owner=caller.may_manage,
                may_name_groups=caller.limits.covers(TOPICS, changes=False),
            )
            return dry_runs.compared(told.before, told.after, problems=told.problems, affected=told.affected)
        found = services.records_delete(
            **caller.place(instance_id), topic=topic, is_owner=caller.may_manage, **body.validated_data
        )
        return Response(RecordsDeletedSerializer({"partitions": found}).data)
