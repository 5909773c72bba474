"""Trying a change of who may do what: brokers say who would be cut off, and cut nobody off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import file_json, said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Cidrs, Commands, Instance, Yes
from controlplane.cli.session import of

app = Commands("A change of access that is tried on real traffic before it is in force.")
Acls = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="A file as acl list --output json writes it.")
]


@app.add("show")
def shown(ctx: typer.Context, instance: Instance) -> None:
    """The proposal, who would be cut off by it, and how much was judged."""
    of(ctx).show(ops.PROPOSAL, instance_id=instance)


@app.add("make", rehearses=True)
def make(
    ctx: typer.Context,
    instance: Instance,
    cidrs: Cidrs = None,
    route_cidrs: Annotated[
        list[str] | None, typer.Option("--route-cidr", help="ROUTE=CIDR: of a route's own whitelist; again for more.")
    ] = None,
    acls_added: Acls = None,
    acls_removed: Acls = None,
    allow_everyone_if_no_acl_found: Annotated[bool | None, typer.Option(help="As in the instance's settings.")] = None,
    lasts_s: Annotated[
        int | None, typer.Option("--lasts", help="Seconds, then it is discarded; by default a day.")
    ] = None,
) -> None:
    """Try a change. What is not named stays as it is; a whitelist is named as a whole."""
    body = said(
        whitelist=cidrs,
        route_whitelists=_by_route(route_cidrs),
        acls_added=_items(acls_added),
        acls_removed=_items(acls_removed),
        allow_everyone_if_no_acl_found=allow_everyone_if_no_acl_found,
        lasts_s=lasts_s,
    )
    of(ctx).change(ops.PROPOSAL_MAKE, body=body, instance_id=instance)


@app.add("discard", rehearses=True)
def discard(ctx: typer.Context, instance: Instance) -> None:
    """Discard it with what was found. What is in force stays."""
    of(ctx).change(ops.PROPOSAL_DISCARD, done="Discarded.", instance_id=instance)


@app.add("apply", rehearses=True)
def put_in_force(
    ctx: typer.Context,
    instance: Instance,
    proposal: Annotated[str, typer.Argument(metavar="PROPOSAL", help="Its id, as proposal show has it.")],
    yes: Yes = False,
) -> None:
    """Put it in force: all of it at once, within 2 s, on open connections too."""
    session = of(ctx)
    session.confirm(f"This puts {proposal} in force: whoever it cuts off is cut off.", proposal, yes=yes)
    session.change(ops.PROPOSAL_IN_FORCE, done="In force.", instance_id=instance, proposal_id=proposal)


def _by_route(pairs: list[str] | None) -> dict[str, list[str]] | None:
    if pairs is None:
        return None
    found: dict[str, list[str]] = {}
    for pair in pairs:
        route, equals, cidr = pair.partition("=")
        if not equals:
            raise Misused(f"{pair}: must be like default=10.0.0.0/8")
        found.setdefault(route, []).append(cidr)
    return found


def _items(path: Path | None) -> list[Any] | None:
    if path is None:
        return None
    found = file_json(path)
    items = found.get("items") if isinstance(found, dict) else found
    if not isinstance(items, list):
        raise Misused(f'{path}: must be {{"items": [...]}}')
    return items
