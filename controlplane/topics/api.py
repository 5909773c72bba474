"""REST of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.api import dry_runs, filters, pagination
from controlplane.topics import batches, configs, selectors, services
from controlplane.topics.serializers import (
    TopicChangeSerializer,
    TopicConfigsAcceptedSerializer,
    TopicConfigsChangeSerializer,
    TopicConfigsSerializer,
    TopicCreateSerializer,
    TopicNoteSerializer,
    TopicPageSerializer,
    TopicSerializer,
    TopicSummarySerializer,
    TopicWhitelistSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

    from controlplane.api.serializers import StrictSerializer

TAGS = ["topics"]
PREFIX = filters.text_parameter("prefix", "only topics whose names begin so")
TAG = filters.text_parameter("tag", "only topics that have this tag")


def _asked(request: Request, instance_id: str, topic: str, serializer: type[StrictSerializer]) -> dict[str, Any]:
    """Which topic, and what the body wants of it, as services take it. Raises where the body is refused."""
    body = serializer(data=request.data)
    body.is_valid(raise_exception=True)
    return {"organisation": request.user.organisation, "instance_id": instance_id, "name": topic, **body.validated_data}


class TopicsApi(APIView):
    """/api/v1/instances/{id}/topics."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(responses=TopicPageSerializer, parameters=[PREFIX, TAG, *pagination.PARAMETERS], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Topics of the instance by name, as the cluster has them at this moment."""
        views = selectors.topic_list(
            organisation=request.user.organisation,
            instance_id=instance_id,
            prefix=filters.text_of(request, "prefix"),
            tag=filters.text_of(request, "tag"),
        )
        page, following = pagination.items_page(request, views, lambda view: view.topic.name)
        return Response(pagination.body(TopicSummarySerializer(page, many=True).data, following))

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

    @extend_schema(responses=TopicSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, topic: str) -> Response:
        """A topic with each partition's leader, replicas and in-sync replicas.

        It has no ETag: brokers keep no version of a topic that a change could be compared with.
        """
        view = selectors.topic_get(organisation=request.user.organisation, instance_id=instance_id, name=topic)
        return Response(TopicSerializer(view).data)

    @extend_schema(
        request=TopicChangeSerializer,
        responses=dry_runs.done_or("TopicChanged", TopicSerializer),
        tags=TAGS,
    )
    def patch(self, request: Request, instance_id: str, topic: str) -> Response:
        """More partitions, other config (null takes a member back to its default)."""
        asked = _asked(request, instance_id, topic, TopicChangeSerializer)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(services.topic_update_check(**asked))
        view = services.topic_update(actor=request.user.actor, **asked)
        return Response(TopicSerializer(view).data)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, topic: str) -> Response:
        """Delete a topic and its data."""
        asked = {"organisation": request.user.organisation, "instance_id": instance_id, "name": topic}
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(services.topic_delete_check(**asked))
        services.topic_delete(actor=request.user.actor, **asked)
        return Response(status=204)


class TopicWhitelistApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/whitelist."""

    @extend_schema(request=TopicWhitelistSerializer, responses=TopicSerializer, tags=TAGS)
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
        )
        return Response(TopicSerializer(view).data)


class TopicNoteApi(APIView):
    """/api/v1/instances/{id}/topics/{topic}/note."""

    dry_run_methods: ClassVar = ("PATCH",)

    @extend_schema(
        request=TopicNoteSerializer,
        responses=dry_runs.done_or("TopicNoted", TopicSerializer),
        tags=TAGS,
    )
    def patch(self, request: Request, instance_id: str, topic: str) -> Response:
        """Write a note about the topic, or give it tags. They stay with this topic, and end with it."""
        asked = _asked(request, instance_id, topic, TopicNoteSerializer)
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
