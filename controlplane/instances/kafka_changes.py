"""What Kafka clients have changed, as entries of an organisation's audit trail: ``kafka.<api>``, by the principal.

Brokers write it to a topic of their cluster (`quota.contracts.audit`); the worker takes it from there. How far it has come
stands in a row that is written in the transaction of the entries: a worker that dies has written both or neither, and of two at
once one finds the row moved on. A broker that did not hear that its records are there writes them again, byte for byte: within
the hour the second one is known (core/audit_folds.py).

Clients may change things in a loop, so that there are bounds: DeleteRecords, by which Kafka Streams purges what it has read, is
told once an hour for each principal and topic, and of everything else as much as `MOST` says.
"""

from __future__ import annotations

import hashlib
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from django.db import DataError, transaction

from controlplane.clusters.models import ChangesRead, PhysicalCluster
from controlplane.clusters.services import cluster_list
from controlplane.core.audit_folds import Most, record_once
from controlplane.core.clock import SYSTEM_CLOCK, Clock
from controlplane.core.errors import Unavailable
from controlplane.core.kept import keep, kept
from controlplane.core.origin import Origin
from controlplane.instances.models import Instance, InstanceState
from controlplane.kafka import changes
from quota.contracts.audit import AuditKind, AuditRecord
from quota.contracts.instance import ContractError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controlplane.tenants.models import Organisation

LOG = logging.getLogger(__name__)
KAFKA = "kafka"
MOST = Most(of_actor=300, of_all=1_000)
PORTIONS = 10
"""Of one cluster in a round: the next one goes on."""
ONCE_AN_HOUR = frozenset({"DELETE_RECORDS"})
AWAY_S = 60
"""A cluster that did not answer is not asked again for so long: a worker waits for it up to ten seconds each time."""
DONE = "NONE"
LONGEST_ACTOR, LONGEST_TARGET = 254, 320


def changes_read_all(*, clock: Clock = SYSTEM_CLOCK) -> int:
    """Of every cluster; how many records were taken. One that is away keeps no other waiting."""
    total = 0
    for cluster in cluster_list():
        key = f"kafka-changes-away:{cluster.pk}"
        if kept(key, LOG, "which clusters are away is not known"):
            continue
        try:
            for _ in range(PORTIONS):
                taken = changes_read(cluster, clock=clock)
                total += taken
                if taken < changes.AT_ONCE:
                    break
        except Unavailable as error:
            LOG.debug(
                "what clients change in cluster %s is not read: %s", cluster, error
            )  # health says that it is away
            keep(key, True, AWAY_S, LOG, "that a cluster is away is not remembered")
        except Exception:  # whatever is the matter with one must not keep the others from being read
            LOG.exception("what clients change in cluster %s", cluster)
    return total


def some_have_told_none(organisation: Organisation) -> bool:
    """Whether of an instance's cluster nothing was ever read: no client has changed anything, or its brokers do not write it."""
    rows = Instance.objects.for_organisation(organisation).exclude(state=InstanceState.DELETED)
    return rows.exclude(cluster__in=ChangesRead.objects.filter(offset__gt=0).values("cluster")).exists()


def changes_read(cluster: PhysicalCluster, *, clock: Clock = SYSTEM_CLOCK) -> int:
    """A portion of one cluster's; how many records that were. Raises ClusterUnavailable."""
    row, _ = ChangesRead.objects.get_or_create(cluster=cluster, defaults={"offset": 0})
    found = changes.portion(cluster.address, row.offset)
    if found.next == row.offset and not found.values:
        return 0
    with transaction.atomic():
        locked = ChangesRead.objects.select_for_update().get(pk=row.pk)
        if locked.offset != row.offset:
            return 0  # another worker was faster
        records = [record for value in found.values if (record := _record(value)) is not None]
        owners = _instances(cluster, records)
        for record in records:
            if record.instance in owners:
                _told(owners[record.instance], record, clock)
        locked.offset = found.next
        locked.save(update_fields=["offset"])
    return len(found.values)


def _record(value: bytes) -> AuditRecord | None:
    """None: it is none of a change that was made, or of a newer release."""
    try:
        record = AuditRecord.from_value(value)
    except ContractError as error:
        LOG.warning("a record of what clients change cannot be read: %s", error)
        return None
    return record if record.kind is AuditKind.REQUEST and record.outcome == DONE else None


def _instances(cluster: PhysicalCluster, records: Sequence[AuditRecord]) -> Mapping[str | None, Instance]:
    """By id; those of this cluster alone: its brokers say nothing of others."""
    rows = Instance.objects.unscoped("brokers say what happens at everyone's").filter(cluster=cluster)
    ids = {record.instance for record in records if record.instance is not None}
    return dict(rows.select_related("organisation").in_bulk(ids))


def _told(instance: Instance, record: AuditRecord, clock: Clock) -> None:
    api = record.api or "request"
    kind, _, name = (record.resource or "").partition(":")
    folded = api in ONCE_AN_HOUR
    digest = hashlib.sha256(record.value()).hexdigest()
    detail: dict[str, str | int | None]
    detail = {"principal": record.principal, "client_id": record.client_id, "resource": record.resource}
    detail |= {
        "route": record.route,
        "broker": record.broker,
        "left_out": record.left_out or None,
        "kind": kind or None,
    }
    try:
        record_once(
            organisation=instance.organisation,
            actor=(record.principal or "").replace("\0", "\N{REPLACEMENT CHARACTER}")[:LONGEST_ACTOR],
            action=f"{KAFKA}.{api.lower()}",
            target=(f"{instance.pk}/{name}" if name else instance.pk)[:LONGEST_TARGET],
            detail={member: value for member, value in detail.items() if value is not None},
            alike=() if folded else (digest,),
            most=MOST,
            counted_as=KAFKA,
            origin=Origin(address=record.source),
            at=datetime.fromtimestamp(record.time_ms / 1000, UTC),
            clock=clock,
        )
    except (
        DataError
    ):  # one that the database does not take must not stop all behind it; whatever else goes wrong is tried again
        LOG.exception("a change by a Kafka client is not in the audit trail of %s", instance.organisation_id)
