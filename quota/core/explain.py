"""Why an instance is throttled on a broker, in one sentence for the tenant.

The usual surprise is to be slowed down below what was bought: flow arises at leaders, so the sentence names the broker,
how much of the traffic and of the leaders it holds, what it was allowed, and what the instance used in all.
"""

from __future__ import annotations

from quota.contracts.instance import MIB
from quota.core.model import Allocation, Branch

_BECAUSE = {
    Branch.INITIAL: "every broker gets the share of its leaders while none uses 80 % of it",
    Branch.PROPORTIONAL: "the brokers are used alike, so shares follow use",
    Branch.HEADROOM: "the brokers are used unevenly, so shares follow use and less used ones may grow",
    Branch.BOUNDED: "brokers that wait share equally what the others leave",
    Branch.LEARNING: "a new master renews the shares it finds before it changes them",
    Branch.RESERVED: "the broker did not report, so it stands on the share of its leaders",
}


def explain(direction: str, allocation: Allocation, broker: int) -> str:
    """The sentence for one direction (``produce`` or ``consume``) on one broker."""
    limit, share = allocation.limit_bytes_per_s, allocation.share(broker)
    if limit is None:
        return f"{direction} is unlimited; nothing is throttled"
    if limit == 0:
        return f"{direction} is blocked: the instance's limit is 0"
    if share is None:
        return f"broker {broker} leads no partition of the instance; {direction} is not throttled there"
    total = sum(each.flow_bytes_per_s for each in allocation.shares)
    leaders = sum(each.leaders for each in allocation.shares)
    return (
        f"broker {broker} carries {_percent(share.flow_bytes_per_s, total)} of the {direction} traffic "
        f"({share.leaders} of {leaders} leaders) and may carry {_rate(share.allocation_bytes_per_s)}; the instance "
        f"uses {_percent(total, limit)} of its {_rate(limit)}; {_BECAUSE[share.branch]}"
    )


def explain_storage(used_bytes: int, limit_bytes: int) -> str:
    """The sentence for a produce that is refused because storage is full."""
    return f"storage is full: {used_bytes} of {limit_bytes} bytes are used; producing is blocked, consuming goes on"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole if whole else 0} %"


def _rate(bytes_per_s: int | None) -> str:
    return "any rate" if bytes_per_s is None else f"{bytes_per_s / MIB:.2f} MiB/s"
