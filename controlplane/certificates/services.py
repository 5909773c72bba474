"""What a TLS route shows its clients is there, is renewed in time, and stands in the cluster.

The routes, and the hosts that each tells its clients, are read where brokers read them, from the specification in ZooKeeper: so
`ensure_for` is called after every write of one. A route has what its tenant has brought, or else a certificate of the instance's
own authority for its hosts, which is issued when it is missing, when the hosts have changed, and `RENEW_BEFORE` its end.

Two workers may do the same at once: rows are written by compare-and-set on what was read, and the node is made of the rows.
What fails between a row and the node is made up for by the reconciler, and every hour by `renew_due`.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

from django.db import IntegrityError, transaction

from controlplane.certificates import checking, keys
from controlplane.certificates.issuing import Made, authority_make, certificate_make
from controlplane.certificates.models import Authority, RouteCertificate, Source
from controlplane.clusters import coordination, zookeeper
from controlplane.core import audit
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import ClusterUnavailable, Conflict, Invalid, NotFound, SluiceError, Unavailable
from quota.contracts.apart import certificates_path
from quota.contracts.certificates import CertificateSet, certificates_problem
from quota.contracts.certificates import RouteCertificate as Shown
from quota.contracts.instance import ContractError, InstanceSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from controlplane.clusters.models import PhysicalCluster
    from controlplane.clusters.zookeeper import Tree
    from controlplane.tenants.models import Organisation


class Instance(Protocol):
    """Whose routes they are: `instances.models.Instance`, of which what stands below it needs no more."""

    id: str
    organisation: Organisation
    organisation_id: str
    cluster: PhysicalCluster


LOG = logging.getLogger(__name__)
RENEW_BEFORE = timedelta(days=30)


def ensure_for(instance: Instance, *, clock: Clock = SYSTEM_CLOCK) -> int:
    """Every TLS route of an instance has a certificate that brokers know; of no other have they one. How many were issued.

    A route that brokers are not told of for a while, since it could not be opened, keeps what it has here (`route_forget`).
    Call it when the specification has been written. Raises ClusterUnavailable, ConcurrentChange, Invalid.
    """
    tree = zookeeper.tree(instance.cluster.address)
    hosts = _hosts_of(tree, instance.id)
    rows = {row.route: row for row in _rows(instance)}
    if not hosts and not rows:
        return 0
    due = [(route, names) for route, names in hosts.items() if route not in rows or _is_due(rows[route], names, clock)]
    issued = sum(_renew(instance, route, names, rows.get(route), clock) for route, names in due)
    publish(instance, tree)
    return issued


def has_any(instance: Instance) -> bool:
    """Whether one of its routes has, or had, something to be looked after here."""
    return _rows(instance).exists()


def forget(instance: Instance) -> None:
    """Of an instance that is gone no private key is kept."""
    _rows(instance).delete()
    _authorities(instance).delete()


def route_forget(*, instance: Instance, route: str) -> None:
    """Of a route that is removed no private key is kept, neither here nor in the cluster.

    May be said again. Raises ClusterUnavailable, ConcurrentChange.
    """
    _rows(instance).filter(route=route).delete()
    tree = zookeeper.tree(instance.cluster.address)
    if coordination.beside_read(tree, certificates_path(instance.id)) is not None:
        with suppress(NotFound):  # the instance is gone, with its node
            publish(instance, tree)


def authority_of(instance: Instance, *, clock: Clock = SYSTEM_CLOCK) -> str:
    """The certificate of an instance's own authority, PEM: what its clients trust. Made when it is first asked for."""
    return _authority(instance, clock).certificate


def certificate_bring(
    *, instance: Instance, route: str, actor: str, chain: str, key: str, clock: Clock = SYSTEM_CLOCK
) -> RouteCertificate:
    """The tenant's own in place of one that we issue. Raises Invalid, NotFound, Conflict."""
    tree = zookeeper.tree(instance.cluster.address)
    hosts = _tls_route(tree, instance.id, route)
    pem, private, ends = checking.chain_checked(chain, key, hosts, clock.now())
    with transaction.atomic():
        before = _told(instance, route)
        row = _put(
            instance,
            route,
            source=Source.BROUGHT,
            chain=pem,
            key=keys.route_key_sealed(private, instance.id, route),
            hosts=hosts,
            not_after=ends,
        )
        _check_size(instance)
        _record(instance, actor, "certificate.bring", route, audit.changed(before, _told(instance, route)))
    publish(instance, tree)
    return row


