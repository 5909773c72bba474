"""ACLs: who may do what with which resource, in Kafka's words."""

from __future__ import annotations

import sys
from typing import Annotated, Any, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import file_json, said
from controlplane.cli.errors import Missing, Misused
from controlplane.cli.options import (
    Commands,
    File,
    Instance,
    Limit,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    Sort,
    Yes,
)
from controlplane.cli.session import Session, of
from controlplane.cli.tables import columns

app = Commands("ACLs: who may do what with which resource.")
LISTED = columns("principal", "host", "permission", "operation", "resource_type", "pattern_type", "resource_name")

Who = Annotated[str | None, typer.Option("--principal", help="User:NAME.")]
Host = Annotated[str | None, typer.Option(help='"*", an address or a CIDR block.')]
AnyOperation = Annotated[Literal[Operation, "ANY"] | None, typer.Option("--operation", case_sensitive=False)]
AnyPermission = Annotated[Literal[Permission, "ANY"] | None, typer.Option("--permission", case_sensitive=False)]
AnyType = Annotated[Literal[ResourceType, "ANY"] | None, typer.Option("--resource-type", case_sensitive=False)]
AnyName = Annotated[str | None, typer.Option("--resource-name")]
AnyPattern = Annotated[
    Literal[PatternType, "MATCH", "ANY"] | None,
    typer.Option("--pattern-type", case_sensitive=False, help="MATCH: all that a resource of this name has."),
]
Pattern = Annotated[PatternType, typer.Option("--pattern-type", case_sensitive=False)]
Principal = Annotated[str, typer.Option("--principal", help="User:NAME, or User:* for everybody.")]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    principal: Who = None,
    host: Host = None,
    operation: AnyOperation = None,
    permission: AnyPermission = None,
    resource_type: AnyType = None,
    resource_name: AnyName = None,
    pattern_type: AnyPattern = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """ACLs that fit all of the options; those that Kafka clients have made are among them."""
    query = _members(principal, host, operation, permission, resource_type, resource_name, pattern_type)
    of(ctx).listed(ops.ACLS, LISTED, limit=limit, query=query | said(sort=sort), instance_id=instance)


@app.add("add", rehearses=True)
def add(
    ctx: typer.Context,
    instance: Instance,
    principal: Principal,
    operation: Annotated[Operation, typer.Option(case_sensitive=False)],
    resource_type: Annotated[ResourceType, typer.Option(case_sensitive=False)],
    resource_name: Annotated[str, typer.Option(help='"*" with LITERAL: each of its type.')],
    host: Host = None,
    permission: Annotated[Permission, typer.Option(case_sensitive=False)] = "ALLOW",
    pattern_type: Pattern = "LITERAL",
) -> None:
    """A new ACL, in force within 2 s, on open connections too. One that is there already stays."""
    body = _members(principal, host, operation, permission, resource_type, resource_name, pattern_type)
    of(ctx).change(ops.ACL_CREATE, body=body, instance_id=instance)


@app.add("import", rehearses=True)
def import_(ctx: typer.Context, instance: Instance, file: File) -> None:
    """Several ACLs, all or none, from a file as "acl list --output json" writes it."""
    found = file_json(file)
    items = found.get("items") if isinstance(found, dict) else found
    if not isinstance(items, list):
        raise Misused(f'{file}: must be {{"items": [...]}}')
    session = of(ctx)
    _print(session, session.call(ops.ACLS_CREATE, body={"items": items}, instance_id=instance))


@app.add("preset", rehearses=True)
def preset(
    ctx: typer.Context,
    instance: Instance,
    kind: Annotated[Literal["producer", "consumer"], typer.Argument(help="What kind of program.")],
    principal: Principal,
    topic: Annotated[str, typer.Option()],
    group: Annotated[str | None, typer.Option(help="Of a consumer, which needs one.")] = None,
    host: Host = None,
    pattern_type: Annotated[
        PatternType, typer.Option(case_sensitive=False, help="Of both names. PREFIXED: for topics to come, too.")
    ] = "LITERAL",
) -> None:
    """The ACLs that a producer of a topic needs, or a consumer in a group."""
    session = of(ctx)
    body = said(preset=kind, principal=principal, topic=topic, group=group, host=host, pattern_type=pattern_type)
    _print(session, session.call(ops.ACLS_PRESET, body=body, instance_id=instance))


@app.add("remove", rehearses=True)
def remove(
    ctx: typer.Context,
    instance: Instance,
    principal: Who = None,
    host: Host = None,
    operation: AnyOperation = None,
    permission: AnyPermission = None,
    resource_type: AnyType = None,
    resource_name: AnyName = None,
    pattern_type: AnyPattern = None,
    yes: Yes = False,
) -> None:
    """Delete the ACLs that fit all of the options. They are shown first; --resource-type ANY means every one."""
    session = of(ctx)
    wanted = _members(principal, host, operation, permission, resource_type, resource_name, pattern_type)
    if not wanted:
        raise Misused("say which; --resource-type ANY means every ACL of the instance")
    if not yes:
        pages = session.client.pages(ops.ACLS, {"instance_id": session.instance_id(instance)}, query=wanted)
        count = _shown_to_be_deleted([each for page in pages for each in page["items"]])
        session.confirm(f"This deletes {count} ACLs.", str(count), yes=False)
    _print(session, session.call(ops.ACLS_DELETE, body=wanted, instance_id=instance))


def _shown_to_be_deleted(found: list[dict[str, Any]]) -> int:
    if not found:
        raise Missing("no ACL fits")
    for each in found:
        sys.stderr.write(" ".join(str(each[path]) for _, path in LISTED) + "\n")
    return len(found)


def _print(session: Session, answer: dict[str, Any]) -> None:
    session.output.pages([answer], LISTED)


def _members(
    principal: str | None,
    host: str | None,
    operation: str | None,
    permission: str | None,
    resource_type: str | None,
    resource_name: str | None,
    pattern_type: str | None,
) -> dict[str, Any]:
    return said(
        principal=principal,
        host=host,
        operation=operation,
        permission=permission,
        resource_type=resource_type,
        resource_name=resource_name,
        pattern_type=pattern_type,
    )
