"""REST of bills."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, cast
from urllib.parse import urlencode

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import (
    LookingPermission,
    OperatorPermission,
    caller_of,
    list_note,
    organisation_asked,
    told_if_refused,
)
from controlplane.api import dry_runs, filters, idempotency_keys, pagination, sorting
from controlplane.billing import costs, selectors, services
from controlplane.billing.chain import number_text
from controlplane.billing.crediting import credit_note_write
from controlplane.billing.downloads import (
    CSV,
    PDF,
    focus_answer,
    note_focus_answer,
    note_pdf_answer,
    pdf_answer,
)
from controlplane.billing.pricing import documents
from controlplane.billing.pricing.money import text_of, total_of
from controlplane.billing.pricing.plans import NAMES, Plan
from controlplane.billing.pricing.rating import Month
from controlplane.billing.pricing.sharing import user_kind
from controlplane.billing.serializers import (
    BillSerializer,
    CostSerializer,
    CreditNotePageSerializer,
    CreditNoteRequestSerializer,
    CreditNoteSerializer,
    InvoiceCreditSerializer,
    InvoiceLinesSerializer,
    InvoicePageSerializer,
    MonthCostPageSerializer,
    MonthCostSerializer,
    OrganisationCostSerializer,
    RawComparedSerializer,
    TaxPageSerializer,
    TaxSerializer,
    TopicCostsSerializer,
    UserCostsSerializer,
    VerificationSerializer,
    WaitingMonthPageSerializer,
    WaitingMonthSerializer,
    WaiverPageSerializer,
    WaiverRequestSerializer,
    WaiverSerializer,
)
from controlplane.billing.verification import invoice_raw, invoice_verify
from controlplane.billing.waiting import reasons_by_cluster, waiting, waiting_for_broker, waived_by
from controlplane.clusters.services import cluster_named
from controlplane.core.clock import SYSTEM_CLOCK
from controlplane.core.dry_runs import affected
from controlplane.core.errors import Invalid, NotFound
from controlplane.metering.selectors import SECONDS_PER_HOUR
from controlplane.metering.serializers import BrokerWaiverRequestSerializer, BrokerWaiverSerializer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import HttpResponse
    from rest_framework.request import Request

    from controlplane.billing.models import CreditNote, Invoice, MeteringWaiver, MonthCost, TaxRate
    from controlplane.billing.pricing.credited_taxes import CreditedTax
    from controlplane.billing.pricing.rating import Used
    from controlplane.billing.pricing.sharing import Part, Shares, UserUsed
    from controlplane.billing.selectors import Bill
    from controlplane.core.dry_runs import Affected
    from controlplane.instances.models import Instance

PARAMETERS = [
    OpenApiParameter("month", OpenApiTypes.STR, description="YYYY-MM, UTC; default: the present one"),
    OpenApiParameter("plan", OpenApiTypes.STR, enum=list(NAMES), description="what it would be under another plan"),
]

MONTH = PARAMETERS[:1]
MOST_PARTS, DEFAULT_PARTS = 1000, 100


def _most_of(what: str) -> OpenApiParameter:
    return OpenApiParameter(
        "most",
        {"type": "integer", "minimum": 1, "maximum": MOST_PARTS},
        description=f"so many {what}, 1 to {MOST_PARTS}; default {DEFAULT_PARTS}. The rest is summed up",
    )


class BillApi(APIView):
    """/api/v1/instances/{id}/bill."""

    @extend_schema(responses=BillSerializer, parameters=PARAMETERS, tags=["bill"])
    def get(self, request: Request, instance_id: str) -> Response:
        """The bill of a month: so far, or as invoiced. It can be had after the instance is deleted, too."""
        bill = selectors.bill_get(
            organisation=caller_of(request).organisation,
            instance_id=instance_id,
            month=month_asked(request),
            plan=request.query_params.get("plan"),
        )
        return Response(_shown(bill))


class CostApi(APIView):
    """/api/v1/instances/{id}/cost."""

    @extend_schema(responses=CostSerializer, parameters=MONTH, tags=["costs"])
    def get(self, request: Request, instance_id: str) -> Response:
        """What a month has cost so far, and what it will have cost at its end by the use of the last seven days."""
        cost = costs.cost_get(
            organisation=caller_of(request).organisation, instance_id=instance_id, month=month_asked(request)
        )
        return Response(_cost(cost))


class TopicCostsApi(APIView):
    """/api/v1/instances/{id}/cost/topics."""

    @extend_schema(responses=TopicCostsSerializer, parameters=[*MONTH, _most_of("topics")], tags=["costs"])
    def get(self, request: Request, instance_id: str) -> Response:
        """A month's bill, so far or invoiced, by topic: parts that add up to it, to the cent."""
        most = _most_asked(request)
        bill, shares = costs.topic_costs_get(
            organisation=caller_of(request).organisation, instance_id=instance_id, month=month_asked(request)
        )
        return Response(
            _shares(bill, shares, "topics", most) | {"topics": [_topic(each) for each in shares.parts[:most]]}
        )


