"""AlterConfigs and IncrementalAlterConfigs: whichever broker is asked writes the new overrides to ZooKeeper.

Each resource by itself, by compare-and-set: two requests at the same time both take effect. When the answer leaves, this
broker acts by the new configuration; the others hear of it by their watches. Whether the session may change a resource is
asked when the resource's turn comes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dataplane.cluster.alterations import Change, altered, check_form, touched
from dataplane.cluster.broker_settings import BROKER_SETTINGS, check_broker_overrides
from dataplane.cluster.config_writer import write_config
from dataplane.cluster.paths import topic_path
from dataplane.cluster.topic_settings import TOPIC_SETTINGS, ConfigType, check_overrides
from dataplane.doors import NoNodeError, ZooKeeperError
from dataplane.handlers.admin.configs import inherited, layers_of
from dataplane.handlers.admin.resources import (
    BrokerResource,
    TopicResource,
    find_resource,
)
from dataplane.handlers.ownership import check_owners_limits
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from dataplane.records.steps import Pace, each
from dataplane.tasks import Task
from dataplane.tenancy.access import Operation

if TYPE_CHECKING:
    from dataplane.handlers.context import RequestContext
    from dataplane.records.steps import Steps

R = TypeVar("R")
_NOT_A_LIST = None
_RESOURCE_US, _CHANGE_US, _ANSWER_US = 40, 4, 2
_AT_ONCE = 64
_MOST_CONFIGS = 200
"""In one resource: more than there are can only be nonsense, and it would take long to say what is wrong with it."""


async def handle_alter_configs(ctx: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """What is named replaces all that was set before."""
    responses = await _responses(
        ctx,
        request,
        lambda c: Change(c.name, c.value),
        AlterConfigsResponseAlterConfigsResourceResponse,
        replace=True,
    )
    return AlterConfigsResponse(responses=responses)


async def handle_incremental_alter_configs(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """What is not named stays."""
    responses = await _responses(
        ctx,
        request,
        lambda c: Change(c.name, c.value, c.config_operation),
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
        replace=False,
    )
    return IncrementalAlterConfigsResponse(responses=responses)


Asked = tuple[int, str]
"""Type and name of a resource."""


Answer = tuple[int, str | None, int, str]
"""Error code, sentence, and the resource again."""


async def _responses(
    ctx: RequestContext,
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    change_of: Callable[[Any], Change],
    make: Callable[[int, str | None, int, str], R],
    *,
    replace: bool,
) -> tuple[R, ...]:
    """One resource after the other, each begun in a slice: those that are refused wait for nothing else."""
    run = partial(ctx.broker.slices.run, ctx.owner)
    doubled = await run(_doubled(request.resources))

    def begin(resource: Any) -> Task[Answer]:
        asked: Asked = (resource.resource_type, resource.resource_name)
        alter = _alter(
            ctx,
            asked,
            resource.configs,
            change_of,
            is_doubled=asked in doubled,
            replace=replace,
            validate_only=request.validate_only,
        )
        return Task(_answer(asked, alter), "change of configurations")

    answers: list[Answer] = []
    left = iter(request.resources)
    while begun := await run(_begin_some(left, begin), at_once=False):
        answers += [await task for task in begun]
    return tuple(await run(each(answers, lambda answer: make(*answer), _ANSWER_US)))


def _doubled(resources: Iterable[Any]) -> Steps[set[Asked]]:
    """Type and name of what is named more than once."""
    pace = Pace()
    seen: set[Asked] = set()
    doubled: set[Asked] = set()
    for resource in resources:
        if pace.over(_ANSWER_US):
            yield None
        asked = (resource.resource_type, resource.resource_name)
        (doubled if asked in seen else seen).add(asked)
    return doubled


def _begin_some(left: Iterator[Any], begin: Callable[[Any], Task[Answer]]) -> Steps[list[Task[Answer]]]:
    """The next ones, up to the first that is not over at once. None: there is nothing left."""
    pace = Pace()
    begun: list[Task[Answer]] = []
    for resource in left:
        begun.append(begin(resource))
        if not begun[-1].done or len(begun) == _AT_ONCE:
            break
        if pace.over(_RESOURCE_US + _CHANGE_US * len(resource.configs)):
            yield None
    return begun


async def _answer(asked: Asked, alter: Coroutine[Any, Any, None]) -> Answer:
    code, message = ErrorCode.NONE, None
    try:
        await alter
    except ApiError as refusal:
        code, message = refusal.code, refusal.message
    except NoNodeError:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic does not exist"
    except ZooKeeperError:
        code, message = ErrorCode.REQUEST_TIMED_OUT, "the change may have been made or not: look, and ask again"
    return code, message, *asked


async def _alter(
    ctx: RequestContext,
    asked: Asked,
    configs: Sequence[Any],
    change_of: Callable[[Any], Change],
    *,
    is_doubled: bool,
    replace: bool,
    validate_only: bool,
) -> None:
    if is_doubled:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the request names the resource more than once")
    resource = _find(ctx, asked)
    if isinstance(resource, BrokerResource) and not ctx.session.is_internal:
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "brokers belong to the service: they cannot be changed")
    if len(configs) > _MOST_CONFIGS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{len(configs)} configurations are more than there are")
    changes = [change_of(config) for config in configs]
    check_form(changes)

    def decided(before: Mapping[str, str]) -> Mapping[str, str]:
        after = altered(before, changes, list_default=lambda name: _list_default(ctx, resource, name), replace=replace)
        _check(ctx, resource, changes, after)
        return after

    async def decide(before: Mapping[str, str]) -> Mapping[str, str]:
        # In slices: what many requests of an owner wait for comes from ZooKeeper together.
        cost_us = _RESOURCE_US + _CHANGE_US * len(changes)
        (after,) = await ctx.broker.slices.run(ctx.owner, each([before], decided, cost_us), at_once=False)
        return after

    beside = topic_path(resource.name) if isinstance(resource, TopicResource) else None
    zookeeper = ctx.broker.doors.zookeeper
    await write_config(zookeeper, resource.entity, decide, beside=beside, validate_only=validate_only)
    if not validate_only:
        await ctx.broker.topic_configs.refresh_entities([resource.entity])


def _find(ctx: RequestContext, asked: Asked) -> TopicResource | BrokerResource:
    """As Kafka, a name that no topic can have is one that is not there."""
    try:
        return find_resource(ctx, Operation.ALTER_CONFIGS, *asked)
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
        return (
            inherited(layers_of(ctx), topic_setting)[0].value if topic_setting.type is ConfigType.LIST else _NOT_A_LIST
        )
    setting = BROKER_SETTINGS.get(name)
    if setting is None or setting.type is not ConfigType.LIST:
        return _NOT_A_LIST
    return ctx.broker.layers.of(setting)[0].value
