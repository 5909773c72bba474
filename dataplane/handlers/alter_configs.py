"""AlterConfigs and IncrementalAlterConfigs: whichever broker is asked writes the new overrides to ZooKeeper.

Each resource by itself, by compare-and-set: two requests at the same time both take effect. When the answer leaves, this
broker acts by the new configuration; the others hear of it by their watches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dataplane.cluster.alterations import Change, altered, check_form, touched
from dataplane.cluster.broker_settings import BROKER_SETTINGS, check_broker_overrides
from dataplane.cluster.config_writer import write_config
from dataplane.cluster.paths import topic_path
from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigType, check_overrides
from dataplane.doors import NoNodeError, ZooKeeperError
from dataplane.handlers.configs import inherited
from dataplane.handlers.ownership import check_owners_limits
from dataplane.handlers.resources import BrokerResource, TopicResource, find_resource
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext

_NOT_A_LIST = None


async def handle_alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """What is named replaces all that was set before."""
    doubled = _doubled([(r.resource_type, r.resource_name) for r in request.resources])
    return AlterConfigsResponse(
        responses=tuple(
            [
                AlterConfigsResponseAlterConfigsResourceResponse(
                    *await _answer(
                        ctx,
                        (r.resource_type, r.resource_name),
                        [Change(c.name, c.value) for c in r.configs],
                        doubled,
                        replace=True,
                        validate_only=request.validate_only,
                    )
                )
                for r in request.resources
            ]
        )
    )


async def handle_incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """What is not named stays."""
    doubled = _doubled([(r.resource_type, r.resource_name) for r in request.resources])
    return IncrementalAlterConfigsResponse(
        responses=tuple(
            [
                IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                    *await _answer(
                        ctx,
                        (r.resource_type, r.resource_name),
                        [Change(c.name, c.value, c.config_operation) for c in r.configs],
                        doubled,
                        replace=False,
                        validate_only=request.validate_only,
                    )
                )
                for r in request.resources
            ]
        )
    )


Asked = tuple[int, str]
"""Type and name of a resource."""


def _doubled(asked: Sequence[Asked]) -> dict[Asked, int]:
    return {resource: times for resource, times in Counter(asked).items() if times > 1}


async def _answer(
    ctx: RequestContext,
    asked: Asked,
    changes: Sequence[Change],
    doubled: Mapping[Asked, int],
    *,
    replace: bool,
    validate_only: bool,
) -> tuple[int, str | None, int, str]:
    """Error code, sentence, and the resource again."""
    code, message = ErrorCode.NONE, None
    try:
        if asked in doubled:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the request names the resource more than once")
        await _alter(ctx, asked, changes, replace=replace, validate_only=validate_only)
    except ApiError as refusal:
        code, message = refusal.code, refusal.message
    except NoNodeError:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist"
    except ZooKeeperError:
        code, message = ErrorCode.REQUEST_TIMED_OUT, "the change may have been made or not: look, and ask again"
    return code, message, *asked


async def _alter(
    ctx: RequestContext, asked: Asked, changes: Sequence[Change], *, replace: bool, validate_only: bool
) -> None:
    resource = _find(ctx, asked)
    if isinstance(resource, BrokerResource) and not ctx.session.is_internal:
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "brokers belong to the service: they cannot be changed")
    check_form(changes)

    def decide(before: Mapping[str, str]) -> Mapping[str, str]:
        after = altered(before, changes, list_default=lambda name: _list_default(ctx, resource, name), replace=replace)
        _check(ctx, resource, changes, after)
        return after

    beside = topic_path(resource.name) if isinstance(resource, TopicResource) else None
    zookeeper = ctx.broker.doors.zookeeper
    await write_config(zookeeper, resource.entity, decide, beside=beside, validate_only=validate_only)
    if not validate_only:
        await ctx.broker.topic_configs.refresh_entities([resource.entity])


def _find(ctx: RequestContext, asked: Asked) -> TopicResource | BrokerResource:
    """As Kafka, a name that no topic can have is one that is not there."""
    try:
        return find_resource(ctx, *asked)
    except ApiError as refusal:
        if refusal.code is ErrorCode.INVALID_TOPIC_EXCEPTION and asked[1]:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, refusal.message) from None
        raise


def _check(
    ctx: RequestContext, resource: TopicResource | BrokerResource, changes: Sequence[Change], after: Mapping[str, str]
) -> None:
    if isinstance(resource, BrokerResource):
        check_broker_overrides([change.name for change in changes], after)
        return
    check_overrides(touched(changes), after, ctx.broker.config.settings)
    partition = ctx.broker.metadata.partition(resource.name, 0)
    named = {name: after[name] for name in touched(changes)}
    check_owners_limits(ctx, resource.name, named, len(partition.replicas) if partition is not None else 1)


def _list_default(ctx: RequestContext, resource: TopicResource | BrokerResource, name: str) -> str | None:
    """The value of a list that is not overridden; None where it is not a list. Unknown names raise."""
    if isinstance(resource, TopicResource):
        topic_setting = TOPIC_SETTINGS.get(name)
        if topic_setting is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"unknown topic configuration {name}")
        return inherited(ctx, topic_setting)[0].value if topic_setting.type is ConfigType.LIST else _NOT_A_LIST
    setting = BROKER_SETTINGS.get(name)
    if setting is None or setting.type is not ConfigType.LIST:
        return _NOT_A_LIST
    return ctx.broker.layers.of(setting)[0].value