class UserCostsApi(APIView):
    """/api/v1/instances/{id}/cost/users."""

    @extend_schema(responses=UserCostsSerializer, parameters=[*MONTH, _most_of("users")], tags=["costs"])
    def get(self, request: Request, instance_id: str) -> Response:
        """A month's bill, so far or invoiced, by user: parts that add up to it, to the cent."""
        most = _most_asked(request)
        bill, shares = costs.user_costs_get(
            organisation=caller_of(request).organisation, instance_id=instance_id, month=month_asked(request)
        )
        return Response(_shares(bill, shares, "users", most) | {"users": [_user(each) for each in shares.parts[:most]]})


class OrganisationCostApi(APIView):
    """/api/v1/cost."""

    @extend_schema(responses=OrganisationCostSerializer, parameters=MONTH, tags=["costs"])
    def get(self, request: Request) -> Response:
        """What a month of all instances has cost so far, and will have cost at its end."""
        found = costs.organisation_cost_get(organisation=caller_of(request).organisation, month=month_asked(request))
        return Response(
            {
                "month": str(found.month),
                "totals": [
                    {
                        "currency": each.currency,
                        "so_far": text_of(each.so_far),
                        "forecast": text_of(each.forecast),
                        "instances": each.instances,
                    }
                    for each in found.totals
                ],
                "computed_at": found.computed_at,
                "counted_until": found.counted_until,
                "missing": found.missing,
            }
        )


COSTS_SORTED = {
    "instance_id": "instance_id",
    "name": "instance__name",
    "so_far": "so_far",
    "forecast": "forecast",
    "counted_until": "counted_until",
}
"""Where the database has what costs by instance are sorted by."""


def _by_instance(request: Request, rows: QuerySet[MonthCost]) -> tuple[list[MonthCost], str | None]:
    def fetch(after: Any, limit: int) -> list[MonthCost]:
        found = rows.order_by("instance_id")
        return list(found.filter(instance_id__gt=after[0])[:limit] if after else found[:limit])

    return pagination.fetched_page(request, fetch, key=lambda row: (row.instance_id,), shape=(str,))


class InstanceCostsApi(APIView):
    """/api/v1/cost/instances."""

    @extend_schema(
        operation_id="cost_instances_list",
        responses=MonthCostPageSerializer,
        parameters=[
            *MONTH,
            sorting.parameter(COSTS_SORTED, "instance_id", "Amounts as they stand, in whatever currency"),
            *pagination.PARAMETERS,
        ],
        tags=["costs"],
    )
    def get(self, request: Request) -> Response:
        """The same by instance, by their ids unless it is said otherwise."""
        month = month_asked(request)
        rows = costs.cost_list(organisation=caller_of(request).organisation, month=month).select_related("instance")
        page, following = sorting.rows_page(request, rows, COSTS_SORTED, key=int, default=_by_instance)
        return Response(pagination.body(list(MonthCostSerializer(page, many=True).data), following))


