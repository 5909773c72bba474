"""What can be configured per topic: Kafka's names, types and defaults, and which values this broker takes. Pure.

A default is a value of its own or one of the broker's settings. Some configurations are known but cannot be changed yet
(`fixed`): asking for another value is refused, because taking it and doing nothing about it would be a lie.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from dataplane.config import Settings
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.storage.config import LOG_APPEND_TIME
from dataplane.storage.rules import CODECS


class ConfigType(IntEnum):
    """A setting's type, as DescribeConfigs numbers them."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class ConfigSource(IntEnum):
    """Of DescribeConfigs: where a value comes from."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2  # set for one broker while it runs
    DYNAMIC_DEFAULT_BROKER = 3  # for all brokers while they run
    STATIC_BROKER = 4
    DEFAULT = 5


TIMESTAMP_TYPES = ("CreateTime", LOG_APPEND_TIME)
_KAFKA_VERSION = re.compile(r"(0\.(8\.[0-2]|9\.0|1[01]\.\d)|[1-3]\.\d)(\.\d+)?(-IV\d)?")
_REPLICA = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
_FOREVER = str(2**63 - 1)
_INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
_LONGEST_NUMBER = 20
LEAST_SEGMENT_BYTES = 2**20
"""As Kafka since KIP-1030. Each segment is three files: a segment for every batch would use up what all tenants share."""
LEAST_INDEX_BYTES = 2**12
"""The same for the indexes: some 340 entries, one for about 4 KiB each. (Kafka: 4 bytes.)"""
Problem = Callable[[str], str | None]
"""What is wrong with a value, to follow its name in a sentence; None where it is fine."""


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """One setting: name, type, default, and what values it takes."""

    name: str
    type: ConfigType
    default: str
    setting: str | None = None  # the field of Settings that is the default instead
    problem: Problem | None = None  # None: fixed

    @property
    def is_fixed(self) -> bool:
        """Whether no other value than the default is taken."""
        return self.problem is None

    def default_of(self, settings: Settings) -> str:
        """The value of a topic that does not say."""
        return self.default if self.setting is None else config_text(getattr(settings, self.setting))


def whole_number(low: int, high: int) -> Problem:
    """Takes a number within these bounds."""

    def problem(value: str) -> str | None:
        if not (value.isascii() and len(value) <= _LONGEST_NUMBER and value.removeprefix("-").isdecimal()):
            return "must be a whole number"
        return None if low <= int(value) <= high else f"must be from {low} to {high}"

    return problem


def _ratio(value: str) -> str | None:
    try:
        return None if 0 <= float(value) <= 1 else "must be from 0 to 1"
    except ValueError:
        return "must be a number"


def _policy(value: str) -> str | None:
    chosen = [part.strip() for part in value.split(",")]
    return None if all(part in ("delete", "compact") for part in chosen) else "must be delete, compact or both"


def _boolean(value: str) -> str | None:
    return None if value.lower() in ("true", "false") else "must be true or false"


def _one_of(*values: str) -> Problem:
    def problem(value: str) -> str | None:
        return None if value in values else f"must be one of {', '.join(values)}"

    return problem


def _int(name: str, default: str, low: int = 0, setting: str | None = None) -> TopicSetting:
    return TopicSetting(name, ConfigType.INT, default, setting, whole_number(low, _INT_MAX))


def _long(name: str, default: str, low: int = 0, setting: str | None = None) -> TopicSetting:
    return TopicSetting(name, ConfigType.LONG, default, setting, whole_number(low, LONG_MAX))


def _replicas(value: str) -> str | None:
    pairs = [pair.strip() for pair in value.split(",")] if value.strip() else []
    if pairs == ["*"] or all(_REPLICA.fullmatch(pair) for pair in pairs):
        return None
    return "must be * or pairs of partition and broker, as in 0:1,0:2"


def _kafka_version(value: str) -> str | None:
    return None if _KAFKA_VERSION.fullmatch(value) else "must be a version of Kafka from 0.8.0 to 3.9"


TOPIC_SETTINGS: dict[str, TopicSetting] = {
    setting.name: setting
    for setting in (
        TopicSetting("cleanup.policy", ConfigType.LIST, "", "log_cleanup_policy", _policy),
        TopicSetting("compression.gzip.level", ConfigType.INT, "-1"),
        TopicSetting("compression.lz4.level", ConfigType.INT, "9"),
        TopicSetting("compression.type", ConfigType.STRING, "", "compression_type", _one_of("producer", *CODECS)),
        TopicSetting("compression.zstd.level", ConfigType.INT, "3"),
        _long("delete.retention.ms", "", 0, "log_cleaner_delete_retention_ms"),
        _long("file.delete.delay.ms", "60000"),
        _long("flush.messages", "", 1, "log_flush_interval_messages"),
        _long("flush.ms", "", 0, "log_flush_interval_ms"),
        TopicSetting("follower.replication.throttled.replicas", ConfigType.LIST, "", None, _replicas),
        _int("index.interval.bytes", "", 0, "log_index_interval_bytes"),
        TopicSetting("leader.replication.throttled.replicas", ConfigType.LIST, "", None, _replicas),
        TopicSetting("local.retention.bytes", ConfigType.LONG, "-2"),
        TopicSetting("local.retention.ms", ConfigType.LONG, "-2"),
        _long("max.compaction.lag.ms", "", 1, "log_cleaner_max_compaction_lag_ms"),
        _int("max.message.bytes", "", 0, "message_max_bytes"),
        TopicSetting(
            "message.downconversion.enable", ConfigType.BOOLEAN, "", "log_message_downconversion_enable", _boolean
        ),
        TopicSetting("message.format.version", ConfigType.STRING, "3.0-IV1", None, _kafka_version),
        _long("message.timestamp.after.max.ms", "", 0, "log_message_timestamp_after_max_ms"),
        _long("message.timestamp.before.max.ms", "", 0, "log_message_timestamp_before_max_ms"),
        TopicSetting("message.timestamp.difference.max.ms", ConfigType.LONG, _FOREVER),
        TopicSetting(
            "message.timestamp.type", ConfigType.STRING, "", "log_message_timestamp_type", _one_of(*TIMESTAMP_TYPES)
        ),
        TopicSetting("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "", "log_cleaner_min_cleanable_ratio", _ratio),
        _long("min.compaction.lag.ms", "", 0, "log_cleaner_min_compaction_lag_ms"),
        _int("min.insync.replicas", "", 1, "min_insync_replicas"),
        TopicSetting("preallocate", ConfigType.BOOLEAN, "false"),
        TopicSetting("remote.log.copy.disable", ConfigType.BOOLEAN, "false"),
        TopicSetting("remote.log.delete.on.disable", ConfigType.BOOLEAN, "false"),
        TopicSetting("remote.storage.enable", ConfigType.BOOLEAN, "false"),
        _long("retention.bytes", "", -1, "log_retention_bytes"),
        _long("retention.ms", "", -1, "log_retention_ms"),
        _int("segment.bytes", "", LEAST_SEGMENT_BYTES, "log_segment_bytes"),
        _int("segment.index.bytes", "", LEAST_INDEX_BYTES, "log_index_size_max_bytes"),
        _long("segment.jitter.ms", "", 0, "log_roll_jitter_ms"),
        _long("segment.ms", "", 1, "log_roll_ms"),
        TopicSetting(
            "unclean.leader.election.enable", ConfigType.BOOLEAN, "", "unclean_leader_election_enable", _boolean
        ),
    )
}


def checked_overrides(config: Mapping[str, str | None], settings: Settings) -> dict[str, str]:
    """What a topic may be created with. Raises ApiError INVALID_CONFIG, also for a null."""
    nulls = [name for name, value in config.items() if value is None]
    if nulls:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{nulls[0]} must not be null")
    overrides = {name: value for name, value in config.items() if value is not None}
    check_overrides(config, overrides, settings)
    return overrides


def check_overrides(names: Iterable[str], overrides: Mapping[str, str], settings: Settings) -> None:
    """Whether a topic may have these overrides, of which `names` are new. Raises ApiError INVALID_CONFIG."""
    for name in names:
        setting = TOPIC_SETTINGS.get(name)
        if setting is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"unknown topic configuration {name}")
        problem = _problem_of(setting, overrides.get(name), settings)
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} {problem}")
    low, high = ("min.compaction.lag.ms", "max.compaction.lag.ms")
    if _long_of(low, overrides, settings) > _long_of(high, overrides, settings):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{low} must not be larger than {high}")


def min_insync_replicas(overrides: Mapping[str, str], settings: Settings) -> int:
    """Of a topic with these overrides."""
    return int(overrides.get("min.insync.replicas", settings.min_insync_replicas))


def _problem_of(setting: TopicSetting, value: str | None, settings: Settings) -> str | None:
    if value is None:
        return None
    if setting.problem is not None:
        return setting.problem(value)
    default = setting.default_of(settings)
    return None if value == default else f"cannot be changed yet: it is {default or 'empty'}"


def _long_of(name: str, overrides: Mapping[str, str], settings: Settings) -> int:
    return int(overrides.get(name) or TOPIC_SETTINGS[name].default_of(settings))


def config_text(value: object) -> str:
    """A setting's value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
