"""DescribeConfigs: what is configured for a topic, and for this broker, with where each value comes from.

Only what is honoured is shown as settable; everything else is read-only. For a broker the empty name asks what was set
for all brokers while they ran, as in Kafka.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from dataplane.cluster.broker_settings import BROKER_SETTINGS, BrokerSetting, Shown, fixed_facts
from dataplane.cluster.setting_docs import broker_documentation, topic_documentation
from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigSource, TopicSetting
from dataplane.handlers.context import RequestContext
from dataplane.handlers.resources import BrokerResource, TopicResource, find_resource
from dataplane.protocol.errors import ApiError
from dataplane.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_KAFKAS_SYNONYMS = {
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "message.format.version": "log.message.format.version",
    "message.timestamp.difference.max.ms": "log.message.timestamp.difference.max.ms",
    "preallocate": "log.preallocate",
}
_TOPIC_OF_FIELD = {setting.setting: name for name, setting in TOPIC_SETTINGS.items() if setting.setting is not None}


def handle_describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Each resource by itself."""
    resources = dict.fromkeys(request.resources)  # each once, however often it is named
    return DescribeConfigsResponse(results=tuple(_describe(ctx, request, resource) for resource in resources))


def _describe(
    ctx: RequestContext, request: DescribeConfigsRequest, asked: DescribeConfigsResource
) -> DescribeConfigsResult:
    try:
        found = _configs(ctx, find_resource(ctx, asked.resource_type, asked.resource_name))
    except ApiError as refusal:
        return DescribeConfigsResult(
            error_code=refusal.code,
            error_message=refusal.message,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
    keys = asked.configuration_keys
    return DescribeConfigsResult(
        error_message="",  # Kafka's for "no error"
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=tuple(_as_asked(config, request) for config in found if not keys or config.name in keys),
    )


def _as_asked(config: DescribeConfigsResourceResult, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    return dataclasses.replace(
        config,
        synonyms=config.synonyms if request.include_synonyms else (),
        documentation=config.documentation if request.include_documentation else None,
    )


def _configs(ctx: RequestContext, resource: TopicResource | BrokerResource) -> Iterator[DescribeConfigsResourceResult]:
    if isinstance(resource, TopicResource):
        return _topic(ctx, resource.name)
    return _all_brokers(ctx) if resource.id is None else _broker(ctx)


# --- topics -----------------------------------------------------------------------------------------------------------


def _topic(ctx: RequestContext, physical: str) -> Iterator[DescribeConfigsResourceResult]:
    overrides = ctx.broker.topic_configs.get(physical)
    for setting in TOPIC_SETTINGS.values():
        yield _topic_config(ctx, setting, overrides.get(setting.name))


def _topic_config(ctx: RequestContext, setting: TopicSetting, override: str | None) -> DescribeConfigsResourceResult:
    values = inherited(ctx, setting)
    synonyms = values if setting.setting is not None else _kafkas_synonyms(values[0])
    if override is not None:
        own = Shown(setting.name, override, ConfigSource.DYNAMIC_TOPIC)
        values, synonyms = [own, *values], [own, *synonyms]
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=values[0].value,
        read_only=setting.is_fixed,
        is_default=override is None,
        config_source=values[0].source,
        synonyms=_synonyms(synonyms),
        config_type=setting.type,
        documentation=topic_documentation(setting.name),
    )


def inherited(ctx: RequestContext, setting: TopicSetting) -> list[Shown]:
    """Where a topic's value comes from when it has none of its own, the one in force first."""
    if setting.setting is None:
        return [Shown(setting.name, setting.default, ConfigSource.DEFAULT)]
    return ctx.broker.layers.of_field(setting.setting)


def _kafkas_synonyms(default: Shown) -> list[Shown]:
    """Of a default that is no setting of our brokers: as Kafka's brokers call it, if they know it at all."""
    name = _KAFKAS_SYNONYMS.get(default.name)
    return [] if name is None else [Shown(name, default.value, default.source)]


def _synonyms(values: list[Shown]) -> tuple[DescribeConfigsSynonym, ...]:
    return tuple(DescribeConfigsSynonym(shown.name, shown.value, shown.source) for shown in values)


# --- brokers ----------------------------------------------------------------------------------------------------------


def _broker(ctx: RequestContext) -> Iterator[DescribeConfigsResourceResult]:
    instance = ctx.session.instance
    auto_create = instance is not None and instance.spec.auto_create_topics
    shown = set()
    for name, value, kind, configured in fixed_facts(
        ctx.broker.config, tenant=instance is not None, auto_create=auto_create
    ):
        shown.add(name)
        source = ConfigSource.STATIC_BROKER if configured else ConfigSource.DEFAULT
        yield DescribeConfigsResourceResult(
            name=name,
            value=value,
            read_only=True,
            is_default=not configured,
            config_source=source,
            synonyms=_synonyms([Shown(name, value, source)]),
            config_type=kind,
            documentation=broker_documentation(name),
        )
    for setting in BROKER_SETTINGS.values():
        if setting.name not in shown and (instance is None or setting.for_tenants):
            yield _broker_config(ctx, setting)


def _broker_config(ctx: RequestContext, setting: BrokerSetting) -> DescribeConfigsResourceResult:
    values = ctx.broker.layers.of(setting)
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=values[0].value,
        read_only=setting.problem is None or not ctx.session.is_internal,
        is_default=values[0].source is ConfigSource.DEFAULT,
        config_source=values[0].source,
        synonyms=_synonyms(values),
        config_type=setting.type,
        documentation=broker_documentation(setting.name, _TOPIC_OF_FIELD.get(setting.field)),
    )


def _all_brokers(ctx: RequestContext) -> Iterator[DescribeConfigsResourceResult]:
    """What was set for all of them while they ran, and nothing else."""
    for setting in BROKER_SETTINGS.values():
        values = [v for v in ctx.broker.layers.of(setting) if v.source is ConfigSource.DYNAMIC_DEFAULT_BROKER]
        if values:
            yield dataclasses.replace(
                _broker_config(ctx, setting),
                value=values[0].value,
                is_default=False,
                config_source=values[0].source,
                synonyms=_synonyms(values),
            )
