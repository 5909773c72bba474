"""REST of policies."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs, preconditions
from controlplane.policies import outlook, services
from controlplane.policies.selectors import disk_get
from controlplane.policies.serializers import (
    DiskPolicySerializer,
    DiskPolicySetSerializer,
    PoliciesSerializer,
    disk_body,
    rule_of,
)

if TYPE_CHECKING:
    from rest_framework.request import Request

TAGS = ["policies"]


class PoliciesApi(APIView):
    """/api/v1/instances/{id}/policies."""

    @extend_schema(
        responses={200: PoliciesSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """What the instance does by itself, and how that stands: topics whose retention is shortened, why it could not act."""
        view = disk_get(organisation=caller_of(request).organisation, instance_id=instance_id)
        return preconditions.answer(request, {"disk": disk_body(view)}, asdict(view.rule))


class DiskPolicyApi(APIView):
    """/api/v1/instances/{id}/policies/disk."""

    dry_run_methods: ClassVar = ("PUT",)

    @extend_schema(
        request=DiskPolicySetSerializer,
        responses=dry_runs.done_or("DiskPolicyChanged", DiskPolicySerializer),
        parameters=[preconditions.IF_MATCH],
        tags=TAGS,
    )
    def put(self, request: Request, instance_id: str) -> Response:
        """What is done when the disk fills up: shorten retention, buy storage, or nothing. Looked at once a minute.

        With `dry_run` it says which groups would lose unread records, or up to which price storage would be bought. Retention
        that was shortened is put back where the new policy does not shorten, or not so far. `If-Match` takes the ETag of
        GET …/policies.
        """
        body = DiskPolicySetSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        asked: dict[str, Any] = {
            "organisation": caller.organisation,
            "actor": caller.actor,
            "instance_id": instance_id,
            "wanted": rule_of(body.validated_data),
            "confirm_price": body.validated_data["confirm_price"],
            "admit_paying": caller.limits.admit_paying,
        }
        check_rule = preconditions.check_of(request, asdict)
        if check_rule is not None:
            check_rule(disk_get(organisation=caller.organisation, instance_id=instance_id).rule)
        if dry_runs.is_dry_run(request):
            return dry_runs.answer(outlook.setting(**asked))
        services.policy_set(**asked, check_rule=check_rule)
        return Response(disk_body(disk_get(organisation=caller.organisation, instance_id=instance_id)))
