"""A broker's configuration as DescribeConfigs shows it, and the part of it that can change while it runs. Pure.

Settings have Kafka's names; what is not one of `Settings` (addresses, directories) is shown and fixed. A setting that is
the default of a topic configuration which is honoured can be changed for one broker or for all of them, as in Kafka:
every log takes its defaults anew. So can the rates of replicas that move. All others are read when the broker starts
and are read-only.

The value in force is the first of: set for this broker, set for all brokers, in broker.toml, Kafka's default.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dataplane.cluster.topic_settings import (
    LONG_MAX,
    TOPIC_SETTINGS,
    ConfigSource,
    ConfigType,
    Problem,
    config_text,
    whole_number,
)
from dataplane.config import BrokerConfig, Settings
from dataplane.protocol.errors import ApiError, ErrorCode
from quota.contracts.instance import address_text

_KAFKA_NAMES = {
    "high_watermark_checkpoint_interval_ms": "replica.high.watermark.checkpoint.interval.ms",
    "socket_listen_backlog": "socket.listen.backlog.size",
}
_KAFKAS = (
    "num_", "default_", "auto_", "min_", "offsets_", "replica_", "log_", "compression_", "high_watermark_", "message_",
    "fetch_max", "max_", "socket_", "connections_", "group_min", "group_max_s", "group_initial", "offset_", "producer_",
    "unclean_", "transaction_", "transactional_id_",
)  # fmt: skip
_OUR_OWN = ("log_open_", "transaction_max_partitions", "transaction_partitions_per", "transaction_offsets_bytes")
"""What fields begin with that Kafka has as well: a tenant sees these, and nothing of how the service is run."""
_DYNAMIC: dict[str, Problem] = {
    "leader_replication_throttled_rate": whole_number(0, LONG_MAX),
    "follower_replication_throttled_rate": whole_number(0, LONG_MAX),
    "replica_alter_log_dirs_io_max_bytes_per_second": whole_number(1, LONG_MAX),
}
_LONGS = (
    "connections_max_idle_ms",
    "connections_max_reauth_ms",
    "replica_lag_time_max_ms",
    "high_watermark_checkpoint_interval_ms",
    "log_retention_check_interval_ms",
    "log_cleaner_backoff_ms",
    "log_cleaner_dedupe_buffer_size",
    "log_flush_scheduler_interval_ms",
    *_DYNAMIC,
)
_SHORTS = ("offsets_topic_replication_factor", "transaction_state_log_replication_factor")
_TYPES = {bool: ConfigType.BOOLEAN, int: ConfigType.INT, float: ConfigType.DOUBLE, str: ConfigType.STRING}


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """One field of `Settings` as Kafka would call it."""

    name: str
    field: str
    type: ConfigType
    default: str
    problem: Problem | None = None  # None: read-only

    @property
    def for_tenants(self) -> bool:
        """Whether people who know Kafka know this setting."""
        return self.field.startswith(_KAFKAS) and not self.field.startswith(_OUR_OWN)


def _settings() -> Iterable[BrokerSetting]:
    dynamic = {s.setting: s for s in TOPIC_SETTINGS.values() if s.setting is not None and not s.is_fixed}
    for field in dataclasses.fields(Settings):
        topic = dynamic.get(field.name)
        name = _KAFKA_NAMES.get(field.name, field.name.replace("_", "."))
        default = config_text(field.default)
        if topic is not None:
            yield BrokerSetting(name, field.name, topic.type, default, topic.problem)
        elif field.name in _LONGS or field.name in _SHORTS:
            yield BrokerSetting(
                name,
                field.name,
                ConfigType.LONG if field.name in _LONGS else ConfigType.SHORT,
                default,
                _DYNAMIC.get(field.name),
            )
        else:
            yield BrokerSetting(name, field.name, _TYPES[type(field.default)], default)


BROKER_SETTINGS: dict[str, BrokerSetting] = {setting.name: setting for setting in _settings()}


@dataclass(frozen=True, slots=True)
class Shown:
    """A value and where it comes from."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class Layers:
    """The settings of one broker from all their sources."""

    static: Settings
    all_brokers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    this_broker: Mapping[str, str] = dataclasses.field(default_factory=dict)
    instance: Mapping[str, str] = dataclasses.field(default_factory=dict)  # as one instance sees the brokers

    def of(self, setting: BrokerSetting) -> list[Shown]:
        """Every source that has a say, the one that is in force first; the last is Kafka's default."""
        found = []
        if setting.name in self.instance:
            found.append(Shown(setting.name, self.instance[setting.name], ConfigSource.DYNAMIC_DEFAULT_BROKER))
        for layer, source in (
            (self.this_broker, ConfigSource.DYNAMIC_BROKER),
            (self.all_brokers, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ):
            if _is_taken(setting, layer.get(setting.name)):
                found.append(Shown(setting.name, layer[setting.name], source))
        static = config_text(getattr(self.static, setting.field))
        if static != setting.default:
            found.append(Shown(setting.name, static, ConfigSource.STATIC_BROKER))
        return [*found, Shown(setting.name, setting.default, ConfigSource.DEFAULT)]

    def of_field(self, field: str) -> list[Shown]:
        """The same by the name of the field."""
        return self.of(BROKER_SETTINGS[_KAFKA_NAMES.get(field, field.replace("_", "."))])

    @property
    def effective(self) -> Settings:
        """What is in force."""
        changed: dict[str, Any] = {}
        for setting in BROKER_SETTINGS.values():
            first = self.of(setting)[0]
            if first.source in (ConfigSource.DYNAMIC_BROKER, ConfigSource.DYNAMIC_DEFAULT_BROKER):
                default = getattr(self.static, setting.field)
                text = first.value or ""
                changed[setting.field] = text.lower() == "true" if isinstance(default, bool) else type(default)(text)
        return dataclasses.replace(self.static, **changed)


def _is_taken(setting: BrokerSetting, value: str | None) -> bool:
    """Whatever stands in ZooKeeper, a broker takes over only what it can honour."""
    return value is not None and setting.problem is not None and setting.problem(value) is None


def check_broker_overrides(names: Iterable[str], overrides: Mapping[str, str]) -> None:
    """Whether these may be set while brokers run. Raises ApiError INVALID_REQUEST, as Kafka."""
    for name in names:
        setting = BROKER_SETTINGS.get(name)
        if setting is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{name} is not a configuration that can be set while brokers run"
            )
        if setting.problem is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{name} is read-only: it is set in broker.toml and read when the broker starts",
            )
        problem = setting.problem(overrides[name]) if name in overrides else None
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} {problem}")


