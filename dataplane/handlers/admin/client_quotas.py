"""DescribeClientQuotas and AlterClientQuotas: a tenant's quotas are throttle rules of its instance, and nothing else is.

Both go to ZooKeeper, so that what was written a moment ago by another broker is seen. An instance's users and client ids
are its own: the same names in another instance are other clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataplane.doors import ZooKeeperError
from dataplane.handlers.admin.access_nodes import check_still
from dataplane.handlers.admin.tolls import toll_of
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import in_slices
from dataplane.protocol.arrays import as_array
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasResponseEntityData,
    DescribeClientQuotasResponseEntryData,
    ValueData,
)
from dataplane.records.steps import Pace, Steps, each
from dataplane.tenancy.access import Operation
from dataplane.throttle.client_quotas import (
    MOST_KINDS,
    MOST_SETTINGS,
    Component,
    Draft,
    Setting,
    check_kinds,
    described,
    entity_of,
)
from dataplane.throttle.rule_writer import read_rules, write_rules
from quota.contracts.rules import ThrottleRule

_ID_BITS = 48
_NEVER = 2**15
_PATIENCE_MS = 10_000
_PER_STEP, _ALTERED_PER_STEP = 30, 8
"""Entries that cost about 100 us."""
_ENTRY_US, _PART_US = 2, 1
_Refusals = dict[int, ApiError]
"""By the entry's place in the request."""


async def handle_describe_client_quotas(
    ctx: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """The entities that match, with their rates."""
    try:
        ctx.check_cluster(Operation.DESCRIBE_CONFIGS)
        check_kinds([component.entity_type for component in request.components[:MOST_KINDS]])  # before anything waits
        entries = await in_slices(ctx, _described(request, await _rules(ctx)))
    except ApiError as refusal:
        return DescribeClientQuotasResponse(error_code=refusal.code, error_message=refusal.message, entries=None)
    except ZooKeeperError:
        return DescribeClientQuotasResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, entries=None)
    return DescribeClientQuotasResponse(entries=entries)


def _described(
    request: DescribeClientQuotasRequest, rules: Sequence[ThrottleRule]
) -> Steps[tuple[DescribeClientQuotasResponseEntryData, ...]]:
    components = [Component(c.entity_type, c.match_type, c.match) for c in request.components]
    entries: list[DescribeClientQuotasResponseEntryData] = []
    for entity, rates in (yield from described(rules, components, strict=request.strict)):
        parts = tuple(DescribeClientQuotasResponseEntityData(*part) for part in entity)
        entries.append(DescribeClientQuotasResponseEntryData(parts, tuple(ValueData(*rate) for rate in rates.items())))
        if len(entries) % _PER_STEP == 0:
            yield None
    return tuple(entries)


async def handle_alter_client_quotas(
    ctx: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Each entry by itself: one that is refused is no obstacle to the others.

    What is written is read again by every broker, so it has the rate of other changes that all instances share. Clients
    do not come again by themselves when they are refused: so the request waits, in any version.
    """
    refusals: _Refusals = {}
    toll = toll_of(ctx, strict_since=_NEVER, timeout_ms=_PATIENCE_MS)

    async def decide(before: Sequence[ThrottleRule]) -> Sequence[ThrottleRule]:
        wanted = await in_slices(ctx, _altered(ctx, before, request, refusals))
        check_still(ctx, Operation.ALTER_CONFIGS)
        return wanted

    try:
        instance = ctx.session.instance
        if instance is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "client quotas belong to an instance")
        ctx.check_cluster(Operation.ALTER_CONFIGS)
        if not request.validate_only:
            await toll.turn()
            toll.pay(1)
        await write_rules(ctx.broker.doors.zookeeper, instance.spec.id, decide)
    except ApiError as refusal:
        refusals = dict.fromkeys(range(len(request.entries)), refusal.kept())
    except ZooKeeperError:
        unknown = ApiError(ErrorCode.REQUEST_TIMED_OUT, "the change may have been made or not: look, and ask again")
        refusals = dict.fromkeys(range(len(request.entries)), unknown)
    finally:
        toll.decided()
    return AlterClientQuotasResponse(entries=await in_slices(ctx, _answers(request, refusals)))


def _answers(
    request: AlterClientQuotasRequest, refusals: _Refusals
) -> Steps[tuple[AlterClientQuotasResponseEntryData, ...]]:
    answers: list[AlterClientQuotasResponseEntryData] = []
    pace = Pace()
    for place, entry in enumerate(request.entries):
        if pace.over(_ENTRY_US):
            yield None
        answers.append((yield from _answer(entry, refusals.pop(place, None), pace)))
    return tuple(answers)


async def _rules(ctx: RequestContext) -> tuple[ThrottleRule, ...]:
    instance = ctx.session.instance
    return () if instance is None else await read_rules(ctx.broker.doors.zookeeper, instance.spec.id)


def _altered(
    ctx: RequestContext, rules: Sequence[ThrottleRule], request: AlterClientQuotasRequest, refusals: _Refusals
) -> Steps[Sequence[ThrottleRule]]:
    refusals.clear()
    draft = yield from Draft.of(rules)
    for place, entry in enumerate(request.entries):
        if place and place % _ALTERED_PER_STEP == 0:
            yield None
        try:
            entity = entity_of([(part.entity_type, part.entity_name) for part in entry.entity[:MOST_KINDS]])
            settings = [Setting(op.key, None if op.remove else op.value) for op in entry.ops[:MOST_SETTINGS]]
            draft.alter(entity, settings, lambda: f"rule-{ctx.broker.doors.random.getrandbits(_ID_BITS):012x}")
        except ApiError as refusal:
            refusals[place] = refusal.kept()
    return rules if request.validate_only else draft.rules


def _answer(
    entry: AlterClientQuotasRequestEntryData, refusal: ApiError | None, pace: Pace
) -> Steps[AlterClientQuotasResponseEntryData]:
    """Names the entity as it was asked for, however many parts it has."""
    parts = yield from each(entry.entity, _part, _PART_US, pace)
    return AlterClientQuotasResponseEntryData(
        error_code=refusal.code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
        entity=as_array(parts),
    )


def _part(part: AlterClientQuotasRequestEntityData) -> AlterClientQuotasResponseEntityData:
    return AlterClientQuotasResponseEntityData(part.entity_type, part.entity_name)
