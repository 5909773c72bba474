"""CreateTopics and DeleteTopics: on the controller, within the limits of the instance that owns the name.

Names are physical here. The sentences of errors may reach a tenant and so name nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigSource, checked_overrides
from dataplane.controller.controller import NewTopic, TopicOutcome
from dataplane.handlers.admin.once_named import ASSIGNED_US, Asked, answered
from dataplane.handlers.admin.tolls import toll_of
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import check_owners_limits, owner
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from dataplane.protocol.schema import NO_UUID
from dataplane.records.steps import Pace, Steps
from dataplane.tenancy.access import Operation, why
from quota.contracts.instance import TopicDefaults
from quota.contracts.namespace import is_kept_by_the_service, split_physical, topic_name_problem

_CREATION_IS_STRICT_SINCE, _DELETION_IS_STRICT_SINCE = 6, 5
"""Versions that know THROTTLING_QUOTA_EXCEEDED."""
Configs = tuple[CreatableTopicConfigs, ...]
_CREATED_US, _DELETED_US, _NAME_US = 40, 3, 1


async def handle_create_topics(ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Each topic by itself: one that is refused does not hold the others up."""
    toll = toll_of(ctx, strict_since=_CREATION_IS_STRICT_SINCE, timeout_ms=request.timeout_ms)
    created = await answered(
        ctx,
        toll,
        lambda: Asked.of(request.topics, partial(_new_topic, ctx), _CREATED_US),
        lambda asked: ctx.broker.controller.create_topics(
            list(asked.wanted.values()), request.timeout_ms / 1000, validate_only=request.validate_only, toll=toll
        ),
        partial(_created_topics, ctx, request),
    )
    return CreateTopicsResponse(throttle_time_ms=toll.throttle_time_ms, topics=created)


async def handle_delete_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """By name, or by id (from version 6): an id of somebody else's topic is as unknown as one that was never given."""
    toll = toll_of(ctx, strict_since=_DELETION_IS_STRICT_SINCE, timeout_ms=request.timeout_ms)
    deleted = await answered(
        ctx,
        toll,
        lambda: _deletable_topics(ctx, request),
        lambda asked: ctx.broker.controller.delete_topics(list(asked.wanted), request.timeout_ms / 1000, toll=toll),
        partial(_deleted_topics, request),
    )
    return DeleteTopicsResponse(throttle_time_ms=toll.throttle_time_ms, responses=deleted)


# --- creating ---------------------------------------------------------------------------------------------------------


def _created_topics(
    ctx: RequestContext, request: CreateTopicsRequest, asked: Asked[NewTopic]
) -> Steps[tuple[CreatableTopicResult, ...]]:
    """In the order of the request."""
    pace, outcomes, defaults = Pace(), iter(asked.outcomes), _default_configs(ctx)
    created: list[CreatableTopicResult] = []
    for topic in request.topics:
        if pace.over(_CREATED_US):
            yield None
        wanted = asked.wanted.get(topic.name)
        outcome, config = (next(outcomes), wanted.config) if wanted else (asked.refused[topic.name], {})
        hidden = ctx.topic_refusal(Operation.DESCRIBE_CONFIGS, topic.name)
        result = _created(defaults, outcome, config, hidden)
        created.append(replace(result, topic_id=NO_UUID) if request.validate_only else result)
    return tuple(created)


def _new_topic(ctx: RequestContext, topic: CreatableTopic) -> Steps[NewTopic]:
    refusal = ctx.creation_refusal(topic.name)
    if refusal:
        raise ApiError(refusal, why(refusal))
    _check_name(ctx, topic.name)
    if topic.assignments and (topic.num_partitions, topic.replication_factor) != (-1, -1):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "either an assignment or the numbers of partitions and replicas, not both"
        )
    assignment = yield from _assignment(topic)
    config = checked_overrides((yield from _configured(topic)), ctx.broker.config.settings)
    spec = owner(ctx, topic.name)
    if spec is not None and not topic.assignments:
        topic = _as_the_instance_says(topic, spec.topic_defaults)
    check_owners_limits(ctx, topic.name, config, _replicas(ctx, topic))
    limits = spec.limits if spec is not None and not is_kept_by_the_service(topic.name) else None
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        assignment or None,
        config,
        spec.brokers if spec is not None else (),
        limits.partitions if limits is not None else None,
        limits.topics if limits is not None else None,
        is_tenants=not ctx.session.is_internal,
    )


def _assignment(topic: CreatableTopic) -> Steps[dict[int, tuple[int, ...]]]:
    pace = Pace()
    assignment = {}
    for assigned in topic.assignments:
        if pace.over(ASSIGNED_US):
            yield None
        if assigned.partition_index in assignment:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the assignment names a partition twice")
        assignment[assigned.partition_index] = tuple(assigned.broker_ids)
    return assignment


def _configured(topic: CreatableTopic) -> Steps[dict[str, str | None]]:
    """What is said last of each setting. Of more names than there are settings one is unknown, whatever else is said."""
    pace = Pace()
    configured: dict[str, str | None] = {}
    for config in topic.configs:
        if pace.over(_NAME_US):
            yield None
        configured[config.name] = config.value
        if len(configured) > len(TOPIC_SETTINGS):
            break
    return configured


