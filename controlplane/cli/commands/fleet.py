"""What operators of the service see of all organisations, and what they decide about one."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import nullable, said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, From, Limit, Prefix, Sort, To
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("For operators of the service: everybody's instances, organisations, operations, brokers.")
INSTANCES = columns(
    "id", "name", "organisation_name", "cluster", "state", "bandwidth_mib_per_s", "storage_gib", "partitions",
    "produce_bytes_per_s", "consume_bytes_per_s", health="health.state",
)  # fmt: skip
ORGANISATIONS = columns(
    "id", "name", "state", "instances", "bandwidth_mib_per_s", "storage_gib", "partitions", "created_at"
)
OPERATIONS = columns(
    "id", "organisation_id", "kind", "target", "state", "progress", "actor", "created_at", "finished_at"
)
BROKERS = columns(
    "cluster", "broker", "state", "host", "rack", "leaders", "instances", "produce_flow_bytes_per_s",
    "consume_flow_bytes_per_s", "away_since",
)  # fmt: skip
PROBLEMS = columns("kind", "cluster", "broker", "instance_id", "month", "since", "detail")
REPORT = columns(
    "instance", "resource", "limit", "p50", "p95", "p99", "used_percent", "headroom", "throttled_minutes", "guarantee",
    "exhausted_on",
)  # fmt: skip
NEIGHBOURS = columns(
    "started_at", "ended_at", "instance", "broker", "score", "requests", "p99_ms", "usual_ms", "explanation"
)
TAXES = columns("month", "organisation_id", "name", "rate", "actor", "at")

Organisation = Annotated[str, typer.Argument(metavar="ORGANISATION", help="Its id.")]
Cluster = Annotated[str | None, typer.Option(help="A physical cluster, by its name.")]
OfOrganisation = Annotated[str | None, typer.Option("--organisation", help="Only this one's, by its id.")]
Search = Annotated[str | None, typer.Option(help="Only those with this in a name or an id.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept, and shown beside the change.")]
AMOUNT = 'A number, or "null" for the default.'


@app.add("instances")
def instances(
    ctx: typer.Context,
    state: Annotated[
        Literal["creating", "running", "failed", "isolated", "restoring", "deleting"] | None,
        typer.Option(help="By default all."),
    ] = None,
    cluster: Cluster = None,
    organisation_id: OfOrganisation = None,
    prefix: Prefix = None,
    search: Search = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Everybody's instances, with their health and what flows through them now."""
    query = said(state=state, cluster=cluster, organisation_id=organisation_id, prefix=prefix, search=search, sort=sort)
    of(ctx).listed(ops.FLEET_INSTANCES, INSTANCES, limit=limit, query=query)


@app.add("instance")
def instance(ctx: typer.Context, instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="Its id.")]) -> None:
    """One instance of anybody's, with how its limits are shared out. Its organisation finds in its audit log that you looked."""
    session = of(ctx)
    session.show(ops.FLEET_INSTANCE, instance_id=instance)


