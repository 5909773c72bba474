"""DescribeConfigs: what is configured for a topic, and for this broker, with where each value comes from.

A resource's name is not a field that the codecs map (its meaning depends on the resource's type), so topics are mapped
here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigSource, ConfigType, TopicSetting, config_text
from dataplane.config import Settings
from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from quota.contracts.namespace import topic_name_problem

TOPIC, BROKER = 2, 4
_TYPES = {bool: ConfigType.BOOLEAN, int: ConfigType.LONG, str: ConfigType.STRING}


def handle_describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Each resource by itself."""
    resources = dict.fromkeys(request.resources)  # each once, however often it is named
    return DescribeConfigsResponse(results=tuple(_describe(ctx, request, resource) for resource in resources))


def _describe(
    ctx: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        if resource.resource_type == TOPIC:
            found = list(_topic(ctx, resource.resource_name))
        elif resource.resource_type == BROKER:
            found = list(_broker(ctx, resource.resource_name))
        else:
            raise ApiError(ErrorCode.INVALID_REQUEST, "configurations of this resource type cannot be described")
    except ApiError as refusal:
        return DescribeConfigsResult(
            error_code=refusal.code,
            error_message=refusal.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    keys = resource.configuration_keys
    return DescribeConfigsResult(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            config if request.include_synonyms else dataclasses.replace(config, synonyms=())
            for config in found
            if not keys or config.name in keys
        ),
    )


# --- topics -----------------------------------------------------------------------------------------------------------


def _topic(ctx: RequestContext, name: str) -> Iterator[DescribeConfigsResourceResult]:
    problem = None if ctx.session.is_internal else topic_name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    physical = ctx.session.names.topic_in(name)
    if ctx.topic_denied(physical):
        raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the topic's whitelist does not hold this address")
    if not ctx.broker.metadata.has_topic(physical):
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist")
    overrides = ctx.broker.topic_configs.get(physical)
    settings = ctx.broker.config.settings
    for setting in TOPIC_SETTINGS.values():
        yield _topic_config(setting, overrides.get(setting.name), settings)


def _topic_config(setting: TopicSetting, override: str | None, settings: Settings) -> DescribeConfigsResourceResult:
    inherited = setting.default_of(settings)
    source = _default_source(setting, settings)
    synonyms = [DescribeConfigsSynonym(setting.broker_name or setting.name, inherited, source)]
    if override is not None:
        synonyms.insert(0, DescribeConfigsSynonym(setting.name, override, ConfigSource.DYNAMIC_TOPIC))
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=inherited if override is None else override,
        is_default=override is None,
        config_source=source if override is None else ConfigSource.DYNAMIC_TOPIC,
        synonyms=tuple(synonyms),
        config_type=setting.type,
        documentation=None,
    )


def _default_source(setting: TopicSetting, settings: Settings) -> ConfigSource:
    if setting.setting is None or getattr(settings, setting.setting) == getattr(Settings(), setting.setting):
        return ConfigSource.DEFAULT
    return ConfigSource.STATIC_BROKER


# --- brokers ----------------------------------------------------------------------------------------------------------


def _broker(ctx: RequestContext, name: str) -> Iterator[DescribeConfigsResourceResult]:
    config = ctx.broker.config
    if name not in ("", str(config.id)):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {config.id}: ask the broker itself")
    yield _broker_config("broker.id", config.id, None)
    for field in dataclasses.fields(Settings):
        yield _broker_config(field.name.replace("_", "."), getattr(config.settings, field.name), field.default)


def _broker_config(name: str, value: bool | int | str, default: object) -> DescribeConfigsResourceResult:
    source = ConfigSource.DEFAULT if value == default else ConfigSource.STATIC_BROKER
    return DescribeConfigsResourceResult(
        name=name,
        value=config_text(value),
        read_only=True,
        is_default=source is ConfigSource.DEFAULT,
        config_source=source,
        synonyms=(DescribeConfigsSynonym(name, config_text(value), source),),
        config_type=_TYPES[type(value)],
        documentation=None,
    )