def fixed_facts(
    config: BrokerConfig, *, tenant: bool, auto_create: bool
) -> list[tuple[str, str | None, ConfigType, bool]]:
    """What is shown beside the settings: (name, value, type, whether it was configured). No addresses for tenants."""
    text, listen = ConfigType.STRING, f"INTERNAL://{address_text(config.internal)}"
    facts: list[tuple[str, str | None, ConfigType, bool]] = [
        ("broker.id", str(config.id), ConfigType.INT, True),
        ("node.id", str(config.id), ConfigType.INT, True),
        ("broker.rack", config.rack, text, config.rack is not None),
        ("advertised.listeners", None, text, False),
        ("auto.leader.rebalance.enable", "true", ConfigType.BOOLEAN, False),
        ("delete.topic.enable", "true", ConfigType.BOOLEAN, False),
        ("inter.broker.protocol.version", "3.9-IV0", text, False),
        ("process.roles", "", ConfigType.LIST, False),
    ]
    if tenant:
        return [*facts, ("auto.create.topics.enable", config_text(auto_create), ConfigType.BOOLEAN, auto_create)]
    return [
        *facts,
        ("listeners", listen, text, True),
        ("log.dirs", ",".join(config.data_dirs), text, True),
        ("zookeeper.connect", config.zookeeper + config.chroot, text, True),
        ("zookeeper.session.timeout.ms", str(config.session_timeout_ms), ConfigType.INT, True),
    ]