@app.add("organisations")
def organisations(
    ctx: typer.Context,
    state: Annotated[Literal["in_use", "marked", "deleted"] | None, typer.Option(help="By default all.")] = None,
    prefix: Prefix = None,
    search: Search = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Organisations with what their instances have together."""
    query = said(state=state, prefix=prefix, search=search, sort=sort)
    of(ctx).listed(ops.FLEET_ORGANISATIONS, ORGANISATIONS, limit=limit, query=query)


@app.add("operations")
def operations(
    ctx: typer.Context,
    state: Annotated[Literal["running", "succeeded", "failed"] | None, typer.Option(help="By default all.")] = None,
    target: Annotated[str | None, typer.Option(help="Only those on this, such as the id of an instance.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only those of this kind, whole or by its beginning.")] = None,
    organisation_id: OfOrganisation = None,
    start: From = None,
    end: To = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Everybody's operations, the newest first. `operation show` has one of them."""
    query = said(state=state, target=target, kind=kind, organisation_id=organisation_id, **{"from": start, "to": end})
    query["sort"] = sort or "-created_at"
    of(ctx).listed(ops.FLEET_OPERATIONS, OPERATIONS, limit=limit, query=query)


@app.add("brokers")
def brokers(
    ctx: typer.Context,
    cluster: Cluster = None,
    state: Annotated[
        Literal["reporting", "registered", "silent", "away", "unknown"] | None, typer.Option(help="By default all.")
    ] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Brokers of all clusters: how each is, and what it leads and carries."""
    of(ctx).listed(ops.FLEET_BROKERS, BROKERS, limit=limit, query=said(cluster=cluster, state=state, sort=sort))


@app.add("heat")
def heat(
    ctx: typer.Context,
    cluster: Cluster = None,
    what: Annotated[
        Literal["brokers", "instances", "now"] | None,
        typer.Option("--of", help="Over time, or instances by broker now; by default brokers."),
    ] = None,
    measure: Annotated[
        Literal["flow", "allocation", "loop", "leaders", "disk", "skew", "isr", "connections"] | None,
        typer.Option(help="By default flow."),
    ] = None,
    span: Annotated[Literal["1h", "6h", "24h"] | None, typer.Option("--range", help="By default 1h.")] = None,
) -> None:
    """The numbers of a map of heat. For programs: --output json."""
    query = said(cluster=cluster, measure=measure, of=what, range=span)
    of(ctx).show(ops.FLEET_HEAT, query=query)


@app.add("problems")
def problems(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Option(help="Only those of this kind, such as broker or invoice_failed.")] = None,
    cluster: Cluster = None,
    limit: Limit = None,
) -> None:
    """What is the matter anywhere: brokers, workers, the cache, metering, invoices. Nothing: all is well."""
    of(ctx).listed(ops.FLEET_PROBLEMS, PROBLEMS, limit=limit, query=said(kind=kind, cluster=cluster))


@app.add("quota-report")
def quota_report(
    ctx: typer.Context,
    day: Annotated[str | None, typer.Option(help="YYYY-MM-DD; by default the newest.")] = None,
    limit: Limit = None,
) -> None:
    """The quota report of every instance on one day."""
    of(ctx).listed(ops.FLEET_QUOTA_REPORT, REPORT, limit=limit, query=said(day=day))


@app.add("neighbours")
def neighbours(ctx: typer.Context, start: From = None, end: To = None) -> None:
    """When requests of anybody's were slow on a broker, and who had most of it meanwhile."""
    of(ctx).listed(ops.FLEET_NEIGHBOURS, NEIGHBOURS, limit=None, query=said(**{"from": start, "to": end}))


@app.add("capacity")
def capacity(ctx: typer.Context, cluster: Cluster = None) -> None:
    """What may be sold of a cluster, and what is."""
    of(ctx).show(ops.CAPACITY, query=said(cluster=cluster))


@app.add("set-capacity", rehearses=True)
def set_capacity(
    ctx: typer.Context,
    resource: Annotated[
        Literal["bandwidth_mib_per_s", "storage_gib", "partitions", "connections", "broker_time_ms_per_s"],
        typer.Argument(help="Of what."),
    ],
    per_broker: Annotated[float, typer.Option(help="What each broker has of it.")],
    overcommit: Annotated[float, typer.Option(help="How many times as much is sold.")],
    reason: Reason,
    cluster: Cluster = None,
) -> None:
    """What each broker has of a resource, and how many times as much is sold. What is sold stays sold."""
    body = {"resource": resource, "per_broker": per_broker, "overcommit": overcommit, "reason": reason}
    of(ctx).change(ops.CAPACITY_SET, query=said(cluster=cluster), body=body)


@app.add("caps")
def caps(ctx: typer.Context, organisation: Organisation) -> None:
    """What an organisation may have, and how much of it is in use. It finds in its audit log that you looked."""
    of(ctx).show(ops.ORGANISATION_CAPS, organisation_id=organisation)


@app.add("set-caps", rehearses=True)
def set_caps(
    ctx: typer.Context,
    organisation: Organisation,
    reason: Reason,
    instances: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    bandwidth: Annotated[str | None, typer.Option(help=f"MiB/s. {AMOUNT}")] = None,
    storage: Annotated[str | None, typer.Option(help=f"GiB. {AMOUNT}")] = None,
    partitions: Annotated[str | None, typer.Option(help=AMOUNT)] = None,
    price: Annotated[str | None, typer.Option(help=f"A month, in the currency of its plan. {AMOUNT}")] = None,
) -> None:
    """Raise caps of an organisation, or lower them: that takes nothing away which it has."""
    wanted = nullable(
        instances=instances,
        bandwidth_mib_per_s=bandwidth,
        storage_gib=storage,
        partitions=partitions,
        price_per_month=price,
    )
    if not wanted:
        raise Misused("name what is to be different")
    of(ctx).change(ops.ORGANISATION_CAPS_SET, body={**wanted, "reason": reason}, organisation_id=organisation)


@app.add("credit")
def credit(
    ctx: typer.Context,
    organisation: Organisation,
    invoice: Annotated[str, typer.Argument(metavar="INVOICE", help="Its number.")],
) -> None:
    """What is left of an invoice, and the credit notes by which the rest was given back."""
    of(ctx).show(ops.INVOICE_CREDIT, organisation_id=organisation, number=invoice)


@app.add("give-credit", rehearses=True)
def give_credit(
    ctx: typer.Context,
    organisation: Organisation,
    invoice: Annotated[str, typer.Argument(metavar="INVOICE", help="Its number.")],
    amount: Annotated[str, typer.Option(help="In the currency of the invoice, such as 120.00.")],
    reason: Annotated[str, typer.Option(help="Why; the tenant reads it.")],
) -> None:
    """Give back a part or all of an invoice. The invoice stays as it is."""
    body = {"amount": amount, "reason": reason}
    of(ctx).change(ops.INVOICE_CREDIT_GIVE, body=body, organisation_id=organisation, number=invoice)


@app.add("credit-note-pdf")
def credit_note_pdf(
    ctx: typer.Context,
    organisation: Organisation,
    note: Annotated[str, typer.Argument(metavar="NOTE", help="Its number.")],
) -> None:
    """Any organisation's credit note as a PDF: sluice fleet credit-note-pdf ORGANISATION NOTE > FILE."""
    of(ctx).file(ops.ANY_CREDIT_NOTE_PDF, organisation_id=organisation, note=note)


@app.add("taxes")
def taxes(ctx: typer.Context, organisation_id: OfOrganisation = None, limit: Limit = None) -> None:
    """Taxes that were ever set, of everybody and of organisations; the last set first."""
    of(ctx).listed(ops.TAXES, TAXES, limit=limit, query=said(organisation_id=organisation_id))
