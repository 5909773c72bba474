"""Signing in, and whom a key speaks for."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from controlplane.cli import operations as ops
from controlplane.cli import profiles
from controlplane.cli.bodies import said
from controlplane.cli.client import Client
from controlplane.cli.errors import Away, Misused, Refused
from controlplane.cli.options import Command, From, Limit, To
from controlplane.cli.output import Output
from controlplane.cli.profiles import DEFAULT, Profile, checked_key, checked_url, is_in_clear
from controlplane.cli.session import of
from controlplane.cli.tables import columns
from controlplane.cli.values import changes_text

if TYPE_CHECKING:
    from collections.abc import Mapping

AUDIT = columns("at", "actor", "action", "target", "changed", "address", "key", "request_id")
FOUND = columns("kind", "name", "where", "id", "instance_id")
SearchKind = Literal[
    "instance", "topic", "group", "user", "acl", "route", "address", "alarm", "receiver", "throttle_rule", "token_issuer",
    "lake_load", "operation", "invoice", "credit_note", "budget", "month", "member", "invitation", "role", "service_account",
    "api_key", "access_key",
]  # fmt: skip
MOST_ITEMS = 50
CHOOSING = (profiles.URL, profiles.API_KEY)


def add_to(app: typer.Typer) -> None:
    """The commands that stand beside the groups."""
    for name, command in (
        ("login", login),
        ("logout", logout),
        ("whoami", whoami),
        ("search", search),
        ("caps", caps),
        ("metrics", metrics),
        ("audit", audit),
        ("audit-verify", audit_verify),
    ):
        app.command(name, cls=Command)(command)


def login(
    ctx: typer.Context,
    url: Annotated[str, typer.Option(help="Such as https://sluice.example.com.")],
    allow_http: Annotated[
        bool, typer.Option("--allow-http", help="Send the key in clear, to another machine than this one.")
    ] = False,
) -> None:
    """Sign in: keep an API key for an address.

    The key is asked for and never shown. Where standard input is no terminal, it is read from there.
    """
    session = of(ctx)
    name, address = session.profile or DEFAULT, checked_url(url)
    if is_in_clear(address) and not allow_http:
        raise Misused(
            "over http everybody on the way can read the key",
            notes=("Take https, or say --allow-http if that is meant.",),
        )
    profile = Profile(address, _asked_key())
    client = Client(profile, sleep=session.clock.sleep)
    try:
        caller = client.call(ops.ME)
    finally:
        client.close()
    if not isinstance(caller, dict) or "organisation" not in caller:
        raise Away(f"{address} answers, and not as Sluice does")
    path = profiles.keep(name, profile)
    session.output.document(caller)
    session.output.note(f"Signed in to {address} as profile {name}; the key is in {path}, which only you may read.")
    _warn_of_environment(session.output)


def logout(ctx: typer.Context) -> None:
    """Forget the key of a profile on this machine. It stays valid: sluice key revoke ends it."""
    session = of(ctx)
    profiles.forget(session.profile or DEFAULT)
    session.output.note("Forgotten on this machine. The key itself stays valid until it is revoked.")


def whoami(ctx: typer.Context) -> None:
    """Whom the key speaks for, and in which organisation and role."""
    of(ctx).show(ops.ME)


def audit(
    ctx: typer.Context,
    actor: Annotated[str | None, typer.Option(help="An email, or system.")] = None,
    action: Annotated[str | None, typer.Option(help="Such as topic.create; topic is every action on topics.")] = None,
    target: Annotated[str | None, typer.Option(help="What was changed, whole.")] = None,
    start: From = None,
    end: To = None,
    limit: Limit = None,
    csv: Annotated[bool, typer.Option("--csv", help="All of it as a file, with what was changed: > FILE.")] = False,
) -> None:
    """Who asked for which change in the organisation, from where, the newest first."""
    query = said(**{"actor": actor, "action": action, "target": target, "from": start, "to": end})
    if csv and limit is not None:
        raise Misused("the file holds all of it: --limit is of the list")
    if csv:
        of(ctx).file(ops.AUDIT_FILE, query=query)
    else:
        of(ctx).listed(ops.AUDIT_TRAIL, AUDIT, limit=limit, query=query, readable=_with_changes)


def _with_changes(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was changed, in one text."""
    return {**entry, "changed": changes_text(entry.get("before"), entry.get("after"))}


def audit_verify(
    ctx: typer.Context,
    after: Annotated[int, typer.Option(min=0, help="The number of an entry: those behind it. By default all.")] = 0,
    kept_hash: Annotated[
        str | None, typer.Option("--hash", help="What you know the hash of that entry to be; goes with --after.")
    ] = None,
) -> None:
    """Compute the chain of the audit log again. Ends with 1, and names the first entry, where it is not as it was written."""
    session, checked = of(ctx), 0
    query = said(after=after, hash=kept_hash)
    while True:
        found = session.call(ops.AUDIT_VERIFY, query=query)
        checked += found["checked"]
        if found["next"] is None:
            break
        query = {"after": found["next"], "hash": found["last"]["hash"]}
    session.output.document({**found, "checked": checked})
    if found["broken"]:
        raise Refused(f"the audit log is not as it was written: {found['broken']['detail']}")


def search(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words of a name, an id, a tag, a note or an address.")],
    kind: Annotated[SearchKind | None, typer.Option(help="Of this kind alone.")] = None,
    instance: Annotated[
        str | None, typer.Option(metavar="INSTANCE", help="Its id or name: it is looked through first.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST_ITEMS, help="Items of each kind.")] = 5,
) -> None:
    """Look for something by a part of its name, in everything that the key may see.

    Groups are those that were seen in the last ten minutes; no broker is asked.
    """
    session = of(ctx)
    instance_id = session.instance_id(instance) if instance else None
    found = session.call(ops.SEARCH, query=said(q=text, kind=kind, limit=limit, instance_id=instance_id))
    session.output.pages([found], FOUND)
    for each in found["kinds"]:
        if each["has_more"]:
            helps = limit < MOST_ITEMS
            use = f": use --kind {each['kind']} --limit {MOST_ITEMS}" if helps else ""
            session.output.note(f"More of kind {each['kind']}{use}.")
        if each["is_partial"]:
            session.output.note(f"Not every {each['kind']} was searched.")


def caps(ctx: typer.Context) -> None:
    """What the organisation may have, and how much of it is in use."""
    of(ctx).show(ops.CAPS)


def metrics(ctx: typer.Context) -> None:
    """The health of instances, as Prometheus reads it."""
    of(ctx).text(ops.METRICS)


def _asked_key() -> str:
    is_person = sys.stdin.isatty()
    return checked_key(typer.prompt("API key", hide_input=True, err=True) if is_person else sys.stdin.readline())


def _warn_of_environment(output: Output) -> None:
    found = [name for name in CHOOSING if os.environ.get(name)]
    if found:
        output.note(f"{' and '.join(found)} in the environment will be gone by all the same.")
