"""DescribeUserScramCredentials, AlterUserScramCredentials: an instance's users, with the verifiers of their passwords.

Nothing that verifies a password is ever shown. Whichever broker is asked alters them; Kafka asks for the controller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dataplane.handlers.admin.access_nodes import put_in_force, spec_of
from dataplane.handlers.context import RequestContext
from dataplane.handlers.ownership import in_slices
from dataplane.protocol.errors import ApiError, ErrorCode
from dataplane.protocol.messages.security import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from dataplane.protocol.release import emptied
from dataplane.records.steps import Pace, Steps, each
from dataplane.security.user_draft import MECHANISMS, Deletion, Plan, Refusal, Upsertion, UserDraft, planned
from dataplane.tenancy.access import Operation
from quota.contracts.apart import users_path
from quota.contracts.instance import InstanceSpec
from quota.contracts.users import User

_USER_US, _NAME_US, _ALTERATION_US = 10, 2, 25
_NAMES_PER_STEP = 512


async def handle_describe_user_scram_credentials(
    ctx: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """All users, or those that are named, with mechanisms and iterations."""
    try:
        users = spec_of(ctx, Operation.DESCRIBE).users
    except ApiError as refusal:
        return DescribeUserScramCredentialsResponse(error_code=refusal.code, error_message=refusal.message)
    there = users.items if users is not None else ()
    results = await in_slices(ctx, _described(there, [user.name for user in request.users or ()]))
    return DescribeUserScramCredentialsResponse(error_message=None, results=tuple(results))


def _described(users: Sequence[User], names: Sequence[str]) -> Steps[list[DescribeUserScramCredentialsResult]]:
    pace = Pace()
    if not names:
        return (yield from each(users, _shown, _USER_US, pace))
    times: Counter[str] = Counter()
    for first in range(0, len(names), _NAMES_PER_STEP):
        times.update(names[first : first + _NAMES_PER_STEP])
        yield None
    by_name = {user.name: user for user in users}
    return (yield from each(times, lambda name: _named(name, times[name], by_name.get(name)), _USER_US, pace))


def _named(name: str, times: int, user: User | None) -> DescribeUserScramCredentialsResult:
    """As Kafka says it, in its words."""
    if not name:
        refusal = ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"
    elif times > 1:
        said = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        refusal = ErrorCode.DUPLICATE_RESOURCE, said
    elif user is None:
        refusal = ErrorCode.RESOURCE_NOT_FOUND, f"Attempt to describe a user credential that does not exist: {name}"
    else:
        return _shown(user)
    return DescribeUserScramCredentialsResult(name, *refusal)


def _shown(user: User) -> DescribeUserScramCredentialsResult:
    present = [(code, user.of(mechanism)) for code, mechanism in MECHANISMS.items()]
    infos = tuple(CredentialInfo(code, found[0].iterations) for code, found in present if found)
    return DescribeUserScramCredentialsResult(user.name, error_message=None, credential_infos=infos)


async def handle_alter_user_scram_credentials(
    ctx: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Each user by himself, as he is named first; in force at once, without a time for which the old password is good."""
    everybodys: ApiError | None = None
    plans: dict[str, Plan] = {}
    refusals: dict[str, Refusal] = {}
    version = 0

    def altered(before: bytes | None) -> Steps[bytes | None]:
        nonlocal version
        draft = yield from UserDraft.of(before)
        refusals.clear()
        pace = Pace()
        for name, plan in plans.items():
            if pace.over(_ALTERATION_US):
                yield None
            refusal = draft.alter(name, plan)
            if refusal is not None:
                refusals[name] = refusal
        version = draft.version
        return draft.written()

    async def decide(before: bytes | None) -> bytes | None:
        return await in_slices(ctx, altered(before))

    def is_there(spec: InstanceSpec) -> bool:
        return spec.users is not None and spec.users.version >= version

    try:
        instance = spec_of(ctx, Operation.ALTER).id
        plans = await in_slices(ctx, _plans(request))
        await put_in_force(ctx, instance, users_path(instance), decide, is_there)
    except ApiError as refusal:
        everybodys = refusal.kept()
    if not plans:
        plans = await in_slices(ctx, _nothing_planned(request))

    def result(name: str) -> AlterUserScramCredentialsResult:
        refusal = everybodys or refusals.get(name)
        if refusal is None:
            return AlterUserScramCredentialsResult(name, error_message=None)
        return AlterUserScramCredentialsResult(name, refusal.code, refusal.message)

    results = tuple(await in_slices(ctx, each(plans, result, _NAME_US)))
    for held in (plans, refusals):
        await in_slices(ctx, emptied(held))
    return AlterUserScramCredentialsResponse(results=results)


def _nothing_planned(request: AlterUserScramCredentialsRequest) -> Steps[dict[str, Plan]]:
    """For users who are all refused alike."""
    plans: dict[str, Plan] = {}
    nothing, pace = Plan(), Pace()
    for alterations in (request.deletions, request.upsertions):
        for one in alterations:
            if pace.over(_NAME_US):
                yield None
            plans[one.name] = nothing
    return plans


def _plans(request: AlterUserScramCredentialsRequest) -> Steps[dict[str, Plan]]:
    alterations: list[Any] = yield from each(request.deletions, lambda one: Deletion(one.name, one.mechanism), _NAME_US)
    alterations += yield from each(
        request.upsertions,
        lambda one: Upsertion(one.name, one.mechanism, one.iterations, bytes(one.salt), bytes(one.salted_password)),
        _NAME_US,
    )
    plans = yield from planned(alterations)
    yield from emptied(alterations)
    return plans
