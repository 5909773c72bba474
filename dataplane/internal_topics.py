"""Topics that come into being because something needs them: the cluster's own, and a tenant's where its instance allows it.

Any broker may need one; only the controller creates. So it is asked over the internal listener, like by any client. That
the topic is there is told by the controller's next update to all brokers, which often comes before its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dataplane.cluster.metadata import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from dataplane.peers.outbound import PeerError
from dataplane.protocol.errors import ErrorCode
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from dataplane.tasks import Future, Task, either, resolved, sleep
from dataplane.throttle.mutations import mutation_bucket
from quota.contracts.audit import CHANGES_TOPIC
from quota.contracts.instance import TopicDefaults
from quota.contracts.namespace import is_kept_by_the_service, split_physical
from quota.contracts.usage import USAGE_TOPIC

if TYPE_CHECKING:
    from dataplane.cluster.metadata import Metadata
    from dataplane.config import BrokerConfig, Settings
    from dataplane.doors import Doors
    from dataplane.peers.outbound import Peers
    from dataplane.tenancy.registry import Registry

_ASK_AGAIN_S = 0.1
_ATTEMPTS = 100
_MAX_UNDER_WAY = 100
_VERSION = 7
_AUDIT_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": str(30 * 86_400_000),
    "retention.bytes": str(64 * 2**20),
    "segment.bytes": str(8 * 2**20),
}
_OFFSETS_CONFIG = {"cleanup.policy": "compact", "compression.type": "producer"}


class Rooms(Protocol):
    """What it takes of a broker; looked up when it is needed, since not all of it is there at the beginning."""

    config: BrokerConfig
    doors: Doors
    metadata: Metadata
    patient_peers: Peers
    registry: Registry


class InternalTopics:
    """Creates each topic once at a time."""

    def __init__(self, broker: Rooms) -> None:
        self._broker = broker
        self._under_way: dict[str, Task[None]] = {}
        self._awaited: dict[str, Future[None]] = {}  # of those under way: resolved when an update has it
        broker.metadata.on_updated(self._updated)

    def ensure(self, name: str) -> Future[None]:
        """Resolved when this broker knows the topic, or has given up."""
        if self._broker.metadata.partitions(name):
            return resolved(None)
        return self._begin(name)

    def create_for_tenant(self, physical: str) -> None:
        """Start to create it; the client asks again, also where too many are under way, or too many have been made."""
        if physical not in self._under_way and len(self._under_way) < _MAX_UNDER_WAY and self._pays(physical):
            self._begin(physical)

    def _pays(self, physical: str) -> bool:
        """We ask the controller, who lets us through: so what an instance may have made in a second is counted here."""
        owner, settings = split_physical(physical), self._broker.config.settings
        instance = None if owner is None else self._broker.registry.by_key(owner[0])
        if instance is None:
            return True
        now = self._broker.doors.clock.monotonic()
        bucket = mutation_bucket(instance, settings, now)
        if bucket.delay(now):
            return False
        bucket.charge(instance.spec.topic_defaults.partitions or settings.num_partitions, now)
        return True

    def _begin(self, name: str) -> Task[None]:
        task = self._under_way.get(name)
        if task is None or task.done:
            task = self._under_way[name] = Task(self._create(name), f"create {len(name)} characters")
        return task

    def _updated(self) -> None:
        for name in [name for name in self._awaited if self._broker.metadata.has_topic(name)]:
            self._awaited.pop(name).resolve(None)

    async def _create(self, name: str) -> None:
        request = CreateTopicsRequest(topics=(self._declaration(name),), timeout_ms=10_000)
        told = self._awaited[name] = Future()
        try:
            for _ in range(_ATTEMPTS):
                if self._broker.metadata.has_topic(name) or await self._ask(request):
                    return
                if await either(told, sleep(self._broker.doors.loop, _ASK_AGAIN_S)):
                    return
        finally:
            self._awaited.pop(name, None)
            self._under_way.pop(name, None)

    async def _ask(self, request: CreateTopicsRequest) -> bool:
        """Whether there is no use in asking again."""
        broker = self._broker
        try:
            controller = broker.metadata.controller_id
            answer: CreateTopicsResponse = await broker.patient_peers.call(controller, request, _VERSION)
        except PeerError:
            return False
        code = answer.topics[0].error_code
        return code not in (
            ErrorCode.NONE,  # then wait until we hear of it
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.NOT_CONTROLLER,
            ErrorCode.REQUEST_TIMED_OUT,
            ErrorCode.INVALID_REPLICATION_FACTOR,  # brokers are still coming up
        )

    def _defaults(self, physical: str) -> TopicDefaults:
        """Of its instance; the controller, whom we ask as a broker, does not know for whom."""
        owner = split_physical(physical)
        instance = None if owner is None else self._broker.registry.by_key(owner[0])
        return TopicDefaults() if instance is None else instance.spec.topic_defaults

    def _declaration(self, name: str) -> CreatableTopic:
        settings = self._broker.config.settings
        if name == USAGE_TOPIC:
            # On more than one disk before it is acknowledged: a bill is made of it.
            in_sync = min(2, settings.default_replication_factor)
            config = {
                "cleanup.policy": "delete",
                # A second clock: whose own runs ahead may have another broker as its partition's leader.
                "message.timestamp.type": "LogAppendTime",
                "retention.ms": str(settings.usage_topic_retention_ms),
                "min.insync.replicas": str(in_sync),
            }
            return CreatableTopic(
                name=name,
                num_partitions=settings.usage_topic_num_partitions,
                replication_factor=settings.default_replication_factor,
                configs=_configs(config),
            )
        if name == CHANGES_TOPIC:
            return CreatableTopic(
                name=name,
                num_partitions=1,
                replication_factor=settings.default_replication_factor,
                configs=_configs(_AUDIT_CONFIG | {"retention.ms": str(settings.changes_topic_retention_ms)}),
            )
        if is_kept_by_the_service(name):
            return CreatableTopic(
                name=name,
                num_partitions=1,
                replication_factor=self._defaults(name).replication_factor or settings.default_replication_factor,
                configs=_configs(_AUDIT_CONFIG),
            )
        if name == OFFSETS_TOPIC:
            return CreatableTopic(
                name=name,
                num_partitions=settings.offsets_topic_num_partitions,
                replication_factor=settings.offsets_topic_replication_factor,
                configs=_configs({**_OFFSETS_CONFIG, "segment.bytes": str(settings.offsets_topic_segment_bytes)}),
            )
        if name == TRANSACTIONS_TOPIC:
            return CreatableTopic(
                name=name,
                num_partitions=settings.transaction_state_log_num_partitions,
                replication_factor=settings.transaction_state_log_replication_factor,
                configs=_configs(_transactions_config(settings)),
            )
        defaults = self._defaults(name)
        return CreatableTopic(
            name=name,
            num_partitions=defaults.partitions or settings.num_partitions,
            replication_factor=defaults.replication_factor or settings.default_replication_factor,
        )


def _transactions_config(settings: Settings) -> dict[str, str]:
    """As Kafka's. A transaction that was answered as committed stands on two disks, whatever becomes of one of them."""
    in_sync = min(settings.transaction_state_log_min_isr, settings.transaction_state_log_replication_factor)
    return {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "unclean.leader.election.enable": "false",
        "min.insync.replicas": str(in_sync),
        "segment.bytes": str(settings.transaction_state_log_segment_bytes),
    }


def _configs(values: dict[str, str]) -> tuple[CreatableTopicConfig, ...]:
    return tuple(CreatableTopicConfig(name, value) for name, value in values.items())
