"""Budgets of months: what they may cost, and who is told."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.errors import Misused
from controlplane.cli.options import Commands, Limit, Prefix, Sort, Yes
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Budgets: who is told when a month becomes dear.")
LISTED = columns("id", "name", "instance_id", "amount", "currency", "so_far", "percent", "forecast", "forecast_percent")
ALERTS = columns("at", "month", "kind", "percent", "amount", "so_far", "forecast", "messages")
Budget = Annotated[str, typer.Argument(metavar="BUDGET", help="Its id.")]
Actual = Annotated[list[int] | None, typer.Option("--actual", help="Percent of the cost so far; again for more.")]
Forecast = Annotated[list[int] | None, typer.Option("--forecast", help="Percent of the forecast; again for more.")]
Receivers = Annotated[list[str] | None, typer.Option("--receiver", help="The id of one; again for more.")]


@app.add("list")
def listed(
    ctx: typer.Context,
    prefix: Prefix = None,
    instance: Annotated[str | None, typer.Option(help="Only those of this instance, by its id.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Budgets and how they stand this month."""
    of(ctx).listed(ops.BUDGETS, LISTED, limit=limit, query=said(prefix=prefix, instance_id=instance, sort=sort))


@app.add("show")
def shown(ctx: typer.Context, budget: Budget) -> None:
    """One budget."""
    of(ctx).show(ops.BUDGET, budget_id=budget)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="To tell it from others.")],
    amount: Annotated[str, typer.Argument(help="A month's, in the currency of the plan, such as 1500.00.")],
    instance: Annotated[str | None, typer.Option(help="Of this one alone; by default of all together.")] = None,
    actual: Actual = None,
    forecast: Forecast = None,
    receivers: Receivers = None,
) -> None:
    """What a month may cost; told at 50, 80 and 100 % of it, and when the forecast is 100 %, unless said otherwise."""
    session = of(ctx)
    body = {"name": name, "amount": amount, **_members(actual, forecast, receivers)}
    wanted = None if instance is None else session.instance_id(instance)
    session.change(ops.BUDGET_CREATE, body=body | said(instance_id=wanted))


@app.add("alter", rehearses=True)
def alter(
    ctx: typer.Context,
    budget: Budget,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    amount: Annotated[str | None, typer.Option(help="Another amount.")] = None,
    actual: Actual = None,
    forecast: Forecast = None,
    receivers: Receivers = None,
    no_receivers: Annotated[bool, typer.Option("--no-receivers", help="Nobody is told.")] = False,
) -> None:
    """Other members; what is given several times replaces all before."""
    body = said(name=name, amount=amount) | _members(actual, forecast, [] if no_receivers else receivers)
    if not body:
        raise Misused("name what is to be different")
    of(ctx).change(ops.BUDGET_CHANGE, body=body, budget_id=budget)


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, budget: Budget, yes: Yes = False) -> None:
    """It is looked at no more, and its history goes."""
    session = of(ctx)
    session.confirm(f"This deletes the budget {budget}.", budget, yes=yes)
    session.change(ops.BUDGET_DELETE, done=f"{budget} is deleted.", budget_id=budget)


@app.add("history")
def history(ctx: typer.Context, budget: Budget, limit: Limit = None) -> None:
    """Thresholds that were reached, in all months, the newest first."""
    of(ctx).listed(ops.BUDGET_ALERTS, ALERTS, limit=limit, budget_id=budget)


def _members(actual: list[int] | None, forecast: list[int] | None, receivers: list[str] | None) -> dict[str, object]:
    return said(actual_percents=actual, forecast_percents=forecast, receivers=receivers)
