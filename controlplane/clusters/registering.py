"""What operators decide about physical clusters: which there are, in which zones, how large, and whether they take new instances.

A cluster is known by a name, which stays, and by its ZooKeeper with the chroot. One that answers is looked at before it is
registered: two rows for one cluster would sell it twice, however differently its hosts are written, so its brokers must not be
those of another one. One that did not answer then is compared whenever its brokers are seen: of two rows that are one cluster the
newer one is cordoned. One that was retired is looked at again before it is taken back. Every decision appends a `ClusterEvent` in
its transaction.

Clusters are never taken away: instances that are gone, and bills of them, refer to them.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import IntegrityError, transaction

from controlplane.clusters import coordination, zookeeper
from controlplane.clusters.address import ClusterAddress
from controlplane.clusters.models import DEFAULT_CAPACITY, Broker, ClusterEvent, ClusterState, PhysicalCluster
from controlplane.clusters.services import clusters_known
from controlplane.core.audit import SYSTEM
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import AlreadyExists, ClusterUnavailable, FieldProblem, Invalid
from quota.contracts.addresses import checked_address
from quota.contracts.instance import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet

    from controlplane.clusters.coordination import LiveBroker

LOG = logging.getLogger(__name__)
REGISTER, CHANGE = "register", "change"
MOST_CAPACITY = 5_000
MOST_ZONES = 20
LONGEST_HOSTS = 255
LONGEST_REASON = 1000
NAME = re.compile(r"[a-z][a-z0-9-]{0,62}", re.ASCII)
"""Of clusters: they stand in addresses, labels of metrics and names of files."""
ZONE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_CHROOT = re.compile(r"(/[A-Za-z0-9._-]{1,64}){1,8}", re.ASCII)


def cluster_register(
    *,
    actor: str,
    name: str,
    zookeeper_hosts: str,
    zones: Sequence[str] = (),
    capacity: int = DEFAULT_CAPACITY,
    reason: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> PhysicalCluster:
    """A cluster on which instances may be placed from now on. `zookeeper_hosts`: host:port,host:port with an optional /chroot.

    One whose ZooKeeper does not answer is registered as well: it may not have been started yet. Raises Invalid, AlreadyExists.
    """
    problems = [
        FieldProblem(field, problem)
        for field, problem in (
            ("name", name_problem(name)),
            ("zookeeper_hosts", hosts_problem(zookeeper_hosts)),
            ("zones", zones_problem(zones)),
            ("capacity", capacity_problem(capacity)),
            ("reason", reason_problem(reason)),
        )
        if problem is not None
    ]
    _raise(problems)
    if PhysicalCluster.objects.filter(name=name).exists():
        raise AlreadyExists(f"there is a cluster {name} already")
    hosts = hosts_sorted(zookeeper_hosts)
    _refuse_same(hosts)  # before the transaction: whoever writes meanwhile must not wait for a ZooKeeper that is away
    row = PhysicalCluster(name=name, zookeeper_hosts=hosts, zones=sorted(set(zones)), capacity=capacity)
    detail = {"zookeeper_hosts": hosts, "zones": row.zones, "capacity": capacity}
    said = {member: {"from": None, "to": value} for member, value in detail.items()}
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            decision_record(row, actor, REGISTER, said, reason, clock)
    except IntegrityError as error:  # somebody else was faster
        raise AlreadyExists(f"there is a cluster {name}, or one with this ZooKeeper, already") from error
    return row


def cluster_change(
    *,
    cluster: PhysicalCluster,
    actor: str,
    changes: Mapping[str, Any],
    reason: str,
    check: Callable[[PhysicalCluster], None] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> PhysicalCluster:
    """Other zones, another capacity, or another state. What is on the cluster stays there, whatever is said.

    `check` is told the cluster while its row is held.

    Raises Invalid, and AlreadyExists where one that was retired is taken back and has been registered again under another name.

    Whether it can be retired is not looked at here: `admission.retiring` does that, and is what REST and pages call.
    `changes` has one or more of zones, capacity and state. Whoever buys holds the same row, and so knows of it from then on.
    """
    rules = {"zones": zones_problem, "capacity": capacity_problem, "state": state_problem}
    problems = [
        FieldProblem(member, problem)
        for member, value in changes.items()
        if (problem := rules[member](value)) is not None
    ]
    if not changes:
        raise Invalid(f"nothing to change: give one or more of {', '.join(rules)}")
    if not reason.strip():
        problems.append(FieldProblem("reason", "must say why"))
    elif (problem := reason_problem(reason)) is not None:
        problems.append(FieldProblem("reason", problem))
    _raise(problems)
    if changes.get("state", ClusterState.RETIRED) != ClusterState.RETIRED:
        present = PhysicalCluster.objects.get(pk=cluster.pk)
        if present.state == ClusterState.RETIRED:  # before the transaction, as in `cluster_register`
            _refuse_same(present.address.zookeeper_hosts, but=present)
    return _changed(cluster, actor, changes, reason, check, clock)


@transaction.atomic
def _changed(
    cluster: PhysicalCluster,
    actor: str,
    changes: Mapping[str, Any],
    reason: str,
    check: Callable[[PhysicalCluster], None] | None,
    clock: Clock,
) -> PhysicalCluster:
    row = PhysicalCluster.objects.select_for_update().get(pk=cluster.pk)
    if check is not None:
        check(row)
    wanted = {**changes, **({"zones": sorted(set(changes["zones"]))} if "zones" in changes else {})}
    detail = {
        member: {"from": getattr(row, member), "to": value}
        for member, value in wanted.items()
        if getattr(row, member) != value
    }
    for member in detail:
        setattr(row, member, wanted[member])
    if detail:  # asked for twice, it was decided once
        row.save(update_fields=list(detail))
        decision_record(row, actor, CHANGE, detail, reason, clock)
    return row


def brokers_compare(*, cluster: PhysicalCluster, live: Sequence[LiveBroker], clock: Clock = SYSTEM_CLOCK) -> None:
    """Of two rows that are one cluster, as the addresses of these brokers say, no more is sold on the newer one."""
    if not live:
        return
    there = _present_brokers().exclude(cluster=cluster).filter(host__in={broker.host for broker in live})
    by_address = {(broker.host, broker.port): broker for broker in there}
    for seen in live:
        found = by_address.get((seen.host, seen.port))
        if found is not None:
            newer, older = sorted((cluster, found.cluster), key=lambda row: row.pk, reverse=True)
            _cordon(newer, f"broker {seen.id} at {seen.host}:{seen.port} is one of cluster {older.name} too", clock)
            return


@transaction.atomic
def _cordon(cluster: PhysicalCluster, why: str, clock: Clock) -> None:
    row = PhysicalCluster.objects.select_for_update().get(pk=cluster.pk)
    if row.state != ClusterState.OPEN:
        return
    row.state = ClusterState.CORDONED
    row.save(update_fields=["state"])
    LOG.error("cluster %s is cordoned: %s", row, why)
    said = {"state": {"from": ClusterState.OPEN.value, "to": ClusterState.CORDONED.value}}
    decision_record(row, SYSTEM, CHANGE, said, f"{why}: they are one cluster", clock)


def name_problem(name: object) -> str | None:
    """What is wrong with a cluster's name; None: nothing."""
    if isinstance(name, str) and NAME.fullmatch(name):
        return None
    return "must begin with a lower-case letter and have up to 63 of a-z, 0-9 and -"


