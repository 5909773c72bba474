"""REST of consumer groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs, filters, names, pagination, sorting
from controlplane.groups import judging, outlook, selectors, services
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
from controlplane.kafka import group_door

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rest_framework.request import Request

    from controlplane.api.sorting import Order
    from controlplane.groups.earlier import Earlier
    from controlplane.groups.outlook import Foretold
    from controlplane.groups.selectors import GroupView
    from controlplane.kafka.group_door import ListedGroup

TAGS = ["groups"]
STATES = [*group_door.STATES.values(), group_door.UNKNOWN]
"""Of groups that are listed."""
PREFIX = filters.text_parameter("prefix", "only groups whose names begin so")
STATE = filters.choice_parameter("state", STATES, "only groups in this state")
SORTED = ("name", "state", "lag_messages", "lag_seconds")
SORT = sorting.parameter(SORTED, "name", "Lag is as it was in the newest minute of the history")


def _asked(request: Request, instance_id: str, **members: Any) -> dict[str, Any]:
    """What a service and its dry run are told alike."""
    return {"organisation": caller_of(request).organisation, "instance_id": instance_id, **members}


def _refuse_other(request: Request, instance_id: str, group: str, kind: str, rest: str) -> None:
    """Raises Invalid, Conflict where the address may mean another group, whose name is longer. See `api.names`."""
    names.refuse_plain(request, "group", group, after="groups")
    longer = f"{group}/{kind}/{rest}"
    if names.stands_plain(request, after="groups") and judging.exists(**_asked(request, instance_id, name=longer)):
        raise names.ambiguous(group, longer)
    names.refuse_plain(request, kind.removesuffix("s"), rest, after=kind)


def _told(foretold: Foretold) -> Response:
    """What `GET` would say before and afterwards."""
    before, after = _shown(foretold.before), _shown(foretold.after)
    return dry_runs.compared(before, after, problems=foretold.problems, affected=foretold.affected)


def _shown(view: GroupView | None) -> dict[str, Any]:
    return {} if view is None else dict(GroupSerializer(view).data)


def _name(group: ListedGroup) -> str:
    return group.name


def _value_by(order: Order | None, at: Mapping[str, Any]) -> Callable[[ListedGroup], str | int | float | None]:
    """By what a list of groups is sorted. Raises NotFound."""
    if order is None or order.field == "name":
        return _name
    if order.field == "state":
        return lambda group: group.state
    lags: Mapping[str, Earlier] = selectors.group_lags(**at)
    member = order.field.removeprefix("lag_")
    return lambda group: getattr(lags.get(group.name), member, None)


class GroupsApi(APIView):
    """/api/v1/instances/{id}/groups."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(responses=GroupPageSerializer, parameters=[PREFIX, STATE, SORT, *pagination.PARAMETERS], tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """Consumer groups with members and lag by partition, as their coordinators have them at this moment; by default by name.

        Lag in seconds is as it was in the newest minute of the history. A broker that does not answer hides nothing of the
        others: `missing_brokers` names it, and groups that it coordinates are `known: false`, with null for all that is not
        known. A page ends early where it would show more than 10,000 partitions and members.
        """
        organisation, order = caller_of(request).organisation, sorting.order_of(request, SORTED)
        state = filters.choice_of(request, "state", STATES)
        seen = selectors.groups_seen(
            organisation=organisation, instance_id=instance_id, prefix=filters.text_of(request, "prefix")
        )
        found = [group for group in seen.groups if not state or group.state == state]
        value = _value_by(order, _asked(request, instance_id))
        if order is None:
            page, following = pagination.items_page(request, found, _name)
        else:
            page, following = sorting.items_page(request, found, order, value=value, key=_name)
        views = selectors.group_summaries_known(
            organisation=organisation, instance_id=instance_id, names=[group.name for group in page]
        )
        shown = selectors.first_of(views)
        if len(shown) < len(views):
            last = next(group for group in page if group.name == shown[-1].name)
            following = (
                pagination.cursor_after(last.name) if order is None else sorting.cursor(order, value(last), last.name)
            )
        body = pagination.body(list(GroupSummarySerializer(shown, many=True).data), following)
        return Response({**body, "missing_brokers": seen.missing})

    @extend_schema(request=GroupCreateSerializer, responses={200: dry_runs.ANSWER, 201: GroupSerializer}, tags=TAGS)
    def post(self, request: Request, instance_id: str) -> Response:
        """Make a group that has no members yet and begins with what comes to its topics from now on.

        A group without members is there as long as it has offsets, which end a week after they were committed last.
        """
        body = GroupCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller, name = caller_of(request), body.validated_data["name"]
        asked = _asked(request, instance_id, name=name, topic_names=body.validated_data["topics"])
        if dry_runs.is_dry_run(request):
            return _told(outlook.creating(**asked))
        services.group_create(actor=caller.actor, **asked)
        view = selectors.group_get(organisation=caller.organisation, instance_id=instance_id, name=name, paced=False)
        return Response(GroupSerializer(view).data, status=201)


class GroupApi(APIView):
    """/api/v1/instances/{id}/groups/{group}."""

    dry_run_methods: ClassVar = ("DELETE",)

    @extend_schema(responses=GroupSerializer, examples=[GROUP_EXAMPLE], tags=TAGS)
    def get(self, request: Request, instance_id: str, group: str) -> Response:
        """Members, and for each partition what is left to read in records and seconds; rates since an earlier look."""
        organisation = caller_of(request).organisation
        view = selectors.group_get(organisation=organisation, instance_id=instance_id, name=group)
        return Response(GroupSerializer(view).data)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, group: str) -> Response:
        """Delete a group that has no members, with its offsets."""
        asked = _asked(request, instance_id, name=group)
        if dry_runs.is_dry_run(request):
            return _told(outlook.deleting(**asked))
        services.group_delete(actor=caller_of(request).actor, **asked)
        return Response(status=204)


class GroupOffsetsApi(APIView):
    """/api/v1/instances/{id}/groups/{group}/offsets."""

    dry_run_methods: ClassVar = ("POST",)

    @extend_schema(
        request=OffsetsResetSerializer,
        responses=dry_runs.done_or("OffsetsReset", ResetSerializer),
        examples=RESET_EXAMPLES,
        tags=TAGS,
    )
    def post(self, request: Request, instance_id: str, group: str) -> Response:
        """Move the offsets of a group without members, or say what would be read again or skipped.

        `dry_run` of the body only says where offsets would go, while members live as well; `dry_run` of the address is refused as
        the call is, and says what the group would be.
        """
        body = OffsetsResetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        asked = _asked(request, instance_id, name=group, **body.validated_data)
        if dry_runs.is_dry_run(request):
            dry_runs.refuse_preview(asked.pop("dry_run"))
            return _told(outlook.resetting(**asked))
        reset = services.offsets_reset(actor=caller_of(request).actor, **asked)
        return Response(ResetSerializer(reset).data)


class GroupTopicApi(APIView):
    """/api/v1/instances/{id}/groups/{group}/topics/{topic}."""

    dry_run_methods: ClassVar = ("DELETE",)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, group: str, topic: str) -> Response:
        """Delete the offsets of a topic of a group that has no members; with its last ones the group ends, within minutes.

        Where there is a group whose name is the rest of this address, it is 409, `ambiguous_address`.
        """
        _refuse_other(request, instance_id, group, "topics", topic)
        asked = _asked(request, instance_id, name=group, topic=topic)
        if dry_runs.is_dry_run(request):
            return _told(outlook.forgetting(**asked))
        services.topic_forget(actor=caller_of(request).actor, **asked)
        return Response(status=204)


class GroupMemberApi(APIView):
    """/api/v1/instances/{id}/groups/{group}/members/{member}."""

    dry_run_methods: ClassVar = ("DELETE",)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, group: str, member: str) -> Response:
        """Take a member out of the group: its partitions go to the others. A consumer that lives joins again by itself.

        Members of the consumer protocol (KIP-848) leave by themselves alone: 409, `member_not_removable`. Where there is a group
        whose name is the rest of this address, it is 409, `ambiguous_address`.
        """
        _refuse_other(request, instance_id, group, "members", member)
        asked = _asked(request, instance_id, name=group, member_id=member)
        if dry_runs.is_dry_run(request):
            return _told(outlook.removing(**asked))
        services.member_remove(actor=caller_of(request).actor, **asked)
        return Response(status=204)
