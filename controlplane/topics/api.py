"""REST of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.topics import batches, configs, selectors, services
from controlplane.topics.serializers import (
    TopicChangeSerializer,
    TopicConfigsAcceptedSerializer,
    TopicConfigsChangeSerializer,
    TopicConfigsSerializer,
    TopicCreateSerializer,
    TopicListedSerializer,
    TopicNoteSerializer,
    TopicPageSerializer,
    TopicSerializer,
    TopicWhitelistSerializer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

    from controlplane.api.serializers import StrictSerializer

TAGS = ["topics"]
MEASURED = ("partition_details",)
"""What is shown of a topic that its tenant has not set."""
PREFIX = filters.text_parameter("prefix", "only topics whose names begin so")
TAG = filters.text_parameter("tag", "only topics that have this tag")
SORTED: dict[str, Callable[[selectors.TopicView], str | int | None]] = {
    "name": lambda view: view.topic.name,
    "partitions": lambda view: view.topic.partitions,
    "replication_factor": lambda view: view.topic.replication_factor,
    "stored_bytes": lambda view: view.stored_bytes,
}
"""What topics are sorted by."""
SORT = sorting.parameter(SORTED, "name", "By `stored_bytes` the brokers are asked for the size of every topic")


def _asked(request: Request, instance_id: str, topic: str, serializer: type[StrictSerializer]) -> dict[str, Any]:
    """Which topic, and what the body wants of it, as services take it. Raises where the body is refused."""
    body = serializer(data=request.data)
    body.is_valid(raise_exception=True)
    return {"organisation": request.user.organisation, "instance_id": instance_id, "name": topic, **body.validated_data}


def _settings(view: selectors.TopicView) -> dict[str, Any]:
    """With the id that the cluster gave it: one that was made again with this name is another topic."""
    return {**preconditions.without(TopicSerializer(view).data, MEASURED), "topic_id": view.topic.id}


def _compare(request: Request, instance_id: str, topic: str) -> None:
    """Of what brokers keep, where there is no lock to compare behind.

    Raises PreconditionFailed where `If-Match` is of another topic than there is now; NotFound, ClusterUnavailable.
    """
    check = preconditions.check_of(request, _settings)
    if check is not None:
        check(selectors.topic_get(organisation=request.user.organisation, instance_id=instance_id, name=topic))


def _name(view: selectors.TopicView) -> str:
    return view.topic.name


class TopicsApi(APIView):
    """/api/v1/instances/{id}/topics."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(responses=TopicPageSerializer, parameters=[PREFIX, TAG, SORT, *pagination.PARAMETERS], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Topics of the instance by name unless it is said otherwise, as the cluster has them at this moment."""
        order = sorting.order_of(request, SORTED)
        views = selectors.topic_list(
            organisation=request.user.organisation,
            instance_id=instance_id,
            prefix=filters.text_of(request, "prefix"),
            tag=filters.text_of(request, "tag"),
            with_sizes=order is not None and order.field == "stored_bytes",
        )
        if order is None:
            page, following = pagination.items_page(request, views, _name)
        else:
            page, following = sorting.items_page(request, views, order, value=SORTED[order.field], key=_name)
        return Response(pagination.body(TopicListedSerializer(page, many=True).data, following))

    @extend_schema(request=TopicCreateSerializer, responses={200: dry_runs.ANSWER, 201: TopicSerializer}, tags=TAGS)
    def post(self, request: Request, instance_id: str) -> Response:
        """A new topic, ready for use when this answers."""
        body = TopicCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = {"organisation": request.user.organisation, "instance_id": instance_id, **body.validated_data}
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(services.topic_create_check(**asked))
        view = services.topic_create(actor=request.user.actor, **asked)
        return Response(TopicSerializer(view).data, status=201)


class TopicApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}."""

    dry_run_methods: ClassVar = ("PATCH", "DELETE")

    @extend_schema(
        responses={200: TopicSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str, topic: str) -> Response:
        """A topic with each partition's leader, replicas and in-sync replicas.

        Its ETag is of its configuration, partitions, whitelist, note and tags, and of this topic: one that is made again with its
        name has another. Brokers keep no version of a topic: a change of its configuration or partitions with `If-Match`, or its
        deletion, compares right before, and what somebody changes between the two is not seen.
        """
        view = selectors.topic_get(organisation=request.user.organisation, instance_id=instance_id, name=topic)
        return preconditions.answer(request, dict(TopicSerializer(view).data), _settings(view))

    @extend_schema(
        request=TopicChangeSerializer,
        responses=dry_runs.done_or("TopicChanged", TopicSerializer),
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    def patch(self, request: Request, instance_id: str, topic: str) -> Response:
        """More partitions, other config (null takes a member back to its default)."""
        asked = _asked(request, instance_id, topic, TopicChangeSerializer)
        _compare(request, instance_id, topic)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(services.topic_update_check(**asked))
        view = services.topic_update(actor=request.user.actor, **asked)
        return Response(TopicSerializer(view).data)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    def delete(self, request: Request, instance_id: str, topic: str) -> Response:
        """Delete a topic and its data."""
        _compare(request, instance_id, topic)
        asked = {"organisation": request.user.organisation, "instance_id": instance_id, "name": topic}
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(services.topic_delete_check(**asked))
        services.topic_delete(actor=request.user.actor, **asked)
        return Response(status=204)


class TopicWhitelistApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/whitelist."""

    @extend_schema(
        request=TopicWhitelistSerializer, responses=TopicSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS
    )
    @dry_runs.rehearsed(of=dry_runs.item(TopicApi))
    def put(self, request: Request, instance_id: str, topic: str) -> Response:
        """Who may use this topic, among those who may connect; in force within 2 s."""
        body = TopicWhitelistSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        view = services.topic_whitelist_set(
            organisation=request.user.organisation,
            actor=request.user.actor,
            instance_id=instance_id,
            name=topic,
            cidrs=body.validated_data["cidrs"],
            check=preconditions.check_of(request, _settings),
        )
        return Response(TopicSerializer(view).data)


class TopicNoteApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/note."""

    dry_run_methods: ClassVar = ("PATCH",)

    @extend_schema(
        request=TopicNoteSerializer,
        responses=dry_runs.done_or("TopicNoted", TopicSerializer),
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    def patch(self, request: Request, instance_id: str, topic: str) -> Response:
        """Write a note about the topic, or give it tags. They stay with this topic, and end with it."""
        asked = _asked(request, instance_id, topic, TopicNoteSerializer)
        asked["check"] = preconditions.check_of(request, _settings)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(services.topic_note_check(**asked))
        return Response(TopicSerializer(services.topic_note_set(actor=request.user.actor, **asked)).data)


class TopicConfigsApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/configs."""

    @extend_schema(responses=TopicConfigsSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, topic: str) -> Response:
        """Every configuration with its value, its default, where it comes from, and what it does."""
        found = configs.topic_configs(organisation=request.user.organisation, instance_id=instance_id, name=topic)
        return Response(TopicConfigsSerializer({"items": found}).data)


class TopicsConfigsApi(APIView):
    """/api/v1/instances/{id}/topic-configs."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(
        request=TopicConfigsChangeSerializer,
        responses={200: dry_runs.ANSWER, 202: TopicConfigsAcceptedSerializer},
        tags=TAGS,
    )
    def post(self, request: Request, instance_id: str) -> Response:
        """Set or reset the same configurations of many topics. One that is refused is named in the result, and stops no other."""
        body = TopicConfigsChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = {
            "organisation": request.user.organisation,
            "instance_id": instance_id,
            "names": body.validated_data["topics"],
            "config": body.validated_data["config"],
        }
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(batches.topics_configure_check(**asked))
        operation = batches.topics_configure(actor=request.user.actor, **asked)
        return Response({"instance_id": instance_id, "operation_id": operation.id}, status=202)
