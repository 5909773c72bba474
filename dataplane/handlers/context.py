"""What a handler is given beside the request: who asks, through which door, and the broker's rooms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dataplane.protocol.api import ApiKey
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.security.roles import is_on_behalf
from dataplane.slices import CONTROLLER
from dataplane.tenancy.access import (
    CLUSTER,
    Operation,
    Permit,
    Resource,
    authorize,
    authorize_creation,
    authorize_idempotence,
    judge,
    judge_creation,
    judge_idempotence,
    of_group,
    of_topic,
    why,
)
from dataplane.tenancy.talkers import talk_of
from quota.contracts.namespace import split_physical

if TYPE_CHECKING:
    from dataplane.auditing.auditing import Auditing
    from dataplane.cluster.broker_settings import Layers
    from dataplane.cluster.membership import Membership
    from dataplane.cluster.metadata import Metadata
    from dataplane.cluster.topic_configs import TopicConfigs
    from dataplane.config import BrokerConfig
    from dataplane.controller.controller import Controller
    from dataplane.decoded import Decoded
    from dataplane.doors import Doors
    from dataplane.groups.coordinator import GroupCoordinator
    from dataplane.replication.manager import Replicas
    from dataplane.replication.serving.follower_fetches import ReplicaFetches
    from dataplane.replication.serving.session_cache import FetchSessions
    from dataplane.slices import Slices
    from dataplane.storage.manager import LogManager
    from dataplane.tasks import Future
    from dataplane.tenancy.gate import Gate
    from dataplane.tenancy.instance import Instance
    from dataplane.tenancy.logins import Logins
    from dataplane.tenancy.registry import Registry
    from dataplane.tenancy.session import Session
    from dataplane.tenancy.talkers import Talk
    from dataplane.throttle.debt_queue import DebtQueues
    from dataplane.transactions.coordinator import TransactionCoordinator
    from dataplane.transactions.producer_ids import ProducerIds
    from dataplane.transactions.verification import Verifier
    from quota.core.shares import Sender


class BrokerRooms(Protocol):
    """The parts of a broker that handlers use. `dataplane.broker.Broker` is the only implementation."""

    doors: Doors
    config: BrokerConfig  # with the settings that are in force
    layers: Layers  # where they come from
    metadata: Metadata
    membership: Membership
    topic_configs: TopicConfigs
    logs: LogManager
    replicas: Replicas
    replica_fetches: ReplicaFetches
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    controller: Controller
    registry: Registry
    gate: Gate
    debt_queues: DebtQueues
    producer_ids: ProducerIds
    transactions: TransactionCoordinator
    verifier: Verifier
    slices: Slices
    decoded: Decoded
    logins: Logins
    auditing: Auditing

    def ensure_internal_topic(self, name: str) -> Future[None]:
        """Create a topic of the cluster's own, if it is missing, and wait until this broker knows it."""
        ...

    def create_topic_automatically(self, physical: str) -> None:
        """Ask the controller for a topic that a client named; the client asks again."""
        ...


def refusal_of(found: Permit | ErrorCode) -> ErrorCode:
    """What is told of an answer of `tenancy.access`; NONE: it is permitted."""
    return found if isinstance(found, ErrorCode) else ErrorCode.NONE


