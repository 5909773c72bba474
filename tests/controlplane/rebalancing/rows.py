"""A proposal as a row, for tests of lists that know nothing of planning."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from controlplane.rebalancing.models import Rebalance, RebalanceEvent, RebalanceMove, RebalanceState
from controlplane.rebalancing.planner.model import Goal

if TYPE_CHECKING:
    from controlplane.clusters.models import PhysicalCluster

MIB = 2**20
AT = datetime(2026, 5, 2, 9, tzinfo=UTC)


def rebalance_row(
    cluster: PhysicalCluster,
    rebalance_id: str = "reb-000000000001",
    *,
    state: RebalanceState = RebalanceState.PROPOSED,
    instance: str = "",
    moves: int = 3,
) -> Rebalance:
    """With moves, a summary and an event."""
    loads = {str(goal): {"before": (number + 1) * 40, "after": 100} for number, goal in enumerate(Goal)}
    summary = {
        "moves": moves,
        "leader_moves": 1,
        "bytes_to_copy": moves * 100 * MIB,
        "busiest_bytes": moves * 70 * MIB,
        "settled": True,
        "brokers": [
            {
                "broker": broker,
                "before": {name: each["before"] * broker for name, each in loads.items()},
                "after": {name: each["after"] for name, each in loads.items()},
            }
            for broker in (1, 2, 3)
        ],
        "tenants": [{"instance": instance, "limit": 20 * MIB, "before": 17 * MIB, "after": 20 * MIB}]
        if instance
        else [],
        "scores": {name: {"before": 10_000, "after": 0} for name in loads},
        "stuck": ["partition 3 of __usage cannot leave broker 2: no other broker may take it"],
        "stuck_count": 1,
        "notes": [],
    }
    row = Rebalance(
        id=rebalance_id,
        cluster=cluster,
        state=state,
        wishes={"goals": ["leaders"]},
        summary=summary,
        throttle_bytes_per_s=50 * MIB,
        at_once=20,
        created_by="olga@example.com",
        created_at=AT,
        expires_at=AT + timedelta(days=1),
    )
    row.save(force_insert=True)
    key = instance.removeprefix("ins-") or "__usage"
    RebalanceMove.objects.bulk_create(
        RebalanceMove(
            rebalance=row,
            number=number,
            topic=f"{key}.orders" if instance else key,
            partition=number,
            instance=instance,
            before=[1, 2, 3],
            after=[2, 3, 4],
            size_bytes=100 * MIB,
            copies=True,
            bytes_to_copy=100 * MIB,
            copied_bytes=number * MIB,
            returns_bytes_per_s=3 * MIB if instance else 0,
            state=["done", "moving", "waiting"][number % 3],
        )
        for number in range(moves)
    )
    RebalanceEvent(rebalance=row, actor="olga@example.com", action="propose", at=AT).save(force_insert=True)
    return row
