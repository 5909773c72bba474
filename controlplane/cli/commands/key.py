"""API keys, and access keys for programs that speak the vendor's API. A secret is shown once, where it is made."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Literal

import typer

from controlplane.cli import completion
from controlplane.cli import operations as ops
from controlplane.cli.bodies import said
from controlplane.cli.options import Commands, Limit, Sort, Yes
from controlplane.cli.session import Session, of
from controlplane.cli.tables import columns

app = Commands("API keys: for this program, and for REST.")
access_app = Commands("Access keys: SecretId and SecretKey for /compat/ckafka.")
LISTED = columns(
    "id",
    "name",
    "prefix",
    "owner",
    "service_account.name",
    "scopes",
    "instances",
    "addresses",
    "expires_at",
    "last_used_at",
    "last_used_address",
    "revoked_at",
)
ACCESS_LISTED = columns("id", "name", "secret_id", "owner", "created_at", "expires_at", "last_used_at", "revoked_at")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
ONCE = "The secret is shown this once."
Name = Annotated[str, typer.Argument(metavar="NAME", help="To tell it from others.")]
Id = Annotated[str, typer.Argument(metavar="ID", autocompletion=completion.api_keys)]
AccessId = Annotated[str, typer.Argument(metavar="ID", autocompletion=completion.access_keys)]


class Scope(StrEnum):
    """What a key may do: kinds of action, and parts of these."""

    READ = "read"
    INSTANCES = "instances"
    INSTANCES_CREATE = "instances_create"
    INSTANCES_CHANGE = "instances_change"
    INSTANCES_DELETE = "instances_delete"
    TOPICS = "topics"
    TOPICS_CHANGE = "topics_change"
    TOPICS_DELETE = "topics_delete"
    GROUPS = "groups"
    MESSAGES = "messages"
    MESSAGES_SEND = "messages_send"
    MESSAGES_DELETE = "messages_delete"
    MESSAGES_LOAD = "messages_load"
    ACCESS = "access"
    ALARMS = "alarms"
    BILLING = "billing"
    AUDIT = "audit"
    MEMBERS = "members"


Scopes = Annotated[
    list[Scope] | None, typer.Option("--scope", help="What it may do; again for more. By default all that you may.")
]
Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance", help="For this one alone, by id or name; again for more.", autocompletion=completion.instances
    ),
]
Addresses = Annotated[
    list[str] | None, typer.Option("--cidr", help="From there alone: an address or a CIDR block; again for more.")
]
Expires = Annotated[
    str | None, typer.Option("--expires", help="RFC 3339, or a date: its beginning, in UTC. By default never.")
]

NamePrefix = Annotated[str | None, typer.Option(help="Only those whose names begin so.")]
KeyState = Annotated[Literal["active", "asleep", "expired", "revoked"] | None, typer.Option(help="By default all.")]
Owner = Annotated[str | None, typer.Option(help="Only those of the person with this address.")]
UnusedSince = Annotated[
    str | None, typer.Option("--last-used-before", help="Only those not used since: a date or RFC 3339, in UTC.")
]


@app.add("list")
def listed(
    ctx: typer.Context,
    name_prefix: NamePrefix = None,
    owner: Owner = None,
    state: KeyState = None,
    last_used_before: UnusedSince = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """API keys of the organisation, revoked ones too; never a secret."""
    query = said(name_prefix=name_prefix, owner=owner, state=state, last_used_before=last_used_before, sort=sort)
    of(ctx).listed(ops.API_KEYS, LISTED, limit=limit, query=query)


@app.add("create", rehearses=True)
def create(
    ctx: typer.Context,
    name: Name,
    scope: Scopes = None,
    instance: Instances = None,
    address: Addresses = None,
    expires: Expires = None,
) -> None:
    """A new key with your own rights, or fewer."""
    session = of(ctx)
    limits = limits_of(session, scopes=scope, instances=instance, addresses=address, expires_at=expires)
    session.change(ops.API_KEY_CREATE, body={"name": name, **limits})
    session.output.note(ONCE)


def limits_of(
    session: Session,
    *,
    scopes: list[Scope] | None,
    instances: list[str] | None,
    addresses: list[str] | None,
    expires_at: str | None,
) -> dict[str, Any]:
    """Members of the request for a new key; what was not typed is no limit."""
    ids = [session.instance_id(each) for each in instances] if instances else None
    names = [each.value for each in scopes] if scopes else None
    return said(scopes=names, instances=ids, addresses=addresses or None, expires_at=_moment(expires_at))


def _moment(text: str | None) -> str | None:
    """A date as the moment when it begins."""
    return f"{text}T00:00:00Z" if text and DATE.fullmatch(text) else text


@app.add("rotate", rehearses=True)
def rotate(
    ctx: typer.Context,
    key: Id,
    overlap_s: Annotated[
        int, typer.Option("--overlap", min=0, help="Seconds in which the secret of before is good as well.")
    ] = 24 * 3600,
    yes: Yes = False,
) -> None:
    """Another secret for a key of your own, or of a service account."""
    session = of(ctx)
    if not overlap_s:
        session.confirm(f"This ends the present secret of {key} at once.", key, yes=yes)
    session.change(ops.API_KEY_ROTATE, body={"overlap_s": overlap_s}, key_id=key)
    session.output.note(ONCE)


@app.add("revoke", rehearses=True)
def revoke(ctx: typer.Context, key: Id, yes: Yes = False) -> None:
    """End a key, from the next request on."""
    session = of(ctx)
    session.confirm(f"This revokes {key}: whatever uses it is refused from now on.", key, yes=yes)
    session.change(ops.API_KEY_REVOKE, done=f"{key} is revoked.", key_id=key)


@access_app.add("list")
def access_listed(
    ctx: typer.Context,
    name_prefix: NamePrefix = None,
    owner: Owner = None,
    state: KeyState = None,
    last_used_before: UnusedSince = None,
    sort: Sort = None,
    limit: Limit = None,
) -> None:
    """Access keys of the organisation, revoked ones too; never a secret."""
    query = said(name_prefix=name_prefix, owner=owner, state=state, last_used_before=last_used_before, sort=sort)
    of(ctx).listed(ops.ACCESS_KEYS, ACCESS_LISTED, limit=limit, query=query)


@access_app.add("create", rehearses=True)
def access_create(
    ctx: typer.Context,
    name: Name,
    expires: Annotated[
        str | None,
        typer.Option("--expires", help="RFC 3339, or a date: its beginning, in UTC; or never. By default in 90 days."),
    ] = None,
) -> None:
    """A new pair of SecretId and SecretKey with your own rights."""
    session = of(ctx)
    ends = {} if expires is None else {"expires_at": None if expires == "never" else _moment(expires)}
    session.change(ops.ACCESS_KEY_CREATE, body={"name": name, **ends})
    session.output.note(ONCE)


@access_app.add("revoke", rehearses=True)
def access_revoke(ctx: typer.Context, key: AccessId, yes: Yes = False) -> None:
    """End an access key: what is signed with it is refused from now on."""
    session = of(ctx)
    session.confirm(f"This revokes {key}: what is signed with it is refused from now on.", key, yes=yes)
    session.change(ops.ACCESS_KEY_REVOKE, done=f"{key} is revoked.", access_key_id=key)
