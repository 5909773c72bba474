"""CreateTopics and DeleteTopics: on the controller, within the limits of the instance that owns the name.

Names are physical here. The sentences of errors may reach a tenant and so name nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigSource, checked_overrides
from dataplane.controller.controller import NewTopic, TopicOutcome
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
from quota.contracts.namespace import split_physical, topic_name_problem


async def handle_create_topics(ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Each topic by itself: one that is refused does not hold the others up."""
    times = Counter(topic.name for topic in request.topics)
    wanted: dict[str, NewTopic] = {}
    refused: dict[str, TopicOutcome] = {}
    for topic in request.topics:
        try:
            if times[topic.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names the topic more than once")
            wanted[topic.name] = _new_topic(ctx, topic)
        except ApiError as refusal:
            refused[topic.name] = TopicOutcome(topic.name, refusal.code, refusal.message)
    outcomes = await ctx.broker.controller.create_topics(
        list(wanted.values()), request.timeout_ms / 1000, validate_only=request.validate_only
    )
    answers = {outcome.name: outcome for outcome in outcomes} | refused
    configs = {name: topic.config for name, topic in wanted.items()}
    created = {name: _created(ctx, answers[name], configs.get(name, {})) for name in times}
    if request.validate_only:
        created = {name: replace(result, topic_id=NO_UUID) for name, result in created.items()}
    return CreateTopicsResponse(topics=tuple(created[topic.name] for topic in request.topics))


async def handle_delete_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """By name, or by id (from version 6): an id of somebody else's topic is as unknown as one that was never given."""
    states = request.topics or tuple(DeleteTopicState(name) for name in request.topic_names)
    refused: dict[int, DeletableTopicResult] = {}
    names: dict[int, str] = {}
    for position, state in enumerate(states):
        found = _deletable(ctx, state)
        if isinstance(found, str):
            names[position] = found
        else:
            refused[position] = found
    wanted = list(dict.fromkeys(names.values()))
    outcomes = await ctx.broker.controller.delete_topics(wanted, request.timeout_ms / 1000)
    by_name = {outcome.name: outcome for outcome in outcomes}
    return DeleteTopicsResponse(
        responses=tuple(
            refused[position] if position in refused else _deleted(state, by_name[names[position]])
            for position, state in enumerate(states)
        )
    )


# --- creating ---------------------------------------------------------------------------------------------------------


def _new_topic(ctx: RequestContext, topic: CreatableTopic) -> NewTopic:
    if ctx.topic_denied(topic.name):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic's whitelist does not hold this address")
    _check_name(ctx, topic.name)
    if topic.assignments and (topic.num_partitions, topic.replication_factor) != (-1, -1):
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "either an assignment or the numbers of partitions and replicas, not both"
        )
    assignment = {a.partition_index: tuple(a.broker_ids) for a in topic.assignments}
    if len(assignment) != len(topic.assignments):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the assignment names a partition twice")
    config = checked_overrides({c.name: c.value for c in topic.configs}, ctx.broker.config.settings)
    spec = owner(ctx, topic.name)
    check_owners_limits(ctx, topic.name, config, _replicas(ctx, topic))
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        assignment or None,
        config,
        spec.brokers if spec is not None else (),
        spec.limits.partitions if spec is not None else None,
        spec.limits.topics if spec is not None else None,
        is_tenants=not ctx.session.is_internal,
    )


def _replicas(ctx: RequestContext, topic: CreatableTopic) -> int:
    if topic.assignments:
        return len(topic.assignments[0].broker_ids)
    default = ctx.broker.config.settings.default_replication_factor
    return default if topic.replication_factor == -1 else topic.replication_factor


def _check_name(ctx: RequestContext, physical: str) -> None:
    parsed = split_physical(physical)
    if parsed is not None:
        problem = topic_name_problem(parsed[1])
    else:  # a topic of the cluster itself; only the internal listener can name one
        reserved = physical.removeprefix("__")
        problem = topic_name_problem(reserved) if ctx.session.is_internal else "the topic name is not possible"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _created(ctx: RequestContext, outcome: TopicOutcome, config: object) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id,
        error_code=outcome.error,
        error_message=outcome.message,
        num_partitions=outcome.partitions,
        replication_factor=outcome.replication_factor,
        configs=_configs(ctx, config if isinstance(config, dict) else {}) if outcome.error is ErrorCode.NONE else (),
    )


def _configs(ctx: RequestContext, overrides: dict[str, str]) -> tuple[CreatableTopicConfigs, ...]:
    settings = ctx.broker.config.settings
    return tuple(
        CreatableTopicConfigs(
            name,
            overrides.get(name, setting.default_of(settings)),
            config_source=ConfigSource.DYNAMIC_TOPIC if name in overrides else ConfigSource.DEFAULT,
        )
        for name, setting in TOPIC_SETTINGS.items()
    )


# --- deleting ---------------------------------------------------------------------------------------------------------


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
    if ctx.topic_denied(name):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return DeletableTopicResult(
            state.name, state.topic_id, code, "the topic's whitelist does not hold this address"
        )
    return name


def _deleted(state: DeleteTopicState, outcome: TopicOutcome) -> DeletableTopicResult:
    return DeletableTopicResult(outcome.name, state.topic_id, outcome.error, outcome.message)