INVOICES_SORTED = {name: name for name in ("number", "month", "total", "created_at")}
"""Where the database has what invoices are sorted by."""
INVOICE_PARAMETERS = [
    OpenApiParameter(
        "month",
        {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"},
        description="only invoices of this month: YYYY-MM",
    ),
    filters.text_parameter("instance_id", "only invoices of this instance"),
    sorting.parameter(INVOICES_SORTED, "number"),
    *pagination.PARAMETERS,
]


def _by_number(request: Request, invoices: QuerySet[Invoice]) -> tuple[list[Invoice], str | None]:
    def fetch(after: Any, limit: int) -> list[Invoice]:
        rows = invoices.order_by("number")
        return list(rows.filter(number__gt=after[0])[:limit] if after else rows[:limit])

    return pagination.fetched_page(request, fetch, key=lambda invoice: (invoice.number,), shape=(int,))


class InvoicesApi(APIView):
    """/api/v1/invoices."""

    @extend_schema(responses=InvoicePageSerializer, parameters=INVOICE_PARAMETERS, tags=["invoices"])
    def get(self, request: Request) -> Response:
        """The organisation's invoices, by number unless it is said otherwise."""
        month = str(month_asked(request)) if "month" in request.query_params else ""
        rows = selectors.invoice_list(
            organisation=caller_of(request).organisation,
            month=month,
            instance_id=filters.text_of(request, "instance_id"),
        )
        rows = rows.defer("inputs", "lines")
        page, following = sorting.rows_page(request, rows, INVOICES_SORTED, key=int, default=_by_number)
        notes = selectors.credit_notes_of(page)
        return Response(pagination.body([_invoice(invoice, notes[invoice.pk]) for invoice in page], following))


class InvoiceApi(APIView):
    """/api/v1/invoices/{number}."""

    @extend_schema(responses=InvoiceLinesSerializer, tags=["invoices"])
    def get(self, request: Request, number: str) -> Response:
        """One invoice with its lines."""
        invoice = selectors.invoice_get(organisation=caller_of(request).organisation, number=number)
        plan = documents.terms_in(invoice.inputs)[-1].plan
        lines = [_line(invoice.instance_id, plan, line) for line in invoice.lines]
        notes = selectors.credit_notes_of([invoice])[invoice.pk]
        return Response({**_invoice(invoice, notes), "lines": lines, "input_hash": invoice.input_hash})


class InvoicePdfApi(APIView):
    """/api/v1/invoices/{number}/pdf."""

    @extend_schema(
        responses={
            (200, PDF): OpenApiResponse(OpenApiTypes.BINARY, description="one invoice, on as many pages as it needs")
        },
        tags=["invoices"],
    )
    def get(self, request: Request, number: str) -> HttpResponse:
        """One invoice as a PDF."""
        return pdf_answer(organisation=caller_of(request).organisation, number=number)


class InvoiceFocusApi(APIView):
    """/api/v1/invoices/{number}/focus.csv."""

    @extend_schema(
        operation_id="invoices_focus_get",
        responses={(200, CSV): OpenApiResponse(OpenApiTypes.STR, description="a header and a row for each line")},
        tags=["invoices"],
    )
    def get(self, request: Request, number: str) -> HttpResponse:
        """One invoice in FOCUS 1.2, the FinOps Open Cost and Usage Specification: each line a row of CSV."""
        return focus_answer(organisation=caller_of(request).organisation, number=number)


class InvoiceVerifyApi(APIView):
    """/api/v1/invoices/{number}/verify."""

    permission_classes = (LookingPermission,)

    @extend_schema(request=None, responses=VerificationSerializer, tags=["invoices"])
    def post(self, request: Request, number: str) -> Response:
        """Compute an invoice once more, from what was sealed and from today's usage. It changes nothing.

        `raw` is what the daily job that recomputes usage from the raw records has found of the month's days.
        """
        invoice = selectors.invoice_get(organisation=caller_of(request).organisation, number=number)
        found, raw = invoice_verify(invoice=invoice), invoice_raw(invoice=invoice)
        return Response(
            {
                "equal": not found and not raw.differences,
                "differences": [difference.document() for difference in found],
                "raw": RawComparedSerializer(raw).data,
            }
        )


NOTES_SORTED = {
    "number": "number",
    "invoice": "invoice__number",
    "month": "invoice__month",
    "amount": "amount",
    "created_at": "created_at",
}
"""Where the database has what credit notes are sorted by."""
NOTE_PARAMETERS = [sorting.parameter(NOTES_SORTED, "number"), *pagination.PARAMETERS]


def _notes_by_number(request: Request, notes: QuerySet[CreditNote]) -> tuple[list[CreditNote], str | None]:
    def fetch(after: Any, limit: int) -> list[CreditNote]:
        rows = notes.order_by("number")
        return list(rows.filter(number__gt=after[0])[:limit] if after else rows[:limit])

    return pagination.fetched_page(request, fetch, key=lambda note: (note.number,), shape=(int,))


class CreditNotesApi(APIView):
    """/api/v1/credit-notes."""

    @extend_schema(responses=CreditNotePageSerializer, parameters=NOTE_PARAMETERS, tags=["invoices"])
    def get(self, request: Request) -> Response:
        """What was given back of the organisation's invoices, by number unless it is said otherwise. It is apart from costs."""
        notes = selectors.credit_note_list(organisation=caller_of(request).organisation).select_related("invoice")
        rows = notes.defer("invoice__inputs")
        page, following = sorting.rows_page(request, rows, NOTES_SORTED, key=int, default=_notes_by_number)
        return Response(pagination.body(_notes(page), following))


class CreditNoteApi(APIView):
    """/api/v1/credit-notes/{note}."""

    @extend_schema(responses=CreditNoteSerializer, tags=["invoices"])
    def get(self, request: Request, note: str) -> Response:
        """One credit note."""
        found = selectors.credit_note_get(organisation=caller_of(request).organisation, number=note)
        return Response(_notes([found])[0])


class CreditNotePdfApi(APIView):
    """/api/v1/credit-notes/{note}/pdf."""

    @extend_schema(
        responses={(200, PDF): OpenApiResponse(OpenApiTypes.BINARY, description="one credit note")}, tags=["invoices"]
    )
    def get(self, request: Request, note: str) -> HttpResponse:
        """One credit note as a PDF."""
        return note_pdf_answer(organisation=caller_of(request).organisation, number=note)


class CreditNoteFocusApi(APIView):
    """/api/v1/credit-notes/{note}/focus.csv."""

    @extend_schema(
        operation_id="credit_notes_focus_get",
        responses={(200, CSV): OpenApiResponse(OpenApiTypes.STR, description="a header, a row, and one for each tax")},
        tags=["invoices"],
    )
    def get(self, request: Request, note: str) -> HttpResponse:
        """One credit note in FOCUS 1.2: rows of CSV, a Credit and its taxes, which correct its invoice."""
        return note_focus_answer(organisation=caller_of(request).organisation, number=note)


class InvoiceCreditNotesApi(APIView):
    """/api/v1/organisations/{id}/invoices/{number}/credit-notes."""

    keyed_methods: ClassVar = ("POST",)
    refusal = "operators of the service give money back; your credit notes are at /api/v1/credit-notes"

    @extend_schema(
        operation_id="organisations_invoices_credit_notes_get", responses=InvoiceCreditSerializer, tags=["operators"]
    )
    def get(self, request: Request, organisation_id: str, number: str) -> Response:
        """What is left of an invoice, and the credit notes by which the rest was given back."""
        organisation = organisation_asked(request, organisation_id, self.refusal)
        invoice = selectors.invoice_get(organisation=organisation, number=number)
        notes = selectors.credit_notes_of([invoice])[invoice.pk]
        credited = total_of(note.amount for note in notes)
        return Response(
            {
                "invoice": number_text(invoice.number),
                "currency": invoice.currency,
                "total": text_of(invoice.total),
                "credited": text_of(credited),
                "left": text_of(invoice.total - credited),
                "credit_notes": _notes(notes),
            }
        )

    @extend_schema(request=CreditNoteRequestSerializer, responses={201: CreditNoteSerializer}, tags=["operators"])
    @dry_runs.rehearsed(makes=True)
    def post(self, request: Request, organisation_id: str, number: str) -> Response:
        """Give back a part or all of an invoice. The invoice stays as it is; the tenant reads the reason."""
        organisation = organisation_asked(request, organisation_id, self.refusal)
        body = CreditNoteRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        idempotency_keys.require(request, self)
        with told_if_refused(request, organisation):
            note = credit_note_write(
                organisation=organisation,
                invoice=number,
                amount=Decimal(body.validated_data["amount"]),
                reason=body.validated_data["reason"],
                actor=caller_of(request).actor,
            )
        return Response(_notes([note])[0], status=201)


class CreditNoteOfAnyPdfApi(APIView):
    """/api/v1/organisations/{id}/credit-notes/{note}/pdf."""

    @extend_schema(
        responses={
            (200, PDF): OpenApiResponse(
                OpenApiTypes.BINARY, description="one credit note, on as many pages as it needs"
            )
        },
        tags=["operators"],
    )
    def get(self, request: Request, organisation_id: str, note: str) -> HttpResponse:
        """Any organisation's credit note as a PDF. The organisation is told so."""
        return note_pdf_answer(
            organisation=organisation_asked(request, organisation_id, InvoiceCreditNotesApi.refusal), number=note
        )


class TaxesApi(APIView):
    """/api/v1/taxes."""

    permission_classes = (OperatorPermission,)

    @extend_schema(
        responses=TaxPageSerializer,
        parameters=[filters.text_parameter("organisation_id", "only this organisation's"), *pagination.PARAMETERS],
        tags=["operators"],
    )
    def get(self, request: Request) -> Response:
        """Taxes that were ever set, of everybody and of organisations; the last set first. One is set where Sluice runs."""
        rows, organisation_id = selectors.tax_list().order_by("-pk"), filters.text_of(request, "organisation_id")
        if organisation_id:
            list_note(request, organisation_id)
            rows = rows.filter(organisation_id=organisation_id)

        def fetch(after: Any, limit: int) -> list[TaxRate]:
            return list(rows[:limit] if after is None else rows.filter(pk__lt=after[0])[:limit])

        page, following = pagination.fetched_page(request, fetch, key=lambda row: (row.pk,), shape=(int,))
        items = cast("list[Any]", TaxSerializer(page, many=True).data)  # a list, with many=True
        return Response(pagination.body(items, following))


class WaitingMonthsApi(APIView):
    """/api/v1/metering/months."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=WaitingMonthPageSerializer, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Months that are over and whose invoices wait for metering, with the hours and boots of brokers that are missing."""
        del request
        rows = waiting(SYSTEM_CLOCK.now())
        items = cast("list[Any]", WaitingMonthSerializer(rows, many=True).data)  # a list, with many=True
        return Response({"items": items})


def _waiver_asked(request: Request) -> tuple[dict[str, Any], str]:
    """What it is about, as the service takes it, and why. Raises where the body is refused."""
    body = WaiverRequestSerializer(data=request.data)
    body.is_valid(raise_exception=True)
    try:
        month = documents.month_of(body.validated_data["month"])
    except ValueError as error:
        raise Invalid.field("month", str(error)) from error
    cluster, instance_id = body.validated_data["cluster"] or "", body.validated_data["instance_id"]
    return {"month": month, "cluster": cluster, "instance_id": instance_id}, body.validated_data["reason"]


def _waiver(_view: APIView, request: Request, _ids: Mapping[str, Any]) -> dict[str, Any]:
    """The one that a request asks for, which may be there already. Raises NotFound."""
    about, _ = _waiver_asked(request)
    cluster = cluster_named(about["cluster"]).name if about["cluster"] else ""
    found = selectors.waiver_about(**about | {"month": str(about["month"]), "cluster": cluster})
    if found is None:
        raise NotFound("there is no such waiver")
    return dict(WaiverSerializer(found).data)


def _written_without(request: Request, _ids: Mapping[str, Any], _changed: Collection[str]) -> tuple[Affected, ...]:
    """Whose invoices wait no more, and who reads of it."""
    about, _ = _waiver_asked(request)
    cluster = cluster_named(about["cluster"]).name if about["cluster"] else ""
    found = waived_by(about["month"], reasons_by_cluster(about["month"], cluster), about["instance_id"])
    return _waived(
        found, f"their invoices of {about['month']} are written without what is missing; it is adjusted later"
    )


def _broker_waived(request: Request, ids: Mapping[str, Any], _changed: Collection[str]) -> tuple[Affected, ...]:
    """The same of a broker."""
    cluster = cluster_named(filters.text_of(request, "cluster")).name
    found = waiting_for_broker(ids["broker"], cluster, SYSTEM_CLOCK.now())
    months = ", ".join(map(str, found))
    concerned = {each.pk: each for rows in found.values() for each in rows}
    return _waived(
        concerned.values(),
        f"their invoices of {months} wait for this broker no more; what it tells after all is adjusted later",
    )


def _waived(found: Iterable[Instance], effect: str) -> tuple[Affected, ...]:
    rows = sorted(found, key=lambda instance: instance.pk)
    organisations = sorted({instance.organisation_id for instance in rows})
    return (
        *affected("instances", [instance.pk for instance in rows], effect),
        *affected("organisations", organisations, "have it in their audit logs"),
    )


class WaiversApi(APIView):
    """/api/v1/metering/waivers."""

    permission_classes = (OperatorPermission,)

    @extend_schema(responses=WaiverPageSerializer, parameters=pagination.PARAMETERS, tags=["operators"])
    def get(self, request: Request) -> Response:
        """Which months' invoices were written without waiting for metering, and who said so; the newest first."""
        rows = selectors.waivers()

        def fetch(after: Any, limit: int) -> list[MeteringWaiver]:
            return list(rows.filter(pk__lt=after[0]).order_by("-pk")[:limit] if after else rows.order_by("-pk")[:limit])

        page, following = pagination.fetched_page(request, fetch, key=lambda waiver: (waiver.pk,), shape=(int,))
        items = cast("list[Any]", WaiverSerializer(page, many=True).data)  # a list, with many=True
        return Response(pagination.body(items, following))

    @extend_schema(request=WaiverRequestSerializer, responses={201: WaiverSerializer}, tags=["operators"])
    @dry_runs.rehearsed(of=_waiver, shows_all=True, touches=_written_without)
    def post(self, request: Request) -> Response:
        """Invoices of a month that is over need not wait for metering any more. What is counted later is adjusted."""
        about, reason = _waiver_asked(request)
        waiver = services.metering_waive(**about, actor=caller_of(request).actor, reason=reason)
        return Response(WaiverSerializer(waiver).data, status=201)


class BrokerWaiverApi(APIView):
    """/api/v1/metering/brokers/{broker}/waiver."""

    permission_classes = (OperatorPermission,)

    @extend_schema(
        request=BrokerWaiverRequestSerializer,
        responses={201: BrokerWaiverSerializer},
        parameters=[filters.text_parameter("cluster", "whose broker; needed where there are several clusters")],
        tags=["operators"],
    )
    @dry_runs.rehearsed(makes=True, touches=_broker_waived)
    def post(self, request: Request, broker: int) -> Response:
        """Usage waits no longer for this broker, until it speaks again. What it tells after all is adjusted later."""
        body = BrokerWaiverRequestSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        reason, actor = body.validated_data["reason"], caller_of(request).actor
        cluster = cluster_named(filters.text_of(request, "cluster")).name
        waiver = services.broker_waive(broker=broker, reason=reason, actor=actor, cluster=cluster)
        return Response(BrokerWaiverSerializer(waiver).data, status=201)


def month_asked(request: Request) -> Month:
    """`month`, one that has begun. Raises Invalid."""
    text, current = request.query_params.get("month"), Month.of(SYSTEM_CLOCK.now())
    if text is None:
        return current
    try:
        month = documents.month_of(text)
    except ValueError as error:
        raise Invalid.field("month", str(error)) from error
    if month.start > current.start:
        raise Invalid.field("month", f"must be a month that has begun, up to {current}")
    return month


def _most_asked(request: Request) -> int:
    """`most`. Raises Invalid."""
    text = request.query_params.get("most", str(DEFAULT_PARTS))
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= MOST_PARTS):
        raise Invalid.field("most", f"must be a whole number from 1 to {MOST_PARTS}")
    return int(text)


