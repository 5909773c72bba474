"""REST of transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.api import dry_runs, filters, pagination, sorting
from controlplane.transactions import outlook, selectors, services
from controlplane.transactions.serializers import (
    HangingQuerySerializer,
    HangingTransactionPageSerializer,
    HangingTransactionSerializer,
    TransactionPageSerializer,
    TransactionQuerySerializer,
    TransactionSerializer,
    TransactionSummarySerializer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rest_framework.request import Request

TAGS = ["transactions"]
SORTED: Mapping[str, Callable[[str], str]] = {"transactional_id": str}
"""Of all of them ids alone are known: states and times are asked for those on the page."""


class TransactionsApi(APIView):
    """/api/v1/instances/{id}/transactions."""

    @extend_schema(
        responses=TransactionPageSerializer,
        parameters=[
            TransactionQuerySerializer,
            sorting.parameter(SORTED, "transactional_id"),
            *pagination.PARAMETERS,
        ],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """Transactional ids by name, as their coordinators have them at this moment."""
        query = filters.query_of(request, TransactionQuerySerializer)
        organisation = caller_of(request).organisation
        listed = selectors.transactional_ids(organisation=organisation, instance_id=instance_id, **query)
        page, following = sorting.known_page(request, listed, SORTED, str)
        views = selectors.transaction_summaries(
            organisation=organisation, instance_id=instance_id, transactional_ids=page
        )
        return Response(pagination.body(list(TransactionSummarySerializer(views, many=True).data), following))


class TransactionApi(APIView):
    """/api/v1/instances/{id}/transactions/{transactional_id}."""

    dry_run_methods: ClassVar = ("DELETE",)

    @extend_schema(responses=TransactionSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str, transactional_id: str) -> Response:
        """State, producer, and for each partition where the transaction begins and whether readers wait for it."""
        organisation = caller_of(request).organisation
        view = selectors.transaction_get(
            organisation=organisation, instance_id=instance_id, transactional_id=transactional_id
        )
        return Response(TransactionSerializer(view).data)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, transactional_id: str) -> Response:
        """Abort the open transaction. Its producer is fenced: it has to begin anew, and what it has written is not read."""
        caller = caller_of(request)
        asked = {
            "organisation": caller.organisation,
            "instance_id": instance_id,
            "transactional_id": transactional_id,
        }
        if dry_runs.is_dry_run(request):
            found = outlook.ending(**asked)
            before, after = (TransactionSerializer(view).data for view in (found.before, found.after))
            return dry_runs.compared(before, after, problems=found.problems, affected=found.affected)
        services.transaction_end(actor=caller.actor, **asked)
        return Response(status=204)


class HangingTransactionsApi(APIView):
    """/api/v1/instances/{id}/hanging-transactions."""

    @extend_schema(
        responses=HangingTransactionPageSerializer,
        parameters=[HangingQuerySerializer, *pagination.PARAMETERS],
        tags=TAGS,
    )
    def get(self, request: Request, instance_id: str) -> Response:
        """Transactions that no coordinator knows, looked for in all partitions: readers at read_committed stand still at them."""
        query = filters.query_of(request, HangingQuerySerializer)
        seen = selectors.hanging_transactions(
            organisation=caller_of(request).organisation, instance_id=instance_id, **query
        )
        page, following = pagination.items_page(request, seen.found, lambda view: view.key)
        body = pagination.body(list(HangingTransactionSerializer(page, many=True).data), following)
        return Response({**body, "unknown_partitions": seen.unknown_partitions})


class HangingTransactionApi(APIView):
    """/api/v1/instances/{id}/hanging-transactions/{topic}/{partition}/{offset}."""

    dry_run_methods: ClassVar = ("DELETE",)

    @extend_schema(responses={200: dry_runs.ANSWER, 204: None}, tags=TAGS)
    def delete(self, request: Request, instance_id: str, topic: str, partition: int, offset: int) -> Response:
        """Abort the one that begins at this offset of the partition: readers at read_committed pass over what it wrote."""
        caller = caller_of(request)
        place = {"topic": topic, "partition": partition, "offset": offset}
        if dry_runs.is_dry_run(request):
            found = outlook.ending_hanging(organisation=caller.organisation, instance_id=instance_id, **place)
            before = HangingTransactionSerializer(found.before).data
            return dry_runs.compared(before, {}, problems=found.problems, affected=found.affected)
        services.hanging_transaction_end(**caller.place(instance_id), **place)
        return Response(status=204)
