"""DescribeClientQuotas and AlterClientQuotas: a tenant's quotas are throttle rules of its instance, and nothing else is.

Both go to ZooKeeper, so that what was written a moment ago by another broker is seen. An instance's users and client ids
are its own: the same names in another instance are other clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from dataplane.doors import ZooKeeperError
from dataplane.handlers.context import RequestContext
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.configs import (
    AlterClientQuotasRequest,
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
from dataplane.throttle.client_quotas import Component, Setting, altered, described, entity_of
from dataplane.throttle.rule_writer import read_rules, write_rules
from quota.contracts.rules import ThrottleRule

_ID_BITS = 48
_Refusals = dict[int, ApiError]
"""By the entry's place in the request."""


async def handle_describe_client_quotas(
    ctx: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """The entities that match, with their rates."""
    components = [Component(c.entity_type, c.match_type, c.match) for c in request.components]
    try:
        found = described(await _rules(ctx), components, strict=request.strict)
    except ApiError as refusal:
        return DescribeClientQuotasResponse(error_code=refusal.code, error_message=refusal.message, entries=None)
    except ZooKeeperError:
        return DescribeClientQuotasResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, entries=None)
    entries = [
        DescribeClientQuotasResponseEntryData(
            tuple(DescribeClientQuotasResponseEntityData(*part) for part in entity),
            tuple(ValueData(*rate) for rate in rates.items()),
        )
        for entity, rates in found
    ]
    return DescribeClientQuotasResponse(entries=tuple(entries))


async def handle_alter_client_quotas(
    ctx: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Each entry by itself: one that is refused is no obstacle to the others."""
    refusals: _Refusals = {}

    def decide(before: Sequence[ThrottleRule]) -> Sequence[ThrottleRule]:
        refusals.clear()
        after = before
        for place, entry in enumerate(request.entries):
            try:
                after = _altered(ctx, after, entry)
            except ApiError as refusal:
                refusals[place] = refusal
        return before if request.validate_only else after

    try:
        instance = ctx.session.instance
        if instance is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "client quotas belong to an instance")
        await write_rules(ctx.broker.doors.zookeeper, instance.spec.id, decide)
    except ApiError as refusal:
        refusals = dict.fromkeys(range(len(request.entries)), refusal)
    except ZooKeeperError:
        unknown = ApiError(ErrorCode.REQUEST_TIMED_OUT, "the change may have been made or not: look, and ask again")
        refusals = dict.fromkeys(range(len(request.entries)), unknown)
    answers = [_answer(entry, refusals.get(place)) for place, entry in enumerate(request.entries)]
    return AlterClientQuotasResponse(entries=tuple(answers))


async def _rules(ctx: RequestContext) -> tuple[ThrottleRule, ...]:
    instance = ctx.session.instance
    return () if instance is None else await read_rules(ctx.broker.doors.zookeeper, instance.spec.id)


def _altered(
    ctx: RequestContext, rules: Sequence[ThrottleRule], entry: AlterClientQuotasRequestEntryData
) -> Sequence[ThrottleRule]:
    entity = entity_of([(part.entity_type, part.entity_name) for part in entry.entity])
    settings = [Setting(op.key, None if op.remove else op.value) for op in entry.ops]
    return altered(rules, entity, settings, lambda: f"rule-{ctx.broker.doors.random.getrandbits(_ID_BITS):012x}")


def _answer(entry: AlterClientQuotasRequestEntryData, refusal: ApiError | None) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=refusal.code if refusal else ErrorCode.NONE,
        error_message=refusal.message if refusal else None,
        entity=tuple(AlterClientQuotasResponseEntityData(part.entity_type, part.entity_name) for part in entry.entity),
    )