def _cost(cost: costs.Cost) -> dict[str, Any]:
    recent = cost.recent
    return {
        "instance_id": cost.bill.instance_id,
        "month": str(cost.bill.month),
        "currency": cost.bill.currency,
        "so_far": text_of(cost.so_far),
        "forecast": text_of(cost.forecast),
        "state": cost.bill.state,
        "counted_until": cost.counted_until,
        "based_on": recent and {"from": recent.start, "to": recent.end, "hours": recent.hours},
        "items": [
            {"item": item, "so_far": text_of(so_far), "forecast": text_of(forecast)}
            for item, so_far, forecast in cost.lines
        ],
    }


def _shares(bill: Bill, shares: Shares[Any], what: str, most: int) -> dict[str, Any]:
    """What answers of both kinds have; `what`: the name of the parts."""
    others = shares.parts[most:]
    return {
        "instance_id": bill.instance_id,
        "month": str(bill.month),
        "currency": bill.currency,
        "total": text_of(shares.total),
        "so_far": bill.invoice is None,
        "others": {what: len(others), "amount": text_of(total_of(each.amount for each in others))},
        "unshared": [
            {"item": each.item, "amount": text_of(each.amount), "reason": each.reason} for each in shares.unshared
        ],
    }


def _amounts(part: Part[Any]) -> dict[str, Any]:
    return {
        "amount": text_of(part.amount),
        "items": [{"item": item, "amount": text_of(amount)} for item, amount in part.items.items()],
    }


