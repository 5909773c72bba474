"""What a broker is told at start: `broker.toml`.

[broker]    id, data_dirs, internal, zookeeper, chroot, secrets_file, session_timeout_ms, rack, internal_authentication,
            advertised_internal: where the other brokers reach the internal listener, if not at `internal`
            shared_secret: what the cluster secret itself is good for (`quota.contracts.identity.SharedSecret`): "refused",
            while brokers are replaced that know no identities "said", and then "accepted"
            internal_security: whether brokers speak TLS to each other (`quota.contracts.internal_security`): "sasl_plaintext",
            on the way "ssl_accepted" and "ssl_said", then "ssl"; tls_folder: where the certificate for that is
            (`quota.tls.material`); tls_identities: rules from a certificate's subject to an identity (`quota.tls.shown`)
            cluster: how usage records name the cluster: its name in the control plane, "default" where it has but one
[zookeeper] acl, tls: `quota.zookeeper.settings`
[proxy_protocol]
            peers: CIDRs of the load balancers whose PROXY headers are believed on routes that have them; without: nobody
[settings]  any field of `Settings`; names and defaults are Kafka's where Kafka has them
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quota.contracts.identity import Keys, SharedSecret
from quota.contracts.identity import broker as broker_of
from quota.contracts.instance import parse_address
from quota.contracts.internal_security import InternalSecurity, internal_security
from quota.contracts.networks import network_of
from quota.contracts.zookeeper import Party
from quota.contracts.zookeeper_login import NOBODY, Access
from quota.tls.current import Current
from quota.tls.shown import DEFAULT_RULES, Rules
from quota.zookeeper.settings import access_of

RECORD_VALIDATIONS = ("header", "full")
MIGRATION_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
_CLUSTER = re.compile(r"[A-Za-z0-9._-]{1,64}")


class ConfigError(Exception):
    """The configuration cannot be used; the text says what to change."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Tunables. Times in milliseconds, sizes in bytes."""

    num_partitions: int = 1
    default_replication_factor: int = 3
    auto_create_topics_enable: bool = False  # of the cluster's own topics; an instance says for itself
    min_insync_replicas: int = 1
    offsets_topic_num_partitions: int = 8
    offsets_topic_replication_factor: int = 3
    offsets_topic_segment_bytes: int = 100 * 2**20
    transaction_state_log_num_partitions: int = 8
    transaction_state_log_replication_factor: int = 3
    transaction_state_log_min_isr: int = 2
    transaction_state_log_segment_bytes: int = 100 * 2**20
    transaction_partition_verification_enable: bool = True  # of topics; for offsets of groups it is always on
    transaction_max_timeout_ms: int = 900_000
    transaction_max_partitions: int = 2_000  # in one transaction: each more partition writes all of them again
    transaction_partitions_per_instance: int = 100_000  # in all of its open transactions that this broker coordinates
    transaction_offsets_bytes_per_instance: int = 32 * 2**20  # of offsets pending in them, in its groups here
    transactional_id_expiration_ms: int = 7 * 86_400_000
    transactional_ids_per_instance: int = 2_000  # in each partition of the topic of transactions
    replica_lag_time_max_ms: int = 10_000
    replica_fetch_wait_max_ms: int = 500
    replica_fetch_max_bytes: int = 2**20
    replica_fetch_response_max_bytes: int = 10 * 2**20
    replica_alter_log_dirs_io_max_bytes_per_second: int = 2**63 - 1  # for each piece of a replica that moves
    log_segment_bytes: int = 2**30
    log_index_interval_bytes: int = 4096
    log_index_size_max_bytes: int = 10 * 2**20
    log_roll_ms: int = 168 * 3_600_000
    log_roll_jitter_ms: int = 0
    log_open_segments_max: int = 1_000  # each may hold three descriptors; the process gives what the system allows
    log_flush_interval_messages: int = 2**63 - 1  # 1: only what is on disk is acknowledged
    log_flush_interval_ms: int = 2**63 - 1
    log_flush_scheduler_interval_ms: int = 1_000  # Kafka's default is never, with which flush.ms means nothing
    log_retention_ms: int = 168 * 3_600_000
    log_retention_bytes: int = -1
    log_cleanup_policy: str = "delete"
    log_cleaner_enable: bool = True
    log_cleaner_backoff_ms: int = 15_000
    log_cleaner_dedupe_buffer_size: int = 128 * 2**20  # what the keys of a round may take
    log_cleaner_io_buffer_load_factor: float = 0.9
    log_cleaner_io_max_bytes_per_second: float = 1.7976931348623157e308
    log_cleaner_min_cleanable_ratio: float = 0.5
    log_cleaner_min_compaction_lag_ms: int = 0
    log_cleaner_max_compaction_lag_ms: int = 2**63 - 1
    log_cleaner_delete_retention_ms: int = 86_400_000
    log_retention_check_interval_ms: int = 300_000
    log_message_timestamp_type: str = "CreateTime"
    log_message_timestamp_before_max_ms: int = 2**63 - 1
    log_message_timestamp_after_max_ms: int = 2**63 - 1
    log_message_downconversion_enable: bool = True
    compression_type: str = "producer"
    high_watermark_checkpoint_interval_ms: int = 5_000
    message_max_bytes: int = 1_048_588
    record_validation: str = "header"  # or "full": every record of what producers send
    tenant_max_message_bytes: int = 12 * 2**20  # what a tenant may set as max.message.bytes
    tenant_max_request_bytes: int = 16 * 2**20  # of a tenant's request: it is checked and written within one turn
    fetch_max_bytes: int = 55 * 2**20
    max_incremental_fetch_session_cache_slots: int = 1_000  # of each instance: none can push out another's
    fetch_session_slots_per_principal: int = 500  # of those
    fetch_session_partitions_per_instance: int = 100_000  # in all of its sessions together
    producer_state_bytes_per_instance: int = 32 * 2**20  # what all of its logs here remember of idempotent producers
    replica_selector_class: str = (
        ""  # org.apache.kafka.common.replica.RackAwareReplicaSelector is the one there is (KIP-392)
    )
    socket_request_max_bytes: int = 100 * 2**20
    socket_listen_backlog: int = 512
    connections_max_idle_ms: int = 600_000
    connections_max_reauth_ms: int = 0  # for so long a login by SASL is good (KIP-368); 0: until the connection ends
    tls_handshakes_per_s: int = 50  # that begin, of each instance; others wait for some seconds
    max_connections: int = 2**31 - 1  # of all tenants; the process's descriptors bound it too
    tcp_congestion_control: str = ""  # empty: the system's; BROKER.md's measurements say what it costs on loopback
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 100  # members that start together shall meet in one round
    group_max_size: int = 5_000  # not Kafka's "any": a group costs all tenants of its coordinator
    group_max_groups_per_instance: int = 2_000  # in each partition of the offsets topic
    group_bytes_per_s_per_instance: int = (
        2**20
    )  # what JoinGroup, SyncGroup, OffsetCommit and transactions may leave behind
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_max_size: int = 5_000  # as group_max_size
    group_consumer_assignors: str = "uniform,range"
    group_consumer_migration_policy: str = "bidirectional"  # of groups with members; or: upgrade, downgrade, disabled
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 10_080
    producer_id_expiration_ms: int = 86_400_000
    unclean_leader_election_enable: bool = False
    leader_imbalance_check_interval_ms: int = 5_000
    leader_replication_throttled_rate: int = 2**63 - 1  # bytes/s of replicas that topics name as throttled
    follower_replication_throttled_rate: int = 2**63 - 1
    controller_request_timeout_ms: int = 10_000
    controller_mutation_rate: int = (
        50  # partitions that an instance may have made, added or deleted in a second (KIP-599)
    )
    controller_quota_window_num: int = 11
    controller_quota_window_size_seconds: int = 1
    quota_report_period_ms: int = 1_000
    changes_topic_enable: bool = False  # what tenants' clients change is told in `__changes` (`quota.contracts.audit`)
    changes_topic_retention_ms: int = 7 * 86_400_000
    usage_topic_num_partitions: int = 8
    usage_topic_retention_ms: int = 35 * 86_400_000
    usage_emit_interval_ms: int = 10_000  # records of topics whose byte counters have changed
    usage_storage_interval_ms: int = 600_000  # records of topics that only store
    usage_instance_interval_ms: int = 60_000  # records of whole instances that did anything
    usage_emit_records_per_s: int = 500  # of topics that have changed; where more have, each is told less often


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Everything that broker.toml says of one broker, checked."""

    id: int
    data_dirs: tuple[str, ...]
    internal: tuple[str, int]
    zookeeper: str = ""
    chroot: str = ""
    zookeeper_access: Access = NOBODY
    keys: Keys = field(default=Keys(), repr=False)
    session_timeout_ms: int = 6_000
    rack: str | None = None
    internal_authentication: str = "sasl"  # "none": for tests, on loopback only; see `load`
    advertised_internal: tuple[str, int] | None = None  # None: the address that is listened on
    proxy_peers: tuple[str, ...] = ()  # CIDRs
    internal_security: InternalSecurity = InternalSecurity.SASL_PLAINTEXT
    tls_folder: str = ""
    tls_identities: Rules = DEFAULT_RULES
    cluster: str = "default"
    settings: Settings = Settings()


def load(path: str) -> BrokerConfig:
    """Read `broker.toml` and the secrets file that it names. Raises ConfigError.

    `internal_authentication = "none"` lets everybody who reaches the internal listener do everything, in all tenants' data.
    It is for test suites that know no SASL, so it is refused unless only this machine reaches the listener.
    """
    try:
        document = tomllib.loads(Path(path).read_text())
        broker = document["broker"]
        secrets = json.loads(Path(broker["secrets_file"]).read_text())
        internal = parse_address(broker["internal"])
        keys = _keys(secrets, broker)
        config = BrokerConfig(
            id=broker["id"],
            data_dirs=tuple(broker["data_dirs"]),
            internal=internal,
            zookeeper=broker["zookeeper"],
            chroot=broker.get("chroot", ""),
            zookeeper_access=access_of(document.get("zookeeper", {}), (keys.secret, *keys.accepted), Party.BROKERS),
            keys=keys,
            session_timeout_ms=broker.get("session_timeout_ms", 6_000),
            rack=broker.get("rack") or None,
            internal_authentication=_authentication(broker.get("internal_authentication", "sasl"), internal[0]),
            advertised_internal=(
                parse_address(broker["advertised_internal"]) if "advertised_internal" in broker else None
            ),
            proxy_peers=_networks(document.get("proxy_protocol", {})),
            internal_security=internal_security(broker.get("internal_security", InternalSecurity.SASL_PLAINTEXT)),
            tls_folder=broker.get("tls_folder", ""),
            tls_identities=tuple(broker.get("tls_identities", DEFAULT_RULES)),
            cluster=_cluster(broker.get("cluster", "default")),
            settings=settings_from(document.get("settings", {})),
        )
        _check_tls(config)
    except KeyError as error:
        raise ConfigError(f"{path}: {error} is missing") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return config


def _check_tls(config: BrokerConfig) -> None:
    """Raises ConfigError, OSError, ValueError: the broker would not start with it."""
    if not config.internal_security.has_tls:
        return
    if not config.tls_folder:
        raise ConfigError(f'internal_security = "{config.internal_security}" needs a tls_folder')
    if config.internal_authentication == "none":
        raise ConfigError(
            'internal_authentication = "none" is for tests without TLS: over TLS everybody shows who he is'
        )
    Current(config.tls_folder, broker_of(config.id), lambda path: Path(path).read_bytes(), config.tls_identities)


def _cluster(name: object) -> str:
    """Raises ConfigError."""
    if not (isinstance(name, str) and _CLUSTER.fullmatch(name)):
        raise ConfigError(f"cluster must be 1 to 64 letters, digits, '.', '_' and '-', not {name!r}")
    return name


def _networks(section: dict[str, Any]) -> tuple[str, ...]:
    """The peers of `[proxy_protocol]`. Raises ConfigError, ValueError."""
    peers = section.get("peers", [])
    if set(section) - {"peers"} or not isinstance(peers, list) or not all(isinstance(peer, str) for peer in peers):
        raise ConfigError("proxy_protocol: it has peers, a list of CIDRs, and nothing else")
    return tuple(str(network_of(peer, strict=True)) for peer in peers)


def _keys(secrets: object, broker: dict[str, Any]) -> Keys:
    keys = Keys.from_document(secrets, str(broker.get("shared_secret", SharedSecret.REFUSED)))
    if not keys.secret:
        raise ConfigError(
            f"{broker['secrets_file']}: cluster_secret is missing or empty: a broker needs it to know the others"
        )
    return keys


def _authentication(wanted: str, host: str) -> str:
    if wanted not in ("sasl", "none"):
        raise ConfigError(f'internal_authentication must be "sasl" or "none", not {wanted!r}')
    if wanted == "none" and not _is_loopback(host):
        raise ConfigError(
            f'internal_authentication = "none" is for tests on loopback: {host} can be reached from elsewhere'
        )
    return wanted


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name: whatever it means now, it may mean something else tomorrow
        return False


def settings_from(values: dict[str, Any]) -> Settings:
    """Settings with some values replaced. Raises ConfigError for a name or type that is not known."""
    known = {f.name: f for f in dataclasses.fields(Settings)}
    for name, value in values.items():
        if name not in known:
            raise ConfigError(f"settings: {name} is not a setting")
        if type(value) is not type(known[name].default):
            raise ConfigError(f"settings: {name} must be of type {type(known[name].default).__name__}, not {value!r}")
    settings = Settings(**values)
    if settings.record_validation not in RECORD_VALIDATIONS:
        raise ConfigError(f"settings: record_validation must be one of {', '.join(RECORD_VALIDATIONS)}")
    if settings.usage_emit_records_per_s < 1:
        raise ConfigError("settings: usage_emit_records_per_s must be 1 or more")
    if settings.group_consumer_migration_policy not in MIGRATION_POLICIES:
        raise ConfigError(f"settings: group_consumer_migration_policy must be one of {', '.join(MIGRATION_POLICIES)}")
    return settings
