"""The organisation itself: its name, who owns it, its end."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import role_typed, said
from controlplane.cli.commands.member import Member, membership_id_of
from controlplane.cli.options import Commands, Yes
from controlplane.cli.session import Session, of

app = Commands("The organisation: its name, its owners, its deletion. Owners decide.")
StepDown = Literal["operator", "billing", "member", "viewer"]


@app.add("show")
def shown(ctx: typer.Context) -> None:
    """The organisation that the key is of."""
    session = of(ctx)
    session.show(ops.ORGANISATION, organisation_id=_own(session)["id"])


@app.add("rename", rehearses=True)
def rename(
    ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="What it is to be called.")]
) -> None:
    """Another name. The id stays; invoices show the new name from now on."""
    session = of(ctx)
    session.change(ops.ORGANISATION_RENAME, body={"name": name}, organisation_id=_own(session)["id"])


@app.add("transfer", rehearses=True)
def transfer(
    ctx: typer.Context,
    member: Member,
    step_down: Annotated[
        str | None,
        typer.Option(
            help="What you are then: operator, billing, member, viewer, or the id of one of your own. Left out: an owner still."
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Make another member owner, and step down if you say so. Both of you are told by e-mail."""
    session = of(ctx)
    role, own = role_typed(step_down, names=get_args(StepDown))
    membership_id = membership_id_of(session, member)
    afterwards = "You are an owner still." if step_down is None else f"You are {step_down} then, and decide no more."
    session.confirm(f"This makes {member} an owner, who decides everything. {afterwards}", member, yes=yes)
    body = said(member_id=int(membership_id), step_down_to=role, custom_role=own)
    session.change(ops.ORGANISATION_TRANSFER, body=body, organisation_id=_own(session)["id"])


@app.add("obstacles")
def obstacles(ctx: typer.Context) -> None:
    """What keeps the organisation from being deleted. Nothing: it can be."""
    session = of(ctx)
    session.show(ops.ORGANISATION_OBSTACLES, organisation_id=_own(session)["id"])


@app.add("delete", rehearses=True)
def delete(ctx: typer.Context, yes: Yes = False) -> None:
    """Delete the organisation, in 7 days. At once nobody uses it, and its keys are refused, this one too."""
    session = of(ctx)
    own = _own(session)
    session.confirm(
        f"This deletes the organisation {own['name']} in 7 days: its members, keys, roles and settings. From now on nobody uses "
        "it, and until then an owner can take it back in the console, not here.",
        own["name"],
        yes=yes,
    )
    session.change(ops.ORGANISATION_DELETE, body={"name": own["name"]}, organisation_id=own["id"])


def _own(session: Session) -> dict[str, str]:
    """Id and name of the organisation that the key is of."""
    found: dict[str, str] = session.call(ops.ME)["organisation"]
    return found
