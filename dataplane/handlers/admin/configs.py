"""DescribeConfigs: what is configured for a topic, and for this broker, with where each value comes from.

Only what is honoured is shown as settable; everything else is read-only. For a broker the empty name asks what was set
for all brokers while they ran, as in Kafka.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dataplane.cluster.broker_settings import BROKER_SETTINGS, BrokerSetting, Shown, fixed_facts
from dataplane.cluster.setting_docs import broker_documentation, topic_documentation
from dataplane.cluster.topic_policy import TopicPolicy
from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigSource, TopicSetting
from dataplane.handlers.admin.resources import (
    BrokerResource,
    TopicResource,
    find_resource,
)
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import policy
from dataplane.protocol.errors import ApiError
from dataplane.protocol.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from dataplane.records.steps import Pace, each
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from dataplane.cluster.broker_settings import Layers
    from dataplane.records.steps import Steps

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


_RESOURCE_US, _TOPIC_US, _KEY_US, _ROW_US = 12, 15, 1, 40
_Row = DescribeConfigsResourceResult


def handle_describe_configs(ctx: RequestContext, request: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    """Each resource by itself, and once, however often it is named.

    In steps: thousands of topics have some forty rows each. What is configured is as it was at one moment for each topic.
    """
    pace = Pace()
    resources: dict[tuple[int, str, int | None], DescribeConfigsResource] = {}
    for resource in request.resources:
        keys = yield from _digest(resource.configuration_keys, pace)
        resources.setdefault((resource.resource_type, resource.resource_name, keys), resource)
    rows = _Rows(ctx, request)
    results = []
    for resource in resources.values():
        if pace.over(_RESOURCE_US):
            yield None
        results.append((yield from _describe(ctx, rows, resource, pace)))
    return DescribeConfigsResponse(results=tuple(results))


def _digest(keys: Sequence[str] | None, pace: Pace) -> Steps[int | None]:
    """By which lists of keys are told apart: one resource may name a hundred thousand."""
    if pace.over(_KEY_US):
        yield None
    if keys is None:
        return None
    digest = len(keys)
    for key in keys:
        if pace.over(_KEY_US):
            yield None
        digest = hash((digest, key))
    return digest


def _describe(
    ctx: RequestContext, rows: _Rows, asked: DescribeConfigsResource, pace: Pace
) -> Steps[DescribeConfigsResult]:
    try:
        found = yield from rows.of(
            find_resource(ctx, Operation.DESCRIBE_CONFIGS, asked.resource_type, asked.resource_name), pace
        )
    except ApiError as refusal:
        return DescribeConfigsResult(
            error_code=refusal.code,
            error_message=refusal.message,
            resource_type=asked.resource_type,
            resource_name=asked.resource_name,
        )
    if asked.configuration_keys:
        named, known = set[str](), {config.name for config in found}
        for key in asked.configuration_keys:
            if pace.over(_KEY_US):
                yield None
            if key in known:
                named.add(key)
        found = [config for config in found if config.name in named]
    return DescribeConfigsResult(
        error_message="",  # Kafka's for "no error"
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=tuple(found),
    )


class _Rows:
    """The rows of one answer, as the request wants them.

    Nearly all topics have nearly all values from the broker or from Kafka: these rows are made once and shared. Made for
    every topic anew, they cost more than all the rest of the answer.
    """

    def __init__(self, ctx: RequestContext, request: DescribeConfigsRequest) -> None:
        self._ctx, self._request = ctx, request
        self._begin()

    def _begin(self) -> None:
        self._of_all = self._ctx.broker.layers
        self._layers = layers_of(self._ctx)
        self._inherited: dict[bool, dict[str, _Row]] = {}  # by whether there is a policy
        self._of_brokers: dict[int | None, list[_Row]] = {}

    def of(self, resource: TopicResource | BrokerResource, pace: Pace) -> Steps[list[_Row]]:
        """Of one resource, with pauses."""
        if self._of_all is not self._ctx.broker.layers:  # somebody has changed what is inherited
            self._begin()
        if isinstance(resource, TopicResource):
            return (yield from self._of_topic(resource.name, pace))
        known = self._of_brokers.get(resource.id)
        if known is None:
            made = _all_brokers(self._ctx, self._layers) if resource.id is None else _broker(self._ctx, self._layers)
            known = self._of_brokers[resource.id] = yield from each(made, self._as_asked, _ROW_US, pace)
        return known

    def _of_topic(self, physical: str, pace: Pace) -> Steps[list[_Row]]:
        rules = policy(self._ctx, physical)
        inherited = self._inherited.get(rules is not None)
        if inherited is None:
            rows = yield from each(
                TOPIC_SETTINGS.values(), lambda setting: self._row(setting, None, rules), _ROW_US, pace
            )
            inherited = self._inherited[rules is not None] = {row.name: row for row in rows}
        overrides = self._ctx.broker.topic_configs.get(physical)
        if pace.over(_TOPIC_US + _ROW_US * len(overrides)):
            yield None
        if not overrides:
            return list(inherited.values())
        return [
            self._row(TOPIC_SETTINGS[name], overrides[name], rules) if name in overrides else row
            for name, row in inherited.items()
        ]

    def _row(self, setting: TopicSetting, override: str | None, rules: TopicPolicy | None) -> _Row:
        return self._as_asked(_topic_config(self._layers, setting, override, rules))

    def _as_asked(self, config: _Row) -> _Row:
        return dataclasses.replace(
            config,
            synonyms=config.synonyms if self._request.include_synonyms else (),
            documentation=config.documentation if self._request.include_documentation else None,
        )


# --- topics -----------------------------------------------------------------------------------------------------------


def _topic_config(
    layers: Layers, setting: TopicSetting, override: str | None, rules: TopicPolicy | None
) -> DescribeConfigsResourceResult:
    values = inherited(layers, setting)
    synonyms = values if setting.setting is not None else _kafkas_synonyms(values[0])
    if override is not None:
        own = Shown(setting.name, override, ConfigSource.DYNAMIC_TOPIC)
        values, synonyms = [own, *values], [own, *synonyms]
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=values[0].value,
        read_only=setting.is_fixed or (rules is not None and setting.name in rules.refused),
        is_default=override is None,
        config_source=values[0].source,
        synonyms=_synonyms(synonyms),
        config_type=setting.type,
        documentation=topic_documentation(setting.name, rules.sentence(setting.name) if rules is not None else ""),
    )


def inherited(layers: Layers, setting: TopicSetting) -> list[Shown]:
    """Where a topic's value comes from when it has none of its own, the one in force first."""
    if setting.setting is None:
        return [Shown(setting.name, setting.default, ConfigSource.DEFAULT)]
    return layers.of_field(setting.setting)


