"""The door to the brokers' admin protocol. This and the other doors alone import confluent_kafka here.

It speaks on the internal listener, where names are physical, and proves that it is the control plane (`identification`).
`admin(cluster)` gives this process's client of a cluster, made at the first call, anew after a fork (librdkafka's threads do not
survive one), and anew when its certificate or credential has changed. Every call is bounded by TIMEOUT_S, what the controller is
asked for by CONTROLLER_TIMEOUT_S, and every failure is one of core.errors: `problem_of` is the one mapping. Texts from a broker
are shown with the tenant's own topic name in them.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
)

from controlplane.clusters.identification import Identification, to_brokers
from controlplane.core.errors import (
    AlreadyExists,
    ClusterUnavailable,
    Conflict,
    Invalid,
    LimitReached,
    NotFound,
    SluiceError,
    Unsupported,
)
from controlplane.core.portions import portions
from controlplane.kafka import running
from quota.contracts.instance import address_text
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from controlplane.clusters.address import ClusterAddress

Answer = TypeVar("Answer")
TIMEOUT_S = 10.0
CONTROLLER_TIMEOUT_S = 4.0
"""librdkafka waits for the controller that it knows, dead or not, and asks nobody for another: better to begin anew."""
SETTINGS_AT_ONCE = 200
"""Topics of which settings are asked for in one request: each answers some forty."""


class ClusterChanging(ClusterUnavailable):
    """As is said for some seconds after a broker's death, of an act that may have been carried out (`patience`)."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the cluster shows it."""

    partition: int
    leader: int | None  # broker id
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A topic's partitions, by number."""

    name: str  # physical
    partitions: tuple[Partition, ...]
    id: str = ""  # as Kafka writes it; another one for each topic that was ever made. Empty: the cluster gives none

    @property
    def replicas(self) -> int:
        """All replicas of all partitions: what is counted against an instance's partitions."""
        return sum(len(partition.replicas) for partition in self.partitions)


@dataclass(frozen=True, slots=True)
class Setting:
    """What is in force for a topic, and whether it was set for this topic."""

    value: str
    is_own: bool


