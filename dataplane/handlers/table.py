"""The one table of APIs that this broker answers: versions advertised, on which listeners, by which function.

A key is advertised only when its handler works. `tenant` APIs are those whose every name the tenancy layer maps: an API
that is not marked is neither advertised nor answered on a tenant's listener, so a new one fails closed. Of one API the
higher versions are for brokers among themselves: its row says which are for clients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dataplane.handlers.admin import (
    acls,
    alter_configs,
    client_quotas,
    configs,
    log_dirs,
    partitions,
    scram_users,
    topics,
)
from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery import (
    api_versions,
    describe_cluster,
    metadata,
    sasl,
    topic_partitions,
)
from dataplane.handlers.groups import (
    consumer,
    find_coordinator,
    membership,
    offsets,
    txn_offsets,
)
from dataplane.handlers.internal import (
    backlogs,
    connections,
    control,
    elections,
    reassignments,
    replication,
    txn_markers,
)
from dataplane.handlers.outcome import Reply
from dataplane.handlers.records import (
    delete_records,
    fetch,
    log_offsets,
    produce,
    producers,
)
from dataplane.handlers.transactions import (
    adding,
    ending,
    init_producer_id,
    listing,
)
from dataplane.protocol.api import APIS, Api, ApiKey

Handle = Callable[[RequestContext, Any], Reply]


@dataclass(frozen=True, slots=True)
class Handler:
    """One row of the table."""

    api: Api
    low: int
    high: int
    handle: Handle
    tenant: bool
    high_of_tenants: int | None = None  # where they have fewer versions than brokers among themselves

    @property
    def of_tenants(self) -> Handler:
        """As it is on a tenant's listener."""
        return self if self.high_of_tenants is None else replace(self, high=self.high_of_tenants)

    def serves(self, version: int) -> bool:
        """Whether this version is one we answer."""
        return self.low <= version <= self.high


def _row(
    key: ApiKey, versions: tuple[int, int], handle: Handle, *, tenant: bool = True, high_of_tenants: int | None = None
) -> tuple[int, Handler]:
    return int(key), Handler(APIS[key], *versions, handle, tenant, high_of_tenants)