_WORDS = frozenset({ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA})
"""Of a controller; the internal listener serves them."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One request."""

    broker: BrokerRooms
    session: Session
    api_key: ApiKey
    version: int
    correlation_id: int
    client_id: str | None
    size: int  # of the request on the wire, length included
    is_long: bool = False  # it has very many elements: decoded, handled and answered in slices
    told_s: float = 0.0  # what its sender is told to wait before the next, as far as that was known when it began
    reads_nothing: bool = False  # a fetch whose member could not wait for its instance's limit any longer
    changes_nothing: bool = False  # it is only validated; known once it is decoded

    @property
    def owner(self) -> str:
        """Whose work it is (`dataplane.slices`)."""
        return CONTROLLER if self.api_key in _WORDS else self.session.account

    @property
    def sender(self) -> Sender:
        """Whose share of the instance's limits it uses."""
        return (self.client_id or "", self.session.peer)

    @property
    def is_on_behalf(self) -> bool:
        """Whether this is the control plane's for a tenant: to be charged to the topics' owners (`payer`)."""
        return self.session.instance is None and is_on_behalf(self.session.identity, self.client_id)

    def only_asks(self) -> None:
        """The request is to be validated, and changes nothing: no audit has it. Said before it is handled."""
        object.__setattr__(self, "changes_nothing", True)

    def payer(self, physical: str) -> Instance | None:
        """Whose limits the bytes of a topic count against; None: nobody's."""
        if self.session.instance is not None or not self.is_on_behalf:
            return self.session.instance
        owner = split_physical(physical)
        return None if owner is None else self.broker.registry.by_key(owner[0])

    def talk(self, physical: str) -> Talk:
        """Where the bytes that this client moves of a topic are counted (`tenancy.talkers`)."""
        return talk_of(self.session, self.client_id, physical, self.broker.doors.clock.monotonic())

    def owns(self, physical: str) -> bool:
        """Whether a physical name is visible to this session."""
        return self.session.names.owns(physical)

    def refusal(self, operation: Operation, resource: Resource) -> ErrorCode:
        """Why the session may not do it (`tenancy.access`); NONE: it may."""
        found = refusal_of(authorize(self.session, operation, resource))
        instance = self.session.instance
        if instance is not None:
            if not found:
                if instance.shadow is not None:
                    judge(self.session, operation, resource)
            elif instance.spec.audit:
                self.broker.auditing.denied(self, operation, resource, found)
        return found

    def creation_refusal(self, physical: str) -> ErrorCode:
        """The same of a topic to come (`authorize_creation`)."""
        found = refusal_of(authorize_creation(self.session, physical))
        if not found:
            judge_creation(self.session, physical)
        return found

    def idempotence_refusal(self) -> ErrorCode:
        """The same of a producer id (`authorize_idempotence`)."""
        found = refusal_of(authorize_idempotence(self.session))
        if not found:
            judge_idempotence(self.session)
        return found

    def may(self, operation: Operation, resource: Resource) -> bool:
        """Whether the session may, for answers that leave out what it may not: nothing was asked for, so no audit is told."""
        return not refusal_of(authorize(self.session, operation, resource))

    def topic_refusal(self, operation: Operation, physical: str) -> ErrorCode:
        """The same of a topic."""
        return self.refusal(operation, of_topic(physical))

    def group_refusal(self, operation: Operation, physical: str) -> ErrorCode:
        """The same of a group."""
        return self.refusal(operation, of_group(physical))

    def cluster_refusal(self, operation: Operation) -> ErrorCode:
        """The same of the cluster: the session's own."""
        return self.refusal(operation, CLUSTER)

    def check_cluster(self, operation: Operation) -> None:
        """The same. Raises ApiError, with the reason."""
        code = self.cluster_refusal(operation)
        if code:
            raise ApiError(code, why(code))

    def check_topic(self, operation: Operation, physical: str) -> None:
        """The same. Raises ApiError, with the reason."""
        code = self.topic_refusal(operation, physical)
        if code:
            raise ApiError(code, why(code))

    def broker_address(self, broker_id: int) -> tuple[str, int] | None:
        """Where this session reaches a broker: the internal address, or the route's advertised one. None: not at all."""
        instance = self.session.instance
        if instance is None:
            broker = self.broker.metadata.brokers.get(broker_id)
            return (broker.host, broker.port) if broker is not None else None
        return instance.advertised(self.session.route, broker_id)

    def live_brokers(self) -> list[tuple[int, str, int, str | None]]:
        """(id, host, port, rack) of every live broker as this session sees it, in order of ids."""
        found = []
        for broker_id, broker in sorted(self.broker.metadata.brokers.items()):
            address = self.broker_address(broker_id)
            if address is not None:
                found.append((broker_id, address[0], address[1], broker.rack))
        return found

    @property
    def cluster_id(self) -> str:
        """What this session sees as the cluster's id: a tenant its instance id."""
        instance = self.session.instance
        return instance.spec.id if instance is not None else "sluice"