def layers_of(ctx: RequestContext) -> Layers:
    """The brokers' settings as the session's instance sees them: its own defaults come first."""
    instance, layers = ctx.session.instance, ctx.broker.layers
    own = instance.spec.topic_defaults.settings if instance is not None else {}
    return dataclasses.replace(layers, instance=own) if own else layers


def _kafkas_synonyms(default: Shown) -> list[Shown]:
    """Of a default that is no setting of our brokers: as Kafka's brokers call it, if they know it at all."""
    name = _KAFKAS_SYNONYMS.get(default.name)
    return [] if name is None else [Shown(name, default.value, default.source)]


def _synonyms(values: list[Shown]) -> tuple[DescribeConfigsSynonym, ...]:
    return tuple(DescribeConfigsSynonym(shown.name, shown.value, shown.source) for shown in values)


# --- brokers ----------------------------------------------------------------------------------------------------------


def _broker(ctx: RequestContext, layers: Layers) -> Iterator[DescribeConfigsResourceResult]:
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
            yield _broker_config(ctx, layers, setting)


def _broker_config(ctx: RequestContext, layers: Layers, setting: BrokerSetting) -> DescribeConfigsResourceResult:
    values = layers.of(setting)
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


def _all_brokers(ctx: RequestContext, layers: Layers) -> Iterator[DescribeConfigsResourceResult]:
    """What was set for all of them while they ran, and nothing else."""
    for setting in BROKER_SETTINGS.values():
        values = [v for v in ctx.broker.layers.of(setting) if v.source is ConfigSource.DYNAMIC_DEFAULT_BROKER]
        if values:
            yield dataclasses.replace(
                _broker_config(ctx, layers, setting),
                value=values[0].value,
                is_default=False,
                config_source=values[0].source,
                synonyms=_synonyms(values),
            )
