"""Who belongs to the organisation, and who is invited into it."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import typer

from controlplane.cli import operations as ops
from controlplane.cli.bodies import role_typed, said
from controlplane.cli.errors import Missing
from controlplane.cli.options import Commands, Limit, Sort, Yes
from controlplane.cli.session import Session, of
from controlplane.cli.tables import columns
from controlplane.cli.values import plain

app = Commands("Members: who belongs to the organisation, and as what.")
invitation_app = Commands("Invitations: who is to belong to it.")
LISTED = columns("id", "email", "name", "role", own_role="custom_role.name", second_factor="second_factor")
INVITED = columns(
    "id", "email", "role", own_role="custom_role.name", invited_by="invited_by", created_at="created_at",
    expires_at="expires_at", is_mailed="is_mailed",
)  # fmt: skip
Role = Literal["owner", "operator", "billing", "member", "viewer"]
Member = Annotated[str, typer.Argument(metavar="MEMBER", help="The address, or the id.")]
RoleArgument = Annotated[
    str,
    typer.Argument(metavar="ROLE", help="owner, operator, billing, member, viewer, or the id of a role of your own."),
]


@app.add("list")
def listed(
    ctx: typer.Context,
    prefix: Annotated[str | None, typer.Option(help="Only those whose addresses begin so.")] = None,
    role: Annotated[Role | None, typer.Option(help="Only those who have this role.")] = None,
    custom_role: Annotated[
        str | None, typer.Option(help="Only those who have this role of your own, by its id.")
    ] = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Members and their roles."""
    query = said(prefix=prefix, role=role, custom_role=custom_role, sort=sort)
    of(ctx).listed(ops.MEMBERS, LISTED, limit=limit, query=query)


@app.add("show")
def show(ctx: typer.Context, member: Member) -> None:
    """One of them."""
    session = of(ctx)
    session.show(ops.MEMBER, membership_id=membership_id_of(session, member))


@app.add("role", rehearses=True)
def role(ctx: typer.Context, member: Member, role: RoleArgument) -> None:
    """Another role: owners decide all, operators run instances, billing is about bills, members change most, viewers look."""
    session = of(ctx)
    one, own = role_typed(role, names=get_args(Role))
    body = said(role=one, custom_role=own)
    session.change(ops.MEMBER_ROLE, body=body, membership_id=membership_id_of(session, member))


@app.add("remove", rehearses=True)
def remove(ctx: typer.Context, member: Member, yes: Yes = False) -> None:
    """Take a member out. Their keys of this organisation are revoked for good."""
    session = of(ctx)
    membership_id = membership_id_of(session, member)
    session.confirm(f"This takes {member} out, and revokes their keys of this organisation.", member, yes=yes)
    session.change(ops.MEMBER_REMOVE, done=f"{member} is no member any more.", membership_id=membership_id)


@app.add("invite", rehearses=True)
def invite(
    ctx: typer.Context,
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="They need not have an account yet.")],
    role: Annotated[
        str, typer.Option(help="owner, operator, billing, member, viewer, or the id of a role of your own.")
    ] = "member",
) -> None:
    """Invite a person. The link goes to them by mail; where the service sends none, send it yourself: it is shown this once."""
    session = of(ctx)
    one, own = role_typed(role, names=get_args(Role))
    answer = session.change(ops.INVITE, body=said(email=email, role=one, custom_role=own))
    if answer["link"]:
        session.output.note("The link is shown this once: send it to them.")


@invitation_app.add("list")
def invitations(ctx: typer.Context, sort: Sort = None, limit: Limit = None) -> None:
    """Invitations that are open, expired ones too."""
    of(ctx).listed(ops.INVITATIONS, INVITED, limit=limit, query=said(sort=sort))


@invitation_app.add("withdraw", rehearses=True)
def withdraw(
    ctx: typer.Context, invitation: Annotated[str, typer.Argument(metavar="INVITATION", help="Its id.")]
) -> None:
    """Its link leads nowhere from now on."""
    of(ctx).change(ops.INVITATION_WITHDRAW, done=f"{invitation} is withdrawn.", invitation_id=invitation)


def membership_id_of(session: Session, member: str) -> str:
    """Of who was named by id or address. Raises Missing."""
    if member.isascii() and member.isdigit():
        return member
    wanted = member.strip().lower()
    for page in session.client.pages(ops.MEMBERS):
        for each in page["items"]:
            if each["email"] == wanted:
                return str(each["id"])
    raise Missing(f"there is no member {plain(member)}")
