"""Reading what is taken and what may be: of clusters, and of organisations.

An instance counts from the row that its creation writes until the row says that it is deleted: one that is being
created, has failed or is being deleted holds what it holds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Q

from controlplane.admission import installed, rules
from controlplane.admission.models import ClusterRoom, OrganisationCap
from controlplane.admission.rules import Room
from controlplane.billing import selectors as billing
from controlplane.clusters.models import Broker
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.instances.models import Instance, InstanceState
from controlplane.tenants.models import Organisation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from django.db.models import QuerySet

    from controlplane.admission.rules import Amount, Amounts
    from controlplane.billing.pricing.plans import Plan
    from controlplane.clusters.models import PhysicalCluster

AWAY_FOR_GOOD = timedelta(hours=1)
"""A broker that has been away for so long has no room. Before that, a restart would change what is for sale."""
_MEMBERS = (*rules.SIZES, "operators_limits")


@dataclass(frozen=True, slots=True)
class Use:
    """One resource: how much may be taken, and how much is."""

    resource: str
    limit: Amount
    used: Amount
    default: Amount
    room: Room | None = None  # of a cluster's resource

    @property
    def title(self) -> str:
        """As in a sentence."""
        return rules.RESOURCES[self.resource].title

    @property
    def percent(self) -> int:
        """Of the limit; more than 100 where a limit was lowered."""
        return percent_of(self.used, self.limit)


def percent_of(used: Amount, limit: Amount) -> int:
    """How much of a limit is used; 100 where there is none and something is."""
    return round(100 * float(used) / float(limit)) if limit else 100 * bool(used)


def hosts_of(cluster: PhysicalCluster, *, clock: Clock = SYSTEM_CLOCK) -> int:
    """How many brokers an instance of the cluster gets a listener on: all that are not away for good.

    Before any has registered the cluster is taken for one broker.
    """
    there = Q(away_since=None) | Q(away_since__gt=clock.now() - AWAY_FOR_GOOD)
    return max(1, Broker.objects.filter(there, cluster=cluster).count())


def room_of(cluster: PhysicalCluster) -> dict[str, Room]:
    """What operators have set last, and what the installation's settings say of the rest."""
    found = dict(installed.rooms())
    for row in ClusterRoom.objects.filter(cluster=cluster).order_by("pk"):
        found[row.resource] = Room(row.per_broker, row.overcommit)
    return found


def room_changes(cluster: PhysicalCluster) -> QuerySet[ClusterRoom]:
    """What operators have set, the newest first."""
    return ClusterRoom.objects.filter(cluster=cluster).order_by("-pk")


def capacity_of(cluster: PhysicalCluster, *, hosts: int) -> dict[str, Amount]:
    """What may be sold of the cluster."""
    return rules.capacity_of(room_of(cluster), brokers=hosts, instances=cluster.capacity)


def taken_of_cluster(cluster: PhysicalCluster, *, hosts: int, but: Instance | None = None) -> list[dict[str, Amount]]:
    """What each instance of the cluster takes, `but` one of them."""
    rows = _counted(Instance.objects.unscoped("capacity counts everyone's"), but).filter(cluster=cluster)
    return [taken_by(dict(zip(_MEMBERS, row, strict=True)), hosts) for row in rows.values_list(*_MEMBERS)]


def taken_by(members: Mapping[str, object], hosts: int) -> dict[str, Amount]:
    """Of a cluster, by an instance with these sizes and operators' limits."""
    sizes = {name: members[name] for name in rules.SIZES}
    return rules.taken_of_cluster(**sizes, hosts=hosts, operators=members.get("operators_limits") or {})  # type: ignore[arg-type]


def cluster_use(cluster: PhysicalCluster, *, clock: Clock = SYSTEM_CLOCK) -> list[Use]:
    """Each of rules.CLUSTER, for operators."""
    hosts = hosts_of(cluster, clock=clock)
    taken, room = taken_of_cluster(cluster, hosts=hosts), room_of(cluster)
    capacity = rules.capacity_of(room, brokers=hosts, instances=cluster.capacity)
    default = rules.capacity_of(installed.rooms(), brokers=hosts, instances=cluster.capacity)
    return [
        Use(name, capacity[name], rules.total(taken, name), default[name], room.get(name)) for name in rules.CLUSTER
    ]


