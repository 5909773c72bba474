"""Throttle rules: limits that a tenant sets within an instance."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import names_or_each, nullable, said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Instance, Limit, Rule, Sort, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Throttle rules: limits within an instance.")
LISTED = columns("id", "kind", "produce_mib_per_s", "consume_mib_per_s", "topics", "users", "clients", "groups")
EACH = '"*": each that no nearer rule names, with the limit for himself.'
Produce = Annotated[str | None, typer.Option("--produce", help="MiB/s, over all brokers; null: no limit.")]
Consume = Annotated[str | None, typer.Option("--consume", help="The same.")]
Topics = Annotated[list[str] | None, typer.Option("--topic", help="Of a topic rule; again for more.")]
Users = Annotated[list[str] | None, typer.Option("--user", help=f"Of a client rule; again for more. {EACH}")]
Clients = Annotated[list[str] | None, typer.Option("--client", help=f"Of a client rule: client ids. {EACH}")]
Groups = Annotated[list[str] | None, typer.Option("--group", help="Of a group rule; again for more.")]


@app.add("list")
def listed(
    ctx: typer.Context,
    instance: Instance,
    kind: Annotated[Literal["topic", "client", "group"] | None, typer.Option(help="By default all.")] = None,
    topic: Annotated[str | None, typer.Option(help="Only those that name this topic.")] = None,
    user: Annotated[str | None, typer.Option(help="Only those that name this user.")] = None,
    client: Annotated[str | None, typer.Option(help="Only those that name this client id.")] = None,
    group: Annotated[str | None, typer.Option(help="Only those that name this group.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Rules of the instance by id unless --sort says otherwise; quotas that Kafka clients have set are among them."""
    query = said(kind=kind, topic=topic, user=user, client=client, group=group, sort=sort)
    of(ctx).listed(ops.RULES, LISTED, limit=limit, query=query, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance, rule: Rule) -> None:
    """One rule."""
    of(ctx).show(ops.RULE, instance_id=instance, rule_id=rule)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    instance: Instance,
    kind: Annotated[Literal["topic", "client", "group"], typer.Argument(help="What it limits.")],
    produce: Produce = None,
    consume: Consume = None,
    topics: Topics = None,
    users: Users = None,
    clients: Clients = None,
    groups: Groups = None,
) -> None:
    """A limit, in force within 2 s."""
    members = _members(produce, consume, topics, users, clients, groups)
    of(ctx).change(ops.RULE_CREATE, body={"kind": kind, **members}, instance_id=instance)


@app.add("alter", rehearses=True)
def alter(
    ctx: typer.Context,
    instance: Instance,
    rule: Rule,
    produce: Produce = None,
    consume: Consume = None,
    topics: Topics = None,
    users: Users = None,
    clients: Clients = None,
    groups: Groups = None,
) -> None:
    """Other limits or names. Names that are given replace those of before."""
    members = _members(produce, consume, topics, users, clients, groups)
    if not members:
        raise Misused("name what is to be different")
    of(ctx).change(ops.RULE_CHANGE, body=members, instance_id=instance, rule_id=rule)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, instance: Instance, rule: Rule, yes: Yes = False) -> None:
    """The rule holds nobody any more."""
    session = of(ctx)
    session.confirm(f"This deletes the throttle rule {rule}.", rule, yes=yes)
    session.change(ops.RULE_DELETE, done=f"{rule} is deleted.", instance_id=instance, rule_id=rule)


def _members(
    produce: str | None,
    consume: str | None,
    topics: list[str] | None,
    users: list[str] | None,
    clients: list[str] | None,
    groups: list[str] | None,
) -> dict[str, object]:
    rates = nullable(produce_mib_per_s=produce, consume_mib_per_s=consume)
    names = said(topics=topics, users=names_or_each(users), clients=names_or_each(clients), groups=groups)
    return {**rates, **names}