def _user(part: Part[UserUsed]) -> dict[str, Any]:
    return {
        "user": part.name,
        "kind": user_kind(part.name),
        **_amounts(part),
        "wire_in_bytes": part.used.wire_in_bytes,
        "wire_out_bytes": part.used.wire_out_bytes,
        "requests": part.used.requests,
    }


def _topic(cost: Part[Used]) -> dict[str, Any]:
    return {
        "topic": cost.name,
        **_amounts(cost),
        "produced_bytes": cost.used.produced_bytes,
        "consumed_bytes": cost.used.consumed_bytes,
        "stored_byte_hours": (2 * cost.used.stored_byte_seconds + SECONDS_PER_HOUR) // (2 * SECONDS_PER_HOUR),
    }


def _shown(bill: selectors.Bill) -> dict[str, Any]:
    return {
        "instance_id": bill.instance_id,
        "month": str(bill.month),
        "plan": bill.plan,
        "plans": [
            {
                "plan": span.plan.name,
                "version": span.plan.version,
                "title": span.plan.title,
                "from": documents.moment_text(span.start),
                "to": documents.moment_text(span.end),
            }
            for span in bill.spans
        ],
        "currency": bill.currency,
        "total": bill.total,
        "lines": [_line(bill.instance_id, bill.spans[-1].plan, line) for line in bill.lines],
        "so_far": bill.invoice is None,
        "state": bill.state,
        "counted_until": bill.counted_until,
        "invoice": number_text(bill.invoice.number) if bill.invoice else None,
        "metering": bill.invoice.inputs.get("metering") if bill.invoice else None,
        "adjusted_by": [
            {
                "invoice": each.invoice,
                "month": each.month,
                "line": _line(bill.instance_id, bill.spans[-1].plan, each.line),
            }
            for each in bill.adjustments
        ],
        "input_hash": bill.invoice.input_hash if bill.invoice else None,
    }


