"""What a shell can offer: ids of instances with their names, and names of topics. One short look; silence where it fails."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer  # which reads the annotations of what completes

from controlplane.cli import operations as ops
from controlplane.cli.calling import LARGEST_PAGE
from controlplane.cli.client import Client
from controlplane.cli.errors import CliError
from controlplane.cli.profiles import chosen
from controlplane.cli.values import plain

if TYPE_CHECKING:
    from controlplane.cli.operations import Call

PATIENCE_S = 2
"""A person has pressed a key, and waits."""


def instances(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids that begin so, or whose names do."""
    found = _first_page(ctx, ops.INSTANCES)
    return [(each["id"], plain(each["name"])) for each in found if _fits(each, incomplete)]


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names that begin so, of the instance that was typed before."""
    instance_id = ctx.params.get("instance")
    if not instance_id:
        return []
    found = _first_page(ctx, ops.TOPICS, instance_id=str(instance_id))
    return [each["name"] for each in found if each["name"].startswith(incomplete)]


def _fits(instance: dict[str, Any], incomplete: str) -> bool:
    return any(str(instance[name]).startswith(incomplete) for name in ("id", "name"))


def _first_page(ctx: typer.Context, call: Call, **ids: str) -> list[dict[str, Any]]:
    try:
        client = Client(chosen(ctx.find_root().params.get("profile"), os.environ), patience_s=PATIENCE_S)
    except CliError:
        return []
    try:
        found: list[dict[str, Any]] = client.call(call, ids, query={"limit": LARGEST_PAGE})["items"]
    except CliError:
        return []
    finally:
        client.close()
    return found
