"""REST of statements: a month of the organisation, its invoices and credit notes added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import caller_of
from controlplane.billing.api import MONTH, month_asked
from controlplane.billing.downloads import CSV, PDF, statement_focus_answer, statement_pdf_answer
from controlplane.billing.pricing.money import text_of
from controlplane.billing.statements import statement_get

if TYPE_CHECKING:
    from django.http import HttpResponse
    from rest_framework.request import Request

    from controlplane.billing.exports.statement import Statement

AMOUNT = "decimal in text; negative where more is given back"


class StatedSumSerializer(serializers.Serializer[Any]):
    """What the documents in one currency come to."""

    currency = serializers.CharField()
    net = serializers.CharField(help_text="of the invoices, without tax")
    tax = serializers.CharField(help_text="of the invoices")
    invoiced = serializers.CharField(help_text="net and tax")
    credited = serializers.CharField(help_text="by the credit notes")
    credited_tax = serializers.CharField(help_text="how much of that is tax")
    total = serializers.CharField(help_text=f"invoiced less credited; {AMOUNT}")


class StatedInvoiceSerializer(serializers.Serializer[Any]):
    """One invoice of the month."""

    number = serializers.CharField()
    instance_id = serializers.CharField()
    instance_name = serializers.CharField(help_text="of today")
    currency = serializers.CharField()
    net = serializers.CharField(help_text=AMOUNT)
    tax = serializers.CharField(help_text=AMOUNT)
    total = serializers.CharField(help_text=AMOUNT)
    created_at = serializers.DateTimeField()


class StatedNoteSerializer(serializers.Serializer[Any]):
    """One credit note that was written in the month."""

    number = serializers.CharField()
    invoice = serializers.CharField()
    month = serializers.CharField(help_text="the invoice's, which may be an earlier one")
    instance_id = serializers.CharField()
    currency = serializers.CharField()
    amount = serializers.CharField(help_text="what is given back, above 0")
    tax = serializers.CharField(help_text="how much of that is tax")
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()


class StatementSerializer(serializers.Serializer[Any]):
    """A month of the organisation."""

    month = serializers.CharField()
    complete = serializers.BooleanField(help_text="nothing can come any more")
    to_come = serializers.IntegerField(help_text="invoices that are owed and not written yet, as far as is known")
    may_come = serializers.IntegerField(
        help_text="instances that were gone before, and may bring an invoice that adjusts an earlier month"
    )
    totals = StatedSumSerializer(many=True, help_text="by currency")
    invoices = StatedInvoiceSerializer(many=True)
    credit_notes = StatedNoteSerializer(many=True)


class StatementApi(APIView):
    """/api/v1/statement."""

    @extend_schema(responses=StatementSerializer, parameters=MONTH, tags=["invoices"])
    def get(self, request: Request) -> Response:
        """A month's invoices of all instances, and the credit notes written in it, added up by currency."""
        found = statement_get(organisation=caller_of(request).organisation, month=month_asked(request))
        return Response(_shown(found))


class StatementPdfApi(APIView):
    """/api/v1/statement/pdf."""

    @extend_schema(
        responses={(200, PDF): OpenApiResponse(OpenApiTypes.BINARY, description="sums, and a line for each document")},
        parameters=MONTH,
        tags=["invoices"],
    )
    def get(self, request: Request) -> HttpResponse:
        """The same as a PDF."""
        return statement_pdf_answer(organisation=caller_of(request).organisation, month=month_asked(request))


class StatementFocusApi(APIView):
    """/api/v1/statement/focus.csv."""

    @extend_schema(
        operation_id="statement_focus_get",
        responses={(200, CSV): OpenApiResponse(OpenApiTypes.STR, description="a header and the rows of each document")},
        parameters=MONTH,
        tags=["invoices"],
    )
    def get(self, request: Request) -> HttpResponse:
        """All rows of the month's documents in FOCUS 1.2, as one CSV."""
        return statement_focus_answer(organisation=caller_of(request).organisation, month=month_asked(request))


def _shown(found: Statement) -> dict[str, Any]:
    return {
        "month": found.month,
        "complete": found.is_complete,
        "to_come": found.to_come,
        "may_come": found.may_come,
        "totals": [
            {
                "currency": each.currency,
                "net": text_of(each.net),
                "tax": text_of(each.tax),
                "invoiced": text_of(each.invoiced),
                "credited": text_of(each.credited),
                "credited_tax": text_of(each.credited_tax),
                "total": text_of(each.total),
            }
            for each in found.sums
        ],
        "invoices": [
            {
                "number": each.number,
                "instance_id": each.instance_id,
                "instance_name": each.instance,
                "currency": each.currency,
                "net": text_of(each.net),
                "tax": text_of(each.tax),
                "total": text_of(each.total),
                "created_at": each.issued,
            }
            for each in found.invoices
        ],
        "credit_notes": [
            {
                "number": each.number,
                "invoice": each.invoice,
                "month": each.month,
                "instance_id": each.instance_id,
                "currency": each.currency,
                "amount": text_of(each.amount),
                "tax": text_of(each.amount - each.net),
                "reason": each.reason,
                "created_at": each.issued,
            }
            for each in found.notes
        ],
    }