def certificate_give_back(
    *, instance: Instance, route: str, actor: str, clock: Clock = SYSTEM_CLOCK
) -> RouteCertificate:
    """A certificate that the tenant has brought goes, and the instance's authority issues one. Raises NotFound, Conflict."""
    tree = zookeeper.tree(instance.cluster.address)
    hosts = _tls_route(tree, instance.id, route)
    with transaction.atomic():
        before = _told(instance, route)
        row = _issue(instance, route, hosts, clock)
        _record(instance, actor, "certificate.give_back", route, audit.changed(before, _told(instance, route)))
    publish(instance, tree)
    return row


def client_ca_set(
    *, instance: Instance, route: str, actor: str, client_ca: str, clock: Clock = SYSTEM_CLOCK
) -> RouteCertificate:
    """Whose certificates a route takes of its clients; empty: of nobody. Raises Invalid, NotFound, Conflict.

    It may be said of a route that brokers do not know, having failed to open for want of this: it holds when that is tried again.
    """
    tree = zookeeper.tree(instance.cluster.address)
    try:
        _tls_route(tree, instance.id, route)
    except NotFound:
        if not _rows(instance).filter(route=route).exists():
            raise
    pem = checking.client_ca_checked(client_ca, clock.now())
    with transaction.atomic():
        before = _told(instance, route)
        row = _put(instance, route, client_ca=pem)
        _check_size(instance)
        _record(instance, actor, "certificate.client_ca", route, audit.changed(before, _told(instance, route)))
    publish(instance, tree)
    return row


def certificate_get(*, instance: Instance, route: str) -> RouteCertificate:
    """What a route shows. Raises NotFound."""
    row = _rows(instance).filter(route=route).first()
    if row is None:
        raise NotFound(f"route {route} has no certificate")
    return row


