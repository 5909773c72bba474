"""What the read API shows, as plain documents made from the ledger. No I/O.

``/v1/instances/<id>/allocation``; all rates in bytes/s, null = unlimited::

    {"instance": "ins-k3v9x2qa", "epoch": 3, "learning": false, "strategy": "ckafka",
     "produce": {"limit": 5242880, "branch": "headroom", "brokers": [
        {"broker": 1, "leaders": 2, "initial_share": 1747626, "flow": 1700000, "allocation": 3276800,
         "branch": "headroom", "explanation": "broker 1 carries …"}]},
     "consume": {…}, "storage_used_bytes": 987654321, "storage_limit_bytes": 10737418240, "storage_full": false,
     "partitions_without_leader": 0, "partitions_under_replicated": 2, "connections": 12,
     "transactions": {"open": 3, "open_limit": 250, "ids": 40, "ids_limit": null},
     "broker_time": {"limit": 600, "branch": "headroom", "brokers": [{"broker": 1, "flow": 212.4, "allocation": 380.0}]}}

Broker time is in milliseconds a second, and null where there is no limit of it.
``/v1/instances/<id>,<id>/allocations`` has these documents of several as ``{"instances": [...]}``, without those that are
not known. ``/v1/throttled/<position>`` answers ``{"intervals": [...], "next": position}``: the lines of `contracts.throttled`
from a position on, 0 for all that are kept, and where to go on; asked again from there until ``next`` stays the same.
``/v1/elastic/<position>`` answers ``{"uses": [...], "next": position}`` in the same way: the lines of `contracts.elastic`. The
limit of an instance with elastic bandwidth is its cap.

``/v1/instances`` shows all in short, ``/v1/instances/<id>,<id>`` those that are known of these. ``/v1/brokers`` adds up
what each broker carries of all of them; of one whose replicas are not in sync, or that some partitions wait for to have a leader
again, ``"missing"`` says how many.

``/v1/instances/<id>,<id>/requests/<at>`` has what brokers said of requests in the window that began at this second since 1970, a
text of each that had any, as `contracts.requests` has them, and in ``"brokers"`` in the same order whose they are; an instance
without any is left out. Windows of the last minute are kept. ``"until"`` has by broker, of those that are registered, of which
windows it has told everything: those that began before this second. Null: it has not said so::

    {"learning": false, "until": {"1": 1740830410, "2": null},
     "instances": [{"instance": "ins-k3v9x2qa", "texts": [text, text], "brokers": [1, 2]}]}

``/v1/loop-times/<broker>/<at>`` has how a broker's loop spent its time in the windows of the minute that began at this second, as
`contracts.loop_time` has it, for two minutes. Of all brokers together it would be more than a reader takes::

    {"times": {"1740830400": [10003211, 7210000, {"ins-k3v9x2qa": [410000, 38000, 0]}]}}
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from quota.contracts.loop_time import documents_of
from quota.contracts.report import DIRECTIONS
from quota.contracts.rows import LOOP_MS, Row, Unit
from quota.core.explain import explain
from quota.core.ledger import Ledger
from quota.core.model import Allocation, Branch, Share

_MINUTE_S = 60


def allocation_document(ledger: Ledger, instance: str, now: float) -> dict[str, Any]:
    """One instance in full. KeyError: there is none of this id."""
    spec = ledger.specs[instance]
    return {
        "instance": instance,
        "epoch": ledger.epoch,
        "learning": ledger.learning(now),
        "strategy": spec.strategy,
        **{direction: _direction(ledger, instance, direction, now) for direction in DIRECTIONS},
        "storage_used_bytes": ledger.storage_used_bytes(instance),
        "storage_limit_bytes": spec.limits.storage_bytes,
        "storage_full": ledger.storage_full(instance),
        **_partitions(ledger.trouble(now), instance),
        "connections": ledger.connections(instance),
        "broker_time": _broker_time(ledger, instance, now),
        "transactions": _transactions(ledger, instance, now),
    }


def _transactions(ledger: Ledger, instance: str, now: float) -> dict[str, int | None]:
    is_open, ids = ledger.transactions(instance, now)
    limits = ledger.specs[instance].limits
    return {
        "open": is_open,
        "open_limit": limits.open_transactions,
        "ids": ids,
        "ids_limit": limits.transactional_ids,
    }


def _broker_time(ledger: Ledger, instance: str, now: float) -> dict[str, Any] | None:
    row = Row(instance, unit=Unit.LOOP_TIME).key
    if ledger.limited(row) is None:
        return None
    allocation = ledger.allocation(row, "produce", now)
    return {
        "limit": _in_ms(allocation.limit_bytes_per_s),
        "branch": allocation.branch.value,
        "brokers": [
            {
                "broker": share.broker,
                "flow": _in_ms(share.flow_bytes_per_s),
                "allocation": _in_ms(_in_force(share)),
            }
            for share in allocation.shares
        ],
    }


def _in_ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else round(microseconds / LOOP_MS, 1)


def allocations_document(ledger: Ledger, wanted: Collection[str], now: float) -> dict[str, Any]:
    """Those of the instances `wanted` that there are, in full."""
    return {"instances": [allocation_document(ledger, name, now) for name in wanted if name in ledger.specs]}


def instances_document(ledger: Ledger, now: float, wanted: Collection[str] | None = None) -> dict[str, Any]:
    """All instances, or those `wanted`, in short: limit, flow and branch per direction."""
    trouble = ledger.trouble(now)
    return {
        "epoch": ledger.epoch,
        "learning": ledger.learning(now),
        "brokers": list(ledger.reporting(now)),
        "instances": [
            _short(ledger, trouble, instance, now)
            for instance in sorted(ledger.specs)
            if wanted is None or instance in wanted
        ],
    }


def requests_document(ledger: Ledger, wanted: Collection[str], at: int, now: float) -> dict[str, Any]:
    """What became of requests of these instances in one window, by broker."""
    told = ((instance, ledger.windows.by_broker(instance, at)) for instance in wanted)
    return {
        "learning": ledger.learning(now),
        "until": {str(broker): until for broker, until in ledger.requests_until().items()},
        "instances": [
            {"instance": instance, "texts": list(some.values()), "brokers": list(some)}
            for instance, some in told
            if some
        ],
    }


def loop_times_document(ledger: Ledger, broker: int, at: int) -> dict[str, Any]:
    """How a broker's loop spent its time in the minute that began at this second, as far as it has told."""
    return {"times": documents_of(ledger.loop_times.windows(broker, at, at + _MINUTE_S))}


