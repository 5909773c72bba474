"""How an instance's limit is divided between the brokers that lead its partitions.

The documented rule (strategy ``ckafka``), step by step::

    1  F_b = L * n_b / sum(n)                                       for every broker with n_b > 0
    2  every u_b < 0.8 * F_b             ->  a_b = F_b                                            "initial"
    3  P_b = L * u_b / sum(u)            ->  Pmax, Pmin
    4  Pmin / Pmax >= 0.8                ->  a_b = P_b                                            "proportional"
    5  otherwise the broker with Pmax (ties: lowest id) gets P_b, every other
       min(P_b + 0.1 * Pmax, Pmax)                                                                "headroom"

Step 5 may hand out up to 0.1 * (N - 1) * L more than was bought: that is what lets a little used broker grow.

Arithmetic is exact: comparisons are multiplied out, and each share is one fraction of whole numbers, rounded down once
at the end. A limit of 0 gives 0 before any division, and step 3 is reached only with sum(u) > 0: with L > 0, a sum of 0
means that every u_b is below 0.8 * F_b.

A *silent* leader (it has stopped reporting) is set aside its initial share; the others divide what is left by the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quota.core.model import Allocation, Branch, BrokerFlow, Share, Strategy

Divided = tuple[Branch, list[int]]
Rule = Callable[[int, Sequence[BrokerFlow]], Divided]


def allocate(limit: int | None, flows: Sequence[BrokerFlow], strategy: str = Strategy.CKAFKA) -> Allocation:
    """Divide `limit` bytes/s between the brokers that lead something. An unknown strategy is the documented rule."""
    leading = sorted((flow for flow in flows if flow.leaders > 0), key=lambda flow: flow.broker)
    if limit is None:
        shares = tuple(_share(flow, None, None, Branch.UNLIMITED) for flow in leading)
        return Allocation(None, Branch.UNLIMITED, shares)
    leaders = sum(flow.leaders for flow in leading)
    initial = {flow.broker: initial_share(limit, flow.leaders, leaders) for flow in leading}
    reporting = [flow for flow in leading if not flow.silent]
    rest = limit - sum(initial[flow.broker] for flow in leading if flow.silent)
    branch, amounts = _divide(rest, reporting, strategy)
    amount = dict(zip((flow.broker for flow in reporting), amounts, strict=True))
    shares = tuple(
        _share(flow, initial[flow.broker], initial[flow.broker], Branch.RESERVED)
        if flow.silent
        else _share(flow, initial[flow.broker], amount[flow.broker], branch)
        for flow in leading
    )
    return Allocation(limit, branch, shares)


def initial_share(limit: int, leaders: int, all_leaders: int) -> int:
    """F_b. A broker also computes it by itself, for the time without a grant."""
    return limit * leaders // all_leaders


def _divide(limit: int, flows: Sequence[BrokerFlow], strategy: str) -> Divided:
    if limit == 0 or not flows:
        return Branch.INITIAL, [0] * len(flows)
    rule: Rule = _bounded if strategy == Strategy.BOUNDED else _documented
    return rule(limit, flows)


def _documented(limit: int, flows: Sequence[BrokerFlow]) -> Divided:
    leaders = sum(flow.leaders for flow in flows)
    if all(5 * flow.flow_bytes_per_s * leaders < 4 * limit * flow.leaders for flow in flows):
        return Branch.INITIAL, [initial_share(limit, flow.leaders, leaders) for flow in flows]
    used = [flow.flow_bytes_per_s for flow in flows]
    total, most = sum(used), max(used)
    if 5 * min(used) >= 4 * most:  # Pmin / Pmax = umin / umax
        return Branch.PROPORTIONAL, [limit * use // total for use in used]
    # P_b + 0.1 * Pmax = L * (10 * u_b + umax) / (10 * sum(u)), capped at Pmax = L * 10 * umax / (10 * sum(u))
    amounts = [limit * min(10 * use + most, 10 * most) // (10 * total) for use in used]
    largest = used.index(most)  # flows are in broker order: ties go to the lowest id
    amounts[largest] = limit * most // total
    return Branch.HEADROOM, amounts


def _bounded(limit: int, flows: Sequence[BrokerFlow]) -> Divided:
    """Max-min water-filling of L, plus 0.05 * L in equal parts for discovery: the sum stays within 1.05 * L.

    A broker that was not throttled asks for what it uses, a throttled one for as much as it can get. Where nobody is
    throttled, everybody may grow: all ask for as much as they can get above their use, in equal parts.
    """
    count = len(flows)
    asks = sorted((flow for flow in flows if not flow.throttled), key=lambda flow: (flow.flow_bytes_per_s, flow.broker))
    amounts: dict[int, int] = {}
    rest, left = limit, count
    for flow in asks:
        if flow.flow_bytes_per_s * left > rest:
            break  # the water stands below this one's use, and so for all that follow
        amounts[flow.broker] = flow.flow_bytes_per_s
        rest -= flow.flow_bytes_per_s
        left -= 1
    if left:
        level = (20 * count * rest + left * limit) // (20 * count * left)  # rest / left + L / (20 * count)
        return Branch.BOUNDED, [
            level if flow.broker not in amounts else amounts[flow.broker] + limit // (20 * count) for flow in flows
        ]
    extra = (20 * rest + limit) // (20 * count)  # rest / count + L / (20 * count)
    return Branch.BOUNDED, [amounts[flow.broker] + extra for flow in flows]


def _share(flow: BrokerFlow, initial: int | None, amount: int | None, branch: Branch) -> Share:
    return Share(flow.broker, flow.leaders, flow.flow_bytes_per_s, initial, amount, branch)
