"""REST of budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import BillingPermission, caller_of
from controlplane.api import dry_runs, filters, pagination, preconditions, sorting
from controlplane.budgets import selectors, services
from controlplane.budgets.serializers import (
    BudgetAlertPageSerializer,
    BudgetAlertSerializer,
    BudgetChangeSerializer,
    BudgetCreateSerializer,
    BudgetPageSerializer,
    BudgetSerializer,
    budget_body,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

    from controlplane.budgets.models import Budget

TAGS = ["budgets"]
MEASURED = ("month", "so_far", "forecast", "percent", "forecast_percent", "counted_until")
"""What is shown of a budget that nobody has set."""
SORTED = {name: name for name in ("name", "amount", "created_at")}
"""Where the database has what budgets are sorted by."""
PARAMETERS = [
    filters.text_parameter("prefix", "only budgets whose names begin so"),
    filters.text_parameter("instance_id", "only budgets of this instance"),
    sorting.parameter(SORTED, "created_at"),
    *pagination.PARAMETERS,
]


class BudgetsApi(APIView):
    """/api/v1/budgets."""

    permission_classes = (BillingPermission,)

    @extend_schema(responses=BudgetPageSerializer, parameters=PARAMETERS, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Budgets and how they stand this month, in the order in which they were made unless it is said otherwise."""
        organisation = caller_of(request).organisation
        rows = selectors.budget_list(
            organisation=organisation,
            prefix=filters.text_of(request, "prefix"),
            instance_id=filters.text_of(request, "instance_id"),
        )
        page, following = sorting.rows_page(request, rows, SORTED)
        now = selectors.budgets_now(page, organisation=organisation)
        return Response(pagination.body([budget_body(each) for each in now], following))

    @extend_schema(request=BudgetCreateSerializer, responses={201: BudgetSerializer}, tags=TAGS)
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request) -> Response:
        """What a month may cost, of one instance or of all. Looked at every five minutes. At most 50."""
        body = BudgetCreateSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        budget = services.budget_create(organisation=caller.organisation, actor=caller.actor, **body.validated_data)
        return Response(_shown(request, budget), status=201)


class BudgetApi(APIView):
    """/api/v1/budgets/{budget_id}."""

    permission_classes = (BillingPermission,)

    @extend_schema(
        responses={200: BudgetSerializer, 304: preconditions.KNOWN},
        parameters=[preconditions.SETTINGS_ETAG, preconditions.IF_NONE_MATCH],
        tags=TAGS,
    )
    def get(self, request: Request, budget_id: str) -> Response:
        """One budget and how it stands this month."""
        budget = selectors.budget_get(organisation=caller_of(request).organisation, budget_id=budget_id)
        return _answer(request, budget)

    @extend_schema(
        request=BudgetChangeSerializer, responses=BudgetSerializer, parameters=[preconditions.IF_MATCH], tags=TAGS
    )
    @dry_runs.rehearsed()
    def patch(self, request: Request, budget_id: str) -> Response:
        """Other members. With another amount, thresholds that were alerted this month are alerted anew when they are reached."""
        body = BudgetChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        caller = caller_of(request)
        budget = services.budget_update(
            organisation=caller.organisation,
            actor=caller.actor,
            budget_id=budget_id,
            changes=body.validated_data,
            check=_check(request),
        )
        return _answer(request, budget)

    @extend_schema(responses={204: None}, parameters=[preconditions.IF_MATCH], tags=TAGS)
    @dry_runs.rehearsed()
    def delete(self, request: Request, budget_id: str) -> Response:
        """It is looked at no more, and its history goes."""
        caller = caller_of(request)
        services.budget_delete(
            organisation=caller.organisation, actor=caller.actor, budget_id=budget_id, check=_check(request)
        )
        return Response(status=204)


class BudgetAlertsApi(APIView):
    """/api/v1/budgets/{budget_id}/alerts."""

    @extend_schema(responses=BudgetAlertPageSerializer, parameters=pagination.PARAMETERS, tags=TAGS)
    def get(self, request: Request, budget_id: str) -> Response:
        """Thresholds that were reached, in all months, the newest first."""
        rows = selectors.alert_list(organisation=caller_of(request).organisation, budget_id=budget_id)
        page, following = pagination.newest_page(request, rows, moment="at", key=int)
        return Response(pagination.body(list(BudgetAlertSerializer(page, many=True).data), following))


def _answer(request: Request, budget: Budget) -> Response:
    document = _shown(request, budget)
    return preconditions.answer(request, document, preconditions.without(document, MEASURED))


def _check(request: Request) -> Callable[[Budget], None] | None:
    return preconditions.check_of(request, lambda budget: preconditions.without(_shown(request, budget), MEASURED))


def _shown(request: Request, budget: Budget) -> dict[str, Any]:
    (now,) = selectors.budgets_now([budget], organisation=caller_of(request).organisation)
    return budget_body(now)
