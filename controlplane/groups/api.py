"""REST of consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import filters, pagination
from controlplane.groups import selectors, services
from controlplane.groups.serializers import (
    GROUP_EXAMPLE,
    RESET_EXAMPLES,
    GroupCreateSerializer,
    GroupPageSerializer,
    GroupSerializer,
    GroupSummarySerializer,
    OffsetsResetSerializer,
    ResetSerializer,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

TAGS = ["groups"]
PREFIX = filters.text_parameter("prefix", "only groups whose names begin so")


class GroupsApi(APIView):
    """/api/v1/instances/{id}/groups."""

    @extend_schema(responses=GroupPageSerializer, parameters=[PREFIX, *pagination.PARAMETERS], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Consumer groups by name, with members and lag in records, as their coordinators have them at this moment."""
        organisation = caller_of(request).organisation
        listed = selectors.group_names(
            organisation=organisation, instance_id=instance_id, prefix=filters.text_of(request, "prefix")
        )
        page, following = pagination.items_page(request, listed, lambda group: group.name)
        names = [group.name for group in page]
        views = selectors.group_summaries(organisation=organisation, instance_id=instance_id, names=names)
        return Response(pagination.body(list(GroupSummarySerializer(views, many=True).data), following))

    @extend_schema(request=GroupCreateSerializer, responses={201: GroupSerializer}, tags=TAGS)
    def post(self, request: Request, instance_id: str) -> Response:
        """Make a group that has no members yet and begins with what comes to its topics from now on.

        A group without members is there as long as it has offsets, which end a week after they were committed last.
        """
        body = GroupCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller, name = caller_of(request), body.validated_data["name"]
        services.group_create(**caller.place(instance_id), name=name, topic_names=body.validated_data["topics"])
        view = selectors.group_get(organisation=caller.organisation, instance_id=instance_id, name=name, paced=False)
        return Response(GroupSerializer(view).data, status=201)


class GroupApi(APIView):
    """/api/v1/instances/{id}/groups/{group}."""

    @extend_schema(responses=GroupSerializer, examples=[GROUP_EXAMPLE], tags=TAGS)
    def get(self, request: Request, instance_id: str, group: str) -> Response:
        """Members, and for each partition what is left to read in records and seconds; rates since an earlier look."""
        organisation = caller_of(request).organisation
        view = selectors.group_get(organisation=organisation, instance_id=instance_id, name=group)
        return Response(GroupSerializer(view).data)

    @extend_schema(responses={204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, group: str) -> Response:
        """Delete a group that has no members, with its offsets."""
        caller = caller_of(request)
        services.group_delete(organisation=caller.organisation, actor=caller.actor, instance_id=instance_id, name=group)
        return Response(status=204)


class GroupOffsetsApi(APIView):
    """/api/v1/instances/{id}/groups/{group}/offsets."""

    @extend_schema(request=OffsetsResetSerializer, responses=ResetSerializer, examples=RESET_EXAMPLES, tags=TAGS)
    def post(self, request: Request, instance_id: str, group: str) -> Response:
        """Move the offsets of a group without members, or say (dry_run) what would be read again or skipped."""
        body = OffsetsResetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        reset = services.offsets_reset(
            organisation=caller.organisation,
            actor=caller.actor,
            instance_id=instance_id,
            name=group,
            **body.validated_data,
        )
        return Response(ResetSerializer(reset).data)


class GroupTopicApi(APIView):
    """/api/v1/instances/{id}/groups/{group}/topics/{topic}."""

    @extend_schema(responses={204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, group: str, topic: str) -> Response:
        """Delete the offsets of a topic of a group that has no members; with its last ones the group ends."""
        services.topic_forget(**caller_of(request).place(instance_id), name=group, topic=topic)
        return Response(status=204)


class GroupMemberApi(APIView):
    """/api/v1/instances/{id}/groups/{group}/members/{member}."""

    @extend_schema(responses={204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, group: str, member: str) -> Response:
        """Take a member out of the group: its partitions go to the others. A consumer that lives joins again by itself."""
        caller = caller_of(request)
        services.member_remove(
            organisation=caller.organisation,
            actor=caller.actor,
            instance_id=instance_id,
            name=group,
            member_id=member,
        )
        return Response(status=204)