def brokers_document(ledger: Ledger, now: float) -> dict[str, Any]:
    """What each broker leads, carries and may carry, over all instances; `allocation` leaves unlimited ones out."""
    reporting = ledger.reporting(now)
    rows: dict[int, dict[str, Any]] = {}
    for instance in sorted(ledger.specs):
        for direction in DIRECTIONS:
            for share in ledger.allocation(instance, direction, now).shares:
                row = rows.setdefault(share.broker, _idle(share.broker, reporting))
                row[direction]["flow"] += share.flow_bytes_per_s
                row[direction]["allocation"] += _in_force(share) or 0
                if direction == DIRECTIONS[0]:
                    row["leaders"] += share.leaders
                    row["instances"] += 1
    for broker in reporting:
        rows.setdefault(broker, _idle(broker, reporting))
    for broker, counts in ledger.absent(now).items():
        row = rows.setdefault(broker, _idle(broker, reporting))
        row["missing"] = dict(zip(_MISSING, counts, strict=True))
    return {
        "epoch": ledger.epoch,
        "learning": ledger.learning(now),
        "brokers": [rows[broker] for broker in sorted(rows)],
    }


_MISSING = ("replicas_behind", "partitions_without_leader", "group_partitions_without_coordinator")


def _idle(broker: int, reporting: Collection[int]) -> dict[str, Any]:
    return {
        "broker": broker,
        "reporting": broker in reporting,
        "instances": 0,
        "leaders": 0,
        **{direction: {"flow": 0, "allocation": 0} for direction in DIRECTIONS},
    }


def metrics_text(ledger: Ledger | None, *, reports_total: int, now: float) -> str:
    """What GET /metrics answers, in Prometheus' text format."""
    lines = [
        "# TYPE sluice_master_active gauge",
        f"sluice_master_active {int(ledger is not None)}",
        "# TYPE sluice_master_reports_total counter",
        f"sluice_master_reports_total {reports_total}",
    ]
    if ledger is not None:
        lines += [
            "# TYPE sluice_master_epoch gauge",
            f"sluice_master_epoch {ledger.epoch}",
            "# TYPE sluice_master_reporting_brokers gauge",
            f"sluice_master_reporting_brokers {len(ledger.reporting(now))}",
            "# TYPE sluice_master_storage_used_bytes gauge",
        ]
        lines += [
            f'sluice_master_storage_used_bytes{{instance="{instance}"}} {ledger.storage_used_bytes(instance)}'
            for instance in sorted(ledger.specs)
        ]
        lines += _partition_samples(ledger, now)
        lines += _transaction_samples(ledger, now)
        lines += _loops(ledger, now)
        lines += ["# TYPE sluice_master_flow_bytes_per_second gauge", *_samples(ledger, "flow", now)]
        lines += ["# TYPE sluice_master_allocation_bytes_per_second gauge", *_samples(ledger, "allocation", now)]
        lines += ["# TYPE sluice_master_broker_time_ms_per_second gauge", *_time_samples(ledger, "flow", now)]
        lines += ["# TYPE sluice_master_broker_time_allocation_ms_per_second gauge"]
        lines += _time_samples(ledger, "allocation", now)
    return "\n".join(lines) + "\n"


_COUNTERS = {
    "cut": "cut_connections",
    "too_large": "too_large_requests",
    "forgotten_producers": "forgotten_producers",
    "refused_sessions": "refused_fetch_sessions",
    "failed_logins": "failed_logins",
    "refused_in_transactions": "refused_in_transactions",
}
"""Of a `LoopLoad`, as metrics are named."""