def caps_of(organisation: Organisation, *, currency: str) -> dict[str, Amount]:
    """What the organisation may have: what operators have set, and the defaults. The price is a Decimal, in this currency."""
    found = dict(installed.caps())
    own = dict(OrganisationCap.objects.for_organisation(organisation).values_list("resource", "limit"))
    # Whoever is held to less than the default in one currency does not get the default by choosing the other.
    if any(name.startswith(rules.PRICE) and own[name] < found.get(name, 0) for name in own):
        found.pop(rules.price_cap(currency), None)
    found.update(own)
    return {name: _typed(name, amount) for name, amount in rules.in_currency(found, currency).items()}


def taken_of_organisation(
    organisation: Organisation, *, plan: Plan, but: Instance | None = None
) -> list[dict[str, Amount]]:
    """What each instance of the organisation counts as, `but` one of them."""
    rows = _counted(Instance.objects.for_organisation(organisation), but).values_list(*rules.SIZES)
    found = []
    for row, count in Counter(rows).items():  # many have the same size, and a price takes a while to compute
        found += [counted(dict(zip(rules.SIZES, row, strict=True)), plan)] * count
    return found


def counted(members: Mapping[str, object], plan: Plan) -> dict[str, Amount]:
    """Of an organisation, an instance of these sizes: its price a month as the price slip says it."""
    sizes = {name: members[name] for name in rules.SIZES}
    price = billing.estimate(**sizes, plan=plan).per_month  # type: ignore[arg-type]
    return {**rules.sizes_taken(**sizes), rules.PRICE: price}  # type: ignore[arg-type]


def plan_counted(organisation: Organisation, *, clock: Clock = SYSTEM_CLOCK) -> Plan:
    """By which prices count (billing.selectors.plan_counted)."""
    return billing.plan_counted(organisation=organisation, at=clock.now())


def caps_use(organisation: Organisation, *, clock: Clock = SYSTEM_CLOCK) -> list[Use]:
    """Each of rules.ORGANISATION."""
    plan = plan_counted(organisation, clock=clock)
    taken = taken_of_organisation(organisation, plan=plan)
    limits = caps_of(organisation, currency=plan.currency)
    defaults = rules.in_currency(installed.caps(), plan.currency)
    return [
        Use(name, limits[name], _typed(name, rules.total(taken, name)), _typed(name, defaults[name]))
        for name in rules.ORGANISATION
    ]


def how_to_raise(organisation: Organisation) -> str:
    """What a tenant can do to get more."""
    contact = settings.ENVIRONMENT.operators_contact
    whom = f"write to {contact}" if contact else "ask the operators of this service"
    return f"To have a cap raised, {whom}: name your organisation ({organisation.id}), the cap, how much you need, and what for."


def sizes_by_organisation(organisations: Iterable[Organisation]) -> dict[str, Amounts]:
    """Instances, bandwidth, storage and partitions of several organisations with one query."""
    rows = _counted(Instance.objects.unscoped("operators see every tenant's"), None)
    by_owner: dict[str, list[Amounts]] = {organisation.id: [] for organisation in organisations}
    for owner, *sizes in rows.filter(organisation__in=by_owner).values_list("organisation_id", *rules.SIZES):
        by_owner[owner].append(rules.sizes_taken(**dict(zip(rules.SIZES, sizes, strict=True))))
    names = (rules.INSTANCES, *rules.SIZES)
    return {owner: {name: rules.total(taken, name) for name in names} for owner, taken in by_owner.items()}


def _counted(rows: QuerySet[Instance], but: Instance | None) -> QuerySet[Instance]:
    rows = rows.exclude(state=InstanceState.DELETED)
    return rows.exclude(pk=but.pk) if but else rows


def _typed(resource: str, amount: Amount) -> Amount:
    if resource == rules.PRICE:
        return Decimal(amount).quantize(Decimal("0.01"))
    return float(amount)
