"""Mirrors that copy into an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from controlplane.cli import operations as ops
from controlplane.cli.options import Commands, Instance
from controlplane.cli.session import of
from controlplane.cli.tables import columns

if TYPE_CHECKING:
    from collections.abc import Mapping

app = Commands("Mirrors that copy into an instance: how far each is.")
LISTED = columns("source", "delivery", "lag", "messages_per_s", "bytes_per_s", "partitions", "waiting", "at", "silent")


@app.add("list")
def listed(ctx: typer.Context, instance: Instance) -> None:
    """Each with its lag, its rates, how many of its partitions rest or stand still, and when it was heard last."""
    of(ctx).listed(ops.MIRRORS, LISTED, limit=None, readable=_with_waiting, instance_id=instance)


@app.add("show")
def shown(ctx: typer.Context, instance: Instance) -> None:
    """All that they say: the partitions that are furthest behind, with the offsets of both sides."""
    of(ctx).show(ops.MIRRORS, instance_id=instance)


def _with_waiting(mirror: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**mirror, "waiting": sum(row["state"] != "copying" for row in mirror["furthest_behind"])}
