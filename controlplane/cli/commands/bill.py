"""Bills of a month, invoices, credit notes and statements, and whether an invoice is what its rows give."""

from __future__ import annotations

from typing import Annotated

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.errors import Refused
from controlplane.cli.options import Commands, Instance, Limit, Sort
from controlplane.cli.session import of
from controlplane.cli.tables import columns

app = Commands("Bills, invoices, credit notes and statements.")
INVOICES = columns("number", "month", "instance_id", "total", "currency", "created_at")
NOTES = columns("number", "invoice", "month", "instance_id", "amount", "currency", "created_at")
Note = Annotated[str, typer.Argument(metavar="NUMBER", help="Such as crn-00000001.")]
Number = Annotated[str, typer.Argument(metavar="NUMBER", help="Such as inv-00000001.")]
OfMonth = Annotated[str | None, typer.Option(help="YYYY-MM, UTC; by default the present one.")]


@app.add("show")
def shown(
    ctx: typer.Context,
    instance: Instance,
    month: OfMonth = None,
    plan: Annotated[
        str | None, typer.Option(help="What it would be under another plan: pro, traffic, pro-usd or traffic-usd.")
    ] = None,
) -> None:
    """The bill of a month: so far, or as invoiced. It can be had after the instance is deleted, too."""
    of(ctx).show(ops.BILL, query=said(month=month, plan=plan), instance_id=instance)


@app.add("plan")
def plan(ctx: typer.Context) -> None:
    """The price plan, a change that is to come, and what can be chosen, with prices in every currency."""
    of(ctx).show(ops.PLAN)


@app.add("choose-plan", rehearses=True)
def choose_plan(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PLAN", help="One of pro, traffic, pro-usd, traffic-usd.")],
    when: Annotated[str, typer.Option(help="now: from the next full hour; next_month.")] = "now",
) -> None:
    """Another price plan. One in another currency counts from the next month."""
    of(ctx).change(ops.PLAN_CHOOSE, body={"plan": name, "when": when}, done=f"{name} is chosen.")


@app.add("invoices")
def invoices(
    ctx: typer.Context,
    month: Annotated[str | None, typer.Option(help="Only those of this month: YYYY-MM.")] = None,
    instance: Annotated[str | None, typer.Option(help="Only those of this instance, by its id.")] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """The organisation's invoices, by number."""
    of(ctx).listed(ops.INVOICES, INVOICES, limit=limit, query=said(month=month, instance_id=instance, sort=sort))


@app.add("invoice")
def invoice(ctx: typer.Context, number: Number) -> None:
    """One invoice with its lines."""
    of(ctx).show(ops.INVOICE, number=number)


@app.add("pdf")
def pdf(ctx: typer.Context, number: Number) -> None:
    """One invoice as a PDF: sluice bill pdf NUMBER > invoice.pdf."""
    of(ctx).file(ops.INVOICE_PDF, number=number)


@app.add("focus")
def focus(ctx: typer.Context, number: Number) -> None:
    """One invoice in FOCUS 1.2, each line a row of CSV: sluice bill focus NUMBER > invoice.csv."""
    of(ctx).file(ops.INVOICE_FOCUS, number=number)


@app.add("verify")
def verify(ctx: typer.Context, number: Number) -> None:
    """Compute an invoice once more, from what was sealed and from today's usage. Ends with 1 where they differ."""
    found = of(ctx).change(ops.INVOICE_VERIFY, number=number)
    if not found["equal"]:
        raise Refused(f"{number} is not what its rows give")


@app.add("statement")
def statement(ctx: typer.Context, month: OfMonth = None) -> None:
    """A month's invoices of all instances, and the credit notes written in it, added up by currency."""
    of(ctx).show(ops.STATEMENT, query=said(month=month))


@app.add("statement-pdf")
def statement_pdf(ctx: typer.Context, month: OfMonth = None) -> None:
    """The same as a PDF: sluice bill statement-pdf --month 2026-11 > statement.pdf."""
    of(ctx).file(ops.STATEMENT_PDF, query=said(month=month))


@app.add("statement-focus")
def statement_focus(ctx: typer.Context, month: OfMonth = None) -> None:
    """All rows of the month's documents in FOCUS 1.2: sluice bill statement-focus --month 2026-11 > statement.csv."""
    of(ctx).file(ops.STATEMENT_FOCUS, query=said(month=month))


@app.add("credit-notes")
def credit_notes(ctx: typer.Context, sort: Sort = None, limit: Limit = None) -> None:
    """What was given back of the organisation's invoices, by number unless --sort says otherwise."""
    of(ctx).listed(ops.CREDIT_NOTES, NOTES, limit=limit, query=said(sort=sort))


@app.add("credit-note")
def credit_note(ctx: typer.Context, note: Note) -> None:
    """One credit note: how much of which invoice, and why."""
    of(ctx).show(ops.CREDIT_NOTE, note=note)


@app.add("credit-note-pdf")
def credit_note_pdf(ctx: typer.Context, note: Note) -> None:
    """One credit note as a PDF: sluice bill credit-note-pdf NUMBER > note.pdf."""
    of(ctx).file(ops.CREDIT_NOTE_PDF, note=note)


@app.add("credit-note-focus")
def credit_note_focus(ctx: typer.Context, note: Note) -> None:
    """One credit note in FOCUS 1.2, a row of CSV: sluice bill credit-note-focus NUMBER > note.csv."""
    of(ctx).file(ops.CREDIT_NOTE_FOCUS, note=note)
