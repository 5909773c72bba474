"""REST of the fleet, for operators of the service: what their pages show of all organisations.

What they are shown of one organisation is written into its audit log, as by their pages, and so are lists of all that are
narrowed to one; lists of all are not.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.accounts.permissions import OperatorPermission, list_note, staff_note
from controlplane.admission import rules
from controlplane.admission.selectors import sizes_by_organisation
from controlplane.api import filters, pagination, sorting
from controlplane.api.ranges import span_of
from controlplane.clusters.selectors import absences_of, ports_of
from controlplane.clusters.services import cluster_list, cluster_named
from controlplane.core.errors import Invalid, NotFound
from controlplane.core.models import OperationState
from controlplane.fleet import listing, problems, selectors
from controlplane.fleet.measures import NOW, OF_BROKERS, OF_INSTANCES
from controlplane.fleet.serializers import (
    FleetBrokerDetailSerializer,
    FleetBrokerPageSerializer,
    FleetBrokerSerializer,
    FleetInstanceDetailSerializer,
    FleetInstancePageSerializer,
    FleetInstanceSerializer,
    FleetOperationPageSerializer,
    FleetOperationSerializer,
    FleetOrganisationPageSerializer,
    FleetOrganisationSerializer,
    FleetProblemPageSerializer,
    FleetProblemSerializer,
    HeatSerializer,
)
from controlplane.health.selectors import health_get
from controlplane.instances.models import InstanceState
from controlplane.instances.selectors import bootstrap_of, limits_shown, routes_wanted
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import SHOWN, allocation_of, flows_get
from quota.contracts.report import DIRECTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rest_framework.request import Request

    from controlplane.fleet.selectors import Table
    from controlplane.instances.models import Instance
    from controlplane.quotas.figures import Figures
    from controlplane.tenants.models import Organisation

TAGS = ["operators"]
BUSIEST, ABSENCES = 25, 10
OF_CLUSTER = filters.text_parameter("cluster", "only what is on this physical cluster")
OF_ORGANISATION = filters.text_parameter("organisation_id", "only what is this organisation's")

INSTANCE_STATES = [state.value for state in InstanceState if state != InstanceState.DELETED]
INSTANCES_SORTED = {
    **{name: name for name in ("name", "state", "bandwidth_mib_per_s", "storage_gib", "partitions", "created_at")},
    "organisation_name": "organisation__name",
}
"""Where the database has what instances are sorted by."""
INSTANCES_ASKED = [
    filters.choice_parameter("state", INSTANCE_STATES, "only instances in this state"),
    OF_CLUSTER,
    OF_ORGANISATION,
    filters.text_parameter("prefix", "only instances whose names begin so"),
    filters.text_parameter("search", "only those with this in their name, their id or their organisation's name"),
    sorting.parameter(INSTANCES_SORTED, "created_at"),
    *pagination.PARAMETERS,
]
ORGANISATIONS_SORTED = {name: name for name in ("name", "created_at")}
ORGANISATIONS_ASKED = [
    filters.choice_parameter("state", listing.ORGANISATION_STATES, "only organisations in this state"),
    filters.text_parameter("prefix", "only organisations whose names begin so"),
    filters.text_parameter("search", "only those with this in their name or id"),
    sorting.parameter(ORGANISATIONS_SORTED, "created_at"),
    *pagination.PARAMETERS,
]
OPERATIONS_SORTED = {name: name for name in ("kind", "target", "state", "actor", "created_at", "finished_at")}
OPERATIONS_ASKED = [
    filters.choice_parameter("state", OperationState.values, "only operations in this state"),
    filters.text_parameter("target", "only operations on this, such as the id of an instance"),
    filters.text_parameter("kind", "only operations of this kind, whole or by its beginning"),
    OF_ORGANISATION,
    filters.text_parameter("from", "begun at this moment or later: RFC 3339 or a date, UTC"),
    filters.text_parameter("to", "begun before this moment"),
    sorting.parameter(OPERATIONS_SORTED, "created_at"),
    *pagination.PARAMETERS,
]
BROKERS_SORTED = (
    "broker", "state", "instances", "leaders", "produce_flow_bytes_per_s", "consume_flow_bytes_per_s", "away_since",
)  # fmt: skip
BROKERS_ASKED = [
    OF_CLUSTER,
    filters.choice_parameter("state", listing.BROKER_STATES, "only brokers in this state"),
    sorting.parameter(BROKERS_SORTED, "cluster and id"),
    *pagination.PARAMETERS,
]
PROBLEMS_ASKED = [
    filters.choice_parameter("kind", problems.KINDS, "only problems of this kind"),
    OF_CLUSTER,
    *pagination.PARAMETERS,
]
BROKERS, INSTANCES, BOTH = "brokers", "instances", "now"
MEASURES = {BROKERS: OF_BROKERS, INSTANCES: OF_INSTANCES, BOTH: NOW}
SPANS: Mapping[str, Mapping[str, selectors.Span]] = {
    BROKERS: selectors.SPANS,
    INSTANCES: selectors.OF_INSTANCES_SPANS,
    BOTH: {},
}
HEAT_ASKED = [
    filters.text_parameter("cluster", "which physical cluster; needed where there are several"),
    filters.choice_parameter(
        "of", list(MEASURES), "brokers or instances over time, or instances by broker now; default brokers"
    ),
    filters.choice_parameter(
        "measure",
        list(dict.fromkeys(name for measures in MEASURES.values() for name in measures)),
        f"of brokers {', '.join(OF_BROKERS)}; of instances {', '.join(OF_INSTANCES)}; now {', '.join(NOW)}; default flow",
    ),
    filters.choice_parameter(
        "range",
        list(dict.fromkeys(name for spans in SPANS.values() for name in spans)),
        "how far back; of instances 1h or 24h; not of now; default 1h",
    ),
]


class FleetInstancesApi(APIView):
    """/api/v1/fleet/instances."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=FleetInstancePageSerializer, parameters=INSTANCES_ASKED, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Everybody's instances, with their health and what flows through them now; oldest first unless it is said otherwise."""
        rows = listing.instances(
            state=filters.choice_of(request, "state", INSTANCE_STATES),
            **{name: filters.text_of(request, name) for name in ("cluster", "organisation_id", "prefix", "search")},
        )
        list_note(request, filters.text_of(request, "organisation_id"))
        page, following = sorting.rows_page(request, rows, INSTANCES_SORTED)
        figures = figures_get(page, flows_get)
        items = FleetInstanceSerializer(_with_figures(page, figures), many=True).data
        return Response(pagination.body(list(items), following))


