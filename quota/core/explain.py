"""Why an instance is throttled on a broker, or was in an interval that the recorder kept: one sentence for the tenant.

The usual surprise is to be slowed down below what was bought: flow arises at leaders, so the sentence names the broker,
how much of the traffic and of the leaders it holds, what it was allowed, and what the instance used in all.
"""

from __future__ import annotations

from collections.abc import Sequence

from quota.contracts.instance import MIB
from quota.contracts.rows import LOOP_MS, REQUEST, Row, Unit
from quota.contracts.throttled import BrokerInputs, ThrottledInterval
from quota.core.model import Allocation, Branch

NEARLY_ALL_PERCENT = 95
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


_SO = {
    Branch.INITIAL: "the share of its leaders; shares follow use as soon as use shows",
    Branch.PROPORTIONAL: "its share of the use that the brokers had shown alike",
    Branch.HEADROOM: "which grows from second to second while the broker is used more than others",
    Branch.BOUNDED: "an equal part of what the other brokers left",
    Branch.LEARNING: "the share it had before, which a new master keeps for one lease",
    Branch.RESERVED: "the share of its leaders, since it had stopped reporting",
}
_BLOCKED = (
    "Producing was refused because storage was full: more bandwidth would not have helped. Delete topics or records, or give the "
    "instance more storage."
)
_VERB = {"produce": "Producing", "consume": "Consuming"}


def explain_interval(interval: ThrottledInterval) -> str:
    """Why somebody waited in an interval, from the inputs of its worst period."""
    if interval.row.unit is Unit.REQUESTS:
        return _explain_requests(interval)
    if interval.row.unit is Unit.LOOP_TIME:
        return _explain_loop_time(interval)
    if interval.blocked is not None:
        return _BLOCKED
    verb, limit = _VERB[interval.direction], _rate(interval.limit)
    if interval.limit == 0:
        return f"{verb} was blocked: the limit is 0."
    if not interval.throttled_ms:
        return f"Up to {max(interval.over_percent):g} % more than the limit of {limit} flowed; nobody had to wait."
    brokers = interval.moment.brokers
    total = sum(each.flow for each in brokers)
    waited = f"{verb} waited {_time(interval.throttled_ms)}"
    who = "the instance" if interval.rule is None else f"what throttle rule {_rule(interval.row)} limits"
    if not brokers or total * 100 >= interval.limit * NEARLY_ALL_PERCENT:
        return f"{waited}: {who} used {_percent(total, interval.limit)} of the {limit} that it has."
    most = _most(brokers)
    return (
        f"{waited} on broker {most.broker} while {who} used only {_percent(total, interval.limit)} of its {limit}: "
        f"{_percent(most.flow, total)} of its traffic went to that broker, which leads {_part(most, brokers)} of its "
        f"partitions and could carry {_rate(most.allocation)}, {_SO[Branch(most.branch)]}."
    )


def narrow_broker(interval: ThrottledInterval) -> int | None:
    """The broker whose part was too small while the limit was not used up; None where the limit itself was."""
    brokers = interval.moment.brokers
    if interval.blocked is not None or not interval.limit or not interval.throttled_ms or not brokers:
        return None
    total = sum(each.flow for each in brokers)
    return None if total * 100 >= interval.limit * NEARLY_ALL_PERCENT else _most(brokers).broker


def _explain_requests(interval: ThrottledInterval) -> str:
    """They come to any broker, so there are no leaders to speak of."""
    if interval.limit == 0:
        return "Requests were blocked: the limit is 0."
    brokers, limit = interval.moment.brokers, _requests(interval.limit)
    total = sum(each.flow for each in brokers)
    waited = f"Requests waited {_time(interval.throttled_ms)}"
    if not brokers or total * 100 >= interval.limit * NEARLY_ALL_PERCENT:
        return f"{waited}: the instance used {_percent(total, interval.limit)} of the {limit} that it has."
    most = _most(brokers)
    return (
        f"{waited} on broker {most.broker} while the instance used only {_percent(total, interval.limit)} of its {limit}: "
        f"{_percent(most.flow, total)} of them went to that broker, which could take {_requests(most.allocation)}."
    )


def _explain_loop_time(interval: ThrottledInterval) -> str:
    """What requests cost brokers, whichever they come to."""
    if interval.limit == 0:
        return "Requests were blocked: the limit of broker time is 0."
    brokers = interval.moment.brokers
    total = sum(each.flow for each in brokers)
    used = f"{total / LOOP_MS:.0f} of {_loop_time(interval.limit)}"
    waited = f"Requests waited {_time(interval.throttled_ms)}"
    if not brokers or total * 100 >= interval.limit * NEARLY_ALL_PERCENT:
        return f"{waited}: the instance used its broker time, {used}. Fewer and larger requests need less of it."
    most = _most(brokers)
    return (
        f"{waited} on broker {most.broker} while the instance used only {used} of broker time: "
        f"{_percent(most.flow, total)} of it was used on that broker, which could give {_loop_time(most.allocation)}."
    )


def _most(brokers: Sequence[BrokerInputs]) -> BrokerInputs:
    """Where most was waited."""
    return max(brokers, key=lambda each: (each.throttled_ms, each.flow, -each.broker))


def explain_storage(used_bytes: int, limit_bytes: int) -> str:
    """The sentence for a produce that is refused because storage is full."""
    return f"storage is full: {used_bytes} of {limit_bytes} bytes are used; producing is blocked, consuming goes on"


def _rule(row: Row) -> str:
    """A rule's id, and of a rule for each client, which one."""
    rule = row.rule.resource
    return f"{rule} for {' and '.join(row.client)}" if row.client else rule


def _part(broker: BrokerInputs, brokers: Sequence[BrokerInputs]) -> str:
    return f"{broker.leaders} of {sum(each.leaders for each in brokers)}"


def _time(ms: int) -> str:
    """In milliseconds where it would be 0.0 s: somebody did wait."""
    return f"{ms / 1000:.1f} s" if ms > 50 else f"{ms} ms"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part // whole if whole else 0} %"


def _rate(bytes_per_s: int | None) -> str:
    return "any rate" if bytes_per_s is None else f"{bytes_per_s / MIB:.2f} MiB/s"


def _requests(thousandths_per_s: int | None) -> str:
    return "any number of requests" if thousandths_per_s is None else f"{thousandths_per_s / REQUEST:g} requests/s"


def _loop_time(microseconds_per_s: int | None) -> str:
    return "any time" if microseconds_per_s is None else f"{microseconds_per_s / LOOP_MS:.0f} ms/s"