# Produce is advertised from 0 for ever: librdkafka sends uncompressed otherwise (its issue 4956).
HANDLERS: dict[int, Handler] = dict(
    (
        _row(ApiKey.PRODUCE, (0, 12), produce.handle_produce),
        _row(ApiKey.FETCH, (0, 17), fetch.handle_fetch),
        _row(ApiKey.LIST_OFFSETS, (0, 7), log_offsets.handle_list_offsets),
        _row(ApiKey.METADATA, (0, 12), metadata.handle_metadata),
        _row(ApiKey.OFFSET_COMMIT, (0, 9), offsets.handle_offset_commit),
        _row(ApiKey.OFFSET_FETCH, (0, 9), offsets.handle_offset_fetch),
        _row(ApiKey.FIND_COORDINATOR, (0, 6), find_coordinator.handle_find_coordinator),
        _row(ApiKey.JOIN_GROUP, (0, 9), membership.handle_join_group),
        _row(ApiKey.HEARTBEAT, (0, 4), membership.handle_heartbeat),
        _row(ApiKey.LEAVE_GROUP, (0, 5), membership.handle_leave_group),
        _row(ApiKey.SYNC_GROUP, (0, 5), membership.handle_sync_group),
        _row(ApiKey.DESCRIBE_GROUPS, (0, 6), membership.handle_describe_groups),
        _row(ApiKey.LIST_GROUPS, (0, 5), membership.handle_list_groups),
        _row(ApiKey.SASL_HANDSHAKE, (0, 1), sasl.handle_sasl_handshake),
        _row(ApiKey.API_VERSIONS, (0, 4), lambda ctx, ask: api_versions.handle_api_versions(ctx, ask, served)),
        _row(ApiKey.CREATE_TOPICS, (0, 7), topics.handle_create_topics),
        _row(ApiKey.DELETE_TOPICS, (0, 6), topics.handle_delete_topics),
        _row(ApiKey.DELETE_RECORDS, (0, 2), delete_records.handle_delete_records),
        _row(ApiKey.INIT_PRODUCER_ID, (0, 5), init_producer_id.handle_init_producer_id),
        _row(ApiKey.OFFSET_FOR_LEADER_EPOCH, (0, 4), log_offsets.handle_offset_for_leader_epoch),
        _row(ApiKey.ADD_PARTITIONS_TO_TXN, (0, 5), adding.handle_add_partitions_to_txn, high_of_tenants=3),
        _row(ApiKey.ADD_OFFSETS_TO_TXN, (0, 4), adding.handle_add_offsets_to_txn),
        _row(ApiKey.END_TXN, (0, 5), ending.handle_end_txn),
        _row(ApiKey.TXN_OFFSET_COMMIT, (0, 5), txn_offsets.handle_txn_offset_commit),
        _row(ApiKey.WRITE_TXN_MARKERS, (0, 2), txn_markers.handle_write_txn_markers, high_of_tenants=1),
        _row(ApiKey.DESCRIBE_ACLS, (0, 3), acls.handle_describe_acls),
        _row(ApiKey.CREATE_ACLS, (0, 3), acls.handle_create_acls),
        _row(ApiKey.DELETE_ACLS, (0, 3), acls.handle_delete_acls),
        _row(ApiKey.DESCRIBE_CONFIGS, (0, 4), configs.handle_describe_configs),
        _row(ApiKey.ALTER_CONFIGS, (0, 2), alter_configs.handle_alter_configs),
        _row(ApiKey.INCREMENTAL_ALTER_CONFIGS, (0, 1), alter_configs.handle_incremental_alter_configs),
        _row(ApiKey.DESCRIBE_PRODUCERS, (0, 0), producers.handle_describe_producers),
        _row(ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0, 0), topic_partitions.handle_describe_topic_partitions),
        _row(ApiKey.DESCRIBE_LOG_DIRS, (0, 4), log_dirs.handle_describe_log_dirs),
        _row(ApiKey.ALTER_REPLICA_LOG_DIRS, (0, 2), log_dirs.handle_alter_replica_log_dirs, tenant=False),
        _row(ApiKey.SASL_AUTHENTICATE, (0, 2), sasl.handle_sasl_authenticate),
        _row(ApiKey.CREATE_PARTITIONS, (0, 3), partitions.handle_create_partitions),
        _row(ApiKey.DELETE_GROUPS, (0, 2), membership.handle_delete_groups),
        _row(ApiKey.OFFSET_DELETE, (0, 0), offsets.handle_offset_delete),
        _row(ApiKey.CONSUMER_GROUP_HEARTBEAT, (0, 1), consumer.handle_consumer_group_heartbeat),
        _row(ApiKey.CONSUMER_GROUP_DESCRIBE, (0, 1), consumer.handle_consumer_group_describe),
        _row(ApiKey.DESCRIBE_CLIENT_QUOTAS, (0, 1), client_quotas.handle_describe_client_quotas),
        _row(ApiKey.ALTER_CLIENT_QUOTAS, (0, 1), client_quotas.handle_alter_client_quotas),
        _row(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, (0, 0), scram_users.handle_describe_user_scram_credentials),
        _row(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, (0, 0), scram_users.handle_alter_user_scram_credentials),
        _row(ApiKey.DESCRIBE_CLUSTER, (0, 1), describe_cluster.handle_describe_cluster),
        _row(ApiKey.ELECT_LEADERS, (0, 2), elections.handle_elect_leaders, tenant=False),
        _row(
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            (0, 0),
            reassignments.handle_alter_partition_reassignments,
            tenant=False,
        ),
        _row(
            ApiKey.LIST_PARTITION_REASSIGNMENTS, (0, 0), reassignments.handle_list_partition_reassignments, tenant=False
        ),
        _row(ApiKey.DESCRIBE_TRANSACTIONS, (0, 0), listing.handle_describe_transactions),
        _row(ApiKey.LIST_TRANSACTIONS, (0, 2), listing.handle_list_transactions),
        _row(ApiKey.DESCRIBE_CONNECTIONS, (0, 0), connections.handle_describe_connections, tenant=False),
        _row(ApiKey.DESCRIBE_BACKLOGS, (0, 0), backlogs.handle_describe_backlogs, tenant=False),
        _row(ApiKey.LEADER_AND_ISR, (5, 7), replication.handle_leader_and_isr, tenant=False),
        _row(ApiKey.STOP_REPLICA, (3, 4), replication.handle_stop_replica, tenant=False),
        _row(ApiKey.UPDATE_METADATA, (6, 8), control.handle_update_metadata, tenant=False),
        _row(ApiKey.CONTROLLED_SHUTDOWN, (2, 3), control.handle_controlled_shutdown, tenant=False),
        _row(ApiKey.ALTER_PARTITION, (0, 3), control.handle_alter_partition, tenant=False),
    )
)


def served(*, tenant: bool) -> list[Handler]:
    """The rows of a kind of listener, in order of their keys."""
    rows = [row for _, row in sorted(HANDLERS.items())]
    return [row.of_tenants for row in rows if row.tenant] if tenant else rows