class Admin(Protocol):
    """What this service asks of the cluster. Names are physical; every call may raise ClusterUnavailable."""

    def layouts(self, names: Sequence[str]) -> list[Layout]:
        """These topics in this order, without those that are not there."""
        ...

    def layout(self, name: str) -> Layout | None:
        """One topic; None if there is none."""
        ...

    def create(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str],
        validate_only: bool = False,
    ) -> None:
        """Raises AlreadyExists, Invalid, LimitReached. With `validate_only`, here and below, nothing else happens."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Topics that are gone already are no error."""
        ...

    def grow(self, name: str, partitions: int, *, validate_only: bool = False) -> None:
        """Raise the number of partitions. Raises NotFound, Invalid, Unsupported."""
        ...

    def config(self, name: str) -> dict[str, str]:
        """What was set for this topic. Raises NotFound."""
        ...

    def settings_in_force(self, names: Sequence[str]) -> dict[str, dict[str, Setting]]:
        """What is in force for these topics, defaults as well, without topics that are not there."""
        ...

    def config_set(self, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> None:
        """Set members; None takes one back to its default. Raises NotFound, Invalid, Unsupported."""
        ...

    def config_of_each(self, names: Sequence[str]) -> dict[str, dict[str, str] | SluiceError]:
        """What `config` says of each, or raises, asked for at once."""
        ...

    def config_set_each(
        self, names: Sequence[str], changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> dict[str, SluiceError | None]:
        """Set the same members of each, at once: what `config_set` raises, by topic; None: it is done."""
        ...


class KafkaAdmin:
    """The brokers' admin protocol, spoken by librdkafka."""

    def __init__(self, bootstrap: str, who: Identification) -> None:
        self.who = who
        self.settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            **who.of_librdkafka(),
            "client.id": "sluice-controlplane",
            "socket.timeout.ms": int(TIMEOUT_S * 1000),
            "reconnect.backoff.max.ms": 1000,
            "log_level": 2,  # a broker that is away is normal here, and is reported by the call that meets it
        }
        self._client = AdminClient(self.settings)

    @property
    def kafka(self) -> AdminClient:
        """For `group_door`, which asks by the same connections."""
        return self._client

    def layouts(self, names: Sequence[str]) -> list[Layout]:
        if not names:
            return []
        futures = self._client.describe_topics(TopicCollection(list(names)), request_timeout=TIMEOUT_S)
        found = []
        for name in names:
            try:
                found.append(_layout_of(name, _result(futures[name], name)))
            except NotFound:
                continue
        return found

    def layout(self, name: str) -> Layout | None:
        return next(iter(self.layouts([name])), None)

    def create(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int,
        config: Mapping[str, str],
        validate_only: bool = False,
    ) -> None:
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replication_factor, config=dict(config))
        futures = self._client.create_topics(
            [topic],
            operation_timeout=CONTROLLER_TIMEOUT_S - 1,
            request_timeout=CONTROLLER_TIMEOUT_S,
            validate_only=validate_only,
        )
        _result(futures[name], name)

    def delete(self, names: Sequence[str]) -> None:
        if not names:
            return
        futures = self._client.delete_topics(
            list(names), operation_timeout=CONTROLLER_TIMEOUT_S - 1, request_timeout=CONTROLLER_TIMEOUT_S
        )
        for name, future in futures.items():
            try:
                _result(future, name)
            except NotFound:
                continue

    def grow(self, name: str, partitions: int, *, validate_only: bool = False) -> None:
        futures = self._client.create_partitions(
            [NewPartitions(name, partitions)],
            operation_timeout=CONTROLLER_TIMEOUT_S - 1,
            request_timeout=CONTROLLER_TIMEOUT_S,
            validate_only=validate_only,
        )
        _result(futures[name], name)

    def config(self, name: str) -> dict[str, str]:
        found = self.config_of_each([name])[name]
        if isinstance(found, SluiceError):
            raise found
        return found

    def settings_in_force(self, names: Sequence[str]) -> dict[str, dict[str, Setting]]:
        found = {}
        for part in portions(names, SETTINGS_AT_ONCE):
            for name, settings in self._described(part).items():
                if isinstance(settings, NotFound):
                    continue
                if isinstance(settings, SluiceError):
                    raise settings
                found[name] = settings
        return found

    def _described(self, names: Sequence[str]) -> dict[str, dict[str, Setting] | SluiceError]:
        if not names:
            return {}
        resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        futures = self._client.describe_configs(resources, request_timeout=TIMEOUT_S)
        return _of_each(futures, _settings_of)

    def config_set(self, name: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> None:
        refusal = self.config_set_each([name], changes, validate_only=validate_only)[name]
        if refusal is not None:
            raise refusal

    def config_of_each(self, names: Sequence[str]) -> dict[str, dict[str, str] | SluiceError]:
        return {
            name: found if isinstance(found, SluiceError) else _own(found)
            for name, found in self._described(names).items()
        }

    def config_set_each(
        self, names: Sequence[str], changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> dict[str, SluiceError | None]:
        if not names:
            return {}
        futures = self._client.incremental_alter_configs(
            [_altered(name, changes) for name in names],
            request_timeout=CONTROLLER_TIMEOUT_S,
            validate_only=validate_only,
        )
        return _of_each(futures, lambda _: None)


def _of_each(
    futures: Mapping[ConfigResource, Future[Any]], made: Callable[[Any], Answer]
) -> dict[str, Answer | SluiceError]:
    """By topic: what is made of the answer, or why there is none."""
    found: dict[str, Answer | SluiceError] = {}
    for resource, future in futures.items():
        try:
            found[resource.name] = made(_result(future, resource.name))
        except SluiceError as error:
            found[resource.name] = error
    return found


def _own(settings: Mapping[str, Setting]) -> dict[str, str]:
    """What was set for the topic itself."""
    return {key: setting.value for key, setting in settings.items() if setting.is_own}


def _altered(name: str, changes: Mapping[str, str | None]) -> ConfigResource:
    entries = [
        ConfigEntry(
            key, value, incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        )
        for key, value in changes.items()
    ]
    return ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=entries)


def retention_of(settings: Mapping[str, Setting]) -> int | None:
    """What is in force for a topic, in ms; None: what is compacted alone, or kept without end, does not expire."""
    policy, retention = settings.get("cleanup.policy"), settings.get("retention.ms")
    if policy is not None and "delete" not in policy.value:
        return None
    retention_ms = -1 if retention is None else int(retention.value)
    return retention_ms if retention_ms >= 0 else None


def size_kept_of(settings: Mapping[str, Setting]) -> int | None:
    """How many bytes of each partition a topic keeps; None: it has no such limit, or is compacted alone."""
    policy, retention = settings.get("cleanup.policy"), settings.get("retention.bytes")
    if policy is not None and "delete" not in policy.value:
        return None
    size = -1 if retention is None else int(retention.value)
    return size if size >= 0 else None


_REFUSALS: Mapping[int, tuple[type[SluiceError], str]] = {
    KafkaError.TOPIC_ALREADY_EXISTS: (AlreadyExists, "topic_exists"),
    KafkaError.UNKNOWN_TOPIC_OR_PART: (NotFound, "topic_not_found"),
    KafkaError.TOPIC_EXCEPTION: (Invalid, "invalid_topic"),
    KafkaError.INVALID_PARTITIONS: (Invalid, "invalid_partitions"),
    KafkaError.INVALID_REPLICATION_FACTOR: (Invalid, "invalid_replication_factor"),
    KafkaError.INVALID_REPLICA_ASSIGNMENT: (Invalid, "invalid_replication_factor"),
    KafkaError.INVALID_CONFIG: (Invalid, "invalid_config"),
    KafkaError.INVALID_REQUEST: (Invalid, "invalid"),
    KafkaError.POLICY_VIOLATION: (LimitReached, "limit_reached"),
    KafkaError.REASSIGNMENT_IN_PROGRESS: (Conflict, "reassignment_in_progress"),
    KafkaError.UNSUPPORTED_VERSION: (Unsupported, "unsupported"),
    KafkaError._UNSUPPORTED_FEATURE: (Unsupported, "unsupported"),  # noqa: SLF001  # librdkafka's local codes begin so
    KafkaError._INVALID_ARG: (Invalid, "invalid"),  # noqa: SLF001
    KafkaError._UNKNOWN_TOPIC: (NotFound, "topic_not_found"),  # noqa: SLF001
}


AGAIN_MS = 20
"""librdkafka's own pause where enough is fetched for now is a second; a reader would stand still so long, again and again."""
WITHOUT_GROUP: Mapping[str, str | int | float | bool] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "earliest",  # what retention has deleted since the offsets were asked for is not waited for
    "fetch.wait.max.ms": 50,
}
"""Of a consumer that reads what it is assigned. librdkafka asks for a `group.id` all the same; nothing joins it or commits."""