def renew_due(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Issue anew what ends soon, of all instances, and write what the cluster lacks; how many were issued.

    An instance with which it does not go well is logged, and tried again; the others are looked after.
    """
    rows = RouteCertificate.objects.unscoped("certificates of all instances are renewed").filter(
        instance__deleted_at=None
    )
    done, away = 0, set()
    for name in list(rows.values_list("instance", flat=True).distinct()):
        row = rows.filter(instance=name).select_related("instance__cluster").first()
        if row is None or row.instance.cluster_id in away:
            continue
        try:
            done += ensure_for(row.instance, clock=clock)
        except ClusterUnavailable as error:
            LOG.warning("certificates of cluster %s are not looked after: %s", row.instance.cluster, error)
            away.add(row.instance.cluster_id)
        except SluiceError as error:
            LOG.warning("certificates of %s are not as they should be: %s", name, error)
        except Exception:  # whatever is the matter with one must not keep the others from being renewed
            LOG.exception("certificates of %s", name)
    return done


def publish(instance: Instance, tree: Tree) -> None:
    """Have the node in ZooKeeper be what the rows of the routes say that brokers are told of.

    Raises NotFound where they have not been told of the instance.
    """
    secret, told = keys.cluster_secret(), [route.id for route in _spec(tree, instance.id).routes]

    def decide(data: bytes | None) -> bytes | None:
        wanted = [_shown(row) for row in _rows(instance).filter(route__in=told).order_by("route")]
        try:
            before = CertificateSet.from_json(data)
        except ValueError:  # whoever wrote that: brokers cannot read it either
            before = CertificateSet()
        if [
            (item.route, item.chain, keys.opened_as_brokers(item, instance.id, secret), item.client_ca)
            for item in before.items
        ] == wanted:
            return None
        items = [
            Shown(route, chain, keys.sealed_for_brokers(key, instance.id, route, secret) if key else b"", client_ca)
            for route, chain, key, client_ca in wanted
        ]
        return before.changed(items).to_json()

    coordination.beside_write(tree, instance.id, certificates_path(instance.id), decide)


# --- rows -------------------------------------------------------------------------------------------------------------


def _rows(instance: Instance) -> QuerySet[RouteCertificate]:
    return RouteCertificate.objects.unscoped("the instance was looked up in its organisation").filter(
        instance_id=instance.id
    )


def _authorities(instance: Instance) -> QuerySet[Authority]:
    return Authority.objects.unscoped("the instance was looked up in its organisation").filter(instance_id=instance.id)


def _put(instance: Instance, route: str, **members: object) -> RouteCertificate:
    row, _ = RouteCertificate.objects.unscoped("as above").update_or_create(
        instance_id=instance.id,
        route=route,
        defaults=members,
        create_defaults={"organisation_id": instance.organisation_id, **members},
    )
    return row


def _is_due(row: RouteCertificate, hosts: list[str], clock: Clock) -> bool:
    if row.source == Source.BROUGHT:
        return False
    return (
        row.source == Source.NONE
        or row.hosts != hosts
        or row.not_after is None
        or row.not_after <= clock.now() + RENEW_BEFORE
    )


def _issue(instance: Instance, route: str, hosts: list[str], clock: Clock) -> RouteCertificate:
    return _put(instance, route, **_issued(instance, route, hosts, clock))


def _renew(instance: Instance, route: str, hosts: list[str], seen: RouteCertificate | None, clock: Clock) -> int:
    """Issue one in place of what was seen: 1. Of what somebody else, its tenant perhaps, has changed since, nothing: 0."""
    members = _issued(instance, route, hosts, clock)
    if seen is not None:
        return _rows(instance).filter(pk=seen.pk, source=seen.source, chain=seen.chain).update(**members)
    row = RouteCertificate(organisation_id=instance.organisation_id, instance_id=instance.id, route=route, **members)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return 0
    return 1


def _issued(instance: Instance, route: str, hosts: list[str], clock: Clock) -> dict[str, object]:
    made = certificate_make(_authority_opened(instance, clock), hosts, clock.now())
    return {
        "source": Source.ISSUED,
        "chain": made.certificate,
        "key": keys.route_key_sealed(made.key, instance.id, route),
        "hosts": hosts,
        "not_after": made.not_after,
    }


def _authority(instance: Instance, clock: Clock) -> Authority:
    rows = _authorities(instance)
    row = rows.first()
    if row is None:
        made = authority_make(instance.id, clock.now())
        row = Authority(
            organisation_id=instance.organisation_id,
            instance_id=instance.id,
            certificate=made.certificate,
            key=keys.authority_key_sealed(made.key, instance.id),
            not_after=made.not_after,
        )
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError:  # somebody was faster
            row = rows.get()
    return row


def _authority_opened(instance: Instance, clock: Clock) -> Made:
    row = _authority(instance, clock)
    return Made(row.certificate, keys.opened(row), row.not_after)


def _check_size(instance: Instance) -> None:
    """Raises Invalid; a key is at most a little larger sealed."""
    items = [Shown(row.route, row.chain, bytes(row.key), row.client_ca) for row in _rows(instance)]
    problem = certificates_problem(items)
    if problem is not None:
        raise Invalid(problem, code="too_large")


def _told(instance: Instance, route: str) -> dict[str, object]:
    """For the audit trail: which certificate a route shows and which it takes, by their fingerprints."""
    row = _rows(instance).filter(route=route).first()
    if row is None:
        return {"source": None, "not_after": None, "certificate": None, "client_ca": None}
    return {
        "source": str(row.source),
        "not_after": None if row.not_after is None else row.not_after.isoformat(),
        "certificate": _fingerprint(row.chain),
        "client_ca": _fingerprint(row.client_ca),
    }


def _fingerprint(pem: str) -> str | None:
    """Of the text; None: there is none."""
    return f"sha256:{hashlib.sha256(pem.encode()).hexdigest()[:16]}" if pem else None


def _record(instance: Instance, actor: str, action: str, route: str, detail: Mapping[str, object]) -> None:
    audit.record_about(instance, actor, action, {"route": route, **detail})


# --- what brokers know ------------------------------------------------------------------------------------------------


def _hosts_of(tree: Tree, instance_id: str) -> dict[str, list[str]]:
    """Of each TLS route, what its clients connect to."""
    return {
        route.id: sorted({endpoint.advertised[0] for endpoint in route.endpoints.values()})
        for route in _spec(tree, instance_id).routes
        if route.wants_tls and route.endpoints
    }


def _tls_route(tree: Tree, instance_id: str, route: str) -> list[str]:
    """Its hosts. Raises NotFound, Conflict."""
    spec = _spec(tree, instance_id)
    if all(each.id != route for each in spec.routes):
        raise NotFound(f"instance {instance_id} has no route {route}")
    hosts = _hosts_of(tree, instance_id).get(route)
    if hosts is None:
        raise Conflict(f"route {route} is not one of TLS", code="not_tls")
    return hosts


def _spec(tree: Tree, instance_id: str) -> InstanceSpec:
    try:
        found = coordination.spec_read(tree, instance_id)
    except ContractError as error:
        raise Unavailable(f"the specification of {instance_id} is not legible: {error}") from error
    if found is None:
        raise NotFound(f"brokers do not know instance {instance_id}")
    return found[0]


def _shown(row: RouteCertificate) -> tuple[str, str, bytes, str]:
    return row.route, row.chain, keys.opened(row), row.client_ca