class FleetInstanceApi(APIView):
    """/api/v1/fleet/instances/{id}."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=FleetInstanceDetailSerializer, tags=TAGS)
    def get(self, request: Request, instance_id: str) -> Response:
        """One instance of anybody's, with how its limits are shared out between brokers. Its organisation is told so."""
        found = listing.instances().filter(pk=instance_id).first()
        if found is None:
            raise NotFound(f"no instance {instance_id}")
        staff_note(request, found.organisation, looked_at=found.id)
        figures = figures_get([found], allocation_of)
        ports, document = ports_of(found.id), figures.fresh.get(found.id)
        (shown,) = _with_figures([found], figures)
        shown.bootstrap = bootstrap_of(routes_wanted(found.id), ports)  # type: ignore[attr-defined]
        shown.limits = limits_shown(found, ports)  # type: ignore[attr-defined]
        shown.allocation = document and {name: document.get(name) for name in SHOWN}  # type: ignore[attr-defined]
        return Response(FleetInstanceDetailSerializer(shown).data)


class FleetOrganisationsApi(APIView):
    """/api/v1/fleet/organisations."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=FleetOrganisationPageSerializer, parameters=ORGANISATIONS_ASKED, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Organisations with what their instances have together; oldest first unless it is said otherwise."""
        rows = listing.organisations(
            state=filters.choice_of(request, "state", listing.ORGANISATION_STATES),
            prefix=filters.text_of(request, "prefix"),
            search=filters.text_of(request, "search"),
        )
        page, following = sorting.rows_page(request, rows, ORGANISATIONS_SORTED)
        sizes = sizes_by_organisation(page)
        items = FleetOrganisationSerializer([_organisation(each, sizes[each.id]) for each in page], many=True).data
        return Response(pagination.body(list(items), following))


class FleetOperationsApi(APIView):
    """/api/v1/fleet/operations."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=FleetOperationPageSerializer, parameters=OPERATIONS_ASKED, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Everybody's operations, and those of the service itself; oldest first unless it is said otherwise."""
        start, end = span_of(request)
        rows = listing.operations(
            state=filters.choice_of(request, "state", OperationState.values),
            **{name: filters.text_of(request, name) for name in ("target", "kind", "organisation_id")},
            start=start,
            end=end,
        )
        target = filters.text_of(request, "target")
        list_note(request, filters.text_of(request, "organisation_id"))
        page, following = sorting.rows_page(request, rows.select_related("organisation"), OPERATIONS_SORTED)
        if target:
            for organisation in {each.organisation for each in page if each.organisation is not None}:
                staff_note(request, organisation, looked_at=target)
        return Response(pagination.body(list(FleetOperationSerializer(page, many=True).data), following))