PASSING = (
    KafkaError.NOT_CONTROLLER,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
)


NO_ANSWER = "the brokers do not answer in time"
_CHANGING = "a broker has gone or come, and the others are taking over: try again in a few seconds"
_WHY_NOT_NOW: Mapping[int, str] = {
    KafkaError._TRANSPORT: NO_ANSWER,  # noqa: SLF001
    KafkaError._TIMED_OUT: NO_ANSWER,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN: NO_ANSWER,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT: NO_ANSWER,
    KafkaError.NETWORK_EXCEPTION: NO_ANSWER,
    KafkaError.BROKER_NOT_AVAILABLE: _CHANGING,
    KafkaError.NOT_CONTROLLER: _CHANGING,
    KafkaError.LEADER_NOT_AVAILABLE: _CHANGING,
    KafkaError.NOT_LEADER_FOR_PARTITION: _CHANGING,
    KafkaError.NOT_COORDINATOR: _CHANGING,
    KafkaError.COORDINATOR_NOT_AVAILABLE: _CHANGING,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: "the broker that coordinates the group is still reading its offsets: "
    "try again in a few seconds",
    KafkaError.THROTTLING_QUOTA_EXCEEDED: "the instance may not change topics any faster: try again in a few seconds",
}


def why_not_now(error: KafkaError) -> str:
    """Why the cluster cannot answer, for tenants. An error without a sentence is named as Kafka's protocol names it."""
    known = _WHY_NOT_NOW.get(error.code())
    return known or f"the cluster cannot do this now ({error.name().lstrip('_')})"