def zones_problem(zones: object) -> str | None:
    """The same of the zones of a cluster."""
    if not isinstance(zones, list | tuple) or len(zones) > MOST_ZONES:
        return f"must be a list of at most {MOST_ZONES} names"
    if all(isinstance(zone, str) and ZONE.fullmatch(zone) for zone in zones):
        return None
    return "must hold names of up to 63 of A-Z, a-z, 0-9, ., _ and -, such as eu-1a"


def capacity_problem(capacity: object) -> str | None:
    """The same of how many instances it takes."""
    if isinstance(capacity, bool) or not isinstance(capacity, int) or not 0 <= capacity <= MOST_CAPACITY:
        return f"must be a whole number of at least 0 and at most {MOST_CAPACITY}"
    return None


def state_problem(state: object) -> str | None:
    """The same of its state."""
    return None if state in ClusterState.values else f"must be one of {', '.join(ClusterState.values)}"


def reason_problem(reason: object) -> str | None:
    """The same of a reason."""
    if isinstance(reason, str) and len(reason) <= LONGEST_REASON:
        return None
    return f"must have at most {LONGEST_REASON} characters"


def hosts_problem(text: object) -> str | None:
    """The same of where its ZooKeeper is."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_HOSTS:
        return f"must say host:port, and at most {LONGEST_HOSTS} characters"
    hosts, slash, path = text.strip().partition("/")
    if slash and not _CHROOT.fullmatch(f"/{path}"):
        return "must end with a chroot such as /kafka, or with none"
    try:
        for each in hosts.split(","):
            checked_address(each.strip())
    except (ContractError, ValueError):
        return "must be host:port, more of them with commas between, and a chroot such as /kafka at the end, or none"
    return None


def hosts_sorted(text: str) -> str:
    """As it is kept: the order of servers says nothing."""
    hosts, slash, path = text.strip().partition("/")
    return ",".join(sorted({each.strip().lower() for each in hosts.split(",")})) + slash + path


def _present_brokers() -> QuerySet[Broker]:
    """Those that are registered, of clusters in use."""
    rows = Broker.objects.filter(away_since=None).exclude(cluster__state=ClusterState.RETIRED)
    return rows.select_related("cluster")


def _refuse_same(hosts: str, *, but: PhysicalCluster | None = None) -> None:
    """Raises AlreadyExists where this is a cluster that there is. `but`: whose hosts they are."""
    for other in clusters_known():  # the installation's own is among them, though nobody has looked at it yet
        if other != but and hosts_sorted(other.zookeeper_hosts or settings.ENVIRONMENT.zookeeper_hosts) == hosts:
            raise AlreadyExists(f"cluster {other.name} has this ZooKeeper already")
    by_address = {(broker.host, broker.port): broker for broker in _present_brokers() if broker.cluster != but}
    for live in _live_brokers(ClusterAddress(0, hosts)):
        found = by_address.get((live.host, live.port))
        if found is not None:  # a broker registers in one place
            raise AlreadyExists(
                f"broker {live.id} of it is at {live.host}:{live.port}, where broker {found.broker_id} of cluster "
                f"{found.cluster.name} is: they are one cluster"
            )


def _live_brokers(address: ClusterAddress) -> list[LiveBroker]:
    """Those that are registered; none where nobody answers."""
    try:
        return coordination.live_brokers(zookeeper.tree(address))
    except ClusterUnavailable as error:
        LOG.info("%s does not say which brokers it has: %s", address.zookeeper_hosts, error)
        return []


def _raise(problems: Sequence[FieldProblem]) -> None:
    if problems:
        raise Invalid("; ".join(f"{each.field} {each.detail}" for each in problems), errors=problems)


def decision_record(
    cluster: PhysicalCluster, actor: str, action: str, detail: Mapping[str, Any], reason: str, clock: Clock
) -> None:
    """What an operator has decided about a cluster, in the transaction of the change. `detail`: member -> {"from", "to"}."""
    ClusterEvent(
        cluster=cluster, actor=actor, action=action, detail=dict(detail), reason=reason.strip(), at=clock.now()
    ).save(force_insert=True)
