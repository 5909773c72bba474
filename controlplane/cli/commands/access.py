"""Who may do what: a question, and what happened. Users, ACLs, issuers and proposals are groups in it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.commands import acl, issuer, proposal, user
from controlplane.cli.errors import Refused
from controlplane.cli.options import Commands, From, Instance, Limit, ResourceType, To
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Access: users, ACLs, issuers of tokens, the audit.")
app.add_typer(user.app, name="user")
app.add_typer(acl.app, name="acl")
app.add_typer(issuer.app, name="issuer")
app.add_typer(proposal.app, name="proposal")
AUDIT = columns("time", "kind", "outcome", "principal", "source", "route", "operation", "resource", "reason", "count")

Asked = Literal[
    "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS",
]  # fmt: skip


@app.add("check")
def check(
    ctx: typer.Context,
    instance: Instance,
    source: Annotated[str, typer.Option(help="The address that the client connects from.")],
    operation: Annotated[Asked, typer.Option(case_sensitive=False)],
    resource_type: Annotated[ResourceType, typer.Option(case_sensitive=False)],
    resource_name: Annotated[str, typer.Option()],
    principal: Annotated[str | None, typer.Option(help="By default User:ANONYMOUS: nobody has logged in.")] = None,
    route: Annotated[str | None, typer.Option(help="By default the route called default.")] = None,
) -> None:
    """Whether somebody may do something, and which rule says so. Ends with 1 where the answer is no."""
    body = said(
        source=source,
        principal=principal,
        route=route,
        operation=operation,
        resource_type=resource_type,
        resource_name=resource_name,
    )
    found = of(ctx).change(ops.ACCESS_CHECK, body=body, instance_id=instance)
    if not found["allowed"]:
        raise Refused("he may not")


@app.add("audit")
def audit(
    ctx: typer.Context,
    instance: Instance,
    kind: Annotated[Literal["connection", "authentication", "denial", "request"] | None, typer.Option()] = None,
    outcome: Annotated[str | None, typer.Option()] = None,
    principal: Annotated[str | None, typer.Option(help="User:NAME.")] = None,
    start: From = None,
    end: To = None,
    limit: Limit = 50,
) -> None:
    """What happened at the instance, the newest first."""
    query = said(**{"kind": kind, "outcome": outcome, "principal": principal, "from": start, "to": end})
    of(ctx).listed(ops.AUDIT, AUDIT, limit=limit, query=query, instance_id=instance)
