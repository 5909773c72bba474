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

Divided = tuple[Branch, Callable[[int], int]]
"""The branch, and the allocation of a leader by its place: sums are made once, and shares when they are asked for."""


def allocate(limit: int | None, flows: Sequence[BrokerFlow], strategy: str = Strategy.CKAFKA) -> Allocation:
    """Divide `limit` bytes/s between the brokers that lead something. An unknown strategy is the documented rule."""
    leading = sorted((flow for flow in flows if flow.leaders > 0), key=lambda flow: flow.broker)
    if limit is None:
        shares = tuple(_share(flow, None, None, Branch.UNLIMITED) for flow in leading)
        return Allocation(None, Branch.UNLIMITED, shares)
    leaders = sum(flow.leaders for flow in leading)
    initial = [initial_share(limit, flow.leaders, leaders) for flow in leading]
    silent = [place for place, flow in enumerate(leading) if flow.silent]
    reporting = [flow for flow in leading if not flow.silent]
    branch, amount = divide(
        limit - sum(initial[place] for place in silent),
        [flow.leaders for flow in reporting],
        [flow.flow_bytes_per_s for flow in reporting],
        [flow.throttled for flow in reporting],
        strategy,
    )
    amounts = [amount(place) for place in range(len(reporting))]
    for place in silent:  # in order, so that each finds the place it has in the end
        amounts.insert(place, initial[place])
    shares = tuple(
        _share(flow, first, amount, Branch.RESERVED if flow.silent else branch)
        for flow, first, amount in zip(leading, initial, amounts, strict=True)
    )
    return Allocation(limit, branch, shares)


def initial_share(limit: int, leaders: int, all_leaders: int) -> int:
    """F_b. A broker also computes it by itself, for the time without a grant."""
    return limit * leaders // all_leaders


def divide(
    limit: int, leaders: Sequence[int], used: Sequence[int], throttled: Sequence[bool], strategy: str = Strategy.CKAFKA
) -> Divided:
    """The rule itself, on columns in broker order: leaders (all above 0), flows, whether somebody had to wait.

    A master divides hundreds of thousands of cells a second: columns cost a quarter of values. They must not change for
    as long as shares are asked for. Who had to wait is looked at by ``bounded`` only.
    """
    if limit == 0 or not leaders:
        return Branch.INITIAL, lambda _: 0
    if strategy == Strategy.BOUNDED:
        return Branch.BOUNDED, _bounded(limit, used, throttled).__getitem__
    return _documented(limit, leaders, used)


def _documented(limit: int, leaders: Sequence[int], used: Sequence[int]) -> Divided:
    all_leaders = sum(leaders)
    five, four = 5 * all_leaders, 4 * limit
    if all(five * use < four * count for use, count in zip(used, leaders, strict=True)):
        return Branch.INITIAL, lambda place: limit * leaders[place] // all_leaders
    total, most = sum(used), max(used)
    if 5 * min(used) >= 4 * most:  # Pmin / Pmax = umin / umax
        return Branch.PROPORTIONAL, lambda place: limit * used[place] // total
    # P_b + 0.1 * Pmax = L * (10 * u_b + umax) / (10 * sum(u)), capped at Pmax = L * 10 * umax / (10 * sum(u))
    top, whole = 10 * most, 10 * total
    # The busiest ones are at the cap already: they get their P_b, as the rule says of one of them.
    return Branch.HEADROOM, lambda place: limit * min(10 * used[place] + most, top) // whole


def _bounded(limit: int, used: Sequence[int], throttled: Sequence[bool]) -> list[int]:
    """Max-min water-filling of L, plus 0.05 * L in equal parts for discovery: the sum stays within 1.05 * L.

    A broker that was not throttled asks for what it uses, a throttled one for as much as it can get. Where nobody is
    throttled, everybody may grow: all ask for as much as they can get above their use, in equal parts.
    """
    count = len(used)
    asks = sorted((use, place) for place, use in enumerate(used) if not throttled[place])
    amounts: dict[int, int] = {}
    rest, left = limit, count
    for use, place in asks:
        if use * left > rest:
            break  # the water stands below this one's use, and so for all that follow
        amounts[place] = use
        rest -= use
        left -= 1
    if left:
        level = (20 * count * rest + left * limit) // (20 * count * left)  # rest / left + L / (20 * count)
        return [amounts[place] + limit // (20 * count) if place in amounts else level for place in range(count)]
    extra = (20 * rest + limit) // (20 * count)  # rest / count + L / (20 * count)
    return [amounts[place] + extra for place in range(count)]


def _share(flow: BrokerFlow, initial: int | None, amount: int | None, branch: Branch) -> Share:
    return Share(flow.broker, flow.leaders, flow.flow_bytes_per_s, initial, amount, branch)