def _partition_samples(ledger: Ledger, now: float) -> Iterator[str]:
    """Of instances that have such partitions: most have none."""
    found = {instance: counts for instance, counts in sorted(ledger.trouble(now).items()) if instance in ledger.specs}
    for place, name in enumerate(("without_leader", "under_replicated")):
        yield f"# TYPE sluice_master_partitions_{name} gauge"
        for instance, counts in found.items():
            if counts[place]:
                yield f'sluice_master_partitions_{name}{{instance="{instance}"}} {counts[place]}'


def _transaction_samples(ledger: Ledger, now: float) -> Iterator[str]:
    """Of instances that have some: most have none."""
    instances = ledger.with_transactions()
    for place, name in enumerate(("open_transactions", "transactional_ids")):
        yield f"# TYPE sluice_master_{name} gauge"
        for instance in instances:
            yield f'sluice_master_{name}{{instance="{instance}"}} {ledger.transactions(instance, now)[place]}'


def _loops(ledger: Ledger, now: float) -> Iterator[str]:
    """How long a broker's clients may wait for each other, and whom it had to refuse what."""
    loads = ledger.loads(now)
    yield "# TYPE sluice_master_broker_longest_turn_seconds gauge"
    for broker, load in loads.items():
        labels = f'broker="{broker}",instance="{load.longest_of}"'
        yield f"sluice_master_broker_longest_turn_seconds{{{labels}}} {load.longest_us / 1e6}"
    yield "# TYPE sluice_master_broker_busy_seconds gauge"
    for broker, load in loads.items():
        yield f'sluice_master_broker_busy_seconds{{broker="{broker}"}} {load.busy_ms / 1000}'
    for name, metric in _COUNTERS.items():
        yield f"# TYPE sluice_master_{metric}_total counter"
        for broker, load in loads.items():
            for instance, count in sorted(getattr(load, name).items()):
                yield f'sluice_master_{metric}_total{{instance="{instance}",broker="{broker}"}} {count}'


def _samples(ledger: Ledger, name: str, now: float) -> Iterator[str]:
    for instance in sorted(ledger.specs):
        for direction in DIRECTIONS:
            for share in ledger.allocation(instance, direction, now).shares:
                value = share.flow_bytes_per_s if name == "flow" else _in_force(share)
                labels = f'instance="{instance}",direction="{direction}",broker="{share.broker}"'
                yield f"sluice_master_{name}_bytes_per_second{{{labels}}} {'+Inf' if value is None else value}"


def _time_samples(ledger: Ledger, name: str, now: float) -> Iterator[str]:
    metric = "broker_time" if name == "flow" else "broker_time_allocation"
    for instance in sorted(ledger.specs):
        for broker in (_broker_time(ledger, instance, now) or {"brokers": ()})["brokers"]:
            labels = f'instance="{instance}",broker="{broker["broker"]}"'
            yield f"sluice_master_{metric}_ms_per_second{{{labels}}} {'+Inf' if broker[name] is None else broker[name]}"


def _partitions(trouble: Mapping[str, tuple[int, int]], instance: str) -> dict[str, int]:
    leaderless, behind = trouble.get(instance, (0, 0))
    return {"partitions_without_leader": leaderless, "partitions_under_replicated": behind}


def _short(ledger: Ledger, trouble: Mapping[str, tuple[int, int]], instance: str, now: float) -> dict[str, Any]:
    document: dict[str, Any] = {"instance": instance}
    for direction in DIRECTIONS:
        allocation = ledger.allocation(instance, direction, now)
        document[direction] = {
            "limit": allocation.limit_bytes_per_s,
            "branch": allocation.branch.value,
            "flow": sum(share.flow_bytes_per_s for share in allocation.shares),
        }
    document["storage_used_bytes"] = ledger.storage_used_bytes(instance)
    document["storage_full"] = ledger.storage_full(instance)
    document |= _partitions(trouble, instance)
    document["connections"] = ledger.connections(instance)
    return document


def _direction(ledger: Ledger, instance: str, direction: str, now: float) -> dict[str, Any]:
    allocation = ledger.allocation(instance, direction, now)
    return {
        "limit": allocation.limit_bytes_per_s,
        "branch": allocation.branch.value,
        "brokers": [_broker(direction, allocation, share) for share in allocation.shares],
    }


def _broker(direction: str, allocation: Allocation, share: Share) -> dict[str, Any]:
    return {
        "broker": share.broker,
        "leaders": share.leaders,
        "initial_share": share.initial_bytes_per_s,
        "flow": share.flow_bytes_per_s,
        "allocation": _in_force(share),
        "branch": share.branch.value,
        "explanation": explain(direction, allocation, share.broker),
    }


def _in_force(share: Share) -> int | None:
    """While learning, a broker that holds nothing stands on its initial share."""
    if share.branch is Branch.LEARNING and share.allocation_bytes_per_s is None:
        return share.initial_bytes_per_s
    return share.allocation_bytes_per_s
