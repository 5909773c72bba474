"""What a shell can offer: ids with their names, and names, of what an account has. One short look; silence where it fails."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer  # which reads the annotations of what completes

from controlplane.cli import operations as ops
from controlplane.cli.calling import LARGEST_PAGE
from controlplane.cli.client import Client
from controlplane.cli.errors import CliError
from controlplane.cli.profiles import chosen
from controlplane.cli.values import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controlplane.cli.operations import Call

PATIENCE_S = 2
"""A person has pressed a key, and waits."""
NOTHING: Mapping[str, str] = MappingProxyType({})


def instances(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids that begin so, each with its name."""
    return _ids(_first_page(ctx, ops.INSTANCES), incomplete, "name")


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names that begin so, of the instance that was typed before."""
    return _names(ctx, ops.TOPICS, incomplete)


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """The same of consumer groups."""
    return _names(ctx, ops.GROUPS, incomplete)


def users(ctx: typer.Context, incomplete: str) -> list[str]:
    """The same of Kafka users."""
    return _names(ctx, ops.USERS, incomplete)


def routes(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids that begin so, of the instance that was typed before, each with its security."""
    return _ids(_of_instance(ctx, ops.ROUTES), incomplete, "security")


def rules(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The same of throttle rules, each with its kind."""
    return _ids(_of_instance(ctx, ops.RULES), incomplete, "kind")


def alarms(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids that begin so, of the instance that was typed before, each with its name."""
    return _ids(_of_instance(ctx, ops.ALARMS), incomplete, "name")


def api_keys(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids that begin so, each with its name."""
    return _ids(_first_page(ctx, ops.API_KEYS), incomplete, "name")


def access_keys(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The same of access keys."""
    return _ids(_first_page(ctx, ops.ACCESS_KEYS), incomplete, "name")


def operations(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids of the newest that begin so, each with its kind."""
    return _ids(_first_page(ctx, ops.OPERATIONS), incomplete, "kind")


def _ids(found: list[dict[str, Any]], incomplete: str, beside: str) -> list[tuple[str, str]]:
    """Ids that begin so, with the member that stands beside them. Typer passes over what does not begin so."""
    return [(each["id"], plain(str(each[beside]))) for each in found if each["id"].startswith(incomplete)]


def _names(ctx: typer.Context, call: Call, incomplete: str) -> list[str]:
    """The API looks for the beginning: an instance may have more than a page of them."""
    found = _of_instance(ctx, call, **({"prefix": incomplete} if incomplete else {}))
    return [each["name"] for each in found if each["name"].startswith(incomplete)]


def _of_instance(ctx: typer.Context, call: Call, **query: str) -> list[dict[str, Any]]:
    instance_id = ctx.params.get("instance")
    return _first_page(ctx, call, query, instance_id=str(instance_id)) if instance_id else []


def _first_page(ctx: typer.Context, call: Call, query: Mapping[str, str] = NOTHING, **ids: str) -> list[dict[str, Any]]:
    try:
        client = Client(chosen(ctx.find_root().params.get("profile"), os.environ), patience_s=PATIENCE_S)
    except CliError:
        return []
    try:
        found: list[dict[str, Any]] = client.call(call, ids, query={"limit": LARGEST_PAGE, **query})["items"]
    except CliError:
        return []
    finally:
        client.close()
    return found
