"""What a configuration resource of a request stands for: a topic, this broker, or all brokers.

The resource's name is not a field that the codecs map, since its meaning depends on the resource's type; topics are
mapped here. Tenants see their own topics, and the brokers that they can reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from dataplane.cluster.paths import broker_entity, topic_entity
from dataplane.handlers.context import RequestContext
from dataplane.handlers.discovery.metadata import name_problem
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.tenancy.access import Operation
from quota.contracts.namespace import topic_name_problem


class ResourceType(IntEnum):
    """Of DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16


@dataclass(frozen=True, slots=True)
class TopicResource:
    """A topic that exists, by its physical name."""

    name: str

    @property
    def entity(self) -> str:
        """Where its overrides are."""
        return topic_entity(self.name)


@dataclass(frozen=True, slots=True)
class BrokerResource:
    """This broker, or (None) all brokers."""

    id: int | None

    @property
    def entity(self) -> str:
        """Where its overrides are."""
        return broker_entity(self.id)


def find_resource(ctx: RequestContext, operation: Operation, kind: int, name: str) -> TopicResource | BrokerResource:
    """What is meant, if the session may do this with it. Raises ApiError."""
    if kind == ResourceType.TOPIC:
        return _topic(ctx, operation, name)
    if kind == ResourceType.BROKER:
        ctx.check_cluster(operation)
        return _broker(ctx, name)
    if kind == ResourceType.CLIENT_METRICS:
        raise ApiError(ErrorCode.INVALID_REQUEST, "client metrics have no configurations here: topics and brokers have")
    if kind == ResourceType.BROKER_LOGGER:
        raise ApiError(ErrorCode.INVALID_REQUEST, "levels of logging cannot be seen or changed here")
    raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown resource type {kind}")


def _topic(ctx: RequestContext, operation: Operation, name: str) -> TopicResource:
    physical = ctx.session.names.topic_in(name)
    ctx.check_topic(operation, physical)
    problem = name_problem(name) if ctx.session.is_internal else topic_name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if not ctx.broker.metadata.has_topic(physical):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist")
    return TopicResource(physical)


def _broker(ctx: RequestContext, name: str) -> BrokerResource:
    if not name:
        return BrokerResource(None)
    if not (name.isascii() and name.isdecimal()):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a broker's id is a whole number, not {name[:20]!r}")
    if name != str(ctx.broker.config.id):  # and no other way to write it: each would be a resource of its own
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {ctx.broker.config.id}: ask the broker itself")
    return BrokerResource(ctx.broker.config.id)