class FleetBrokersApi(APIView):
    """/api/v1/fleet/brokers."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=FleetBrokerPageSerializer, parameters=BROKERS_ASKED, tags=TAGS)
    def get(self, request: Request) -> Response:
        """Brokers of all clusters that are in use: how each is, and what it leads and carries over all instances."""
        named, state = filters.text_of(request, "cluster"), filters.choice_of(request, "state", listing.BROKER_STATES)
        order = sorting.order_of(request, BROKERS_SORTED)
        found = listing.brokers([cluster_named(named)] if named else cluster_list())
        items = sorted((each for each in found if state in ("", each["state"])), key=_place_of)
        if order is None:
            page, following = pagination.items_page(request, items, _place_of)
        else:
            field = order.field
            page, following = sorting.items_page(
                request, items, order, value=lambda each: _sortable(each[field]), key=_place_of
            )
        return Response(pagination.body(list(FleetBrokerSerializer(page, many=True).data), following))


class ClusterBrokerApi(APIView):
    """/api/v1/clusters/{cluster}/brokers/{broker}."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=FleetBrokerDetailSerializer, tags=TAGS)
    def get(self, request: Request, cluster: str, broker: int) -> Response:
        """One broker: how it is, the instances that have most flow on it, and when it was away."""
        del request
        found = cluster_named(cluster)
        own = next((each for each in listing.brokers([found]) if each["broker"] == broker), None)
        if own is None:
            raise NotFound(f"there is no broker {broker} in cluster {found.name}")
        busiest = [
            {
                "instance_id": instance.id,
                "organisation_id": instance.organisation_id,
                "flow_bytes_per_s": values["flow"],
                "allocation_percent": values["allocation"],
                "loop_ms_per_s": values["loop"],
                "leaders": values["leaders"],
            }
            for instance, values in selectors.instances_on(found, broker, most=BUSIEST)
        ]
        document = {**own, "busiest": busiest, "absences": absences_of(found, broker)[:ABSENCES]}
        return Response(FleetBrokerDetailSerializer(document).data)


class HeatApi(APIView):
    """/api/v1/fleet/heat."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=HeatSerializer, parameters=HEAT_ASKED, tags=TAGS)
    def get(self, request: Request) -> Response:
        """The numbers of a map of heat: brokers or instances over time, or each instance on each broker now."""
        of = filters.choice_of(request, "of", list(MEASURES)) or BROKERS
        measure = MEASURES[of][filters.choice_of(request, "measure", list(MEASURES[of])) or "flow"]
        if of == BOTH and "range" in request.query_params:
            raise Invalid.field("range", "goes with brokers and instances over time")
        spans = SPANS[of]
        span = spans[filters.choice_of(request, "range", list(spans)) or "1h"] if spans else None
        cluster = cluster_named(filters.text_of(request, "cluster"))
        table: Table | None
        if span is None:
            table = selectors.instances_by_broker(cluster, measure)
        elif of == BROKERS:
            table = selectors.brokers_over_time(cluster, measure, span)
        else:
            table = selectors.instances_over_time(cluster, measure, span)
        document = {
            "cluster": cluster.name,
            "of": of,
            "measure": measure.name,
            "unit": measure.unit.value,
            "at": table and table.at,
            "columns": [] if table is None else [_column(each, of) for each in table.columns],
            "rows": [
                {"id": row.key, "name": row.title, "values": list(row.values)} for row in (table.rows if table else ())
            ],
            "left_out": table.left_out if table else 0,
        }
        return Response(HeatSerializer(document).data)


class FleetProblemsApi(APIView):
    """/api/v1/fleet/problems."""

    permission_classes: ClassVar = [OperatorPermission]

    @extend_schema(responses=FleetProblemPageSerializer, parameters=PROBLEMS_ASKED, tags=TAGS)
    def get(self, request: Request) -> Response:
        """What is the matter anywhere: clusters, brokers, workers, the cache, metering, invoices; nothing where all is well."""
        kind, cluster = filters.choice_of(request, "kind", problems.KINDS), filters.text_of(request, "cluster")
        found = [
            each
            for each in problems.problems()
            if (not kind or each.kind == kind) and (not cluster or each.cluster == cluster)
        ]
        page, following = pagination.items_page(request, found, lambda each: each.key)
        return Response(pagination.body(list(FleetProblemSerializer(page, many=True).data), following))


def _with_figures(instances: Sequence[Instance], figures: Figures) -> list[Instance]:
    """Each with what masters say of it now, and its health."""
    healths = health_get(instances, figures=figures)
    for instance in instances:
        document = figures.fresh.get(instance.id)
        instance.health = healths.get(instance.id)  # type: ignore[attr-defined]
        for direction in DIRECTIONS:
            setattr(instance, f"{direction}_bytes_per_s", _flow(document, direction))
        for name in ("storage_used_bytes", "connections"):
            setattr(instance, name, document and document.get(name))
    return list(instances)


def _flow(document: Mapping[str, Any] | None, direction: str) -> int | None:
    """Bytes a second over all brokers; None: it is not known."""
    if document is None:
        return None
    found = document.get(direction)
    return round(sum(broker["flow"] for broker in found["brokers"])) if found else 0


def _organisation(organisation: Organisation, sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": organisation.id,
        "name": organisation.name,
        "state": listing.organisation_state(organisation),
        "created_at": organisation.created_at,
        "deletes_at": organisation.deletes_at,
        **{name: rules.number(amount) for name, amount in sizes.items()},
    }


def _place_of(broker: Mapping[str, Any]) -> str:
    return f"{broker['cluster']}:{broker['broker']:010}"


def _sortable(value: Any) -> str | int | None:
    """Moments as text, which sorts as they do."""
    return value.isoformat() if isinstance(value, datetime) else cast("str | int | None", value)


def _column(column: int, of: str) -> str:
    return str(column) if of == BOTH else f"{datetime.fromtimestamp(column, UTC):%Y-%m-%dT%H:%M:%SZ}"
