"""Routes: ways into an instance, each with a port of its own on every broker; and what TLS routes show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import NULL, file_text, said, settings, whole_or_null
from controlplane.cli.errors import Misused
from controlplane.cli.options import Cidrs, Commands, Instance, Limit, Route, Sort, Wait, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Routes: ways into an instance, and their certificates.")
LISTED = columns("id", "security", "mechanisms", "state", "public", "bootstrap")

Security = Literal["plaintext", "sasl_plaintext", "ssl", "sasl_ssl"]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; again for more."),
]
PlainInClear = Annotated[bool | None, typer.Option(help="PLAIN or OAUTHBEARER on a route of sasl_plaintext is meant.")]
ClientCertificates = Annotated[
    Literal["none", "requested", "required"] | None, typer.Option(help="Whether clients show one, where there is TLS.")
]
Mapping = Annotated[
    list[str] | None,
    typer.Option(
        "--principal-mapping", help="As Kafka's ssl.principal.mapping.rules; again for more, the first that matches."
    ),
]
ProxyProtocol = Annotated[bool | None, typer.Option(help="Connections begin with a PROXY header.")]
AsInstance = Annotated[bool, typer.Option("--as-instance", help="No whitelist of its own.")]
Connections = Annotated[str | None, typer.Option(help="Of each broker; null: the instance's limit alone.")]
Host = Annotated[str | None, typer.Option(help="What clients are told to connect to.")]
Hosts = Annotated[
    list[str] | None, typer.Option("--advertised-broker", help="BROKER=HOST for one broker; again for more.")
]
Public = Annotated[bool | None, typer.Option(help="One route of an instance may be.")]
ClosesAt = Annotated[str | None, typer.Option(help="RFC 3339: closed from then on; null: it stays.")]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    state: Annotated[
        Literal["creating", "running", "failed", "deleting", "closed"] | None, typer.Option(help="By default all.")
    ] = None,
    security: Annotated[Security | None, typer.Option(help="Only those with this security.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Routes of the instance with their addresses, the oldest first unless --sort says otherwise."""
    query = said(state=state, security=security, sort=sort)
    of(ctx).listed(ops.ROUTES, LISTED, limit=limit, query=query, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, route: Route) -> None:
    """One route."""
    of(ctx).show(ops.ROUTE, instance_id=instance, route_id=route)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    instance: Instance,
    security: Annotated[Security, typer.Option()],
    mechanisms: Mechanisms = None,
    allow_plain_in_clear: PlainInClear = None,
    client_certificates: ClientCertificates = None,
    principal_mapping: Mapping = None,
    proxy_protocol: ProxyProtocol = None,
    cidrs: Cidrs = None,
    connections: Connections = None,
    connections_per_address: Connections = None,
    advertised_host: Host = None,
    advertised_hosts: Hosts = None,
    public: Public = None,
    closes_at: ClosesAt = None,
    wait: Wait = True,
) -> None:
    """Another way in, and wait until it is open."""
    members = said(
        mechanisms=mechanisms,
        allow_plain_in_clear=allow_plain_in_clear,
        client_certificates=client_certificates,
        principal_mapping=principal_mapping,
        proxy_protocol=proxy_protocol,
        whitelist=cidrs,
        advertised_host=advertised_host,
        advertised_hosts=settings(advertised_hosts),
        public=public,
    )
    numbers = whole_or_null(connections=connections, connections_per_address=connections_per_address)
    body = {"security": security, **members, **numbers, **_end(closes_at)}
    of(ctx).start(ops.ROUTE_CREATE, wait=wait, body=body, instance_id=instance)


@app.add("alter", rehearses=True)
def alter(
    ctx: typer.Context,
    instance: Instance,
    route: Route,
    security: Annotated[Security | None, typer.Option()] = None,
    mechanisms: Mechanisms = None,
    no_mechanisms: Annotated[bool, typer.Option("--no-mechanisms", help="Nobody logs in.")] = False,
    allow_plain_in_clear: PlainInClear = None,
    client_certificates: ClientCertificates = None,
    principal_mapping: Mapping = None,
    proxy_protocol: ProxyProtocol = None,
    cidrs: Cidrs = None,
    as_instance: AsInstance = False,
    connections: Connections = None,
    connections_per_address: Connections = None,
    advertised_host: Host = None,
    advertised_hosts: Hosts = None,
    public: Public = None,
    closes_at: ClosesAt = None,
    wait: Wait = True,
) -> None:
    """Other members. Connections that it would not let in any more are closed; its ports stay."""
    members = said(
        security=security,
        mechanisms=[] if no_mechanisms else mechanisms,
        allow_plain_in_clear=allow_plain_in_clear,
        client_certificates=client_certificates,
        principal_mapping=principal_mapping,
        proxy_protocol=proxy_protocol,
        whitelist=cidrs,
        advertised_host=advertised_host,
        advertised_hosts=settings(advertised_hosts),
        public=public,
    )
    numbers = whole_or_null(connections=connections, connections_per_address=connections_per_address)
    body = {**members, **numbers, **_end(closes_at), **({"whitelist": None} if as_instance else {})}
    if not body:
        raise Misused("name what is to be different")
    of(ctx).start(ops.ROUTE_CHANGE, wait=wait, body=body, instance_id=instance, route_id=route)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, instance: Instance, route: Route, yes: Yes = False, wait: Wait = True) -> None:
    """Close a route, with its connections. Its ports are nobody's for a week."""
    session = of(ctx)
    session.confirm(f"This closes the route {route} with its connections.", route, yes=yes)
    session.start(ops.ROUTE_DELETE, wait=wait, instance_id=instance, route_id=route)


@app.add("certificate", rehearses=True)
def certificate(
    ctx: typer.Context,
    instance: Instance,
    route: Route,
    chain: Annotated[
        Path | None, typer.Option(help="PEM: one of your own, the route's certificate first.", exists=True)
    ] = None,
    key: Annotated[Path | None, typer.Option(help="PEM: its private key, not encrypted.", exists=True)] = None,
    issued: Annotated[bool, typer.Option("--issued", help="Back to one that the instance's authority issues.")] = False,
) -> None:
    """What a TLS route shows its clients; another in its place, for new connections within 2 s."""
    session = of(ctx)
    if issued and (chain or key):
        raise Misused("take --issued, or --chain and --key")
    if issued:
        session.change(
            ops.CERTIFICATE_GIVE_BACK,
            done="The authority of the instance issues it again.",
            instance_id=instance,
            route_id=route,
        )
    elif chain and key:
        body = {"chain": file_text(chain), "key": file_text(key)}
        session.change(ops.CERTIFICATE_BRING, body=body, instance_id=instance, route_id=route)
    elif chain or key:
        raise Misused("--chain and --key belong together")
    else:
        session.show(ops.CERTIFICATE, instance_id=instance, route_id=route)


@app.add("client-ca", rehearses=True)
def client_ca(
    ctx: typer.Context,
    instance: Instance,
    route: Route,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="PEM, one or more.", exists=True)] = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="Certificates of clients are nobody's.")] = False,
) -> None:
    """Whose certificates the route takes of its clients; for new connections within 2 s."""
    if (file is None) != nobody:
        raise Misused("name a file, or say --nobody")
    body = {"client_ca": "" if file is None else file_text(file)}
    of(ctx).change(ops.CLIENT_CA, body=body, instance_id=instance, route_id=route)


def _end(closes_at: str | None) -> dict[str, str | None]:
    if closes_at is None:
        return {}
    return {"closes_at": None if closes_at == NULL else closes_at}