def _invoice(invoice: Invoice, notes: Sequence[CreditNote]) -> dict[str, Any]:
    return {
        "number": number_text(invoice.number),
        "instance_id": invoice.instance_id,
        "month": invoice.month,
        "currency": invoice.currency,
        "total": text_of(invoice.total),
        "credited": text_of(total_of(note.amount for note in notes)),
        "credit_notes": [
            {"number": note.number_text, "amount": text_of(note.amount), "created_at": note.created_at}
            for note in notes
        ],
        "created_at": invoice.created_at,
        "hash": invoice.hash,
        "previous_hash": invoice.previous_hash,
    }


def _notes(notes: Sequence[CreditNote]) -> list[dict[str, Any]]:
    return [_note(note, taxes) for note, taxes in selectors.with_taxes(notes)]


def _note(note: CreditNote, taxes: Sequence[CreditedTax]) -> dict[str, Any]:
    return {
        "number": note.number_text,
        "invoice": number_text(note.invoice.number),
        "instance_id": note.invoice.instance_id,
        "month": note.invoice.month,
        "currency": note.currency,
        "amount": text_of(note.amount),
        "tax": text_of(total_of(tax.amount for tax in taxes)),
        "taxes": [{"name": tax.name, "rate": text_of(tax.rate), "amount": text_of(tax.amount)} for tax in taxes],
        "reason": note.reason,
        "actor": note.actor,
        "created_at": note.created_at,
        "hash": note.hash,
        "previous_hash": note.previous_hash,
    }


def _line(instance_id: str, plan: Plan, line: dict[str, Any]) -> dict[str, Any]:
    """Invoices of the first kind had one plan, and their lines did not say which."""
    usage = f"/api/v1/instances/{instance_id}/usage?{urlencode({'from': line['from'], 'to': line['to']})}"
    return {"plan": plan.name, "plan_version": plan.version, "adjusts": None, "charged": None, **line, "usage": usage}