def not_now(error: KafkaError, passing: Collection[int] = PASSING) -> ClusterUnavailable:
    """What is said of an error that is no refusal: the cluster cannot answer; `passing` ones pass by themselves."""
    kind = ClusterChanging if error.code() in passing else ClusterUnavailable
    return kind(why_not_now(error))


def problem_of(error: KafkaError, physical: str) -> SluiceError:
    """The answer for a Kafka error about a topic. What is no refusal means that the cluster cannot answer now."""
    text = str(error.str()) or error.name()
    owned = split_physical(physical)
    if owned:
        text = text.replace(physical, owned[1])
    if error.code() not in _REFUSALS:
        return not_now(error)
    kind, code = _REFUSALS[error.code()]
    if kind is Unsupported:
        text = "this cluster's release does not support it"
    return kind(text, code=code)


def bytes_of(field: str | bytes | None) -> bytes | None:
    """A key or a value, which librdkafka's types may make text."""
    return field.encode() if isinstance(field, str) else field


def _settings_of(entries: Mapping[str, Any]) -> dict[str, Setting]:
    own = (ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_TOPIC_CONFIG)
    return {
        key: Setting(entry.value, entry.source in own)
        for key, entry in sorted(entries.items())
        if entry.value is not None
    }


def _layout_of(name: str, described: Any) -> Layout:
    partitions = (
        Partition(
            partition.id,
            partition.leader.id if partition.leader else None,
            tuple(node.id for node in partition.replicas),
            tuple(node.id for node in partition.isr),
        )
        for partition in described.partitions
    )
    return Layout(
        name, tuple(sorted(partitions, key=lambda partition: partition.partition)), _id_of(described.topic_id)
    )


NO_ID = "A" * 22
"""The id of nothing: sixteen zero bytes in base64."""


def _id_of(uuid: object) -> str:
    text = str(uuid) if uuid is not None else ""
    return "" if text == NO_ID else text


def _result(future: Future[Any], name: str) -> Any:
    try:
        return future.result(timeout=TIMEOUT_S + 2)
    except FutureTimeoutError as error:
        raise ClusterUnavailable("the cluster does not answer") from error
    except KafkaException as error:
        raise problem_of(error.args[0], name) from error


_clients: dict[tuple[int, ClusterAddress], tuple[str, KafkaAdmin]] = {}
"""By process id and cluster, with the brokers' addresses that a client was made for."""
_lock = threading.Lock()


def admin(cluster: ClusterAddress) -> Admin:
    """This process's client of a cluster. Raises ClusterUnavailable where no broker is registered."""
    brokers = running.brokers(cluster)
    who = to_brokers()
    bootstrap = ",".join(address_text((broker.host, broker.port)) for broker in brokers)
    key = os.getpid(), cluster
    with _lock:
        made_for, client = _clients.get(key, ("", None))
        if client is None or made_for != bootstrap or client.who != who:
            client = KafkaAdmin(bootstrap, who)
            _clients[key] = (bootstrap, client)
    return client


def forget(cluster: ClusterAddress, failed: Admin) -> None:
    """The next `admin(cluster)` is a new client: this one may cling to a broker that is dead."""
    key = os.getpid(), cluster
    with _lock:
        if _clients.get(key, ("", None))[1] is failed:
            del _clients[key]
