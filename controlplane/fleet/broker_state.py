"""How a broker is, in words: from where it is missed follows what may be the matter, and what that costs. Pure.

=============  ==============  ==========  ============================================================================
registered     reporting       state       why
=============  ==============  ==========  ============================================================================
yes            yes             Reporting
yes            no              Silent      it hangs, or cannot reach the flow master
no             yes             Away        it serves on without ZooKeeper, and is given nothing to lead
no             no              Away        it was stopped, has died, or its machine is cut off
yes            not known       Registered  no flow master answers
not known      yes             Reporting   ZooKeeper does not answer
not known      not known       Not known
=============  ==============  ==========  ============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SILENT = "it is registered and does not report to the flow master: it hangs, or cannot reach it"
CUT_OFF = "it reports to the flow master and is not registered in ZooKeeper: it serves on, and is given nothing to lead"
AWAY = "its registration in ZooKeeper has ended: it was stopped, has died, or its machine is cut off"
UNKNOWN = "neither ZooKeeper nor a flow master answers"


@dataclass(frozen=True, slots=True)
class BrokerState:
    """`level` is how it is drawn: running, warning, failed."""

    title: str
    level: str
    why: str = ""


def state_of(*, is_registered: bool | None, is_reporting: bool | None) -> BrokerState:
    """By the table above; None: ZooKeeper, or a master, did not answer."""
    if is_registered is None:
        return BrokerState("Reporting", "running") if is_reporting else BrokerState("Not known", "warning", UNKNOWN)
    if is_registered:
        if is_reporting is None:
            return BrokerState("Registered", "running")
        return BrokerState("Reporting", "running") if is_reporting else BrokerState("Silent", "failed", SILENT)
    return BrokerState("Away", "failed", CUT_OFF) if is_reporting else BrokerState("Away", "failed", AWAY)


def costs_of(missing: Mapping[str, int] | None) -> list[str]:
    """What the cluster lacks while a broker is away, from the master's document; nothing where all has been made good."""
    if missing is None:
        return []
    behind, without, groups = (
        missing.get(name, 0)
        for name in ("replicas_behind", "partitions_without_leader", "group_partitions_without_coordinator")
    )
    found = []
    if without:
        found.append("1 partition has no leader" if without == 1 else f"{without} partitions have no leader")
    if groups:
        many = "1 partition" if groups == 1 else f"{groups} partitions"
        found.append(f"the groups of {many} of __consumer_offsets have no coordinator")
    if behind:
        found.append("1 partition is under-replicated" if behind == 1 else f"{behind} partitions are under-replicated")
    return found
