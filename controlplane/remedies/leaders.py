"""Spreading the leaders of an instance over its brokers, at its tenant's wish: among replicas in sync, so that no bytes move.

A tenant reaches its own topics alone: names are mapped by `InstanceNames`, and what moves is worked out here, never said by the
caller. It is asked for once in five minutes, since each change of leaders makes clients look for the new ones, and not while a
rebalance of operators moves partitions of the instance: two that put replicas in order would undo each other's work. Brokers that
operators have drained, cordoned or demoted, those that are away, and those where the instance has no port, are given no lead.

The operation compares what was planned with the cluster again and again, as a rebalance does, so a worker may die anywhere: to
put replicas in an order that they are in, and to elect who leads, changes nothing. What has changed since, or is refused, is left
as it is and named.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction

from controlplane.clusters.selectors import broker_list, ports_of
from controlplane.core import audit, operations
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.dry_runs import Outlook
from controlplane.core.errors import ClusterUnavailable, Conflict, TooManyRequests
from controlplane.core.models import Operation, OperationState
from controlplane.core.operations import Finished, NotYet, OperationKind, Step
from controlplane.instances.models import Instance
from controlplane.instances.selectors import instance_fresh, instance_running_get
from controlplane.instances.services import instance_locked
from controlplane.kafka import connections, placement_door, topics
from controlplane.quotas.figures import figures_get
from controlplane.quotas.selectors import allocation_of
from controlplane.rebalancing.automatic import set_aside
from controlplane.rebalancing.models import OVER, MoveState, RebalanceMove
from controlplane.remedies.spreading import Lead, Led, Spread, spread, with_flow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from controlplane.kafka.client import Partition
    from controlplane.tenants.models import Organisation
    from quota.contracts.namespace import InstanceNames

KIND = "leaders.spread"
AGAIN = timedelta(minutes=5)
PATIENCE_S = 600.0
PAUSE_S = 1.0
MOST_AT_ONCE = 3
"""Operations on one cluster, those that were asked for first: each is work for its controller, and for clients."""
MOST_LEADS = 20
"""Asked for in one pass."""
TALKERS = 1000
MOST_TOLD = 50
"""Partitions named in an audit record."""


def register() -> None:
    """Make the kind of operation known."""
    operations.register(OperationKind(KIND, (Step("have other replicas lead", lead, PATIENCE_S),)))


def leaders_plan(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> Spread:
    """What spreading would do now; nothing is done. Raises NotFound, Conflict, TooManyRequests, ClusterUnavailable."""
    instance = instance_running_get(organisation=organisation, instance_id=instance_id)
    _check(instance, clock.now())
    return _planned(instance)


def leaders_spread_check(*, organisation: Organisation, instance_id: str, clock: Clock = SYSTEM_CLOCK) -> Outlook:
    """What the call would do: who leads each partition that moves, and what each broker carries. Raises as the call does."""
    found = leaders_plan(organisation=organisation, instance_id=instance_id, clock=clock)
    changes: dict[str, tuple[Any, Any]] = {
        f"leaders.{each.topic}.{each.partition}": (each.leader, each.to) for each in found.leads
    }
    nobody = dict.fromkeys(("leaders", "produce", "consume"), 0)
    for broker in sorted({*found.before, *found.after}):
        before = asdict(found.before[broker]) if broker in found.before else nobody
        after = asdict(found.after[broker]) if broker in found.after else nobody
        for name, told in (
            ("leaders", "leaders"),
            ("produce", "produce_bytes_per_s"),
            ("consume", "consume_bytes_per_s"),
        ):
            if before[name] != after[name]:
                changes[f"brokers.{broker}.{told}"] = before[name], after[name]
    return Outlook(changes, begun=(operations.planned(KIND),))


def leaders_spread(
    *, organisation: Organisation, actor: str, instance_id: str, clock: Clock = SYSTEM_CLOCK
) -> Operation:
    """Begin it. Raises NotFound, Conflict (nothing_to_spread, rebalance_under_way), TooManyRequests, ClusterUnavailable."""
    found = leaders_plan(organisation=organisation, instance_id=instance_id, clock=clock)
    with transaction.atomic():  # the cluster was asked before: no row is locked while it answers
        instance = instance_locked(organisation, instance_id)
        _check(instance, clock.now())
        operation = operations.start(
            organisation=organisation,
            kind=KIND,
            target=instance.id,
            actor=actor,
            arguments={"leads": [[each.topic, each.partition, each.before, each.after] for each in found.leads]},
            clock=clock,
        )
        audit.record(
            organisation=organisation,
            actor=actor,
            action=KIND,
            target=instance.id,
            detail={
                "partitions": len(found.leads),
                "leads": [f"{each.name}: {each.leader} → {each.to}" for each in found.leads[:MOST_TOLD]],
            },
            clock=clock,
        )
    return operation


def _check(instance: Instance, now: datetime) -> None:
    """Whether it may be asked for now. Raises Conflict, TooManyRequests."""
    rows = Operation.objects.for_organisation(instance.organisation).filter(target=instance.id, kind=KIND)
    last = rows.order_by("-created_at").values_list("created_at", flat=True).first()
    if last is not None and now - last < AGAIN:
        left_s = max(1, round((last + AGAIN - now).total_seconds()))
        raise TooManyRequests("leaders of an instance are spread once in five minutes", left_s)
    if _is_rebalanced(instance.id):
        raise Conflict(
            "operators of the service are moving partitions of this instance: try again when that is done",
            code="rebalance_under_way",
        )


def _is_rebalanced(instance_id: str) -> bool:
    moves = RebalanceMove.objects.filter(instance=instance_id, rebalance__begun_at__isnull=False)
    open_ones = moves.filter(state__in=(MoveState.WAITING, MoveState.ASKED, MoveState.MOVING))
    return open_ones.exclude(rebalance__state__in=OVER).exists()


def _planned(instance: Instance) -> Spread:
    """Raises Conflict where there is nothing to do, ClusterUnavailable."""
    cluster = instance.cluster
    seen = [
        Led(topic.name, each.partition, each.leader, each.replicas, each.isr)
        for topic in topics.list_all(cluster.address, instance.id)
        for each in topic.layout
        if each.leader is not None
    ]
    flows = _flows(instance)
    weights = _weights(instance) if flows else {}
    there = {row.broker_id for row in broker_list(cluster)}
    served = {port.broker.broker_id for port in ports_of(instance.id) if port.broker is not None}
    takes = (there & served if served else there) - _takes_none(instance)
    found = spread(with_flow(seen, flows, weights), takes)
    if not found.leads:
        raise Conflict("leaders are spread as evenly as replicas in sync allow", code="nothing_to_spread")
    return found


def _takes_none(instance: Instance) -> set[int]:
    """Brokers that operators have set aside, or that are away."""
    away = {row.broker_id for row in broker_list(instance.cluster) if row.away_since is not None}
    return away | set_aside(instance.cluster).brokers


def _flows(instance: Instance) -> dict[int, tuple[float, float]]:
    """By broker, as the flow master says it, or said it last; nothing: leaders are evened out in number."""
    document = figures_get([instance], allocation_of).documents.get(instance.id, {})
    found: dict[int, tuple[float, float]] = {}
    for kind, direction in enumerate(("produce", "consume")):
        for row in (document.get(direction) or {}).get("brokers", ()):
            both = list(found.get(row["broker"], (0.0, 0.0)))
            both[kind] = float(row["flow"])
            found[row["broker"]] = both[0], both[1]
    return found if any(any(flow) for flow in found.values()) else {}


def _weights(instance: Instance) -> dict[tuple[int, str], tuple[float, float]]:
    """What flows of each topic on each broker, as brokers say it; nothing where none does: it only makes the plan better."""
    found: dict[tuple[int, str], tuple[float, float]] = {}
    with suppress(ClusterUnavailable):
        told = connections.read(instance.cluster.address, instance.id, most_talkers=TALKERS)
        for broker, answer in told.answers.items():
            for row in answer.talkers:
                produced, consumed = found.get((broker, row.topic), (0.0, 0.0))
                window = max(1, row.window_ms)
                found[broker, row.topic] = (
                    produced + row.produced_bytes / window,
                    consumed + row.consumed_bytes / window,
                )
    return found


# --- the operation ----------------------------------------------------------------------------------------------------


def lead(operation: Operation) -> Finished | NotYet:
    """One comparison with the cluster; there is another as long as somebody is to lead who does not yet."""
    instance = instance_fresh(operation.target)
    names = topics.names_of(instance.id)
    leads = [
        Lead(topic, partition, tuple(before), tuple(after), before[0])
        for topic, partition, before, after in operation.arguments["leads"]
    ]
    skipped: dict[str, str] = dict((operation.result or {}).get("skipped", {}))
    done, count = 0, len(leads)
    if not _is_its_turn(operation, instance):
        return NotYet(f"{done} of {count} partitions are led by another replica", after_s=PAUSE_S)
    try:
        done, left, gone = _compared(instance, leads, skipped)
        skipped |= gone
        if left and _is_rebalanced(instance.id):
            skipped |= {each.name: "operators are moving partitions of this instance" for each in left}
        elif left:
            skipped |= _asked(instance, names, left[:MOST_LEADS])
    except ClusterUnavailable as error:
        return NotYet(str(error), after_s=PAUSE_S, result={"skipped": skipped})
    stay = len(skipped)
    note = f"{done} of {count} partitions are led by another replica"
    if any(each.name not in skipped for each in left):
        return NotYet(note, after_s=PAUSE_S, result={"skipped": skipped})
    if stay:
        note = f"{done} of {count} partitions are led by another replica; {stay} stay as they are"
    return Finished(note, result={"moved": done, "skipped": skipped})


def _is_its_turn(operation: Operation, instance: Instance) -> bool:
    there = Instance.objects.unscoped("operations of all tenants share the cluster").filter(cluster=instance.cluster_id)
    rows = Operation.objects.unscoped("a worker counts everybody's").filter(kind=KIND, state=OperationState.RUNNING)
    first = rows.filter(target__in=there.values("pk")).order_by("created_at", "pk")
    return operation.pk in list(first.values_list("pk", flat=True)[:MOST_AT_ONCE])


def _compared(
    instance: Instance, leads: list[Lead], skipped: Mapping[str, str]
) -> tuple[int, list[Lead], dict[str, str]]:
    """How many are done, which are left, and which cannot be made any more, with why. Raises ClusterUnavailable."""
    seen = {
        (topic.name, each.partition): each
        for topic in topics.list_all(instance.cluster.address, instance.id)
        for each in topic.layout
    }
    done, left, gone = 0, [], {}
    for each in leads:
        if each.name in skipped:
            continue
        now = seen.get((each.topic, each.partition))
        if now is not None and now.leader == each.to and now.replicas == each.after:
            done += 1
        elif (problem := _problem(each, now)) is not None:
            gone[each.name] = problem
        else:
            left.append(each)
    return done, left, gone


def _problem(each: Lead, now: Partition | None) -> str | None:
    if now is None:
        return "it is not there any more"
    if now.replicas not in (each.before, each.after):
        return "its replicas have changed"
    return None if each.to in now.isr else f"broker {each.to} is not in sync"


def _asked(instance: Instance, names: InstanceNames, left: list[Lead]) -> dict[str, str]:
    """Have the replicas put in order and the first of them lead; what is refused. Raises ClusterUnavailable."""
    door = placement_door.door(instance.cluster.address)
    places = {(names.topic_in(each.topic), each.partition): each for each in left}
    under_way = door.under_way()
    refused = {each.name: "its replicas are being moved" for place, each in places.items() if place in under_way}
    takes_none = _takes_none(instance)  # as it is now: it was planned before operators spoke, or before a broker went
    refused |= {each.name: f"broker {each.to} is given no lead" for each in left if each.to in takes_none}
    going = {place: each.after for place, each in places.items() if each.name not in refused}
    for place in door.reassign(going):
        refused[places[place].name] = "the cluster has refused it"
    door.elect([place for place, each in places.items() if each.name not in refused])
    return refused
