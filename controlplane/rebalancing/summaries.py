"""A plan as the row keeps it: a document with the figures, without the moves, which are rows of their own. Pure.

    {"moves": 40, "leader_moves": 31, "bytes_to_copy": 987654321, "busiest_bytes": 123456789, "settled": true,
     "brokers": [{"broker": 1, "before": {"leaders": 40, …}, "after": {"leaders": 30, …}}],
     "tenants": [{"instance": "ins-k3v9x2qa", "limit": 20971520, "before": 17721589, "after": 20971520}],
     "scores": {"leaders": {"before": 100, "after": 0}}, "stuck": ["…"], "stuck_count": 0, "notes": ["…"]}

`tenants` are those whose usable bandwidth changes, or is less than what they have bought. `busiest_bytes` is what the broker
that has most to do takes in or gives out: at a throttle, that is the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controlplane.rebalancing.planner.model import Goal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.rebalancing.planner.model import BrokerLoad, Plan

MOST_STUCK = 50
"""Sentences that are kept; their number is, in any case."""
PARTLY = (
    "only a part of it was moved, so the load of each broker afterwards is not foretold: the moves are listed below"
)
MIB = 2**20


def summary_of(plan: Plan, notes: Sequence[str]) -> dict[str, Any]:
    """See the file's text."""
    return {
        "moves": len(plan.moves),
        "leader_moves": sum(move.is_leader_only for move in plan.moves),
        "bytes_to_copy": plan.bytes_to_copy,
        "busiest_bytes": max([0, *plan.bytes_in.values(), *plan.bytes_out.values()]),
        "settled": plan.settled,
        "brokers": [
            {"broker": before.broker, "before": _loads(before), "after": _loads(after)}
            for before, after in zip(plan.before, plan.after, strict=True)
        ],
        "tenants": [
            {
                "instance": each.instance,
                "limit": each.limit_bytes_per_s,
                "before": each.usable_before,
                "after": each.usable_after,
            }
            for each in plan.tenants
            if each.usable_before != each.usable_after or each.usable_after < each.limit_bytes_per_s * 99 // 100
        ],
        "scores": {
            str(goal): {"before": plan.scores_before[goal], "after": plan.scores_after[goal]}
            for goal in plan.scores_after
        },
        "stuck": [
            f"partition {each.partition} of {each.topic} cannot leave broker {each.broker}: {each.reason}"
            for each in plan.stuck[:MOST_STUCK]
        ],
        "stuck_count": len(plan.stuck),
        "notes": list(notes),
    }


def backwards(
    summary: Mapping[str, Any], *, moves: int, leader_moves: int, bytes_to_copy: int, busiest: int
) -> dict[str, Any]:
    """Of the way back: what was after is before. Where only a part was moved, nobody has reckoned what that part came to."""
    is_whole = moves == summary.get("moves")

    def turned(row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "before": row["after"], "after": row["before"]}

    return {
        **summary,
        "moves": moves,
        "leader_moves": leader_moves,
        "bytes_to_copy": bytes_to_copy,
        "busiest_bytes": busiest,
        "brokers": [turned(row) for row in summary["brokers"]] if is_whole else [],
        "tenants": [turned(row) for row in summary["tenants"]] if is_whole else [],
        "scores": {goal: turned(row) for goal, row in summary["scores"].items()} if is_whole else {},
        "stuck": [],
        "stuck_count": 0,
        "notes": [] if is_whole else [PARTLY],
    }


def returned(instance: str, topic: str, partition: int, returns: int, limit: int) -> str:
    """Such as "moving the leader of orders-4 returns 3.1 of the 20 MiB/s of ins-k3v9x2qa"."""
    return f"moving the leader of {topic}-{partition} returns {returns / MIB:.1f} of the {limit / MIB:.4g} MiB/s of {instance}"


def _loads(load: BrokerLoad) -> dict[str, int]:
    return {str(goal): load.of[goal] for goal in Goal}