def _as_the_instance_says(topic: CreatableTopic, defaults: TopicDefaults) -> CreatableTopic:
    """What the topic leaves open, as far as the instance has defaults of its own."""
    partitions, replicas = topic.num_partitions, topic.replication_factor
    if partitions == -1 and defaults.partitions is not None:
        partitions = defaults.partitions
    if replicas == -1 and defaults.replication_factor is not None:
        replicas = defaults.replication_factor
    return replace(topic, num_partitions=partitions, replication_factor=replicas)


def _replicas(ctx: RequestContext, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments[0].broker_ids)
    default = ctx.broker.config.settings.default_replication_factor
    return default if topic.replication_factor == -1 else topic.replication_factor


def _check_name(ctx: RequestContext, physical: str) -> None:
    parsed = split_physical(physical)
    if ctx.session.is_internal and is_kept_by_the_service(physical):
        return
    if parsed is not None:
        problem = topic_name_problem(parsed[1])
    else:  # a topic of the cluster itself; only the internal listener can name one
        reserved = physical.removeprefix("__")
        problem = topic_name_problem(reserved) if ctx.session.is_internal else "the topic name is not possible"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _created(
    defaults: Configs, outcome: TopicOutcome, overrides: Mapping[str, str], hidden: ErrorCode
) -> CreatableTopicResult:
    """`hidden`: why the session may not know how the topic is configured, which its numbers belong to (KIP-525)."""
    if hidden and outcome.error in (ErrorCode.NONE, hidden):  # of no other error, as in Kafka
        return CreatableTopicResult(
            name=outcome.name,
            topic_id=outcome.topic_id,
            error_code=outcome.error,
            error_message=outcome.message,
            topic_config_error_code=hidden,
            configs=(),
        )
    return CreatableTopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id,
        error_code=outcome.error,
        error_message=outcome.message,
        num_partitions=outcome.partitions,
        replication_factor=outcome.replication_factor,
        configs=_configs(defaults, overrides) if outcome.error is ErrorCode.NONE else (),
    )


def _default_configs(ctx: RequestContext) -> Configs:
    """Of a topic that sets nothing. All of an answer share them.

    Each would have thirty objects of its own: of ten thousand topics they are freed in one turn.
    """
    settings = ctx.broker.config.settings
    return tuple(
        CreatableTopicConfigs(name, setting.default_of(settings), config_source=ConfigSource.DEFAULT)
        for name, setting in TOPIC_SETTINGS.items()
    )


def _configs(defaults: Configs, overrides: Mapping[str, str]) -> Configs:
    if not overrides:
        return defaults
    return tuple(
        replace(each, value=overrides[each.name], config_source=ConfigSource.DYNAMIC_TOPIC)
        if each.name in overrides
        else each
        for each in defaults
    )


# --- deleting ---------------------------------------------------------------------------------------------------------


class _Deletable(Asked[None]):
    """`found`: the physical names, and refusals, in the order of the request. What is refused stands nowhere else."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str | DeletableTopicResult] = []


def _deletable_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> Steps[_Deletable]:
    pace, asked = Pace(), _Deletable()
    for state in _named(request):
        if pace.over(_DELETED_US):
            yield None
        found = _deletable(ctx, state)
        asked.found.append(found)
        if isinstance(found, str):
            asked.wanted[found] = None
    return asked


def _named(request: DeleteTopicsRequest) -> Iterator[DeleteTopicState]:
    return iter(request.topics) if request.topics else (DeleteTopicState(name) for name in request.topic_names)


def _deleted_topics(request: DeleteTopicsRequest, asked: _Deletable) -> Steps[tuple[DeletableTopicResult, ...]]:
    """In the order of the request, in which a topic may be named by its name and by its id."""
    pace = Pace()
    outcomes: dict[str, TopicOutcome] = {}
    for outcome in asked.outcomes:
        if pace.over(_NAME_US):
            yield None
        outcomes[outcome.name] = outcome
    deleted: list[DeletableTopicResult] = []
    for state, found in zip(_named(request), asked.found, strict=True):
        if pace.over(_DELETED_US):
            yield None
        deleted.append(_deleted(state, outcomes[found]) if isinstance(found, str) else found)
    return tuple(deleted)


def _deletable(ctx: RequestContext, state: DeleteTopicState) -> str | DeletableTopicResult:
    """The physical name, or the refusal."""
    name = state.name
    if name is None:
        name = ctx.broker.controller.topic_name(state.topic_id)
        if name is None and not ctx.broker.controller.is_active:
            return DeletableTopicResult(None, state.topic_id, ErrorCode.NOT_CONTROLLER)
        if name is None or not ctx.owns(name):
            return DeletableTopicResult(None, state.topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
    elif state.topic_id != NO_UUID:
        return DeletableTopicResult(name, state.topic_id, ErrorCode.INVALID_REQUEST, "either a name or an id, not both")
    hidden = ctx.topic_refusal(Operation.DESCRIBE, name) if state.name is None else ErrorCode.NONE
    if hidden:  # an id is no secret, as in Kafka; the name that it stands for is
        return DeletableTopicResult(None, state.topic_id, hidden, why(hidden))
    refusal = ctx.topic_refusal(Operation.DELETE, name)
    if refusal:
        return DeletableTopicResult(name, state.topic_id, refusal, why(refusal))
    return name


def _deleted(state: DeleteTopicState, outcome: TopicOutcome) -> DeletableTopicResult:
    return DeletableTopicResult(outcome.name, state.topic_id, outcome.error, outcome.message)
